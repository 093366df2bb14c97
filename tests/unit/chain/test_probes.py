"""What a probe asks, and what its balances say: hand-made results, read to the last wei."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.outcomes import read_buy, read_sell, read_told
from roundtrip.chain.probes import (
    Place,
    Setting,
    buy_plan,
    cast,
    late_s,
    pay_out_plan,
    planned,
    pull_plan,
    sell_plan,
    sellable,
    size_raw,
    size_wei,
)
from roundtrip.chain.simulate import Plan, Results, Step, StepResult
from roundtrip.domain.evidence import (
    Bought,
    Environment,
    Hop,
    Market,
    Missing,
    Probe,
    Refused,
    Size,
    Sold,
    Venue,
)
from roundtrip.domain.policy import POLICY
from roundtrip.domain.readings import MAIN_SIZES
from roundtrip.domain.types import BPS, WEI_PER_ETH, Address
from roundtrip.venues import abi, amm_v3, amm_v4, erc20
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
ETH = next(Place(v, amm_v4) for v in amm_v4.candidates(TOKEN, CONTRACTS) if v.quote == "eth")
PLACES = pytest.mark.parametrize("place", [WETH, USDG], ids=["weth", "usdg"])
SIZES: tuple[Size, ...] = get_args(Size)

BOUGHT = 5 * 10**20
WHOLE = Probe("probe", 13, BPS, 0)
HALF = Probe("probe", 13, 5000, 0)
SLIVER = Probe("probe", 13, 100, 0)
HANDED = Probe("probe", 13, BPS, 0, "receiver")
PROBES = pytest.mark.parametrize(
    "probe", [WHOLE, HALF, SLIVER, HANDED], ids=["whole", "half", "sliver", "handed"]
)
PAID_WEI = 10**17
BUY_GAS, ALLOW_GAS, APPROVE_GAS, SELL_GAS = 151_003, 46_001, 44_007, 121_437

CARELESS = replace(
    ENVIRONMENT,
    gas_float_wei=3 * 10**18,
    size_bps=7_350,
    approves_all=True,
    approve_gas_limit=90_000,
    late_s=14,
    sell_gas_ladder=(2**24,),
)


def was_bought(received_raw: int = BOUGHT, *later_raw: int, gas: int = BUY_GAS) -> Bought:
    """What trip 1 told of the buy."""
    return Bought(PAID_WEI, received_raw, PAID_WEI, gas, later_raw)


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
    assert size_raw(size, WETH, SETTING, ENVIRONMENT) == wei
    assert size_raw(size, USDG, SETTING, ENVIRONMENT) == wei * 3500 // 10**12


@pytest.mark.parametrize("size", SIZES)
def test_an_environment_trades_its_own_part_of_a_size(size: Size) -> None:
    wei = size_wei(size, POLICY) * 7_350 // BPS
    assert 0 < wei < size_wei(size, POLICY)
    assert size_raw(size, WETH, SETTING, CARELESS) == wei
    assert size_raw(size, ETH, SETTING, CARELESS) == wei
    assert size_raw(size, USDG, SETTING, CARELESS) == wei * 3500 // 10**12


@pytest.mark.parametrize("size", SIZES)
def test_without_a_price_only_eth_can_be_offered(size: Size) -> None:
    assert size_raw(size, USDG, BLIND, ENVIRONMENT) is NO_PRICE
    assert size_raw(size, WETH, BLIND, ENVIRONMENT) == size_wei(size, POLICY)


def test_a_quote_that_nothing_leads_to_has_no_size() -> None:
    other = Venue("amm_v3", address(0x99), address(0x99), address(0x98), 3000)
    found = size_raw("probe", Place(other, amm_v3), SETTING, ENVIRONMENT)
    assert isinstance(found, Missing)
    assert found.fault == "node"


# --- plans -----------------------------------------------------------------------------------------


def bought_by(place: Place, size: Size = "probe", environment: Environment = ENVIRONMENT) -> Plan:
    amount = size_raw(size, place, SETTING, environment)
    assert isinstance(amount, int)
    return buy_plan(place, SETTING, environment, size, amount)


def sold_by(
    place: Place, probe: Probe, known: Bought | None = None, environment: Environment = ENVIRONMENT
) -> Plan:
    amount = size_raw(probe.size, place, SETTING, environment)
    assert isinstance(amount, int)
    return sell_plan(place, SETTING, environment, probe, amount, known or was_bought())


def pulled_by(place: Place, known: Bought | None = None) -> Plan:
    return pull_plan(place, SETTING, ENVIRONMENT, "probe", 10**17, known or was_bought())


def asks_balance_of_token(step: Step) -> bool:
    return step.call.to == TOKEN and step.call.data.startswith(erc20.BALANCE_OF)


BUY_LABELS = {
    "weth": ["sweep", "start-quote", "start-token", "buy", "bought-quote", "bought-token"],
    "usdg": [
        "sweep", "fund", "start-quote", "start-token", "allow-0", "buy", "bought-quote", "bought-token",
    ],
}  # fmt: skip
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


@PLACES
@pytest.mark.parametrize(("size", "blocks"), [(s, 4 if s in MAIN_SIZES else 1) for s in SIZES])
def test_only_of_what_may_be_sold_later_it_is_asked_what_is_held_then(
    place: Place, size: Size, blocks: int
) -> None:
    assert len(bought_by(place, size).blocks) == blocks


@PLACES
def test_what_is_held_is_asked_when_this_environment_would_sell(place: Place) -> None:
    plan = bought_by(place, environment=CARELESS)
    times_s = list(accumulate(block.delay_s for block in plan.blocks))
    assert [time_s - 1 for time_s in times_s[1:]] == [13 + 14, 3600 + 15 * 14, 86_400 + 360 * 14]
    for step in (step for block in plan.blocks[1:] for step in block.steps):
        assert (step.sender, step.gas_limit) == (READER, POLICY.read_gas_limit)
        assert (step.call.to, step.call.data) == (TOKEN, abi.call(erc20.BALANCE_OF, BUYER))


@pytest.mark.parametrize("place", [WETH, USDG, ETH], ids=["weth", "usdg", "eth"])
def test_every_buy_begins_by_clearing_the_router_of_strangers_dust(place: Place) -> None:
    plans = [bought_by(place, size) for size in SIZES]
    plans += [sold_by(place, probe) for probe in (WHOLE, HALF, SLIVER, HANDED)]
    plans += [bought_by(place, environment=CARELESS), pulled_by(place)]
    for plan in plans:
        sweep = plan.blocks[0].steps[0]
        assert (sweep.label, sweep.sender) == ("sweep", READER)
        assert sweep.call == place.file.plan_sweep(CONTRACTS, READER)
        assert sweep.call.value_wei == 0
        assert sweep.gas_limit == POLICY.transfer_gas_limit
        assert [step.label for step in steps_of(plan)].count("sweep") == 1


def test_the_sweep_takes_eth_and_weth_to_the_reader() -> None:
    data = amm_v3.plan_sweep(CONTRACTS, READER).data
    assert data.startswith(amm_v3.MULTICALL)
    assert amm_v3.REFUND_ETH[2:] in data
    assert abi.call(amm_v3.UNWRAP_WETH9, 0, READER)[2:] in data


def test_a_buy_for_eth_offers_the_size() -> None:
    buy = next(step for step in steps_of(bought_by(WETH)) if step.label == "buy")
    expected = amm_v3.plan_buy(WETH.venue, TOKEN, CONTRACTS, 10**17, BUYER)[-1]
    assert (buy.call, buy.sender) == (expected, BUYER)


def test_a_buy_for_dollars_gets_them_by_a_swap_through_the_markets_pool() -> None:
    plan = bought_by(USDG)
    fund = plan.blocks[0].steps[1]
    assert fund.label == "fund"
    most_wei = 10**17 + POLICY.gas_float_wei // 2
    assert fund.call == amm_v3.plan_eth_to(CONTRACTS, (Hop(CONTRACTS.usdg, 500),), 350_000_000, most_wei)
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


@PLACES
def test_a_wallet_may_hold_far_more_than_it_trades(place: Place) -> None:
    balances = dict(bought_by(place, environment=CARELESS).blocks[0].balances)
    assert balances == {BUYER: 10**17 + 3 * 10**18, RECEIVER: 3 * 10**18, READER: WEI_PER_ETH}


def test_where_gas_is_dear_the_wallet_can_still_pay_for_every_attempt() -> None:
    dear = replace(ENVIRONMENT, base_fee_wei=10**11, max_fee_wei=2 * 10**11)
    balances = dict(buy_plan(WETH, SETTING, dear, "probe", 10**17).blocks[0].balances)
    assert balances[BUYER] - 10**17 >= (2**24 + sum(LADDER)) * dear.max_fee_wei
    assert balances[RECEIVER] >= sum(LADDER) * dear.max_fee_wei


@PLACES
@PROBES
def test_every_balance_is_read_by_a_wallet_that_does_not_trade(place: Place, probe: Probe) -> None:
    for step in steps_of(sold_by(place, probe)):
        looks = step.label.endswith(("-quote", "-token"))
        assert (step.sender == READER) is (looks or step.label == "sweep"), step.label
        if looks:
            assert step.call.value_wei == 0


@PLACES
def test_balances_are_those_of_the_trader_in_the_token_and_in_the_money(place: Place) -> None:
    calls = {step.label: step.call for step in steps_of(bought_by(place))}
    assert (calls["start-token"].to, calls["start-token"].data) == (
        TOKEN,
        abi.call(erc20.BALANCE_OF, BUYER),
    )
    money = calls["start-quote"]
    if place is WETH:
        assert (money.to, money.data) == (CONTRACTS.multicall3, abi.call("0x4d2301cc", BUYER))
    else:
        assert (money.to, money.data) == (CONTRACTS.usdg, abi.call(erc20.BALANCE_OF, BUYER))
    assert calls["bought-token"] == calls["start-token"]
    assert calls["bought-quote"] == money


SOLD_LABELS = {
    "weth": ["sweep", "start-quote", "buy", "bought-quote"],
    "usdg": ["sweep", "fund", "start-quote", "allow-0", "buy", "bought-quote"],
}
DELAYS = pytest.mark.parametrize("delay_s", [13, 3600, 86_400])
ENVIRONMENTS = pytest.mark.parametrize("environment", [ENVIRONMENT, CARELESS], ids=["careful", "careless"])


def who_trades(plan: Plan) -> tuple[Address, Address]:
    """The plan's buyer and receiver."""
    return plan.environment.buyer, plan.environment.receiver


