"""Days of a table against a real database: made once, dropped whole, and nobody waits for it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime

import asyncpg
import pytest

from roundtrip.store.server.partitions import DAILY, DAY_S, Daily, day_of, days, drop_before, ensure
from roundtrip.store.server.rows import Connection
from support.databases import needs_one_server

DAY_ONE = 1_759_968_000
"""The first second of 2025-10-09."""
WAIT_S = 10


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[tuple[Connection, Connection]]:
    """Two connections that are in no transaction; the days that were made are gone afterwards."""
    one, other = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    yield one, other
    await other.close()
    async with one.transaction():
        for table in DAILY:
            await drop_before(one, table, date(2100, 1, 1))
    await one.close()


async def _transfer(connection: Connection, at_s: int, log_index: int = 0) -> None:
    await connection.execute(
        "INSERT INTO facts.transfer VALUES ($1, 7, $2, 1, 2, 3, 4, $3)", at_s, log_index, b"\1" * 32
    )


async def _locks(connection: Connection, table: str) -> set[str]:
    """What the connection holds of a table."""
    rows = await connection.fetch(
        "SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = $1::text::regclass", table
    )
    return {row["mode"] for row in rows}


@pytest.mark.parametrize("table", DAILY)
async def test_every_day_from_the_first_to_the_last_is_made(connection: Connection, table: Daily) -> None:
    await ensure(connection, table, DAY_ONE + DAY_S - 1, DAY_ONE + 2 * DAY_S)
    assert await days(connection, table) == [date(2025, 10, 9), date(2025, 10, 10), date(2025, 10, 11)]
    await ensure(connection, table, DAY_ONE, DAY_ONE + 3 * DAY_S)
    assert len(await days(connection, table)) == 4
    before = await connection.fetchval("SELECT txid_current(), count(*) FROM pg_class")
    await ensure(connection, table, DAY_ONE, DAY_ONE)
    assert await connection.fetchval("SELECT txid_current(), count(*) FROM pg_class") == before


@needs_one_server
async def test_rows_lie_in_their_own_day(connection: Connection) -> None:
    await ensure(connection, "facts.transfer", DAY_ONE, DAY_ONE + DAY_S)
    for at_s in (DAY_ONE, DAY_ONE + DAY_S - 1, DAY_ONE + DAY_S):
        await _transfer(connection, at_s)
    rows = await connection.fetch("SELECT tableoid::regclass::text AS day FROM facts.transfer ORDER BY at_s")
    assert [row["day"] for row in rows] == [
        "facts.transfer_20251009", "facts.transfer_20251009", "facts.transfer_20251010",
    ]  # fmt: skip
    with pytest.raises(asyncpg.CheckViolationError):
        await _transfer(connection, DAY_ONE - 1)


async def test_a_day_has_the_indexes_of_its_table(connection: Connection) -> None:
    """Attached, not made a second time: a key that is there twice is refused in each day."""
    await ensure(connection, "facts.trade", DAY_ONE, DAY_ONE)
    indexes = await connection.fetch(
        "SELECT inhparent::regclass::text AS parent FROM pg_inherits JOIN pg_index ON inhrelid = indexrelid"
        " WHERE indrelid = 'facts.trade_20251009'::regclass ORDER BY 1"
    )
    of_the_table = await connection.fetch(
        "SELECT indexrelid::regclass::text AS name FROM pg_index"
        " WHERE indrelid = 'facts.trade'::regclass ORDER BY 1"
    )
    assert {"facts.trade_by_pool", "facts.trade_by_trader", "facts.trade_pkey"} <= {
        row["name"] for row in of_the_table
    }
    assert [row["parent"] for row in indexes] == [row["name"] for row in of_the_table]
    own = await connection.fetchval(
        "SELECT count(*) FROM pg_index WHERE indrelid = 'facts.trade_20251009'::regclass"
    )
    assert own == len(of_the_table)
    full = await connection.fetchval(
        "SELECT reloptions FROM pg_class WHERE oid = 'facts.trade_20251009_pkey'::regclass"
    )
    assert full == ["fillfactor=100"]


async def test_days_before_one_are_dropped_with_their_rows(connection: Connection) -> None:
    await ensure(connection, "facts.transfer", DAY_ONE, DAY_ONE + 2 * DAY_S)
    for n in range(3):
        await _transfer(connection, DAY_ONE + n * DAY_S)
    dropped = await drop_before(connection, "facts.transfer", date(2025, 10, 11))
    assert dropped == [date(2025, 10, 9), date(2025, 10, 10)]
    assert await days(connection, "facts.transfer") == [date(2025, 10, 11)]
    assert await connection.fetchval("SELECT min(at_s) FROM facts.transfer") == DAY_ONE + 2 * DAY_S
    assert await connection.fetchval("SELECT to_regclass('facts.transfer_20251009')") is None
    assert await drop_before(connection, "facts.transfer", date(2025, 10, 11)) == []


async def test_a_dropped_day_can_be_made_again(connection: Connection) -> None:
    await ensure(connection, "facts.transfer", DAY_ONE, DAY_ONE)
    await drop_before(connection, "facts.transfer", date(2025, 10, 10))
    await ensure(connection, "facts.transfer", DAY_ONE, DAY_ONE)
    assert await days(connection, "facts.transfer") == [date(2025, 10, 9)]


async def test_a_lock_timeout_of_the_caller_is_put_back(connection: Connection) -> None:
    await connection.execute("SET LOCAL lock_timeout = '1234ms'")
    await ensure(connection, "facts.transfer", DAY_ONE, DAY_ONE)
    await drop_before(connection, "facts.transfer", date(2025, 10, 10))
    assert await connection.fetchval("SELECT current_setting('lock_timeout')") == "1234ms"


@needs_one_server
async def test_who_reads_and_writes_does_not_wait_for_a_day_that_is_made(
    two: tuple[Connection, Connection],
) -> None:
    one, other = two
    await ensure(one, "facts.transfer", DAY_ONE, DAY_ONE)
    async with asyncio.timeout(WAIT_S), other.transaction():
        await _transfer(other, DAY_ONE)
        async with one.transaction():
            await ensure(one, "facts.transfer", DAY_ONE, DAY_ONE + DAY_S)
            assert "AccessExclusiveLock" not in await _locks(one, "facts.transfer")
            # While that transaction is open:
            assert await other.fetchval("SELECT count(*) FROM facts.transfer") == 1
            await _transfer(other, DAY_ONE, 1)
    assert len(await days(one, "facts.transfer")) == 2


async def test_with_its_transaction_a_day_is_there_or_not(two: tuple[Connection, Connection]) -> None:
    one, other = two
    transaction = one.transaction()
    await transaction.start()
    await ensure(one, "facts.liquidity", DAY_ONE, DAY_ONE)
    await transaction.rollback()
    assert await days(other, "facts.liquidity") == []


async def test_two_that_need_the_same_day_make_it_once(two: tuple[Connection, Connection]) -> None:
    one, other = two

    async def make(connection: Connection) -> None:
        async with connection.transaction():
            await ensure(connection, "facts.trade", DAY_ONE, DAY_ONE)

    async with asyncio.timeout(WAIT_S):
        async with one.transaction():
            await ensure(one, "facts.trade", DAY_ONE, DAY_ONE)
            second = asyncio.create_task(make(other))
            await _until_it_waits(one)
        await second
    assert await days(one, "facts.trade") == [date(2025, 10, 9)]


async def _until_it_waits(connection: Connection) -> None:
    while not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"):  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_a_table_in_use_is_let_go_of_soon(two: tuple[Connection, Connection]) -> None:
    one, other = two
    await ensure(one, "facts.transfer", DAY_ONE, DAY_ONE)
    async with asyncio.timeout(WAIT_S), other.transaction():
        await other.fetchval("SELECT count(*) FROM facts.transfer")
        with pytest.raises(asyncpg.LockNotAvailableError):
            async with one.transaction():
                await drop_before(one, "facts.transfer", date(2025, 10, 10))
    assert await days(one, "facts.transfer") == [date(2025, 10, 9)]
    async with one.transaction():
        await drop_before(one, "facts.transfer", date(2025, 10, 10))
    assert await days(one, "facts.transfer") == []


async def test_only_what_is_cut_into_days_is_touched(connection: Connection) -> None:
    other = "facts.price; DROP TABLE facts.price"
    with pytest.raises(ValueError, match="not partitioned by day"):
        await ensure(connection, other, DAY_ONE, DAY_ONE)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not partitioned by day"):
        await drop_before(connection, other, date(2025, 10, 10))  # type: ignore[arg-type]


def test_a_day_begins_and_ends_in_utc() -> None:
    assert datetime.fromtimestamp(DAY_ONE, UTC) == datetime(2025, 10, 9, tzinfo=UTC)
    assert (day_of(DAY_ONE - 1), day_of(DAY_ONE)) == (date(2025, 10, 8), date(2025, 10, 9))
    assert day_of(DAY_ONE + DAY_S - 1) == date(2025, 10, 9)
