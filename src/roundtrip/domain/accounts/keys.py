"""The format of a key: ``rt_``, 32 random bytes in 43 characters, and a checksum in 6. Pure.

A session in a cookie has the same format, but begins with ``rs_``: neither can be used as the other.
"""

import hashlib
import re
import zlib

PREFIX = "rt_"
SESSION_PREFIX = "rs_"
START_LENGTH = 8
"""Characters of a key that are stored readable, to tell keys apart."""
MAX_LIVE = 5
"""Live keys of one account."""

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BODY, _CHECKSUM = 43, 6
_BYTES = 32
LENGTH = len(PREFIX) + _BODY + _CHECKSUM
"""Characters of a key, and of a session."""
_BEGINS = f"(?:{PREFIX}|{SESSION_PREFIX})"
_LIKE_ONE = re.compile(rf"({_BEGINS}[0-9A-Za-z]{{{START_LENGTH - len(PREFIX)}}})[0-9A-Za-z]+")
_FORM = re.compile(rf"{_BEGINS}[0-9A-Za-z]{{{_BODY + _CHECKSUM}}}")


def format_key(chance: bytes, prefix: str = PREFIX) -> str:
    """The key of 32 random bytes; a session's, with its own prefix."""
    if len(chance) != _BYTES:
        raise ValueError(f"a key is made of {_BYTES} bytes")
    body = prefix + _base62(int.from_bytes(chance, "big"), _BODY)
    return body + _checksum(body)


def is_key(text: str) -> bool:
    """Whether the text has the format of a key: this finds most typos without a lookup."""
    return text.startswith(PREFIX) and is_key_or_session(text)


def is_session(text: str) -> bool:
    """Whether the text has the format of a session."""
    return text.startswith(SESSION_PREFIX) and is_key_or_session(text)


def is_key_or_session(text: str) -> bool:
    """Whether the text has either format."""
    return _FORM.fullmatch(text) is not None and _checksum(text[:-_CHECKSUM]) == text[-_CHECKSUM:]


def hash_of(key: str) -> bytes:
    """Its SHA-256, all that is stored of a key or a session but its start. Raises ValueError where it is
    neither."""
    if not is_key_or_session(key):
        raise ValueError("this is not how a key is written")
    return digest_of(key)


def digest_of(text: str) -> bytes:
    """The SHA-256 of any text, which is stored of no text but a key or a session."""
    return hashlib.sha256(text.encode()).digest()


def start_of(key: str) -> str:
    """Its first characters."""
    return key[:START_LENGTH]


def without_keys(text: str) -> str:
    """The text with everything that begins like a key or a session cut to its start."""
    return _LIKE_ONE.sub(r"\1...", text)


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECKSUM)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
