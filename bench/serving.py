"""Servers and pools of a bench, which end however the bench ends."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import uvicorn

_WAIT_S = 10.0


@contextlib.asynccontextmanager
async def serving(server: uvicorn.Server, listening: socket.socket) -> AsyncIterator[str]:
    """Serves while the block runs; the base url."""
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await asyncio.wait({task}, timeout=_WAIT_S)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(dsn: str, **options: Any) -> AsyncIterator[asyncpg.Pool]:
    """A pool while the block runs. A connection that nobody gives back does not keep it open."""
    pool = await asyncpg.create_pool(dsn, **options)
    try:
        yield pool
    finally:
        try:
            async with asyncio.timeout(_WAIT_S):
                await pool.close()
        except TimeoutError:
            pool.terminate()
