"""Encodes calldata, and decodes return data and topics, in 32-byte words: the part of the contract ABI that
fixed shapes need. Words are hex digits without ``0x``."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from roundtrip.domain.base.types import Address

WORD = 32
MAX_UINT256 = 2**256 - 1
_ADDRESS_PADDING = "0x" + 24 * "0"
"""The twelve zero bytes before an address in a topic."""
_MAX_REMEMBERED = 16_384

try:
    from sha3 import keccak_256
except ImportError:
    # A seventh of the speed; it has wheels for macOS and Windows, too.
    from Crypto.Hash import keccak as _keccak

    def keccak_256(data: bytes) -> Any:
        """The hash object of these bytes."""
        return _keccak.new(data=data, digest_bits=256)


def keccak(data: bytes) -> bytes:
    """Keccak-256, as Ethereum uses it (not NIST SHA3)."""
    digest: bytes = keccak_256(data).digest()
    return digest


def checksum_address(address: Address) -> str:
    """An address with the checksum capitals of EIP-55."""
    digits = address[2:]
    hashed = keccak(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if nibble >= "8" else digit for digit, nibble in zip(digits, hashed, strict=False)
    )


def selector(signature: str) -> str:
    """The first four bytes of a function signature's hash, as ``0x`` hex."""
    return "0x" + keccak(signature.encode()).hex()[:8]


@lru_cache(maxsize=_MAX_REMEMBERED)
def word(value: int | str | bool) -> str:
    """One argument as 64 hex digits: an integer (two's complement below zero) or an address."""
    if isinstance(value, str):
        return value[2:].lower().rjust(64, "0")
    return format(int(value) & MAX_UINT256, "064x")


def call(function_selector: str, *arguments: int | str | bool) -> str:
    """Calldata of a function with static arguments only, as ``0x`` hex; ``function_selector``, too."""
    return function_selector + "".join(map(word, arguments))


def bytes_tail(item: str) -> str:
    """The tail of a ``bytes`` argument: the length and the content of ``item`` (``0x`` hex), padded to whole
    words."""
    size = (len(item) - 2) // 2
    return word(size) + item[2:].ljust(-(-size // WORD) * WORD * 2, "0")


def bytes_array(items: list[str]) -> str:
    """The tail of a ``bytes[]`` argument: how many ``items`` (each ``0x`` hex), the offset of each, and the
    tail of each."""
    offsets, tails, offset = [], [], WORD * len(items)
    for item in items:
        tail = bytes_tail(item)
        offsets.append(word(offset))
        tails.append(tail)
        offset += len(tail) // 2
    return word(len(items)) + "".join(offsets) + "".join(tails)


def uint_at(data: bytes, index: int, bits: int = 256) -> int | None:
    """The unsigned integer in word ``index``; None when the data is too short or the integer is wider than
    ``bits``."""
    chunk = data[index * WORD : (index + 1) * WORD]
    value = int.from_bytes(chunk, "big")
    return None if len(chunk) != WORD or value >> bits else value


def int_at(data: bytes, index: int, bits: int = 256) -> int | None:
    """The signed integer in word ``index``; None as in ``uint_at``."""
    chunk = data[index * WORD : (index + 1) * WORD]
    value = int.from_bytes(chunk, "big", signed=True)
    return value if len(chunk) == WORD and fits(value, bits) else None


def fits(value: int, bits: int) -> bool:
    """Whether a signed integer is no wider than ``bits``."""
    return -1 <= value >> (bits - 1) <= 0


def topic_uint(topics: tuple[str, ...], index: int, bits: int = 256) -> int | None:
    """An indexed argument of a log as an unsigned integer; None when the topic is missing or wider than
    ``bits``."""
    value = int(topics[index], 16) if index < len(topics) else None
    return None if value is None or value >> bits else value


def topic_int(topics: tuple[str, ...], index: int, bits: int = 256) -> int | None:
    """An indexed argument of a log as a signed integer; None as in ``topic_uint``."""
    value = topic_uint(topics, index)
    if value is None:
        return None
    signed = value - (value >> 255 << 256)
    return signed if fits(signed, bits) else None


def topic_address(topics: tuple[str, ...], index: int) -> Address | None:
    """An indexed argument of a log as an address; None when the topic is missing or holds more than an
    address."""
    value = topic_uint(topics, index)
    return None if value is None or value >> 160 else Address(f"0x{value:040x}")


class _Addresses(dict[str, Address | None]):
    """The address in each topic, remembered: mostly the same object is returned for the same address, so that
    Python hashes it once and keeps it once."""

    def __missing__(self, topic: str) -> Address | None:
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        self[topic] = found = Address("0x" + topic[26:]) if topic.startswith(_ADDRESS_PADDING) else None
        return found


address_in: Callable[[str], Address | None] = _Addresses().__getitem__
"""The address in a log's topic, a ``0x`` word in lower case; None when it holds more than an address. The
fast path for frequent events."""


def address_at(data: bytes, index: int) -> Address | None:
    """The address in word ``index``; None when the word is missing or holds more than an address."""
    value = uint_at(data, index)
    if value is None or value >> 160:
        return None
    return Address(f"0x{value:040x}")
