"""Migrations on a database that is in use."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server.migrate import migrate, migrations
from support.databases import connected, database
from support.tables import own_database

ADD = (9001, "ALTER TABLE facts.evidence ADD COLUMN tried int")
WAIT_S = 20.0


@pytest.fixture
async def own_url(database_url: str) -> AsyncIterator[str]:
    """A database of its own, up to date."""
    async with own_database(database_url, "migrated") as url:
        yield url


def test_numbers_rise_without_a_gap() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


async def test_a_table_in_use_is_waited_for_and_others_go_on(own_url: str) -> None:
    reader, migrating, other = [await asyncpg.connect(own_url) for _ in range(3)]
    reading = reader.transaction()
    await reading.start()
    await reader.fetch("SELECT * FROM facts.evidence")
    turned_away: list[float] = []
    again = asyncio.Event()

    async def wait(seconds: float) -> None:
        turned_away.append(seconds)
        await again.wait()

    task = asyncio.create_task(migrate(migrating, [ADD], wait))
    async with asyncio.timeout(WAIT_S):
        while not turned_away:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert await other.fetchval("SELECT count(*) FROM facts.evidence", timeout=WAIT_S) == 0
        await reading.commit()
        again.set()
        assert await task == [ADD[0]]
        assert await other.fetch("SELECT tried FROM facts.evidence") == []
    for connection in (reader, migrating, other):
        await connection.close()


async def test_a_migration_that_fails_leaves_nothing(own_url: str) -> None:
    connection = await asyncpg.connect(own_url)
    broken = (9002, "CREATE TABLE facts.half (id int); SELECT 1 / 0")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(connection, [broken])
    assert await connection.fetchval("SELECT to_regclass('facts.half')") is None
    assert await migrate(connection, [(9002, "CREATE TABLE facts.half (id int)")]) == [9002]
    assert await migrate(connection, [(9002, "never run twice")]) == []
    await connection.close()


async def test_a_database_of_before_the_first_release_is_refused_and_not_changed(database_url: str) -> None:
    """Its numbers mean other migrations: a later one would be taken for done."""
    async with database(database_url, "before") as url, connected(url) as connection:
        await connection.execute("CREATE TABLE public.migrations AS SELECT generate_series(1, 40) AS number")
        with pytest.raises(CannotRun, match=r"made before release 0\.1\.0.* use an empty database"):
            await migrate(connection)
        assert await connection.fetchval("SELECT to_regclass('public.migration')") is None


async def test_a_new_database_gets_every_migration_once(database_url: str) -> None:
    async with database(database_url, "new") as url, connected(url) as connection:
        assert await migrate(connection) == [number for number, _ in migrations()]
        assert await migrate(connection) == []
