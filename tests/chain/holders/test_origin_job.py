"""The search for a wallet's origin as a job, on a real node with an archive."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial

import asyncpg
import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import origins
from roundtrip.store.index.origins import ArchiveSearch
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet import world
from support import archive as archives
from support.archive import BLOCKS, EARLY, FUNDED, LATE, NOBODY, START, Archive
from support.faulty_node import FaultyNode
from support.fixtures import context_for
from support.tables import emptied_tables

WAIT_S = 30
DAY_S = 86_400


@pytest.fixture(scope="module")
def archive(places: world.DevnetFolders) -> Iterator[Archive]:
    with archives.archive(places) as found:
        yield found


@pytest.fixture
async def clean(database_url: str) -> AsyncIterator[Connection]:
    tables = "jobs.job, facts.older_origin, facts.cursor"
    async with emptied_tables(database_url, tables) as connection:
        yield connection


@pytest.fixture
async def asks(archive: Archive, built: world.Built, pool: asyncpg.Pool) -> AsyncIterator[Context]:
    async with context_for(archive.url, built, pool) as found:
        yield found


async def searched(ctx: Context, connection: Connection, wallet: Address, start: int) -> ArchiveSearch | None:
    """After one round, for an index that begins with block ``start``."""
    await connection.execute(
        "INSERT INTO facts.cursor (only_one, start_number, number, hash, at_s, rewinds)"
        " VALUES (true, $1, 50, $2, 7, 1)",
        start,
        bytes(32),
    )
    await jobs.enqueue(connection, "origin", wallet)
    await work(ctx)
    return await origins.read_archive_search(connection, wallet)


async def work(ctx: Context) -> None:
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*await Worker(ctx, KINDS, lambda: 0.5).take())


async def left(connection: Connection) -> int:
    count: int = await connection.fetchval("SELECT count(*) FROM jobs.job")
    return count


async def test_what_is_older_than_the_index_is_found_and_kept(
    asks: Context, clean: Connection, archive: Archive
) -> None:
    found = ArchiveSearch(FirstSeen(FUNDED, archive.funded_s, archive.funder), FUNDED)
    assert await searched(asks, clean, EARLY, START) == found
    assert await left(clean) == 0


@pytest.mark.parametrize("wallet", [LATE, NOBODY])
async def test_nothing_before_the_index_is_kept_as_that(
    asks: Context, clean: Connection, wallet: Address
) -> None:
    assert await searched(asks, clean, wallet, START) == ArchiveSearch(None, START - 1)
    assert await left(clean) == 0


async def test_of_a_whole_index_nothing_is_older(asks: Context, clean: Connection) -> None:
    assert await searched(asks, clean, EARLY, 0) is None
    assert await left(clean) == 0


async def test_where_it_could_not_be_found_out_it_is_tried_three_days(
    asks: Context, clean: Connection
) -> None:
    """A node that does not know that block yet stands for one without an archive."""
    assert await searched(asks, clean, EARLY, BLOCKS + 100) is None
    run_s = asks.now_s()
    for tries in (1, 2):
        [row] = await clean.fetch("SELECT run_at, tries, failed_at FROM jobs.job")
        waited_s, run_s = row["run_at"].timestamp() - run_s, row["run_at"].timestamp()
        assert (row["tries"], row["failed_at"], round(waited_s / DAY_S)) == (tries, None, 1)
        await work(replace(asks, now_s=partial(float, run_s)))
    assert await clean.fetchval("SELECT failed_at IS NOT NULL FROM jobs.job")
    assert await origins.read_archive_search(clean, EARLY) is None


async def test_a_node_that_fails_in_the_search_is_no_origin(
    archive: Archive, built: world.Built, pool: asyncpg.Pool, clean: Connection
) -> None:
    async with FaultyNode(archive.url).running() as faulty, context_for(faulty.url, built, pool) as asks:
        faulty.fault, faulty.after = "all errors", 1
        assert await searched(asks, clean, EARLY, START) is None
        text = await clean.fetchval("SELECT last_error FROM jobs.job WHERE run_at > now()")
        assert text == "NotYet: the search found no answer"


async def test_before_the_index_begins_it_waits(asks: Context, clean: Connection) -> None:
    await jobs.enqueue(clean, "origin", EARLY)
    await work(asks)
    assert await clean.fetchval("SELECT last_error FROM jobs.job") == "NotYet: the index is empty"
