"""How a stream of spans ends, and that it gets through any faults."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.block_ranges import MAX_TRIES
from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault
from support.scripted_chain import ScriptedChain
from unit.chain.streams import asked_for, failing, numbers, stream, turns

# --- the end ---------------------------------------------------------------------------------------


def spans_under_way() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name().startswith("range ")]


async def hanging(_: Sequence[RpcCall]) -> None:
    await asyncio.Event().wait()


async def test_closing_leaves_nothing_under_way() -> None:
    made = ScriptedChain(3, blocks=200)
    async with contextlib.aclosing(stream(made, width=Width(10, 10))) as found:  # type: ignore[type-var]
        await anext(found)
        made.before = hanging
        await anext(found)
        assert spans_under_way()
    assert not spans_under_way()


async def test_cancelling_who_reads_leaves_nothing_under_way() -> None:
    made = ScriptedChain(3, blocks=200)
    made.before = hanging
    task = asyncio.create_task(numbers(stream(made)))
    await turns()
    assert spans_under_way()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not spans_under_way()


async def test_a_fault_that_is_told_of_leaves_nothing_under_way() -> None:
    made = ScriptedChain(3, blocks=40)

    async def before(calls: Sequence[RpcCall]) -> None:
        if asked_for(calls)[0] > 0:
            await hanging(calls)
        raise NodeFault("gone")

    made.before = before
    with pytest.raises(NodeFault, match="gone"):
        await numbers(stream(made))
    assert not spans_under_way()


async def test_what_is_no_fault_of_a_node_is_not_swallowed() -> None:
    made = ScriptedChain(3, blocks=40)
    made.before = failing(lambda first, last: ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await numbers(stream(made))
    assert not spans_under_way()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 40), st.floats(0.0, 0.6))
async def test_through_any_faults_the_whole_chain_comes_once_and_in_order(
    seed: int, in_flight: int, width: int, share: float
) -> None:
    made = ScriptedChain(seed, blocks=80)
    chance = made._random
    in_a_row: dict[int, int] = {}

    def twist(calls: Sequence[RpcCall], answers: list[Any]) -> None:
        if calls[0].method != "eth_getLogs":
            return
        first = asked_for(calls)[0]
        if chance.random() >= share or in_a_row.get(first, 0) >= MAX_TRIES - 1:
            in_a_row[first] = 0
            return
        in_a_row[first] = in_a_row.get(first, 0) + 1
        kind = chance.randrange(4)
        if kind == 0:
            answers[0] = RpcError(code=-32005, message="query returned more than 10000 results")
        elif kind == 1:
            answers[-1] = None
        elif kind == 2:
            answers[1]["hash"] = "0x" + "77" * 32
            answers[-1]["logsBloom"] = "0x" + "1" * 512
        else:
            raise NodeFault("gone")

    made.twist = twist
    found = [
        block async for blocks in stream(made, width=Width(width), in_flight=in_flight) for block in blocks
    ]
    assert [block.ref.hash for block in found] == [made.hash_of(number) for number in range(80)]
