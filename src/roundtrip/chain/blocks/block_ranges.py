"""Ranges of blocks one after the other, several asked for at once, given out in order."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.spans import BlockTooLarge, HistoryPruned, asks_too_much
from roundtrip.domain.base.errors import NodeFault, ServiceFull

MOST_TRIES = 8
"""Of one block in a row, with waits of about ten seconds in all: then the caller is told."""
FIRST_WAIT_S, MOST_WAIT_S = 0.1, 2.0

R = TypeVar("R")
Read = Callable[[int, int], Awaitable[R]]
"""Reads from the first block to the last, both included."""


@dataclass(slots=True)
class _Range(Generic[R]):
    first: int
    last: int
    tries: int = 0
    """How often this block alone has failed."""
    task: asyncio.Task[R] | None = None

    def blocks(self) -> int:
        return self.last - self.first + 1

    def halves(self) -> list["_Range[R]"]:
        """What is asked for after it failed: it in two, or a block alone again."""
        if self.first == self.last:
            return [_Range(self.first, self.last, self.tries + 1)]
        middle = (self.first + self.last) // 2
        return [_Range(self.first, middle), _Range(middle + 1, self.last)]


async def ranges(
    read: Read[R],
    count_logs: Callable[[R], int],
    first: int,
    last_known: Callable[[], int] | int,
    width: Width,
    in_flight: int = 4,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> AsyncGenerator[R, None]:
    """What ``read`` gives for blocks ``first`` to ``last_known`` (asked again whenever there is room), in
    ranges that follow each other. At most ``in_flight`` are asked for or wait here to be taken.

    A range that fails is asked for again in two halves, after a wait where the node did not say that it was
    too much. Raises the NodeFault (or ServiceFull) when a block alone failed MOST_TRIES times in a row, and
    at once ServiceFull when the day's calls are spent, and HistoryPruned. Close it (``contextlib.aclosing``):
    then nothing is left under way.
    """
    ahead: deque[_Range[R]] = deque()
    failures = 0

    async def read_timed(one: _Range[R]) -> R:
        started_s = clock()
        found = await read(one.first, one.last)
        width.took(one.blocks(), clock() - started_s, count_logs(found))
        return found

    try:
        while True:
            last = last_known if isinstance(last_known, int) else last_known()
            first = _plan(ahead, first, last, width, in_flight)
            if not ahead:
                return
            waiting = [one for one in ahead if one.task is None]
            # The place of one that was taken, or failed, is free: the first is always under way.
            for one in waiting[: in_flight - (len(ahead) - len(waiting))]:
                one.task = asyncio.create_task(read_timed(one), name=f"range {one.first}")
            one = ahead[0]
            assert one.task is not None
            try:
                found = await one.task
            except (NodeFault, ServiceFull) as fault:
                ahead.popleft()
                failures += 1
                _narrow(width, one.blocks(), fault)
                if _is_hopeless(fault) or one.tries == MOST_TRIES - 1:
                    raise
                ahead.extendleft(reversed(one.halves()))
                if not (isinstance(fault, NodeFault) and asks_too_much(fault) and one.blocks() > 1):
                    await wait(max(_wait_s(failures), fault.retry_after_s or 0))
                continue
            ahead.popleft()
            failures = 0
            yield found
    finally:
        tasks = [one.task for one in ahead if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_hopeless(fault: NodeFault | ServiceFull) -> bool:
    """Whether asking again helps nobody today."""
    is_spent = fault.code in ("budget_spent", "holders_budget")
    return is_spent or isinstance(fault, HistoryPruned | BlockTooLarge)


def _plan(ahead: deque[_Range[R]], first: int, last: int, width: Width, in_flight: int) -> int:
    """Adds ranges while there is room; the block that the next one begins with."""
    while len(ahead) < in_flight and first <= last:
        one: _Range[R] = _Range(first, min(last, first + width.blocks - 1))
        ahead.append(one)
        first = one.last + 1
    return first


def _narrow(width: Width, blocks: int, fault: NodeFault | ServiceFull) -> None:
    if isinstance(fault, NodeFault) and asks_too_much(fault):
        width.note_refusal(blocks)
    else:
        width.note_failure(blocks)


def _wait_s(failures: int) -> float:
    return min(MOST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - 1, 16))


def between(below: int, above: int, most: int) -> list[int]:
    """Up to ``most`` numbers above the one and below the other, evenly, in order."""
    gap = above - below
    count = min(most, gap - 1)
    return [below + gap * part // (count + 1) for part in range(1, count + 1)]
