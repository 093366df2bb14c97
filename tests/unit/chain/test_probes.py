"""What a probe asks, and what its balances say: hand-made results, read to the last wei."""

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.probes import (
    Place,
    Setting,
    buy_plan,
    pay_out_plan,
    planned,
    pull_plan,
    read_buy,
    read_sell,
    read_told,
    sell_plan,
    size_raw,
    size_wei,
)
from roundtrip.chain.simulate import Plan, Results, Step, StepResult
from roundtrip.domain.evidence import Bought, Market, Missing, Probe, Refused, Size, Sold, Venue
from roundtrip.domain.policy import POLICY
from roundtrip.domain.types import BPS, WEI_PER_ETH
from roundtrip.venues import abi, amm_v3
from unit.chain.samples import ENVIRONMENT, GAS_PRICE_WEI, did, error_string, refused, word
from unit.venues.network import BELOW, CONTRACTS, address

BUYER, RECEIVER, READER = ENVIRONMENT.buyer, ENVIRONMENT.receiver, ENVIRONMENT.reader
TOKEN = BELOW
USDG_PER_ETH = 3_500_000_000
NO_PRICE = Missing("node", "no pool tells what an eth is worth")

SETTING = Setting(TOKEN, CONTRACTS, Market(1_000, USDG_PER_ETH, 500, None), POLICY)
BLIND = Setting(TOKEN, CONTRACTS, Market(1_000, NO_PRICE, None, None), POLICY)

WETH, USDG = (
    next(Place(v, amm_v3) for v in amm_v3.candidates(TOKEN, CONTRACTS) if (v.quote, v.fee_pips) == (q, 3000))
    for q in ("weth", "usdg")
)
PLACES = pytest.mark.parametrize("place", [WETH, USDG], ids=["weth", "usdg"])
SIZES: tuple[Size, ...] = get_args(Size)

BOUGHT = 5 * 10**20
WHOLE = Probe("probe", 13, BPS, 0)
HALF = Probe("probe", 13, 5000, 0)
SLIVER = Probe("probe", 13, 100, 0)
HANDED = Probe("probe", 13, BPS, 0, "receiver")


def steps_of(plan: Plan) -> list[Step]:
    return [step for block in plan.blocks for step in block.steps]


def labels(plan: Plan, block: int) -> list[str]:
    return [step.label for step in plan.blocks[block].steps]


def limits(plan: Plan, start: str) -> list[int]:
    return [step.gas_limit for step in steps_of(plan) if step.label.startswith(start)]


# --- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "wei"),
    [("probe", 10**17), ("tenth", 10**16), ("hundredth", 10**15), ("thousandth", 10**14), ("large", 10**18)],
)
def test_a_size_is_a_part_of_the_probe(size: Size, wei: int) -> None:
    assert size_wei(size, POLICY) == wei
    assert size_raw(size, WETH, SETTING) == wei
    assert size_raw(size, USDG, SETTING) == wei * 3500 // 10**12


@pytest.mark.parametrize("size", SIZES)
def test_without_a_price_only_eth_can_be_offered(size: Size) -> None:
    assert size_raw(size, USDG, BLIND) is NO_PRICE
    assert size_raw(size, WETH, BLIND) == size_wei(size, POLICY)


def test_a_quote_that_nothing_leads_to_has_no_size() -> None:
    other = Venue("amm_v3", address(0x99), address(0x99), address(0x98), 3000)
    found = size_raw("probe", Place(other, amm_v3), SETTING)
    assert isinstance(found, Missing)
    assert found.fault == "node"


# --- plans -----------------------------------------------------------------------------------------


def bought_by(place: Place, size: Size = "probe") -> Plan:
    amount = size_raw(size, place, SETTING)
    assert isinstance(amount, int)
    return buy_plan(place, SETTING, ENVIRONMENT, size, amount)


def sold_by(place: Place, probe: Probe, bought_raw: int = BOUGHT) -> Plan:
    amount = size_raw(probe.size, place, SETTING)
    assert isinstance(amount, int)
    return sell_plan(place, SETTING, ENVIRONMENT, probe, amount, bought_raw)


