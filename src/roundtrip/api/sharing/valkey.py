"""The one Valkey (or Redis) that several serving processes share. It may be gone at any time: nobody waits
for it for longer than a bound, and no fault of it reaches a caller."""

import asyncio
import hashlib
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import structlog
from redis.asyncio import Redis, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, ResponseError

from roundtrip.api.request.request_ids import begin_for_all
from roundtrip.domain.base.errors import CannotRun

log = structlog.get_logger(__name__)

NAMESPACE = "roundtrip"
BOUND_S = 0.25
"""For one group of commands, a connection included."""
_AGAIN_S = 1.0
"""A store that did not answer is asked again after so long."""
_MOST_AT_ONCE = 200
"""Commands in one group."""
_MOST_WAITING = 5_000
_TURNS = 20
"""Of the loop, given to a group beyond its bound; an idle loop takes no time for them."""
_WORD = re.compile("[A-Z]{1,20}")

Word = bytes | str | int


class StoreUnavailable(Exception):
    """The store does not answer, or not as it should."""


class _ScriptNotLoaded(Exception):
    """The store does not know this script yet."""


class BadUrl(CannotRun):
    """The store's url cannot be read; it may hold a password, so it is not shown."""


@dataclass(frozen=True, slots=True)
class Script:
    """Of Lua, which the store runs in one piece."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        # The protocol's own name for it.
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest())


@dataclass(slots=True)
class _QueuedCommand:
    """A command of a group that has not begun, and who waits for its reply."""

    command: Sequence[Word]
    came: asyncio.Future[object]


class Valkey:
    """Commands go in groups, one group at a time over one connection: everybody who comes meanwhile is in the
    next. After a fault the store is gone for a second, in which nobody waits at all; then whoever asks first
    tries it, and nobody else until that is over. So a store that hangs costs one bounded wait a second,
    however many ask.

    ``clock``: seconds, of any beginning.
    """

    def __init__(
        self, url: str, clock: Callable[[], float] = time.monotonic, bound_s: float = BOUND_S
    ) -> None:
        """Raises BadUrl. Connects when it is first asked."""
        # Every option of the url is an argument somewhere: what that raises is not ours to list.
        try:
            client = Redis.from_url(
                url,
                # Time-outs of its own would be a task for every command; the bound below is for all of it.
                socket_timeout=None,
                socket_connect_timeout=bound_s,
                retry=Retry(NoBackoff(), 0),
                # What the third version brings (pushed messages) is of no use here.
                protocol=2,
                driver_info=None,
            )
            _try_options(client)
        except Exception:
            raise BadUrl("ROUNDTRIP_REDIS_URL cannot be read, or an option of it is wrong.") from None
        self._client = client
        self._clock = clock
        self._bound_s = bound_s
        self._waiting: deque[_QueuedCommand] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._gone_until_s: float | None = None
        self._closed = False

    def is_gone(self) -> bool:
        """Whether whoever asks now is told Gone, and waits for nothing."""
        if self._closed:
            return True
        if self._gone_until_s is None:
            return False
        return self._flushing is not None or self._clock() < self._gone_until_s

    async def ask(self, *command: Word) -> object:
        """One command's reply, as redis-py reads it. Raises Gone."""
        return await asyncio.shield(self._put(command))

    async def run(self, script: Script, keys: Sequence[Word], args: Sequence[Word]) -> object:
        """What a script returns. Raises Gone."""
        try:
            return await self.ask("EVALSHA", script.sha, len(keys), *keys, *args)
        except _ScriptNotLoaded:
            return await self.ask("EVAL", script.text, len(keys), *keys, *args)

    def tell(self, script: Script, keys: Sequence[Word], args: Sequence[Word]) -> None:
        """Has a script run, if that can be, and waits for nothing."""
        try:
            came = self._put(("EVAL", script.text, len(keys), *keys, *args))
        except StoreUnavailable:
            return
        came.add_done_callback(_unheard)

    def distrust(self, why: str) -> None:
        """What it answers is nothing that it could answer: as if it had not."""
        self._note_failure(why)

    async def close(self) -> None:
        """Sends what waits, if it can; from here on it is gone."""
        self._closed = True
        if self._flushing is not None:
            await self._flushing
        try:
            async with asyncio.timeout(self._bound_s):
                await self._client.aclose()
        except Exception as fault:
            log.debug("valkey was not left in order", fault=type(fault).__name__)

    def _put(self, command: Sequence[Word]) -> asyncio.Future[object]:
        if self.is_gone() or len(self._waiting) >= _MOST_WAITING:
            raise StoreUnavailable
        came: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append(_QueuedCommand(command, came))
        if self._flushing is None:
            self._flushing = begin_for_all(self._flush(), "valkey")
        return came

    async def _flush(self) -> None:
        group: list[_QueuedCommand] = []
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(_MOST_AT_ONCE, len(self._waiting)))]
                try:
                    replies = await self._replies(group)
                # Another program's bytes: what reading them may raise is not ours to list.
                except Exception as fault:
                    self._note_failure(_word(fault))
                    _refuse(group)
                else:
                    self._came(group, replies)
                if self._gone_until_s is not None:
                    _refuse(self._waiting)
                    self._waiting.clear()
        finally:
            self._flushing = None
            _refuse([*group, *self._waiting])
            self._waiting.clear()

    async def _replies(self, group: list[_QueuedCommand]) -> list[object]:
        loop, is_over = asyncio.get_running_loop(), False

        def late(turns: int) -> None:
            # A loop that was late itself has yet to look at what came in time.
            if turns and not is_over:
                loop.call_soon(late, turns - 1)
            elif not is_over:
                bound.reschedule(loop.time())

        async with asyncio.timeout(None) as bound:
            timer = loop.call_later(self._bound_s, late, _TURNS)
            try:
                async with self._client.pipeline(transaction=False) as pipeline:
                    for one in group:
                        pipeline.execute_command(*one.command)
                    return await pipeline.execute(raise_on_error=False)
            finally:
                is_over = True
                timer.cancel()

    def _came(self, group: list[_QueuedCommand], replies: list[object]) -> None:
        wrong = next((one for one in replies if _is_fault(one)), None)
        if wrong is not None:
            self._note_failure(_word(wrong))
        elif self._gone_until_s is not None:
            self._gone_until_s = None
            log.info("valkey is back")
        for one, reply in zip(group, replies, strict=True):
            if one.came.done():
                continue
            if isinstance(reply, NoScriptError):
                one.came.set_exception(_ScriptNotLoaded())
            elif isinstance(reply, Exception):
                one.came.set_exception(StoreUnavailable())
            else:
                one.came.set_result(reply)

    def _note_failure(self, why: str) -> None:
        if self._gone_until_s is None:
            log.warning("valkey is gone: limits and answers are this process's own", fault=why)
        self._gone_until_s = self._clock() + _AGAIN_S


