"""What an eth is worth of other money, from pools whose prices the test makes up as fractions."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import cast

import msgspec
import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.rpc.client import Meter, Node, RpcCall, RpcError
from roundtrip.chain.simulate.rates import Rates, rate_calls, read_rate
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import MarketRates, Missing, QuoteHop, QuoteRate
from roundtrip.venues import amm_v3
from unit.chain.samples import PINNED, raw, word
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address

WETH, USDG = CONTRACTS.weth, CONTRACTS.usdg
USDG_PER_ETH = 3_500_000_000
MARKET = MarketRates(1_000, USDG_PER_ETH, 500, None)
BLIND = MarketRates(1_000, Missing("node", "no pool"), None, None)
TIERS = amm_v3.FEE_TIERS_PIPS
SIDES = pytest.mark.parametrize("asset", [BELOW, ABOVE], ids=["below the money", "above the money"])

Answer = msgspec.Raw | RpcError
NO_CODE = raw("0x")
PoolAt = tuple[Address, int]
"""A money and a fee."""


def uint(value: int) -> Answer:
    return raw("0x" + word(value).hex())


def sqrt_of(asset: Address, money: Address, asset_per_money: Fraction) -> int:
    """The sqrtPriceX96 of a pool where one unit of the money buys so many of the asset."""
    one_for_zero = asset_per_money if money < asset else 1 / asset_per_money
    return isqrt((one_for_zero.numerator << 192) // one_for_zero.denominator)


def rate_results(
    asset: Address, pools: dict[PoolAt, tuple[Fraction, int]], decimals: Answer | None = None
) -> list[Answer]:
    """Answers to ``rate_calls`` where ``pools`` have (asset for a unit of money, what a trade gives)."""
    answers: list[Answer] = [uint(18) if decimals is None else decimals]
    for money in (WETH, USDG):
        for fee in TIERS:
            price, reserve = pools.get((money, fee), (None, 0))
            answers.append(NO_CODE if price is None else uint(sqrt_of(asset, money, price)))
            answers.append(uint(reserve))
    return answers


def rate(
    asset: Address, pools: dict[PoolAt, tuple[Fraction, int]], market: MarketRates = MARKET
) -> QuoteRate | None:
    return read_rate(asset, rate_results(asset, pools), CONTRACTS, market)


TWENTY = Fraction(20)
PER_USDG = Fraction(10**12, 170)
"""170 dollars for a whole one, eighteen decimals against six."""


# --- what is asked ---------------------------------------------------------------------------------


@SIDES
def test_decimals_and_every_standard_pool_are_asked_at_the_pinned_block(asset: Address) -> None:
    calls = rate_calls(asset, CONTRACTS, MARKET, PINNED)
    assert len(calls) == 1 + 2 * 2 * len(TIERS)
    assert {call.method for call in calls} == {"eth_call"}
    asked = [call.params[0] for call in calls]
    assert all(call.params[1] == {"blockHash": PINNED.hash} for call in calls)
    assert asked[0] == {"to": asset, "data": "0x313ce567"}
    pools = [amm_v3.pool_address(CONTRACTS.v3_factory, asset, m, f) for m in (WETH, USDG) for f in TIERS]
    assert asked[1::2] == [{"to": pool, "data": "0x3850c7bd"} for pool in pools]
    paid = [(WETH, 10**17, fee) for fee in TIERS] + [(USDG, USDG_PER_ETH // 10, fee) for fee in TIERS]
    for (money, amount_raw, fee), call in zip(paid, asked[2::2], strict=True):
        question = (money, asset, amount_raw, fee, 0)
        answer = encode(["(address,address,uint256,uint24,uint160)"], [question]).hex()
        assert call == {"to": CONTRACTS.quoter_v2, "data": "0xc6a5026a" + answer}


# --- price and way ---------------------------------------------------------------------------------


@SIDES
@pytest.mark.parametrize("fee", TIERS)
def test_through_weth_it_is_one_hop(asset: Address, fee: int) -> None:
    found = rate(asset, {(WETH, fee): (TWENTY, 10**18)})
    assert found is not None
    assert (found.asset, found.route, found.decimals) == (asset, (QuoteHop(asset, fee),), 18)
    assert abs(found.units_per_eth_raw - 20 * 10**18) <= 10


@SIDES
def test_through_usdg_it_is_two_hops(asset: Address) -> None:
    found = rate(asset, {(USDG, 3000): (PER_USDG, 10**9)})
    assert found is not None
    assert found.route == (QuoteHop(USDG, 500), QuoteHop(asset, 3000))
    exact = USDG_PER_ETH * PER_USDG
    assert abs(found.units_per_eth_raw - exact) * 10**12 < exact


@given(st.fractions(Fraction(1, 10**9), 10**9), st.booleans())
def test_the_rate_is_the_pools_price_to_twelve_digits(price: Fraction, above: bool) -> None:
    asset = ABOVE if above else BELOW
    found = rate(asset, {(WETH, 500): (price, 1)})
    exact = price * 10**18
    if found is None:
        assert exact < 1
    else:
        # The root is cut to a whole number of 2^-96, and so are the units.
        assert abs(found.units_per_eth_raw - exact) <= 1 + exact / 10**12


@SIDES
def test_the_pool_that_gives_most_wins(asset: Address) -> None:
    pools = {(WETH, fee): (Fraction(10 + n), 10**18 * (n % 3 + 1)) for n, fee in enumerate(TIERS)}
    found = rate(asset, pools)
    assert found is not None
    assert found.route == (QuoteHop(asset, 3000),)
    assert abs(found.units_per_eth_raw - 12 * 10**18) <= 10


@SIDES
@pytest.mark.parametrize(("dollars", "wins"), [(3_499, WETH), (3_501, USDG)])
def test_the_way_that_gives_most_is_gone(asset: Address, dollars: int, wins: Address) -> None:
    # What an eth's worth brings there: nobody gives more than the pool that is cheapest.
    pools = {(WETH, 500): (TWENTY, 3_500), (USDG, 100): (PER_USDG, dollars)}
    found = rate(asset, pools)
    assert found is not None
    assert found.route == (
        (QuoteHop(asset, 500),) if wins == WETH else (QuoteHop(USDG, 500), QuoteHop(asset, 100))
    )


@pytest.mark.parametrize("market", [BLIND, replace(MARKET, pool_fee_pips=None)])
def test_where_no_way_leads_to_dollars_no_way_leads_through_them(market: MarketRates) -> None:
    deep = {(USDG, 100): (PER_USDG, 10**12)}
    assert rate(ABOVE, deep, market) is None
    found = rate(ABOVE, deep | {(WETH, 500): (TWENTY, 1)}, market)
    assert found is not None
    assert found.route == (QuoteHop(ABOVE, 500),)


def test_without_a_pool_there_is_no_rate() -> None:
    assert rate(ABOVE, {}) is None
    assert rate(ABOVE, {(WETH, 500): (TWENTY, 0)}) is None


@pytest.mark.parametrize("gone", [RpcError(3, "reverted"), NO_CODE, raw("0xzz"), raw(5), uint(0)])
def test_a_pool_without_price_or_without_a_balance_is_passed_over(gone: Answer) -> None:
    for at in (3, 4):
        answers = rate_results(ABOVE, {(WETH, 500): (Fraction(99), 10**20), (WETH, 3000): (TWENTY, 1)})
        answers[at] = gone
        found = read_rate(ABOVE, answers, CONTRACTS, MARKET)
        assert found is not None
        assert found.route == (QuoteHop(ABOVE, 3000),)


@pytest.mark.parametrize(("answer", "kept"), [(uint(0), True), (uint(36), True), (uint(37), False)])
def test_decimals_that_cannot_be_are_no_rate(answer: Answer, kept: bool) -> None:
    answers = rate_results(ABOVE, {(WETH, 500): (TWENTY, 1)}, answer)
    assert (read_rate(ABOVE, answers, CONTRACTS, MARKET) is not None) is kept


@pytest.mark.parametrize("answer", [RpcError(3, "reverted"), NO_CODE, raw("0x12"), raw(None)])
def test_money_that_does_not_tell_its_decimals_has_no_rate(answer: Answer) -> None:
    assert (
        read_rate(ABOVE, rate_results(ABOVE, {(WETH, 500): (TWENTY, 1)}, answer), CONTRACTS, MARKET) is None
    )


def test_a_price_that_gives_nothing_for_an_eth_is_no_rate() -> None:
    assert rate(ABOVE, {(WETH, 500): (Fraction(1, 10**19), 10**18)}) is None


# --- kept for a while ------------------------------------------------------------------------------


class RatesNode:
    """Answers for the assets it knows, in whatever order they are asked."""

    def __init__(self, **pools: Fraction) -> None:
        self.prices = {Address(asset): price for asset, price in pools.items()}
        self.asked: list[list[Address]] = []
        self.dead = False

    async def batch(self, calls: Sequence[RpcCall], meter: Meter) -> list[Answer]:
        targets = [cast(dict[str, Address], call.params[0])["to"] for call in calls]
        assets = targets[:: len(rate_calls(ABOVE, CONTRACTS, MARKET, PINNED))]
        self.asked.append(assets)
        meter.trips += 1
        if self.dead:
            raise NodeFault("it took too long")
        answers: list[Answer] = []
        for asset in assets:
            known = {(WETH, 500): (self.prices[asset], 10**18)} if asset in self.prices else {}
            answers += rate_results(asset, known)
        return answers


class Desk:
    """Rates over a node, by a clock that stands still until it is moved."""

    def __init__(self, node: RatesNode) -> None:
        self.node, self.now, self.meter = node, 500.0, Meter()
        self.rates = Rates(cast(Node, node), CONTRACTS, lambda: self.now)

    async def join(self, *assets: Address, market: MarketRates = MARKET) -> MarketRates:
        return await self.rates.join(market, assets, PINNED, self.meter)


THIRD = address(0xAA << 152)


async def test_each_money_gets_its_own_rate_in_one_trip() -> None:
    desk = Desk(RatesNode(**{ABOVE: Fraction(20), BELOW: Fraction(3)}))
    market = await desk.join(ABOVE, THIRD, BELOW, ABOVE)
    assert {r.asset: round(r.units_per_eth_raw / 10**18) for r in market.rates} == {BELOW: 3, ABOVE: 20}
    assert replace(market, rates=()) == MARKET
    assert desk.node.asked == [sorted((ABOVE, BELOW, THIRD))]
    assert desk.meter.trips == 1


async def test_a_rate_is_kept_for_half_a_minute() -> None:
    desk = Desk(RatesNode(**{ABOVE: Fraction(20)}))
    first = await desk.join(ABOVE)
    desk.node.prices[ABOVE] = Fraction(30)
    desk.now += 30.0
    assert await desk.join(ABOVE) == first
    assert len(desk.node.asked) == 1
    desk.now += 0.001
    (later,) = (await desk.join(ABOVE)).rates
    assert round(later.units_per_eth_raw / 10**18) == 30
    assert len(desk.node.asked) == 2


async def test_that_there_is_no_way_is_kept_too() -> None:
    desk = Desk(RatesNode())
    assert (await desk.join(ABOVE)).rates == ()
    desk.now += 29
    assert (await desk.join(ABOVE)).rates == ()
    assert len(desk.node.asked) == 1


async def test_only_what_is_not_known_is_asked() -> None:
    desk = Desk(RatesNode(**{ABOVE: Fraction(20), BELOW: Fraction(3)}))
    await desk.join(BELOW)
    assert [r.asset for r in (await desk.join(ABOVE, BELOW)).rates] == [BELOW, ABOVE]
    assert desk.node.asked == [[BELOW], [ABOVE]]
    assert [r.asset for r in (await desk.join(ABOVE)).rates] == [ABOVE]


async def test_where_nothing_is_wanted_nothing_is_asked() -> None:
    desk = Desk(RatesNode())
    assert await desk.join() == MARKET
    assert desk.node.asked == []


async def test_a_dead_node_leaves_the_rates_away_and_is_asked_again() -> None:
    desk = Desk(RatesNode(**{ABOVE: Fraction(20)}))
    desk.node.dead = True
    assert await desk.join(ABOVE) == MARKET
    desk.node.dead = False
    assert len((await desk.join(ABOVE)).rates) == 1


async def test_a_dead_node_leaves_away_what_was_not_all_known_and_nothing_else() -> None:
    desk = Desk(RatesNode(**{ABOVE: Fraction(20)}))
    known = await desk.join(ABOVE)
    desk.node.dead = True
    assert await desk.join(ABOVE) == known
    assert await desk.join(ABOVE, BELOW) == MARKET
    assert await desk.join(ABOVE, BELOW, market=known) == known
