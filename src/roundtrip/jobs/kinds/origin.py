"""``origin``, key: a wallet's address. Searches the archive for the wallet's first transaction when that is
before the index begins."""

from roundtrip.domain.base.types import parse_address
from roundtrip.jobs.engine.worker import Effect, NotYet, do_nothing
from roundtrip.services.runtime.context import Context
from roundtrip.services.wallets.history import search_archive
from roundtrip.store.index import origins
from roundtrip.store.index.cursor import cursor
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection


async def origin(ctx: Context, job: Job) -> Effect:
    """Searches the blocks before the index; an index that begins at block 0 leaves nothing to search. Raises
    NotYet when the search found no answer, and NodeFault."""
    wallet = parse_address(job.key)
    async with ctx.pool.acquire() as connection:
        indexed = await cursor(connection)
    if indexed is None:
        raise NotYet("the index is empty")
    if indexed.start_number == 0:
        return do_nothing
    wallet_origin = await search_archive(ctx.node, wallet, indexed.start_number)
    if wallet_origin is None:
        raise NotYet("the search found no answer")

    async def keep(connection: Connection) -> None:
        await origins.keep_archive_search(connection, wallet, wallet_origin)

    return keep
