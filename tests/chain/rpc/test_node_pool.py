"""A check over several nodes, of which the first has a public node's quirks: the same verdict."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import get_args

import asyncpg
import pytest

from roundtrip.app.build import open_context
from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.client import Meter, Node, RpcCall, RpcError, quantity
from roundtrip.chain.rpc.dialect import ANVIL
from roundtrip.chain.rpc.dialect_probe import speaks_dialect
from roundtrip.chain.rpc.endpoints import NodeUrl
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.config.networks import CHAIN_ID, contracts_from
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import NodeFault, RoundtripError
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.data_fee import MIN_BASE_FEE_WEI
from support.dialects import DialectNode
from support.faulty_node import Batch
from support.nodes import Quirk, QuirkyNode, nodes_of, over, pair, run_check_at

QUIRKS: tuple[Quirk, ...] = get_args(Quirk)
STORIES = ("plain", "owner_only_sell", "no_pool", "graduated")
DEAD = "http://127.0.0.1:1"
CHAIN = [RpcCall("eth_chainId", [])]


@pytest.fixture
async def two(rpc: SyncRpc) -> AsyncIterator[tuple[QuirkyNode, QuirkyNode]]:
    async with pair(rpc.url) as found:
        yield found


async def code_of(ctx: Context, token: str) -> str:
    try:
        return (await run_check_at(ctx, token))[0]
    except RoundtripError as error:
        return error.code


@pytest.mark.parametrize("quirk", [q for q in QUIRKS if q not in ("swapped answers", "wrong chain id")])
@pytest.mark.parametrize("story", STORIES)
async def test_the_verdict_is_the_same_with_a_second_node(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, quirk: Quirk, story: str
) -> None:
    first, second = two
    token = built.tokens[story]
    right = await run_check_at(ctx, token)
    several = over(ctx, first.url, second.url, timeout_s=4.0)
    await several.heads.refresh()
    first.quirk, asked = quirk, len(first.sent)
    assert await run_check_at(several, token) == right
    assert len(first.sent) > asked, "the preferred one is asked"


@pytest.mark.parametrize("story", STORIES)
async def test_a_node_that_changes_to_another_chain_gives_no_verdict(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, story: str
) -> None:
    """The simulation tells its chain. The other node is asked once the chain id is due again."""
    several = over(ctx, two[0].url, two[1].url)
    await several.heads.refresh()
    two[0].quirk = "wrong chain id"
    assert await code_of(several, built.tokens[story]) == "upstream"


@pytest.mark.parametrize("story", STORIES)
async def test_answers_under_each_others_ids_are_never_believed(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, story: str
) -> None:
    """Only who reads them can see it: that is one node's word, and leaves the verdict open."""
    several = over(ctx, two[0].url, two[1].url)
    await several.heads.refresh()
    two[0].quirk = "swapped answers"
    right = (await run_check_at(ctx, built.tokens[story]))[0]
    assert await code_of(several, built.tokens[story]) in (right, "unproven", "upstream")


@pytest.mark.parametrize("story", STORIES)
async def test_a_real_node_that_does_not_know_the_block_yet(
    ctx: Context, rpc: SyncRpc, places: world.DevnetFolders, built: Built, story: str
) -> None:
    rpc.call("evm_mine")
    await ctx.heads.refresh()
    right = await run_check_at(ctx, built.tokens[story])
    with world.start_world(places, built, NodeOptions(state=built.state)) as behind:
        several = replace(over(ctx, behind.url, rpc.url), heads=ctx.heads)
        assert await run_check_at(several, built.tokens[story]) == right
        assert nodes_of(several).state()[0].why == "the node is behind the others"


@pytest.mark.parametrize("quirk", QUIRKS)
async def test_from_the_first_block_on(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, quirk: Quirk
) -> None:
    first, second = two
    first.quirk = quirk
    several = over(ctx, first.url, second.url, timeout_s=4.0)
    await several.heads.refresh()
    assert await run_check_at(several, built.tokens["plain"]) == await run_check_at(
        ctx, built.tokens["plain"]
    )


