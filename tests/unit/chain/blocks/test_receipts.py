"""A block whose logs are more than a node gives at once is read by its receipts, checked like any other."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.receipts import read_by_receipts
from roundtrip.chain.blocks.spans import NodeLied, SpanRefused, asks_too_much, read_span
from roundtrip.chain.rpc.client import NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from support.scripted_chain import Answers, ScriptedChain
from unit.chain.span_chain import FIRST, OTHER_HASH, SECOND, THIRD, chain
from unit.chain.streams import CountedWaits, stream

RECEIPT = "eth_getTransactionReceipt"


def receipts_asked(node: ScriptedChain) -> list[int]:
    """How many receipts each batch asked for."""
    return [len(calls) for calls in node.asked if calls[0].method == RECEIPT]


async def test_a_block_reads_by_its_receipts_as_by_its_logs() -> None:
    node = ScriptedChain(5, blocks=30, most_logs=40)
    for number in range(30):
        (plain,) = await read_span(node, number, number)
        assert await read_by_receipts(node, number) == plain


async def test_one_block_with_more_logs_than_are_given_does_not_stop_the_stream() -> None:
    node, waits = ScriptedChain(3, blocks=40), CountedWaits()
    full = node.mine(*[[FIRST, SECOND, THIRD]] * 50)
    node.grow(20)
    node.most_found = 100
    found = [block async for blocks in stream(node, wait=waits) for block in blocks]
    assert [block.ref.hash for block in found] == [node.hash_of(number) for number in range(61)]
    assert len(found[full].entries) == 150
    assert max(receipts_asked(node)) == 16
    assert waits.waited_s == [], "nothing is waited for"
    assert sum(receipts_asked(node)) == 50, "only this block is read by its receipts"


async def test_fewer_receipts_are_asked_for_until_they_are_given_and_then_more_again() -> None:
    node = chain()
    number = node.mine(*[[FIRST]] * 20)
    heavy = node.blocks[number]["transactions"][5]["hash"]

    async def before(calls: Sequence[RpcCall]) -> None:
        if len(calls) > 1 and any(call.params[0] == heavy for call in calls):
            raise NodeAnswerTooLarge("the node's answer is too large to read")

    node.before = before
    assert len((await read_by_receipts(node, number)).entries) == 20
    assert receipts_asked(node) == [16, 8, 4, 8, 4, 2, 1, 2, 1, 2, 4, 8]


@pytest.mark.parametrize(
    ("error", "narrower"),
    [
        (RpcError(code=-32003, message="response too large"), True),
        (RpcError(code=-32000, message="batch too large"), True),
        (RpcError(code=-32601, message="method not found"), False),
        (RpcError(code=429, message="slow down"), False),
        (None, False),
    ],
)
async def test_only_where_fewer_receipts_may_help_are_fewer_asked_for(error: Any, narrower: bool) -> None:
    node = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        if calls[0].method == RECEIPT:
            answers[-1] = error

    node.twist = twist
    with pytest.raises(NodeFault) as raised:
        await read_by_receipts(node, 2)
    assert isinstance(raised.value, SpanRefused) == asks_too_much(raised.value) == narrower
    assert receipts_asked(node) == ([2, 1] if narrower else [2])


def _of_another(receipts: Answers) -> None:
    receipts.reverse()


LIES: dict[str, tuple[Callable[[Answers], None], str]] = {
    "another transaction's": (_of_another, "different receipt"),
    "of another block": (lambda receipts: receipts[0].update(blockHash=OTHER_HASH), "different block"),
    "a log is left out": (lambda receipts: receipts[0]["logs"].pop(0), "numbered"),
    "the last log is left out": (lambda receipts: receipts[1]["logs"].pop(), "bloom"),
    "a log is doubled": (lambda receipts: receipts[1].update(logs=receipts[1]["logs"] * 2), "numbered"),
    "a log is another block's": (
        lambda receipts: receipts[0]["logs"][0].update(blockNumber="0x1"),
        "outside the requested range",
    ),
    "a log is another transaction's": (
        lambda receipts: receipts[0]["logs"][0].update(transactionIndex="0x1"),
        "different transaction",
    ),
    "a log is removed": (lambda receipts: receipts[0]["logs"][0].update(removed=True), "removed"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
async def test_receipts_are_checked_against_the_header(name: str) -> None:
    change, why = LIES[name]
    node = chain()
    node.twist = lambda calls, answers: change(answers) if calls[0].method == RECEIPT else None
    with pytest.raises(NodeLied, match=why):
        await read_by_receipts(node, 2)


@pytest.mark.parametrize(
    "odd", [7, [], {"logs": []}, {"transactionHash": OTHER_HASH, "blockHash": OTHER_HASH, "logs": 7}]
)
@pytest.mark.parametrize("method", [RECEIPT, "eth_getBlockByNumber"])
async def test_what_cannot_be_read_is_a_fault_of_the_node(odd: Any, method: str) -> None:
    node = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        if calls[0].method == method:
            answers[0] = odd

    node.twist = twist
    with pytest.raises(NodeFault):
        await read_by_receipts(node, 2)


async def test_a_block_that_changes_meanwhile_is_a_fault() -> None:
    node = chain()

    async def before(calls: Sequence[RpcCall]) -> None:
        if calls[0].method == RECEIPT:
            node.fork(2)

    node.before = before
    with pytest.raises(NodeFault):
        await read_by_receipts(node, 2)
    with pytest.raises(NodeFault):
        await read_by_receipts(node, 99)


async def test_a_span_of_two_blocks_is_not_read_by_receipts() -> None:
    node = chain()
    node.most_found = 2
    found = [block async for blocks in stream(node, 1, 4, Width(4)) for block in blocks]
    assert [len(block.entries) for block in found] == [0, 3, 1, 0]
    assert receipts_asked(node) == [2]