BUY_LABELS = {
    "weth": ["start-quote", "start-token", "buy", "bought-quote", "bought-token"],
    "usdg": ["fund", "start-quote", "start-token", "allow-0", "buy", "bought-quote", "bought-token"],
}
LADDER = [400_000, 1_200_000, 3_000_000, 2**24]


@PLACES
def test_a_buy_stands_between_two_looks_at_the_balances(place: Place) -> None:
    plan = bought_by(place)
    assert [block.delay_s for block in plan.blocks] == [1, 13, 3587, 82_800]
    assert [labels(plan, n) for n in (1, 2, 3)] == [["held-13"], ["held-3600"], ["held-86400"]]
    assert labels(plan, 0) == BUY_LABELS[place.venue.quote]
    assert limits(plan, "buy") == [2**24]
    assert set(limits(plan, "allow")) <= {POLICY.approve_gas_limit}
    assert set(limits(plan, "fund")) <= {POLICY.transfer_gas_limit}
    assert set(limits(plan, "start") + limits(plan, "bought")) == {POLICY.read_gas_limit}


def test_a_buy_for_eth_offers_the_size() -> None:
    buy = next(step for step in steps_of(bought_by(WETH)) if step.label == "buy")
    expected = amm_v3.plan_buy(WETH.venue, TOKEN, CONTRACTS, 10**17)[-1]
    assert (buy.call, buy.sender) == (expected, BUYER)


def test_a_buy_for_dollars_gets_them_by_a_swap_through_the_markets_pool() -> None:
    plan = bought_by(USDG)
    fund = plan.blocks[0].steps[0]
    most_wei = 10**17 + POLICY.gas_float_wei // 2
    assert fund.call == amm_v3.plan_eth_to_usdg(CONTRACTS, 500, 350_000_000, most_wei)
    assert fund.sender == BUYER
    assert dict(plan.blocks[0].balances)[BUYER] - fund.call.value_wei == POLICY.gas_float_wei // 2


@PLACES
def test_the_wallets_begin_with_what_they_spend_and_the_gas(place: Place) -> None:
    block = bought_by(place, "large").blocks[0]
    assert dict(block.balances) == {
        BUYER: 10**18 + POLICY.gas_float_wei,
        RECEIVER: POLICY.gas_float_wei,
        READER: WEI_PER_ETH,
    }
    assert dict(block.nonces) == {BUYER: 17, RECEIVER: 17}


def test_where_gas_is_dear_the_wallet_can_still_pay_for_every_attempt() -> None:
    dear = replace(ENVIRONMENT, base_fee_wei=10**11, max_fee_wei=2 * 10**11)
    balances = dict(buy_plan(WETH, SETTING, dear, "probe", 10**17).blocks[0].balances)
    assert balances[BUYER] - 10**17 >= (2**24 + sum(LADDER)) * dear.max_fee_wei
    assert balances[RECEIVER] >= sum(LADDER) * dear.max_fee_wei


@PLACES
@pytest.mark.parametrize("probe", [WHOLE, HALF, SLIVER, HANDED], ids=["whole", "half", "sliver", "handed"])
def test_every_balance_is_read_by_a_wallet_that_does_not_trade(place: Place, probe: Probe) -> None:
    for step in steps_of(sold_by(place, probe)):
        looks = step.label.endswith(("-quote", "-token"))
        assert (step.sender == READER) is looks, step.label
        if looks:
            assert step.call.value_wei == 0


@PLACES
def test_balances_are_those_of_the_trader_in_the_token_and_in_the_money(place: Place) -> None:
    calls = {step.label: step.call for step in steps_of(bought_by(place))}
    assert (calls["start-token"].to, calls["start-token"].data) == (
        TOKEN,
        abi.call(amm_v3.BALANCE_OF, BUYER),
    )
    money = calls["start-quote"]
    if place is WETH:
        assert (money.to, money.data) == (CONTRACTS.multicall3, abi.call("0x4d2301cc", BUYER))
    else:
        assert (money.to, money.data) == (CONTRACTS.usdg, abi.call(amm_v3.BALANCE_OF, BUYER))
    assert calls["bought-token"] == calls["start-token"]
    assert calls["bought-quote"] == money


