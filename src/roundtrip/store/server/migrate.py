"""Numbered migrations, applied in order, each in a transaction of its own, while everything goes on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources

import asyncpg

from roundtrip.store.server.rows import Connection

_LOCK = 4663_0001
"""An advisory lock, so that two processes that start together do not both migrate."""
LOCK_TIMEOUT_MS = 500
"""Whoever comes while a migration waits for a table waits behind it: it lets go soon, and comes again."""
TABLE = (
    "CREATE TABLE IF NOT EXISTS public.migrations"
    " (number int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
)
_TRIES = 60
_AGAIN_S = 1.0


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
    """Applies what is missing of ``all_of_them`` (None: of ours) and gives the numbers applied. Raises
    asyncpg.LockNotAvailableError when a table was in use for a minute on end; what was applied stays."""
    applied = []
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        await connection.execute(TABLE)
        done = {row["number"] for row in await connection.fetch("SELECT number FROM public.migrations")}
        for number, sql in migrations() if all_of_them is None else all_of_them:
            if number not in done:
                await _apply(connection, number, sql, wait)
                applied.append(number)
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)
    return applied


async def _apply(
    connection: Connection, number: int, sql: str, wait: Callable[[float], Awaitable[None]]
) -> None:
    for left in reversed(range(_TRIES)):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
                await connection.execute(sql)
                await connection.execute("INSERT INTO public.migrations (number) VALUES ($1)", number)
        except asyncpg.LockNotAvailableError:
            if not left:
                raise
            await wait(_AGAIN_S)
        else:
            return
