"""The bloom of a block's logs, as its header holds it: 2048 bits, as one integer.

Every address and topic of every log sets three bits, made of its hash. So the header, which is hashed, says
something of all logs: one that is left out or made up nearly always changes it.
"""

from functools import lru_cache

from roundtrip.domain.types import Address
from roundtrip.venues.abi import keccak

BITS = 2048
_ADDRESS_CHARACTERS, _WORD_CHARACTERS = 42, 66
_MOST_REMEMBERED = 16_384
"""Of addresses, and as many topics: about 450 bytes each. A few contracts make most logs."""


def bits(data: bytes) -> int:
    """The three bits that one address or topic sets: 11 bits each of its hash's first six bytes."""
    found = keccak(data)
    return (
        1 << (int.from_bytes(found[0:2]) % BITS)
        | 1 << (int.from_bytes(found[2:4]) % BITS)
        | 1 << (int.from_bytes(found[4:6]) % BITS)
    )


@lru_cache(_MOST_REMEMBERED)
def address_bits(text: str) -> tuple[Address, int]:
    """An address in lower case, and its bits. Raises ValueError when it is none."""
    lower = _lower(text, _ADDRESS_CHARACTERS)
    return Address(lower), bits(bytes.fromhex(lower[2:]))


@lru_cache(_MOST_REMEMBERED)
def topic_bits(text: str) -> tuple[str, int]:
    """A topic in lower case, and its bits. Raises ValueError when it is none."""
    lower = _lower(text, _WORD_CHARACTERS)
    return lower, bits(bytes.fromhex(lower[2:]))


def _lower(text: str, characters: int) -> str:
    lower = text.lower()
    # bytes.fromhex alone would pass over spaces.
    if len(text) != characters or not lower.startswith("0x") or not lower[2:].isalnum():
        raise ValueError(f"not 0x and {characters - 2} hex digits")
    return lower
