"""``calls``, of ``open``, every minute: looks how flags on tokens stand, settles those that are proved or
whose time is over, and wishes for itself."""

from datetime import UTC, datetime, timedelta

import structlog

from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.community.flag_resolution import look
from roundtrip.services.runtime.context import Context
from roundtrip.store.community import flags as store
from roundtrip.store.index import cursor
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

EVERY_S = 60
log = structlog.get_logger(__name__)


async def calls(ctx: Context, job: Job) -> Effect:
    """Looks first; the effect writes what came of it, each flag once."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    looked = await look(ctx) if await _is_followed(ctx) else None

    async def settle(connection: Connection) -> None:
        if looked is not None and looked.flags:
            written = await store.put(connection, looked.flags, now, looked.newest_s)
            log.info("flags looked at", flags=written)
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=EVERY_S))

    return settle


async def _is_followed(ctx: Context) -> bool:
    """Whether there is an index: before that there are no flags."""
    async with ctx.pool.acquire() as connection:
        return await cursor.cursor(connection) is not None
