"""Span after span: in order, linked, several at once; narrower after a fault, and nothing left under way."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.block_ranges import FIRST_WAIT_S, MAX_TRIES, MAX_WAIT_S
from roundtrip.chain.blocks.span_stream import ForkSeen
from roundtrip.chain.blocks.spans import BlockRead, NodeLied, SpanRefused
from roundtrip.chain.rpc.client import NodeAnswerTooLarge, RpcCall
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from support.scripted_chain import ScriptedChain
from unit.chain.streams import CountedWaits, asked_for, failing, numbers, stream, turns


async def test_a_chain_comes_whole_in_order_and_ever_wider() -> None:
    made = ScriptedChain(3, blocks=600)
    found = await numbers(stream(made))
    assert [number for span in found for number in span] == list(range(600))
    assert len(found[0]) == 32
    assert max(map(len, found)) > 64


async def test_what_is_asked_may_begin_and_end_anywhere_and_be_nothing() -> None:
    made = ScriptedChain(3, blocks=50)
    assert await numbers(stream(made, 7, 7)) == [[7]]
    assert await numbers(stream(made, 8, 7)) == []
    assert made.asked[1:] == []


async def test_the_end_is_asked_for_again_as_the_chain_grows() -> None:
    made = ScriptedChain(3, blocks=40)
    seen: list[int] = []
    async for blocks in stream(made, 0, lambda: made.last):
        seen += [block.ref.number for block in blocks]
        if made.last < 60:
            made.grow(5)
    assert seen == list(range(made.last + 1))


@pytest.mark.parametrize("in_flight", [1, 3])
async def test_so_many_are_under_way_and_no_more(in_flight: int) -> None:
    made = ScriptedChain(3, blocks=200)
    under_way = most = 0
    gate = asyncio.Event()

    async def waits(_: Sequence[RpcCall]) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await gate.wait()
        under_way -= 1

    made.before = waits
    task = asyncio.create_task(numbers(stream(made, width=Width(10, 10), in_flight=in_flight)))
    await turns()
    assert most == in_flight
    gate.set()
    assert sum(map(len, await task)) == 200
    assert most == in_flight


async def test_nothing_is_read_far_ahead_of_who_takes_it() -> None:
    made = ScriptedChain(3, blocks=200)
    found = stream(made, width=Width(10, 10), in_flight=3)
    await anext(found)
    await turns()
    assert len(made.asked) == 3
    await anext(found)
    await turns()
    assert len(made.asked) == 4
    await aclose(found)


async def aclose(found: AsyncIterator[list[BlockRead]]) -> None:
    await found.aclose()  # type: ignore[attr-defined]


async def test_they_come_in_order_whichever_is_answered_first() -> None:
    made = ScriptedChain(3, blocks=40)
    gates = {first: asyncio.Event() for first in (0, 10, 20, 30)}

    async def waits(calls: Sequence[RpcCall]) -> None:
        await gates[asked_for(calls)[0]].wait()

    made.before = waits
    task = asyncio.create_task(numbers(stream(made, width=Width(10, 10))))
    for first in (30, 10, 20, 0):
        gates[first].set()
        await turns()
    assert await task == [list(range(first, first + 10)) for first in (0, 10, 20, 30)]


async def test_a_span_that_failed_once_comes_in_halves() -> None:
    made, waits, width = ScriptedChain(3, blocks=64), CountedWaits(), Width()
    made.before = failing(lambda first, last: NodeFault("gone") if (first, last) == (0, 31) else None)
    found = await numbers(stream(made, width=width, wait=waits, in_flight=1))
    assert found[:2] == [list(range(16)), list(range(16, 32))]
    assert [number for span in found for number in span] == list(range(64))
    assert waits.waited_s == [FIRST_WAIT_S]


@pytest.mark.parametrize(
    "fault", [SpanRefused("too wide"), NodeAnswerTooLarge("the node's answer is too large to read")]
)
async def test_a_node_that_says_it_is_too_much_is_asked_for_less_without_a_wait(fault: NodeFault) -> None:
    made, waits = ScriptedChain(3, blocks=300), CountedWaits()
    made.before = failing(lambda first, last: fault if last - first + 1 > 9 else None)
    found = await numbers(stream(made, wait=waits))
    assert [number for span in found for number in span] == list(range(300))
    assert max(map(len, found)) <= 9
    assert waits.waited_s == []
    assert len(made.asked) < 300 / 8 + 20, "not every span is refused first"


async def test_a_real_limit_of_range_and_of_logs_is_kept_to() -> None:
    made = ScriptedChain(3, blocks=300)
    made.most_blocks, made.most_found = 20, 40
    found = await numbers(stream(made))
    assert [number for span in found for number in span] == list(range(300))
    assert max(map(len, found)) <= 20


async def test_a_block_that_never_comes_is_told_of_after_so_many_tries() -> None:
    made, waits, width = ScriptedChain(3, blocks=40), CountedWaits(), Width()
    made.before = failing(lambda first, last: NodeFault("gone") if first <= 20 <= last else None)
    found = stream(made, width=width, wait=waits)
    seen: list[int] = []

    async def taken() -> None:
        async for blocks in found:
            seen.extend(block.ref.number for block in blocks)

    with pytest.raises(NodeFault, match="gone"):
        await taken()
    assert seen == list(range(20)), "what comes before it is given out"
    assert [asked_for(calls) for calls in made.asked].count((20, 20)) == MAX_TRIES
    assert max(waits.waited_s) == MAX_WAIT_S
    assert width.blocks < 32


async def test_a_block_that_comes_at_the_last_try_is_taken() -> None:
    made, left = ScriptedChain(3, blocks=3), MAX_TRIES - 1

    async def before(calls: Sequence[RpcCall]) -> None:
        nonlocal left
        if asked_for(calls) == (1, 1) and left:
            left -= 1
            raise NodeFault("gone")

    made.before = before
    assert await numbers(stream(made, width=Width(1, 1))) == [[0], [1], [2]]


async def test_a_block_alone_that_is_too_much_waits_and_waits_begin_anew_after_an_answer() -> None:
    made, waits, left = ScriptedChain(3, blocks=4), CountedWaits(), {0: 3, 2: 2}

    async def before(calls: Sequence[RpcCall]) -> None:
        first = asked_for(calls)[0]
        if left.get(first):
            # Refused by its logs, then also by its receipts.
            left[first] -= calls[0].method != "eth_getLogs"
            raise SpanRefused("too much")

    made.before = before
    assert await numbers(stream(made, width=Width(1, 1), wait=waits, in_flight=1)) == [[0], [1], [2], [3]]
    assert waits.waited_s == [FIRST_WAIT_S * times for times in (1, 2, 4, 1, 2)]


async def test_after_halves_no_more_are_under_way_than_before() -> None:
    made, under_way, most = ScriptedChain(3, blocks=40), 0, 0

    async def before(calls: Sequence[RpcCall]) -> None:
        nonlocal under_way, most
        first, last = asked_for(calls)
        if last - first + 1 > 2:
            raise SpanRefused("too wide")
        under_way += 1
        most = max(most, under_way)
        await turns()
        under_way -= 1

    made.before = before
    assert sum(map(len, await numbers(stream(made, width=Width(16), in_flight=2)))) == 40
    assert most == 2


@pytest.mark.parametrize(("answer_s", "then"), [(0.0, 16), (9.0, 4)])
async def test_how_long_an_answer_took_is_told_to_the_width(answer_s: float, then: int) -> None:
    made, width, now_s = ScriptedChain(3, blocks=8), Width(8), 0.0

    async def before(_: Sequence[RpcCall]) -> None:
        nonlocal now_s
        now_s += answer_s

    made.before = before
    await numbers(stream(made, width=width, clock=lambda: now_s))
    assert width.blocks == then


async def test_how_many_logs_there_were_is_told_to_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roundtrip.chain.blocks.adaptive_width.MAX_LOGS", 10)
    made, width = ScriptedChain(3, blocks=8), Width(8)
    assert sum(map(len, made.logs)) > 10
    await numbers(stream(made, width=width))
    assert width.blocks == 4


async def test_a_lie_is_asked_for_again_and_not_given_out() -> None:
    made = ScriptedChain(3, blocks=200)
    lies = 3

    def twist(_: Sequence[RpcCall], answers: list[Any]) -> None:
        nonlocal lies
        if lies and answers[0]:
            lies -= 1
            answers[0].pop()

    made.twist = twist
    found = [block async for blocks in stream(made) for block in blocks]
    assert lies == 0
    assert [len(block.entries) for block in found] == [len(logs) for logs in made.logs]


async def test_a_node_that_always_lies_is_told_of() -> None:
    made = ScriptedChain(3, blocks=40)
    made.twist = lambda _, answers: answers[1].update(logsBloom="0x" + "1" * 512)
    with pytest.raises(NodeLied, match="bloom"):
        await numbers(stream(made))


async def test_a_budget_that_is_spent_is_told_of_at_once_and_a_busy_service_waits() -> None:
    made, waits = ScriptedChain(3, blocks=40), CountedWaits()
    spent = ServiceFull(
        "budget_spent", "Today's budget of chain calls is used up. It renews at 00:00 UTC.", 7000
    )
    made.before = failing(lambda first, last: spent)
    with pytest.raises(ServiceFull, match="budget"):
        await numbers(stream(made, wait=waits, in_flight=1))
    assert len(made.asked) == 1
    assert waits.waited_s == []

    busy = ServiceFull("busy", "Not just now.", 1)
    made.before = failing(lambda first, last: busy if last - first > 4 else None)
    assert sum(map(len, await numbers(stream(made, wait=waits)))) == 40
    assert min(waits.waited_s) == 1


# --- forks -----------------------------------------------------------------------------------------


async def test_a_span_that_does_not_follow_the_one_before_is_a_fork() -> None:
    made = ScriptedChain(3, blocks=60)
    found = stream(made, width=Width(10, 10), in_flight=1)
    assert [block.ref.number for block in await anext(found)] == list(range(10))
    made.fork(5)
    with pytest.raises(ForkSeen) as raised:
        await anext(found)
    assert raised.value.number == 10


async def test_a_fork_above_what_was_given_out_changes_nothing() -> None:
    made = ScriptedChain(3, blocks=60)
    found = stream(made, width=Width(10, 10), in_flight=1)
    await anext(found)
    made.fork(10)
    rest = [block async for blocks in found for block in blocks]
    assert [block.ref.hash for block in rest] == [made.hash_of(number) for number in range(10, 60)]


async def test_the_first_span_follows_the_block_that_the_caller_has() -> None:
    made = ScriptedChain(3, blocks=60)
    await aclose(stream(made, 10, parent_hash=made.hash_of(9)))
    assert sum(map(len, await numbers(stream(made, 10, parent_hash=made.hash_of(9))))) == 50
    with pytest.raises(ForkSeen):
        await numbers(stream(made, 10, parent_hash=made.hash_of(8)))