@PLACES
@pytest.mark.parametrize("delay_s", [13, 3600, 86_400])
def test_a_sell_of_all_is_tried_under_every_limit_of_the_ladder(place: Place, delay_s: int) -> None:
    plan = sold_by(place, Probe("probe", delay_s, BPS, 0))
    assert [block.delay_s for block in plan.blocks] == [1, delay_s]
    assert plan.blocks[0] == bought_by(place).blocks[0]
    assert labels(plan, 1) == [
        "held-quote", "held-token", "approve-0", "sell-0", "sell-1", "sell-2", "sell-3",
        "after-quote", "after-token",
    ]  # fmt: skip
    assert limits(plan, "sell") == LADDER
    assert limits(plan, "approve") == [POLICY.approve_gas_limit]
    sells = {step.call for step in steps_of(plan) if step.label.startswith("sell")}
    assert sells == {amm_v3.plan_sell(place.venue, TOKEN, CONTRACTS, BOUGHT, BUYER)[-1]}


@PLACES
@pytest.mark.parametrize(("probe", "amount"), [(HALF, BOUGHT // 2), (SLIVER, BOUGHT // 100)])
def test_a_part_is_sold_once_so_that_no_second_part_is(place: Place, probe: Probe, amount: int) -> None:
    plan = sold_by(place, probe)
    assert labels(plan, 1) == [
        "held-quote", "held-token", "approve-0", "sell-0", "after-quote", "after-token",
    ]  # fmt: skip
    assert limits(plan, "sell") == [POLICY.partial_sell_gas_limit]
    approve, sell = (step.call for step in plan.blocks[1].steps[2:4])
    assert (approve, sell) == amm_v3.plan_sell(place.venue, TOKEN, CONTRACTS, amount, BUYER)


def test_the_receiver_is_handed_all_and_sells_in_a_later_block_what_it_turns_out_to_hold() -> None:
    plan = sold_by(WETH, HANDED)
    sells = [f"{step}-{part}-0" for part in range(3) for step in ("approve", "sell")]
    assert labels(plan, 1) == ["transfer"]
    assert labels(plan, 2) == ["handed-quote", "handed-token", *sells, "after-quote", "after-token"]
    assert [block.delay_s for block in plan.blocks] == [1, POLICY.later_s, POLICY.later_s]
    (transfer,), rest = plan.blocks[1].steps, plan.blocks[2].steps
    assert (transfer.sender, transfer.gas_limit) == (BUYER, POLICY.transfer_gas_limit)
    assert (transfer.call.to, transfer.call.data) == (TOKEN, abi.call("0xa9059cbb", RECEIVER, BOUGHT))
    assert limits(plan, "sell") == [POLICY.partial_sell_gas_limit] * 3
    for part, divisor in enumerate((1, 2, 10)):
        expected = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, BOUGHT // divisor, RECEIVER)
        found = [step for step in rest if step.label in (f"approve-{part}-0", f"sell-{part}-0")]
        assert tuple(step.call for step in found) == expected
        assert {step.sender for step in found} == {RECEIVER}
    handed = next(step for step in rest if step.label == "handed-token")
    assert handed.call.data == abi.call(amm_v3.BALANCE_OF, RECEIVER)


@given(st.integers(0, 2**255), st.sampled_from([100, 5000, BPS]))
def test_a_sell_never_asks_for_nothing_and_never_for_more_than_was_bought(bought: int, share: int) -> None:
    amount = planned(Probe("probe", 13, share, 0), bought)
    assert 1 <= amount <= max(1, bought)
    assert amount == max(1, bought * share // BPS)


@PLACES
@pytest.mark.parametrize("probe", [WHOLE, HALF, SLIVER, HANDED], ids=["whole", "half", "sliver", "handed"])
@pytest.mark.parametrize("bought_raw", [0, 1, 2])
def test_labels_are_unique_in_every_plan(place: Place, probe: Probe, bought_raw: int) -> None:
    found = [step.label for step in steps_of(sold_by(place, probe, bought_raw))]
    assert len(set(found)) == len(found)


@PLACES
def test_the_routers_own_pull_comes_after_the_approval(place: Place) -> None:
    plan = pull_plan(place, SETTING, ENVIRONMENT, "probe", 10**17, BOUGHT)
    assert [block.delay_s for block in plan.blocks] == [1, 13]
    assert labels(plan, 1) == ["approve-0", "pull"]
    approve, pull = plan.blocks[1].steps
    puller, call = amm_v3.plan_pull(place.venue, TOKEN, CONTRACTS, BOUGHT, BUYER)
    assert (approve.sender, pull.sender, pull.call) == (BUYER, puller, call)
    assert {approve.gas_limit, pull.gas_limit} == {POLICY.approve_gas_limit}


def test_the_puller_is_paid_for_only_after_the_buy() -> None:
    plan = pull_plan(WETH, SETTING, ENVIRONMENT, "probe", 10**17, BOUGHT)
    assert CONTRACTS.swap_router02 not in dict(plan.blocks[0].balances)
    assert dict(plan.blocks[1].balances) == {CONTRACTS.swap_router02: WEI_PER_ETH}


def test_every_candidate_pool_is_asked_to_pay_out() -> None:
    plan = pay_out_plan((WETH, USDG), SETTING, ENVIRONMENT)
    (block,) = plan.blocks
    assert [(step.label, step.sender) for step in block.steps] == [
        ("pay-out-0", WETH.venue.pool),
        ("pay-out-1", USDG.venue.pool),
    ]
    assert dict(block.balances) == {WETH.venue.pool: WEI_PER_ETH, USDG.venue.pool: WEI_PER_ETH}
    assert {step.gas_limit for step in block.steps} == {POLICY.approve_gas_limit}


# --- readings of a buy -----------------------------------------------------------------------------

PAID_WEI = 10**17
BUY_GAS, ALLOW_GAS, APPROVE_GAS, SELL_GAS = 151_003, 46_001, 44_007, 121_437
START_WEI = 3 * 10**17


def buy_results(place: Place, **changes: StepResult) -> Results:
    """A buy that paid PAID_WEI, or 350 dollars, for BOUGHT; ``changes`` by label with _ for -."""
    if place is WETH:
        found = {
            "start-quote": did(START_WEI),
            "start-token": did(0),
            "buy": did(gas=BUY_GAS),
            "bought-quote": did(START_WEI - PAID_WEI - BUY_GAS * GAS_PRICE_WEI),
        }
    else:
        found = {
            "fund": did(gas=140_000),
            "start-quote": did(350_000_000),
            "start-token": did(0),
            "allow-0": did(gas=ALLOW_GAS),
            "buy": did(gas=BUY_GAS),
            "bought-quote": did(0),
        }
    found["bought-token"] = did(BOUGHT)
    return found | {label.replace("_", "-"): result for label, result in changes.items()}


def bought(place: Place, **changes: StepResult) -> object:
    return read_buy(buy_results(place, **changes), place, ENVIRONMENT, PAID_WEI)


def test_gas_is_added_back_to_the_wei_where_money_is_eth() -> None:
    assert bought(WETH) == Bought(PAID_WEI, BOUGHT, PAID_WEI, BUY_GAS)


def test_gas_is_nothing_where_money_is_dollars() -> None:
    assert bought(USDG) == Bought(350_000_000, BOUGHT, PAID_WEI, BUY_GAS)


def test_gas_costs_at_most_what_the_wallet_offers() -> None:
    capped = replace(ENVIRONMENT, max_fee_wei=103)
    results = buy_results(WETH, bought_quote=did(START_WEI - PAID_WEI - BUY_GAS * 103))
    found = read_buy(results, WETH, capped, PAID_WEI)
    assert isinstance(found, Bought)
    assert found.paid_raw == PAID_WEI


def test_what_the_wallet_already_held_was_not_bought() -> None:
    found = bought(WETH, start_token=did(7), bought_token=did(BOUGHT + 7))
    assert isinstance(found, Bought)
    assert found.received_raw == BOUGHT


def test_a_plan_that_was_not_run_stays_missing() -> None:
    gap = Missing("node", "the simulation was not run (x)")
    assert read_buy(gap, WETH, ENVIRONMENT, 1) is gap
    assert read_sell(gap, WETH, ENVIRONMENT, WHOLE, 1, 1) is gap
    assert read_told(gap, "pull") is gap


def test_a_refused_buy_says_why() -> None:
    found = bought(WETH, buy=refused(error_string("paused"), 70_000))
    assert found == Refused("buy", "paused", 70_000)


def test_a_buy_that_ran_out_of_gas_says_so() -> None:
    assert bought(WETH, buy=refused(gas=2**24, out_of_gas=True)) == Refused("buy", "out of gas", 2**24)


def test_money_that_could_not_be_had_says_nothing_of_the_venue() -> None:
    found = bought(USDG, fund=refused(error_string("STF")), buy=refused(error_string("STF")))
    assert found == Missing("node", "no route to the money side")


def test_a_refused_allowance_is_told_before_the_buy_that_follows_from_it() -> None:
    found = bought(USDG, allow_0=refused(gas=9), buy=refused(error_string("STF")))
    assert found == Refused("approve", None, 9)


@PLACES
@pytest.mark.parametrize("moment", ["start", "bought"])
@pytest.mark.parametrize("answer", [refused(), refused(out_of_gas=True), did(b""), did(bytes(31))])
@pytest.mark.parametrize(("side", "fault"), [("quote", "node"), ("token", "token")])
def test_a_balance_that_cannot_be_read_is_missing_and_says_whose_fault(
    place: Place, moment: str, answer: StepResult, side: str, fault: str
) -> None:
    found = bought(place, **{f"{moment}_{side}": answer})
    assert isinstance(found, Missing)
    assert found.fault == fault


# --- readings of a sell ----------------------------------------------------------------------------

BACK_WEI = 99_401_234_567_890_123
HELD_WEI = START_WEI - PAID_WEI - BUY_GAS * GAS_PRICE_WEI
FAILED_GAS = 399_999


def sell_results(*sells: StepResult, left: int = 0, **changes: StepResult) -> Results:
    """A sell for eth: every attempt pays its gas, and BACK_WEI comes back."""
    gas = APPROVE_GAS + sum(sell.gas_used for sell in sells)
    found = buy_results(WETH) | {
        "held-quote": did(HELD_WEI),
        "held-token": did(BOUGHT),
        "approve-0": did(gas=APPROVE_GAS),
        **{f"sell-{n}": sell for n, sell in enumerate(sells)},
        "after-quote": did(HELD_WEI + BACK_WEI - gas * GAS_PRICE_WEI),
        "after-token": did(left),
    }
    return found | {label.replace("_", "-"): result for label, result in changes.items()}


def sold(results: Results, probe: Probe = WHOLE, place: Place = WETH) -> object:
    return read_sell(results, place, ENVIRONMENT, probe, PAID_WEI, BOUGHT)


def whole_sale(sell_gas: int = SELL_GAS) -> Sold:
    return Sold(PAID_WEI, BOUGHT, BOUGHT, BOUGHT, BACK_WEI, BUY_GAS, sell_gas)


def no_more() -> StepResult:
    """The ladder's later attempts: the tokens are gone."""
    return refused(error_string("STF"), 33_333)


def test_a_sell_of_all_is_read_to_the_wei() -> None:
    assert sold(sell_results(did(gas=SELL_GAS), no_more(), no_more(), no_more())) == whole_sale()


def test_attempts_that_failed_cost_gas_that_is_added_back_too() -> None:
    failed = refused(gas=FAILED_GAS, out_of_gas=True)
    found = sold(sell_results(failed, did(gas=SELL_GAS), no_more(), no_more()))
    assert found == whole_sale()


@given(
    st.lists(st.integers(21_000, 2**24), min_size=4, max_size=4), st.integers(0, 3), st.integers(0, 10**18)
)
def test_whatever_the_gas_the_same_money_came_back(gas: list[int], at: int, back: int) -> None:
    attempts = [did(gas=g) if n == at else refused(gas=g) for n, g in enumerate(gas)]
    spent = (APPROVE_GAS + sum(gas)) * GAS_PRICE_WEI
    results = sell_results(*attempts, held_quote=did(10**20), after_quote=did(10**20 + back - spent))
    found = sold(results)
    assert isinstance(found, Sold)
    assert (found.back_raw, found.sell_gas) == (back, gas[at])


def test_a_sell_for_dollars_adds_no_gas() -> None:
    changes = {"held-quote": did(0), "after-quote": did(348_000_000)}
    found = sold(buy_results(USDG) | {
        "held-token": did(BOUGHT), "approve-0": did(), "sell-0": did(gas=SELL_GAS), "after-token": did(0),
    } | changes, place=USDG)  # fmt: skip
    assert found == Sold(350_000_000, BOUGHT, BOUGHT, BOUGHT, 348_000_000, BUY_GAS, SELL_GAS)


@pytest.mark.parametrize(("probe", "amount"), [(HALF, BOUGHT // 2), (SLIVER, BOUGHT // 100)])
def test_a_part_that_sold_is_measured_against_what_was_planned(probe: Probe, amount: int) -> None:
    found = sold(sell_results(did(gas=SELL_GAS), left=BOUGHT - amount), probe)
    assert isinstance(found, Sold)
    assert (found.planned_raw, found.sold_raw, found.held_raw) == (amount, amount, BOUGHT)


def test_a_sell_that_takes_less_than_planned_is_seen() -> None:
    found = sold(sell_results(did(gas=SELL_GAS), left=BOUGHT // 4))
    assert isinstance(found, Sold)
    assert (found.planned_raw, found.sold_raw) == (BOUGHT, BOUGHT - BOUGHT // 4)


def test_what_is_held_before_the_sell_is_what_the_money_had_become() -> None:
    found = sold(sell_results(did(gas=SELL_GAS), held_token=did(BOUGHT // 2)))
    assert isinstance(found, Sold)
    assert (found.held_raw, found.planned_raw, found.sold_raw) == (BOUGHT // 2, BOUGHT, BOUGHT // 2)


def test_a_sell_refused_under_every_limit_gives_the_last_reason() -> None:
    attempts = [refused(out_of_gas=True), refused(error_string("a")), refused(error_string("STF"), 77)]
    assert sold(sell_results(*attempts)) == Refused("sell", "STF", 77)


def test_a_refused_approval_is_the_reason_of_the_sell_that_fails_after_it() -> None:
    results = sell_results(no_more(), approve_0=refused(error_string("not you"), 30_001))
    assert sold(results) == Refused("approve", "not you", 30_001)


def test_a_refused_approval_does_not_matter_where_the_sell_goes_through() -> None:
    assert isinstance(sold(sell_results(did(gas=SELL_GAS), approve_0=refused())), Sold)


def test_a_buy_refused_the_second_time_is_what_came_of_the_probe() -> None:
    results = sell_results(did(), buy=refused(error_string("closed"), 5))
    assert sold(results) == Refused("buy", "closed", 5)


@pytest.mark.parametrize("moment", ["held", "after"])
@pytest.mark.parametrize(("side", "fault"), [("quote", "node"), ("token", "token")])
def test_a_balance_unread_around_the_sell_is_missing(moment: str, side: str, fault: str) -> None:
    found = sold(sell_results(did(gas=SELL_GAS)) | {f"{moment}-{side}": refused(out_of_gas=True)})
    assert isinstance(found, Missing)
    assert found.fault == fault


# --- the receiver ----------------------------------------------------------------------------------


def handed_results(
    *sells: StepResult, arrived: int = BOUGHT, left: int = 0, **changes: StepResult
) -> Results:
    """What the receiver was handed, and its three attempts at selling."""
    gas = sum(APPROVE_GAS + sell.gas_used for sell in sells)
    found = buy_results(WETH) | {
        "transfer": did(gas=51_000),
        "handed-quote": did(START_WEI),
        "handed-token": did(arrived),
        "after-quote": did(START_WEI + BACK_WEI - gas * GAS_PRICE_WEI),
        "after-token": did(left),
    }
    for n, sell in enumerate(sells):
        found |= {f"approve-{n}-0": did(gas=APPROVE_GAS), f"sell-{n}-0": sell}
    return found | {label.replace("_", "-"): result for label, result in changes.items()}


def test_the_receivers_sell_is_read_from_its_own_balances() -> None:
    found = sold(handed_results(did(gas=SELL_GAS), no_more(), no_more()), HANDED)
    assert found == whole_sale()


def test_the_receiver_is_measured_against_what_arrived() -> None:
    arrived = BOUGHT * 9 // 10
    results = handed_results(
        no_more(), did(gas=SELL_GAS), did(gas=90_000), arrived=arrived, left=arrived - BOUGHT * 6 // 10
    )
    found = sold(results, HANDED)
    assert found == Sold(PAID_WEI, BOUGHT, arrived, BOUGHT * 6 // 10, BACK_WEI, BUY_GAS, SELL_GAS)


def test_a_refused_hand_over_is_a_refused_transfer() -> None:
    results = handed_results(no_more(), transfer=refused(error_string("frozen"), 40_001))
    assert sold(results, HANDED) == Refused("transfer", "frozen", 40_001)


def test_a_receiver_that_cannot_sell_any_part_is_refused() -> None:
    assert sold(handed_results(no_more(), no_more(), no_more()), HANDED) == Refused("sell", "STF", 33_333)


def test_a_receiver_whose_approval_is_refused_is_told_so() -> None:
    refusals = {f"approve-{n}-0": refused(error_string("not you"), 30_001) for n in range(3)}
    results = handed_results(no_more(), no_more(), no_more())
    assert sold(results | refusals, HANDED) == Refused("approve", "not you", 30_001)


@pytest.mark.parametrize(("side", "fault"), [("quote", "node"), ("token", "token")])
@pytest.mark.parametrize("moment", ["handed", "after"])
def test_a_receivers_balance_unread_is_missing(moment: str, side: str, fault: str) -> None:
    found = sold(handed_results(did(gas=SELL_GAS)) | {f"{moment}-{side}": refused()}, HANDED)
    assert isinstance(found, Missing)
    assert found.fault == fault


# --- what the token itself said --------------------------------------------------------------------


@pytest.mark.parametrize(("label", "leg"), [("pull", "sell"), ("pay-out-0", "buy"), ("pay-out-7", "buy")])
def test_what_the_token_says_to_a_direct_move_belongs_to_its_leg(label: str, leg: str) -> None:
    told = read_told({label: refused(error_string("blacklisted"), 12)}, label)
    assert told == Refused(leg, "blacklisted", 12)  # type: ignore[arg-type]
    assert read_told({label: did(1)}, label) is None


# --- plan and reading together ---------------------------------------------------------------------


def answers(plan: Plan, balance: Callable[[str], int]) -> Results:
    return {step.label: did(word(balance(step.label))) for step in steps_of(plan)}


@PLACES
@pytest.mark.parametrize("probe", [WHOLE, HALF, SLIVER, HANDED], ids=["whole", "half", "sliver", "handed"])
def test_every_label_that_is_read_is_in_the_plan(place: Place, probe: Probe) -> None:
    plan = sold_by(place, probe)
    results = answers(
        plan, lambda label: 10**20 if label.startswith(("start-q", "bought-t", "held-t")) else 0
    )
    assert isinstance(read_sell(results, place, ENVIRONMENT, probe, 1, BOUGHT), Sold)
    assert isinstance(read_buy(results, place, ENVIRONMENT, 1), Bought)
