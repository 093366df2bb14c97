"""What a receiver could sell of what it was handed, and a pool's buy that moved nothing."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import (
    CellOutcome,
    CompletedBuy,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    Sold,
)
from roundtrip.domain.check.sales import Sale, SellResult, loss_bps
from roundtrip.domain.check.venue_reading import is_filled, main_size, read_venue
from unit.domain.builders import (
    ITS_OWN,
    LIQUID,
    NO_MONEY,
    NODE,
    bought,
    buys,
    cells,
    no_trade,
    refused_buys,
    sold,
    venue,
)

FROZEN = RefusedCall("transfer", "frozen", 40_000)
HALF = sold(900, 5000)


def handed(whole: CellOutcome | None, half: CellOutcome | None) -> SellResult:
    """What is read where a receiver's sell of all, and of half, came to this. None: not asked."""
    found = cells(handed_on=whole)
    if half is not None:
        probe = Probe("probe", POLICY.later_s, POLICY.half_bps, 0, "receiver")
        found = (ProbeCell(probe, half), *found)
    return read_venue(venue(found), POLICY).handed_on


@pytest.mark.parametrize("half", [HALF, sold(0, 5000), NO_MONEY, NODE, None])
@pytest.mark.parametrize("loss", [70, 9000])
def test_where_a_receiver_could_sell_all_that_is_what_counts(half: CellOutcome | None, loss: int) -> None:
    assert handed(sold(loss), half) == Sale(loss, BPS, True)


@pytest.mark.parametrize("whole", [NO_MONEY, FROZEN, NODE, ITS_OWN, None])
def test_where_a_receiver_could_not_sell_all_half_of_it_is_what_counts(whole: CellOutcome | None) -> None:
    assert handed(whole, HALF) == Sale(900, 5000, True)


@pytest.mark.parametrize("gap", [NODE, ITS_OWN])
@pytest.mark.parametrize("other", [NO_MONEY, FROZEN, None])
def test_what_is_not_known_of_one_is_not_known_where_the_other_was_refused(
    gap: Missing, other: CellOutcome | None
) -> None:
    assert handed(gap, other) == gap
    assert handed(other, gap) == gap


def test_where_both_are_refused_the_refusal_of_all_is_told() -> None:
    assert handed(FROZEN, NO_MONEY) == FROZEN
    assert handed(NO_MONEY, FROZEN) == NO_MONEY
    assert handed(None, FROZEN) == FROZEN
    assert handed(NODE, ITS_OWN) == NODE


def test_where_neither_was_asked_nothing_is_told() -> None:
    assert handed(None, None) is None


def test_a_receivers_half_is_no_sell_of_half_by_the_buyer() -> None:
    probe = Probe("probe", POLICY.later_s, POLICY.half_bps, 0, "receiver")
    found = read_venue(venue((*cells(), ProbeCell(probe, NO_MONEY))), POLICY)
    assert found.half == Sale(60, 5000, True)
    assert found.full == Sale(60, BPS, True)


# --- what it cost ----------------------------------------------------------------------------------

TAXED = Sold(900_000, 10**6, 500_000, 500_000, 480_000, 0, 0, arrived_raw=750_000)
"""A quarter taken by the transfer: two thirds of what arrived were sold, which cost two thirds."""


def test_what_the_transfer_took_is_part_of_the_cost() -> None:
    assert handed(NO_MONEY, TAXED) == Sale(2000, 5000, True)
    assert handed(NO_MONEY, replace(TAXED, arrived_raw=10**6)) == Sale(loss_bps(45, 48), 5000, True)
    assert handed(NO_MONEY, replace(TAXED, arrived_raw=500_000)) == Sale(loss_bps(90, 48), 5000, True)


def test_where_the_buyer_sells_cost_is_measured_on_what_was_held() -> None:
    untold = replace(TAXED, arrived_raw=None)
    assert handed(NO_MONEY, untold) == handed(NO_MONEY, replace(TAXED, arrived_raw=10**6))


def test_a_receivers_sell_that_moved_less_than_it_was_asked_to_is_not_whole() -> None:
    short = replace(TAXED, arrived_raw=10**6, sold_raw=300_000)
    assert handed(NO_MONEY, short) == Sale(loss_bps(27, 48), 3000, False)


@pytest.mark.parametrize("arrived", [0, 10**6])
def test_a_receivers_sell_that_moved_nothing_is_a_refusal(arrived: int) -> None:
    found = handed(None, replace(TAXED, arrived_raw=arrived, sold_raw=0))
    assert isinstance(found, RefusedCall)
    assert found.step == "sell"


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 10**12), st.data())
def test_the_more_a_transfer_took_the_more_is_lost(held: int, data: st.DataObject) -> None:
    asked = max(1, held // 2)
    less, more = sorted(data.draw(st.tuples(*[st.integers(asked, held)] * 2)))
    outcomes = [Sold(10**18, held, asked, asked, 10**17, 0, 0, arrived) for arrived in (less, more)]
    worse, better = (handed(None, outcome) for outcome in outcomes)
    assert isinstance(worse, Sale)
    assert isinstance(better, Sale)
    assert worse.loss_bps >= better.loss_bps
    assert worse.share_bps == better.share_bps


# --- an empty pool's buy ---------------------------------------------------------------------------

NOTHING = CompletedBuy(0, 0, 10**17, 140_000)


def test_a_buy_that_moved_nothing_is_not_filled() -> None:
    assert not is_filled(NOTHING)
    assert not is_filled(replace(NOTHING, offered_raw=0))


def test_a_pool_whose_buys_move_nothing_is_dry() -> None:
    found = read_venue(no_trade(LIQUID, buys(NOTHING, NOTHING, NOTHING, NOTHING)), POLICY)
    assert found.status == "dry"
    assert found.brought_raw == 0


def test_a_pool_that_moves_nothing_for_one_size_and_refuses_the_others_is_dry() -> None:
    assert read_venue(no_trade(LIQUID, refused_buys()), POLICY).status == "refused"
    some = (*buys(NOTHING)[:1], *refused_buys()[1:])
    assert read_venue(no_trade(LIQUID, some), POLICY).status == "dry"


def test_a_smaller_buy_that_moved_nothing_tells_no_price() -> None:
    found = read_venue(venue(all_buys=buys(tenth=bought(0, "tenth"), thousandth=NOTHING)), POLICY)
    assert main_size(venue(all_buys=buys(NOTHING))) == "tenth"
    assert found.impact_bps == 0
    only = read_venue(venue(all_buys=buys(None, NOTHING, NOTHING, NOTHING)), POLICY)
    assert isinstance(only.impact_bps, Missing)
    assert only.impact_bps.fault == "token"
