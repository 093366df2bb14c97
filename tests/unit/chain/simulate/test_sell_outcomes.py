"""What a sell's balances say: hand-made results, read to the last wei."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.outcomes import SellStart, find_gap_in_history, read_buy, read_sell
from roundtrip.chain.simulate.request import Plan, Results, StepResult
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import CompletedBuy, Missing, Probe, RefusedCall, Sold
from unit.chain.samples import ENVIRONMENT, GAS_PRICE_WEI, did, error_string, refused, word
from unit.chain.trades import (
    BACK_WEI,
    BOUGHT,
    BUY_GAS,
    HALF,
    HANDED,
    HANDED_HALF,
    PAID_WEI,
    PLACES,
    PROBES,
    REBASED,
    SELL_GAS,
    SLIVER,
    USDG,
    WETH,
    WHOLE,
    bought_by,
    handed_results,
    no_more,
    second_buy,
    sell_results,
    sold,
    sold_by,
    steps_of,
    was_bought,
    whole_sale,
)

PARTS = pytest.mark.parametrize(("probe", "amount"), [(HALF, BOUGHT // 2), (SLIVER, BOUGHT // 100)])


def part_sale(amount: int, sell_gas: int = SELL_GAS) -> Sold:
    """A part of it sold by the buyer, for BACK_WEI."""
    return Sold(PAID_WEI, BOUGHT, amount, amount, BACK_WEI, BUY_GAS, sell_gas)


def test_a_sell_of_all_is_read_to_the_wei() -> None:
    assert sold(sell_results(did(gas=SELL_GAS), no_more(), no_more(), no_more())) == whole_sale()


def test_attempts_that_failed_cost_gas_that_is_added_back_too() -> None:
    failed = refused(gas=399_999, out_of_gas=True)
    found = sold(sell_results(failed, did(gas=SELL_GAS), no_more(), no_more()))
    assert found == whole_sale()


@PARTS
def test_a_parts_attempt_that_failed_cost_gas_that_is_added_back_too(probe: Probe, amount: int) -> None:
    failed = refused(gas=2_999_999, out_of_gas=True)
    found = sold(sell_results(failed, did(gas=SELL_GAS), left=BOUGHT - amount), probe)
    assert found == part_sale(amount)


ATTEMPTS = st.lists(st.tuples(st.booleans(), st.integers(21_000, 2**24)), min_size=1, max_size=4)


@given(
    ATTEMPTS.filter(lambda tried: any(ok for ok, _ in tried)),
    st.integers(0, 10**18),
    st.sampled_from([WHOLE, HALF, SLIVER, HANDED, HANDED_HALF]),
)
def test_whatever_the_gas_the_first_that_goes_through_brings_the_same_money(
    tried: list[tuple[bool, int]], back: int, probe: Probe
) -> None:
    results = handed_results if probe.seller == "receiver" else sell_results
    found = sold(results(*(did(gas=g) if ok else refused(gas=g) for ok, g in tried), back_wei=back), probe)
    assert isinstance(found, Sold)
    assert (found.back_raw, found.sell_gas) == (back, next(gas for ok, gas in tried if ok))


def test_a_sell_for_dollars_adds_no_gas() -> None:
    changes = {"held-quote": did(0), "after-0-quote": did(348_000_000)}
    found = sold(second_buy(USDG) | {
        "approve-0": did(), "sell-0": did(gas=SELL_GAS), "after-token": did(0),
    } | changes, place=USDG)  # fmt: skip
    assert found == Sold(350_000_000, BOUGHT, BOUGHT, BOUGHT, 348_000_000, BUY_GAS, SELL_GAS)


def test_what_was_sold_at_another_place_is_read_in_that_places_money() -> None:
    bought_for_eth = sell_results(did(gas=SELL_GAS)) | {"held-quote": did(7), "after-0-quote": did(1007)}
    found = read_sell(bought_for_eth, WETH, ENVIRONMENT, WHOLE, was_bought(), POLICY, USDG)
    assert found == Sold(PAID_WEI, BOUGHT, BOUGHT, BOUGHT, 1000, BUY_GAS, SELL_GAS)
    bought_for_dollars = second_buy(USDG) | {
        "approve-0": did(), "held-quote": did(10**18), "sell-0": did(gas=SELL_GAS),
        "after-0-quote": did(10**18 + 5), "after-token": did(0),
    }  # fmt: skip
    found = read_sell(bought_for_dollars, USDG, ENVIRONMENT, WHOLE, was_bought(), POLICY, WETH)
    back = 5 + SELL_GAS * GAS_PRICE_WEI
    assert found == Sold(350_000_000, BOUGHT, BOUGHT, BOUGHT, back, BUY_GAS, SELL_GAS)


@PARTS
def test_a_part_that_sold_is_measured_against_what_was_planned(probe: Probe, amount: int) -> None:
    assert sold(sell_results(did(gas=SELL_GAS), no_more(), left=BOUGHT - amount), probe) == part_sale(amount)


def test_a_sell_that_takes_less_than_planned_is_seen() -> None:
    found = sold(sell_results(did(gas=SELL_GAS), left=BOUGHT // 4))
    assert isinstance(found, Sold)
    assert (found.planned_raw, found.sold_raw) == (BOUGHT, BOUGHT - BOUGHT // 4)


@pytest.mark.parametrize(("delay_s", "held"), [(13, BOUGHT + 5), (3600, BOUGHT * 3), (86_400, BOUGHT // 7)])
@pytest.mark.parametrize("share_bps", [BPS, 5000])
def test_what_was_held_at_that_delay_is_what_the_money_had_become(
    delay_s: int, held: int, share_bps: int
) -> None:
    amount = held * share_bps // BPS
    results = sell_results(did(gas=SELL_GAS), left=held - amount)
    found = sold(results, Probe("probe", delay_s, share_bps, 0), known=REBASED)
    assert found == Sold(PAID_WEI, held, amount, amount, BACK_WEI, BUY_GAS, SELL_GAS)


def test_a_sell_that_takes_more_than_planned_is_seen() -> None:
    found = sold(sell_results(did(gas=SELL_GAS), left=0), HALF)
    assert isinstance(found, Sold)
    assert (found.planned_raw, found.sold_raw, found.held_raw) == (BOUGHT // 2, BOUGHT, BOUGHT)


@pytest.mark.parametrize("twice", [(0, 1), (1, 3), (2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("left", [0])
def test_of_all_that_is_sold_twice_only_the_first_counts(twice: tuple[int, ...], left: int) -> None:
    attempts = [did(gas=SELL_GAS + n) if n in twice else no_more() for n in range(4)]
    assert sold(sell_results(*attempts, left=left)) == whole_sale(SELL_GAS + twice[0])


@PARTS
@pytest.mark.parametrize("left", [0, 1])
def test_of_a_part_that_is_sold_twice_only_the_first_counts(probe: Probe, amount: int, left: int) -> None:
    results = sell_results(did(gas=SELL_GAS), did(gas=SELL_GAS + 1), left=left)
    assert sold(results, probe) == part_sale(amount)


@pytest.mark.parametrize("left", [BOUGHT // 2, BOUGHT * 9 // 10])
def test_what_several_attempts_left_was_not_sold_by_the_first(left: int) -> None:
    found = sold(sell_results(*[did(gas=SELL_GAS)] * 4, left=left))
    assert isinstance(found, Sold)
    assert (found.planned_raw, found.sold_raw) == (BOUGHT, BOUGHT - left)


def test_what_comes_of_a_later_attempt_changes_nothing_that_is_read_of_the_first() -> None:
    attempts = [refused(gas=399_999), did(gas=SELL_GAS), did(gas=9), no_more()]
    beside = ("approve-0", "after-0-quote", "after-2-quote", "after-3-quote")
    found = sold(sell_results(*attempts) | dict.fromkeys(beside, refused()))
    assert found == whole_sale()


@pytest.mark.parametrize("robbed", [0, 10**30])
def test_money_that_moves_in_later_attempts_is_nothing_the_first_brought(robbed: int) -> None:
    results = sell_results(did(gas=SELL_GAS), refused(), did(), left=0)
    later = {f"after-{n}-quote": did(robbed) for n in (1, 2)}
    assert sold(results | later) == whole_sale()


def test_a_sell_refused_under_every_limit_gives_the_last_reason() -> None:
    attempts = [refused(out_of_gas=True), refused(error_string("a")), refused(error_string("STF"), 77)]
    assert sold(sell_results(*attempts)) == RefusedCall("sell", "STF", 77)


@pytest.mark.parametrize("probe", [WHOLE, HALF])
def test_a_refused_approval_is_the_reason_of_the_sell_that_fails_after_it(probe: Probe) -> None:
    results = sell_results(no_more(), no_more(), approve_0=refused(error_string("not you"), 30_001))
    assert sold(results, probe) == RefusedCall("approve", "not you", 30_001)


def test_a_refused_approval_does_not_matter_where_the_sell_goes_through() -> None:
    assert isinstance(sold(sell_results(did(gas=SELL_GAS), approve_0=refused())), Sold)


def test_a_buy_refused_the_second_time_is_what_came_of_the_probe() -> None:
    results = sell_results(did(), buy=refused(error_string("closed"), 5))
    assert sold(results) == RefusedCall("buy", "closed", 5)


@pytest.mark.parametrize(
    ("label", "fault"), [("held-quote", "node"), ("after-0-quote", "node"), ("after-token", "token")]
)
@pytest.mark.parametrize("answer", [refused(out_of_gas=True), did(b""), did(bytes(31))])
def test_a_balance_unread_around_the_sell_is_missing(label: str, fault: str, answer: StepResult) -> None:
    found = sold(sell_results(did(gas=SELL_GAS)) | {label: answer})
    assert isinstance(found, Missing)
    assert found.fault == fault


# --- plan and reading together ---------------------------------------------------------------------


def answers(plan: Plan, balance: Callable[[str], int]) -> Results:
    return {step.label: did(word(balance(step.label))) for step in steps_of(plan)}


def sold_of(results: Results, place: VenuePlace, probe: Probe) -> object:
    return read_sell(results, place, ENVIRONMENT, probe, was_bought(), POLICY)


@PLACES
@PROBES
def test_every_label_that_is_read_is_in_the_plan(place: VenuePlace, probe: Probe) -> None:
    def balance(label: str) -> int:
        return 10**20 if label.startswith(("start-q", "bought-t")) else 0

    results = answers(sold_by(place, probe), balance)
    # Everything goes through here, so it is sold under every limit of the ladder, or under the first alone.
    once = {label: refused() if re.fullmatch(r"sell-[1-9]", label) else r for label, r in results.items()}
    for found in (sold_of(results, place, probe), sold_of(once, place, probe)):
        assert isinstance(found, Sold)
        assert found.sell_gas == results["sell-0"].gas_used
        assert (found.arrived_raw is None) is (probe.seller == "buyer")
    buy = read_buy(answers(bought_by(place), balance), place, ENVIRONMENT, 1)
    assert isinstance(buy, CompletedBuy)
    assert len(buy.held_later_raw) == 3


@PLACES
@PROBES
def test_a_sell_is_read_to_the_same_whichever_attempt_of_its_plan_goes_through_first(
    place: VenuePlace, probe: Probe
) -> None:
    steps = steps_of(sold_by(place, probe))
    attempts = [step.label for step in steps if step.label.startswith("sell-")]
    for first in range(len(attempts)):
        results = answers(sold_by(place, probe), lambda label: 10**20 if label == "start-quote" else 0)
        results |= dict.fromkeys(attempts[:first], refused(gas=30_000))
        money = first + 1
        results[f"after-{first}-quote"] = did(10**18 * money)
        found = sold_of(results, place, probe)
        gas = 30_000 * (money + (probe.seller == "receiver")) if place.pays_eth() else 0
        assert isinstance(found, Sold)
        assert found.back_raw == 10**18 * money + gas * GAS_PRICE_WEI


# --- a wallet that traded before --------------------------------------------------------------------

HISTORY = ("first buy", "first sell-0", "second buy", "second sell-0", "second transfer", "buy", "sell-0")


def history(*failed: str) -> Results:
    """All of its trades, the named ones refused."""
    return {label: refused(error_string("no")) if label in failed else did() for label in HISTORY}


def test_a_history_without_a_gap_says_something_of_the_last_sell() -> None:
    assert find_gap_in_history(history()) is None
    assert find_gap_in_history(history("sell-0")) is None
    assert find_gap_in_history(Missing("node", "gone")) is None


@pytest.mark.parametrize("label", HISTORY[:5])
def test_a_refused_earlier_trade_counts_where_the_last_sell_is_refused_too(label: str) -> None:
    gap = find_gap_in_history(history(label))
    assert gap == RefusedCall("buy", "an earlier trade was refused", 0)
    assert find_gap_in_history(history(label, "sell-0")) is None


def test_who_cannot_buy_again_is_no_case_of_a_sell() -> None:
    gap = find_gap_in_history(history("buy", "sell-0"))
    assert gap is not None
    assert (gap.step, gap.reason) == ("buy", "no")


@pytest.mark.parametrize(
    ("reason", "sold", "is_others"),
    [
        ("wait", 2, True),
        ("wait", 1, False),
        ("IIA", 2, False),
        ("CurrencyNotSettled", 2, False),
        (None, 2, True),
    ],
)
def test_what_sells_only_after_anothers_buy_is_no_matter_of_amount(
    reason: str | None, sold: int, is_others: bool
) -> None:
    start = SellStart(PAID_WEI, BOUGHT, BUY_GAS, attempts_raw=(3, 2, 1, 1), undisturbed=2)
    failed = refused(b"" if reason is None else error_string(reason))
    sells = [failed if n < sold else did() for n in range(4)]
    assert start.sold_only_after_others(sells, sold) is is_others
    assert not SellStart(PAID_WEI, BOUGHT, BUY_GAS).sold_only_after_others(sells, sold)
