"""A check over several nodes, of which the first has a public node's quirks: the same verdict."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import get_args

import asyncpg
import pytest

from roundtrip.assembly import context, contracts_from
from roundtrip.chain.dialect import ANVIL
from roundtrip.chain.endpoints import NodeUrl
from roundtrip.chain.nodes import Nodes
from roundtrip.chain.probing import speaks_as
from roundtrip.chain.rpc import Budget, Meter, Node, RpcCall, RpcError, quantity
from roundtrip.devnet.wire import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.errors import NodeFault, RoundtripError, ServiceFull
from roundtrip.domain.types import Address
from roundtrip.domain.verdict import judge
from roundtrip.services.context import Context
from roundtrip.services.gather import gather
from roundtrip.settings import Settings
from support.dialects import DialectNode
from support.nodes import MOST_CALLS, Quirk, QuirkyNode, nodes_of, over

QUIRKS: tuple[Quirk, ...] = get_args(Quirk)
STORIES = ("plain", "owner_only_sell", "no_pool", "graduated")
DEAD = "http://127.0.0.1:1"
CHAIN = [RpcCall("eth_chainId", [])]


@contextlib.asynccontextmanager
async def pair(rpc: SyncRpc) -> AsyncIterator[tuple[QuirkyNode, QuirkyNode]]:
    async with QuirkyNode(rpc.url).running() as one, QuirkyNode(rpc.url).running() as other:
        assert isinstance(one, QuirkyNode)
        assert isinstance(other, QuirkyNode)
        yield one, other


@pytest.fixture
async def two(rpc: SyncRpc) -> AsyncIterator[tuple[QuirkyNode, QuirkyNode]]:
    async with pair(rpc) as found:
        yield found


async def said(ctx: Context, token: str, meter: Meter | None = None) -> tuple[str, str, str]:
    evidence = await gather(ctx, Address(token), meter or Meter())
    verdict = judge(evidence, ctx.policy).verdict
    return verdict.code, verdict.level, verdict.text


async def code_of(ctx: Context, token: str) -> str:
    try:
        return (await said(ctx, token))[0]
    except RoundtripError as error:
        return error.code


@pytest.mark.parametrize("quirk", [quirk for quirk in QUIRKS if quirk != "swapped answers"])
@pytest.mark.parametrize("story", STORIES)
async def test_the_verdict_is_the_same_with_a_second_node(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, quirk: Quirk, story: str
) -> None:
    first, second = two
    token = built.tokens[story]
    right = await said(ctx, token)
    several = over(ctx, first.url, second.url, timeout_s=4.0)
    await several.heads.refresh()
    first.quirk, asked = quirk, len(first.sent)
    assert await said(several, token) == right
    assert len(first.sent) > asked, "the preferred one is asked"


@pytest.mark.parametrize("story", STORIES)
async def test_answers_under_each_others_ids_are_never_believed(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, story: str
) -> None:
    """Only who reads them can see it: that is one node's word, and leaves the verdict open."""
    several = over(ctx, two[0].url, two[1].url)
    await several.heads.refresh()
    two[0].quirk = "swapped answers"
    right = (await said(ctx, built.tokens[story]))[0]
    assert await code_of(several, built.tokens[story]) in (right, "unproven", "upstream")


@pytest.mark.parametrize("quirk", QUIRKS)
async def test_from_the_first_block_on(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, quirk: Quirk
) -> None:
    first, second = two
    first.quirk = quirk
    several = over(ctx, first.url, second.url, timeout_s=4.0)
    await several.heads.refresh()
    assert await said(several, built.tokens["plain"]) == await said(ctx, built.tokens["plain"])


async def test_with_two_well_nodes_a_check_takes_two_trips_and_one_node(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built
) -> None:
    several = over(ctx, two[0].url, two[1].url)
    await several.heads.refresh()
    one, many = Meter(), Meter()
    await said(ctx, built.tokens["plain"], one)
    await said(several, built.tokens["plain"], many)
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
    expected = {"ok"} if large else {"upstream", "unproven"}
    assert await code_of(several, built.tokens["plain"]) in expected


async def test_both_dead_is_upstream_and_says_why(ctx: Context, built: Built) -> None:
    several = over(ctx, DEAD, DEAD)
    with pytest.raises(NodeFault, match="the connection failed"):
        await several.heads.refresh()
    assert await code_of(several, built.tokens["plain"]) == "upstream"


@pytest.mark.parametrize("after", range(6))
async def test_a_node_that_dies_in_the_middle_of_a_check(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, after: int
) -> None:
    right = {story: await said(ctx, built.tokens[story]) for story in STORIES}
    several = over(ctx, two[0].url, two[1].url, timeout_s=4.0)
    await several.heads.refresh()
    two[0].quirk, two[0].after = "dead", after
    found = await asyncio.gather(*(said(several, built.tokens[story]) for story in STORIES))
    assert dict(zip(STORIES, found, strict=True)) == right


