"""Background tasks, cancelled when the block exits."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def run_in_background(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[None]:
    """Runs ``work`` as a task while the block of ``async with`` runs."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def is_cancelled() -> bool:
    """Whether this task was cancelled. A connection that fails while it closes raises its own error in place
    of the cancellation, which is then lost: a loop that catches every exception has to ask."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
