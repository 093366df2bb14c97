"""Databases of their own on the tests' server, whichever that is: the embedded one, or one that was named."""

import contextlib
import itertools
import os
import re
import secrets
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from deploy.citus.join import join

from roundtrip.store.server.connections import SESSION
from roundtrip.store.server.migrate import migrate, place
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection

SERVER_VARIABLE = "TEST_DATABASE_URL"
WORKERS_VARIABLE = "TEST_CITUS_WORKERS"
"""Servers with Citus, with commas between them: the one of SERVER_VARIABLE is their coordinator."""
needs_one_server = pytest.mark.skipif(
    WORKERS_VARIABLE in os.environ, reason="the test itself asks what only one server answers"
)
_URL = re.compile(r"^(postgres(?:ql)?://[^/?]*)(?:/[^?]*)?")
# Several workers, and several people, may be on one server.
_RUN = f"rt_{secrets.token_hex(3)}"
_count = itertools.count(1)


def named(url: str, name: str) -> str:
    """The address of another database on the same server."""
    found, times = _URL.subn(rf"\g<1>/{name}", url)
    assert times == 1, "the address of a PostgreSQL server begins with postgresql://"
    return found


def name_in(url: str) -> str:
    """Which database an address that ``named`` made is of."""
    return url.split("?")[0].rsplit("/", 1)[1]


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    """A connection of its own."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def database(server_url: str, name: str, like: str = "") -> AsyncIterator[str]:
    """An empty database of this run alone, dropped at the end; its url. ``like``: the url of one to copy,
    that nobody is connected to."""
    # One that could not be dropped is nobody else's trouble.
    own = f"{_RUN}_{os.getpid()}_{next(_count)}_{name}"
    async with contextlib.AsyncExitStack() as stack:
        for worker in workers():
            await stack.enter_async_context(_made(worker, own))
        yield await stack.enter_async_context(_made(server_url, own, like))


def workers() -> list[str]:
    """The urls of the workers, where tables are placed on them."""
    return [url for url in os.environ.get(WORKERS_VARIABLE, "").split(",") if url]


async def migrate_placed(url: str) -> None:
    """Migrates an empty database, and places its tables on the workers where there are some."""
    if workers():
        await join([url, *(named(worker, name_in(url)) for worker in workers())])
    async with connected(url) as connection:
        await migrate(connection)
        if workers():
            await place(connection)


@contextlib.asynccontextmanager
async def _made(server_url: str, own: str, like: str = "") -> AsyncIterator[str]:
    # Nothing is durable here: files are copied in half the time that their pages are logged in.
    copy = f" TEMPLATE {name_in(like)} STRATEGY FILE_COPY" if like else ""
    async with connected(server_url) as connection:
        await connection.execute(f"CREATE DATABASE {own}{copy}")
        try:
            yield named(server_url, own)
        finally:
            await _drop(connection, own)


async def _drop(connection: Connection, name: str, tries: int = 4) -> None:
    """Whoever is in it is thrown out. PostgreSQL gives each of them five seconds to go."""
    # The server's own vacuum gives way only to who does not force it.
    how = "" if tries % 2 else " WITH (FORCE)"
    try:
        await connection.execute(f"DROP DATABASE {name}{how}")
    except (asyncpg.InsufficientPrivilegeError, asyncpg.ObjectInUseError):
        if tries == 1:
            raise
        await _drop(connection, name, tries - 1)


@contextlib.asynccontextmanager
async def server(folder: Path) -> AsyncIterator[str]:
    """A database on the server that the environment names; else on an embedded one in ``folder``."""
    url = os.environ.get(SERVER_VARIABLE)
    if url:
        # Tests connect to it as the service does, however the server is set.
        set_as_ours = urllib.parse.urlencode(SESSION, quote_via=urllib.parse.quote)
        async with database(f"{url}{'&' if '?' in url else '?'}{set_as_ours}", "tests") as found:
            yield found
    else:
        async with EmbeddedPostgres(folder, durable=False) as embedded:
            yield embedded.dsn
