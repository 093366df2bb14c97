"""Credits spent on calls past the day, by group commit beside the one that counts.

A credit is held while its call is under way, spent before the answer goes out, and given back where the
call does not count. Everything is known by the hold's id and done once, so whatever may not have been done is
simply done again; a hold that nobody ends is over after ``HOLD_MS``, and its credit goes back.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import asyncpg
import structlog

from roundtrip.api.request.request_ids import start_detached_task
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.store.accounts import credit_holds
from roundtrip.store.accounts.credit_holds import HOLD_MS, CreditHold
from roundtrip.store.server.errors import DATABASE_FAULTS

from .call_counter import MOST_AT_ONCE, MOST_WAITING
from .dedicated_connection import STATEMENT_S, OwnConnection

log = structlog.get_logger(__name__)


class CreditStore(Protocol):
    """Who keeps credits: see ``store.holds``. Raises one of DATABASE_FAULTS."""

    async def move(
        self, settled: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[CreditHold], now_ms: int
    ) -> set[UUID]:
        """Ends holds, then makes those that are wanted, as far as there are credits; which. Each of the three
        is done or not on its own."""

    async def close(self) -> None: ...


@dataclass(slots=True)
class Credits:
    """Credits in the database, over one connection of its own."""

    pool: asyncpg.Pool
    own: OwnConnection = field(init=False)

    def __post_init__(self) -> None:
        self.own = OwnConnection(self.pool)

    async def move(
        self, settled: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[CreditHold], now_ms: int
    ) -> set[UUID]:
        """As ``MovesCredits.move``."""
        async with self.own.acquire(STATEMENT_S) as connection:
            if settled:
                await credit_holds.settle(connection, settled)
            if released:
                await credit_holds.release(connection, released)
            return await credit_holds.hold(connection, wanted, now_ms) if wanted else set()

    async def close(self) -> None:
        """Gives the connection back."""
        await self.own.close()


@dataclass(slots=True, eq=False)
class _WantedHold:
    """A hold that is asked for, and who waits for whether it is made."""

    hold: CreditHold
    came: "asyncio.Future[bool]"


@dataclass(slots=True, eq=False)
class _HoldEnd:
    """What becomes of a hold, and who waits until it has."""

    hold: CreditHold
    is_spent: bool
    told: "asyncio.Future[None] | None" = None

    def tell(self) -> None:
        """Whoever waits waits no longer."""
        if self.told is not None and not self.told.done():
            self.told.set_result(None)


@dataclass(slots=True)
class Spending:
    """Moves credits, one flush at a time. ``now_ms``: since 1970. ``new_id``: of a hold; never the same
    twice, over all processes. ``clock``: seconds, of any beginning. ``again_s``: after so long a database
    that did not answer is asked again.

    While it does not answer nobody's call is let in for a credit. Answers that are made go out; to have them
    paid for is tried until their hold is over, and then they are free.
    """

    ledger: CreditStore
    now_ms: Callable[[], int]
    new_id: Callable[[], UUID]
    clock: Callable[[], float] = time.monotonic
    again_s: float = 1.0
    _wanted: deque[_WantedHold] = field(default_factory=deque)
    # Never more than calls that are under way: while holds cannot be ended, none is made.
    _ends: deque[_HoldEnd] = field(default_factory=deque)
    _flushing: asyncio.Task[None] | None = None
    _again: asyncio.TimerHandle | None = None
    _gone_until_s: float | None = None
    _said_gone: bool = False

    def waiting(self) -> int:
        """Credits that are to be held, spent or given back, and are not yet."""
        return len(self._wanted) + len(self._ends)

    async def hold(self, account_id: int, caller: str | None, taken_ms: int) -> CreditHold | None:
        """A credit for one call, which is written down under ``caller``'s minute with it; None: there is
        none. Raises ServiceFull (busy): nobody knows. Whoever is cancelled here holds nothing."""
        if self._is_gone():
            raise _unknown()
        if len(self._wanted) >= MOST_WAITING:
            raise ServiceFull("busy", "Too many requests are under way; ask again in a moment.", 1)
        wanted = CreditHold(self.new_id(), account_id, self.now_ms() + HOLD_MS, caller, taken_ms)
        came: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._wanted.append(_WantedHold(wanted, came))
        self._begin()
        try:
            return wanted if await came else None
        except asyncio.CancelledError:
            # It may have been told a moment before.
            if not came.cancelled() and came.exception() is None and came.result():
                self.release(wanted)
            raise

    async def settle(self, hold: CreditHold) -> None:
        """Spends what is held, and comes back when that is written, or cannot be for now. Whoever is
        cancelled has it back, unless it is spent by then."""
        if self._is_gone():
            self._ends.append(_HoldEnd(hold, is_spent=True))
            self._remind()
            return
        end = _HoldEnd(hold, True, asyncio.get_running_loop().create_future())
        self._ends.append(end)
        self._begin()
        assert end.told is not None
        try:
            await end.told
        except asyncio.CancelledError:
            # Where that is under way it may still fail, and is not tried again.
            end.is_spent = False
            raise

    def release(self, hold: CreditHold) -> None:
        """Gives back what is held, and waits for nothing."""
        self._ends.append(_HoldEnd(hold, is_spent=False))
        self._begin()

    async def close(self) -> None:
        """Ends what is left, if it can."""
        self._gone_until_s = None
        self._begin()
        if self._flushing is not None:
            await self._flushing
        if self._again is not None:
            self._again.cancel()
        with contextlib.suppress(*DATABASE_FAULTS):
            await self.ledger.close()

    def _is_gone(self) -> bool:
        return self._gone_until_s is not None and self.clock() < self._gone_until_s

    def _begin(self) -> None:
        if self._flushing is None and not self._is_gone():
            self._flushing = start_detached_task(self._flush(), "spending")

    async def _flush(self) -> None:
        try:
            while (self._wanted or self._ends) and not self._is_gone():
                await self._flush_once()
        finally:
            self._flushing = None
        if self._ends:
            self._remind()

    def _remind(self) -> None:
        """Nobody else may come while it matters."""
        if self._again is None:
            self._again = asyncio.get_running_loop().call_later(self.again_s, self._begin_again)

    def _begin_again(self) -> None:
        self._again = self._gone_until_s = None
        self._begin()

    async def _flush_once(self) -> None:
        now = self.now_ms()
        ends = self._still_held(now)
        asked = [self._wanted.popleft() for _ in range(min(MOST_AT_ONCE, len(self._wanted)))]
        wanted = [one for one in asked if not one.came.done()]
        settled = [end.hold.id for end in ends if end.is_spent]
        released = [end.hold.id for end in ends if not end.is_spent]
        try:
            given = await self.ledger.move(settled, released, [one.hold for one in wanted], now)
        except Exception as fault:
            self._note_failure(fault, ends, wanted)
            return
        self._gone_until_s, self._said_gone = None, False
        for end in ends:
            end.tell()
        for one in wanted:
            is_given = one.hold.id in given
            if not one.came.done():
                one.came.set_result(is_given)
            elif is_given:
                self.release(one.hold)

    def _still_held(self, now_ms: int) -> list[_HoldEnd]:
        found: list[_HoldEnd] = []
        while self._ends and len(found) < MOST_AT_ONCE:
            end = self._ends.popleft()
            if end.hold.until_ms > now_ms:
                found.append(end)
            else:
                end.tell()
        return found

    def _note_failure(self, fault: Exception, ends: list[_HoldEnd], wanted: list[_WantedHold]) -> None:
        if not self._said_gone:
            log.warning("credits cannot be moved in the database", fault=type(fault).__name__)
        self._gone_until_s, self._said_gone = self.clock() + self.again_s, True
        for end in (*ends, *self._ends):
            end.tell()
        # They may have been done all the same: what is done twice is done once.
        self._ends.extendleft(reversed(ends))
        self._ends.extend(_HoldEnd(one.hold, is_spent=False) for one in wanted)
        for one in (*wanted, *self._wanted):
            if not one.came.done():
                one.came.set_exception(_unknown())
        self._wanted.clear()


def _unknown() -> ServiceFull:
    return ServiceFull("busy", "Credits cannot be looked up just now; ask again in a moment.", 1)
