"""Spans that a node does not give, single blocks by their hash, and headers."""

from collections.abc import Sequence
from typing import Any

import pytest

from roundtrip.chain.blocks.spans import (
    NodeLied,
    SpanRefused,
    asks_too_much,
    read_block,
    read_refs,
    read_span,
)
from roundtrip.chain.rpc.client import NodeAnswerTooLarge, NodeRefused, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from support.scripted_chain import Answers
from unit.chain.span_chain import OTHER_HASH, THIRD, chain, ref_of

# --- a node that says no ---------------------------------------------------------------------------


async def test_a_node_that_gives_no_logs_of_so_many_blocks_refuses_the_span() -> None:
    made = chain()
    made.most_blocks = 2
    with pytest.raises(SpanRefused, match="4 blocks") as raised:
        await read_span(made, 1, 4)
    assert asks_too_much(raised.value)
    assert len(await read_span(made, 1, 2)) == 2
    made.most_blocks, made.most_found = None, 3
    with pytest.raises(SpanRefused):
        await read_span(made, 1, 4)


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (RpcError(code=-32602, message="Log response size exceeded."), True),
        (RpcError(code=-32603, message="query timeout exceeded"), True),
        (RpcError(code=-32000, message="batch too large"), True),
        (RpcError(code=-32000, message="header not found"), False),
        (RpcError(code=429, message="slow down"), False),
        (RpcError(code=-32601, message="method not found"), False),
    ],
)
async def test_only_where_fewer_blocks_may_help_is_a_span_refused(error: RpcError, refused: bool) -> None:
    made = chain()
    made.twist = lambda _, answers: answers.__setitem__(0, error)
    with pytest.raises(NodeFault) as raised:
        await read_span(made, 1, 4)
    assert isinstance(raised.value, SpanRefused) == asks_too_much(raised.value) == refused


@pytest.mark.parametrize(
    ("fault", "refused"),
    [
        (NodeRefused("no", 413), True),
        (NodeRefused("no", 200, RpcError(message="batch size exceeded")), True),
        (NodeRefused("no", 400, RpcError(message="block range too large")), True),
        (NodeRefused("no", 500), False),
        (NodeRefused("no", 429, RpcError(message="rate limit")), False),
        (NodeAnswerTooLarge("the node's answer is too large to read"), True),
        (NodeFault("it took too long"), False),
    ],
)
async def test_a_batch_refused_for_its_size_asks_for_fewer(fault: NodeFault, refused: bool) -> None:
    made = chain()

    async def refuses(_: Sequence[RpcCall]) -> None:
        raise fault

    made.before = refuses
    with pytest.raises(NodeFault) as raised:
        await read_span(made, 1, 4)
    assert asks_too_much(raised.value) == refused


async def test_blocks_beyond_the_head_are_a_fault() -> None:
    made = chain()
    with pytest.raises(NodeFault, match="none of the requested blocks"):
        await read_span(made, 3, 5)


async def test_answers_of_two_nodes_on_two_forks_do_not_pass() -> None:
    made, other = chain(), chain()
    other.fork(3)
    other.mine([THIRD])
    made.mine([THIRD])

    def logs_of_the_other(calls: Sequence[RpcCall], answers: Answers) -> None:
        answers[0] = other._answer(calls[0])

    made.twist = logs_of_the_other
    with pytest.raises(NodeLied):
        await read_span(made, 1, 5)


# --- by hash, and headers --------------------------------------------------------------------------


async def test_a_block_is_read_by_its_hash_also_after_a_fork_put_it_away() -> None:
    made = chain()
    hash_before = made.hash_of(2)
    (plain,) = await read_span(made, 2, 2)
    made.fork(2)
    assert made.hash_of(2) != hash_before
    assert await read_block(made, hash_before) == plain
    with pytest.raises(NodeFault):
        await read_block(made, OTHER_HASH)
    made.twist = lambda _, answers: answers.__setitem__(slice(None), [made.logs[1], made.blocks[1]])
    with pytest.raises(NodeLied, match="different block"):
        await read_block(made, hash_before)


async def test_headers_tell_where_a_fork_began() -> None:
    made = chain()
    old = [made.hash_of(number) for number in range(5)]
    made.fork(3, blocks=1)
    found = await read_refs(made, [4, 3, 2])
    assert found[0] is None
    assert found[1] is not None
    assert found[1][0].hash != old[3]
    assert found[2] == (ref_of(made, 2), old[1])


@pytest.mark.parametrize(
    ("answer", "lied"),
    [
        (RpcError(code=-32000, message="pruned"), False),
        ({"number": "0x3"}, False),
        (7, False),
        ("other", True),
    ],
)
async def test_headers_that_are_not_told_are_a_fault(answer: Any, lied: bool) -> None:
    made = chain()
    given = made.blocks[1] if answer == "other" else answer
    made.twist = lambda _, answers: answers.__setitem__(1, given)
    with pytest.raises(NodeFault) as raised:
        await read_refs(made, [4, 3])
    assert isinstance(raised.value, NodeLied) == lied
