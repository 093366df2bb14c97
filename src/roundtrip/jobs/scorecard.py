"""``scorecard``, of ``verdicts``, every minute: settles verdicts whose time has passed, by what was really
traded, and wishes for itself."""

from datetime import UTC, datetime, timedelta

import asyncpg
import structlog

from roundtrip.services.context import Context
from roundtrip.services.settle_verdicts import settle
from roundtrip.store import chain, jobs
from roundtrip.store import scorecard as store
from roundtrip.store.jobs import Job

from .worker import Effect

EVERY_S, SOON_S = 60, 5
PATIENT_TRIES = 6
"""After so many runs in vain, half an hour by then, a receipt that the node does not give stays untold:
nothing waits for it for ever."""
log = structlog.get_logger(__name__)


async def scorecard(ctx: Context, job: Job) -> Effect:
    """Looks first; the effect writes the scores and how far it came, once. Raises store.Moved there when
    somebody else scored the same meanwhile."""
    settled = await settle(ctx, job.tries <= PATIENT_TRIES) if await _is_followed(ctx) else None
    now = datetime.fromtimestamp(ctx.now_s(), UTC)

    async def put(connection: asyncpg.Connection) -> None:
        if settled is not None and settled.to_id != settled.from_id:
            written = await store.put(connection, settled.scored, settled.from_id, settled.to_id, now)
            log.info("verdicts scored", scored=written)
        wait_s = SOON_S if settled is not None and settled.more else EVERY_S
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=wait_s))

    return put


async def _is_followed(ctx: Context) -> bool:
    """Whether there is an index: before that nothing was seen."""
    async with ctx.pool.acquire() as connection:
        return await chain.cursor(connection) is not None
