"""What a job needs of the node and the index before it runs. A job may refer to a block that this worker's
node has not reported yet."""

import asyncio

from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.runtime.context import Context
from roundtrip.store.index.cursor import cursor

from .worker import NotYet

TRIES = 12
EVERY_S = 0.25
"""About 3 s in all: a node is seldom further behind another one, and a failed job waits longer."""


async def wait_for_index_head(ctx: Context) -> None:
    """Waits until the head is not behind the index, so that a job does not read a state from before the event
    that enqueued it. Raises NotYet when the node stays behind, and NodeFault."""
    async with ctx.pool.acquire() as connection:
        indexed = await cursor(connection)
    if indexed is None or indexed.block.number <= ctx.heads.current().block.number:
        return
    for attempt in range(TRIES):
        if attempt:
            await asyncio.sleep(EVERY_S)
        if (await ctx.heads.refresh()).block.number >= indexed.block.number:
            return
    raise NotYet("the node is behind the index")


def node_answers(ctx: Context) -> bool:
    """Whether the node reports a head. Without one every check would fail, so none is enqueued."""
    try:
        ctx.heads.current()
    except RoundtripError:
        return False
    return True


async def has_index(ctx: Context) -> bool:
    """Whether the index has a first block."""
    async with ctx.pool.acquire() as connection:
        return await cursor(connection) is not None
