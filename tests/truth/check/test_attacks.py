"""Pools that strangers put beside an honest token, to spoil its answer or to keep it from being found.

Anybody can put a pool beside any token, at any price and with any hook. What decides is where most is had in
the end, and what a real wallet meets there is what was told, to the wei.
"""

import time
from dataclasses import replace

import pytest

from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.rates import Rates
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Crowd, VenueEvidence
from roundtrip.domain.check.sales import loss_bps
from roundtrip.services.engine.check_run import try_sells
from roundtrip.services.engine.token_check import start_check
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.deploy import ZERO
from roundtrip_development.devnet.stories import PoolPlan
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.attacks import (
    DYNAMIC,
    ETH,
    FAIR,
    PROBE_WEI,
    Parties,
    assert_told,
    assert_undisturbed,
    look,
    pass_time,
    real_trade,
)
from support.nodes import node_of
from support.trader import Market, MarketTrader
from support.wallet import Wallet

BOUND_S = 10.0
"""Far more than a check takes."""


# --- pools that would spoil an honest token's answer ------------------------------------------------


@pytest.mark.parametrize(
    ("tokens_per_eth", "fee_pips", "tokens_raw"),
    [(35_000, 100, 10**6 * ETH), (35, 1, ETH)],
    ids=["a thousand times dearer", "a million times dearer, with one token in it"],
)
async def test_an_absurdly_dear_pool_beside_a_fair_one_decides_nothing(
    ctx: Context, rpc: SyncRpc, built: Built, tokens_per_eth: int, fee_pips: int, tokens_raw: int
) -> None:
    """What is bought there sells back there for nearly all of it, out of the buyer's own money, until
    somebody brings tokens from the fair pool."""
    parties = Parties(rpc, built)
    token = parties.honest(FAIR)
    before = await look(ctx, token)
    dear = Market(token, ZERO, "", fee_pips, 1)
    parties.token_alone(dear, tokens_per_eth, tokens_raw)
    after = await look(ctx, token)
    assert_undisturbed(rpc, built, token, before, after)
    got = MarketTrader(Wallet(rpc, built.contracts, "dear"), built.contracts, dear).buy(PROBE_WEI)
    assert got is not None
    assert got * 900 < after.bought().received_raw


