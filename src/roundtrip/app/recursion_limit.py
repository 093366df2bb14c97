"""The interpreter's recursion limit."""

import sys

_RECURSION_LIMIT = 1000


def bound_recursion() -> None:
    """Restores the interpreter's default limit: a signature library raises it to 100,000, and a body of
    nested brackets would then crash the process instead of raising."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
