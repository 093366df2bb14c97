"""The idempotency key of a request: its header, or ``_meta`` in a tool call's envelope."""

from collections.abc import Iterable, Mapping
from typing import Any

from roundtrip.domain.base.errors import CallerFault

HEADER = b"idempotency-key"
META = "idempotencyKey"
MOST = 200
_UNFIT = f"idempotency-key must be 1 to {MOST} printable characters, such as buy-2026-11-25-1."


def shown_idempotency_keys(headers: Iterable[tuple[bytes, bytes]], meta: object = None) -> tuple[object, ...]:
    """Every idempotency key that a request carries, unvalidated. ``meta``: the envelope's ``_meta``."""
    keys: list[object] = [value for name, value in headers if name == HEADER]
    if isinstance(meta, Mapping) and meta.get(META) is not None:
        in_meta: Any = meta[META]
        keys.append(in_meta)
    return tuple(keys)


def read_idempotency_key(shown: Iterable[object]) -> str | None:
    """The request's idempotency key; None: it carries none. Raises CallerFault (bad_input): two different
    keys, or one that is not 1 to ``MOST`` printable characters."""
    keys = {_read(value) for value in shown}
    if len(keys) > 1:
        raise CallerFault("bad_input", "The request has two different idempotency keys. Send one.")
    return keys.pop() if keys else None


def _read(value: object) -> str:
    try:
        text = value.strip(b" \t").decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise CallerFault("bad_input", _UNFIT) from None
    if not isinstance(text, str) or not 1 <= len(text) <= MOST or not text.isprintable():
        raise CallerFault("bad_input", _UNFIT)
    return text
