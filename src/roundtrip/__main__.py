"""``python -m roundtrip``: the same as the command."""

from roundtrip.cli import main

main()
