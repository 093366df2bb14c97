"""What a buy's balances say: hand-made results, read to the last wei."""

from dataclasses import replace

import pytest

from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.outcomes import read_buy, read_sell, read_told
from roundtrip.chain.simulate.request import StepResult
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import CompletedBuy, Missing, RefusedCall
from roundtrip.domain.check.venue_reading import is_filled
from unit.chain.samples import ENVIRONMENT, GAS_PRICE_WEI, did, error_string, refused
from unit.chain.trades import (
    BOUGHT,
    BUY_GAS,
    FREE,
    HANDED,
    HANDED_HALF,
    PAID_WEI,
    PLACES,
    SELL_GAS,
    START_WEI,
    USDG,
    WETH,
    WHOLE,
    bought,
    buy_results,
    handed_results,
    sell_results,
    sold,
    was_bought,
)


def unspent(place: VenuePlace, gain: int = 0) -> StepResult:
    """The money side after a buy that cost nothing but gas, or brought money."""
    had = START_WEI - BUY_GAS * GAS_PRICE_WEI if place is WETH else 350_000_000
    return did(had + gain)


def test_gas_is_added_back_to_the_wei_where_money_is_eth() -> None:
    assert bought(WETH) == CompletedBuy(PAID_WEI, BOUGHT, PAID_WEI, BUY_GAS)


def test_gas_is_nothing_where_money_is_dollars() -> None:
    assert bought(USDG) == CompletedBuy(350_000_000, BOUGHT, PAID_WEI, BUY_GAS)


def test_gas_costs_at_most_what_the_wallet_offers() -> None:
    capped = replace(ENVIRONMENT, max_fee_wei=103)
    results = buy_results(WETH, bought_quote=did(START_WEI - PAID_WEI - BUY_GAS * 103))
    found = read_buy(results, WETH, capped, PAID_WEI)
    assert isinstance(found, CompletedBuy)
    assert found.paid_raw == PAID_WEI


def test_what_the_wallet_already_held_was_not_bought() -> None:
    found = bought(WETH, start_token=did(7), bought_token=did(BOUGHT + 7))
    assert isinstance(found, CompletedBuy)
    assert found.received_raw == BOUGHT


def test_a_plan_that_was_not_run_stays_missing() -> None:
    gap = Missing("node", "the node did not run the simulation (x)")
    assert read_buy(gap, WETH, ENVIRONMENT, 1) is gap
    assert read_sell(gap, WETH, ENVIRONMENT, WHOLE, was_bought(), POLICY) is gap
    assert read_told(gap, "pull") is gap


@PLACES
def test_a_router_that_cannot_be_swept_says_nothing_of_the_buy(place: VenuePlace) -> None:
    assert bought(place, sweep=refused(error_string("STF"))) == bought(place)


@PLACES
@pytest.mark.parametrize("gain", [0, 1, PAID_WEI])
@pytest.mark.parametrize("received", [1, BOUGHT])
def test_something_for_nothing_is_no_trade_and_so_a_refused_buy(
    place: VenuePlace, gain: int, received: int
) -> None:
    assert bought(place, bought_quote=unspent(place, gain), bought_token=did(received)) == FREE


@PLACES
@pytest.mark.parametrize("gain", [0, 1, PAID_WEI])
def test_an_empty_pools_buy_paid_nothing_and_got_nothing_and_is_not_filled(
    place: VenuePlace, gain: int
) -> None:
    found = bought(place, bought_quote=unspent(place, gain), bought_token=did(0))
    assert found == CompletedBuy(0, 0, PAID_WEI, BUY_GAS)
    assert not is_filled(found)


@PLACES
def test_what_was_held_before_an_empty_pools_buy_was_not_bought(place: VenuePlace) -> None:
    found = bought(place, bought_quote=unspent(place), start_token=did(7), bought_token=did(7))
    assert found == CompletedBuy(0, 0, PAID_WEI, BUY_GAS)


def test_a_buy_that_was_paid_for_and_got_nothing_is_refused() -> None:
    found = bought(WETH, bought_token=did(0))
    assert isinstance(found, RefusedCall)
    assert (found.step, found.reason) == ("arrive", "nothing arrived for what was paid")


