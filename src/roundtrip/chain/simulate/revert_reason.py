"""Decodes the reason of a revert from its data."""

import re
from dataclasses import dataclass

from roundtrip.domain.base.names import REASON_LENGTH
from roundtrip.domain.check.refusals import TOO_LITTLE, TOO_MUCH

from .error_selectors import KNOWN, KnownError

_ERROR_STRING = bytes.fromhex("08c379a0")
_PANIC = bytes.fromhex("4e487b71")
_PANICS = {
    0x00: "a panic of no stated kind",
    0x01: "an assertion failed",
    0x11: "arithmetic overflow",
    0x12: "division by zero",
    0x21: "no such value of an enum",
    0x22: "badly encoded bytes in storage",
    0x31: "pop from an empty array",
    0x32: "index out of bounds",
    0x41: "out of memory",
    0x51: "call of a function that was never set",
}
"""Every code of Solidity's Panic(uint256)."""
_WORD = 32
_SIZED = re.compile(r"(uint|int|bytes)([0-9]+)")
_MAX_BYTES = 1024
"""Longer reasons are cut: a revert may carry a megabyte."""
_SHORT_HEX = 6
"""Length of an abbreviated address or hash: ``0x`` and four digits."""


def reason_in(data: bytes) -> str | None:
    """The reason in plain text, or None when there is none. Untrusted and not cleaned."""
    return _read(data, frozenset())


def _read(data: bytes, opened: frozenset[bytes]) -> str | None:
    """``opened``: the selectors of the enclosing errors. None is decoded again, which bounds the nesting."""
    head, body = data[:4], data[4:_MAX_BYTES]
    if head == _ERROR_STRING:
        return _error_string(data)
    if head == _PANIC and len(body) >= _WORD:
        number = int.from_bytes(body[:_WORD], "big")
        return _PANICS.get(number, f"panic {number}")
    if len(data) < 4 or head in opened:
        return None
    error = KNOWN.get(head)
    if error is None:
        return f"custom error 0x{head.hex()}"
    if "bytes" in error.types:
        return _read(_wrapped_reason(error, body), opened | {head}) or error.name
    if error.name in TOO_LITTLE | TOO_MUCH:
        # A router's numbers, in base units and without an asset, say nothing to a reader.
        return error.name
    return _with_arguments(error, body)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A swap refused by its router or curve because it brings less than its minimum. ``brought_raw``: what it
    would bring; None: not stated."""

    brought_raw: int | None


_BROUGHT_AT = {"V4TooLittleReceived": 1, "SlippageExceeded": 0}
"""Which argument of the error is what the swap would bring."""
_UNSTATED = frozenset({"V3TooLittleReceived", "InsufficientETH"})
"""The Universal Router's errors of a v3 swap, and of the weth that it unwraps, which state no amount."""
_ROUTER = "ExecutionFailed"
_SHORT_TEXTS = frozenset({"Too little received", "Insufficient WETH9"})
"""What SwapRouter02 says."""


def shortfall_in(data: bytes) -> Shortfall | None:
    """The shortfall that a trade's own revert data states; None: another failure. The errors of hooks and
    tokens, which could state any amount, come wrapped, and are not opened here."""
    error = KNOWN.get(data[:4])
    if error is not None and error.name == _ROUTER:
        data = _wrapped_reason(error, data[4:_MAX_BYTES])
        error = KNOWN.get(data[:4])
    if data[:4] == _ERROR_STRING:
        return Shortfall(None) if _error_string(data) in _SHORT_TEXTS else None
    if error is not None and error.name in _UNSTATED:
        return Shortfall(None)
    at = None if error is None else _BROUGHT_AT.get(error.name)
    word = b"" if at is None else data[4 + at * _WORD :][:_WORD]
    return Shortfall(int.from_bytes(word, "big")) if len(word) == _WORD else None


def _wrapped_reason(error: KnownError, body: bytes) -> bytes:
    """The wrapped reason, as far as it is there: the first bytes argument. V4 wraps the reason of a hook so
    (WrappedError, ERC-7751), the Universal Router that of a command, the quoter that of a pool."""
    at = error.types.index("bytes") * _WORD
    offset = int.from_bytes(body[at : at + _WORD], "big")
    if offset < len(error.types) * _WORD:
        return b""
    length = int.from_bytes(body[offset : offset + _WORD], "big")
    return body[offset + _WORD :][: min(length, _MAX_BYTES)]


def _with_arguments(error: KnownError, body: bytes) -> str:
    """``Name(5, 7)``; the bare name when there are no arguments, when the bytes do not match the types, or
    when the text would be cut: half a number is another number."""
    words = [body[at : at + _WORD] for at in range(0, len(error.types) * _WORD, _WORD)]
    values = [_argument(kind, word) for kind, word in zip(error.types, words, strict=True)]
    arguments = [value for value in values if value is not None]
    if not arguments or len(arguments) < len(values):
        return error.name
    for listed in (arguments, [_short(value) for value in arguments]):
        text = f"{error.name}({', '.join(listed)})"
        if len(text) <= REASON_LENGTH:
            return text
    return error.name


def _short(argument: str) -> str:
    is_hex = argument.startswith("0x") and len(argument) > _SHORT_HEX
    return f"{argument[:_SHORT_HEX]}.." if is_hex else argument


def _argument(kind: str, word: bytes) -> str | None:
    """One argument of a static type; None for another type, and for a word that holds no such value."""
    number = int.from_bytes(word, "big")
    sized = _SIZED.fullmatch(kind)
    if len(word) < _WORD:
        return None
    if kind == "bool":
        return {0: "false", 1: "true"}.get(number)
    if kind == "address":
        return None if number >> 160 else f"0x{number:040x}"
    if sized is None:
        return None
    family, size = sized[1], int(sized[2])
    if family == "bytes":
        return None if any(word[size:]) else f"0x{word[:size].hex()}"
    if family == "uint":
        return None if number >> size else str(number)
    signed = int.from_bytes(word, "big", signed=True)
    return str(signed) if -(2 ** (size - 1)) <= signed < 2 ** (size - 1) else None


def _error_string(data: bytes) -> str | None:
    """The text of Error(string), as far as it is there: its lengths and offsets are untrusted."""
    body = data[4:_MAX_BYTES]
    offset = int.from_bytes(body[:32], "big")
    if offset + 32 > len(body):
        offset = 32
    length = int.from_bytes(body[offset : offset + 32], "big")
    text = body[offset + 32 :][: min(length, _MAX_BYTES)]
    return text.decode("utf-8", "replace").rstrip("\0") or None
