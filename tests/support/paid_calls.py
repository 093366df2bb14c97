"""A gate, and a dispatch behind it, whose caller has paid for calls; over counts in memory."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import msgspec
import pytest

from roundtrip.api.admission.call_counter import CallCounter
from roundtrip.api.admission.credit_spender import CreditSpender
from roundtrip.api.admission.gate import Admitted, CallRefused, Counts, Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.dispatch import Dispatch, DoorReply
from roundtrip.api.operations.operation import AnyOperation, HandlerCall, Operation
from roundtrip.api.request.callers import CallerRequest
from roundtrip.api.sharing.single_flight import SharedAnswers
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.base.metrics import Measures
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.store.accounts.credits import CreditHold

from .counting import Balance, DrawnIds, Wall, account, hashed, key_of
from .counting import Counts as Ledger

HOME = "address:203.0.113.7"
ALLOWANCES = Allowances(CallAllowance(3), CallAllowance(6, 2), CallAllowance(9, 2))
KEYED = CallerRequest(HOME, key_of("k"))
CONTEXT = cast(Context, SimpleNamespace(measures=Measures()))


@dataclass
class WaitingLedger(Ledger):
    """Credits are moved once ``go`` is set; ``came``: a flush is under way."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    came: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.go.set()

    async def move(
        self, settled: Sequence[UUID], released: Sequence[UUID], wanted: Sequence[CreditHold], now_ms: int
    ) -> set[UUID]:
        self.came.set()
        await self.go.wait()
        return await super().move(settled, released, wanted, now_ms)


class PaidParams(msgspec.Struct, frozen=True):
    """Made up."""

    address: str


class PaidText(msgspec.Struct, frozen=True):
    """Made up."""

    text: str


async def say(call: HandlerCall[PaidParams]) -> UseCaseAnswer[PaidText]:
    return UseCaseAnswer(PaidText(call.params.address), ttl_ms=1_000)


PLAIN = Operation(say, PaidParams, PaidText, "say", "Say", "Says.")
SHARED = replace(PLAIN, shared_by=lambda params: params.address)


@dataclass
class PaidDispatch:
    """A gate, and a dispatch behind it, over counts that outlive them. The account has paid for five calls;
    of its free ones none is left."""

    ledger: WaitingLedger = field(
        default_factory=lambda: WaitingLedger({hashed("k"): account(1), hashed("n"): account(2)})
    )
    wall: Wall = field(default_factory=Wall)
    now_s: float = 0.0
    drawn: DrawnIds = field(default_factory=DrawnIds)
    retry_s: float = 1.0

    async def prepare(self) -> "PaidDispatch":
        """Pays, and uses up the free calls."""
        self.ledger.balances[1] = Balance(5)
        self.gate = self.made()
        self.dispatch = Dispatch(CONTEXT, self.gate, SharedAnswers(lambda: self.now_s))
        for _ in range(2):
            assert (await self.ask()).hold is None
        self.wall.ms += 60_000
        return self

    def made(self) -> Gate:
        def clock() -> float:
            return self.now_s

        self.spender = CreditSpender(self.ledger, self.wall, self.drawn, clock=clock, retry_s=self.retry_s)
        counter = CallCounter(self.ledger, self.wall, clock=clock)
        return Gate(MinuteLimits(self.wall), ALLOWANCES, counter, spender=self.spender)

    async def ask(self, asking: CallerRequest = KEYED, counts: Counts = "day") -> Admitted:
        return await self.gate.admit(asking, counts, needs_key=False)

    async def refused(self, asking: CallerRequest = KEYED) -> tuple[str, int | None]:
        """Code, and what is left of the minute."""
        with pytest.raises(CallRefused) as caught:
            await self.ask(asking)
        ticket = caught.value.ticket
        return caught.value.error.code, None if ticket is None else ticket.remaining

    async def run(self, operation: AnyOperation = PLAIN, address: str = "x") -> DoorReply:
        return await self.dispatch.run(operation, {"address": address}, KEYED)

    def has(self, account_id: int = 1) -> tuple[int, int, int]:
        """Credits, held, spent."""
        one = self.ledger.balances[account_id]
        assert one.credits + len(self.ledger.holds) + one.spent == 5, "a credit was lost or made"
        return one.credits, len(self.ledger.holds), one.spent

    def minute(self) -> int:
        """What is written down of it."""
        return sum(count for (_, at), count in self.ledger.minute.items() if at == self.wall.ms)


async def flushed() -> None:
    """Lets what is under way be written."""
    for _ in range(10):
        await asyncio.sleep(0)