async def test_with_two_well_nodes_a_check_takes_two_trips_and_one_node(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built
) -> None:
    several = over(ctx, two[0].url, two[1].url)
    await several.heads.refresh()
    one, many = Meter(), Meter()
    await run_check_at(ctx, built.tokens["plain"], one)
    await run_check_at(several, built.tokens["plain"], many)
    assert (many.trips, many.calls) == (2, one.calls) == (one.trips, one.calls)
    assert two[1].sent == []


@pytest.mark.parametrize("quirk", [q for q in QUIRKS if q not in ("behind", "pruned", "no eth_simulateV1")])
async def test_with_no_node_left_it_is_upstream(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, quirk: Quirk
) -> None:
    several = over(ctx, two[0].url, two[1].url, timeout_s=0.6)
    await several.heads.refresh()
    two[0].quirk = two[1].quirk = quirk
    large = quirk in ("413", "one error for a large batch", "one answer to a large batch")
    # Who tells no chain id tells it in the simulation.
    expected = {"ok"} if large or quirk == "tells no chain" else {"upstream", "unproven"}
    assert await code_of(several, built.tokens["plain"]) in expected


async def test_both_dead_is_upstream_and_says_why(ctx: Context, built: Built) -> None:
    several = over(ctx, DEAD, DEAD)
    with pytest.raises(NodeFault, match="the connection to the node failed"):
        await several.heads.refresh()
    assert await code_of(several, built.tokens["plain"]) == "upstream"


@pytest.mark.parametrize("after", range(6))
async def test_a_node_that_dies_in_the_middle_of_a_check(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, after: int
) -> None:
    right = {story: await run_check_at(ctx, built.tokens[story]) for story in STORIES}
    several = over(ctx, two[0].url, two[1].url, timeout_s=4.0)
    await several.heads.refresh()
    two[0].quirk, two[0].after = "dead", after
    found = await asyncio.gather(*(run_check_at(several, built.tokens[story]) for story in STORIES))
    assert dict(zip(STORIES, found, strict=True)) == right


@pytest.mark.parametrize("quirk", ["dead", "cut off", "429", "hangs", "behind"])
async def test_a_node_that_goes_and_comes_under_load_changes_no_verdict(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, quirk: Quirk
) -> None:
    right = {story: await run_check_at(ctx, built.tokens[story]) for story in STORIES}
    several = over(ctx, two[0].url, two[1].url, timeout_s=3.0)
    await several.heads.refresh()
    for turn in range(6):
        two[turn % 2].quirk, two[turn % 2].after, two[1 - turn % 2].quirk = quirk, turn, None
        found = await asyncio.gather(*(code_of(several, built.tokens[story]) for story in STORIES))
        for story, code in zip(STORIES, found, strict=True):
            assert code in (right[story][0], "unproven", "upstream")


async def test_both_failing_in_turn_is_never_a_wrong_verdict(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built
) -> None:
    several = over(ctx, two[0].url, two[1].url, timeout_s=0.5)
    await several.heads.refresh()
    for one in ("half an answer", "swapped answers", "behind", "html"):
        for other in ("half an answer", "cut off", "pruned", "limited"):
            two[0].quirk, two[1].quirk = one, other
            assert await code_of(several, built.tokens["plain"]) in ("ok", "unproven", "upstream")
            assert await code_of(several, built.tokens["owner_only_sell"]) in (
                "cannot_sell", "unproven", "upstream"
            )  # fmt: skip


# --- dialects --------------------------------------------------------------------------------------


async def test_a_node_of_another_dialect_is_never_asked_to_simulate(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], rpc: SyncRpc, built: Built
) -> None:
    """Its answers would be misread: what counts blocks would pass for what it is not."""
    first, _ = two
    async with DialectNode(rpc.url, "nitro").running() as other:
        several = over(ctx, first.url, other.url, timeout_s=2.0)
        head = await several.heads.refresh()

        async def speaks(node: Node) -> bool | NodeFault | RpcError:
            # Below nitro's least base fee no call could pay for its data.
            base_fee_wei = max(head.base_fee_wei, MIN_BASE_FEE_WEI)
            return await speaks_dialect(ANVIL, node, head.block, base_fee_wei)

        nodes_of(several).speaks = speaks
        assert (await run_check_at(several, built.tokens["plain"]))[0] == "ok"
        first.quirk = "dead"
        assert await code_of(several, built.tokens["plain"]) == "upstream"
        assert isinstance(other, DialectNode)
        asked = other.simulations
        assert await code_of(several, built.tokens["plain"]) == "upstream"
        assert other.simulations == asked
        (answer,) = await nodes_of(several).batch(CHAIN)
        assert quantity(answer) == 4663