@PLACES
@DELAYS
def test_a_sell_of_all_is_tried_under_every_limit_of_the_ladder(place: Place, delay_s: int) -> None:
    plan = sold_by(place, Probe("probe", delay_s, BPS, 0))
    buyer, _ = who_trades(plan)
    assert [labels(plan, n) for n in range(3)] == [
        SOLD_LABELS[place.venue.quote],
        ["approve-0"],
        ["held-quote", "sell-0", "sell-1", "sell-2", "sell-3", "after-quote", "after-token"],
    ]
    assert limits(plan, "sell") == LADDER
    assert limits(plan, "approve") == [ENVIRONMENT.approve_gas_limit]
    approve, sell = amm_v3.plan_sell(place.venue, TOKEN, CONTRACTS, BOUGHT, buyer)
    assert {step.call for step in steps_of(plan) if step.label.startswith("sell")} == {sell}
    assert plan.blocks[1].steps[0].call == approve
    assert {step.sender for step in steps_of(plan) if step.label.startswith(("approve", "sell"))} == {buyer}


@PLACES
def test_the_second_trip_buys_what_the_first_did_with_a_wallet_of_its_own(place: Place) -> None:
    again, first = sold_by(place, WHOLE).blocks[0], bought_by(place).blocks[0]
    buyer, receiver = who_trades(sold_by(place, WHOLE))
    assert again.delay_s == first.delay_s
    calls = {step.label: step.call for step in first.steps}
    for step in again.steps:
        if not step.label.endswith("-quote"):
            assert step.call == calls[step.label]
            assert step.sender == (READER if step.label == "sweep" else buyer)
    balances, nonces = dict(first.balances), dict(first.nonces)
    assert dict(again.balances) == {
        buyer: balances[BUYER],
        receiver: balances[RECEIVER],
        READER: balances[READER],
    }
    assert dict(again.nonces) == {buyer: nonces[BUYER], receiver: nonces[RECEIVER]}


