"""Consecutive ranges of blocks, several requested at once, yielded in order."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.chain.blocks.spans import BlockTooLarge, HistoryPruned, asks_too_much
from roundtrip.domain.base.errors import NodeFault, ServiceFull

MAX_TRIES = 8
"""Failures of one block in a row, about ten seconds with their waits, before the fault is raised."""
FIRST_WAIT_S, MAX_WAIT_S = 0.1, 2.0

R = TypeVar("R")
Read = Callable[[int, int], Awaitable[R]]
"""Reads from the first block to the last, both included."""


@dataclass(slots=True)
class _Range(Generic[R]):
    first: int
    last: int
    tries: int = 0
    """How often this single block has failed."""
    task: asyncio.Task[R] | None = None

    def blocks(self) -> int:
        return self.last - self.first + 1

    def halves(self) -> list["_Range[R]"]:
        """What to request after a failure: its two halves, or a single block again."""
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
    """Yields what ``read`` returns for blocks ``first`` to ``last_known`` (called whenever there is room), in
    consecutive ranges. At most ``in_flight`` ranges are requested, or read and not yet consumed.

    A range that fails is requested again in two halves, after a wait unless the node refused it as too much.
    Raises the NodeFault (or ServiceFull) when a single block failed MAX_TRIES times in a row; ServiceFull at
    once when the day's calls are spent; HistoryPruned and BlockTooLarge at once. The caller closes it
    (``contextlib.aclosing``), which cancels every request under way.
    """
    ahead: deque[_Range[R]] = deque()
    failures = 0

    async def read_timed(part: _Range[R]) -> R:
        started_s = clock()
        result = await read(part.first, part.last)
        width.note_answer(part.blocks(), clock() - started_s, count_logs(result))
        return result

    try:
        while True:
            last = last_known if isinstance(last_known, int) else last_known()
            first = _plan(ahead, first, last, width, in_flight)
            if not ahead:
                return
            waiting = [part for part in ahead if part.task is None]
            # A range that was yielded, or failed, left its place: so the first one is always under way.
            for part in waiting[: in_flight - (len(ahead) - len(waiting))]:
                part.task = asyncio.create_task(read_timed(part), name=f"range {part.first}")
            oldest = ahead[0]
            assert oldest.task is not None
            try:
                result = await oldest.task
            except (NodeFault, ServiceFull) as fault:
                ahead.popleft()
                failures += 1
                _narrow(width, oldest.blocks(), fault)
                if _is_hopeless(fault) or oldest.tries == MAX_TRIES - 1:
                    raise
                ahead.extendleft(reversed(oldest.halves()))
                if not (isinstance(fault, NodeFault) and asks_too_much(fault) and oldest.blocks() > 1):
                    await wait(max(_wait_s(failures), fault.retry_after_s or 0))
                continue
            ahead.popleft()
            failures = 0
            yield result
    finally:
        tasks = [part.task for part in ahead if part.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_hopeless(fault: NodeFault | ServiceFull) -> bool:
    """Whether a retry cannot succeed today."""
    is_spent = fault.code in ("budget_spent", "holders_budget")
    return is_spent or isinstance(fault, HistoryPruned | BlockTooLarge)


def _plan(ahead: deque[_Range[R]], first: int, last: int, width: Width, in_flight: int) -> int:
    """Adds ranges while there is room. Returns the first block of the next range."""
    while len(ahead) < in_flight and first <= last:
        part: _Range[R] = _Range(first, min(last, first + width.blocks - 1))
        ahead.append(part)
        first = part.last + 1
    return first


def _narrow(width: Width, blocks: int, fault: NodeFault | ServiceFull) -> None:
    if isinstance(fault, NodeFault) and asks_too_much(fault):
        width.note_refusal(blocks)
    else:
        width.note_failure(blocks)


def _wait_s(failures: int) -> float:
    return min(MAX_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - 1, 16))


def between(below: int, above: int, most: int) -> list[int]:
    """Up to ``most`` evenly spaced numbers between ``below`` and ``above``, both excluded, in order."""
    gap = above - below
    count = min(most, gap - 1)
    return [below + gap * part // (count + 1) for part in range(1, count + 1)]
