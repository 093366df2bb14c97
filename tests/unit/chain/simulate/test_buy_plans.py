"""What a buy asks for, in trip 1 and at the head of trip 2."""

from dataclasses import replace
from itertools import accumulate
from typing import get_args

import pytest

from roundtrip.chain.simulate.legs import VenuePlace, size_raw
from roundtrip.chain.simulate.probe_plans import buy_plan, pay_out_block
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, WEI_PER_ETH
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import MarketRates, Missing, Probe, QuoteHop, Size
from roundtrip.domain.check.price import size_wei
from roundtrip.domain.check.venue_reading import MAIN_SIZES
from roundtrip.venues import abi, amm_v3, erc20
from unit.chain.samples import ENVIRONMENT
from unit.chain.trades import (
    BOUGHT,
    BUY_GAS,
    BUYER,
    CARELESS,
    ETH,
    EVERY_PLACE,
    HALF,
    HANDED,
    HANDED_HALF,
    LADDER,
    PLACES,
    PROBES,
    READER,
    RECEIVER,
    SETTING,
    SLIVER,
    SOLD_LABELS,
    TOKEN,
    USDG,
    WETH,
    WHOLE,
    asks_balance_of_token,
    bought_by,
    labels,
    limits,
    pulled_by,
    sold_by,
    steps_of,
    was_bought,
    who_trades,
)
from unit.venues.network import CONTRACTS, address

SIZES: tuple[Size, ...] = get_args(Size)
NO_PRICE = Missing("node", "no pool has a price for eth")
BLIND = replace(SETTING, market=MarketRates(1_000, NO_PRICE, None, None))


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
    found = size_raw("probe", VenuePlace(other, amm_v3), SETTING, ENVIRONMENT)
    assert isinstance(found, Missing)
    assert found.fault == "node"


# --- the buy ---------------------------------------------------------------------------------------


BUY_LABELS = {
    "weth": ["sweep", "start-quote", "start-token", "buy", "bought-quote", "bought-token"],
    "usdg": [
        "sweep", "fund", "start-quote", "start-token", "allow-0", "buy", "bought-quote", "bought-token",
    ],
}  # fmt: skip


@PLACES
def test_a_buy_stands_between_two_looks_at_the_balances(place: VenuePlace) -> None:
    plan = bought_by(place)
    assert [block.delay_s for block in plan.blocks] == [1, 13, 3587, 82_800, 1]
    assert [labels(plan, n) for n in (1, 2, 3)] == [["held-13"], ["held-3600"], ["held-86400"]]
    assert labels(plan, 0) == BUY_LABELS[place.venue.quote]
    assert labels(plan, 4) == ["approve-0"]
    assert limits(plan, "buy") == [2**24]
    assert set(limits(plan, "allow")) <= {POLICY.approve_gas_limit}
    assert set(limits(plan, "fund")) <= {POLICY.transfer_gas_limit}
    assert set(limits(plan, "start") + limits(plan, "bought")) == {POLICY.read_gas_limit}


@PLACES
@pytest.mark.parametrize(("size", "blocks"), [(s, 5 if s in MAIN_SIZES else 1) for s in SIZES])
def test_only_of_what_may_be_sold_later_it_is_asked_what_is_held_then_and_what_approvals_take(
    place: VenuePlace, size: Size, blocks: int
) -> None:
    assert len(bought_by(place, size).blocks) == blocks


@PLACES
def test_what_is_held_is_asked_when_this_environment_would_sell(place: VenuePlace) -> None:
    plan = bought_by(place, environment=CARELESS)
    times_s = list(accumulate(block.delay_s for block in plan.blocks[:-1]))
    assert [time_s - 1 for time_s in times_s[1:]] == [13 + 14, 3600 + 15 * 14, 86_400 + 360 * 14]
    for step in (step for block in plan.blocks[1:-1] for step in block.steps):
        assert (step.sender, step.gas_limit) == (READER, POLICY.read_gas_limit)
        assert (step.call.to, step.call.data) == (TOKEN, abi.call(erc20.BALANCE_OF, BUYER))


@EVERY_PLACE
def test_at_last_the_buyer_makes_the_approvals_of_a_sell_so_that_their_gas_is_known(
    place: VenuePlace,
) -> None:
    last = bought_by(place).blocks[-1]
    expected = place.file.plan_sell(place.venue, TOKEN, CONTRACTS, 1, BUYER)[:-1]
    assert tuple(step.call for step in last.steps) == expected
    assert [step.label for step in last.steps] == [f"approve-{n}" for n in range(len(expected))]
    assert {(step.sender, step.gas_limit) for step in last.steps} == {(BUYER, POLICY.transfer_gas_limit)}


@EVERY_PLACE
def test_every_buy_begins_by_clearing_the_router_of_strangers_dust(place: VenuePlace) -> None:
    plans = [bought_by(place, size) for size in SIZES]
    plans += [sold_by(place, probe) for probe in (WHOLE, HALF, SLIVER, HANDED, HANDED_HALF)]
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
    assert fund.call == amm_v3.plan_eth_to(CONTRACTS, (QuoteHop(CONTRACTS.usdg, 500),), 350_000_000, most_wei)
    assert fund.sender == BUYER
    assert dict(plan.blocks[0].balances)[BUYER] - fund.call.value_wei == POLICY.gas_float_wei // 2


