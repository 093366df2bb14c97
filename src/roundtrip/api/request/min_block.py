"""The minimum block of an answer: a request's header, or ``_meta`` in a tool call's envelope."""

import re
from collections.abc import Iterable, Mapping

from roundtrip.domain.base.errors import CallerFault

NAME = "x-min-block"
HEADER = NAME.encode()
META = "minBlock"
SAID = "The answer is of this block or a later one; 503 busy if the chain's node does not have it in time."
MOST = 10**15 - 1
_NUMBER = re.compile(r"[0-9]{1,15}")
_UNFIT = f"{NAME} must be the number of a block in decimal digits, such as 1527."


def shown_min_blocks(headers: Iterable[tuple[bytes, bytes]], meta: object = None) -> tuple[object, ...]:
    """Every minimum block that a request carries, unvalidated. ``meta``: the envelope's ``_meta``."""
    shown: list[object] = [value for name, value in headers if name == HEADER]
    if isinstance(meta, Mapping) and meta.get(META) is not None:
        shown.append(meta[META])
    return tuple(shown)


def read_min_block(shown: Iterable[object]) -> int:
    """The highest of them; 0: the request carries none. Raises CallerFault (bad_input)."""
    return max((_read(value) for value in shown), default=0)


def _read(value: object) -> int:
    text = value.decode("latin-1").strip(" \t") if isinstance(value, bytes) else value
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    if not isinstance(text, str) or _NUMBER.fullmatch(text) is None:
        raise CallerFault("bad_input", _UNFIT)
    return int(text)
