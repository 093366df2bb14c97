"""Holds and charges credits for calls past the day's limit.

A credit is held while its call is under way, charged before the answer goes out, and released where the call
does not count. Each step names the hold's id and has an effect only once, so a step that may have failed is
simply repeated. A hold that is never ended expires after ``HOLD_MS``, and its credit is the account's again.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import asyncpg

from roundtrip.api.admission.leases import MAX_AT_ONCE, BatchWriter, DedicatedConnection
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.store.accounts import credits as credit_holds
from roundtrip.store.accounts.credits import HOLD_MS, CreditHold
from roundtrip.store.server.connections import DATABASE_FAULTS


class CreditStore(Protocol):
    """Where credits are held. Each method raises one of DATABASE_FAULTS."""

    async def move(
        self, charged: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[CreditHold], now_ms: int
    ) -> set[UUID]:
        """Charges and releases holds, then makes the wanted ones as far as there are credits. Returns the ids
        of those that were made. Each of the three steps takes effect on its own."""

    async def close(self) -> None: ...


@dataclass(slots=True)
class DatabaseCredits:
    """Credits in PostgreSQL, over a connection that nothing else uses."""

    pool: asyncpg.Pool
    connection: DedicatedConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = DedicatedConnection(self.pool)

    async def move(
        self, charged: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[CreditHold], now_ms: int
    ) -> set[UUID]:
        """As ``CreditStore.move``."""
        async with self.connection.acquire() as connection:
            if charged:
                await credit_holds.charge(connection, charged)
            if released:
                await credit_holds.release(connection, released)
            return await credit_holds.hold(connection, wanted, now_ms) if wanted else set()

    async def close(self) -> None:
        """Returns the connection."""
        await self.connection.close()


@dataclass(slots=True, eq=False)
class _WantedHold:
    """A hold of the next flush, and whether it was made, which its caller waits for."""

    hold: CreditHold
    is_made: "asyncio.Future[bool]"


@dataclass(slots=True, eq=False)
class _HoldEnd:
    """A hold that is charged or released by the next flush. ``done``: what the caller waits for, if it
    does."""

    hold: CreditHold
    is_charged: bool
    done: "asyncio.Future[None] | None" = None

    def finish(self) -> None:
        """Lets the caller go on."""
        if self.done is not None and not self.done.done():
            self.done.set_result(None)


@dataclass(slots=True)
class CreditSpender(BatchWriter):
    """Moves credits in a store, in batches. ``now_ms``: since 1970. ``new_id``: of a hold, unique over all
    processes.

    While the store is away no call is admitted for a credit. Answers that are ready go out; charging them is
    repeated until their hold expires, and after that they are free.
    """

    store: CreditStore
    now_ms: Callable[[], int]
    new_id: Callable[[], UUID]
    _wanted: deque[_WantedHold] = field(default_factory=deque)
    # Never more than calls that are under way: while holds cannot be ended, none is made.
    _ends: deque[_HoldEnd] = field(default_factory=deque)
    _retry: asyncio.TimerHandle | None = None

    def waiting(self) -> int:
        """Steps that are not written yet: credits to hold, to charge or to release."""
        return len(self._wanted) + len(self._ends)

    async def hold(self, account_id: int, caller: str | None, taken_ms: int) -> CreditHold | None:
        """A credit for one call, which is written under ``caller``'s minute with it; None: the account has
        none. Raises ServiceFull (busy): the store is away, or too many wait. A cancelled caller holds
        nothing."""
        if self._is_away():
            raise _away()
        if len(self._wanted) >= self.max_waiting:
            raise ServiceFull("busy", "Too many requests are running. Retry in 1 second.", 1)
        wanted = CreditHold(self.new_id(), account_id, self.now_ms() + HOLD_MS, caller, taken_ms)
        is_made: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._wanted.append(_WantedHold(wanted, is_made))
        self._start_flush()
        try:
            return wanted if await is_made else None
        except asyncio.CancelledError:
            # The hold may have been made a moment before.
            if not is_made.cancelled() and is_made.exception() is None and is_made.result():
                self.release(wanted)
            raise

    async def charge(self, hold: CreditHold) -> None:
        """Charges a hold, and returns when that is written, or cannot be written for now. A cancelled caller
        is not charged, unless it was by then."""
        if self._is_away():
            self._ends.append(_HoldEnd(hold, is_charged=True))
            self._schedule_retry()
            return
        end = _HoldEnd(hold, True, asyncio.get_running_loop().create_future())
        self._ends.append(end)
        self._start_flush()
        assert end.done is not None
        try:
            await end.done
        except asyncio.CancelledError:
            # A charge that is under way may still fail, and is then not repeated.
            end.is_charged = False
            raise

    def release(self, hold: CreditHold) -> None:
        """Gives a held credit back, and does not wait."""
        self._ends.append(_HoldEnd(hold, is_charged=False))
        self._start_flush()

    async def close(self) -> None:
        """Charges and releases what is left, if the store answers."""
        self._away_until_s = None
        await self._finish()
        if self._retry is not None:
            self._retry.cancel()
        with contextlib.suppress(*DATABASE_FAULTS):
            await self.store.close()

    async def _flush(self) -> None:
        # No slots-safe super(): the class is rebuilt by dataclass(slots=True).
        await BatchWriter._flush(self)
        if self._ends:
            self._schedule_retry()

    def _schedule_retry(self) -> None:
        """Flushes after ``retry_s``: no further call may arrive before the holds expire."""
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(self.retry_s, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = self._away_until_s = None
        self._start_flush()

    async def _flush_batch(self) -> None:
        now_ms = self.now_ms()
        ends = self._take_ends(now_ms)
        enqueued = [self._wanted.popleft() for _ in range(min(MAX_AT_ONCE, len(self._wanted)))]
        wanted = [entry for entry in enqueued if not entry.is_made.done()]
        charged = [end.hold.id for end in ends if end.is_charged]
        released = [end.hold.id for end in ends if not end.is_charged]
        try:
            made = await self.store.move(charged, released, [entry.hold for entry in wanted], now_ms)
        except Exception as fault:
            self._handle_failure(fault, ends, wanted)
            return
        self._mark_present()
        for end in ends:
            end.finish()
        for entry in wanted:
            is_made = entry.hold.id in made
            if not entry.is_made.done():
                entry.is_made.set_result(is_made)
            elif is_made:
                self.release(entry.hold)

    def _take_ends(self, now_ms: int) -> list[_HoldEnd]:
        ends: list[_HoldEnd] = []
        while self._ends and len(ends) < MAX_AT_ONCE:
            end = self._ends.popleft()
            if end.hold.until_ms > now_ms:
                ends.append(end)
            else:
                end.finish()
        return ends

    def _handle_failure(self, fault: Exception, ends: list[_HoldEnd], wanted: list[_WantedHold]) -> None:
        self._mark_away(fault, "updating credits in the database failed")
        for end in (*ends, *self._ends):
            end.finish()
        # They may have taken effect all the same; repeating them changes nothing.
        self._ends.extendleft(reversed(ends))
        self._ends.extend(_HoldEnd(entry.hold, is_charged=False) for entry in wanted)
        for entry in (*wanted, *self._wanted):
            if not entry.is_made.done():
                entry.is_made.set_exception(_away())
        self._wanted.clear()


def _away() -> ServiceFull:
    message = "Credits could not be read: the database is unavailable. Retry in 1 second."
    return ServiceFull("busy", message, 1)
