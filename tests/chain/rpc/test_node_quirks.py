"""What public nodes do, one by one: refusals, limits, lateness, and what is remembered of them."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from roundtrip.chain.rpc.client import Budget, Meter, Node, NodeTimeout, RpcCall, RpcError, quantity
from roundtrip.chain.rpc.endpoints import NodeUrl
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.nodes import MAX_CALLS, Quirk, QuirkyNode, nodes_of, over, pair, run_check_at

CHAIN = [RpcCall("eth_chainId", [])]


@pytest.fixture
async def two(rpc: SyncRpc) -> AsyncIterator[tuple[QuirkyNode, QuirkyNode]]:
    async with pair(rpc.url) as found:
        yield found


async def test_retry_after_is_waited_out(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    now = [100.0]
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, clock=lambda: now[0]))
    two[0].quirk = "429"
    for _ in range(3):
        await nodes.batch(CHAIN)
    assert (len(two[0].sent), len(two[1].sent)) == (1, 3)
    (state, _) = nodes.state()
    assert (state.condition, state.why) == ("told to wait", "the node answered with HTTP status 429")
    now[0] += 29.9
    await nodes.batch(CHAIN)
    assert len(two[0].sent) == 1
    two[0].quirk = None
    now[0] += 0.2
    await nodes.batch(CHAIN)
    assert len(two[0].sent) == 2
    assert nodes.state()[0].condition == "ok"


async def test_an_error_that_speaks_of_a_limit_is_waited_out(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, clock=lambda: 100.0))
    two[0].quirk = "limited"
    for _ in range(3):
        assert quantity((await nodes.batch(CHAIN))[0]) == 4663
    assert len(two[0].sent) == 1
    state, _ = nodes.state()
    assert (state.condition, state.why) == ("told to wait", "the node limits our calls")


async def test_a_node_that_tells_no_chain_is_not_believed(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url))
    two[0].quirk = "tells no chain"
    await nodes.batch([RpcCall("eth_gasPrice", [])])
    assert two[0].sent == two[1].sent == [["eth_gasPrice", "eth_chainId"]]
    await nodes.batch([RpcCall("eth_gasPrice", [])])
    assert two[1].sent[1:] == [["eth_gasPrice"]], "it has told, and is asked again only after a while"


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
    assert nodes.state()[0].calls_a_request == 17 <= MAX_CALLS


async def test_what_a_node_lacks_is_remembered_and_the_rest_still_asked_of_it(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode], built: Built
) -> None:
    several = over(ctx, two[0].url, two[1].url)
    two[0].quirk = "no eth_simulateV1"
    await several.heads.refresh()
    await run_check_at(several, built.tokens["plain"])
    two[0].sent.clear()
    await run_check_at(several, built.tokens["plain"])
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
    await run_check_at(several, built.tokens["plain"])
    assert len(two[0].sent) == 1
    state, _ = nodes_of(several).state()
    assert (state.condition, state.why) == ("another chain", "the node is on chain 1, not 4663")


async def test_alone_a_node_of_another_chain_is_upstream(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    several = over(ctx, two[0].url, timeout_s=0.5)
    two[0].quirk = "wrong chain id"
    for _ in range(2):
        with pytest.raises(NodeFault, match="on chain 1, not 4663"):
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


async def test_without_an_allowance_a_late_answer_is_waited_for(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, timeout_s=60.0))
    for _ in range(10):
        await nodes.batch(CHAIN)
    nodes.hedging.tenths = 0
    two[0].stalls = lambda _: 0.3
    await nodes.batch(CHAIN)
    assert two[1].sent == []


async def test_a_node_that_hangs_is_found_out(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, timeout_s=8.0))
    for _ in range(30):
        await nodes.batch(CHAIN)
    two[0].quirk = "hangs"
    async with asyncio.timeout(30):
        for _ in range(3):
            await nodes.batch(CHAIN)
    assert nodes.state()[0].condition == "resting"
    two[0].sent.clear()
    await nodes.batch(CHAIN)
    assert two[0].sent == []


async def test_code_that_runs_for_too_long_rests_no_node(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    """Anybody may write code that runs for long: the node is doubted, and asked plainly before it simulates
    again."""
    nodes = nodes_of(over(ctx, two[0].url, two[1].url, timeout_s=2.0))
    asked: list[str] = []

    async def speaks(node: Node) -> bool:
        asked.append(node.url)
        return True

    nodes.speaks = speaks
    slow = RpcCall("eth_call", [{"to": "0x" + "11" * 20}, "latest"])
    simulation = RpcCall("eth_simulateV1", [{"blockStateCalls": [{}]}, "latest"])

    def stalls_code(node: QuirkyNode) -> Callable[[int], float]:
        return lambda nth: 5.0 if "eth_call" in node.sent[nth] else 0.0

    for node in two:
        node.stalls = stalls_code(node)
    for call in (slow, slow):
        with pytest.raises(NodeTimeout):
            await nodes.batch([call])
    assert [state.condition for state in nodes.state()] == ["ok", "ok"]
    await nodes.batch([simulation])
    assert asked == [two[0].url]


async def test_a_probe_costs_the_request_that_waits_for_it_two_trips(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    """It reads the newest block, and then simulates beside a plain call."""
    nodes, costs = nodes_of(over(ctx, two[0].url, timeout_s=2.0)), []

    async def speaks(node: Node) -> bool:
        return True

    nodes.speaks = speaks
    for _ in range(2):
        meter = Meter()
        await nodes.batch([RpcCall("eth_simulateV1", [{"blockStateCalls": [{}]}, "latest"])], meter)
        costs.append((meter.trips, meter.calls))
    # The first request also asks for the chain's id.
    assert costs == [(3, 5), (1, 1)]


async def test_a_node_that_does_not_answer_plainly_after_a_long_simulation_rests(
    ctx: Context, two: tuple[QuirkyNode, QuirkyNode]
) -> None:
    nodes = nodes_of(over(ctx, two[0].url, timeout_s=0.4))

    async def speaks(node: Node) -> bool:
        await node.batch(CHAIN)
        return True

    nodes.speaks = speaks
    two[0].quirk = "hangs"
    with pytest.raises(NodeTimeout):
        await nodes.batch([RpcCall("eth_simulateV1", [{"blockStateCalls": [{}]}, "latest"])])
    assert nodes.state()[0].condition == "resting"


async def test_a_caller_who_goes_away_blames_nobody(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    nodes = nodes_of(over(ctx, two[0].url, two[1].url))
    two[0].quirk = two[1].quirk = "hangs"
    for turn in range(1, 5):
        task = asyncio.create_task(nodes.batch(CHAIN))
        while len(two[0].sent) < turn:  # noqa: ASYNC110
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
    assert (await run_check_at(several, built.tokens["plain"]))[0] == "ok"
    assert sum(len(one) for one in two[0].sent) <= 20
    assert nodes_of(several).endpoints[0].budget.spent <= 20


async def test_budget_spent_only_when_all_are(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    limited = [NodeUrl(one.url, calls_per_day=3) for one in two]
    nodes = nodes_of(over(ctx, *limited))
    for _ in range(6):
        await nodes.batch(CHAIN)
    with pytest.raises(ServiceFull) as caught:
        await nodes.batch(CHAIN)
    assert caught.value.code == "budget_spent"
    assert [state.condition for state in nodes.state()] == ["budget spent"] * 2
    assert [len(one.sent) for one in two] == [3, 3]


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


async def test_requests_at_once_share_the_limit(ctx: Context, two: tuple[QuirkyNode, QuirkyNode]) -> None:
    limited = NodeUrl(two[0].url, calls_per_second=10)
    nodes = nodes_of(over(ctx, limited, two[1].url, clock=lambda: 5.0))
    await nodes.batches([CHAIN * 8] * 4, Meter())
    assert (len(two[0].sent), len(two[1].sent)) == (2, 2)
