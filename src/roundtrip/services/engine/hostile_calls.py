"""Hostile calls as the deep round sends them: the functions of a contract, the plans, and the results."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec

from roundtrip.chain.owner import owner_plans, owner_setters
from roundtrip.chain.owner.owner_plans import Actor, OwnerProbeSell, OwnerTry, PlannedTry
from roundtrip.chain.owner.selectors import UnreadableCode
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.domain.check.evidence import CellOutcome, Evidence, Missing, OwnerCall

DeepPlanName = tuple[str, int]
"""The purpose of a plan of the deep round, and its number among those."""


class CodeReading:
    """Reads the functions of contracts, two at a time, in its own threads: a contract can make this slow.
    ``reader``: the package that does it."""

    def __init__(self, reader: str = "evmole") -> None:
        self._reader = reader
        self._threads = ThreadPoolExecutor(2, "reading")
        self._waiting = 0

    def full(self) -> bool:
        """Whether ``MAX_WAITING`` readings wait already."""
        return self._waiting >= MAX_WAITING

    async def find(self, *codes: bytes) -> owner_setters.OwnerSetters | Missing:
        """Like ``owner_setters.find``, in a thread. Missing where the code cannot be read, or ``full``."""
        if find_spec(self._reader) is None:
            return Missing("node", f"{self._reader}, which reads functions from code, is not installed here")
        if self.full():
            return Missing("node", "this service is reading too many contracts at once")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, owner_setters.find, *codes)
        except UnreadableCode:
            return Missing("token", "its functions could not be read")
        finally:
            self._waiting -= 1


MAX_WAITING = 8
READING = CodeReading()


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """Simulations of hostile calls, the control first. ``purpose``: in the plans' names."""

    purpose: str
    sell: OwnerProbeSell
    planned: tuple[PlannedTry, ...]

    @classmethod
    def of(
        cls, purpose: str, sell: OwnerProbeSell, control: Actor, attempts: tuple[OwnerTry, ...]
    ) -> "PlannedCalls":
        """The plans of these attempts. ``control``: the account that calls a view in the control."""
        planned = tuple(owner_plans.plan(sell, control, attempt) for attempt in (None, *attempts))
        return cls(purpose, sell, planned)

    def plans(self) -> dict[DeepPlanName, Plan]:
        """The simulations by name."""
        return {(self.purpose, number): attempt.plan for number, attempt in enumerate(self.planned)}

    def read(
        self, results: Mapping[DeepPlanName, Results | Missing]
    ) -> tuple[CellOutcome, tuple[OwnerCall, ...]] | Missing:
        """The sell without a call, and the sell after each. Missing where the simulation without a call
        failed."""
        control, *attempts = [results[self.purpose, number] for number in range(len(self.planned))]
        if isinstance(control, Missing):
            return control
        outcome = owner_plans.read_control(self.planned[0], self.sell, control)
        pairs = zip(self.planned[1:], attempts, strict=True)
        return outcome, tuple(_read_call(planned, self.sell, result) for planned, result in pairs)


def control_of(evidence: Evidence, best: int, sell: OwnerProbeSell) -> CellOutcome:
    """The outcome of the same sell in the sell round: the control where no call is simulated."""
    return next(cell.outcome for cell in evidence.venues[best].cells if cell.probe == sell.probe)


def _read_call(planned: PlannedTry, sell: OwnerProbeSell, result: Results | Missing) -> OwnerCall:
    if not isinstance(result, Missing):
        return owner_plans.read(planned, sell, result)
    attempt = planned.attempt
    assert attempt is not None
    actor, buyer = attempt.actor, planned.plan.environment.buyer
    return OwnerCall(
        attempt.setter.name, "", actor.by, actor.address, buyer, (), result, None, attempt.target
    )
