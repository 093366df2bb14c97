"""Tables partitioned by UTC day of ``at_s``: ``facts.trade_20251009``. A day is dropped as a whole."""

from datetime import UTC, date, datetime, timedelta
from typing import Literal

from roundtrip.store.server.rows import Connection, fetch_value, fetch_values

Daily = Literal["facts.trade", "facts.liquidity", "facts.transfer"]
DAILY: tuple[Daily, ...] = ("facts.trade", "facts.liquidity", "facts.transfer")
"""A closed set, since statements contain these names unescaped."""

DAY_S = 86_400
LAST_S = 2**31 - 1
"""No row is later: a number of this size is the largest that ``at_s`` holds."""
_LOCK = 4663_0002
"""The advisory lock that is held to create a day, so that two processes do not both create it."""
_LOCK_TIMEOUT_MS = 500
"""Other statements queue behind a wait for a table lock. Shorter than PostgreSQL's ``deadlock_timeout`` of
one second, so that in a deadlock this side gives up."""


def day_of(at_s: int) -> date:
    """The UTC day of a time in seconds since 1970."""
    return datetime.fromtimestamp(at_s, UTC).date()


def start_s(day: date) -> int:
    """The start of a UTC day, in seconds since 1970."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def partition_of(table: Daily, day: date) -> str:
    """The name of a day's partition."""
    return f"{table}_{day:%Y%m%d}"


async def ensure(connection: Connection, table: Daily, first_s: int, last_s: int) -> None:
    """Creates the missing partitions of the days from ``first_s`` to ``last_s``, in the caller's transaction.
    Raises ValueError for a table that is not partitioned by day.

    Does not block readers or writers of the table: LIKE takes ACCESS SHARE and ATTACH PARTITION takes SHARE
    UPDATE EXCLUSIVE, where CREATE TABLE ... PARTITION OF would take ACCESS EXCLUSIVE.
    """
    first, last = _check_table(table, day_of(first_s)), day_of(last_s)
    wanted = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    if not await _missing(connection, table, wanted):
        return
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
    for day in await _missing(connection, table, wanted):
        name, from_s = partition_of(table, day), start_s(day)
        # Each by itself: of several commands in one text Citus refuses to attach a partition.
        for command in (
            f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)",
            # Rows come in the order of the key: room for others in its pages would stay empty.
            f"ALTER INDEX {name}_pkey SET (fillfactor = 100)",
            f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({from_s}) TO ({from_s + DAY_S})",
        ):
            await connection.execute(command)


async def ensure_day(connection: Connection, table: Daily, named: str) -> None:
    """Creates the partition of the day ``named``, as YYYYMMDD. Raises ValueError if it is not a day."""
    first_s = start_s(datetime.strptime(named, "%Y%m%d").replace(tzinfo=UTC).date())
    await ensure(connection, table, first_s, first_s)


async def drop_before(connection: Connection, table: Daily, day: date) -> list[date]:
    """Drops the days before ``day`` and returns them. The caller ends the transaction soon, since the table
    is locked against readers until then. Raises ValueError as ``ensure``, and asyncpg.LockNotAvailableError
    if the table is not locked within half a second: the caller tries again later.

    DETACH ... CONCURRENTLY would not block readers, but it cannot run in a transaction and may stop half-way.
    """
    _check_table(table, day)
    old_days = [existing for existing in await days(connection, table) if existing < day]
    if not old_days:
        return []
    timeout_before = await fetch_value(connection, str, "SELECT current_setting('lock_timeout')")
    await _set_lock_timeout(connection, f"{_LOCK_TIMEOUT_MS}ms")
    for old_day in old_days:
        name = partition_of(table, old_day)
        await connection.execute(f"ALTER TABLE {table} DETACH PARTITION {name}")
        await connection.execute(f"DROP TABLE {name}")
    await _set_lock_timeout(connection, timeout_before)
    return old_days


async def days(connection: Connection, table: Daily) -> list[date]:
    """The days that have a partition, in order."""
    names = await fetch_values(
        connection,
        str,
        "SELECT right(child.relname, 8) AS day FROM pg_inherits"
        " JOIN pg_class AS child ON child.oid = inhrelid WHERE inhparent = $1::text::regclass ORDER BY 1",
        table,
    )
    return [datetime.strptime(name, "%Y%m%d").replace(tzinfo=UTC).date() for name in names]


async def _missing(connection: Connection, table: Daily, wanted: list[date]) -> list[date]:
    """Those of the days without a partition. Reads the catalog's tables, because name resolution may have
    cached that a table does not exist."""
    existing = await days(connection, table)
    return [day for day in wanted if day not in existing]


async def _set_lock_timeout(connection: Connection, value: str) -> None:
    """Sets it for the current transaction."""
    await connection.execute("SELECT set_config('lock_timeout', $1, true)", value)


def _check_table(table: Daily, day: date) -> date:
    if table not in DAILY:
        raise ValueError(f"{table} is not partitioned by day")
    return day
