"""Listens to PostgreSQL notifications on a dedicated connection."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

_DATABASE_S = 5.0


@contextlib.asynccontextmanager
async def listen(pool: asyncpg.Pool, channel: str, wake: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """Sets ``wake`` on every notification on ``channel``. Yields an event that is set, together with
    ``wake``, when the connection is lost."""
    connection_lost = asyncio.Event()

    def on_notification(*_: Any) -> None:
        wake.set()

    def on_termination(*_: Any) -> None:
        connection_lost.set()
        wake.set()

    async with pool.acquire(timeout=_DATABASE_S) as connection:
        await connection.add_listener(channel, on_notification)
        connection.add_termination_listener(on_termination)
        try:
            yield connection_lost
        finally:
            # A lost connection has already been returned to the pool.
            if not connection_lost.is_set():
                connection.remove_termination_listener(on_termination)
                await connection.remove_listener(channel, on_notification)
