"""What the tests of one file have for themselves."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from support.channels import ChannelStreet
from support.flagged import FlagGround, emptied_accounts
from support.tables import own_database

HALF = (2**31).to_bytes(4, "big") + b"\0" * 28
"""Drawn in the middle: waits are what the table says."""


@pytest.fixture(scope="module")
async def url(database_url: str, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A migrated database of the file's own."""
    async with own_database(database_url, request.module.__name__.rpartition("test_")[2]) as found:
        yield found


@pytest.fixture(scope="module")
async def index(url: str) -> AsyncIterator[Connection]:
    """A connection to it."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


@pytest.fixture
async def own(database_url: str) -> AsyncIterator[Connection]:
    """A connection in no transaction, over accounts of its own."""
    found = await asyncpg.connect(database_url)
    await found.execute("TRUNCATE accounts.account, accounts.call CASCADE")
    yield found
    await found.execute("TRUNCATE accounts.account, accounts.call CASCADE")
    await found.close()


@pytest.fixture
async def ground(url: str) -> AsyncIterator[FlagGround]:
    """An index with tokens that can be flagged, and nobody in it yet."""
    async with connections.create_pool(url, min_size=1, max_size=4) as pool, pool.acquire() as index:
        await emptied_accounts(index)
        made = FlagGround(pool, index)
        await made.begin()
        yield made


@pytest.fixture
async def street(url: str) -> AsyncIterator[ChannelStreet]:
    """Receivers, and nothing to be sent yet."""
    async with connections.create_pool(url, min_size=1, max_size=12, command_timeout=5) as pool:
        await pool.execute(
            "TRUNCATE jobs.job, accounts.host_minute; DELETE FROM accounts.secret WHERE name = 'seal'"
        )
        yield ChannelStreet(pool, draw=lambda: HALF)