@PLACES
@DELAYS
@ENVIRONMENTS
@pytest.mark.parametrize("share_bps", [BPS, 5000, 100])
def test_the_sell_comes_when_it_should_and_the_approval_a_while_before(
    place: Place, delay_s: int, environment: Environment, share_bps: int
) -> None:
    plan = sold_by(place, Probe("probe", delay_s, share_bps, 0), environment=environment)
    late = late_s(environment, delay_s)
    assert [block.delay_s for block in plan.blocks] == [1, delay_s + late - 6, 6]
    assert sum(block.delay_s for block in plan.blocks[1:]) == delay_s + late
    assert all(block.delay_s > 0 for block in plan.blocks)
    assert labels(plan, 1) == ["approve-0"]
    assert {step.label.split("-")[0] for step in plan.blocks[2].steps} == {"held", "sell", "after"}
    # What was held then was asked in trip 1 at that very second.
    watched = bought_by(place, environment=environment).blocks
    asked_s = dict(zip((13, 3600, 86_400), accumulate(b.delay_s for b in watched[1:]), strict=True))
    assert asked_s[delay_s] == delay_s + late


@pytest.mark.parametrize(
    ("delay_s", "times"),
    [(0, 1), (13, 1), (239, 1), (240, 1), (479, 1), (480, 2), (3600, 15), (86_400, 360)],
)
def test_the_longer_the_wait_the_later_it_gets(delay_s: int, times: int) -> None:
    assert late_s(CARELESS, delay_s) == 14 * times
    assert late_s(ENVIRONMENT, delay_s) == 0


@pytest.mark.parametrize("place", [WETH, USDG, ETH], ids=["weth", "usdg", "eth"])
@DELAYS
@ENVIRONMENTS
@pytest.mark.parametrize("share_bps", [BPS, 5000, 100])
def test_the_token_is_asked_for_no_balance_before_the_sell(
    place: Place, delay_s: int, environment: Environment, share_bps: int
) -> None:
    steps = steps_of(sold_by(place, Probe("probe", delay_s, share_bps, 0), environment=environment))
    last_sell = max(n for n, step in enumerate(steps) if step.label.startswith("sell-"))
    asking = [n for n, step in enumerate(steps) if asks_balance_of_token(step)]
    assert [steps[n].label for n in asking] == ["after-token"]
    assert asking[0] > last_sell


