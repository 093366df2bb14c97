"""Span after span of a chain, several asked for at once, given out in order and linked by their hashes."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from roundtrip.domain.errors import NodeFault, ServiceFull

from .rpc import Asks
from .spans import BlockRead, asks_too_much, read_span
from .width import Width

MOST_TRIES = 8
"""Of one block in a row, with waits of about ten seconds in all: then the caller is told."""
FIRST_WAIT_S, MOST_WAIT_S = 0.1, 2.0


class Forked(NodeFault):
    """Block ``number`` does not follow the one that was given out before it: the chain has changed. What was
    given out may be of a chain that is no more."""

    def __init__(self, number: int) -> None:
        super().__init__(f"its block {number} does not follow the block that was read before it")
        self.number = number


@dataclass(slots=True)
class _Span:
    first: int
    last: int
    tries: int = 0
    """How often this block alone has failed."""
    task: asyncio.Task[list[BlockRead]] | None = None

    def blocks(self) -> int:
        return self.last - self.first + 1

    def halves(self) -> list["_Span"]:
        """What is asked for after it failed: it in two, or a block alone again."""
        if self.first == self.last:
            return [_Span(self.first, self.last, self.tries + 1)]
        middle = (self.first + self.last) // 2
        return [_Span(self.first, middle), _Span(middle + 1, self.last)]


async def spans(
    node: Asks,
    first: int,
    last_known: Callable[[], int] | int,
    width: Width,
    in_flight: int = 4,
    parent_hash: str | None = None,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> AsyncGenerator[list[BlockRead], None]:
    """Blocks ``first`` to ``last_known`` (asked again whenever there is room), in spans that follow each
    other. ``parent_hash``: of the block before ``first``, where it is known. At most ``in_flight`` spans are
    asked for or wait here to be taken.

    A span that fails is asked for again in two halves, after a wait where the node did not say that it was
    too much. Raises the NodeFault (or ServiceFull) when a block alone failed MOST_TRIES times in a row,
    ServiceFull at once when the day's calls are spent, and Forked. Close it (``contextlib.aclosing``): then
    nothing is left under way.
    """
    ahead: deque[_Span] = deque()
    failures = 0
    before = parent_hash
    try:
        while True:
            last = last_known if isinstance(last_known, int) else last_known()
            first = _plan(ahead, first, last, width, in_flight)
            if not ahead:
                return
            waiting = [span for span in ahead if span.task is None]
            # The place of one that was taken, or failed, is free: the first is always under way.
            for span in waiting[: in_flight - (len(ahead) - len(waiting))]:
                span.task = asyncio.create_task(_read(node, span, width, clock), name=f"span {span.first}")
            span = ahead[0]
            assert span.task is not None
            try:
                blocks = await span.task
            except (NodeFault, ServiceFull) as fault:
                ahead.popleft()
                failures += 1
                _narrow(width, span, fault)
                if fault.code == "budget_spent" or span.tries == MOST_TRIES - 1:
                    raise
                ahead.extendleft(reversed(span.halves()))
                if not (isinstance(fault, NodeFault) and asks_too_much(fault) and span.blocks() > 1):
                    await wait(max(_wait_s(failures), fault.retry_after_s or 0))
                continue
            ahead.popleft()
            failures = 0
            if before is not None and blocks[0].parent_hash != before:
                raise Forked(blocks[0].ref.number)
            before = blocks[-1].ref.hash
            yield blocks
    finally:
        tasks = [span.task for span in ahead if span.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _plan(ahead: deque[_Span], first: int, last: int, width: Width, in_flight: int) -> int:
    """Adds spans while there is room; the block that the next one begins with."""
    while len(ahead) < in_flight and first <= last:
        span = _Span(first, min(last, first + width.blocks - 1))
        ahead.append(span)
        first = span.last + 1
    return first


async def _read(node: Asks, span: _Span, width: Width, clock: Callable[[], float]) -> list[BlockRead]:
    started_s = clock()
    blocks = await read_span(node, span.first, span.last)
    width.took(span.blocks(), clock() - started_s, sum(len(block.entries) for block in blocks))
    return blocks


def _narrow(width: Width, span: _Span, fault: NodeFault | ServiceFull) -> None:
    if isinstance(fault, NodeFault) and asks_too_much(fault):
        width.refused(span.blocks())
    else:
        width.failed(span.blocks())


def _wait_s(failures: int) -> float:
    return min(MOST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - 1, 16))
