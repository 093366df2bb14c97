"""``DayLeases``: blocks of a day's calls that this process took ahead, and spends from memory. No I/O; time
is passed in. ``BatchWriter``: writes what callers enqueue, in batches of one statement, over one database
connection."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from asyncio import timeout
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

import asyncpg
import structlog

from roundtrip.api.request.callers import start_detached_task
from roundtrip.store.accounts import call_counts
from roundtrip.store.accounts.call_counts import AccountDay, LeaseChange
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

MAX_LEASED = 64
"""Calls of one account that a process has at most: what its crash costs the caller."""
_FIRST_LEASED = 8
"""Calls of an account's first lease; each time that it is filled up, it doubles."""
_SOON_S = 0.25
"""A second call within this time makes a lease worth its statement."""
IDLE_S = 1.0
"""A lease that made no call for so long is returned."""


@dataclass(slots=True)
class _Lease:
    """``left``: calls that may be made. ``spent``: calls made that are not written. ``size``: what it is
    filled up to; 0: nothing was wanted yet. ``is_asked``: calls were asked for and have not come.
    ``wait_until_s``: before that nothing is asked for, because the day had nothing to lend."""

    account_id: int
    day: date
    per_day: int
    used_s: float
    left: int = 0
    spent: int = 0
    size: int = 0
    is_asked: bool = False
    wait_until_s: float = 0.0


@dataclass(slots=True)
class DayLeases:
    """One lease for each account. Every change is collected once, and then either settled or failed; only one
    collection is under way at a time. All times are monotonic seconds."""

    _by_account: dict[int, _Lease] = field(default_factory=dict)
    _low: dict[int, None] = field(default_factory=dict)
    """Accounts whose lease shall be filled up."""
    _used: dict[int, None] = field(default_factory=dict)
    """Accounts whose lease was spent from since the last collection."""
    _unwritten: dict[AccountDay, LeaseChange] = field(default_factory=dict)
    """Changes of leases that have ended, and changes that certainly were not executed."""

    def spend(self, account_id: int, day: date, per_day: int, now_s: float) -> bool:
        """Makes one call of the lease, if there is one for this day and limit."""
        lease = self._by_account.get(account_id)
        if lease is None or not lease.left or lease.day != day or lease.per_day != per_day:
            return False
        lease.left -= 1
        lease.spent += 1
        lease.used_s = now_s
        self._used[account_id] = None
        if lease.left <= lease.size // 2 and not lease.is_asked:
            self._low[account_id] = None
        return True

    def has(self, account_id: int, day: date, per_day: int) -> bool:
        """Whether ``spend`` would make a call."""
        lease = self._by_account.get(account_id)
        return lease is not None and lease.left > 0 and (lease.day, lease.per_day) == (day, per_day)

    def is_coming(self, account_id: int, day: date, per_day: int) -> bool:
        """Whether a lease of this day and limit, which lent before, is about to be filled up."""
        lease = self._by_account.get(account_id)
        if lease is None or (lease.day, lease.per_day) != (day, per_day):
            return False
        return lease.size > 0 and (lease.is_asked or account_id in self._low)

    def note(self, account_id: int, day: date, per_day: int, now_s: float) -> None:
        """A call is about to be counted without a lease: of an account that calls often one is asked for."""
        lease = self._by_account.get(account_id)
        if lease is None or (lease.day, lease.per_day) != (day, per_day):
            if lease is not None:
                self._give_up(lease)
            self._by_account[account_id] = _Lease(account_id, day, per_day, now_s)
            return
        if not lease.is_asked and now_s - lease.used_s <= _SOON_S and now_s >= lease.wait_until_s:
            self._low[account_id] = None
        lease.used_s = now_s

    def is_low(self) -> bool:
        """Whether a lease shall be filled up now."""
        return bool(self._low)

    def is_held(self) -> bool:
        """Whether anything is held or unwritten, so that a later collection has something to do."""
        return bool(self._by_account or self._unwritten)

    def give_up_idle(self, now_s: float, idle_s: float = IDLE_S) -> None:
        """Ends leases that made no call for ``idle_s``; 0: all."""
        for lease in [each for each in self._by_account.values() if now_s - each.used_s >= idle_s]:
            self._give_up(lease)

    def collect(self, most: int) -> list[LeaseChange]:
        """Up to ``most`` changes to write, one for each account and day."""
        changes: list[LeaseChange] = []
        for account_id in [*self._low, *(used for used in self._used if used not in self._low)]:
            if len(changes) >= most:
                break
            lease, is_low = self._by_account[account_id], account_id in self._low
            self._low.pop(account_id, None)
            self._used.pop(account_id, None)
            wanted = 0
            if is_low:
                lease.size = min(MAX_LEASED, max(_FIRST_LEASED, 2 * lease.size))
                lease.is_asked, wanted = True, max(0, lease.size - lease.left)
            change = LeaseChange(account_id, lease.day, lease.spent, 0, wanted, lease.per_day)
            lease.spent = 0
            changes.append(_merge(change, self._unwritten.pop(change.key(), None)))
        while self._unwritten and len(changes) < most:
            changes.append(self._unwritten.pop(next(iter(self._unwritten))))
        return changes

    def settle(self, changes: Sequence[LeaseChange], lent: Mapping[AccountDay, int], now_s: float) -> None:
        """The changes were written. ``lent``: how many calls each got; an absent one got none."""
        for change in changes:
            if not change.wanted:
                continue
            got, lease = lent.get(change.key(), 0), self._by_account.get(change.account_id)
            if lease is None or (lease.day, lease.per_day) != (change.day, change.per_day):
                self._write_later(LeaseChange(change.account_id, change.day, returned=got))
                continue
            lease.is_asked = False
            lease.left += got
            if not got:
                lease.size, lease.wait_until_s = 0, now_s + IDLE_S

    def fail(self, changes: Sequence[LeaseChange], was_not_executed: bool) -> None:
        """The changes failed. They are repeated only if they were certainly not executed: a return made twice
        would give calls away. Otherwise the day keeps the calls, and the account loses them."""
        for change in changes:
            lease = self._by_account.get(change.account_id)
            if lease is not None and lease.day == change.day:
                lease.is_asked = lease.is_asked and not change.wanted
            if was_not_executed:
                self._write_later(replace(change, wanted=0, per_day=0))

    def _give_up(self, lease: _Lease) -> None:
        """Ends a lease: what is left of it goes back."""
        del self._by_account[lease.account_id]
        self._low.pop(lease.account_id, None)
        self._used.pop(lease.account_id, None)
        self._write_later(LeaseChange(lease.account_id, lease.day, lease.spent, lease.left))

    def _write_later(self, change: LeaseChange) -> None:
        if change.spent or change.returned:
            self._unwritten[change.key()] = _merge(change, self._unwritten.get(change.key()))


def _merge(change: LeaseChange, other: LeaseChange | None) -> LeaseChange:
    if other is None:
        return change
    return replace(change, spent=change.spent + other.spent, returned=change.returned + other.returned)


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
    max_waiting: int = MAX_WAITING
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
        """Writes nothing for ``retry_s``; logs the first failure after a success."""
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
