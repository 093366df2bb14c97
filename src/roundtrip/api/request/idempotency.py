"""The name by which a request may be repeated: its header, or the same in a tool call's envelope."""

from collections.abc import Iterable, Mapping
from typing import Any

from roundtrip.domain.base.errors import CallerFault

HEADER = b"idempotency-key"
META = "idempotencyKey"
MOST = 200
_UNFIT = f"An idempotency key is 1 to {MOST} printable characters."


def given_once(headers: Iterable[tuple[bytes, bytes]], meta: object = None) -> tuple[object, ...]:
    """Every one that a request shows, as it came. ``meta``: the envelope's, where it has one."""
    found: list[object] = [value for name, value in headers if name == HEADER]
    if isinstance(meta, Mapping) and META in meta:
        told: Any = meta[META]
        found.append(told)
    return tuple(found)


def read_once(given: Iterable[object]) -> str | None:
    """The one that was meant; None where none was shown. Raises CallerFault (bad_input)."""
    found = {_read(one) for one in given}
    if len(found) > 1:
        raise CallerFault("bad_input", "Two different idempotency keys were shown.")
    return found.pop() if found else None


def _read(one: object) -> str:
    try:
        text = one.strip(b" \t").decode() if isinstance(one, bytes) else one
    except UnicodeDecodeError:
        raise CallerFault("bad_input", _UNFIT) from None
    if not isinstance(text, str) or not 1 <= len(text) <= MOST or not text.isprintable():
        raise CallerFault("bad_input", _UNFIT)
    return text
