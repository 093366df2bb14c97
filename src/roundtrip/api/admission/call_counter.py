"""Counts calls: all that arrive while one statement is under way go into the next one."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import asyncpg
import structlog

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.store.accounts import call_counts
from roundtrip.store.accounts.call_counts import KEPT_MS, CountedCall, LiveKey, RefundedCall
from roundtrip.store.server.errors import DATABASE_FAULTS

from .batch_writer import MOST_AT_ONCE, MOST_WAITING, BatchWriter, DedicatedConnection
from .minute_limits import MOST_LOADED, WINDOW_MS

log = structlog.get_logger(__name__)

_MOST_UNWRITTEN = 50_000
"""Calls and refunds that wait for a database that is away."""
_FORGET_S = 0.5
_FORGET_EVERY_MS = 1_000
_NEVER_WRITABLE = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
"""Rows that the database refuses once it refuses always; they must not keep others from being counted."""

RecentCalls = list[tuple[str, int, int]]
"""Caller, when (ms since 1970), how many; the oldest first."""


class CallStore(Protocol):
    """Where calls are counted. Each method raises one of DATABASE_FAULTS."""

    async def write(
        self, calls: Sequence[CountedCall], refunds: Sequence[RefundedCall], forget_before_ms: int
    ) -> list[LiveKey | None]: ...

    async def recent(self, now_ms: int) -> RecentCalls: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class DatabaseCalls:
    """Counts in PostgreSQL, over a connection that nothing else uses: every call waits for it."""

    pool: asyncpg.Pool
    connection: DedicatedConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = DedicatedConnection(self.pool)

    async def write(
        self, calls: Sequence[CountedCall], refunds: Sequence[RefundedCall], forget_before_ms: int
    ) -> list[LiveKey | None]:
        """The live key of each call, in order; None: its key is not live, or it has none."""
        async with self.connection.acquire() as connection:
            live_keys = await call_counts.write(connection, calls, refunds)
        if forget_before_ms:
            await self._forget(forget_before_ms)
        return live_keys

    async def recent(self, now_ms: int) -> RecentCalls:
        """Calls of the last minute."""
        async with self.connection.acquire() as connection:
            return await call_counts.recent(connection, now_ms - WINDOW_MS, now_ms + WINDOW_MS, MOST_LOADED)

    async def close(self) -> None:
        """Returns the connection."""
        await self.connection.close()

    async def _forget(self, before_ms: int) -> None:
        # The calls are counted; old rows can be deleted by a later flush.
        try:
            async with self.connection.acquire(_FORGET_S) as connection:
                await call_counts.forget(connection, before_ms)
        except DATABASE_FAULTS as fault:
            log.warning("deleting old calls failed", fault=type(fault).__name__)


@dataclass(slots=True)
class _WaitingCall:
    """A call of the next flush, and the result that its caller waits for."""

    call: CountedCall
    live_key: "asyncio.Future[LiveKey | None]"


@dataclass(slots=True)
class CallCounter(BatchWriter):
    """Counts calls in a store, in batches. ``now_ms``: since 1970.

    While the store is away, callers with a key are refused, since no key can be looked up. Callers without
    one are counted in memory, and written later for as long as their minute lasts.
    """

    store: CallStore
    now_ms: Callable[[], int]
    _waiting: deque[_WaitingCall] = field(default_factory=deque)
    _unwritten: deque[CountedCall] = field(default_factory=lambda: deque(maxlen=_MOST_UNWRITTEN))
    _refunds: deque[RefundedCall] = field(default_factory=lambda: deque(maxlen=_MOST_UNWRITTEN))
    _look_ups: "dict[bytes, asyncio.Future[LiveKey | None]]" = field(default_factory=dict)
    _load_later: Callable[[RecentCalls], None] | None = None
    _forgot_ms: int = 0

    def waiting(self) -> int:
        """Calls and refunds that are not written yet."""
        return len(self._waiting) + len(self._unwritten) + len(self._refunds)

    async def recent(self, load_later: Callable[[RecentCalls], None] | None = None) -> RecentCalls:
        """Written calls of the last minute. Where the store does not answer: none now, and ``load_later`` is
        called with them once it answers."""
        try:
            return await self.store.recent(self.now_ms())
        except DATABASE_FAULTS as fault:
            log.warning("reading the calls of the last minute failed", fault=type(fault).__name__)
            self._load_later = load_later
            return []

    async def look_up(self, key_hash: bytes, known: bool) -> LiveKey | None:
        """The owner of a key, by the next statement: one row for all that ask at once. ``known``: it was live
        once; else it has the smaller share of the queue, like callers without a key. Raises ServiceFull
        (busy)."""
        live_key = self._look_ups.get(key_hash)
        if live_key is None:
            live_key = self._enqueue(CountedCall(None, self.now_ms(), key_hash), known)
            self._look_ups[key_hash] = live_key
        return await asyncio.shield(live_key)

    async def count(self, call: CountedCall) -> LiveKey | None:
        """Counts a call, and returns when that is written. None: its key is not live, or it has none. Raises
        ServiceFull (busy): the store is away, or too many wait."""
        if call.key_hash is None and self._is_away():
            self._unwritten.append(call)
            return None
        return await self._enqueue(call, call.key_hash is not None)

    def _enqueue(self, call: CountedCall, preferred: bool) -> "asyncio.Future[LiveKey | None]":
        if self._is_away():
            raise _away()
        if len(self._waiting) >= (MOST_WAITING if preferred else MOST_WAITING * 3 // 4):
            raise ServiceFull("busy", "Too many requests are running. Retry in 1 second.", 1)
        live_key: asyncio.Future[LiveKey | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_WaitingCall(call, live_key))
        self._start_flush()
        return live_key

    def count_later(self, call: CountedCall) -> None:
        """Counts a call without a key, and does not wait."""
        self._unwritten.append(call)
        self._start_flush()

    def refund(self, refund: RefundedCall) -> None:
        """Uncounts a call, and does not wait."""
        self._refunds.append(refund)
        self._start_flush()

    async def close(self) -> None:
        """Writes what is left, if the store answers."""
        await self._finish()
        with contextlib.suppress(*DATABASE_FAULTS):
            await self.store.close()

    async def _flush_batch(self) -> None:
        now_ms = self.now_ms()
        waiting = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
        for entry in waiting:
            if entry.call.caller is None and entry.call.key_hash is not None:
                # A later look-up may follow a revocation of the key: it needs a row of its own.
                self._look_ups.pop(entry.call.key_hash, None)
        unwritten = self._take_unwritten(now_ms, MOST_AT_ONCE)
        refunds = [self._refunds.popleft() for _ in range(min(MOST_AT_ONCE, len(self._refunds)))]
        # A minute that is over needs no refund; a day does.
        refunds = [
            _without_past_minute(refund, now_ms)
            for refund in refunds
            if refund.day is not None or _is_in_window(refund.taken_ms, now_ms)
        ]
        forget_before_ms = now_ms - KEPT_MS if abs(now_ms - self._forgot_ms) >= _FORGET_EVERY_MS else 0
        try:
            await self._load_recent(now_ms)
            calls = [*(entry.call for entry in waiting), *unwritten]
            live_keys = await self.store.write(calls, refunds, forget_before_ms)
        except Exception as fault:
            self._handle_failure(fault, waiting, unwritten, refunds)
            return
        self._mark_present()
        self._load_later = None
        self._forgot_ms = now_ms if forget_before_ms else self._forgot_ms
        for entry, live_key in zip(waiting, live_keys, strict=False):
            if not entry.live_key.done():
                entry.live_key.set_result(live_key)

    async def _load_recent(self, now_ms: int) -> None:
        # Before this process writes calls of its own among them.
        if self._load_later is not None:
            with contextlib.suppress(*DATABASE_FAULTS):
                self._load_later(await self.store.recent(now_ms))
                self._load_later = None

    def _take_unwritten(self, now_ms: int, most: int) -> list[CountedCall]:
        calls: list[CountedCall] = []
        while self._unwritten and len(calls) < most:
            call = self._unwritten.popleft()
            if _is_in_window(call.taken_ms, now_ms):
                calls.append(call)
        return calls

    def _handle_failure(
        self,
        fault: Exception,
        waiting: list[_WaitingCall],
        unwritten: list[CountedCall],
        refunds: list[RefundedCall],
    ) -> None:
        self._mark_away(fault, "counting calls in the database failed")
        if not isinstance(fault, _NEVER_WRITABLE):
            self._unwritten.extend(
                [*unwritten, *(entry.call for entry in waiting if entry.call.key_hash is None)]
            )
            if _was_not_executed(fault):
                self._refunds.extend(refunds)
        self._unwritten.extend(entry.call for entry in self._waiting if entry.call.key_hash is None)
        for entry in (*waiting, *self._waiting):
            if entry.live_key.done():
                continue
            if entry.call.key_hash is None:
                entry.live_key.set_result(None)
            else:
                entry.live_key.set_exception(_away())
        self._waiting.clear()
        self._look_ups.clear()


def _away() -> ServiceFull:
    message = "The key could not be checked: the database is unavailable. Retry in 1 second."
    return ServiceFull("busy", message, 1)


def _was_not_executed(fault: Exception) -> bool:
    """Whether the statement certainly had no effect. After a timeout, or on a connection that broke, it may
    have had one, and a refund that is written twice gives a call away."""
    return isinstance(fault, ConnectionRefusedError) or (
        isinstance(fault, asyncpg.PostgresError) and not isinstance(fault, asyncpg.PostgresConnectionError)
    )


def _is_in_window(taken_ms: int, now_ms: int) -> bool:
    return taken_ms > now_ms - WINDOW_MS


def _without_past_minute(refund: RefundedCall, now_ms: int) -> RefundedCall:
    return refund if _is_in_window(refund.taken_ms, now_ms) else replace(refund, caller=None)
