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


def receipts_asked(made: ScriptedChain) -> list[int]:
    """Of how many transactions, batch by batch."""
    return [len(calls) for calls in made.asked if calls[0].method == RECEIPT]


async def test_a_block_reads_by_its_receipts_as_by_its_logs() -> None:
    made = ScriptedChain(5, blocks=30, most_logs=40)
    for number in range(30):
        (plain,) = await read_span(made, number, number)
        assert await read_by_receipts(made, number) == plain


async def test_one_block_with_more_logs_than_are_given_does_not_stop_the_stream() -> None:
    made, waits = ScriptedChain(3, blocks=40), CountedWaits()
    full = made.mine(*[[FIRST, SECOND, THIRD]] * 50)
    made.grow(20)
    made.most_found = 100
    found = [block async for blocks in stream(made, wait=waits) for block in blocks]
    assert [block.ref.hash for block in found] == [made.hash_of(number) for number in range(61)]
    assert len(found[full].entries) == 150
    assert max(receipts_asked(made)) == 16
    assert waits.waited_s == [], "nothing is waited for"
    assert sum(receipts_asked(made)) == 50, "only this block is read so"


async def test_fewer_receipts_are_asked_for_until_they_are_given_and_then_more_again() -> None:
    made = chain()
    number = made.mine(*[[FIRST]] * 20)
    heavy = made.blocks[number]["transactions"][5]["hash"]

    async def before(calls: Sequence[RpcCall]) -> None:
        if len(calls) > 1 and any(call.params[0] == heavy for call in calls):
            raise NodeAnswerTooLarge("the node's answer is too large to read")

    made.before = before
    assert len((await read_by_receipts(made, number)).entries) == 20
    assert receipts_asked(made) == [16, 8, 4, 8, 4, 2, 1, 2, 1, 2, 4, 8]


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
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        if calls[0].method == RECEIPT:
            answers[-1] = error

    made.twist = twist
    with pytest.raises(NodeFault) as raised:
        await read_by_receipts(made, 2)
    assert isinstance(raised.value, SpanRefused) == asks_too_much(raised.value) == narrower
    assert receipts_asked(made) == ([2, 1] if narrower else [2])


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
async def test_receipts_are_held_against_the_header(name: str) -> None:
    change, why = LIES[name]
    made = chain()
    made.twist = lambda calls, answers: change(answers) if calls[0].method == RECEIPT else None
    with pytest.raises(NodeLied, match=why):
        await read_by_receipts(made, 2)


@pytest.mark.parametrize(
    "odd", [7, [], {"logs": []}, {"transactionHash": OTHER_HASH, "blockHash": OTHER_HASH, "logs": 7}]
)
@pytest.mark.parametrize("method", [RECEIPT, "eth_getBlockByNumber"])
async def test_what_cannot_be_read_is_a_fault_of_the_node(odd: Any, method: str) -> None:
    made = chain()

    def twist(calls: Sequence[RpcCall], answers: Answers) -> None:
        if calls[0].method == method:
            answers[0] = odd

    made.twist = twist
    with pytest.raises(NodeFault):
        await read_by_receipts(made, 2)


async def test_a_block_that_changes_meanwhile_is_a_fault() -> None:
    made = chain()

    async def before(calls: Sequence[RpcCall]) -> None:
        if calls[0].method == RECEIPT:
            made.fork(2)

    made.before = before
    with pytest.raises(NodeFault):
        await read_by_receipts(made, 2)
    with pytest.raises(NodeFault):
        await read_by_receipts(made, 99)


async def test_a_span_of_two_blocks_is_not_read_by_receipts() -> None:
    made = chain()
    made.most_found = 2
    found = [block async for blocks in stream(made, 1, 4, Width(4)) for block in blocks]
    assert [len(block.entries) for block in found] == [0, 3, 1, 0]
    assert receipts_asked(made) == [2]
