"""What the sync wrote, taken away, so that the next one begins anew."""

from datetime import date

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection
from roundtrip.store.server.sync_lock import SYNC_LOCK

_LOCK_TIMEOUT_MS = 500
"""Whoever comes while we wait for a table waits behind us. Below PostgreSQL's ``deadlock_timeout``."""

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
"""What the sync makes again from the chain; and books of who holds what, which were read with the places that
the index knows. The names stand in a statement as they are: a closed set."""

KEPT = (
    "facts.evidence",
    "facts.proof",
    "facts.token",
    "facts.older_origin",
    "facts.rewound",
    "facts.score",
    "facts.score_count",
    "facts.score_cursor",
    "facts.score_token",
    "facts.score_wait",
)
"""The other tables of facts: checks and jobs wrote them; and reorganisations, which who reads facts may not
have undone yet."""


class StillFollowed(CannotRun):
    """A sync writes into this database: it is to be ended first."""

    def __init__(self) -> None:
        super().__init__("a sync writes into this database: end it first")


async def forget(connection: Connection) -> None:
    """Empties what the sync wrote, and drops its days; one transaction, in which no sync can begin. Raises
    StillFollowed, and asyncpg.LockNotAvailableError when a table could not be had within half a second:
    later, then."""
    async with connection.transaction():
        if not await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", SYNC_LOCK):
            raise StillFollowed
        await connection.execute(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT_MS}")
        await connection.execute(f"TRUNCATE {', '.join(FORGOTTEN)} RESTART IDENTITY")
        for table in partitions.DAILY:
            await partitions.drop_before(connection, table, date.max)
