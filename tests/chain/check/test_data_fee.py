"""Checks on a nitro that charges for data, from a fraction of a trade's gas to twenty times as much."""

from dataclasses import replace

import asyncpg
import pytest

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Crowd
from roundtrip.domain.check.verdict import judge
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.dialects import DialectNode
from support.fixtures import context_for
from support.gathering import gather_evidence

GWEI = 10**9


@pytest.mark.parametrize("price_wei", [GWEI // 1000, GWEI // 10, 50 * GWEI], ids=["0.001", "0.1", "50"])
@pytest.mark.parametrize(
    ("key", "verdict"),
    [
        ("two_pools", ("ok", "ok")),
        ("v4_eth", ("ok", "ok")),
        ("curve", ("ok", "ok")),
        ("owner_only_sell", ("cannot_sell", "danger")),
        ("blacklist_after_buy", ("cannot_sell", "danger")),
    ],
)
async def test_a_verdict_is_the_same_whatever_data_costs(
    rpc: SyncRpc, built: Built, pool: asyncpg.Pool, key: str, verdict: tuple[str, str], price_wei: int
) -> None:
    node = DialectNode(rpc.url, "nitro")
    node.data_price_wei = price_wei
    async with node.running(), context_for(node.url, built, pool, dialect=None) as ctx:
        await ctx.heads.refresh()
        ctx = replace(ctx, now_s=lambda: 2_000_000_000.5)
        evidence = await gather_evidence(ctx, Address(built.tokens[key]), Meter())
    judged = judge(evidence, ctx.policy).verdict
    assert (judged.code, judged.level) == verdict, judged.text
    crowds = [venue.crowd for venue in evidence.venues if isinstance(venue.crowd, Crowd)]
    assert max(len(crowd.trades) for crowd in crowds) > 5
