"""``prune``, of ``facts``, every day: drops the days that are no longer kept, by the chain's clock."""

from datetime import UTC, datetime, timedelta

import asyncpg

from roundtrip.services.context import Context
from roundtrip.store import chain, jobs, partitions
from roundtrip.store.jobs import Job
from roundtrip.store.partitions import DAY_S, Daily
from roundtrip.sync.retire import retire_trades

from .worker import Effect

KEPT_DAYS: dict[Daily, int] = {"facts.transfer": 7, "facts.liquidity": 90}
TRADES_KEPT_DAYS = 90
"""Before their rows go, positions are folded up to there."""
FAILED_KEPT = timedelta(days=7)


async def prune(ctx: Context, job: Job) -> Effect:
    """Nothing is read before. Where a table is in use just then, it is tried again later."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)

    async def drop(connection: asyncpg.Connection) -> None:
        await jobs.enqueue(connection, job.kind, job.key, run_at=now + timedelta(seconds=DAY_S))
        await jobs.forget_failed(connection, now - FAILED_KEPT)
        known = await chain.cursor(connection)
        if known is None:
            return
        while await retire_trades(
            connection, known.block.timestamp_s - TRADES_KEPT_DAYS * DAY_S, ctx.contracts
        ):
            pass
        for table, kept in KEPT_DAYS.items():
            await partitions.drop_before(
                connection, table, partitions.day_of(known.block.timestamp_s - kept * DAY_S)
            )

    return drop
