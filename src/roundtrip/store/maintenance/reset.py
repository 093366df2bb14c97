"""Deletes the sync's data, so that the next sync starts over."""

from datetime import date

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection, fetch_value
from roundtrip.store.server.sync_lock import SYNC_LOCK

_LOCK_TIMEOUT_MS = 500
"""Other statements queue behind a wait for a table lock. Shorter than PostgreSQL's ``deadlock_timeout``."""

FORGOTTEN = (
    "facts.cursor",
    "facts.block",
    "facts.address",
    "facts.pool",
    "facts.launch",
    "facts.launch_quote",
    "facts.launch_step",
    "facts.trade",
    "facts.liquidity",
    "facts.lp_position",
    "facts.lp_transfer",
    "facts.pool_state",
    "facts.transfer",
    "facts.price",
    "facts.origin",
    "facts.position",
    "facts.position_base",
    "facts.closing",
    "facts.curve",
    "facts.buyback",
    "facts.inside",
    "facts.fair_token",
    "facts.winner",
    "facts.winners_counted",
    "facts.holder_read",
)
"""The tables that the sync fills again from the chain; and holder books, which depend on the indexed places.
A closed set, since a statement contains these names unescaped."""

KEPT = (
    "facts.evidence",
    "facts.exposure",
    "facts.failed_sell",
    "facts.proof",
    "facts.recalled_wallet",
    "facts.token",
    "facts.older_origin",
    "facts.rewound",
    "facts.score",
    "facts.score_count",
    "facts.score_cursor",
    "facts.score_token",
    "facts.score_wait",
    "facts.unlock",
)
"""The other tables of facts: those that checks and jobs write; and the log of reorgs, which readers of facts
may not have processed yet."""


class StillFollowed(CannotRun):
    """A sync is writing to this database and must be stopped first."""

    def __init__(self) -> None:
        super().__init__("a sync is writing to this database; stop it first")


async def forget(connection: Connection) -> None:
    """Empties the sync's tables and drops their days, in one transaction during which no sync can start.
    Raises StillFollowed, and asyncpg.LockNotAvailableError if a table is not locked within half a second: the
    caller tries again later."""
    async with connection.transaction():
        if not await fetch_value(connection, bool, "SELECT pg_try_advisory_xact_lock($1)", SYNC_LOCK):
            raise StillFollowed
        await connection.execute(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}")
        await connection.execute(f"TRUNCATE {', '.join(FORGOTTEN)} RESTART IDENTITY")
        for table in partitions.DAILY:
            await partitions.drop_before(connection, table, date.max)
