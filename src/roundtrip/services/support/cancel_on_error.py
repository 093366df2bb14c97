"""Runs coroutines concurrently; when one fails, the others are cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any


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
