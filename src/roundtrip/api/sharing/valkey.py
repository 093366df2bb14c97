"""The Valkey (or Redis) that serving processes share. It may be unavailable at any time: waiting for it is
bounded, and its errors never reach a caller."""

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
from redis.exceptions import AskError, NoScriptError, ResponseError, TryAgainError

from roundtrip.api.request.callers import start_detached_task
from roundtrip.domain.base.errors import CannotRun

log = structlog.get_logger(__name__)

NAMESPACE = "roundtrip"
BOUND_S = 0.25
"""Time limit of one group of commands, including connecting."""
RETRY_S = 1.0
"""Pause after a failure, before the store is tried again."""
_MAX_PER_GROUP = 200
"""Commands in one group."""
_MAX_QUEUED = 5_000
_EXTRA_TURNS = 20
"""Turns of the event loop that a group gets after its time limit, to read replies that arrived in time; an
idle loop runs them at once."""
_ERROR_CODE = re.compile("[A-Z]{1,20}")
_REDIRECTIONS = (AskError, TryAgainError)
"""Replies of a cluster's master that did not run the command; MovedError is an AskError."""

Argument = bytes | str | int


class StoreUnavailable(Exception):
    """The store does not answer, or answers with nonsense."""


class _ScriptNotLoaded(Exception):
    """The store has not loaded this script yet."""


class BadUrl(CannotRun):
    """The store's url is invalid; it may contain a password, so the message does not show it."""

    def __init__(self, example: str = "redis://127.0.0.1:6379/0") -> None:
        super().__init__(f"ROUNDTRIP_REDIS_URL must be a valid url, such as {example}.")


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script, which the store runs atomically."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        # SHA-1 because EVALSHA identifies scripts by it.
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest())


@dataclass(slots=True)
class _QueuedCommand:
    """A command that has not been sent, and the future of its reply."""

    command: Sequence[Argument]
    reply: asyncio.Future[object]


