"""Where holdings are valued, by whom where nobody can be given any, and many of them at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
import msgspec
import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.client import Meter, NodeAnswerTooLarge, RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.dialect import ANVIL, BY_NAME
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing, RefusedCall
from roundtrip.services.runtime.context import Context
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue, worth
from roundtrip.store.server import connections
from roundtrip.store.server.migrate import migrate
from roundtrip_development.devnet.deploy import ContractDeployer, calldata
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.databases import connected, database
from support.dialects import DialectNode, Kind
from support.fixtures import context_for
from support.indexing import at, follow
from support.recording import Recording
from support.wallet import Wallet
from truth.animals import V4, Animal
from truth.valuation.test_worth import ETH, given, put, valued, wei_of

# --- where it trades -------------------------------------------------------------------------------


async def test_a_token_without_a_place_cannot_be_sold(ctx: Context, built: Built) -> None:
    token = Address(built.tokens["no_pool"])
    (found,) = await valued(ctx, HoldingToSell(token, ETH, slot=await given(ctx, token)))
    assert isinstance(found, RefusedCall)
    assert "no pool buys it" in (found.reason or "")


async def test_an_empty_pool_brings_nothing(ctx: Context, built: Built) -> None:
    token = Address(built.tokens["empty_pool"])
    (found,) = await valued(ctx, HoldingToSell(token, ETH, slot=await given(ctx, token)))
    assert not isinstance(found, SellValue)


async def test_places_that_nobody_told_of_are_found_in_a_second_trip(ctx: Context, built: Built) -> None:
    token = Address(built.tokens["two_pools"])
    slot, raw = await given(ctx, token), 10**6 * ETH
    (known,) = await valued(ctx, HoldingToSell(token, raw, slot=slot))
    heads = Heads(ctx.node, ctx.chain_id, ctx.contracts, market_age_s=0.0, dialect=ANVIL)
    blind = replace(ctx, heads=heads)
    (found,) = await valued(blind, HoldingToSell(token, raw, slot=slot), trips=2)
    assert found == known
    lonely = Address(built.tokens["no_pool"])
    (nowhere,) = await valued(blind, HoldingToSell(lonely, raw, slot=await given(ctx, lonely)))
    assert isinstance(nowhere, Missing)


async def test_what_counts_blocks_is_not_asked_where_none_pass(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    token = put(rpc, built, Animal("cooldown_blocks", (1,)).story())
    slot, plain = await given(ctx, token), Address(built.tokens["plain"])
    head = replace(await ctx.heads.refresh(), dialect=replace(ANVIL, own_numbers=False))
    holdings = [
        HoldingToSell(Address(token), ETH, slot=slot),
        HoldingToSell(plain, ETH, slot=await given(ctx, plain)),
    ]
    counting, honest = await worth(ctx, head, holdings, Meter())
    assert isinstance(counting, Missing)
    assert "count blocks" in counting.why
    assert isinstance(honest, SellValue)


# --- real holders ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("animal", "does", "sells"),
    [
        (Animal("reflection", (200,), V4), (), True),
        (Animal("../tokens/plain"), (), True),
        (Animal("whitelist_sell"), (("setWhitelisted(address,bool)", True),), False),
    ],
    ids=["a share of every sale for holders", "no trap", "only he may sell"],
)
async def test_where_nobody_can_be_given_any_a_real_holder_sells(
    ctx: Context,
    rpc: SyncRpc,
    built: Built,
    database_url: str,
    animal: Animal,
    does: tuple[tuple[str, bool], ...],
    sells: bool,
) -> None:
    since = int(rpc.call("eth_blockNumber"), 16)
    token, (pool,) = put(rpc, built, animal.story()), animal.pools
    wallet = Wallet(rpc, built.contracts, f"holds {token}")
    assert wallet.buy(token, pool.quote, pool.fee_pips, 10**17, pool.version)
    deployer = ContractDeployer(rpc, rpc.call("eth_accounts")[0])
    for signature, allowed in does:
        deployer.send(token, calldata(signature, wallet.address, allowed))
    deployer.check_receipts()
    held_raw, newest = wallet.tokens(token), int(rpc.call("eth_blockNumber"), 16)
    async with database(database_url, "worth") as url:
        async with connected(url) as connection:
            await migrate(connection)
        await follow(rpc.url, built, url, since, at(newest))
        async with connections.create_pool(url, min_size=1, max_size=2) as known:
            answer = replace(ctx, pool=known)
            half, more = await valued(
                answer,
                HoldingToSell(Address(token), held_raw // 2),
                HoldingToSell(Address(token), held_raw * 2),
            )
            rpc.call("anvil_setCode", wallet.address, "0xef0100" + "11" * 20)
            (delegated,) = await valued(answer, HoldingToSell(Address(token), held_raw // 2))
            rpc.call("anvil_setCode", wallet.address, "0x")
    assert isinstance(more, Missing)
    assert isinstance(delegated, Missing)
    fill = wallet.sell(token, pool.quote, pool.fee_pips, held_raw // 2, pool.version)
    assert fill.ok
    if sells:
        assert wei_of(half) == fill.back_raw
    else:
        assert isinstance(half, RefusedCall), "who is let in by the owner tells nothing of others"


# --- nodes of every kind ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["anvil", "geth", "nitro"])
async def test_it_is_the_same_on_nodes_of_every_kind(
    ctx: Context, rpc: SyncRpc, built: Built, pool: asyncpg.Pool, kind: Kind
) -> None:
    holdings = await many(ctx, built, len(MANY))
    plain = await valued(ctx, *holdings)
    token = Address(built.tokens["owner_only_sell"])
    trap = HoldingToSell(token, 10**21, slot=await given(ctx, token))
    async with (
        DialectNode(rpc.url, kind).running() as node,
        context_for(node.url, built, pool, dialect=BY_NAME[kind]) as spoken,
    ):
        *found, trapped = await valued(spoken, *holdings, trap)
    assert all(isinstance(one, SellValue) for one in found), found
    assert found == plain
    assert isinstance(trapped, RefusedCall)


# --- many at once ----------------------------------------------------------------------------------


@dataclass
class Losing:
    """A node before another: ``loses`` says which batches of a round are lost, and to what."""

    node: RpcNode
    loses: Callable[[Sequence[RpcCall]], NodeFault | None]
    rounds: list[int] = field(default_factory=list)

    async def batch(self, calls: Sequence[RpcCall], *rest: Any, **more: Any) -> list[Any]:
        return await self.node.batch(calls, *rest, **more)

    async def batches(self, groups: Sequence[Sequence[RpcCall]], meter: Meter) -> list[Any]:
        self.rounds.append(len(groups))
        reply = await self.node.batches(groups, meter)
        return [self.loses(group) or answer for group, answer in zip(groups, reply, strict=True)]


MANY = ("plain", "six_decimals", "v4_eth", "usdg_pool", "fee_on_buy", "graduated", "curve", "both_versions")


async def many(ctx: Context, built: Built, count: int) -> list[HoldingToSell]:
    tokens = [Address(built.tokens[MANY[n % len(MANY)]]) for n in range(count)]
    slots = {token: await given(ctx, token) for token in dict.fromkeys(tokens)}
    units = {token: 10 ** (9 if token == built.tokens["six_decimals"] else 21) for token in tokens}
    return [HoldingToSell(token, (n + 1) * units[token], slot=slots[token]) for n, token in enumerate(tokens)]


async def test_fifty_are_valued_in_one_trip(ctx: Context, built: Built) -> None:
    holdings = await many(ctx, built, 50)
    counted = Losing(ctx.node, lambda _: None)
    head, meter = await ctx.heads.refresh(), Meter()
    found = await worth(replace(ctx, node=counted), head, holdings, meter)
    assert len(counted.rounds) == meter.trips == 1
    assert all(isinstance(one, SellValue) for one in found)
    assert found == [(await worth(ctx, head, [one], Meter()))[0] for one in holdings]


async def test_none_are_valued_without_a_trip(ctx: Context) -> None:
    assert await valued(ctx, trips=0) == []


def _speaks_of(calls: Sequence[RpcCall], token: str) -> bool:
    return token[2:] in msgspec.json.encode([call.params for call in calls]).decode()


async def test_what_one_token_floods_the_others_do_not_suffer(ctx: Context, built: Built) -> None:
    """Together they are too much to read; apart only its own answer is."""
    holdings, bad = await many(ctx, built, 4), built.tokens["six_decimals"]
    flood = Losing(ctx.node, lambda calls: NodeAnswerTooLarge("much") if _speaks_of(calls, bad) else None)
    head = await ctx.heads.refresh()
    found = await worth(replace(ctx, node=flood), head, holdings, Meter())
    assert [isinstance(one, SellValue) for one in found] == [True, False, True, True]
    assert found[1] == Missing("token", NodeAnswerTooLarge("much").message)


HOSTILE = ("loops_on_transfer", "loops_on_views", "loops_on_balance", "megabyte_name", "megabyte_revert")


async def test_hostile_tokens_beside_honest_ones_spoil_nothing(ctx: Context, built: Built) -> None:
    honest = await many(ctx, built, 8)
    slot = honest[0].slot
    assert slot is not None
    bad = [Address(built.tokens[key]) for key in HOSTILE]
    beside = [HoldingToSell(token, 10**21, slot=replace(slot, asset=token)) for token in bad]
    head = await ctx.heads.refresh()
    found = await worth(ctx, head, [*beside, *honest], Meter())
    assert not isinstance(found[0], SellValue)
    assert not isinstance(found[2], SellValue)
    assert not isinstance(found[4], SellValue)
    assert found[len(bad) :] == await worth(ctx, head, honest, Meter())
    assert all(isinstance(one, SellValue) for one in found[len(bad) :])


async def test_a_launch_that_is_not_confirmed_is_no_launch(ctx: Context, built: Built) -> None:
    """Its tokens are taken for the launchpad's own code only where the launchpad says so."""

    def instead(call: RpcCall) -> RpcError | None:
        asks_its_name = "0x06fdde03" in msgspec.json.encode(call.params).decode()
        return RpcError(-32000, "not today") if asks_its_name else None

    tokens = [Address(built.tokens[key]) for key in ("curve", "plain")]
    holdings = [HoldingToSell(token, 10**21, slot=await given(ctx, token)) for token in tokens]
    head = await ctx.heads.refresh()
    silent = replace(ctx, node=Recording(ctx.node, instead=instead))
    launched, plain = await worth(silent, head, holdings, Meter())
    assert isinstance(launched, Missing)
    assert isinstance(plain, SellValue)


async def test_a_node_that_does_not_answer_leaves_it_unknown(ctx: Context, built: Built) -> None:
    holdings = await many(ctx, built, 3)
    silent = Losing(ctx.node, lambda _: NodeFault("gone"))
    head = await ctx.heads.refresh()
    found = await worth(replace(ctx, node=silent), head, holdings, Meter())
    assert all(one == Missing("node", NodeFault("gone").message) for one in found)
    unheard = replace(head, dialect=None)
    assert all(isinstance(one, Missing) for one in await worth(ctx, unheard, holdings, Meter()))
