"""Runs coroutines concurrently; when one fails, the others are cancelled."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from roundtrip.chain.rpc.recorder import TURNS_TO_SEND

T = TypeVar("T")


async def at_once(*waits: Coroutine[Any, Any, Any]) -> list[Any]:
    """Returns the results in order. Raises the first failure after all others are cancelled and done, so that
    abandoned work costs the node nothing."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def start_early(wait: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """A task whose requests are on their way: what the caller computes now takes no time of their answer. It
    is cancelled where the caller leaves before it is done."""
    task = asyncio.create_task(wait)
    try:
        for _ in range(TURNS_TO_SEND):
            await asyncio.sleep(0)
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
