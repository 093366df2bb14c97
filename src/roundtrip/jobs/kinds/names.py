"""``names``, of ``public``, every minute: counts which names and marks of wallets enough people gave, and
wishes for itself."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from roundtrip.domain.community.marks import OLD
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.store.community import public_names
from roundtrip.store.index import cursor
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

EVERY_S = 60
IDLE = 20
"""So many times as long as counting took it waits at least: of very many marks that takes seconds."""


async def names(ctx: Context, job: Job, clock: Callable[[], float] = time.perf_counter) -> Effect:
    """Counts in a transaction of its own: counted again, it comes to the same, and nobody waits for it.
    ``clock``: seconds since any time; nobody sets it."""
    began_s = clock()
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with ctx.pool.acquire() as connection, connection.transaction():
        stands = await cursor.cursor(connection)
        # Without an index nobody is known to have traded: what was public stays.
        if stands is not None:
            await public_names.count(connection, now - OLD, stands.block.timestamp_s)
    took_s = clock() - began_s

    async def wish(connection: Connection) -> None:
        run_at = now + timedelta(seconds=max(EVERY_S, took_s * IDLE))
        await jobs.enqueue(connection, job.kind, job.key, run_at=run_at)

    return wish
