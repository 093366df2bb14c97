"""Counts of recent activity on the chain, the time from which on the index covers it, and the depth of the
queues."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from roundtrip.domain.base.types import Address
from roundtrip.store.server.jobs import AT_ONCE
from roundtrip.store.server.rows import (
    Connection,
    fetch,
    fetch_one,
    fetch_optional,
    fetch_value,
    fetch_values,
)

from .cursor import Cursor

AVERAGED_BLOCKS = 100
"""How many of the newest blocks the block time is averaged over: a block's time is in whole seconds."""


async def newest_times(connection: Connection, cursor: Cursor) -> list[int]:
    """The times of the newest blocks, in seconds since 1970, the oldest block first."""
    return await fetch_values(
        connection,
        int,
        "SELECT at_s FROM facts.block WHERE number >= $1 ORDER BY number",
        cursor.block.number - AVERAGED_BLOCKS,
    )


async def followed_from_s(connection: Connection, cursor: Cursor) -> int:
    """A time from which on every block was read in full: that of the oldest remembered block, at most a
    thousand blocks after the first one."""
    oldest_s = await fetch_optional(
        connection,
        int,
        "SELECT at_s FROM facts.block WHERE number >= $1 ORDER BY number LIMIT 1",
        cursor.start_number,
    )
    return cursor.block.timestamp_s if oldest_s is None else oldest_s


async def launches(connection: Connection, after_s: int, to_s: int) -> int:
    """Tokens launched through a launchpad after ``after_s``, up to ``to_s`` inclusive."""
    return await fetch_value(
        connection, int, "SELECT count(*) FROM facts.launch WHERE at_s > $1 AND at_s <= $2", after_s, to_s
    )


async def graduations(connection: Connection, after_s: int, to_s: int) -> int:
    """Curves that became a pool after ``after_s``, up to ``to_s`` inclusive."""
    return await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM facts.launch_step WHERE at_s > $1 AND at_s <= $2 AND step = 'pooled'",
        after_s,
        to_s,
    )


async def trades(connection: Connection, after_s: int, to_s: int) -> int:
    """Buys and sells of tokens for money after ``after_s``, up to ``to_s`` inclusive."""
    return await fetch_value(
        connection, int, "SELECT count(*) FROM facts.trade WHERE at_s > $1 AND at_s <= $2", after_s, to_s
    )


async def newest_launch(connection: Connection) -> Address | None:
    """The token that a launchpad launched last; None: no launch is known."""
    return await fetch_optional(
        connection,
        Address,
        "SELECT address.address FROM facts.launch AS launch JOIN facts.address AS address ON address.id = "
        "launch.token_id ORDER BY launch.block_number DESC LIMIT 1",
    )


# --- queues ----------------------------------------------------------------------------------------


class QueueDepth(NamedTuple):
    """Jobs of one kind. ``due``: running, or ready to run; ``later``: scheduled for a later time;
    ``given_up``: failed for the last time, and kept for operators. ``oldest``: since when the oldest is due;
    None: none is due, or only jobs enqueued without a time."""

    kind: str
    due: int
    later: int
    given_up: int
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
        "SELECT kind, count(*) FILTER (WHERE failed_at IS NULL AND run_at <= $1) AS due, count(*) FILTER "
        "(WHERE failed_at IS NULL AND run_at > $1) AS later, count(*) FILTER (WHERE failed_at IS NOT NULL) "
        "AS given_up, min(run_at) FILTER (WHERE failed_at IS NULL AND run_at <= $1 AND run_at > $2) AS "
        "oldest FROM jobs.job GROUP BY kind ORDER BY kind",
        now,
        AT_ONCE,
    )


async def deliveries_waiting(connection: Connection) -> tuple[int, datetime | None]:
    """How many messages wait to be sent, and when the first of them was created."""
    return await fetch_one(
        connection,
        tuple[int, datetime | None],
        "SELECT count(*) AS waiting, min(made_at) AS oldest FROM accounts.delivery WHERE state = 'waiting'",
    )


async def alerted_to(connection: Connection) -> int | None:
    """The last block whose alerts were created; None: alerts never ran."""
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
