"""The value of money in a block, by the pools that price it. Integers only."""

from roundtrip.domain.base.types import WEI_PER_ETH

MAX_MICRO_USD = 2**63 - 1
"""Nine trillion dollars, the range of a bigint: nothing is worth more."""
_Q96 = 1 << 96


def usdg_per_unit(sqrt_price_x96: int, unit_is_low: bool) -> int:
    """Usdg raw for 10^18 raw of a pool's other side. ``unit_is_low``: that side is currency 0 (its address is
    the lower one). 0 where it is worth less than a unit of usdg."""
    square = sqrt_price_x96 * sqrt_price_x96
    if unit_is_low:
        return WEI_PER_ETH * square >> 192
    return (WEI_PER_ETH << 192) // square if square else 0


def usdg_in_range(sqrt_price_x96: int, liquidity: int, usdg_is_low: bool) -> int:
    """Usdg raw that a pool of this liquidity would hold over every price: its depth at the current price."""
    if usdg_is_low:
        return liquidity * _Q96 // sqrt_price_x96 if sqrt_price_x96 else 0
    return liquidity * sqrt_price_x96 >> 96


def worth_usdg(quote_raw: int, usdg_raw: int) -> int:
    """The value of ``quote_raw`` at the quote's price, in usdg raw, which are millionths of a dollar."""
    return quote_raw * usdg_raw // WEI_PER_ETH


def capped_usdg(quote_raw: int, usdg_raw: int) -> int:
    """The same, at most ``MAX_MICRO_USD``."""
    return min(worth_usdg(quote_raw, usdg_raw), MAX_MICRO_USD)


def worth_wei(micro_usd: int, eth_usdg_raw: int) -> int:
    """The eth that ``micro_usd`` millionths of a dollar buy at this price of eth."""
    return micro_usd * WEI_PER_ETH // eth_usdg_raw