class OddNode(QuirkyNode):
    """``odd``: so many of its next simulations are answered with what is no hex."""

    odd = 0

    async def answered(self, body: Batch) -> Batch:
        found = await super().answered(body)
        if self.odd and any(call["method"] == "eth_simulateV1" for call in body):
            self.odd -= 1
            text = json.dumps(found).replace('"returnData": "0x', '"returnData": "0xzz')
            found = json.loads(text)
        return found


async def test_an_odd_answer_to_the_probe_bars_nobody_for_good(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """Once it was a dialect that nothing ended, and what is no hex was an exception of ours."""
    now = [0.0]
    async with OddNode(rpc.url).running() as one, OddNode(rpc.url).running() as other:
        assert isinstance(one, OddNode)
        assert isinstance(other, OddNode)
        several = over(ctx, one.url, other.url, clock=lambda: now[0])
        nodes = nodes_of(several)
        await several.heads.refresh()

        async def speaks(node: Node) -> bool | NodeFault | RpcError:
            head = several.heads.current()
            # Below nitro's least base fee no call could pay for its data.
            base_fee_wei = max(head.base_fee_wei, MIN_BASE_FEE_WEI)
            return await speaks_dialect(ANVIL, node, head.block, base_fee_wei)

        nodes.speaks, one.odd, other.odd = speaks, 99, 99
        for endpoint in nodes.endpoints:
            endpoint.speaks = None
        assert await code_of(several, built.tokens["plain"]) == "upstream"
        assert [state.condition for state in nodes.state()] == ["simulates otherwise"] * 2
        one.odd = other.odd = 0
        now[0] += 61
        assert await code_of(several, built.tokens["plain"]) == "ok"


async def test_a_node_that_stopped_following_the_chain_is_passed_over(ctx: Context, rpc: SyncRpc) -> None:
    """It answers well, and its newest block is old."""
    head_s = ctx.heads.current().block.timestamp_s
    wall = [head_s + 59.0]
    async with pair(rpc.url) as (first, second):
        several = over(ctx, first.url, second.url, wall=lambda: wall[0], oldest_s=60.0)
        await several.heads.refresh()
        assert second.sent == []
        wall[0] += 2
        with pytest.raises(NodeFault):
            await several.heads.refresh()
        assert second.sent != []
    alone = Heads(ctx.node, CHAIN_ID, ctx.contracts, oldest_s=60.0, wall=lambda: wall[0])
    with pytest.raises(NodeFault, match="the node's newest block is 61 s old"):
        await alone.refresh()


# --- put together ----------------------------------------------------------------------------------


async def test_the_service_over_two_nodes(
    two: tuple[QuirkyNode, QuirkyNode], built: Built, database_url: str, pool: asyncpg.Pool
) -> None:
    first, second = two
    first.quirk = "403"
    urls = (NodeUrl(first.url), NodeUrl(second.url))
    async with open_context(Settings(), urls, contracts_from(built.contracts), database_url) as ctx:
        assert isinstance(ctx.node, NodePool)
        assert (await run_check_at(ctx, built.tokens["plain"]))[0] == "ok"
        # The first is well again when it has waited; until then the second one does it all. On a busy machine
        # a request of the second may run out of time: then it rests for a second, and answers again.
        async with asyncio.timeout(30):
            while [state.condition for state in ctx.node.state()] != ["told to wait", "ok"]:
                assert (await run_check_at(ctx, built.tokens["plain"]))[0] == "ok"


async def test_one_node_without_limits_is_asked_plainly(
    rpc: SyncRpc, built: Built, database_url: str
) -> None:
    async with open_context(Settings(), rpc.url, contracts_from(built.contracts), database_url) as ctx:
        assert isinstance(ctx.node, Node)
