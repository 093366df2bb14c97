"""The tick of a price: the inverse of the price at a tick."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.check.ticks import MAX_TICK, MIN_TICK, sqrt_price_x96_at, tick_at

QUICK = settings(max_examples=300, deadline=None)
LOWEST, HIGHEST = 4295128739, 1461446703485210103287273052203988822378723970342


@QUICK
@given(st.integers(MIN_TICK, MAX_TICK - 1))
def test_a_ticks_price_is_at_that_tick_and_a_unit_less_is_below(tick: int) -> None:
    price = sqrt_price_x96_at(tick)
    assert tick_at(price) == tick
    if tick > MIN_TICK:
        assert tick_at(price - 1) == tick - 1


@QUICK
@given(st.integers(LOWEST, HIGHEST - 1))
def test_a_price_lies_between_its_tick_and_the_next(price: int) -> None:
    tick = tick_at(price)
    assert MIN_TICK <= tick < MAX_TICK
    assert sqrt_price_x96_at(tick) <= price < sqrt_price_x96_at(tick + 1)


@pytest.mark.parametrize(
    ("price", "tick"),
    [
        (LOWEST, MIN_TICK),
        (4295343489, MIN_TICK),
        (4295343490, MIN_TICK + 1),
        (2**96 - 1, -1),
        (2**96, 0),
        (79232123823359799118286999567, 0),
        (79232123823359799118286999568, 1),
        (1461373636630004318706518188784493106690254656248, MAX_TICK - 2),
        (1461373636630004318706518188784493106690254656249, MAX_TICK - 1),
        (HIGHEST - 1, MAX_TICK - 1),
    ],
)
def test_the_ticks_of_tickmaths_own_bounds(price: int, tick: int) -> None:
    assert tick_at(price) == tick


@pytest.mark.parametrize("price", [-1, 0, 1, LOWEST - 1, HIGHEST, 2**160])
def test_a_price_that_no_pool_can_have_has_no_tick(price: int) -> None:
    with pytest.raises(ValueError, match="no such price"):
        tick_at(price)
