"""Depth of the job and delivery queues, and recent reorgs."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from roundtrip.store.server.jobs import AT_ONCE
from roundtrip.store.server.rows import Connection, fetch, fetch_one, fetch_optional


class QueueDepth(NamedTuple):
    """Jobs of one kind. ``due``: running, or ready to run; ``later``: scheduled for a later time;
    ``given_up``: failed for the last time, and kept for operators. ``oldest``: since when the oldest is due;
    None: none is due, or only jobs enqueued without a time."""

    kind: str
    due: int
    later: int
    given_up: int
    oldest: datetime | None


class Deliveries(NamedTuple):
    """Messages that wait to be sent; ``oldest``: when the first of them was created."""

    waiting: int
    oldest: datetime | None


class RewoundBlocks(NamedTuple):
    """A reorg back to block ``to_number``, made at ``to_s``. ``blocks``: how many blocks were removed; None:
    not known."""

    to_number: int
    to_s: int
    blocks: int | None


async def jobs_waiting(connection: Connection, now: datetime) -> Sequence[QueueDepth]:
    """The depth of each kind's queue, in the order of their names."""
    return await fetch(
        connection,
        QueueDepth,
        "SELECT kind, count(*) FILTER (WHERE failed_at IS NULL AND run_at <= $1) AS due,"
        " count(*) FILTER (WHERE failed_at IS NULL AND run_at > $1) AS later,"
        " count(*) FILTER (WHERE failed_at IS NOT NULL) AS given_up,"
        " min(run_at) FILTER (WHERE failed_at IS NULL AND run_at <= $1 AND run_at > $2) AS oldest"
        " FROM jobs.job GROUP BY kind ORDER BY kind",
        now,
        AT_ONCE,
    )


async def deliveries_waiting(connection: Connection) -> Deliveries:
    """The queue of all channels together."""
    return await fetch_one(
        connection,
        Deliveries,
        "SELECT count(*) AS waiting, min(made_at) AS oldest FROM accounts.delivery WHERE state = 'waiting'",
    )


async def alerted_to(connection: Connection) -> int | None:
    """The last block with its alerts created; None: alerts never ran."""
    return await fetch_optional(connection, int, "SELECT number FROM accounts.alert_cursor")


async def rewound_since(connection: Connection, at_s: int) -> Sequence[RewoundBlocks]:
    """Reorgs back to a block made at ``at_s`` or later, the newest first."""
    return await fetch(
        connection,
        RewoundBlocks,
        "SELECT to_number, to_s, from_number - to_number AS blocks FROM facts.rewound WHERE to_s >= $1"
        " ORDER BY id DESC",
        at_s,
    )
