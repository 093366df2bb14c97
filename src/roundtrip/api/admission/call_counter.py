"""Group commit: everybody who comes while one statement is under way is counted by the next one."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import asyncpg
import structlog

from roundtrip.api.request.request_ids import start_detached_task
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.store.accounts import call_counts
from roundtrip.store.accounts.call_counts import KEPT_MS, CountedCall, LiveKey, RefundedCall
from roundtrip.store.server.errors import DATABASE_FAULTS

from .dedicated_connection import STATEMENT_S, OwnConnection
from .minute_limits import MOST_LOADED, WINDOW_MS

log = structlog.get_logger(__name__)

MOST_AT_ONCE = 500
"""In one statement."""
MOST_WAITING = 5_000
_MOST_KEPT = 50_000
"""Calls and hand-backs that could not be written."""
_AGAIN_S = 1.0
"""A database that did not answer is asked again after so long."""
_FORGET_S = 0.5
_FORGET_EVERY_MS = 1_000
_NEVER_WRITTEN = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
"""What the database refuses it will always refuse; it must not keep everybody from being counted."""


Loads = Callable[[list[tuple[str, int, int]]], None]


class CallStore(Protocol):
    """Who counts: see ``store.counting``. Raises one of DATABASE_FAULTS."""

    async def write(
        self, calls: Sequence[CountedCall], handed_back: Sequence[RefundedCall], forget_before_ms: int
    ) -> list[LiveKey | None]: ...

    async def recent(self, now_ms: int) -> list[tuple[str, int, int]]: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class CallLedger:
    """Counts in the database, over one connection of its own: every call of everybody waits for it."""

    pool: asyncpg.Pool
    own: OwnConnection = field(init=False)

    def __post_init__(self) -> None:
        self.own = OwnConnection(self.pool)

    async def write(
        self, calls: Sequence[CountedCall], handed_back: Sequence[RefundedCall], forget_before_ms: int
    ) -> list[LiveKey | None]:
        """What came of each call. Raises one of DATABASE_FAULTS."""
        async with self.own.acquire(STATEMENT_S) as connection:
            came = await call_counts.write(connection, calls, handed_back)
        if forget_before_ms:
            await self._forget(forget_before_ms)
        return came

    async def recent(self, now_ms: int) -> list[tuple[str, int, int]]:
        """Calls of the last minute: caller, when, how many. Raises one of DATABASE_FAULTS."""
        async with self.own.acquire(STATEMENT_S) as connection:
            return await call_counts.recent(connection, now_ms - WINDOW_MS, now_ms + WINDOW_MS, MOST_LOADED)

    async def close(self) -> None:
        """Gives the connection back."""
        await self.own.close()

    async def _forget(self, before_ms: int) -> None:
        """What cannot be deleted now is later; the calls are counted."""
        try:
            async with self.own.acquire(_FORGET_S) as connection:
                await call_counts.forget(connection, before_ms)
        except DATABASE_FAULTS as fault:
            log.warning("old calls are not forgotten", fault=type(fault).__name__)


@dataclass(slots=True)
class _WaitingCall:
    """A call of a flush that has not begun, and who waits for what comes of it."""

    call: CountedCall
    came: "asyncio.Future[LiveKey | None]"


@dataclass(slots=True)
class GroupCommit:
    """Writes calls down, one statement at a time. ``now_ms``: since 1970. ``clock``: seconds, of any
    beginning, for how long the database has been gone.

    While it is gone nobody with a key can be known; whoever has none is counted in memory, and what could not
    be written is tried again for as long as it matters.
    """

    ledger: CallStore
    now_ms: Callable[[], int]
    clock: Callable[[], float] = time.monotonic
    _waiting: deque[_WaitingCall] = field(default_factory=deque)
    _later: deque[CountedCall] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    _backs: deque[RefundedCall] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    _looking: "dict[bytes, asyncio.Future[LiveKey | None]]" = field(default_factory=dict)
    _owed: Loads | None = None
    _flushing: asyncio.Task[None] | None = None
    _gone_until_s: float | None = None
    _forgot_ms: int = 0

    def waiting(self) -> int:
        """Calls and hand-backs that are not written yet."""
        return len(self._waiting) + len(self._later) + len(self._backs)

    async def recent(self, late: Loads | None = None) -> list[tuple[str, int, int]]:
        """Calls of the last minute as they were written; none where the database does not answer: ``late``
        is given them once it does."""
        try:
            return await self.ledger.recent(self.now_ms())
        except DATABASE_FAULTS as fault:
            log.warning("calls of the last minute are not known", fault=type(fault).__name__)
            self._owed = late
            return []

    async def look_up(self, key_hash: bytes, known: bool) -> LiveKey | None:
        """Whose a key is, by the next statement: one question for everybody who asks it meanwhile. ``known``:
        it was live once; else it waits among the callers without a key. Raises ServiceFull (busy)."""
        came = self._looking.get(key_hash)
        if came is None:
            came = self._enqueue_key(CountedCall(None, self.now_ms(), key_hash), known)
            self._looking[key_hash] = came
        return await asyncio.shield(came)

    async def count(self, call: CountedCall) -> LiveKey | None:
        """Counts a call, and comes back when that is written; None: its key is not live, or it showed none.
        Raises ServiceFull (busy): a key cannot be known, or too many wait."""
        if call.key_hash is None and self._is_gone():
            self._later.append(call)
            return None
        return await self._enqueue_key(call, call.key_hash is not None)

    def _enqueue_key(self, call: CountedCall, first: bool) -> "asyncio.Future[LiveKey | None]":
        if self._is_gone():
            raise _unknown()
        if len(self._waiting) >= (MOST_WAITING if first else MOST_WAITING * 3 // 4):
            raise ServiceFull("busy", "Too many requests are under way; ask again in a moment.", 1)
        came: asyncio.Future[LiveKey | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_WaitingCall(call, came))
        self._begin()
        return came

    def count_later(self, call: CountedCall) -> None:
        """Counts a call without a key, and waits for nothing."""
        self._later.append(call)
        self._begin()

    def hand_back(self, back: RefundedCall) -> None:
        """Uncounts a call, and waits for nothing."""
        self._backs.append(back)
        self._begin()

    async def close(self) -> None:
        """Writes what is left, if it can."""
        self._begin()
        if self._flushing is not None:
            await self._flushing
        with contextlib.suppress(*DATABASE_FAULTS):
            await self.ledger.close()

    def _is_gone(self) -> bool:
        return self._gone_until_s is not None and self.clock() < self._gone_until_s

    def _begin(self) -> None:
        if self._flushing is None and not self._is_gone():
            self._flushing = start_detached_task(self._flush(), "counting")

    async def _flush(self) -> None:
        try:
            while (self._waiting or self._later or self._backs) and not self._is_gone():
                await self._flush_once()
        finally:
            self._flushing = None

    async def _flush_once(self) -> None:
        now = self.now_ms()
        waiting = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
        for one in waiting:
            if one.call.caller is None and one.call.key_hash is not None:
                # Whoever asks from here on may ask about a key that was revoked meanwhile.
                self._looking.pop(one.call.key_hash, None)
        later = self._still_wanted(now, MOST_AT_ONCE)
        backs = [self._backs.popleft() for _ in range(min(MOST_AT_ONCE, len(self._backs)))]
        # Of a minute that is over nothing has to be uncounted any more; of a day it has.
        of_use = [_still(back, now) for back in backs if back.day is not None or _matters(back.taken_ms, now)]
        forget_before_ms = now - KEPT_MS if abs(now - self._forgot_ms) >= _FORGET_EVERY_MS else 0
        try:
            await self._recall(now)
            calls = [*(one.call for one in waiting), *later]
            came = await self.ledger.write(calls, of_use, forget_before_ms)
        except Exception as fault:
            self._note_failure(fault, waiting, later, of_use)
            return
        self._gone_until_s = self._owed = None
        self._forgot_ms = now if forget_before_ms else self._forgot_ms
        for one, live in zip(waiting, came, strict=False):
            if not one.came.done():
                one.came.set_result(live)

    async def _recall(self, now_ms: int) -> None:
        """What was not known at the start, before anything of this process is among it."""
        if self._owed is not None:
            with contextlib.suppress(*DATABASE_FAULTS):
                self._owed(await self.ledger.recent(now_ms))
                self._owed = None

    def _still_wanted(self, now_ms: int, most: int) -> list[CountedCall]:
        found: list[CountedCall] = []
        while self._later and len(found) < most:
            call = self._later.popleft()
            if _matters(call.taken_ms, now_ms):
                found.append(call)
        return found

    def _note_failure(
        self,
        fault: Exception,
        waiting: list[_WaitingCall],
        later: list[CountedCall],
        backs: list[RefundedCall],
    ) -> None:
        if self._gone_until_s is None:
            log.warning("calls cannot be counted in the database", fault=type(fault).__name__)
        self._gone_until_s = self.clock() + _AGAIN_S
        if not isinstance(fault, _NEVER_WRITTEN):
            self._later.extend([*later, *(one.call for one in waiting if one.call.key_hash is None)])
            if _was_not_done(fault):
                self._backs.extend(backs)
        self._later.extend(one.call for one in self._waiting if one.call.key_hash is None)
        for one in (*waiting, *self._waiting):
            if one.came.done():
                continue
            if one.call.key_hash is None:
                one.came.set_result(None)
            else:
                one.came.set_exception(_unknown())
        self._waiting.clear()
        self._looking.clear()


def _unknown() -> ServiceFull:
    return ServiceFull("busy", "Keys cannot be looked up just now; ask again in a moment.", 1)


def _was_not_done(fault: Exception) -> bool:
    """Whether the statement certainly was not: after a time-out, or on a connection that broke, it may have
    been, and what is handed back twice would be a gift."""
    return isinstance(fault, ConnectionRefusedError) or (
        isinstance(fault, asyncpg.PostgresError) and not isinstance(fault, asyncpg.PostgresConnectionError)
    )


def _matters(taken_ms: int, now_ms: int) -> bool:
    return taken_ms > now_ms - WINDOW_MS


def _still(back: RefundedCall, now_ms: int) -> RefundedCall:
    return back if _matters(back.taken_ms, now_ms) else replace(back, caller=None)
