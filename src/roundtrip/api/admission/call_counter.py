"""Counts calls with a key: from a lease in memory, else by the next statement, which counts all that arrive
while one is under way."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import asyncpg
import structlog

from roundtrip.api.admission.leases import MAX_AT_ONCE, BatchWriter, DayLeases, DedicatedConnection
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.store.accounts import call_counts
from roundtrip.store.accounts.call_counts import (
    KEPT_MS,
    AccountDay,
    CountedCall,
    LeaseChange,
    LiveKey,
    RefundedCall,
)
from roundtrip.store.server.connections import DATABASE_FAULTS

from .minute_limits import MAX_LOADED, WINDOW_MS

log = structlog.get_logger(__name__)

_MAX_UNWRITTEN = 50_000
"""Refunds, and calls of the minute, that wait for a database that is away. Beyond it the oldest refund is
dropped, and further calls are not written for the minute limits."""
WRITE_S = 0.1
"""How late calls of a lease are written."""
PROOF_S = 0.25
"""For so long after a statement a key that was live is taken for live: a revocation in another process takes
effect after it."""
AWAY_PROOF_S = 10.0
"""The same while the database is away."""
_FORGET_S = 0.5
_FORGET_EVERY_MS = 1_000
"""How long deleting old calls may take, and how often it is done."""
_NEVER_WRITABLE = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
"""Errors of the rows themselves: a repeat would fail again. Such rows are dropped, so that they keep
no others from being counted."""

RecentCalls = list[tuple[str, int, int]]
"""Caller, when (ms since 1970), how many; the oldest first."""


class CallStore(Protocol):
    """Where calls are counted. Each method raises one of DATABASE_FAULTS."""

    async def write(
        self, calls: Sequence[CountedCall], refunds: Sequence[RefundedCall], forget_before_ms: int
    ) -> list[LiveKey | None]: ...

    async def move_leases(
        self, changes: Sequence[LeaseChange], minutes: Mapping[tuple[str, int], int]
    ) -> dict[AccountDay, int]: ...

    async def recent(self, now_ms: int) -> RecentCalls: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class DatabaseCalls:
    """Counts in PostgreSQL, over a connection that nothing else uses: calls without a lease wait for it."""

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

    async def move_leases(
        self, changes: Sequence[LeaseChange], minutes: Mapping[tuple[str, int], int]
    ) -> dict[AccountDay, int]:
        """As ``call_counts.move``."""
        async with self.connection.acquire() as connection:
            return await call_counts.move(connection, changes, minutes)

    async def recent(self, now_ms: int) -> RecentCalls:
        """Calls of the last minute."""
        async with self.connection.acquire() as connection:
            return await call_counts.recent(connection, now_ms - WINDOW_MS, now_ms + WINDOW_MS, MAX_LOADED)

    async def close(self) -> None:
        """Returns the connection."""
        await self.connection.close()

    async def _forget(self, before_ms: int) -> None:
        # The calls are counted, so a failure is only logged: a later flush can delete the old rows.
        try:
            async with self.connection.acquire(_FORGET_S) as connection:
                await call_counts.forget(connection, before_ms)
        except DATABASE_FAULTS as fault:
            log.warning("deleting old calls failed", fault=type(fault).__name__)


@dataclass(slots=True)
class _WaitingCall:
    """A call of the next flush, and the result that its caller waits for; None: its key is not live."""

    call: CountedCall
    result: "asyncio.Future[LiveKey | None]"


@dataclass(slots=True)
class _LeaseWaiter:
    """A call of an account whose lease is being filled up, and the result that its caller waits for; None: it
    shall be counted in another way."""

    call: CountedCall
    account_id: int
    result: "asyncio.Future[LiveKey | None]"


@dataclass(frozen=True, slots=True)
class _KeyProof:
    """A key that was live when a statement began, ``proved_s``, monotonic."""

    live_key: LiveKey
    proved_s: float


@dataclass(slots=True)
class CallCounter(BatchWriter):
    """Counts calls with a key in a store. ``now_ms``: since 1970.

    An account that calls often has a lease: its calls are made from memory while the key was live a moment
    ago, and written up to ``WRITE_S`` later. All other calls wait for a statement. While the store is away,
    what is leased may be spent for ``AWAY_PROOF_S`` after the key was last proved live; then callers are
    refused, since no key can be looked up.
    """

    store: CallStore
    now_ms: Callable[[], int]
    leases: DayLeases = field(default_factory=DayLeases)
    _waiting: deque[_WaitingCall] = field(default_factory=deque)
    _refunds: deque[RefundedCall] = field(default_factory=lambda: deque(maxlen=_MAX_UNWRITTEN))
    _look_ups: "dict[bytes, asyncio.Future[LiveKey | None]]" = field(default_factory=dict)
    _load_later: Callable[[RecentCalls], None] | None = None
    _forgot_ms: int = 0
    _unwritten_calls: dict[tuple[str, int], int] = field(default_factory=dict)
    """Calls of leases that are not written yet: how many, by caller and time (ms since 1970)."""
    _proofs: dict[bytes, _KeyProof] = field(default_factory=dict)
    """The oldest proof first."""
    _doubts: int = 0
    """Grows with every ``doubt``: a statement during which it grew proves no key live."""
    _used_keys: dict[bytes, None] = field(default_factory=dict)
    """Keys of calls of leases, to be proved again."""
    _lease_waiters: list[_LeaseWaiter] = field(default_factory=list)
    _is_due: bool = False
    """Whether the next flush also writes callers' times, proves used keys again and returns idle leases."""
    _timer: asyncio.TimerHandle | None = None

    def waiting(self) -> int:
        """Writes that somebody waits for, or that are due."""
        is_due = self._is_due or self.leases.is_low()
        return len(self._waiting) + len(self._refunds) + is_due

    async def recent(self, load_later: Callable[[RecentCalls], None] | None = None) -> RecentCalls:
        """Written calls of the last minute. Where the store does not answer: none now, and ``load_later`` is
        called with them before the first write of calls, unless that read fails, too."""
        try:
            return await self.store.recent(self.now_ms())
        except DATABASE_FAULTS as fault:
            log.warning("reading the calls of the last minute failed", fault=type(fault).__name__)
            self._load_later = load_later
            return []

    async def look_up(self, key_hash: bytes, known: bool) -> LiveKey | None:
        """The owner of a key, by the next statement: one row for all that ask at once. ``known``: it was live
        once; else it has the smaller share of the queue. Raises ServiceFull (busy)."""
        result = self._look_ups.get(key_hash)
        if result is None:
            result = self._enqueue(CountedCall(None, self.now_ms(), key_hash), known)
            self._look_ups[key_hash] = result
        return await asyncio.shield(result)

    async def count(self, call: CountedCall, account_id: int) -> LiveKey | None:
        """Counts a call of an account, if its day has room (``LiveKey.has_room``). None: its key is not live.
        Raises ServiceFull (busy): the store is away, or too many wait."""
        day, key_hash = call.day, call.key_hash
        if day is None or key_hash is None:
            # Its answer must know every earlier call, those of a lease too, so they are written first.
            self._is_due = self._is_due or bool(self._used_keys)
            return await self._enqueue(call, True)
        live_key = self._spend(call, account_id)
        if live_key is None and self.leases.is_coming(account_id, day, call.per_day):
            live_key = await self._wait_for_lease(call, account_id)
        if live_key is not None:
            return live_key
        if self.leases.has(account_id, day, call.per_day):
            try:
                if await self.look_up(key_hash, True) is None:
                    return None
            except ServiceFull:
                live_key = self._spend(call, account_id)
                if live_key is None:
                    raise
                return live_key
            live_key = self._spend(call, account_id)
            if live_key is not None:
                return live_key
        self.leases.note(account_id, day, call.per_day, self.clock())
        return await self._enqueue(call, True)

    async def _wait_for_lease(self, call: CountedCall, account_id: int) -> LiveKey | None:
        """Waits until the lease is filled up, and makes the call from it; None: that was not possible."""
        if self._flushing is None or self._is_away():
            return None
        result: asyncio.Future[LiveKey | None] = asyncio.get_running_loop().create_future()
        self._lease_waiters.append(_LeaseWaiter(call, account_id, result))
        return await result

    def _serve_waiters(self) -> None:
        """Makes the calls that wait for a lease, as far as it lasts. They are made here, and not by each
        caller when it resumes, so that they are made before the flush goes on."""
        waiters, self._lease_waiters = self._lease_waiters, []
        for entry in waiters:
            if not entry.result.done():
                entry.result.set_result(self._spend(entry.call, entry.account_id))

    def doubt(self, account_id: int) -> None:
        """One of the account's keys may have been revoked: the next call with one waits for a statement that
        begins from now on."""
        self._doubts += 1
        for key_hash in [h for h, proof in self._proofs.items() if proof.live_key.account.id == account_id]:
            del self._proofs[key_hash]

    def _spend(self, call: CountedCall, account_id: int) -> LiveKey | None:
        """Makes a call of the lease, if its key was live a moment ago."""
        proof, now_s = self._proofs.get(call.key_hash or b""), self.clock()
        if proof is None or call.day is None:
            return None
        if now_s - proof.proved_s > (AWAY_PROOF_S if self._is_away() else PROOF_S):
            return None
        if not self.leases.spend(account_id, call.day, call.per_day, now_s):
            return None
        if call.caller is not None and len(self._unwritten_calls) < _MAX_UNWRITTEN:
            minute = (call.caller, call.taken_ms)
            self._unwritten_calls[minute] = self._unwritten_calls.get(minute, 0) + 1
        assert call.key_hash is not None
        self._used_keys[call.key_hash] = None
        if self.leases.is_low():
            self._start_flush()
        self._write_later()
        return proof.live_key

    def _enqueue(self, call: CountedCall, preferred: bool) -> "asyncio.Future[LiveKey | None]":
        if self._is_away():
            raise _away()
        if len(self._waiting) >= (self.max_waiting if preferred else self.max_waiting * 3 // 4):
            raise ServiceFull("busy", "Too many requests are running. Retry in 1 second.", 1)
        result: asyncio.Future[LiveKey | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_WaitingCall(call, result))
        self._start_flush()
        return result

    def refund(self, refund: RefundedCall) -> None:
        """Uncounts a call, and does not wait."""
        self._refunds.append(refund)
        self._start_flush()

    async def write_behind(self) -> None:
        """For tests: does at once what the timer does, if the store answers, and waits for it."""
        self._is_due = True
        await self._finish()

    async def close(self) -> None:
        """Writes what is left and returns all leases, if the store answers."""
        if self._flushing is not None:
            await self._flushing
        self._away_until_s = None
        try:
            self.leases.give_up_idle(self.clock(), 0.0)
            self._is_due = self.leases.is_held() or bool(self._unwritten_calls)
            await self._finish()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            with contextlib.suppress(*DATABASE_FAULTS):
                await self.store.close()

    def _write_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_S, self._write_now)

    def _write_now(self) -> None:
        self._timer, self._is_due = None, True
        self._start_flush()
        if self.leases.is_held() or self._unwritten_calls:
            self._write_later()

    async def _flush_batch(self) -> None:
        is_due, self._is_due = self._is_due, False
        try:
            now_ms, now_s = self.now_ms(), self.clock()
            if is_due:
                self.leases.give_up_idle(now_s)
                self._prove_used_keys(now_s)
            if is_due or self.leases.is_low():
                await self._move_leases(now_ms, now_s, is_due)
        finally:
            self._serve_waiters()
        if (self._waiting or self._refunds) and not self._is_away():
            await self._write_calls(now_ms, now_s)

    def _prove_used_keys(self, now_s: float) -> None:
        """Asks whether keys whose leases are in use are still live, and forgets old proofs."""
        for key_hash, proof in list(self._proofs.items()):
            if now_s - proof.proved_s <= AWAY_PROOF_S:
                break
            del self._proofs[key_hash]
        while self._used_keys and len(self._waiting) < MAX_AT_ONCE:
            key_hash = next(iter(self._used_keys))
            del self._used_keys[key_hash]
            last = self._proofs.get(key_hash)
            # Not more often than the calls of leases are written.
            if last is not None and now_s - last.proved_s >= WRITE_S and key_hash not in self._look_ups:
                call = CountedCall(None, self.now_ms(), key_hash)
                self._waiting.append(_WaitingCall(call, asyncio.get_running_loop().create_future()))

    async def _write_calls(self, now_ms: int, now_s: float) -> None:
        waiting = [self._waiting.popleft() for _ in range(min(MAX_AT_ONCE, len(self._waiting)))]
        for entry in waiting:
            if entry.call.caller is None and entry.call.key_hash is not None:
                # A later look-up may follow a revocation of the key: it needs a row of its own.
                self._look_ups.pop(entry.call.key_hash, None)
        refunds = [self._refunds.popleft() for _ in range(min(MAX_AT_ONCE, len(self._refunds)))]
        # A minute that is over needs no refund; a day does.
        refunds = [
            refund if _is_in_window(refund.taken_ms, now_ms) else replace(refund, caller=None)
            for refund in refunds
            if refund.day is not None or _is_in_window(refund.taken_ms, now_ms)
        ]
        doubts = self._doubts
        forget_before_ms = now_ms - KEPT_MS if abs(now_ms - self._forgot_ms) >= _FORGET_EVERY_MS else 0
        try:
            await self._load_recent(now_ms)
            calls = [entry.call for entry in waiting]
            live_keys = await self.store.write(calls, refunds, forget_before_ms)
        except Exception as fault:
            self._handle_failure(fault, waiting, refunds)
            return
        self._mark_present()
        self._load_later = None
        self._forgot_ms = now_ms if forget_before_ms else self._forgot_ms
        for entry, live_key in zip(waiting, live_keys, strict=False):
            if doubts == self._doubts or live_key is None:
                self._keep_proof(entry.call.key_hash, live_key, now_s)
            if not entry.result.done():
                entry.result.set_result(live_key)

    def _keep_proof(self, key_hash: bytes | None, live_key: LiveKey | None, now_s: float) -> None:
        if key_hash is None:
            return
        self._proofs.pop(key_hash, None)
        if live_key is not None:
            self._proofs[key_hash] = _KeyProof(LiveKey(live_key.account, has_room=True), now_s)

    async def _move_leases(self, now_ms: int, now_s: float, is_due: bool) -> None:
        changes = self.leases.collect(MAX_AT_ONCE)
        # More changes than one statement takes are due at once.
        self._is_due = self._is_due or len(changes) == MAX_AT_ONCE
        minutes: dict[tuple[str, int], int] = {}
        if is_due:
            minutes = {
                at: calls for at, calls in self._unwritten_calls.items() if _is_in_window(at[1], now_ms)
            }
            self._unwritten_calls = {}
        if not changes and not minutes:
            return
        try:
            lent = await self.store.move_leases(changes, minutes)
        except Exception as fault:
            self._mark_away(fault, "counting calls in the database failed")
            was_not_executed = _was_not_executed(fault) and not isinstance(fault, _NEVER_WRITABLE)
            self.leases.fail(changes, was_not_executed)
            if was_not_executed:
                self._unwritten_calls = minutes | self._unwritten_calls
            self._refuse_waiting([])
            return
        self._mark_present()
        self.leases.settle(changes, lent, now_s)
        if self.leases.is_held():
            self._write_later()

    async def _load_recent(self, now_ms: int) -> None:
        # Before this process writes calls of its own among them.
        if self._load_later is not None:
            with contextlib.suppress(*DATABASE_FAULTS):
                self._load_later(await self.store.recent(now_ms))
                self._load_later = None

    def _handle_failure(
        self, fault: Exception, waiting: list[_WaitingCall], refunds: list[RefundedCall]
    ) -> None:
        self._mark_away(fault, "counting calls in the database failed")
        if not isinstance(fault, _NEVER_WRITABLE) and _was_not_executed(fault):
            self._refunds.extend(refunds)
        self._refuse_waiting(waiting)

    def _refuse_waiting(self, under_way: list[_WaitingCall]) -> None:
        for entry in (*under_way, *self._waiting):
            if not entry.result.done():
                entry.result.set_exception(_away())
                # The caller may have gone; an exception that is never read would be logged.
                entry.result.exception()
        self._waiting.clear()
        self._look_ups.clear()
        self._serve_waiters()


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
