"""``prune``, key ``facts``, every day: drops expired days of facts, holder books that were not requested for
a while, old alerts, failed jobs, and the answers kept for repeated requests. Facts expire by the chain's
clock, or by the system clock when the chain's is ahead."""

from datetime import UTC, datetime, timedelta

from roundtrip.domain.watch.alerts import INBOX_S
from roundtrip.jobs.engine.worker import Effect
from roundtrip.services.runtime.context import Context
from roundtrip.store.boards import moving
from roundtrip.store.holders import books
from roundtrip.store.index import cursor, insiders
from roundtrip.store.practice import practice
from roundtrip.store.scorecard import failed_sells
from roundtrip.store.server import jobs, partitions
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.partitions import DAY_S, Daily
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alert_cursor, alerts, watches
from roundtrip.sync.position_fold import retire_trades

KEPT_DAYS: dict[Daily, int] = {"facts.transfer": 7, "facts.liquidity": 90}
INSIDE_KEPT_DAYS = 8
"""Insider records are kept for this many days."""
TRADES_KEPT_DAYS = 90
"""Before a day of trades is dropped, it is folded into positions. Failed sells are kept as long."""
FAILED_KEPT = timedelta(days=7)
"""For failed jobs."""


async def prune(ctx: Context, job: Job) -> Effect:
    """Reads nothing before its effect. Each run deletes failed jobs and readings of exposure, then makes the
    first step that has work: books, alerts, repeats, or one day of facts. The next run is enqueued for now
    when there may be more to drop, else for the next day. A table that is in use makes the run fail, and it
    is retried."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)

    async def step(connection: Connection) -> None:
        await jobs.forget_failed(connection, now - FAILED_KEPT)
        await moving.forget(connection, now - moving.KEPT_FOR)
        may_be_more = (
            await _drop_books(connection, now)
            or await _drop_alerts(connection, now)
            or await practice.forget_repeats(connection, now - practice.REPEATS_KEPT)
            or await _drop_facts(connection, ctx)
        )
        # Last: from here on the job's row is locked.
        run_at = now if may_be_more else now + timedelta(seconds=DAY_S)
        await jobs.enqueue(connection, job.kind, job.key, run_at=run_at)

    return step


async def _drop_books(connection: Connection, now: datetime) -> bool:
    """Drops holder books that are old, by the system clock, or too many; returns whether there were any."""
    dropped = await books.prune(connection, now - books.KEPT_FOR)
    return dropped + await books.prune_to(connection) > 0


async def _drop_alerts(connection: Connection, now: datetime) -> bool:
    """Drops old alerts and ended watches; returns whether there may be more than one step drops."""
    await watches.forget_ended(connection, now)
    await alert_cursor.forget(connection)
    return await alerts.forget(connection, now - timedelta(seconds=INBOX_S))


async def _drop_facts(connection: Connection, ctx: Context) -> bool:
    """Drops old facts; returns whether there was an old day of them. Makes only one step: a table and the
    cursor stay locked until the transaction ends, and folding a day of trades takes long."""
    indexed = await cursor.cursor(connection)
    if indexed is None:
        return False
    # A block whose timestamp is far in the future must not expire everything.
    now_s = min(indexed.block.timestamp_s, int(ctx.now_s()))
    await insiders.forget(connection, now_s - INSIDE_KEPT_DAYS * DAY_S)
    await failed_sells.forget(connection, now_s - TRADES_KEPT_DAYS * DAY_S)
    for table, days in KEPT_DAYS.items():
        if await partitions.drop_before(connection, table, partitions.day_of(now_s - days * DAY_S)):
            return True
    return await retire_trades(connection, now_s - TRADES_KEPT_DAYS * DAY_S, ctx.contracts)