@pytest.mark.parametrize("quirk", ["dead", "cut off", "429", "hangs", "behind"])
async def test_a_node_that_goes_and_comes_under_load_changes_no_verdict(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built, quirk: Quirk
) -> None:
    right = {story: await said(ctx, built.tokens[story]) for story in STORIES}
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
            two[0].quirk, two[1].quirk = one, other  # type: ignore[assignment]
            assert await code_of(several, built.tokens["plain"]) in ("ok", "unproven", "upstream")
            assert await code_of(several, built.tokens["owner_only_sell"]) in (
                "cannot_sell", "unproven", "upstream"
            )  # fmt: skip


# --- quirks one by one -----------------------------------------------------------------------------


async def test_retry_after_is_waited_out(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    now = [100.0]
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, clock=lambda: now[0]))
    two[0].quirk = "429"
    for _ in range(3):
        await nodes.batch(CHAIN)
    assert (len(two[0].sent), len(two[1].sent)) == (1, 3)
    (state, _) = nodes.state()
    assert (state.condition, state.why) == ("told to wait", "it answered with HTTP status 429")
    now[0] += 29.9
    await nodes.batch(CHAIN)
    assert len(two[0].sent) == 1
    two[0].quirk = None
    now[0] += 0.2
    await nodes.batch(CHAIN)
    assert len(two[0].sent) == 2
    assert nodes.state()[0].condition == "ok"


async def test_all_told_to_wait_is_upstream_and_nobody_is_asked(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, timeout_s=0.5))
    two[0].quirk = two[1].quirk = "429"
    for _ in range(3):
        with pytest.raises(NodeFault, match="429"):
            await nodes.batch(CHAIN)
    assert (len(two[0].sent), len(two[1].sent)) == (1, 1)


@pytest.mark.parametrize("quirk", ["413", "one error for a large batch", "one answer to a large batch"])
async def test_a_large_batch_is_cut_and_the_size_remembered(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], quirk: Quirk
) -> None:
    nodes = nodes_of(over(ctx, two[0].url))
    two[0].quirk = quirk
    answers = await nodes.batch(CHAIN * 70)
    assert [quantity(answer) for answer in answers] == [4663] * 70
    two[0].sent.clear()
    meter = Meter()
    await nodes.batch(CHAIN * 70, meter)
    assert [len(one) for one in two[0].sent] == [17, 17, 17, 17, 2]
    assert (meter.trips, meter.calls) == (1, 70)
    assert nodes.state()[0].calls_a_request == 17 <= MOST_CALLS


async def test_what_a_node_lacks_is_remembered_and_the_rest_still_asked_of_it(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built
) -> None:
    several = over(ctx, two[0].url, two[1].url)
    two[0].quirk = "no eth_simulateV1"
    await several.heads.refresh()
    await said(several, built.tokens["plain"])
    two[0].sent.clear()
    await said(several, built.tokens["plain"])
    assert not any("eth_simulateV1" in methods for methods in two[0].sent)
    assert nodes_of(several).state()[0].lacks == ("eth_simulateV1",)
    await nodes_of(several).batch(CHAIN)
    assert two[0].sent == [["eth_chainId"]]


async def test_a_node_of_another_chain_is_out(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built
) -> None:
    several = over(ctx, two[0].url, two[1].url)
    two[0].quirk = "wrong chain id"
    await several.heads.refresh()
    await said(several, built.tokens["plain"])
    assert len(two[0].sent) == 1
    state, _ = nodes_of(several).state()
    assert (state.condition, state.why) == ("another chain", "it is of chain 1, not 4663")


async def test_alone_a_node_of_another_chain_is_upstream(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    several = over(ctx, two[0].url, timeout_s=0.5)
    two[0].quirk = "wrong chain id"
    for _ in range(2):
        with pytest.raises(NodeFault, match="of chain 1, not 4663"):
            await several.heads.refresh()


async def test_logs_of_a_node_that_is_behind_are_not_taken_for_all(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], rpc: SyncRpc
) -> None:
    """It answers with what it has, and does not say that there is more."""
    head = int(rpc.call("eth_blockNumber"), 16)
    wanted = {"fromBlock": hex(head), "toBlock": hex(head + 1)}
    nodes = nodes_of(over(ctx, two[0].url, two[1].url))
    (answer,) = await nodes.batch([RpcCall("eth_getLogs", [wanted])])
    assert isinstance(answer, RpcError)
    rpc.call("evm_mine")
    (answer,) = await nodes.batch([RpcCall("eth_getLogs", [wanted])])
    assert not isinstance(answer, RpcError)


async def test_a_revert_is_asked_of_nobody_else(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built
) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url))
    quoter = {"to": built.contracts["swapRouter02"], "data": "0xdeadbeef"}
    (answer,) = await nodes.batch([RpcCall("eth_call", [quoter, "latest"])])
    assert isinstance(answer, RpcError)
    assert two[1].sent == []


# --- hedging ---------------------------------------------------------------------------------------


