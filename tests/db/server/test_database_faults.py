"""A connection whose server has said goodbye, and which has not ended yet: it looks open to the pool."""

import asyncio
import urllib.parse
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import asyncpg
import pytest

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import accounts
from roundtrip.store.server import connections
from roundtrip.store.server.connections import DATABASE_FAULTS
from support.databases import connected, needs_one_server

WAIT_S = 20.0


@dataclass
class Line:
    """Between a client and the tests' server. ``ended``: the server has; its clients are not told."""

    url: str
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: "list[asyncio.Task[None]]" = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.append(asyncio.create_task(self._between(reader, writer)))

    async def _between(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = urllib.parse.urlsplit(self.url)
        qs = urllib.parse.parse_qs(asked.query)
        if asked.hostname:
            theirs = await asyncio.open_connection(asked.hostname, asked.port)
        else:
            theirs = await asyncio.open_unix_connection(f"{qs['host'][0]}/.s.PGSQL.{qs['port'][0]}")
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, theirs[1]))
                await _copy(theirs[0], writer)
                self.ended.set()
                # Its client is not told.
                await asyncio.get_running_loop().create_future()
        finally:
            writer.close()
            theirs[1].close()

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while some := await source.read(65_536):
        target.write(some)


@pytest.fixture
async def said_goodbye(ctx: Context, database_url: str) -> AsyncIterator[Context]:
    """A context whose pool has one connection, and that one is such."""
    line = Line(database_url)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    options = {"host": "127.0.0.1", "port": port, "ssl": False}
    pool = await connections.create_pool(database_url, min_size=0, max_size=1, **options)
    try:
        async with asyncio.timeout(WAIT_S), connected(database_url) as other:
            pid = await pool.fetchval("SELECT pg_backend_pid()")
            assert await other.fetchval("SELECT pg_terminate_backend($1)", pid)
            await line.ended.wait()
            # By now what the server said last has been read, too.
            assert await other.fetchval("SELECT 1") == 1
        yield replace(ctx, pool=pool)
    finally:
        pool.terminate()
        server.close()
        await line.end()


@needs_one_server
async def test_it_is_a_fault_of_the_database(said_goodbye: Context) -> None:
    async with said_goodbye.pool.acquire(timeout=WAIT_S) as connection:
        with pytest.raises(asyncpg.InternalClientError) as result:
            await connection.fetchval("SELECT 1")
    assert isinstance(result.value, DATABASE_FAULTS)


@needs_one_server
async def test_who_asks_by_it_is_told_busy_and_the_next_one_answered(said_goodbye: Context) -> None:
    with pytest.raises(ServiceFull) as result:
        async with accounts(said_goodbye):
            pytest.fail("it was lent")
    assert result.value.code == "busy"
    async with accounts(said_goodbye) as connection:
        assert await connection.fetchval("SELECT 1") == 1
