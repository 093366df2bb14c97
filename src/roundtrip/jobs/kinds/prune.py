"""``prune``, of ``facts``, every day: drops the days that are no longer kept, by the chain's clock, or by
ours where the chain's is ahead; books of holders that nobody asked for; what accounts were told; and answers
kept for requests that are repeated."""

from datetime import UTC, datetime, timedelta

from roundtrip.domain.watch.alerts import INBOX_S
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.store.holders import books
from roundtrip.store.index import cursor, insiders
from roundtrip.store.practice import practice
from roundtrip.store.server import jobs, partitions
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.partitions import DAY_S, Daily
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alert_cursor, alerts, watches
from roundtrip.sync.retention import retire_trades

KEPT_DAYS: dict[Daily, int] = {"facts.transfer": 7, "facts.liquidity": 90}
INSIDE_KEPT_DAYS = 8
"""As long as they are written."""
TRADES_KEPT_DAYS = 90
"""Before a day of them goes, positions are folded up to there."""
FAILED_KEPT = timedelta(days=7)


async def prune(ctx: Context, job: Job) -> Effect:
    """Nothing is read before. Each run makes one step: old days of one table go, or one day of trades. Then
    it wishes for itself, at once where there may be more, else in a day. Where a table is in use just then,
    it is tried again later."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)

    async def step(connection: Connection) -> None:
        await jobs.forget_failed(connection, now - FAILED_KEPT)
        may_be_more = (
            await _drop_books(connection, now)
            or await _forget_told(connection, now)
            or await practice.forget_repeats(connection, now - practice.REPEATS_KEPT)
            or await _drop_some(connection, ctx)
        )
        # Last: from here on the job's row is locked.
        run_at = now if may_be_more else now + timedelta(seconds=DAY_S)
        await jobs.enqueue(connection, job.kind, job.key, run_at=run_at)

    return step


async def _drop_books(connection: Connection, now: datetime) -> bool:
    """Whether there were books of holders to drop, which are kept by our clock alone."""
    dropped = await books.prune(connection, now - books.KEPT_FOR)
    return dropped + await books.prune_to(connection) > 0


async def _forget_told(connection: Connection, now: datetime) -> bool:
    """Whether there was more of it than is taken away at once."""
    await watches.forget_ended(connection, now)
    await alert_cursor.forget(connection)
    return await alerts.forget(connection, now - timedelta(seconds=INBOX_S))


async def _drop_some(connection: Connection, ctx: Context) -> bool:
    """Whether there was something to drop. One step and no more: a table and the cursor stay locked until the
    transaction ends, and folding a day of trades takes long."""
    known = await cursor.cursor(connection)
    if known is None:
        return False
    # One block that claims to be of a far year must not make everything old.
    now_s = min(known.block.timestamp_s, int(ctx.now_s()))
    await insiders.forget(connection, now_s - INSIDE_KEPT_DAYS * DAY_S)
    for table, kept in KEPT_DAYS.items():
        if await partitions.drop_before(connection, table, partitions.day_of(now_s - kept * DAY_S)):
            return True
    return await retire_trades(connection, now_s - TRADES_KEPT_DAYS * DAY_S, ctx.contracts)
