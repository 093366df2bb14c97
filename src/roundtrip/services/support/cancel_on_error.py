"""Several waits at once, none of which goes on when another one failed."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def at_once(*waits: Coroutine[Any, Any, Any]) -> list[Any]:
    """Their results in order. Raises the first failure, once all the others are over: what is no longer
    wanted costs the node nothing."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
