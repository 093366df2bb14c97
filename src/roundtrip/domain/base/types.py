"""Types that every floor uses. Parsed once at the edge, trusted inside."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, NewType, TypeAlias

Address = NewType("Address", str)
"""Twenty bytes as ``0x`` and 40 lower-case hex digits."""

TxHash = NewType("TxHash", str)
"""Thirty-two bytes as ``0x`` and 64 lower-case hex digits."""

HexBytes: TypeAlias = Annotated[str, "bytea"]
"""Any number of bytes as ``0x`` and lower-case hex digits. The database stores bytea."""

Numeric: TypeAlias = Annotated[int, "numeric"]
"""An integer of any size. The database stores numeric; a query that returns many casts them to text, which is
read in a third of the time."""

ZERO_ADDRESS = Address("0x" + "0" * 40)
BURN_ADDRESS = Address("0x000000000000000000000000000000000000dead")
BURN_ADDRESSES = frozenset({ZERO_ADDRESS, BURN_ADDRESS})

BPS = 10_000
"""The whole of something (100 %), in hundredths of a percent."""

WEI_PER_ETH = 10**18

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")

_MAX_PRECOMPILE = 0xFFFF
"""Addresses from 1 to this one count as precompiles."""


def is_precompile(address: Address) -> bool:
    """Whether the address is the chain's own: a precompile works without code. Ethereum's are the first
    seventeen addresses and 0x100, Arbitrum's start at 0x64. No key exists for any of them."""
    return 0 < int(address, 16) <= _MAX_PRECOMPILE


def parse_address(text: str) -> Address:
    """The address in ``text``, lower-cased. Raises ValueError: it is not an address."""
    if not _ADDRESS.fullmatch(text):
        raise ValueError("an address is 0x and 40 hex digits")
    return Address(text.lower())


def plain_decimal(raw: int, decimals: int) -> str:
    """``raw`` base units as a plain decimal number, no exponent, no trailing zeros."""
    if decimals < 0:
        raise ValueError("decimals below zero")
    sign = "-" if raw < 0 else ""
    digits = str(abs(raw)).rjust(decimals + 1, "0")
    whole, fraction = digits[: len(digits) - decimals], digits[len(digits) - decimals :]
    fraction = fraction.rstrip("0")
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


@dataclass(frozen=True, slots=True)
class BlockRef:
    """One block: its number, hash and timestamp in seconds since 1970."""

    wire: ClassVar[str] = "BlockRef"

    number: int
    hash: HexBytes
    timestamp_s: int
