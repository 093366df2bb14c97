"""A worker hears of blocks by itself, and may be told of what happened in one before it has heard of it."""

import asyncio

from roundtrip.services.runtime.context import Context
from roundtrip.store.index.cursor import cursor

from .worker import NotYet

TRIES = 12
EVERY_S = 0.25
"""Some 3 s in all: a node is seldom further behind another one, and a try that failed waits longer."""


async def abreast(ctx: Context) -> None:
    """The head is not behind the index afterwards: whatever a job was wished for has happened in it, and is
    not read from before. Waits for a moment where this worker's node is behind, and raises NotYet where it
    stays so; NodeFault."""
    async with ctx.pool.acquire() as connection:
        known = await cursor(connection)
    if known is None or known.block.number <= ctx.heads.current().block.number:
        return
    for tried in range(TRIES):
        if tried:
            await asyncio.sleep(EVERY_S)
        if (await ctx.heads.refresh()).block.number >= known.block.number:
            return
    raise NotYet("the node is behind the index")
