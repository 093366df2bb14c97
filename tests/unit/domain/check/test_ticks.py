"""Prices at ticks and amounts of liquidity, to the unit. Golden figures are TickMath's own bounds."""

from fractions import Fraction
from math import isqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.check import ticks
from roundtrip.domain.check.ticks import MAX_TICK, MIN_TICK, amounts, sqrt_price_x96_at

QUICK = settings(max_examples=200, deadline=None)
Q96 = 2**96
MAX_LIQUIDITY = 2**128 - 1

any_tick = st.integers(MIN_TICK, MAX_TICK)
ranges = (
    st.tuples(any_tick, any_tick)
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: (min(pair), max(pair)))
)
prices = st.integers(4295128739, 1461446703485210103287273052203988822378723970341)
deltas = st.integers(-MAX_LIQUIDITY, MAX_LIQUIDITY)


@pytest.mark.parametrize(
    ("tick", "price"),
    [
        (MIN_TICK, 4295128739),
        (MIN_TICK + 1, 4295343490),
        (MAX_TICK - 1, 1461373636630004318706518188784493106690254656249),
        (MAX_TICK, 1461446703485210103287273052203988822378723970342),
        (0, Q96),
        (1, 79232123823359799118286999568),
        (-1, 79224201403219477170569942574),
    ],
)
def test_the_price_at_a_tick_is_the_pools_own(tick: int, price: int) -> None:
    assert sqrt_price_x96_at(tick) == price


@pytest.mark.parametrize("bit", range(15))
def test_a_power_is_the_formulas_rounded_to_the_nearest(bit: int) -> None:
    times = 2**bit
    doubled = isqrt((4 * 10_000**times << 256) // 10_001**times)
    assert ticks._POWERS[bit] == (doubled + 1) // 2


@pytest.mark.parametrize("bit", range(15, 20))
def test_a_large_power_is_the_square_of_the_one_before(bit: int) -> None:
    """The exact one would be a fraction of millions of digits: it is squared at a thousand bits."""
    exact = isqrt(10_000 << 2000) * Fraction(1, isqrt(10_001 << 2000))
    fixed = int(exact * 2**1000)
    for _ in range(bit):
        fixed = fixed * fixed >> 1000
    assert ticks._POWERS[bit] == (fixed + (1 << 871)) >> 872


@pytest.mark.parametrize("tick", [MIN_TICK - 1, MAX_TICK + 1, 2**23 - 1, -(2**23)])
def test_a_tick_that_no_pool_can_have_has_no_price(tick: int) -> None:
    with pytest.raises(ValueError, match="no such tick"):
        sqrt_price_x96_at(tick)
    lower, upper = sorted((tick, 0))
    with pytest.raises(ValueError, match="no such tick"):
        amounts(Q96, lower, upper, 1)


@QUICK
@given(st.integers(MIN_TICK, MAX_TICK - 1))
def test_a_tick_more_is_a_higher_price(tick: int) -> None:
    assert sqrt_price_x96_at(tick) < sqrt_price_x96_at(tick + 1)


@QUICK
@given(st.integers(-400_000, 400_000))
def test_the_price_is_the_formulas(tick: int) -> None:
    """Below a part in 2**32 of it: what the pools themselves allow for."""
    square = Fraction(sqrt_price_x96_at(tick), Q96) ** 2
    assert abs(float(square) / 1.0001**tick - 1) < 1e-8


# --- amounts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price", "lower", "upper", "delta", "expected"),
    [
        # All of one currency where the price is out of the range, a bit of each inside.
        (Q96, 60, 120, 10**18, (2986382804598882, 0)),
        (Q96, -120, -60, 10**18, (0, 2986382804598882)),
        (Q96, -60, 60, 10**18, (2995354955910781, 2995354955910781)),
        (Q96, -60, 60, -(10**18), (-2995354955910780, -2995354955910780)),
        # One unit of liquidity: paid for in whole units, and nothing comes back.
        (Q96, -60, 60, 1, (1, 1)),
        (Q96, -60, 60, -1, (0, 0)),
        (Q96, -60, 60, 0, (0, 0)),
    ],
)
def test_liquidity_is_worth_what_the_pool_takes_for_it(
    price: int, lower: int, upper: int, delta: int, expected: tuple[int, int]
) -> None:
    assert amounts(price, lower, upper, delta) == expected


@QUICK
@given(prices, ranges, deltas)
def test_amounts_are_the_formulas_rounded_for_the_pool(price: int, pair: tuple[int, int], delta: int) -> None:
    lower, upper = (sqrt_price_x96_at(tick) for tick in pair)
    at = min(max(price, lower), upper)
    exact0 = Fraction(delta * Q96 * (upper - at), upper * at)
    exact1 = Fraction(delta * (at - lower), Q96)
    found = amounts(price, pair[0], pair[1], delta)
    for amount, exact, slack in zip(found, (exact0, exact1), (2, 1), strict=True):
        assert 0 <= amount - exact < slack


@QUICK
@given(prices, ranges, st.integers(1, MAX_LIQUIDITY))
def test_what_was_paid_in_never_comes_back_with_more(
    price: int, pair: tuple[int, int], liquidity: int
) -> None:
    paid, got = amounts(price, *pair, liquidity), amounts(price, *pair, -liquidity)
    assert all(0 <= one + other <= 2 for one, other in zip(paid, got, strict=True))


@QUICK
@given(ranges, st.integers(1, MAX_LIQUIDITY))
def test_outside_of_its_range_a_position_is_of_one_currency(pair: tuple[int, int], liquidity: int) -> None:
    lower, upper = (sqrt_price_x96_at(tick) for tick in pair)
    for price in (lower, lower - 1):
        assert amounts(price, *pair, liquidity)[1] == 0
    for price in (upper, upper + 1):
        assert amounts(price, *pair, liquidity)[0] == 0


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (60, -60)])
def test_a_range_upside_down_is_none(lower: int, upper: int) -> None:
    with pytest.raises(ValueError, match="lower tick"):
        amounts(Q96, lower, upper, 1)
