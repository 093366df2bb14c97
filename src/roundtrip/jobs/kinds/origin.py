"""``origin``, of a wallet's address: searches the archive for when it was first reached, where the index
begins too late to know."""

from roundtrip.domain.base.types import parse_address
from roundtrip.jobs.engine.worker import Effect, NotYet, nothing
from roundtrip.services.runtime.context import Context
from roundtrip.services.wallets.origins import search_archive
from roundtrip.store.index import origins
from roundtrip.store.index.cursor import cursor
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection


async def origin(ctx: Context, job: Job) -> Effect:
    """Searches up to where the index begins; where it is whole there is nothing to search. Raises NotYet when
    it could not be found out, and NodeFault."""
    wallet = parse_address(job.key)
    async with ctx.pool.acquire() as connection:
        known = await cursor(connection)
    if known is None:
        raise NotYet("the index has not begun")
    if known.start_number == 0:
        return nothing
    found = await search_archive(ctx.node, wallet, known.start_number)
    if found is None:
        raise NotYet("it could not be found out")

    async def keep(connection: Connection) -> None:
        await origins.keep_older(connection, wallet, found)

    return keep