class Valkey:
    """Sends commands in groups, one group at a time over one connection; commands that arrive during a group
    are in the next. After a failure every call fails at once for a second; then the first one tries the store
    again, and all others fail until it has ended. So a store that hangs costs one bounded wait a second, for
    any number of callers.

    ``clock``: seconds from any origin. ``bound_s``: the time limit of the next group; it may be changed.
    ``node``: the name of this master of a cluster, for the log; its redirections are raised as redis-py's
    AskError and TryAgainError, and are no failure.
    """

    def __init__(
        self,
        url: str,
        clock: Callable[[], float] = time.monotonic,
        bound_s: float = BOUND_S,
        node: str | None = None,
    ) -> None:
        """Raises BadUrl. Connects with the first command."""
        # Options of the url become arguments of the library, which may raise anything.
        try:
            client = Redis.from_url(
                url,
                # The library's timeout would cost a task for every command; _execute has one for the group.
                socket_timeout=None,
                socket_connect_timeout=bound_s,
                retry=Retry(NoBackoff(), 0),
                # RESP3's push messages are not used.
                protocol=2,
                driver_info=None,
            )
            _try_options(client)
        except Exception:
            raise BadUrl from None
        self._client = client
        self._node = node
        self._clock = clock
        self.bound_s = bound_s
        self._waiting: deque[_QueuedCommand] = deque()
        self._flushing: asyncio.Task[None] | None = None
        self._unavailable_until_s: float | None = None
        self._closed = False

    def batch_of(self, key: bytes) -> bytes:
        """Keys with the same batch may be in one script: here all."""
        return b""

    def is_gone(self, key: bytes = b"") -> bool:
        """Whether a command now would raise StoreUnavailable at once, for any key."""
        if self._closed:
            return True
        if self._unavailable_until_s is None:
            return False
        return self._flushing is not None or self._clock() < self._unavailable_until_s

    async def ask(self, *command: Argument) -> object:
        """Sends a command; returns the reply as redis-py decodes it. Raises StoreUnavailable."""
        return await asyncio.shield(self._enqueue(command))

    async def run(
        self, script: Script, keys: Sequence[Argument], args: Sequence[Argument], is_asking: bool = False
    ) -> object:
        """Runs a script; returns its reply. Raises StoreUnavailable. ``is_asking``: another master of the
        cluster has sent it here with ASK."""
        operands = (len(keys), *keys, *args)
        try:
            return await self._send(("EVALSHA", script.sha, *operands), is_asking)
        except _ScriptNotLoaded:
            return await self._send(("EVAL", script.text, *operands), is_asking)

    async def _send(self, command: Sequence[Argument], is_asking: bool) -> object:
        if is_asking:
            # It holds for the next command of the connection: the one that is queued behind it.
            self._enqueue(("ASKING",)).add_done_callback(_ignore_outcome)
        return await self.ask(*command)

    def send_script(self, script: Script, keys: Sequence[Argument], args: Sequence[Argument]) -> None:
        """Sends a script without waiting for its reply; does nothing if the store is unavailable."""
        try:
            reply = self._enqueue(("EVAL", script.text, len(keys), *keys, *args))
        except StoreUnavailable:
            return
        reply.add_done_callback(_ignore_outcome)

    def mark_unavailable(self, why: str, key: bytes = b"") -> None:
        """Treats an impossible answer as a failure of the store."""
        self._note_failure(why)

    async def close(self) -> None:
        """Sends the queued commands if possible, then closes. Later commands raise StoreUnavailable."""
        self._closed = True
        if self._flushing is not None:
            await self._flushing
        try:
            async with asyncio.timeout(self.bound_s):
                await self._client.aclose()
        except Exception as fault:
            log.debug("closing valkey failed", fault=type(fault).__name__)

    def _enqueue(self, command: Sequence[Argument]) -> asyncio.Future[object]:
        if self.is_gone() or len(self._waiting) >= _MAX_QUEUED:
            raise StoreUnavailable
        reply: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append(_QueuedCommand(command, reply))
        if self._flushing is None:
            self._flushing = start_detached_task(self._flush(), "valkey")
        return reply

    async def _flush(self) -> None:
        group: list[_QueuedCommand] = []
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(_MAX_PER_GROUP, len(self._waiting)))]
                try:
                    replies = await self._execute(group)
                # Decoding another program's bytes may raise anything.
                except Exception as fault:
                    self._note_failure(_error_code(fault))
                    _fail(group)
                else:
                    self._deliver(group, replies)
                if self._unavailable_until_s is not None:
                    _fail(self._waiting)
                    self._waiting.clear()
        finally:
            self._flushing = None
            _fail([*group, *self._waiting])
            self._waiting.clear()

    async def _execute(self, group: list[_QueuedCommand]) -> list[object]:
        loop, is_done = asyncio.get_running_loop(), False

        def late(turns: int) -> None:
            # A loop that is late itself has not yet read replies that arrived in time.
            if turns and not is_done:
                loop.call_soon(late, turns - 1)
            elif not is_done:
                bound.reschedule(loop.time())

        async with asyncio.timeout(None) as bound:
            timer = loop.call_later(self.bound_s, late, _EXTRA_TURNS)
            try:
                async with self._client.pipeline(transaction=False) as pipeline:
                    for queued in group:
                        pipeline.execute_command(*queued.command)
                    return await pipeline.execute(raise_on_error=False)
            finally:
                is_done = True
                timer.cancel()

    def _deliver(self, group: list[_QueuedCommand], replies: list[object]) -> None:
        error = next((answer for answer in replies if self._is_fault(answer)), None)
        if error is not None:
            self._note_failure(_error_code(error))
        elif self._unavailable_until_s is not None:
            self._unavailable_until_s = None
            log.info("valkey works again", **self._name_node())
        for queued, answer in zip(group, replies, strict=True):
            if queued.reply.done():
                continue
            if isinstance(answer, NoScriptError):
                queued.reply.set_exception(_ScriptNotLoaded())
            elif isinstance(answer, Exception) and not self._is_fault(answer):
                queued.reply.set_exception(answer)
            elif isinstance(answer, Exception):
                queued.reply.set_exception(StoreUnavailable())
            else:
                queued.reply.set_result(answer)

    def _note_failure(self, why: str) -> None:
        if self._unavailable_until_s is None:
            log.warning("valkey failed; limits and answers are per process", fault=why, **self._name_node())
        self._unavailable_until_s = self._clock() + RETRY_S

    def _is_fault(self, reply: object) -> TypeGuard[Exception]:
        if self._node is not None and isinstance(reply, _REDIRECTIONS):
            return False
        return isinstance(reply, Exception) and not isinstance(reply, NoScriptError)

    def _name_node(self) -> dict[str, str]:
        return {} if self._node is None else {"node": self._node}


def _try_options(client: Redis) -> None:
    """Builds a connection with the url's options without opening it. Raises anything, if an option is
    wrong."""
    pool = client.connection_pool
    connection = pool.connection_class(**pool.connection_kwargs)
    if isinstance(connection, SSLConnection):
        connection.ssl_context.get()
    "PING".encode(connection.encoder.encoding)
    if connection.encoder.decode_responses:
        raise ValueError("replies are read as bytes")


def _error_code(error: Exception) -> str:
    """The server's error code (NOAUTH, OOM), else the exception's type. Contains nothing of the command."""
    code = getattr(error, "status_code", None)
    if code is None and isinstance(error, ResponseError):
        code = str(error).partition(" ")[0]
    return code if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else type(error).__name__


def _fail(commands: Sequence[_QueuedCommand] | deque[_QueuedCommand]) -> None:
    for queued in commands:
        if not queued.reply.done():
            queued.reply.set_exception(StoreUnavailable())


def _ignore_outcome(reply: asyncio.Future[object]) -> None:
    """Marks the future's exception as retrieved."""
    if not reply.cancelled():
        reply.exception()
