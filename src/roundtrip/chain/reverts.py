"""What a revert says, as far as bytes say anything."""

_ERROR_STRING = bytes.fromhex("08c379a0")
_PANIC = bytes.fromhex("4e487b71")
_PANICS = {
    0x01: "an assertion failed",
    0x11: "arithmetic overflow",
    0x12: "division by zero",
    0x32: "index out of bounds",
    0x41: "out of memory",
}
_WRAPPED = bytes.fromhex("90bfb865")
_KNOWN = {
    bytes.fromhex(selector): name
    for selector, name in {
        "90bfb865": "WrappedError",
        "5212cba1": "CurrencyNotSettled",
        "3b99b53d": "SliceOutOfBounds",
        "8b063d73": "V4TooLittleReceived",
        "486aa307": "PoolNotInitialized",
        "025ac17e": "CurveGraduated",
        "71c4efed": "SlippageExceeded",
        "1f2a2005": "ZeroAmount",
        "da52ba9e": "NativeValueMismatch",
        "e0aeda7d": "UnexpectedNativeValue",
    }.items()
}
"""Errors of the exchanges' and the launchpad's own contracts, whose names say more than their hashes."""
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
    if head == _WRAPPED:
        return _wrapped(body) or _KNOWN[head]
    if len(data) >= 4:
        return _KNOWN.get(head, f"custom error 0x{head.hex()}")
    return None


def _wrapped(body: bytes) -> str | None:
    """WrappedError(address target, bytes4 selector, bytes reason, bytes details), ERC-7751: v4 puts what a
    hook said into it. Its reason is read as far as it is plain."""
    offset = int.from_bytes(body[64:96], "big")
    if offset < 4 * 32 or offset + 32 > len(body):
        return None
    length = int.from_bytes(body[offset : offset + 32], "big")
    inner = body[offset + 32 :][: min(length, _MOST_BYTES)]
    return None if inner[:4] == _WRAPPED else reason_in(inner)


def _error_string(data: bytes) -> str | None:
    """The text of Error(string), as far as it goes: lengths and offsets are a stranger's claims."""
    body = data[4:_MOST_BYTES]
    offset = int.from_bytes(body[:32], "big")
    if offset + 32 > len(body):
        offset = 32
    length = int.from_bytes(body[offset : offset + 32], "big")
    found = body[offset + 32 :][: min(length, _MOST_BYTES)]
    return found.decode("utf-8", "replace").rstrip("\0") or None
