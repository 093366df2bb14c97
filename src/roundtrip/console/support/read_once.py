"""What is read once for all who look within a moment, since nobody's limit counts it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

FOR_S = 1.0
T = TypeVar("T")


class BriefCache(Generic[T]):
    """One reading is under way at most, and what it gave holds for ``for_s`` seconds of ``clock``. One that
    failed is told to those who waited for it, and not kept."""

    def __init__(self, for_s: float = FOR_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._for_s, self._clock = for_s, clock
        self._reading: asyncio.Task[T] | None = None
        self._until_s = 0.0

    async def get(self, read: Callable[[], Awaitable[T]]) -> T:
        """What was read. Raises what the reading does. Who goes away ends it for nobody else."""
        reading = self._reading
        if reading is None or (reading.done() and self._clock() >= self._until_s):
            reading = self._reading = asyncio.create_task(self._read(read))
        return await asyncio.shield(reading)

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        self._until_s = 0.0
        found = await read()
        self._until_s = self._clock() + self._for_s
        return found