@pytest.mark.parametrize("gain", [0, 1, PAID_WEI])
def test_where_the_buy_cost_nothing_the_second_time_no_sell_is_read(gain: int) -> None:
    free = {"bought-quote": unspent(WETH, gain)}
    assert sold(sell_results(did(gas=SELL_GAS)) | free) == FREE
    for probe in (HANDED, HANDED_HALF):
        assert sold(handed_results(did(gas=SELL_GAS)) | free, probe) == FREE


def test_a_buy_that_cost_the_least_there_is_is_one() -> None:
    found = bought(WETH, bought_quote=did(START_WEI - 1 - BUY_GAS * GAS_PRICE_WEI))
    assert found == CompletedBuy(1, BOUGHT, PAID_WEI, BUY_GAS)


def test_what_is_held_later_is_read_in_order() -> None:
    found = bought(WETH, held_13=did(BOUGHT + 1), held_3600=did(0), held_86400=did(2))
    assert found == CompletedBuy(PAID_WEI, BOUGHT, PAID_WEI, BUY_GAS, (BOUGHT + 1, 0, 2))


def test_of_several_approvals_the_dearest_is_what_they_take_refused_or_not() -> None:
    found = bought(WETH, approve_0=did(gas=46_000), approve_1=refused(gas=71_000), approve_2=did(gas=29_000))
    assert found == CompletedBuy(PAID_WEI, BOUGHT, PAID_WEI, BUY_GAS, approve_gas=71_000)


@pytest.mark.parametrize("answer", [refused(), refused(out_of_gas=True), did(b""), did(bytes(31))])
def test_where_it_is_not_told_what_is_held_later_it_is_what_was_bought(answer: StepResult) -> None:
    found = bought(WETH, held_13=did(3), held_3600=answer, held_86400=did(2))
    assert found == CompletedBuy(PAID_WEI, BOUGHT, PAID_WEI, BUY_GAS, (3, BOUGHT, 2))


def test_a_refused_buy_says_why() -> None:
    found = bought(WETH, buy=refused(error_string("paused"), 70_000))
    assert found == RefusedCall("buy", "paused", 70_000)


def test_a_buy_that_ran_out_of_gas_says_so() -> None:
    assert bought(WETH, buy=refused(gas=2**24, out_of_gas=True)) == RefusedCall("buy", "out of gas", 2**24)


def test_money_that_could_not_be_had_says_nothing_of_the_venue() -> None:
    found = bought(USDG, fund=refused(error_string("STF")), buy=refused(error_string("STF")))
    assert found == Missing("node", "no route to the money side")


def test_a_refused_allowance_is_told_before_the_buy_that_follows_from_it() -> None:
    found = bought(USDG, allow_0=refused(gas=9), buy=refused(error_string("STF")))
    assert found == RefusedCall("approve", None, 9)


@PLACES
@pytest.mark.parametrize("moment", ["start", "bought"])
@pytest.mark.parametrize("answer", [refused(), refused(out_of_gas=True), did(b""), did(bytes(31))])
@pytest.mark.parametrize(("side", "fault"), [("quote", "node"), ("token", "token")])
def test_a_balance_that_cannot_be_read_is_missing_and_says_whose_fault(
    place: VenuePlace, moment: str, answer: StepResult, side: str, fault: str
) -> None:
    found = bought(place, **{f"{moment}_{side}": answer})
    assert isinstance(found, Missing)
    assert found.fault == fault


# --- what the token itself said --------------------------------------------------------------------


@pytest.mark.parametrize(("label", "leg"), [("pull", "sell"), ("pay-out-0", "buy"), ("pay-out-7", "buy")])
def test_what_the_token_says_to_a_direct_move_belongs_to_its_leg(label: str, leg: str) -> None:
    answer = read_told({label: refused(error_string("blacklisted"), 12)}, label)
    assert answer == RefusedCall(leg, "blacklisted", 12)  # type: ignore[arg-type]
    assert read_told({label: did(1)}, label) is None
