"""Traps that hid behind another pool, or showed themselves only later, or only once others had bought."""

from roundtrip.domain.check.sales import loss_bps
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.deploy import ZERO
from roundtrip_development.devnet.launchpad import LaunchRequest, curve_buy, launch
from roundtrip_development.devnet.stories import PoolPlan
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.attacks import ETH, PROBE_WEI, Parties, assert_told, look, pass_time
from support.trader import Market, MarketTrader
from support.wallet import Wallet


async def test_a_dear_pool_does_not_hide_that_the_deep_one_refuses_sales(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """What is bought where it is cheapest sells nowhere for anything."""
    parties = Parties(rpc, built)
    hook = parties.hook("revert_on_sell")
    deep = PoolPlan("eth", 3000, 20_000, 7000, version=4, hook="revert_on_sell")
    token = parties.honest(deep, hooks={"revert_on_sell_eth": hook})
    assert (await look(ctx, token)).said() == ("cannot_sell", "danger")
    dear = Market(token, ZERO, "", 100, 1)
    parties.token_alone(dear, 35_000, 10**6 * ETH)
    seen = await look(ctx, token)
    assert seen.judgement.verdict.level == "danger", seen.judgement.verdict.text
    wallet = Wallet(rpc, built.contracts, "trapped")
    trader = MarketTrader(wallet, built.contracts, Market(token, ZERO, "", 3000, 60, hook))
    got = trader.buy(PROBE_WEI)
    assert got is not None
    pass_time(rpc, 13)
    assert not trader.sell(got).ok
    assert not MarketTrader(wallet, built.contracts, dear).sell(got).ok


async def test_a_dear_pool_does_not_hide_a_creators_tax(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    """A tenth of every trade on the curve goes to the creator; in the dear pool nobody takes anything."""
    parties = Parties(rpc, built)
    made = launch(parties.owner, built.contracts, LaunchRequest("Tax", "TAX", salt=991, creator_tax_bps=1000))
    pass_time(rpc, 10)
    curve_buy(parties.owner, made, PROBE_WEI)
    parties.give(made.token, parties.stranger.account, 2 * 10**6 * ETH)
    before = await look(ctx, made.token)
    parties.token_alone(Market(made.token, ZERO, "", 100, 1), 500_000, 10**6 * ETH)
    after = await look(ctx, made.token)
    assert after.said() == before.said() == ("high_fees", "warn")
    assert after.best().venue == before.best().venue
    assert_told(rpc, built, made.token, after)
    assert loss_bps(after.bought().paid_raw, after.sold().back_raw) > 2000


async def test_a_hook_that_lets_nobody_sell_at_a_gain_is_never_ok(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """Alone with the pool a buyer sells; once others have bought in between, he does not."""
    parties = Parties(rpc, built)
    hook = parties.hook("no_gain")
    plan = PoolPlan("eth", 3000, 20_000, 7000, version=4, hook="no_gain")
    token = parties.honest(plan, hooks={"no_gain_eth": hook})
    for _ in range(3):
        seen = await look(ctx, token)
        assert seen.said() == ("cannot_sell", "danger"), seen.judgement.verdict.text
    market = Market(token, ZERO, "", 3000, 60, hook)
    first, second = (
        MarketTrader(Wallet(rpc, built.contracts, n), built.contracts, market) for n in ("one", "two")
    )
    got = first.buy(PROBE_WEI)
    assert got is not None
    snapshot = rpc.call("evm_snapshot")
    assert first.sell(got).ok
    rpc.call("evm_mine")
    assert rpc.call("evm_revert", snapshot)
    assert second.buy(PROBE_WEI // 2)
    pass_time(rpc, 13)
    assert not first.sell(got).ok


async def test_what_a_hook_keeps_of_larger_sales_is_not_put_down_to_the_token(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """The small round trip that fees are measured on costs 0.6 %, and the token takes nothing."""
    parties = Parties(rpc, built)
    hook = parties.hook("keeps_large")
    plan = PoolPlan("eth", 3000, 20_000, 7000, version=4, hook="keeps_large", dynamic_fee=True)
    token = parties.honest(plan, hooks={"keeps_large_eth": hook})
    seen = await look(ctx, token)
    assert seen.said() == ("toll_pool", "danger"), seen.judgement.verdict.text
    assert seen.judgement.verdict.text.startswith("The pool's hook keeps 60.")
    assert_told(rpc, built, token, seen)
