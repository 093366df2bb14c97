"""What waits to be done, and what was undone of the chain lately."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from roundtrip.store.server.jobs import AT_ONCE
from roundtrip.store.server.rows import Connection


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Jobs of one kind. ``due``: are being run or could be; ``later``: their time has not come; ``given_up``:
    failed for the last time, and kept for people. ``oldest``: since when one is due; None: nothing is, or
    only what was wished for at once, of which no time is kept."""

    kind: str
    due: int
    later: int
    given_up: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Messages that wait to be sent; ``oldest``: when the first of them was made."""

    waiting: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class RewoundBlocks:
    """Blocks were taken away above one of ``to_s``. ``blocks`` None: how many is not known."""

    to_number: int
    to_s: int
    blocks: int | None


async def jobs_waiting(connection: Connection, now: datetime) -> Sequence[QueueDepth]:
    """By kind."""
    rows = await connection.fetch(
        "SELECT kind, count(*) FILTER (WHERE failed_at IS NULL AND run_at <= $1) AS due,"
        " count(*) FILTER (WHERE failed_at IS NULL AND run_at > $1) AS later,"
        " count(*) FILTER (WHERE failed_at IS NOT NULL) AS given_up,"
        " min(run_at) FILTER (WHERE failed_at IS NULL AND run_at <= $1 AND run_at > $2) AS oldest"
        " FROM jobs.job GROUP BY kind ORDER BY kind",
        now,
        AT_ONCE,
    )
    return [QueueDepth(**dict(row)) for row in rows]


async def deliveries_waiting(connection: Connection) -> Deliveries:
    """Of all channels."""
    row = await connection.fetchrow(
        "SELECT count(*) AS waiting, min(made_at) AS oldest FROM accounts.delivery WHERE state = 'waiting'"
    )
    return Deliveries(row["waiting"], row["oldest"])


async def alerted_to(connection: Connection) -> int | None:
    """The last block that alerts were made of; None: they never were."""
    found: int | None = await connection.fetchval("SELECT number FROM accounts.alert_cursor")
    return found


async def rewound_since(connection: Connection, at_s: int) -> Sequence[RewoundBlocks]:
    """Reorganisations back to a block that is no older, the newest first."""
    rows = await connection.fetch(
        "SELECT to_number, to_s, from_number - to_number AS blocks FROM facts.rewound WHERE to_s >= $1"
        " ORDER BY id DESC",
        at_s,
    )
    return [RewoundBlocks(**dict(row)) for row in rows]