async def test_a_late_answer_is_asked_of_the_next_and_the_first_one_counts(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, timeout_s=60.0))
    for _ in range(10):
        await nodes.batch(CHAIN)
    two[0].quirk = "hangs"
    meter = Meter()
    # Without a hedge it would wait for half a minute, and this test would be ended.
    async with asyncio.timeout(20):
        (answer,) = await nodes.batch(CHAIN, meter)
    assert quantity(answer) == 4663
    assert (meter.trips, meter.calls, len(two[1].sent)) == (1, 2, 1)


async def test_a_node_that_hangs_is_found_out(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, timeout_s=60.0))
    for _ in range(30):
        await nodes.batch(CHAIN)
    two[0].quirk = "hangs"
    async with asyncio.timeout(20):
        for _ in range(3):
            await nodes.batch(CHAIN)
    assert nodes.state()[0].condition == "resting"
    two[0].sent.clear()
    await nodes.batch(CHAIN)
    assert two[0].sent == []


async def test_a_caller_who_goes_away_blames_nobody(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url))
    two[0].quirk = two[1].quirk = "hangs"
    task = asyncio.create_task(nodes.batch(CHAIN))
    while not two[0].sent:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [state.condition for state in nodes.state()] == ["ok", "ok"]
    assert [endpoint.under_way for endpoint in nodes.endpoints] == [0, 0]


# --- limits ----------------------------------------------------------------------------------------


async def test_what_one_has_no_room_for_goes_to_the_next(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built
) -> None:
    several = over(ctx, NodeUrl(two[0].url, calls_per_day=20), two[1].url)
    await several.heads.refresh()
    assert (await said(several, built.tokens["plain"]))[0] == "ok"
    assert sum(len(one) for one in two[0].sent) <= 20
    assert nodes_of(several).endpoints[0].budget.spent <= 20


async def test_budget_spent_only_when_all_are(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    limited = [NodeUrl(one.url, calls_per_day=3) for one in two]
    nodes = nodes_of(over(ctx, *limited))
    for _ in range(4):
        await nodes.batch(CHAIN)
    with pytest.raises(ServiceFull) as caught:
        await nodes.batch(CHAIN)
    assert caught.value.code == "budget_spent"
    assert [state.condition for state in nodes.state()] == ["ok", "ok"]


async def test_the_shared_budget_is_of_all(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, budget=Budget(2)))
    await nodes.batch(CHAIN * 2)
    with pytest.raises(ServiceFull):
        await nodes.batch(CHAIN)
    await nodes.batch(CHAIN, budgeted=False)


async def test_a_limit_of_calls_a_second_is_waited_for(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    nodes = nodes_of(over(ctx, NodeUrl(two[0].url, calls_per_second=200)))
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    for _ in range(2):
        await nodes.batch(CHAIN * 220)
    # 400 at once, and the other 40 at 200 a second.
    assert loop.time() - started_s >= 0.19


# --- dialects --------------------------------------------------------------------------------------


async def test_a_node_of_another_dialect_is_never_asked_to_simulate(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], rpc: SyncRpc, built: Built
) -> None:
    """Its answers would be misread: what counts blocks would pass for what it is not."""
    first, _ = two
    async with DialectNode(rpc.url, "nitro").running() as other:
        several = over(ctx, first.url, other.url, timeout_s=2.0)
        head = await several.heads.refresh()

        async def speaks(node: Node) -> bool | RpcError:
            return await speaks_as(ANVIL, node, head.block, head.base_fee_wei)

        nodes_of(several).speaks = speaks
        assert (await said(several, built.tokens["plain"]))[0] == "ok"
        first.quirk = "dead"
        assert await code_of(several, built.tokens["plain"]) == "upstream"
        assert isinstance(other, DialectNode)
        asked = other.simulations
        assert await code_of(several, built.tokens["plain"]) == "upstream"
        assert other.simulations == asked
        (answer,) = await nodes_of(several).batch(CHAIN)
        assert quantity(answer) == 4663


# --- put together ----------------------------------------------------------------------------------


async def test_the_service_over_two_nodes(
    two: tuple[QuirkyNode, QuirkyNode], built: Built, database_url: str, pool: asyncpg.Pool
) -> None:
    first, second = two
    first.quirk = "403"
    urls = (NodeUrl(first.url), NodeUrl(second.url))
    async with context(Settings(), urls, contracts_from(built.contracts), database_url) as ctx:
        assert isinstance(ctx.node, Nodes)
        assert (await said(ctx, built.tokens["plain"]))[0] == "ok"
        # The first is well again when it has waited; until then the second one does it all.
        assert [state.condition for state in ctx.node.state()] == ["told to wait", "ok"]


async def test_one_node_without_limits_is_asked_plainly(
    rpc: SyncRpc, built: Built, database_url: str
) -> None:
    async with context(Settings(), rpc.url, contracts_from(built.contracts), database_url) as ctx:
        assert isinstance(ctx.node, Node)
