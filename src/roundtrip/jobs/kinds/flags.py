"""``calls``, key ``open``, every minute: measures open flags on tokens and resolves those that are proved
or expired. ``names``, key ``public``, every minute: determines which names and marks of wallets enough
accounts gave."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog

from roundtrip.domain.community.marks import OLD
from roundtrip.jobs.engine.worker import Effect, has_index
from roundtrip.services.community.flag_resolution import review_flags
from roundtrip.services.runtime.context import Context
from roundtrip.store.community import flags as store
from roundtrip.store.community import public_names
from roundtrip.store.index.cursor import cursor
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

EVERY_S = 60
log = structlog.get_logger(__name__)


async def calls(ctx: Context, job: Job) -> Effect:
    """Reads first; the effect writes each flag's result once. Without an index there are no flags."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    review = await review_flags(ctx) if await has_index(ctx) else None

    async def write(connection: Connection) -> None:
        if review is not None and review.flags:
            written = await store.write_reviews(connection, review.flags, now, review.newest_s)
            log.info("flags reviewed", flags=written)
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=EVERY_S))

    return write


IDLE = 20
"""The wait is at least this many times the count's duration: counting very many marks takes seconds."""


async def names(ctx: Context, job: Job, clock: Callable[[], float] = time.perf_counter) -> Effect:
    """Counts in its own transaction, before the effect: the count is idempotent, and no other transaction
    waits for it. ``clock``: a monotonic clock, in seconds."""
    began_s = clock()
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with ctx.pool.acquire() as connection, connection.transaction():
        indexed = await cursor(connection)
        # Without an index no trades are known: public names stay as they are.
        if indexed is not None:
            await public_names.count(connection, now - OLD, indexed.block.timestamp_s)
    took_s = clock() - began_s

    async def enqueue(connection: Connection) -> None:
        run_at = now + timedelta(seconds=max(EVERY_S, took_s * IDLE))
        await jobs.enqueue(connection, job.kind, job.key, run_at=run_at)

    return enqueue
