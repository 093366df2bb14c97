"""A worker hears of blocks by itself, and may be told of what happened in one before it has heard of it."""

from roundtrip.services.context import Context
from roundtrip.store.chain import cursor

from .worker import NotYet


async def abreast(ctx: Context) -> None:
    """The head is not behind the index afterwards: whatever a job was wished for has happened in it, and is
    not read from before. Raises NotYet where this worker's node is behind, and NodeFault."""
    async with ctx.pool.acquire() as connection:
        known = await cursor(connection)
    if known is None or known.block.number <= ctx.heads.current().block.number:
        return
    if (await ctx.heads.refresh()).block.number < known.block.number:
        raise NotYet("the node is behind the index")
