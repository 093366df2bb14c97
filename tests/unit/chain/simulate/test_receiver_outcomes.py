"""What a receiver's sell of what it was handed comes to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.simulate.outcomes import read_handed
from roundtrip.chain.simulate.probe_plans import handed_plan
from roundtrip.chain.simulate.request import StepResult
from roundtrip.domain.check.evidence import CompletedBuy, Missing, Probe, RefusedCall, Sold
from roundtrip.venues import abi, amm_v3
from unit.chain.samples import ENVIRONMENT, did, error_string, refused
from unit.chain.trades import (
    BOUGHT,
    HANDED,
    HANDED_HALF,
    PAID_WEI,
    REBASED,
    SELL_GAS,
    SETTING,
    TOKEN,
    WETH,
    handed_results,
    handed_sale,
    no_more,
    sold,
    sold_by,
    steps_of,
    was_bought,
    who_trades,
)
from unit.venues.network import CONTRACTS

ONE_HALF = BOUGHT // 2
KNOWN = pytest.mark.parametrize("known", [was_bought(), REBASED], ids=["plain", "rebased"])
BOTH = pytest.mark.parametrize("probe", [HANDED, HANDED_HALF], ids=["all", "half"])


@KNOWN
def test_the_receivers_sell_of_all_is_read_from_its_own_balances(known: CompletedBuy) -> None:
    found = sold(handed_results(did(gas=SELL_GAS), no_more()), HANDED, known=known)
    assert found == handed_sale()


@KNOWN
def test_where_half_is_sold_and_half_is_left_all_of_it_arrived(known: CompletedBuy) -> None:
    found = sold(handed_results(did(gas=SELL_GAS), no_more(), left=ONE_HALF), HANDED_HALF, known=known)
    assert found == handed_sale(asked_raw=ONE_HALF)


@pytest.mark.parametrize("tax_bps", [1, 500, 4999, 5000])
def test_where_the_transfer_is_taxed_what_arrived_is_what_was_sold_and_what_is_left(tax_bps: int) -> None:
    arrived = BOUGHT - BOUGHT * tax_bps // 10_000
    found = sold(handed_results(did(gas=SELL_GAS), no_more(), left=arrived - ONE_HALF), HANDED_HALF)
    assert found == handed_sale(arrived, ONE_HALF)


@pytest.mark.parametrize(("probe", "asked"), [(HANDED, BOUGHT), (HANDED_HALF, ONE_HALF)])
@pytest.mark.parametrize("moved", [1, BOUGHT // 3, ONE_HALF - 1])
def test_a_receivers_sell_that_moved_less_than_it_was_asked_to_is_seen(
    probe: Probe, asked: int, moved: int
) -> None:
    found = sold(handed_results(did(gas=SELL_GAS), no_more(), left=BOUGHT - moved), probe)
    assert found == handed_sale(BOUGHT, asked, moved)


@BOTH
def test_a_receivers_sell_that_moved_nothing_sold_nothing(probe: Probe) -> None:
    found = sold(handed_results(did(gas=SELL_GAS), left=BOUGHT), probe)
    assert isinstance(found, Sold)
    assert (found.arrived_raw, found.sold_raw) == (BOUGHT, 0)


@given(st.integers(1, 10**30), st.data())
def test_a_sell_that_moves_what_it_is_asked_to_tells_what_arrived(held: int, data: st.DataObject) -> None:
    asked = max(1, held // 2)
    arrived = data.draw(st.integers(asked, held))
    results = handed_results(did(gas=SELL_GAS), no_more(), left=arrived - asked)
    found = sold(results, HANDED_HALF, known=was_bought(held))
    assert isinstance(found, Sold)
    assert (found.held_raw, found.arrived_raw, found.sold_raw) == (held, arrived, asked)


@BOTH
@pytest.mark.parametrize("known", [was_bought(10**18 + 7), was_bought(7), was_bought(1)])
def test_what_arrived_and_was_sold_is_never_more_than_was_handed_over(
    probe: Probe, known: CompletedBuy
) -> None:
    for left in (0, 1, known.received_raw, 10**40):
        found = sold(handed_results(did(gas=SELL_GAS), left=left), probe, known=known)
        assert isinstance(found, Sold)
        assert found.arrived_raw is not None
        assert found.sold_raw <= found.arrived_raw <= found.held_raw == known.received_raw


# --- which attempt counts --------------------------------------------------------------------------


@pytest.mark.parametrize(("probe", "asked"), [(HANDED, BOUGHT), (HANDED_HALF, ONE_HALF)])
@pytest.mark.parametrize("left", [0, 1, BOUGHT])
def test_of_what_a_receiver_sells_twice_only_the_first_counts(probe: Probe, asked: int, left: int) -> None:
    results = handed_results(did(gas=SELL_GAS), did(gas=SELL_GAS + 1), left=left)
    assert sold(results, probe) == handed_sale(asked_raw=asked)


def test_a_receivers_attempt_that_failed_cost_gas_that_is_added_back_too() -> None:
    failed = refused(gas=2_999_999, out_of_gas=True)
    assert sold(handed_results(failed, did(gas=SELL_GAS)), HANDED) == handed_sale()
    found = sold(handed_results(failed, did(gas=SELL_GAS), left=ONE_HALF), HANDED_HALF)
    assert found == handed_sale(asked_raw=ONE_HALF)


@BOTH
def test_the_receiver_sold_exactly_what_its_plan_asked_for(probe: Probe) -> None:
    odd = was_bought(10**18 + 7)
    plan = sold_by(WETH, probe, odd)
    _, receiver = who_trades(plan)
    asked = 10**18 + 7 if probe is HANDED else (10**18 + 7) // 2
    found = sold(handed_results(no_more(), did(gas=SELL_GAS), left=10**18 + 7 - asked), probe, known=odd)
    assert isinstance(found, Sold)
    assert (found.planned_raw, found.sold_raw) == (asked, asked)
    calls = {step.label: step.call for step in steps_of(plan)}
    expected = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, asked, receiver)
    assert (calls["approve-0"], calls["sell-0"]) == (calls["approve-0"], calls["sell-1"]) == expected


def test_a_half_that_rounds_to_none_is_read_as_the_one_unit_that_was_sold() -> None:
    one = was_bought(1)
    plan = sold_by(WETH, HANDED_HALF, one)
    _, receiver = who_trades(plan)
    sell = next(step.call for step in steps_of(plan) if step.label == "sell-0")
    assert sell == amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, 1, receiver)[-1]
    found = sold(handed_results(did(gas=SELL_GAS)), HANDED_HALF, known=one)
    assert isinstance(found, Sold)
    assert (found.planned_raw, found.sold_raw, found.arrived_raw) == (1, 1, 1)


# --- refusals --------------------------------------------------------------------------------------


@BOTH
def test_a_refused_hand_over_is_a_refused_transfer(probe: Probe) -> None:
    results = handed_results(no_more(), transfer=refused(error_string("frozen"), 40_001))
    assert sold(results, probe) == RefusedCall("transfer", "frozen", 40_001)


@BOTH
def test_a_receiver_that_cannot_sell_under_any_limit_is_refused_for_the_last_reason(probe: Probe) -> None:
    attempts = [refused(error_string("a"), 7), refused(error_string("b"), 8)]
    assert sold(handed_results(*attempts), probe) == RefusedCall("sell", "b", 8)


@BOTH
def test_a_receiver_whose_approval_is_refused_is_told_so(probe: Probe) -> None:
    results = handed_results(no_more(), no_more(), approve_0=refused(error_string("not you"), 30_001))
    assert sold(results, probe) == RefusedCall("approve", "not you", 30_001)


@BOTH
@pytest.mark.parametrize(
    ("label", "fault"), [("handed-quote", "node"), ("after-0-quote", "node"), ("after-token", "token")]
)
@pytest.mark.parametrize("answer", [refused(out_of_gas=True), did(b""), did(bytes(31))])
def test_a_receivers_balance_unread_is_missing(
    probe: Probe, label: str, fault: str, answer: StepResult
) -> None:
    found = sold(handed_results(did(gas=SELL_GAS)) | {label: answer}, probe)
    assert isinstance(found, Missing)
    assert found.fault == fault


# --- what reaches a receiver, found out beside ----------------------------------------------------


def test_what_is_handed_over_and_looked_at_is_a_plan_of_its_own() -> None:
    plan = handed_plan(WETH, SETTING, ENVIRONMENT, "probe", PAID_WEI, was_bought())
    transfer, look, pool = plan.blocks[-1].steps
    assert (transfer.label, look.label, pool.label) == ("transfer", "handed-token", "pool-held")
    assert transfer.call.data == abi.call("0xa9059cbb", plan.environment.receiver, BOUGHT)
    assert look.sender == plan.environment.reader


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, 7),
        ({"transfer": refused()}, None),
        ({"buy": refused()}, None),
        ({"handed-token": refused()}, None),
    ],
)
def test_what_reached_it_is_told_or_not_known(changes: dict[str, StepResult], told: int | None) -> None:
    results = {"buy": did(), "transfer": did(), "handed-token": did(7)} | changes
    assert read_handed(results) == told
    assert read_handed(Missing("node", "gone")) is None