def _try_options(client: Redis) -> None:
    """A connection as every one will be made, which is not opened. Raises whatever a wrong option raises."""
    pool = client.connection_pool
    connection = pool.connection_class(**pool.connection_kwargs)
    if isinstance(connection, SSLConnection):
        connection.ssl_context.get()
    "PING".encode(connection.encoder.encoding)
    if connection.encoder.decode_responses:
        raise ValueError("replies are read as bytes")


def _is_fault(reply: object) -> TypeGuard[Exception]:
    return isinstance(reply, Exception) and not isinstance(reply, NoScriptError)


def _word(fault: Exception) -> str:
    """The server's own word for it (NOAUTH, OOM), else the kind of fault; nothing of what was asked."""
    told = getattr(fault, "status_code", None)
    if told is None and isinstance(fault, ResponseError):
        told = str(fault).partition(" ")[0]
    return told if isinstance(told, str) and _WORD.fullmatch(told) else type(fault).__name__


def _refuse(asked: Sequence[_QueuedCommand] | deque[_QueuedCommand]) -> None:
    for one in asked:
        if not one.came.done():
            one.came.set_exception(StoreUnavailable())


def _unheard(came: asyncio.Future[object]) -> None:
    """Nobody minds what came of it."""
    if not came.cancelled():
        came.exception()