async def test_tokens_of_the_fair_pool_take_what_was_paid_in_a_dear_one(rpc: SyncRpc, built: Built) -> None:
    """Why a dear pool is no place to be sent to, however little a round trip costs there."""
    parties = Parties(rpc, built)
    token = parties.honest(FAIR)
    dear = Market(token, ZERO, "", 100, 1)
    parties.token_alone(dear, 35_000, 10**6 * ETH)
    victim = MarketTrader(Wallet(rpc, built.contracts, "victim"), built.contracts, dear)
    got = victim.buy(PROBE_WEI)
    assert got is not None
    taker = Wallet(rpc, built.contracts, "taker")
    cheap = taker.buy(token, "weth", FAIR.fee_pips, PROBE_WEI // 500)
    assert cheap is not None
    taken = MarketTrader(taker, built.contracts, dear).sell(min(cheap, got))
    assert taken.back_raw > PROBE_WEI * 99 // 100
    assert not victim.sell(got).ok


async def test_a_crowd_of_cheap_pools_with_a_fee_of_nine_tenths_leaves_the_fair_one_in(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """Each brings more for the probe than the fair pool, even after its fee; nothing comes back there."""
    parties = Parties(rpc, built)
    token = parties.honest(FAIR)
    before = await look(ctx, token)
    crowd = [Market(token, ZERO, "", 900_000, 60 + n) for n in range(POLICY.most_venues)]
    for cheap in crowd:
        parties.token_alone(cheap, 370_000_000, 4_500_000 * ETH, steps=3)
    after = await look(ctx, token)
    assert len(after.evidence.venues) == POLICY.most_venues
    assert_undisturbed(rpc, built, token, before, after)
    trader = MarketTrader(Wallet(rpc, built.contracts, "crowded"), built.contracts, crowd[0])
    got = trader.buy(PROBE_WEI)
    assert got is not None
    assert got > after.bought().received_raw
    fill = trader.sell(got)
    assert not fill.ok or loss_bps(PROBE_WEI, fill.back_raw) > 9000


@pytest.mark.parametrize("cheap", [False, True], ids=["third", "behind two cheaper pools that refuse sells"])
async def test_the_whole_crowd_trades_in_two_pools_and_in_the_one_that_decides(
    ctx: Context, rpc: SyncRpc, built: Built, cheap: bool
) -> None:
    parties = Parties(rpc, built)
    hook = "revert_on_sell" if cheap else ""
    others = [
        PoolPlan("eth", 3000, 20_000, 1400, version=4, hook=hook, tick_spacing=60 + number)
        for number in range(2)
    ]
    small = replace(FAIR, quote_milli=18_000, supply_bps=1200, fee_pips=10_000)
    hooks = {f"{hook}_eth": parties.hook(hook)} if cheap else None
    seen = await look(ctx, parties.honest(replace(FAIR, supply_bps=1000), *others, small, hooks=hooks))
    traded = [is_whole(venue) for venue in seen.evidence.venues]
    assert seen.judgement.verdict.code == "ok"
    assert is_whole(seen.evidence.venues[seen.judgement.best or 0])
    assert sorted(traded) == ([True] * 4 if cheap else [False, False, True, True])


def is_whole(venue: VenueEvidence) -> bool:
    """All of the crowd traded there; wallets of earlier checks may have, too."""
    assert isinstance(venue.crowd, Crowd)
    return len(venue.crowd.trades) > sum(POLICY.crowd_counts)


async def test_for_who_chooses_the_venue_by_a_size_of_his_own_all_trade_everywhere(
    ctx: Context, built: Built, rpc: SyncRpc
) -> None:
    """A trade of another size may go to a pool that is not among the best two of a check."""
    parties = Parties(rpc, built)
    tiers = [replace(FAIR, supply_bps=1000, fee_pips=fee) for fee in (500, 3000, 10_000)]
    token = Address(parties.honest(*tiers))
    await ctx.heads.refresh()
    bought = await start_check(ctx, ctx.heads.current(), token, Meter(), crowd=True)
    evidence = await try_sells(bought, Meter())
    assert [is_whole(venue) for venue in evidence.venues] == [True] * len(tiers)


async def test_a_pool_that_pays_the_buyer_back_leaves_the_answer_alone(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """Where a buy costs nothing there is no loss to tell: that is the pool's matter, not the token's."""
    parties = Parties(rpc, built)
    token = parties.honest(FAIR)
    before = await look(ctx, token)
    hook = parties.hook("pays_back")
    parties.stranger.receipt(parties.stranger.send(hook, "0x", ETH))
    generous = Market(token, ZERO, "", 3000, 60, hook)
    parties.token_alone(generous, 35, 10**6)
    assert_undisturbed(rpc, built, token, before, await look(ctx, token))
    wallet = Wallet(rpc, built.contracts, "paid back")
    assert MarketTrader(wallet, built.contracts, generous).buy(PROBE_WEI)
    assert wallet.eth() > 10 * ETH - PROBE_WEI // 10


@pytest.mark.parametrize("on_sell", [False, True], ids=["on a buy", "on a sale"])
async def test_hooks_that_flood_cost_an_honest_token_nothing(
    ctx: Context, rpc: SyncRpc, built: Built, on_sell: bool
) -> None:
    """Together they say more than an answer may hold; each is asked apart."""
    parties = Parties(rpc, built)
    token = parties.honest(FAIR)
    before = await look(ctx, token)
    hook = parties.hook("floods", on_sell)
    floods = [Market(token, ZERO, "", 100, spacing, hook) for spacing in range(1, 7)]
    for market in floods:
        parties.token_alone(market, 35_000, 10**4 * ETH)
    started = time.perf_counter()
    after = await look(ctx, token)
    assert time.perf_counter() - started < BOUND_S
    assert_undisturbed(rpc, built, token, before, after)
    trader = MarketTrader(Wallet(rpc, built.contracts, "flooded"), built.contracts, floods[0])
    got = trader.buy(PROBE_WEI)
    assert (got is not None) is on_sell
    assert not got or not trader.sell(got).ok


async def test_hooks_that_burn_gas_cost_an_honest_token_little_time(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """Of pools with strangers' hooks only so many are tried, and each with little gas."""
    parties = Parties(rpc, built)
    token = parties.honest(FAIR)
    before = await look(ctx, token)
    hook = parties.hook("burns_gas")
    burning = [Market(token, ZERO, "", 100, spacing, hook) for spacing in range(1, 32)]
    for market in burning:
        parties.empty_pool(market)
    started = time.perf_counter()
    after = await look(ctx, token)
    assert time.perf_counter() - started < BOUND_S
    assert_undisturbed(rpc, built, token, before, after)
    assert after.evidence.left_out == 0
    trader = MarketTrader(Wallet(rpc, built.contracts, "burnt"), built.contracts, burning[0])
    assert trader.buy(PROBE_WEI) is None


@pytest.mark.parametrize("key", ["graduated", "curve"])
async def test_a_hook_that_is_kind_at_first_does_not_win_over_the_launchpads_own_venue(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    """Free for ten minutes and 70 % after an hour, against the 2 % of every launch."""
    parties, token = Parties(rpc, built), built.tokens[key]
    before = await look(ctx, token)
    parties.owner.account = built.accounts[6]
    parties.give(token, parties.stranger.account, 5 * 10**6 * ETH)
    kind = Market(token, ZERO, "", DYNAMIC, 60, parties.hook("kind_at_first"))
    parties.token_alone(kind, 35_000, 4 * 10**6 * ETH)
    after = await look(ctx, token)
    assert_undisturbed(rpc, built, token, before, after)
    fill = real_trade(rpc, built, token, after, after_s=3600)
    assert loss_bps(after.bought().paid_raw, fill.back_raw) < 250
    trader = MarketTrader(Wallet(rpc, built.contracts, "kind"), built.contracts, kind)
    got = trader.buy(PROBE_WEI)
    assert got is not None
    pass_time(rpc, 3600)
    assert loss_bps(PROBE_WEI, trader.sell(got).back_raw) > 6900


# --- pools that would set what money is worth -------------------------------------------------------


async def test_a_pool_with_eth_alone_does_not_set_what_a_share_is_worth(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """More eth lies in it than in any other pool of the share, at a thousand million shares for one."""
    token, share = built.tokens["curve_other"], built.contracts["share"]
    before = await look(ctx, token)
    Parties(rpc, built).eth_alone(share, 10**9 * ETH, 1100)
    ctx = replace(ctx, rates=Rates(ctx.node, ctx.contracts))
    after = await look(ctx, token)
    assert after.said() == before.said() == ("ok", "ok")
    assert after.evidence.market.rates == before.evidence.market.rates
    assert after.price() == before.price()
    parties, wallet = Parties(rpc, built), Wallet(rpc, built.contracts, "shareholder")
    offered_raw = after.bought().offered_raw
    parties.give(share, wallet.address, offered_raw)
    trader = MarketTrader(wallet, built.contracts, after.market())
    got = trader.buy(offered_raw)
    assert got == after.bought().received_raw
    pass_time(rpc, 13)
    assert trader.sell(got).back_raw == after.sold().back_raw


async def test_a_pool_with_eth_alone_does_not_set_what_an_eth_is_worth(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """It asks ten million times the price for its eth, and more of it lies there than in the fair pool."""
    keys = ("plain", "usdg_pool", "curve_usdg")
    before = {key: await look(ctx, built.tokens[key]) for key in keys}
    Parties(rpc, built).eth_alone(built.contracts["usdg"], 35 * 10**9 * 10**6, 1100)
    for key in keys:
        after = await look(ctx, built.tokens[key])
        assert after.said() == before[key].said() == ("ok", "ok")
        assert after.evidence.market.usdg_per_eth_raw == before[key].evidence.market.usdg_per_eth_raw
        assert after.price() == before[key].price()
        assert after.bought().offered_raw == before[key].bought().offered_raw
    # What a dollar buys for real is what the rate says, and the fee of the fair pool.
    wallet, rate = Wallet(rpc, built.contracts, "dollars"), ctx.heads.current().market.usdg_per_eth_raw
    assert isinstance(rate, int)
    held = wallet.eth()
    wallet.get_usdg(350 * 10**6)
    assert loss_bps(350 * 10**6 * ETH // rate, 2 * PROBE_WEI - (held - wallet.eth())) < 50


# --- pools that would keep a real one from being found ----------------------------------------------


async def test_pools_of_junk_money_do_not_keep_a_real_one_from_being_found(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """They were there first, and of what is no money for this token there may be any number."""
    parties = Parties(rpc, built)
    token = parties.honest()
    junk = parties.honest()
    for spacing in range(1, 33):
        parties.empty_pool(Market(token, junk, "", 100, spacing))
    plan = PoolPlan("eth", 2500, version=4, tick_spacing=25)
    parties.put_v4(token, plan)
    seen = await look(ctx, token)
    assert seen.said() == ("ok", "ok"), seen.judgement.verdict.text
    assert (seen.best().venue.fee_pips, seen.best().venue.tick_spacing) == (2500, 25)
    assert seen.evidence.pools_found == 33
    assert_told(rpc, built, token, seen)


async def test_a_past_with_more_pools_than_an_answer_holds_is_read_in_smaller_pieces(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """After a restart the whole past is asked for anew: asking for the same range again would never end."""
    parties = Parties(rpc, built)
    token = parties.honest(PoolPlan("eth", 2500, version=4, tick_spacing=25))
    node_of(ctx).most_answer_bytes = 60_000
    ctx.heads.venue_index = VenueIndex(ctx.contracts)
    for _ in range(40):
        rpc.call("evm_mine")
        await ctx.heads.refresh()
        if ctx.heads.venue_index.complete(Address(token)):
            break
    assert ctx.heads.venue_index.complete(Address(token))
    node_of(ctx).most_answer_bytes = 16 * 2**20
    seen = await look(ctx, token)
    assert seen.said() == ("ok", "ok"), seen.judgement.verdict.text
    assert_told(rpc, built, token, seen)
