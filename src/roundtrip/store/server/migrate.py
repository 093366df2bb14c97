"""Numbered migrations, applied in order, each in its own transaction, while the service runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib import resources

import asyncpg

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server.distribute import distribute, keep_distributed
from roundtrip.store.server.rows import Connection, fetch_value, fetch_values

_LOCK = 4663_0001
"""The advisory lock that is held to migrate, so that two processes that start together do not both do so."""
LOCK_TIMEOUT_MS = 500
"""Other statements queue behind a migration that waits for a table lock, so it gives up soon and tries
again."""
TABLE = (
    "CREATE TABLE IF NOT EXISTS public.migration"
    " (number int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
)
_BEFORE_RELEASES = "SELECT to_regclass('public.migrations') IS NOT NULL"
"""Whether development before 0.1.0 made the database: its numbers mean other migrations."""
_TRIES = 60
_AGAIN_S = 1.0


class TooOld(CannotRun):
    """The database was made before the first release, and cannot be brought up to date."""


def migrations() -> list[tuple[int, str]]:
    """Every migration's number and SQL, in order."""
    folder = resources.files("roundtrip.store") / "schema"
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text()) for name in files]


async def migrate(
    connection: Connection,
    all_of_them: Sequence[tuple[int, str]] | None = None,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> list[int]:
    """Applies the missing ones of ``all_of_them`` (None: of ``migrations``) and returns the numbers applied.
    Raises asyncpg.LockNotAvailableError if a table was in use for a minute and a half; earlier ones stay.
    Raises TooOld."""
    applied = []
    async with _alone(connection):
        if await fetch_value(connection, bool, _BEFORE_RELEASES):
            raise TooOld(
                "The database was made before release 0.1.0, and no migration brings it up to date. "
                "Nothing was changed: use an empty database."
            )
        await connection.execute(TABLE)
        done = set(await fetch_values(connection, int, "SELECT number FROM public.migration"))
        for number, sql in migrations() if all_of_them is None else all_of_them:
            if number not in done:
                await _apply(connection, number, sql, wait)
                applied.append(number)
        await keep_distributed(connection)
    return applied


async def place(connection: Connection) -> list[str]:
    """``distribute``, while no migration runs. Raises NoWorkers."""
    async with _alone(connection):
        return await distribute(connection)


@contextlib.asynccontextmanager
async def _alone(connection: Connection) -> AsyncIterator[None]:
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        yield
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)


async def _apply(
    connection: Connection, number: int, sql: str, wait: Callable[[float], Awaitable[None]]
) -> None:
    for tries_left in reversed(range(_TRIES)):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
                await connection.execute(sql)
                await connection.execute("INSERT INTO public.migration (number) VALUES ($1)", number)
        except asyncpg.LockNotAvailableError:
            if not tries_left:
                raise
            await wait(_AGAIN_S)
        else:
            return
