"""A loop that runs as long as the process, and survives a lost database. Listens to PostgreSQL
notifications on a dedicated connection."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import structlog

from roundtrip.chain.rpc.background import is_cancelled
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.names import clean

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


_RETRY_S = 0.5
_ERROR_LENGTH = 200
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class JobLoop:
    """Runs a turn on each notification on ``channel``, when ``wake`` is set, and every ``poll_s``.
    ``stopped`` and ``resumed``: logged once when turns begin to fail, and when they work again."""

    pool: asyncpg.Pool
    channel: str
    poll_s: float
    stopped: str
    resumed: str
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _is_failing: bool = False

    async def run(self, begin: Callable[[], Awaitable[None]], turn: Callable[[], Awaitable[object]]) -> None:
        """Runs until it is cancelled, and waits for a lost database to return. ``begin`` runs before the
        first ``turn`` of each listening connection."""
        while True:
            try:
                await self._listen(begin, turn)
            except Exception as error:
                if is_cancelled():
                    raise asyncio.CancelledError from error
                # Any error: nothing else would restart this loop.
                if not self._is_failing:
                    log.warning(self.stopped, error=describe_error(error))
                self._is_failing = True
                await asyncio.sleep(_RETRY_S)

    async def _listen(
        self, begin: Callable[[], Awaitable[None]], turn: Callable[[], Awaitable[object]]
    ) -> None:
        """Runs turns until the listening connection is lost."""
        async with listen(self.pool, self.channel, self.wake) as connection_lost:
            await begin()
            while not connection_lost.is_set():
                self.wake.clear()
                await turn()
                if self._is_failing:
                    log.info(self.resumed)
                self._is_failing = False
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.poll_s):
                        await self.wake.wait()


def describe_error(error: Exception) -> str:
    """The error's class and text, for logs. The text may hold untrusted input: it is cleaned and cut."""
    text = error.message if isinstance(error, RoundtripError) else str(error)
    return clean(f"{type(error).__name__}: {text}", _ERROR_LENGTH)
