"""Rounds of something that goes on for as long as the process does, whatever becomes of the database."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import asyncpg
import structlog

from roundtrip.chain.rpc.background import is_cancelled
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.names import clean

from .notify_listener import listening

_AGAIN_S = 0.5
_ERROR_LENGTH = 200
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class JobLoop:
    """One at a word on ``channel``, at ``wake``, and every ``poll_s``. ``stopped`` and ``goes_on``: what is
    said, once, when they fail and when they do no more."""

    pool: asyncpg.Pool
    channel: str
    poll_s: float
    stopped: str
    goes_on: str
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _away: bool = False

    async def run(self, begin: Callable[[], Awaitable[None]], turn: Callable[[], Awaitable[object]]) -> None:
        """Until it is cancelled; a database that goes away is waited for. ``begin``: before the first
        ``turn`` over each connection by which it listens."""
        while True:
            try:
                await self._listen(begin, turn)
            except Exception as error:
                if is_cancelled():
                    raise asyncio.CancelledError from error
                # Whatever it is: nobody else would begin this again.
                if not self._away:
                    log.warning(self.stopped, error=describe_error(error))
                self._away = True
                await asyncio.sleep(_AGAIN_S)

    async def _listen(
        self, begin: Callable[[], Awaitable[None]], turn: Callable[[], Awaitable[object]]
    ) -> None:
        """As long as the connection lasts by which it hears."""
        async with listening(self.pool, self.channel, self.wake) as cut:
            await begin()
            while not cut.is_set():
                self.wake.clear()
                await turn()
                if self._away:
                    log.info(self.goes_on)
                self._away = False
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.poll_s):
                        await self.wake.wait()


def describe_error(error: Exception) -> str:
    """An error for people. Its text may hold a stranger's: cleaned and cut."""
    said = error.message if isinstance(error, RoundtripError) else str(error)
    return clean(f"{type(error).__name__}: {said}", _ERROR_LENGTH)
