"""What a pool's formula says of several buys, against a wallet that really buys them, and against quoters."""

import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import WEI_PER_ETH, Address
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.buy_math import outputs_of_buys
from roundtrip.services.engine.session import VenueTrial
from roundtrip.services.engine.token_check import start_check
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.wallet import Wallet

IN_ETH = [
    WEI_PER_ETH // 10,
    7,
    WEI_PER_ETH // 33,
    3 * WEI_PER_ETH,
    WEI_PER_ETH // 100,
    20 * WEI_PER_ETH,
    20 * WEI_PER_ETH,
    WEI_PER_ETH // 10,
]
IN_USDG = [350 * 10**6, 7, 9 * 10**6, 1500 * 10**6]


def is_quoted(trial: VenueTrial) -> bool:
    """A pool with liquidity, whose kind has a quoter."""
    facts, venue = trial.facts, trial.place.venue
    return isinstance(facts, PoolFacts) and facts.liquidity > 0 and not venue.is_curve


@pytest.mark.parametrize(
    "key", ["plain", "usdg_pool", "two_pools", "thin", "v4_eth", "v4_weth", "both_versions"]
)
async def test_buys_come_out_to_the_unit(ctx: Context, rpc: SyncRpc, built: Built, key: str) -> None:
    token = Address(built.tokens[key])
    actual = await start_check(ctx, ctx.heads.current(), token, Meter())
    wallet = Wallet(rpc, built.contracts, "many buys", eth=1000)
    pools = [trial for trial in actual.data.venues if is_quoted(trial)]
    assert pools
    for trial in pools:
        venue, facts = trial.place.venue, trial.facts
        assert isinstance(facts, PoolFacts)
        # Several words of the bitmap, and far beyond them: one at a time, as the pool is now.
        for amount in (1, 10**6, 10**9, WEI_PER_ETH, 10**4 * WEI_PER_ETH):
            plan = trial.place.file.plan_output(venue, token, ctx.contracts, amount)
            assert plan is not None
            answer = rpc.call("eth_call", {"to": plan.to, "data": plan.data}, "latest")
            assert outputs_of_buys(venue, facts, None, token, [amount]) == [int(answer[2:66], 16)]
        amounts = IN_USDG if venue.quote == "usdg" else IN_ETH
        if venue.quote == "usdg":
            wallet.get_usdg(sum(amounts))
        version = 3 if venue.kind == "amm_v3" else 4
        got = [wallet.buy(token, venue.quote, venue.fee_pips, raw, version) for raw in amounts]
        assert outputs_of_buys(venue, facts, None, token, amounts) == got


async def test_buys_on_a_curve_come_out_to_the_wei(ctx: Context, rpc: SyncRpc, built: Built) -> None:
    token = Address(built.tokens["curve"])
    actual = await start_check(ctx, ctx.heads.current(), token, Meter())
    (trial,) = (trial for trial in actual.data.venues if trial.place.venue.is_curve)
    wallet, amounts, got = (
        Wallet(rpc, built.contracts, "many buys"),
        [WEI_PER_ETH // 10, 7, WEI_PER_ETH // 33, WEI_PER_ETH],
        [],
    )
    for raw in amounts:
        (buy,) = trial.place.file.plan_buy(trial.place.venue, token, ctx.contracts, raw, wallet.address)
        before = wallet.tokens(token)
        assert wallet.send(buy.to, buy.data, buy.value_wei).ok
        got.append(wallet.tokens(token) - before)
    facts = trial.facts
    assert isinstance(facts, PoolFacts)
    assert outputs_of_buys(trial.place.venue, facts, actual.data.launch, token, amounts) == got
