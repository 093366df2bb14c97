"""Numbered migrations, applied in order, each in a transaction of its own."""

from importlib import resources

import asyncpg

_LOCK = 4663_0001
"""An advisory lock, so that two processes that start together do not both migrate."""


def migrations() -> list[tuple[int, str]]:
    """Every migration's number and SQL, in order."""
    folder = resources.files("roundtrip.store") / "schema"
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text()) for name in files]


async def migrate(connection: asyncpg.Connection) -> list[int]:
    """Applies what is missing and gives the numbers applied."""
    applied = []
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK)
    try:
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS public.migrations"
            " (number int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        done = {row["number"] for row in await connection.fetch("SELECT number FROM public.migrations")}
        for number, sql in migrations():
            if number not in done:
                async with connection.transaction():
                    await connection.execute(sql)
                    await connection.execute("INSERT INTO public.migrations (number) VALUES ($1)", number)
                applied.append(number)
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK)
    return applied
