"""The sync ends when it is told to, whatever fails on the way out."""

import asyncio
from typing import Any

import asyncpg
import pytest

from roundtrip.sync.run import Following, Sync
from unit.venues.logs import NETWORK

WAIT_S = 5.0


class Unwilling:
    """A connection that hangs, and when whoever waits for it is cancelled says something else."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def fetchval(self, *_: object) -> bool:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise asyncpg.InterfaceError("the connection was lost in the middle of it") from None
        return True

    async def close(self, **_: object) -> None:
        raise ConnectionResetError


async def test_a_cancellation_that_a_lost_connection_hides_ends_it_all_the_same() -> None:
    connection = Unwilling()

    async def connect() -> Any:
        return connection

    nothing: Any = None
    sync = Sync(Following(nothing, nothing, 4663, NETWORK, 0, 0, None), connect)
    task = asyncio.create_task(sync.run())
    async with asyncio.timeout(WAIT_S):
        await connection.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
