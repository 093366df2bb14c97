"""A connection to the database that is nobody else's, for what every call waits for."""

import contextlib
from asyncio import timeout
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import asyncpg

from roundtrip.store.accounts import call_counts
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

STATEMENT_S = 2.0


@dataclass(slots=True)
class OwnConnection:
    """One connection of a pool, lent when it is first asked for. Its commits do not wait for the disk."""

    pool: asyncpg.Pool
    _connection: Connection | None = None
    _lent: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    @contextlib.asynccontextmanager
    async def acquire(self, within_s: float) -> AsyncIterator[Connection]:
        """The connection, for so long. Raises one of DATABASE_FAULTS; then the next one is a new one."""
        try:
            async with timeout(within_s):
                yield await self._connect()
        except BaseException:
            await self._let_go()
            raise

    async def close(self) -> None:
        """Gives it back."""
        self._connection = None
        await self._lent.aclose()

    async def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = await self._lent.enter_async_context(self.pool.acquire(timeout=STATEMENT_S))
            await call_counts.without_waiting_for_the_disk(self._connection)
        return self._connection

    async def _let_go(self) -> None:
        """Of a connection that failed, nobody knows what it is about to say."""
        connection, self._connection = self._connection, None
        with contextlib.suppress(*DATABASE_FAULTS):
            if connection is not None:
                connection.terminate()
        with contextlib.suppress(*DATABASE_FAULTS):
            await self._lent.aclose()
