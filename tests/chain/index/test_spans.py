"""Spans of the real local chain: its whole past reads, and whatever a node does wrong is a fault of its."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.span_stream import ForkSeen, spans
from roundtrip.chain.blocks.spans import BlockRead, read_block, read_refs, read_span
from roundtrip.chain.rpc.client import Node, NodeAnswerTooLarge
from roundtrip.chain.rpc.endpoints import NodeUrl
from roundtrip.chain.rpc.node_pool import NodePool
from roundtrip.config.networks import CHAIN_ID
from roundtrip.domain.base.errors import NodeFault
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.faulty_node import ANSWER_FAULTS, WIRE_FAULTS, FaultyNode
from support.nodes import pair

NOT_ABOUT_SPANS = {"wrong chain id", "no eth_simulateV1", "another block", "fewer calls", "odd fields"}
"""Faults of answers that no span asks for."""


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as found:
        yield found


@pytest.fixture
def last(rpc: SyncRpc, built: Built) -> int:
    number: str = rpc.call("eth_blockNumber")
    return int(number, 16)


def plainly(rpc: SyncRpc, first: int, last: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rpc.call("eth_getLogs", {"fromBlock": hex(first), "toBlock": hex(last)})
    return found


async def test_the_whole_past_reads_as_the_node_tells_it_plainly(
    rpc: SyncRpc, session: aiohttp.ClientSession, last: int
) -> None:
    read = await read_span(Node(rpc.url, session, 20.0), 0, last)
    logs = plainly(rpc, 0, last)
    assert len(logs) > 2000
    assert [
        (
            block.ref.number,
            block.transactions[entry.tx_index].hash,
            entry.log_index,
            entry.log.address,
            list(entry.log.topics),
            "0x" + entry.log.data.hex(),
        )
        for block in read
        for entry in block.entries
    ] == [
        (
            int(log["blockNumber"], 16),
            log["transactionHash"],
            int(log["logIndex"], 16),
            log["address"],
            log["topics"],
            log["data"],
        )
        for log in logs
    ]
    assert [block.ref.number for block in read] == list(range(last + 1))
    assert sum(len(block.transactions) for block in read) > 1000


async def test_a_stream_of_spans_reads_the_same(
    rpc: SyncRpc, session: aiohttp.ClientSession, last: int
) -> None:
    node = Node(rpc.url, session, 20.0)
    streamed: list[BlockRead] = []
    async for blocks in spans(node, 0, last, Width()):
        streamed += blocks
    assert streamed == await read_span(node, 0, last)


async def test_a_block_by_its_hash_and_headers_are_the_same_ones(
    rpc: SyncRpc, session: aiohttp.ClientSession, last: int
) -> None:
    node = Node(rpc.url, session, 20.0)
    (plain,) = await read_span(node, last, last)
    assert await read_block(node, plain.ref.hash) == plain
    assert await read_refs(node, [last, last + 1]) == [(plain.ref, plain.parent_hash), None]


async def test_after_a_fork_blocks_are_of_the_new_chain(
    rpc: SyncRpc, built: Built, session: aiohttp.ClientSession, last: int
) -> None:
    node = Node(rpc.url, session, 20.0)
    rpc.call("anvil_mine", "0x5")
    before = await read_span(node, last, last + 5)
    sender = rpc.call("eth_accounts")[0]
    deposit = {"from": sender, "to": built.contracts["weth"], "value": "0x1", "data": "0xd0e30db0"}
    rpc.call("anvil_reorg", 3, [[deposit, 1]])
    after = await read_span(node, last, last + 5)
    same = [one.ref.hash == other.ref.hash for one, other in zip(before, after, strict=True)]
    # The empty block mined anew at last + 3 is the same one where the node gives it the same second.
    assert (same[:3], same[4:]) == ([True] * 3, [False] * 2)
    assert [len(block.entries) for block in after[3:]] == [0, 1, 0]
    with pytest.raises(ForkSeen):
        await anext(spans(node, last + 5, last + 5, Width(), parent_hash=before[4].ref.hash))


async def test_a_block_of_more_logs_than_an_answer_may_hold_is_read_by_its_receipts(
    rpc: SyncRpc, session: aiohttp.ClientSession, last: int
) -> None:
    sender = rpc.call("eth_accounts")[0]
    # Again and again 400 empty logs, until there are less than 400,000 gas.
    empty_logs = "0x5b" + "5f5fa0" * 400 + "62061a805a115f5700"
    rpc.call("evm_setAutomine", False)
    for _ in range(2):
        rpc.call("eth_sendTransaction", {"from": sender, "data": empty_logs, "gas": hex(3_000_000)})
    rpc.call("evm_mine")
    rpc.call("evm_setAutomine", True)
    rpc.call("anvil_mine", "0x5")
    count = len(plainly(rpc, last + 1, last + 1))
    assert count > 10_000

    node = Node(rpc.url, session, 20.0, most_answer_bytes=3 * 2**20)
    with pytest.raises(NodeAnswerTooLarge):
        await read_span(node, last + 1, last + 1)

    async def wait(_: float) -> None:
        pytest.fail("a block is waited for that is there")

    found = [
        block
        async for blocks in spans(node, last - 9, last + 6, Width(), in_flight=2, wait=wait)
        for block in blocks
    ]
    assert [block.ref.number for block in found] == list(range(last - 9, last + 7))
    assert len(found[10].entries) == count
    assert found == await read_span(Node(rpc.url, session, 20.0), last - 9, last + 6)


@pytest.mark.parametrize("fault", [*ANSWER_FAULTS, *WIRE_FAULTS])
@pytest.mark.parametrize("several", [False, True])
async def test_whatever_a_node_does_is_a_fault_of_its_own(
    rpc: SyncRpc, session: aiohttp.ClientSession, last: int, fault: str, several: bool
) -> None:
    async with FaultyNode(rpc.url).running() as faulty:
        faulty.fault = fault
        # What is answered has all the time that a busy machine takes.
        timeout_s = 10.0 if fault in NOT_ABOUT_SPANS else 0.3
        node: Node | NodePool = Node(faulty.url, session, timeout_s, most_answer_bytes=2**22)
        if several:
            node = _nodes(session, [faulty.url], timeout_s)
        if fault in NOT_ABOUT_SPANS and not (several and fault == "wrong chain id"):
            assert len(await read_span(node, last - 20, last)) == 21
            return
        with pytest.raises(NodeFault):
            await read_span(node, last - 20, last)


@pytest.mark.parametrize("fault", sorted({*ANSWER_FAULTS, *WIRE_FAULTS} - NOT_ABOUT_SPANS))
async def test_a_node_that_fails_for_a_while_costs_nothing(
    rpc: SyncRpc, session: aiohttp.ClientSession, last: int, fault: str
) -> None:
    left = 4

    async def wait(_: float) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            faulty.fault = None

    async with FaultyNode(rpc.url).running() as faulty:
        node = Node(faulty.url, session, 0.3, most_answer_bytes=2**22)
        faulty.fault, faulty.after = fault, 1
        found = [
            block.ref.number
            async for blocks in spans(node, last - 99, last, Width(), in_flight=2, wait=wait)
            for block in blocks
        ]
        assert found == list(range(last - 99, last + 1))


async def test_a_second_node_stands_in(rpc: SyncRpc, session: aiohttp.ClientSession, last: int) -> None:
    async with pair(rpc.url) as (one, other):
        nodes = _nodes(session, [one.url, other.url], 5.0)
        one.quirk = "half an answer"
        assert len(await read_span(nodes, last - 20, last)) == 21
        assert other.sent


def _nodes(session: aiohttp.ClientSession, urls: list[str], timeout_s: float) -> NodePool:
    return NodePool([NodeUrl(url) for url in urls], session, CHAIN_ID, timeout_s)
