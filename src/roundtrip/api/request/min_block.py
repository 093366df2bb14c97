"""The least block that an answer may be of: a request's header, or the same in a tool call's envelope."""

import re
from collections.abc import Iterable, Mapping

from roundtrip.domain.base.errors import CallerFault

NAME = "x-min-block"
HEADER = NAME.encode()
META = "minBlock"
SAID = (
    "The answer is of this block or a later one, or 503 busy where the chain's node has not got it in time."
)
MOST = 10**15 - 1
_NUMBER = re.compile(r"[0-9]{1,15}")
_UNFIT = f"{NAME} is the number of a block, in decimal digits."


def given_min_block(headers: Iterable[tuple[bytes, bytes]], meta: object = None) -> tuple[object, ...]:
    """Every one that a request shows, as it came. ``meta``: the envelope's, where it has one."""
    found: list[object] = [value for name, value in headers if name == HEADER]
    if isinstance(meta, Mapping) and META in meta:
        found.append(meta[META])
    return tuple(found)


def read_min_block(given: Iterable[object]) -> int:
    """The highest that was shown; 0 where none was. Raises CallerFault (bad_input)."""
    return max((_read(one) for one in given), default=0)


def _read(one: object) -> int:
    text = one.decode("latin-1").strip(" \t") if isinstance(one, bytes) else one
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    if not isinstance(text, str) or _NUMBER.fullmatch(text) is None:
        raise CallerFault("bad_input", _UNFIT)
    return int(text)
