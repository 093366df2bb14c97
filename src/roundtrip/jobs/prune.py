"""``prune``, of ``facts``, every day: drops the days that are no longer kept, by the chain's clock."""

from datetime import UTC, datetime, timedelta

import asyncpg

from roundtrip.services.context import Context
from roundtrip.store import jobs, partitions
from roundtrip.store.followed import followed
from roundtrip.store.jobs import Job
from roundtrip.store.partitions import DAY_S, Daily

from .worker import Effect

KEPT_DAYS: dict[Daily, int] = {"facts.transfer": 7, "facts.liquidity": 90}
"""Trades are not among them: before their rows go, positions have to be folded up to there."""
FAILED_KEPT = timedelta(days=7)


async def prune(ctx: Context, job: Job) -> Effect:
    """Nothing is read before. Where a table is in use just then, it is tried again later."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)

    async def drop(connection: asyncpg.Connection) -> None:
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=DAY_S))
        await jobs.forget_failed(connection, now - FAILED_KEPT)
        known = await followed(connection)
        if known is None:
            return
        # The hook for the sync: ``sync.retire.retire_trades(connection, known.at_s - 90 * DAY_S)`` goes here.
        for table, kept in KEPT_DAYS.items():
            await partitions.drop_before(connection, table, partitions.day_of(known.at_s - kept * DAY_S))

    return drop
