"""Amounts that are not round, on the local chain: what a check says of tokens that do not sell whole, that round,
or whose trades use much gas."""

from roundtrip.chain.rpc.client import Meter
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.services.check.pipeline import gather_evidence
from roundtrip.services.runtime.context import Context
from support.wallet import Wallet
from truth.gas_tokens import GasToken


async def judged(ctx: Context, token: str) -> Judgement:
    await ctx.heads.refresh()
    return judge(await gather_evidence(ctx, Address(token), Meter()), POLICY)


async def test_a_side_buy_has_the_gas_of_the_buy_that_it_explains(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """A transfer of more gas than side buys have, which hashes 34,000 times."""
    token = GasToken(34_000, 0, 3_400_000).put(rpc, built)
    judgement = await judged(ctx, token)
    assert judgement.verdict.code == "ok", judgement.verdict
    assert "one step uses 3," in judgement.verdict.text
    assert Wallet(rpc, built.contracts, "small buyer").buy(token, "weth", 3000, 10**14)
