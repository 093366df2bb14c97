"""Which side of a pool is the token, which is money, and since when."""

import itertools

import pytest

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.venues.base import Contracts
from roundtrip.venues.pair_order import sides
from support.told_blocks import (
    USDG,
    WETH,
    launched,
    sent,
    v3_at,
    v3_minted,
    v3_opened,
    v3_swap,
    v4_at,
    v4_moved,
    v4_opened,
    v4_swap,
)
from unit.sync.telling import ALICE, CURVE, DEV, HIGH, LOW, NVDA, SPY, SyncStory
from unit.venues.logs import NETWORK
from unit.venues.network import SWAPPED, address

QUOTES = {NVDA, SPY}
CURRENCIES = (ZERO_ADDRESS, WETH, USDG, NVDA, SPY, LOW, HIGH)


@pytest.mark.parametrize("network", [NETWORK, SWAPPED])
@pytest.mark.parametrize(("low", "high"), tuple(itertools.combinations(sorted(CURRENCIES), 2)))
def test_sides_are_the_two_currencies_and_the_better_money_is_the_quote(
    low: Address, high: Address, network: Contracts
) -> None:
    token, quote, is_money = sides(low, high, QUOTES, network)
    assert {token, quote} == {low, high}
    ranks = {ZERO_ADDRESS: 0, network.weth: 1, network.usdg: 2, NVDA: 3, SPY: 3}
    assert is_money == (low in ranks or high in ranks)
    if {low, high} == {network.weth, network.usdg}:
        assert (token, quote) == (network.weth, network.usdg)
    elif is_money:
        assert ranks.get(quote, 4) <= ranks.get(token, 4)
    else:
        assert (token, quote) == (low, high)


def test_of_two_quotes_of_launches_the_lower_address_is_the_money() -> None:
    """Whichever, but for everybody the same."""
    assert sides(NVDA, SPY, QUOTES, NETWORK) == (SPY, NVDA, True)


def test_a_pool_of_money_is_one_from_its_first_block() -> None:
    (pool,) = SyncStory().block(sent(v3_opened(HIGH, WETH, 500))).pools
    assert (pool.at, pool.kind, pool.token, pool.quote) == (v3_at(HIGH, WETH, 500), "amm_v3", HIGH, WETH)
    assert (pool.in_money_from, pool.fee_pips, pool.hook) == (100, 500, None)
    assert (pool.spot.block_number, pool.spot.log_index) == (100, 0)


def test_a_pool_is_opened_once() -> None:
    story = SyncStory()
    assert len(story.block(sent(v3_opened(LOW, WETH), v3_opened(LOW, WETH))).pools) == 1
    assert story.block(sent(v3_opened(LOW, WETH))).pools == []


def test_swaps_of_two_strangers_are_no_trades() -> None:
    story = SyncStory()
    (pool,) = story.block(sent(v3_opened(LOW, HIGH))).pools
    assert (pool.token, pool.quote, pool.in_money_from) == (LOW, HIGH, None)
    batch = story.block(sent(v3_swap(v3_at(LOW, HIGH), 5, -7), v3_minted(v3_at(LOW, HIGH), ALICE, 9, 1, 1)))
    assert (batch.trades, batch.liquidity) == ([], [])


@pytest.mark.parametrize("quote", [NVDA, SPY])
@pytest.mark.parametrize("token", [LOW, HIGH])
def test_a_quote_that_becomes_money_turns_the_pools_that_are_there(token: Address, quote: Address) -> None:
    """Swaps before count for nothing, those after it do, also within one transaction."""
    story = SyncStory()
    at = v4_at(token, quote)
    pays = (-7, 5) if quote < token else (5, -7)
    swap = v4_swap(at, *pays)
    story.block(sent(v4_opened(token, quote)), sent(swap))
    batch = story.block(
        sent(swap, launched(address(0x7), CURVE, DEV, quote), swap), sent(v4_moved(at, DEV, 3))
    )
    assert batch.new_quotes == [(quote, 101)]
    (reoriented,) = batch.reoriented
    assert (reoriented.at, reoriented.token, reoriented.quote, reoriented.in_money_from) == (
        at,
        token,
        quote,
        101,
    )
    (trade,) = batch.trades
    assert (trade.spot.log_index, trade.token, trade.quote) == (2, token, quote)
    assert (trade.buys, trade.token_raw, trade.quote_raw) == (True, 5, 7)
    assert len(batch.liquidity) == 1
    again = story.block(sent(launched(address(0x8), address(0x9), DEV, quote), swap))
    assert (again.new_quotes, again.reoriented, len(again.trades)) == ([], [], 1)


def test_a_pool_of_two_quotes_stays_as_the_first_of_them_left_it() -> None:
    story = SyncStory()
    story.block(sent(v4_opened(NVDA, SPY)))
    story.block(sent(launched(address(7), CURVE, DEV, SPY)))
    batch = story.block(sent(launched(address(8), address(9), DEV, NVDA)))
    assert batch.new_quotes == [(NVDA, 102)]
    assert batch.reoriented == []
    pool = story.known.pools[v4_at(NVDA, SPY)]
    assert pool is not None
    assert (pool.token, pool.quote, pool.in_money_from) == (NVDA, SPY, 101)


@pytest.mark.parametrize("quote", [ZERO_ADDRESS, WETH, USDG])
def test_what_is_money_anyway_never_becomes_money(quote: Address) -> None:
    batch = SyncStory().block(sent(launched(HIGH, CURVE, DEV, quote)))
    assert (batch.new_quotes, batch.reoriented) == ([], [])
    (curve,) = batch.pools
    assert (curve.at, curve.kind, curve.token, curve.quote) == (CURVE, "launchpad_curve", HIGH, quote)
    assert curve.in_money_from == 100


def test_a_launchpad_pool_is_known_by_its_hook() -> None:
    hook = NETWORK.launchpad_hook
    assert hook is not None
    own, other = (
        SyncStory().block(sent(v4_opened(HIGH, ZERO_ADDRESS, hook), v4_opened(HIGH, ZERO_ADDRESS, DEV))).pools
    )
    assert (own.kind, own.hook) == ("launchpad_pool", hook)
    assert (other.kind, other.hook) == ("amm_v4", DEV)