@PLACES
def test_the_wallets_begin_with_what_they_spend_and_the_gas(place: VenuePlace) -> None:
    block = bought_by(place, "large").blocks[0]
    assert dict(block.balances) == {
        BUYER: 10**18 + POLICY.gas_float_wei,
        RECEIVER: POLICY.gas_float_wei,
        READER: WEI_PER_ETH,
    }
    assert dict(block.nonces) == {BUYER: 17, RECEIVER: 17}


@PLACES
def test_a_wallet_may_hold_far_more_than_it_trades(place: VenuePlace) -> None:
    balances = dict(bought_by(place, environment=CARELESS).blocks[0].balances)
    assert balances == {BUYER: 10**17 + 3 * 10**18, RECEIVER: 3 * 10**18, READER: WEI_PER_ETH}


def test_where_gas_is_dear_the_wallet_can_still_pay_for_every_attempt() -> None:
    dear = replace(ENVIRONMENT, base_fee_wei=10**11, max_fee_wei=2 * 10**11)
    balances = dict(buy_plan(WETH, SETTING, dear, "probe", 10**17).blocks[0].balances)
    assert balances[BUYER] - 10**17 >= (2**24 + sum(LADDER)) * dear.max_fee_wei
    assert balances[RECEIVER] >= sum(LADDER) * dear.max_fee_wei


@PLACES
def test_balances_are_those_of_the_trader_in_the_token_and_in_the_money(place: VenuePlace) -> None:
    calls = {step.label: step.call for step in steps_of(bought_by(place))}
    assert (calls["start-token"].to, calls["start-token"].data) == (TOKEN, abi.call(erc20.BALANCE_OF, BUYER))
    money = calls["start-quote"]
    if place is WETH:
        assert (money.to, money.data) == (CONTRACTS.multicall3, abi.call("0x4d2301cc", BUYER))
    else:
        assert (money.to, money.data) == (CONTRACTS.usdg, abi.call(erc20.BALANCE_OF, BUYER))
    assert calls["bought-token"] == calls["start-token"]
    assert calls["bought-quote"] == money


@PLACES
def test_the_second_trip_buys_what_the_first_did_with_a_wallet_of_its_own(place: VenuePlace) -> None:
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
@PROBES
@pytest.mark.parametrize(
    ("known_gas", "limit"),
    [(1, 1), (BUY_GAS, 226_504), (2**24 * 2 // 3, 2**24 - 1), (2**24 * 2 // 3 + 1, 2**24), (2**24, 2**24)],
)
def test_a_buy_whose_gas_is_known_carries_half_as_much_again(
    place: VenuePlace, probe: Probe, known_gas: int, limit: int
) -> None:
    known = was_bought(gas=known_gas)
    assert limits(sold_by(place, probe, known), "buy") == [limit]
    assert limits(pulled_by(place, known), "buy") == [limit]
    assert limit <= POLICY.buy_gas_limit


def test_an_environment_offers_its_own_part_of_the_size() -> None:
    for plan in (bought_by(WETH, environment=CARELESS), sold_by(WETH, WHOLE, environment=CARELESS)):
        buy = next(step for step in steps_of(plan) if step.label == "buy")
        assert buy.call.value_wei == 10**17 * 7_350 // BPS


# --- moves made directly ---------------------------------------------------------------------------


@PLACES
def test_before_the_pull_no_balance_of_the_token_is_asked_at_all(place: VenuePlace) -> None:
    steps = steps_of(pulled_by(place))
    pulled = [step.label for step in steps].index("pull")
    assert not any(asks_balance_of_token(step) for step in steps[:pulled])
    assert [step.label for step in steps[pulled:]] == ["pull", "pool-held"]


@PLACES
def test_the_routers_own_pull_comes_after_the_approval(place: VenuePlace) -> None:
    plan = pulled_by(place)
    assert labels(plan, 0) == SOLD_LABELS[place.venue.quote]
    assert [block.delay_s for block in plan.blocks] == [1, 13]
    assert labels(plan, 1) == ["approve-0", "pull", "pool-held"]
    approve, pull, _ = plan.blocks[1].steps
    puller, call = amm_v3.plan_pull(place.venue, TOKEN, CONTRACTS, BOUGHT, BUYER)
    assert (approve.sender, pull.sender, pull.call) == (BUYER, puller, call)
    assert {approve.gas_limit, pull.gas_limit} == {POLICY.approve_gas_limit}


def test_the_puller_is_paid_for_only_after_the_buy() -> None:
    plan = pulled_by(WETH)
    assert CONTRACTS.swap_router02 not in dict(plan.blocks[0].balances)
    assert dict(plan.blocks[1].balances) == {CONTRACTS.swap_router02: WEI_PER_ETH}


def test_every_candidate_pool_is_asked_to_pay_out() -> None:
    block = pay_out_block((WETH, USDG), SETTING, ENVIRONMENT)
    assert [(step.label, step.sender) for step in block.steps] == [
        ("pay-out-0", WETH.venue.pool),
        ("pay-out-1", USDG.venue.pool),
    ]
    assert dict(block.balances) == {WETH.venue.pool: WEI_PER_ETH, USDG.venue.pool: WEI_PER_ETH}
    assert {step.gas_limit for step in block.steps} == {POLICY.approve_gas_limit}
