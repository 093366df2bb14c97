"""Processes that spend credits, and die or lose their database where a test says."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from roundtrip.api.admission.call_counter import CallCounter, DatabaseCalls
from roundtrip.api.admission.credit_spender import CreditSpender, DatabaseCredits
from roundtrip.api.admission.gate import Admitted, CallRefused, Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.request.callers import CallerRequest
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.store.accounts import call_counts
from roundtrip.store.accounts.call_counts import AccountDay, CountedCall, LeaseChange, LiveKey, RefundedCall
from roundtrip.store.accounts.credits import CreditHold

from .counting import DrawnIds, Wall, key_of

FREE = 1
"""Calls a day."""
ALLOWANCES = Allowances(CallAllowance(1), CallAllowance(10**6, FREE), CallAllowance(10**6, FREE))


@dataclass
class InTurns(DatabaseCalls):
    """Counts over connections of a shared pool, as of fifty processes that have twenty."""

    async def write(
        self, calls: Sequence[CountedCall], handed_back: Sequence[RefundedCall], forget_before_ms: int
    ) -> list[LiveKey | None]:
        async with self.pool.acquire() as connection:
            return await call_counts.write(connection, calls, handed_back)

    async def move_leases(
        self, changes: Sequence[LeaseChange], minutes: Mapping[tuple[str, int], int]
    ) -> dict[AccountDay, int]:
        async with self.pool.acquire() as connection:
            return await call_counts.move(connection, changes, minutes)


@dataclass
class Faulty(DatabaseCredits):
    """``fault``: the next request fails, "before" it is done or "after"; or the process "dies before" or
    "dies after" that, once ``is_dying``."""

    fault: str | None = None
    is_dying: asyncio.Event = field(default_factory=asyncio.Event)

    async def move(
        self, settled: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[CreditHold], now_ms: int
    ) -> set[UUID]:
        fault, self.fault = self.fault, None
        given: set[UUID] = set()
        if fault is None or fault.endswith("after"):
            given = await super().move(settled, released, wanted, now_ms)
        if fault is None:
            return given
        if fault.startswith("dies"):
            self.is_dying.set()
            await asyncio.Event().wait()
        raise ConnectionResetError


@dataclass(eq=False)
class ModelProcess:
    """A process that serves. ``ends``: the holds that it has still to settle, as the model knows;
    ``is_gone``: its database did not answer, and it does not ask again before its clock has moved."""

    pool: asyncpg.Pool
    wall: Wall
    drawn: DrawnIds
    now_s: float = 0.0
    ends: list[tuple[str, UUID]] = field(default_factory=list)
    is_gone: bool = False

    def __post_init__(self) -> None:
        self.ledger, self.counts = Faulty(self.pool), DatabaseCalls(self.pool)
        self.spender = CreditSpender(
            self.ledger, self.wall, self.drawn, clock=lambda: self.now_s, retry_s=1e6
        )
        counter = CallCounter(self.counts, self.wall, clock=lambda: self.now_s)
        self.gate = Gate(MinuteLimits(self.wall), ALLOWANCES, counter, spender=self.spender)

    async def connect(self) -> "ModelProcess":
        """Opens its connections now, so that it never dies while one is opened."""
        for own in (self.ledger.connection, self.counts.connection):
            await own._connect()
        return self

    async def quiet(self) -> None:
        """Waits until nothing is being written."""
        for part in (self.spender, self.gate.counter):
            while part._flushing is not None:
                await asyncio.wait([part._flushing])

    async def dies(self) -> None:
        """Dies in the middle of whatever it does."""
        for own in (self.ledger.connection, self.counts.connection):
            await own._discard()
        if self.gate.counter._timer is not None:
            self.gate.counter._timer.cancel()
        for part in (self.spender, self.gate.counter):
            if part._flushing is not None:
                part._flushing.cancel()
                await asyncio.wait([part._flushing])

    async def dies_in(self, doing: Coroutine[Any, Any, object]) -> None:
        """Dies in the middle of ``doing``, where ``ledger.fault`` says."""
        task = asyncio.create_task(doing)
        async with asyncio.timeout(20):
            await self.ledger.is_dying.wait()
        await self.dies()
        task.cancel()
        await asyncio.wait([task])

    async def ask(self, key: str) -> Admitted | str:
        try:
            return await self.gate.admit(CallerRequest("address:x", key_of(key)), "day", needs_key=True)
        except CallRefused as refused:
            return refused.error.code
