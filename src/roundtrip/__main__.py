"""The command, also as ``python -m roundtrip``."""

import signal
import sys
from importlib import import_module

import roundtrip

# Before the slow imports: SIGUSR1, which replaces processes, would end this one until it is handled. It is
# not ignored, as child processes would inherit that.
signal.signal(signal.SIGUSR1, lambda number, frame: None)

_JUDGING = frozenset({"check", "simulate", "prepare", "holders"})
"""Commands that read their arguments themselves: the library that does so for the others imports slowly."""


def main() -> None:
    """Runs the command that the arguments name. ``--version`` and help import little more."""
    if sys.argv[1:] == ["--version"]:
        print(f"roundtrip {roundtrip.__version__}")
        return
    if sys.argv[1:] in ([], ["-h"], ["--help"]):
        listed = import_module("roundtrip.cli.commands").format_help()
        # Without a command there was nothing to do: that is wrong usage, and no verdict.
        print(listed, end="", file=sys.stdout if sys.argv[1:] else sys.stderr)
        raise SystemExit(0 if sys.argv[1:] else 64)
    if sys.argv[2:] and sys.argv[-1] in ("-h", "--help"):
        text = import_module("roundtrip.cli.commands").read_help(sys.argv[1:-1])
        if text is not None:
            print(text, end="")
            return
    is_judging = len(sys.argv) > 1 and sys.argv[1] in _JUDGING
    import_module("roundtrip.cli.judging" if is_judging else "roundtrip.cli.main").main()


if __name__ == "__main__":
    main()
