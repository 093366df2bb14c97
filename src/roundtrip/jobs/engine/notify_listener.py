"""Hearing what others tell over PostgreSQL, by a connection that is held for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

_DATABASE_S = 5.0


@contextlib.asynccontextmanager
async def listening(pool: asyncpg.Pool, channel: str, wake: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Sets ``wake`` with every word on ``channel``; gives what is set, with it, when the connection is
    lost."""
    cut = asyncio.Event()

    def heard(*_: Any) -> None:
        wake.set()

    def note_loss(*_: Any) -> None:
        cut.set()
        wake.set()

    async with pool.acquire(timeout=_DATABASE_S) as connection:
        await connection.add_listener(channel, heard)
        connection.add_termination_listener(note_loss)
        try:
            yield cut
        finally:
            # One that was lost is no longer ours to be asked anything.
            if not cut.is_set():
                connection.remove_termination_listener(note_loss)
                await connection.remove_listener(channel, heard)
