"""Ticks and prices of concentrated liquidity, exact to the unit like the pools' contracts. A price is
``sqrt(amount1 / amount0) * 2**96``; tick ``n`` is the price ``sqrt(1.0001**n)``."""

import math
from functools import lru_cache

MIN_TICK, MAX_TICK = -887272, 887272

_Q96 = 1 << 96
_Q128 = 1 << 128
_MAX_UINT256 = (1 << 256) - 1

_POWERS = (
    0xFFFCB933BD6FAD37AA2D162D1A594001,
    0xFFF97272373D413259A46990580E213A,
    0xFFF2E50F5F656932EF12357CF3C7FDCC,
    0xFFE5CACA7E10E4E61C3624EAA0941CD0,
    0xFFCB9843D60F6159C9DB58835C926644,
    0xFF973B41FA98C081472E6896DFB254C0,
    0xFF2EA16466C96A3843EC78B326B52861,
    0xFE5DEE046A99A2A811C461F1969C3053,
    0xFCBE86C7900A88AEDCFFC83B479AA3A4,
    0xF987A7253AC413176F2B074CF7815E54,
    0xF3392B0822B70005940C7A398E4B70F3,
    0xE7159475A2C29B7443B29C7FA6E889D9,
    0xD097F3BDFD2022B8845AD8F792AA5825,
    0xA9F746462D870FDF8A65DC1F90E061E5,
    0x70D869A156D2A1B890BB3DF62BAF32F7,
    0x31BE135F97D08FD981231505542FCFA6,
    0x9AA508B5B7A84E1C677DE54F3E99BC9,
    0x5D6AF8DEDB81196699C329225EE604,
    0x2216E584F5FA1EA926041BEDFE98,
    0x48A170391F7DC42444E8FA2,
)
"""``2**128 / sqrt(1.0001**n)`` for n = 1, 2, 4, ..., each rounded to the nearest (TickMath.sol)."""


@lru_cache(4096)
def sqrt_price_x96_at(tick: int) -> int:
    """The price at a tick, like TickMath.getSqrtRatioAtTick: one factor per bit of the tick, cut to 128 bits
    after each, inverted for a tick above zero, then rounded up. Raises ValueError for a tick that no pool can
    have."""
    if not MIN_TICK <= tick <= MAX_TICK:
        raise ValueError("no such tick")
    ratio, distance = _Q128, abs(tick)
    for bit, power in enumerate(_POWERS):
        if distance >> bit & 1:
            ratio = ratio * power >> 128
    if tick > 0:
        ratio = _MAX_UINT256 // ratio
    return -(-ratio >> 32)


def tick_at(sqrt_price_x96: int) -> int:
    """The greatest tick whose price is at most this one, like TickMath.getTickAtSqrtRatio. Raises ValueError
    for a price that no pool can have."""
    if not sqrt_price_x96_at(MIN_TICK) <= sqrt_price_x96 < sqrt_price_x96_at(MAX_TICK):
        raise ValueError("no such price")
    tick = math.floor(2 * (math.log(sqrt_price_x96) - math.log(_Q96)) / math.log(1.0001))
    tick = min(max(tick, MIN_TICK), MAX_TICK - 1)
    while sqrt_price_x96_at(tick) > sqrt_price_x96:
        tick -= 1
    while sqrt_price_x96_at(tick + 1) <= sqrt_price_x96:
        tick += 1
    return tick


def amounts(sqrt_price_x96: int, tick_lower: int, tick_upper: int, liquidity_delta: int) -> tuple[int, int]:
    """The amounts of both currencies for adding liquidity between two ticks at a price, or removing it (below
    zero). Above zero: paid into the pool. Rounded in the pool's favour. Raises ValueError for ticks that no
    position can have."""
    if tick_lower >= tick_upper:
        raise ValueError("a position's lower tick is below its upper one")
    lower, upper = sqrt_price_x96_at(tick_lower), sqrt_price_x96_at(tick_upper)
    price = min(max(sqrt_price_x96, lower), upper)
    liquidity = abs(liquidity_delta)
    if liquidity_delta < 0:
        return -((liquidity << 96) * (upper - price) // upper // price), -(liquidity * (price - lower) >> 96)
    amount0 = _ceil_div(_ceil_div((liquidity << 96) * (upper - price), upper), price)
    return amount0, _ceil_div(liquidity * (price - lower), _Q96)


def _ceil_div(value: int, by: int) -> int:
    """The quotient, rounded up."""
    return -(-value // by)
