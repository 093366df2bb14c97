"""``calls``, key ``open``, every minute: measures open flags on tokens (accounts' predictions) and resolves
those that are proved or expired."""

from datetime import UTC, datetime, timedelta

import structlog

from roundtrip.jobs.engine.head_barrier import has_index
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.community.flag_resolution import review_flags
from roundtrip.services.runtime.context import Context
from roundtrip.store.community import flags as store
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

EVERY_S = 60
log = structlog.get_logger(__name__)


async def calls(ctx: Context, job: Job) -> Effect:
    """Reads first; the effect writes each flag's result once. Without an index there are no flags."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    reviews, newest_s = await review_flags(ctx) if await has_index(ctx) else ((), 0)

    async def write(connection: Connection) -> None:
        if reviews:
            written = await store.write_reviews(connection, reviews, now, newest_s)
            log.info("flags reviewed", flags=written)
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=EVERY_S))

    return write
