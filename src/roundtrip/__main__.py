"""The command, also as ``python -m roundtrip``."""

import signal

# Before anything takes its time to be read: who is told to replace its processes would end by it. Not
# ignored: the processes that it starts would inherit that.
signal.signal(signal.SIGUSR1, lambda number, frame: None)

from roundtrip.cli.main import main  # noqa: E402

__all__ = ["main"]

if __name__ == "__main__":
    main()
