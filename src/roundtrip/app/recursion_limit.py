"""How deep the interpreter goes."""

import sys

_RECURSION_LIMIT = 1000


def bound_recursion() -> None:
    """Puts the interpreter's limit back: a library of signatures raises it to 100,000, and then a body of
    nested brackets would end the process instead of raising."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
