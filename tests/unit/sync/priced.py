"""Swaps that tell what money was worth."""

from math import isqrt

from roundtrip.domain.base.types import Address
from roundtrip.venues.base import Log
from support.told_blocks import Q96, v3_swap


def at_usd(dollars: int) -> int:
    """The square root of a price of so many dollars for 10^18 raw of currency 0, rounded down."""
    return isqrt(dollars * Q96 * Q96 // 10**12)


def swap(at: Address, dollars: int, liquidity: int = 10**18) -> Log:
    return v3_swap(at, 5, -7, at_usd(dollars), liquidity)
