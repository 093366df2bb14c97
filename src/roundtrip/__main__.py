"""The command, also as ``python -m roundtrip``."""

import signal

# Before the slow imports: SIGUSR1, which replaces processes, would end this one until it is handled. It is
# not ignored, as child processes would inherit that.
signal.signal(signal.SIGUSR1, lambda number, frame: None)

from roundtrip.cli.main import main  # noqa: E402

__all__ = ["main"]

if __name__ == "__main__":
    main()
