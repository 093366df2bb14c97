"""Tables that are cut into days of UTC by ``at_s``: ``facts.trade_20251009``. A day is dropped whole."""

from datetime import UTC, date, datetime, timedelta
from typing import Literal

from roundtrip.store.server.rows import Connection

Daily = Literal["facts.trade", "facts.liquidity", "facts.transfer"]
DAILY: tuple[Daily, ...] = ("facts.trade", "facts.liquidity", "facts.transfer")
"""Their names stand in statements as they are: a closed set."""

DAY_S = 86_400
_LOCK = 4663_0002
"""An advisory lock, so that two that need the same day do not both make it."""
_LOCK_TIMEOUT_MS = 500
"""Whoever comes while we wait for a table waits behind us. Below PostgreSQL's ``deadlock_timeout`` of one
second: where we and another wait for each other it is we who let go."""


def day_of(at_s: int) -> date:
    """The day of UTC in which the second lies."""
    return datetime.fromtimestamp(at_s, UTC).date()


def start_s(day: date) -> int:
    """When a day of UTC begins, in seconds since 1970."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def partition_of(table: Daily, day: date) -> str:
    """The name of a day's partition."""
    return f"{table}_{day:%Y%m%d}"


async def ensure(connection: Connection, table: Daily, first_s: int, last_s: int) -> None:
    """Makes the partitions of every day from ``first_s`` to ``last_s`` that are not there. In a transaction:
    with it they are there or not. Raises ValueError for a table that is not cut into days.

    Nobody who reads or writes the table waits: LIKE takes ACCESS SHARE of it and ATTACH PARTITION takes SHARE
    UPDATE EXCLUSIVE, where CREATE TABLE ... PARTITION OF would take ACCESS EXCLUSIVE.
    """
    first, last = _check_table(table, day_of(first_s)), day_of(last_s)
    wanted = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    if not await _missing(connection, table, wanted):
        return
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    for day in await _missing(connection, table, wanted):
        name, from_s = partition_of(table, day), start_s(day)
        await connection.execute(
            f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL);"
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({from_s}) TO ({from_s + DAY_S})"
        )


async def ensure_day(connection: Connection, table: Daily, named: str) -> None:
    """Makes the partition of a day that is named as in ``partition_of``. Raises ValueError for no day."""
    first_s = start_s(datetime.strptime(named, "%Y%m%d").replace(tzinfo=UTC).date())
    await ensure(connection, table, first_s, first_s)


async def drop_before(connection: Connection, table: Daily, day: date) -> list[date]:
    """Drops the days before ``day`` and gives them. In a transaction that ends soon: from here on nobody else
    reads the table. Raises ValueError as ``ensure``, and asyncpg.LockNotAvailableError when the table
    could not be had within half a second: later, then.

    DETACH ... CONCURRENTLY would lock nobody out, but cannot be part of a transaction and may stop half-way.
    """
    _check_table(table, day)
    old = [one for one in await days(connection, table) if one < day]
    if not old:
        return []
    before = await connection.fetchval("SELECT current_setting('lock_timeout')")
    await _set_lock_timeout(connection, f"{_LOCK_TIMEOUT_MS}ms")
    for one in old:
        name = partition_of(table, one)
        await connection.execute(f"ALTER TABLE {table} DETACH PARTITION {name}; DROP TABLE {name}")
    await _set_lock_timeout(connection, before)
    return old


async def days(connection: Connection, table: Daily) -> list[date]:
    """The days that there are, in order."""
    rows = await connection.fetch(
        "SELECT right(child.relname, 8) AS day FROM pg_inherits"
        " JOIN pg_class AS child ON child.oid = inhrelid WHERE inhparent = $1::text::regclass ORDER BY 1",
        table,
    )
    return [datetime.strptime(row["day"], "%Y%m%d").replace(tzinfo=UTC).date() for row in rows]


async def _missing(connection: Connection, table: Daily, wanted: list[date]) -> list[date]:
    """Read off the catalog's tables: what resolves names may still remember that there was no such table."""
    there = await days(connection, table)
    return [day for day in wanted if day not in there]


async def _set_lock_timeout(connection: Connection, value: str) -> None:
    """For the transaction that is open."""
    await connection.execute("SELECT set_config('lock_timeout', $1, true)", value)


def _check_table(table: Daily, day: date) -> date:
    if table not in DAILY:
        raise ValueError(f"{table} is not cut into days")
    return day
