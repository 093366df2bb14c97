"""An index that stands where a test wants it, without anybody who follows the chain."""

import contextlib
from collections.abc import AsyncIterator

from roundtrip.domain.base.types import BlockRef
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import cursor


@contextlib.asynccontextmanager
async def followed(ctx: Context, to: BlockRef | None = None) -> AsyncIterator[None]:
    """The chain was followed up to block ``to``; None: to the head that the context knows."""
    async with ctx.pool.acquire() as connection:
        await connection.execute("DELETE FROM facts.cursor")
        await cursor.begin(connection, 0, to or ctx.heads.current().block)
    try:
        yield
    finally:
        async with ctx.pool.acquire() as connection:
            await connection.execute("DELETE FROM facts.cursor")
