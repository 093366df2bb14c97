"""Work that goes on beside something else, and ends with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def beside(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Runs ``work`` as a task while the block of ``async with`` runs."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def is_cancelled() -> bool:
    """Whether this task is to end. A connection that fails while it is put away raises in place of the
    cancellation, which is lost then: who catches everything and goes on asks."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
