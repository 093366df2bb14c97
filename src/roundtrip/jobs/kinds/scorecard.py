"""``scorecard``, key ``verdicts``, every minute: scores verdicts whose period is over, by real trades and
real sells that failed."""

from datetime import UTC, datetime, timedelta

import structlog

from roundtrip.jobs.engine.head_barrier import has_index
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.services.scorecard.settlement import score_verdicts
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection

EVERY_S, SOON_S = 60, 5
"""The interval between runs; the shorter one while more verdicts wait."""
log = structlog.get_logger(__name__)


async def scorecard(ctx: Context, job: Job) -> Effect:
    """Reads first; the effect writes the scores and the progress, once. The effect raises
    ``store.ScoredMeanwhile`` when another worker scored the same verdicts in the meantime."""
    run = await score_verdicts(ctx) if await has_index(ctx) else None
    now = datetime.fromtimestamp(ctx.now_s(), UTC)

    async def write(connection: Connection) -> None:
        if run is not None and (run.scored or run.waiting or run.to_id != run.from_id):
            written = await store.put(connection, run.scored, run.from_id, run.to_id, now, run.waiting)
            log.info("verdicts scored", scored=written, waiting=len(run.waiting))
        is_more = run is not None and run.is_more
        run_at = now + timedelta(seconds=SOON_S if is_more else EVERY_S)
        await jobs.enqueue(connection, job.kind, job.key, run_at=run_at)

    return write
