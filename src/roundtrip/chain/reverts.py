"""What a revert says, as far as bytes say anything."""

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

_ERROR_STRING = bytes.fromhex("08c379a0")
_PANIC = bytes.fromhex("4e487b71")
_PANICS = {
    0x01: "an assertion failed",
    0x11: "arithmetic overflow",
    0x12: "division by zero",
    0x32: "index out of bounds",
    0x41: "out of memory",
}
_MOST_BYTES = 1024
"""Longer reasons are cut: a revert may carry a megabyte."""


def reason_in(data: bytes) -> str | None:
    """A stranger's reason in plain text, or None when there is none. Uncleaned."""
    head, body = data[:4], data[4:_MOST_BYTES]
    if head == _ERROR_STRING:
        return _error_string(data)
    if head == _PANIC and len(body) >= 32:
        number = int.from_bytes(body[:32], "big")
        return _PANICS.get(number, f"panic {number}")
    if len(data) >= 4:
        return f"custom error 0x{head.hex()}"
    return None


def _error_string(data: bytes) -> str | None:
    """The text of Error(string), also when it is cut or its padding is wrong."""
    try:
        (found,) = decode(["bytes"], data[4:_MOST_BYTES])
        return bytes(found).decode("utf-8", "replace")
    except DecodingError:
        return data[68:_MOST_BYTES].rstrip(b"\0").decode("utf-8", "replace") or None
