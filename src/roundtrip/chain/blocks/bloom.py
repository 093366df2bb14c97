"""The bloom filter of a block's logs in its header: 2048 bits, as one integer.

Every address and topic of every log sets three bits, taken from its hash. So the header, which is hashed,
commits to all logs: a missing or forged one nearly always changes it.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

from roundtrip.chain.rpc.node_logs import decode_bytes
from roundtrip.domain.base.types import Address
from roundtrip.venues.abi import keccak
from roundtrip.venues.base import Log

BITS = 2048
_LAST = BITS - 1
_BIT = tuple(1 << bit for bit in range(BITS))
_MAX_REMEMBERED = 16_384
"""Cached addresses, and as many topics: about 450 bytes each. A few contracts emit most logs."""


def bits(data: bytes) -> int:
    """The three bits that an address or topic sets: the low 11 bits of its hash's first three byte pairs."""
    pairs = int.from_bytes(keccak(data)[:6])
    return _BIT[pairs >> 32 & _LAST] | _BIT[pairs >> 16 & _LAST] | _BIT[pairs & _LAST]


@lru_cache(_MAX_REMEMBERED)
def address_bits(text: str) -> tuple[Address, int]:
    """An address in lower case, and its bits. Raises ValueError when ``text`` is none."""
    return Address(text.lower()), bits(_bytes(text, 20))


@lru_cache(_MAX_REMEMBERED)
def topic_bits(text: str) -> tuple[str, int]:
    """A topic in lower case, and its bits. Raises ValueError when ``text`` is none."""
    return text.lower(), bits(_bytes(text, 32))


def bloom_of(addresses: Iterable[str], topics: Iterable[str]) -> int:
    """The bloom of logs with these addresses and topics. Raises ValueError where one is none."""
    bloom = 0
    for address in addresses:
        bloom |= address_bits(address)[1]
    for topic in topics:
        bloom |= topic_bits(topic)[1]
    return bloom


class _LowerCase(dict[str, str]):
    """Texts by how nodes write them. Each is the same object every time it is met: Python hashes it once, and
    it is kept once."""

    def __missing__(self, text: str) -> str:
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        lower = self[text] = text.lower()
        return lower


in_lower_case: Callable[[str], str] = _LowerCase().__getitem__
"""An address or a topic in lower case. Not checked."""


def log_bits(log: Log) -> int:
    """The bits that a log sets. Raises ValueError where its address or a topic is none."""
    log_bloom = address_bits(log.address)[1]
    for topic in log.topics:
        log_bloom |= topic_bits(topic)[1]
    return log_bloom


def _bytes(text: str, size: int) -> bytes:
    data = decode_bytes(text)
    if len(data) != size:
        raise ValueError(f"not 0x and {size} bytes in hex")
    return data
