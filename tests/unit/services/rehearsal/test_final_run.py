"""Which form of a trade is written, by what its runs bring: at most one run more, no router's numbers."""

from typing import Any, cast

import pytest

from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.trade.text import lowered_minimum
from roundtrip.services.rehearsal.final_run import FormRun, choose_form
from roundtrip.services.rehearsal.trade_builder import BelowMinimum, RehearsedTrade, Side

SLIPPAGE_BPS = 100
GAS = (100_000,)


def trade(came_raw: int) -> RehearsedTrade:
    return RehearsedTrade(cast(Any, None), cast(Any, None), 1, came_raw, came_raw, cast(Any, None))


class Venue:
    """Puts out these amounts, one a run; ``beside`` reaches the seller past the router. ``silent``: it does
    not state what is too little."""

    def __init__(self, *put_out_raw: int, beside: int = 0, silent: bool = False) -> None:
        self.put_out_raw, self.beside, self.silent = list(put_out_raw), beside, silent
        self.minimums: list[int] = []

    async def run(self, expected: RehearsedTrade) -> FormRun:
        least = expected.put_out_raw * (10_000 - SLIPPAGE_BPS) // 10_000
        self.minimums.append(least)
        out = self.put_out_raw.pop(0)
        if out < least:
            return FormRun(expected, least, BelowMinimum(None if self.silent else out), GAS, [])
        return FormRun(expected, least, trade(out + self.beside), GAS, [])


async def chosen(venue: Venue, rehearsed_raw: int = 10_000, side: Side = "sell") -> FormRun:
    return await choose_form(venue.run, trade(rehearsed_raw), side, SLIPPAGE_BPS)


async def refusal(venue: Venue, side: Side = "sell") -> str:
    with pytest.raises(CallerFault) as raised:
        await chosen(venue, side=side)
    assert raised.value.code == "would_fail"
    return raised.value.message


async def test_a_trade_that_brings_what_it_did_runs_once() -> None:
    sides: tuple[Side, ...] = ("buy", "sell")
    for side in sides:
        for out in (9_900, 10_000, 10_100):
            venue = Venue(out)
            form = await chosen(venue, side=side)
            assert (form.min_raw, form.lowered_bps(trade(10_000))) == (9_900, 0)
            assert venue.put_out_raw == []


async def test_a_sell_that_brings_less_has_its_own_minimum() -> None:
    venue = Venue(9_000, 9_000)
    form = await chosen(venue)
    assert (form.min_raw, form.expected.came_raw, venue.minimums) == (8_910, 9_000, [9_900, 8_910])
    assert form.lowered_bps(trade(10_000)) == 1_000
    assert "the swap pays 10.00 % less than the rehearsal brought" in lowered_minimum(1_000)


async def test_what_reaches_the_seller_beside_the_swap_is_not_its_minimum() -> None:
    """A hook's collector sells: the rehearsal brings both parts, the router measures one."""
    form = await chosen(Venue(9_000, 9_000, beside=1_000))
    assert (form.min_raw, form.through().came_raw) == (8_910, 10_000)


async def test_a_sell_that_brings_more_is_protected_as_well() -> None:
    form = await chosen(Venue(12_000, 12_000))
    assert (form.min_raw, form.lowered_bps(trade(10_000))) == (11_880, 0)
    assert lowered_minimum(0) == ""


async def test_a_sell_that_alternates_is_written_with_the_lower_minimum() -> None:
    spared, taxed = 10_000, 9_000
    form = await chosen(Venue(taxed, spared))
    assert (form.min_raw, form.through().came_raw) == (8_910, spared)
    form = await chosen(Venue(spared, taxed), rehearsed_raw=taxed)
    assert (form.min_raw, form.through().came_raw) == (8_910, spared)


async def test_a_sell_that_brings_less_each_time_runs_twice_and_says_what_helps() -> None:
    venue = Venue(9_000, 7_999, 7_999)
    assert await refusal(venue) == (
        "Run once more, the trade brings less than its own minimum. "
        "With a slippage of 20.01 % (slippageBps 2001) it would go through."
    )
    assert venue.put_out_raw == [7_999], "no third run"
    assert "would need a slippage of 90.00 % (slippageBps 9000); the largest is 50.00 %" in await refusal(
        Venue(9_000, 1_000)
    )
    assert (await chosen(Venue(7_999), rehearsed_raw=8_079)).is_through()


async def test_a_sell_whose_router_does_not_say_how_much_it_is() -> None:
    venue = Venue(9_000, 9_000, silent=True)
    assert "More slippage may let it through." in await refusal(venue)
    assert venue.put_out_raw == [9_000]


async def test_a_sell_that_would_bring_nothing() -> None:
    assert "would need a slippage of 100.00 % (slippageBps 10000)" in await refusal(Venue(0, 0))


async def test_another_failure_of_the_second_run_is_told() -> None:
    async def run(expected: RehearsedTrade) -> FormRun:
        first = expected.put_out_raw == 10_000
        ran = BelowMinimum(9_000) if first else CallerFault("would_fail", "paused")
        return FormRun(expected, 1, ran, GAS, [])

    form = await choose_form(run, trade(10_000), "sell", SLIPPAGE_BPS)
    with pytest.raises(CallerFault, match="paused"):
        form.through()


async def test_a_buy_is_not_tried_again() -> None:
    venue = Venue(9_000, 9_000)
    assert "With a slippage of 10.00 % (slippageBps 1000) it would go through." in await refusal(venue, "buy")
    assert venue.put_out_raw == [9_000]
    with pytest.raises(NodeFault, match="two different results"):
        await chosen(Venue(12_000), side="buy")