@PLACES
def test_before_the_pull_no_balance_of_the_token_is_asked_at_all(place: Place) -> None:
    assert not any(asks_balance_of_token(step) for step in steps_of(pulled_by(place)))


@pytest.mark.parametrize("place", [WETH, USDG, ETH], ids=["weth", "usdg", "eth"])
@ENVIRONMENTS
def test_where_a_receiver_sells_the_token_is_asked_for_no_balance_at_all(
    place: Place, environment: Environment
) -> None:
    plan = sold_by(place, HANDED, environment=environment)
    assert not any(asks_balance_of_token(step) for step in steps_of(plan))


@PLACES
@PROBES
@pytest.mark.parametrize(
    ("known_gas", "limit"),
    [
        (1, 1),
        (BUY_GAS, 226_504),
        (2**24 * 2 // 3, 2**24 - 1),
        (2**24 * 2 // 3 + 1, 2**24),
        (2**24, 2**24),
    ],
)
def test_a_buy_whose_gas_is_known_carries_half_as_much_again(
    place: Place, probe: Probe, known_gas: int, limit: int
) -> None:
    known = was_bought(gas=known_gas)
    assert limits(sold_by(place, probe, known), "buy") == [limit]
    assert limits(pulled_by(place, known), "buy") == [limit]
    assert limit <= POLICY.buy_gas_limit


@PLACES
@pytest.mark.parametrize(("probe", "amount"), [(HALF, BOUGHT // 2), (SLIVER, BOUGHT // 100)])
@ENVIRONMENTS
def test_a_part_is_sold_once_so_that_no_second_part_is(
    place: Place, probe: Probe, amount: int, environment: Environment
) -> None:
    plan = sold_by(place, probe, environment=environment)
    assert labels(plan, 2) == ["held-quote", "sell-0", "after-quote", "after-token"]
    assert limits(plan, "sell") == [POLICY.partial_sell_gas_limit]
    buyer, _ = who_trades(plan)
    approve_raw = abi.MAX_UINT256 if environment is CARELESS else amount
    (approve,), (_, sell, *_) = plan.blocks[1].steps, plan.blocks[2].steps
    assert (approve.call, sell.call) == amm_v3.plan_sell(
        place.venue, TOKEN, CONTRACTS, amount, buyer, approve_raw
    )


# --- an environment's manners ----------------------------------------------------------------------


@pytest.mark.parametrize("place", [WETH, USDG, ETH], ids=["weth", "usdg", "eth"])
@PROBES
def test_a_wallet_that_approves_all_approves_the_most_there_is(place: Place, probe: Probe) -> None:
    plan = sold_by(place, probe, environment=CARELESS)
    exact = sold_by(place, probe)
    trader = who_trades(plan)[probe.seller == "receiver"]
    approvals = [step for step in steps_of(plan) if step.label.startswith("approve")]
    exactly = [step for step in steps_of(exact) if step.label.startswith("approve")]
    parts = [BOUGHT, BOUGHT // 2, BOUGHT // 10] if probe is HANDED else [planned(probe, BOUGHT)]
    assert [step.call for step in approvals] == [
        call
        for part in parts
        for call in place.file.plan_sell(
            place.venue, TOKEN, CONTRACTS, part, trader, approve_raw=abi.MAX_UINT256
        )[:-1]
    ]
    tokens_own = [step.call.data for step in approvals if step.call.to == TOKEN]
    assert len(tokens_own) == len(parts)
    assert all(data.endswith("f" * 64) for data in tokens_own)
    assert [step.call.data for step in exactly if step.call.to == TOKEN] == [
        data[:-64] + abi.word(part) for data, part in zip(tokens_own, parts, strict=True)
    ]
    assert limits(plan, "approve") == [90_000] * len(approvals)
    assert limits(exact, "approve") == [300_000] * len(exactly)


@PLACES
@DELAYS
@pytest.mark.parametrize(
    ("ladder", "tried"), [((), LADDER), ((2**24,), [2**24]), ((5 * 10**5, 10**6), [5 * 10**5, 10**6])]
)
def test_all_is_sold_under_the_environments_own_limits_where_it_has_some(
    place: Place, delay_s: int, ladder: tuple[int, ...], tried: list[int]
) -> None:
    environment = replace(ENVIRONMENT, sell_gas_ladder=ladder)
    plan = sold_by(place, Probe("probe", delay_s, BPS, 0), environment=environment)
    assert limits(plan, "sell") == tried
    assert len({step.call for step in steps_of(plan) if step.label.startswith("sell")}) == 1


def test_an_environment_offers_its_own_part_of_the_size() -> None:
    for plan in (bought_by(WETH, environment=CARELESS), sold_by(WETH, WHOLE, environment=CARELESS)):
        buy = next(step for step in steps_of(plan) if step.label == "buy")
        assert buy.call.value_wei == 10**17 * 7_350 // BPS


# --- wallets of each probe's own -------------------------------------------------------------------

GRID = [
    Probe(size, delay_s, share_bps, environment, seller)
    for size in SIZES
    for delay_s in (13, 3600, 86_400)
    for share_bps in (BPS, 5000, 100)
    for environment in (0, 1)
    for seller in ("buyer", "receiver")
]


def test_each_probe_is_traded_by_wallets_of_its_own() -> None:
    other = replace(ENVIRONMENT, buyer=address(0xD0), receiver=address(0xD1), reader=address(0xD2))
    environments = (ENVIRONMENT, other)
    wallets = [
        wallet
        for probe in GRID
        for wallet in who_trades(sold_by(WETH, probe, environment=environments[probe.environment]))
    ]
    assert len(wallets) == 2 * len(GRID)
    known = [a for env in environments for a in (env.buyer, env.receiver, env.reader)]
    assert len(set(wallets) | set(known)) == len(wallets) + len(known)


@pytest.mark.parametrize("place", [WETH, USDG, ETH], ids=["weth", "usdg", "eth"])
@PROBES
def test_the_environments_own_wallets_are_nowhere_in_a_probes_plan(place: Place, probe: Probe) -> None:
    telling = replace(ENVIRONMENT, buyer=address(0xB0B << 140), receiver=address(0xACE << 140))
    plan = sold_by(place, probe, environment=telling)
    for first in (telling.buyer, telling.receiver):
        assert first not in {step.sender for step in steps_of(plan)}
        assert not any(first[2:] in step.call.data for step in steps_of(plan))
        assert first not in {who for who, _ in (*plan.blocks[0].balances, *plan.blocks[0].nonces)}
    assert set(who_trades(plan)) <= {who for who, _ in plan.blocks[0].balances}


@PLACES
@PROBES
def test_the_same_probe_has_the_same_plan_every_time(place: Place, probe: Probe) -> None:
    assert sold_by(place, probe) == sold_by(place, replace(probe))


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_part_fixes_its_wallets_and_nothing_else(part: str, other: str) -> None:
    found = cast(ENVIRONMENT, part)
    assert found == cast(ENVIRONMENT, part)
    assert replace(found, buyer=BUYER, receiver=RECEIVER) == ENVIRONMENT
    assert len({found.buyer, found.receiver, BUYER, RECEIVER, READER}) == 5
    for wallet in (found.buyer, found.receiver):
        assert re.fullmatch("0x[0-9a-f]{40}", wallet)
    assert (found.buyer == cast(ENVIRONMENT, other).buyer) is (part == other)
    assert (found.receiver == cast(ENVIRONMENT, other).receiver) is (part == other)


# --- what is held when it is sold ------------------------------------------------------------------

REBASED = was_bought(BOUGHT, BOUGHT + 5, BOUGHT * 3, BOUGHT // 7)


@pytest.mark.parametrize(("delay_s", "held"), [(13, BOUGHT + 5), (3600, BOUGHT * 3), (86_400, BOUGHT // 7)])
@pytest.mark.parametrize("share_bps", [BPS, 5000, 100])
def test_what_trip_1_was_told_is_held_at_each_delay_is_what_is_sold(
    delay_s: int, held: int, share_bps: int
) -> None:
    probe = Probe("probe", delay_s, share_bps, 0)
    assert sellable(REBASED, probe, POLICY) == held
    plan = sold_by(WETH, probe, REBASED)
    buyer, _ = who_trades(plan)
    amount = held * share_bps // BPS
    expected = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, amount, buyer)
    assert plan.blocks[1].steps[0].call == expected[0]
    assert {s.call for s in steps_of(plan) if s.label.startswith("sell")} == {expected[1]}


@DELAYS
def test_where_it_was_not_asked_what_was_bought_is_held(delay_s: int) -> None:
    assert sellable(was_bought(), Probe("large", delay_s, BPS, 0), POLICY) == BOUGHT
    assert sellable(was_bought(BOUGHT, 1, 2), Probe("probe", delay_s, BPS, 0), POLICY) == BOUGHT


def test_what_is_handed_over_is_what_was_bought_whatever_is_held_later() -> None:
    assert sellable(REBASED, HANDED, POLICY) == BOUGHT
    plan = sold_by(WETH, HANDED, REBASED)
    _, receiver = who_trades(plan)
    assert plan.blocks[1].steps[0].call.data == abi.call("0xa9059cbb", receiver, BOUGHT)


# --- the receiver's plan ---------------------------------------------------------------------------


def test_the_receiver_is_handed_all_and_sells_in_a_later_block_what_it_turns_out_to_hold() -> None:
    plan = sold_by(WETH, HANDED)
    buyer, receiver = who_trades(plan)
    sells = [f"{step}-{part}-0" for part in range(3) for step in ("approve", "sell")]
    assert labels(plan, 1) == ["transfer"]
    assert labels(plan, 0) == SOLD_LABELS["weth"]
    assert labels(plan, 2) == ["handed-quote", *sells, "after-quote"]
    assert [block.delay_s for block in plan.blocks] == [1, POLICY.later_s, POLICY.later_s]
    (transfer,), rest = plan.blocks[1].steps, plan.blocks[2].steps
    assert (transfer.sender, transfer.gas_limit) == (buyer, POLICY.transfer_gas_limit)
    assert (transfer.call.to, transfer.call.data) == (TOKEN, abi.call("0xa9059cbb", receiver, BOUGHT))
    assert limits(plan, "sell") == [POLICY.partial_sell_gas_limit] * 3
    for part, divisor in enumerate((1, 2, 10)):
        expected = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, BOUGHT // divisor, receiver)
        found = [step for step in rest if step.label in (f"approve-{part}-0", f"sell-{part}-0")]
        assert tuple(step.call for step in found) == expected
        assert {step.sender for step in found} == {receiver}
    for looks in (rest[0], rest[-1]):
        assert (looks.sender, looks.call.data) == (READER, abi.call("0x4d2301cc", receiver))


@given(st.integers(0, 2**255), st.sampled_from([100, 5000, BPS]))
def test_a_sell_never_asks_for_nothing_and_never_for_more_than_was_bought(bought: int, share: int) -> None:
    amount = planned(Probe("probe", 13, share, 0), bought)
    assert 1 <= amount <= max(1, bought)
    assert amount == max(1, bought * share // BPS)


@PLACES
@PROBES
@pytest.mark.parametrize("bought_raw", [0, 1, 2])
def test_labels_are_unique_in_every_plan(place: Place, probe: Probe, bought_raw: int) -> None:
    found = [step.label for step in steps_of(sold_by(place, probe, was_bought(bought_raw)))]
    assert len(set(found)) == len(found)


@PLACES
def test_the_routers_own_pull_comes_after_the_approval(place: Place) -> None:
    plan = pulled_by(place)
    assert labels(plan, 0) == SOLD_LABELS[place.venue.quote]
    assert [block.delay_s for block in plan.blocks] == [1, 13]
    assert labels(plan, 1) == ["approve-0", "pull"]
    approve, pull = plan.blocks[1].steps
    puller, call = amm_v3.plan_pull(place.venue, TOKEN, CONTRACTS, BOUGHT, BUYER)
    assert (approve.sender, pull.sender, pull.call) == (BUYER, puller, call)
    assert {approve.gas_limit, pull.gas_limit} == {POLICY.approve_gas_limit}


def test_the_puller_is_paid_for_only_after_the_buy() -> None:
    plan = pulled_by(WETH)
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

START_WEI = 3 * 10**17


def buy_results(place: Place, **changes: StepResult) -> Results:
    """A buy that paid PAID_WEI, or 350 dollars, for BOUGHT; ``changes`` by label with _ for -."""
    if place is WETH:
        found = {
            "sweep": did(gas=61_000),
            "start-quote": did(START_WEI),
            "start-token": did(0),
            "buy": did(gas=BUY_GAS),
            "bought-quote": did(START_WEI - PAID_WEI - BUY_GAS * GAS_PRICE_WEI),
        }
    else:
        found = {
            "sweep": did(gas=61_000),
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
    assert read_sell(gap, WETH, ENVIRONMENT, WHOLE, was_bought(), POLICY) is gap
    assert read_told(gap, "pull") is gap


@PLACES
def test_a_router_that_cannot_be_swept_says_nothing_of_the_buy(place: Place) -> None:
    assert bought(place, sweep=refused(error_string("STF"))) == bought(place)


FREE = Missing("token", "the buy cost nothing, which cannot be")


@pytest.mark.parametrize("gain", [0, 1, PAID_WEI])
def test_a_buy_that_cost_nothing_cannot_be(gain: int) -> None:
    weth = {"bought_quote": did(START_WEI + gain - BUY_GAS * GAS_PRICE_WEI)}
    usdg = {"bought_quote": did(350_000_000 + gain)}
    assert bought(WETH, **weth) == FREE
    assert bought(USDG, **usdg) == FREE
    assert sold(sell_results(did(gas=SELL_GAS)) | {"bought-quote": weth["bought_quote"]}) == FREE
    handed = handed_results(did(gas=SELL_GAS)) | {"bought-quote": weth["bought_quote"]}
    assert sold(handed, HANDED) == FREE


def test_a_buy_that_cost_the_least_there_is_is_one() -> None:
    found = bought(WETH, bought_quote=did(START_WEI - 1 - BUY_GAS * GAS_PRICE_WEI))
    assert found == Bought(1, BOUGHT, PAID_WEI, BUY_GAS)


def test_what_is_held_later_is_read_in_order() -> None:
    found = bought(WETH, held_13=did(BOUGHT + 1), held_3600=did(0), held_86400=did(2))
    assert found == Bought(PAID_WEI, BOUGHT, PAID_WEI, BUY_GAS, (BOUGHT + 1, 0, 2))


@pytest.mark.parametrize("answer", [refused(), refused(out_of_gas=True), did(b""), did(bytes(31))])
def test_where_it_is_not_told_what_is_held_later_it_is_what_was_bought(answer: StepResult) -> None:
    found = bought(WETH, held_13=did(3), held_3600=answer, held_86400=did(2))
    assert found == Bought(PAID_WEI, BOUGHT, PAID_WEI, BUY_GAS, (3, BOUGHT, 2))


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
HELD_WEI = START_WEI - PAID_WEI - (BUY_GAS + APPROVE_GAS) * GAS_PRICE_WEI
FAILED_GAS = 399_999


def second_buy(place: Place, **changes: StepResult) -> Results:
    """The buy of trip 2, where the token was asked for no balance."""
    found = buy_results(place, **changes)
    return {label: found[label] for label in found if label not in ("start-token", "bought-token")}


def sell_results(*sells: StepResult, left: int = 0, **changes: StepResult) -> Results:
    """A sell for eth: every attempt pays its gas, and BACK_WEI comes back. The approval was paid for
    before the money was counted."""
    gas = sum(sell.gas_used for sell in sells)
    found = second_buy(WETH) | {
        "approve-0": did(gas=APPROVE_GAS),
        "held-quote": did(HELD_WEI),
        **{f"sell-{n}": sell for n, sell in enumerate(sells)},
        "after-quote": did(HELD_WEI + BACK_WEI - gas * GAS_PRICE_WEI),
        "after-token": did(left),
    }
    return found | {label.replace("_", "-"): result for label, result in changes.items()}


def sold(results: Results, probe: Probe = WHOLE, place: Place = WETH, known: Bought | None = None) -> object:
    return read_sell(results, place, ENVIRONMENT, probe, known or was_bought(), POLICY)


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
    spent = sum(gas) * GAS_PRICE_WEI
    results = sell_results(*attempts, held_quote=did(10**20), after_quote=did(10**20 + back - spent))
    found = sold(results)
    assert isinstance(found, Sold)
    assert (found.back_raw, found.sell_gas) == (back, gas[at])


def test_a_sell_for_dollars_adds_no_gas() -> None:
    changes = {"held-quote": did(0), "after-quote": did(348_000_000)}
    found = sold(second_buy(USDG) | {
        "approve-0": did(), "sell-0": did(gas=SELL_GAS), "after-token": did(0),
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


@pytest.mark.parametrize("twice", [(0, 1), (1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("left", [0, BOUGHT // 2])
def test_tokens_that_are_sold_twice_are_refused(twice: tuple[int, ...], left: int) -> None:
    attempts = [did(gas=SELL_GAS + n) if n in twice else no_more() for n in range(4)]
    found = sold(sell_results(*attempts, left=left))
    assert found == Refused("sell", "it lets the same tokens be sold twice", SELL_GAS + twice[0])


def test_tokens_sold_twice_are_refused_whatever_else_can_be_read() -> None:
    attempts = [did(gas=SELL_GAS), did(gas=SELL_GAS)]
    labels_unread = ("approve-0", "held-quote", "after-quote", "after-token")
    found = sold(sell_results(*attempts) | dict.fromkeys(labels_unread, refused()))
    assert found == Refused("sell", "it lets the same tokens be sold twice", SELL_GAS)


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


@pytest.mark.parametrize(
    ("label", "fault"), [("held-quote", "node"), ("after-quote", "node"), ("after-token", "token")]
)
@pytest.mark.parametrize("answer", [refused(out_of_gas=True), did(b""), did(bytes(31))])
def test_a_balance_unread_around_the_sell_is_missing(label: str, fault: str, answer: StepResult) -> None:
    found = sold(sell_results(did(gas=SELL_GAS)) | {label: answer})
    assert isinstance(found, Missing)
    assert found.fault == fault


# --- the receiver ----------------------------------------------------------------------------------


def handed_results(*sells: StepResult, **changes: StepResult) -> Results:
    """The receiver's attempts at selling all, half and a tenth of what it was handed."""
    gas = sum(APPROVE_GAS + sell.gas_used for sell in sells)
    found = second_buy(WETH) | {
        "transfer": did(gas=51_000),
        "handed-quote": did(START_WEI),
        "after-quote": did(START_WEI + BACK_WEI - gas * GAS_PRICE_WEI),
    }
    for n, sell in enumerate(sells):
        found |= {f"approve-{n}-0": did(gas=APPROVE_GAS), f"sell-{n}-0": sell}
    return found | {label.replace("_", "-"): result for label, result in changes.items()}


def test_the_receivers_sell_is_read_from_its_own_balances() -> None:
    found = sold(handed_results(did(gas=SELL_GAS), no_more(), no_more()), HANDED)
    assert found == whole_sale()


@pytest.mark.parametrize(
    ("done", "tenths"), [((0,), 10), ((1,), 5), ((2,), 1), ((1, 2), 6)], ids=["all", "half", "tenth", "both"]
)
@pytest.mark.parametrize("known", [was_bought(), REBASED], ids=["plain", "rebased"])
def test_what_the_receiver_sold_is_the_parts_that_went_through(
    done: tuple[int, ...], tenths: int, known: Bought
) -> None:
    attempts = [did(gas=SELL_GAS + n) if n in done else no_more() for n in range(3)]
    found = sold(handed_results(*attempts), HANDED, known=known)
    parts = BOUGHT * tenths // 10
    assert found == Sold(PAID_WEI, BOUGHT, parts, parts, BACK_WEI, BUY_GAS, SELL_GAS + done[0])


def test_the_receiver_sold_exactly_what_its_plan_asked_for() -> None:
    odd = was_bought(10**18 + 7)
    plan = sold_by(WETH, HANDED, odd)
    _, receiver = who_trades(plan)
    found = sold(handed_results(no_more(), did(gas=SELL_GAS), did(gas=90_000)), HANDED, known=odd)
    assert isinstance(found, Sold)
    parts = ((10**18 + 7) // 2, (10**18 + 7) // 10)
    assert found.sold_raw == sum(parts)
    calls = {step.label: step.call for step in steps_of(plan)}
    for number, part in enumerate(parts, 1):
        expected = amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, part, receiver)
        assert (calls[f"approve-{number}-0"], calls[f"sell-{number}-0"]) == expected


@pytest.mark.parametrize("done", [(0, 1), (0, 2), (0, 1, 2)])
def test_a_receiver_that_sells_more_than_it_was_handed_is_refused(done: tuple[int, ...]) -> None:
    attempts = [did(gas=SELL_GAS + n) if n in done else no_more() for n in range(3)]
    found = sold(handed_results(*attempts), HANDED)
    assert found == Refused("sell", "it lets the same tokens be sold twice", SELL_GAS)


def test_a_part_that_rounds_to_none_is_read_as_the_one_unit_that_was_sold() -> None:
    few = was_bought(5)
    plan = sold_by(WETH, HANDED, few)
    _, receiver = who_trades(plan)
    sell = next(step.call for step in steps_of(plan) if step.label == "sell-2-0")
    assert sell == amm_v3.plan_sell(WETH.venue, TOKEN, CONTRACTS, 1, receiver)[-1]
    found = sold(handed_results(no_more(), no_more(), did(gas=SELL_GAS)), HANDED, known=few)
    assert isinstance(found, Sold)
    assert found.sold_raw == 1


def test_a_refused_hand_over_is_a_refused_transfer() -> None:
    results = handed_results(no_more(), transfer=refused(error_string("frozen"), 40_001))
    assert sold(results, HANDED) == Refused("transfer", "frozen", 40_001)


def test_a_receiver_that_cannot_sell_any_part_is_refused() -> None:
    assert sold(handed_results(no_more(), no_more(), no_more()), HANDED) == Refused("sell", "STF", 33_333)


def test_a_receiver_whose_approval_is_refused_is_told_so() -> None:
    refusals = {f"approve-{n}-0": refused(error_string("not you"), 30_001) for n in range(3)}
    results = handed_results(no_more(), no_more(), no_more())
    assert sold(results | refusals, HANDED) == Refused("approve", "not you", 30_001)


@pytest.mark.parametrize("moment", ["handed", "after"])
@pytest.mark.parametrize("answer", [refused(out_of_gas=True), did(b""), did(bytes(31))])
def test_a_receivers_balance_unread_is_missing(moment: str, answer: StepResult) -> None:
    found = sold(handed_results(did(gas=SELL_GAS)) | {f"{moment}-quote": answer}, HANDED)
    assert isinstance(found, Missing)
    assert found.fault == "node"


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
@PROBES
def test_every_label_that_is_read_is_in_the_plan(place: Place, probe: Probe) -> None:
    def balance(label: str) -> int:
        return 10**20 if label.startswith(("start-q", "bought-t")) else 0

    results = answers(sold_by(place, probe), balance)
    found = read_sell(results, place, ENVIRONMENT, probe, was_bought(), POLICY)
    # Everything goes through here: all of it is sold under every limit of the ladder.
    assert isinstance(found, Refused if probe in (WHOLE, HANDED) else Sold)
    once = {label: r for label, r in results.items() if not re.fullmatch(r"sell-[1-9](-0)?", label)}
    assert isinstance(read_sell(once, place, ENVIRONMENT, probe, was_bought(), POLICY), Sold)
    buy = read_buy(answers(bought_by(place), balance), place, ENVIRONMENT, 1)
    assert isinstance(buy, Bought)
    assert len(buy.held_later_raw) == 3
