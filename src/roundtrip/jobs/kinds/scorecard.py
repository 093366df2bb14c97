"""``scorecard``, of ``verdicts``, every minute: settles verdicts whose time has passed, by what was really
traded, weighs reports again that came too early, and wishes for itself."""

from datetime import UTC, datetime, timedelta

import structlog

from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.services.scorecard.report_review import MOST_AGAIN, weigh_again
from roundtrip.services.scorecard.settlement import settle
from roundtrip.store.index import cursor
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.scorecard import verdict_reports
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

EVERY_S, SOON_S = 60, 5
log = structlog.get_logger(__name__)


async def scorecard(ctx: Context, job: Job) -> Effect:
    """Looks first; the effect writes the scores and how far it came, once. Raises store.Moved there when
    somebody else scored the same meanwhile."""
    is_followed = await _is_followed(ctx)
    again = await weigh_again(ctx) if is_followed else []
    settled = await settle(ctx) if is_followed else None
    now = datetime.fromtimestamp(ctx.now_s(), UTC)

    async def put(connection: Connection) -> None:
        for one in again:
            await one.put(connection, now)
        if settled is not None and (settled.scored or settled.untold or settled.to_id != settled.from_id):
            written = await store.put(
                connection, settled.scored, settled.from_id, settled.to_id, now, settled.untold
            )
            log.info("verdicts scored", scored=written, waiting=len(settled.untold))
        more = len(again) == MOST_AGAIN or (settled is not None and settled.more)
        run_at = now + timedelta(seconds=SOON_S if more else EVERY_S)
        next_at = await verdict_reports.next_again(connection)
        if is_followed and next_at is not None:
            run_at = min(run_at, max(next_at, now + timedelta(seconds=SOON_S)))
        await jobs.enqueue(connection, job.kind, job.key, run_at=run_at)

    return put


async def _is_followed(ctx: Context) -> bool:
    """Whether there is an index: before that nothing was seen."""
    async with ctx.pool.acquire() as connection:
        return await cursor.cursor(connection) is not None
