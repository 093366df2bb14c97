"""Writes that callers enqueue, in batches of one statement, over one database connection."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from asyncio import timeout
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import asyncpg
import structlog

from roundtrip.api.request.request_ids import start_detached_task
from roundtrip.store.accounts import call_counts
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

MAX_AT_ONCE = 500
"""Rows in one statement."""
MAX_WAITING = 5_000
"""Callers that wait for a statement; further ones are refused (busy)."""
STATEMENT_S = 2.0
RETRY_S = 1.0
"""The database is left alone for this long after it did not answer."""
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class DedicatedConnection:
    """One connection of a pool, taken when it is first needed. Its commits do not wait for the disk."""

    pool: asyncpg.Pool
    _connection: Connection | None = None
    _taken: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    @contextlib.asynccontextmanager
    async def acquire(self, within_s: float = STATEMENT_S) -> AsyncIterator[Connection]:
        """The connection, for ``within_s``. Raises one of DATABASE_FAULTS; the next call then opens a
        new connection."""
        try:
            async with timeout(within_s):
                yield await self._connect()
        except BaseException:
            await self._discard()
            raise

    async def close(self) -> None:
        """Returns the connection to its pool."""
        self._connection = None
        await self._taken.aclose()

    async def _connect(self) -> Connection:
        if self._connection is None:
            self._connection = await self._taken.enter_async_context(self.pool.acquire(timeout=STATEMENT_S))
            await call_counts.without_waiting_for_the_disk(self._connection)
        return self._connection

    async def _discard(self) -> None:
        # A connection that failed may still send the answer to an earlier statement.
        connection, self._connection = self._connection, None
        with contextlib.suppress(*DATABASE_FAULTS):
            if connection is not None:
                connection.terminate()
        with contextlib.suppress(*DATABASE_FAULTS):
            await self._taken.aclose()


@dataclass(slots=True, kw_only=True)
class BatchWriter(ABC):
    """Runs one flush at a time while there is something to write. After a failure nothing is written for
    ``retry_s``. ``clock``: seconds, monotonic."""

    clock: Callable[[], float] = time.monotonic
    retry_s: float = RETRY_S
    _flushing: asyncio.Task[None] | None = None
    _away_until_s: float | None = None
    _is_reported: bool = False

    @abstractmethod
    def waiting(self) -> int:
        """Rows that are not written yet."""

    @abstractmethod
    async def _flush_batch(self) -> None:
        """Writes one batch, and hands its results to their callers. Calls ``_mark_away`` where that fails."""

    def _is_away(self) -> bool:
        """Whether the database did not answer a moment ago."""
        return self._away_until_s is not None and self.clock() < self._away_until_s

    def _mark_away(self, fault: Exception, event: str) -> None:
        """Logs the first failure after a success."""
        if not self._is_reported:
            log.warning(event, fault=type(fault).__name__)
        self._away_until_s, self._is_reported = self.clock() + self.retry_s, True

    def _mark_present(self) -> None:
        self._away_until_s, self._is_reported = None, False

    def _start_flush(self) -> None:
        if self._flushing is None and not self._is_away():
            self._flushing = start_detached_task(self._flush(), type(self).__name__)

    async def _flush(self) -> None:
        try:
            while self.waiting() and not self._is_away():
                await self._flush_batch()
        finally:
            self._flushing = None

    async def _finish(self) -> None:
        """Writes what is left, if the database answers."""
        self._start_flush()
        if self._flushing is not None:
            await self._flushing
