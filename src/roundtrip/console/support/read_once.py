"""A cache for a moment: bounds reads that count against no caller's limit."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

FOR_S = 1.0
T = TypeVar("T")


class BriefCache(Generic[T]):
    """Runs at most one read at a time, and serves its answer for ``for_s`` seconds of ``clock``. A failure is
    raised to the callers that wait for it, and not cached."""

    def __init__(self, for_s: float = FOR_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._for_s, self._clock = for_s, clock
        self._reading: asyncio.Task[T] | None = None
        self._until_s = 0.0

    async def get(self, read: Callable[[], Awaitable[T]]) -> T:
        """The cached answer, else a new read's. Raises what ``read`` raises. Cancelling a caller does not
        cancel the read."""
        reading = self._reading
        if reading is None or (reading.done() and self._clock() >= self._until_s):
            reading = self._reading = asyncio.create_task(self._read(read))
        return await asyncio.shield(reading)

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        self._until_s = 0.0
        answer = await read()
        self._until_s = self._clock() + self._for_s
        return answer
