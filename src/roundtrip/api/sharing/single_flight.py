"""Shared answers with a lifetime, and single flight: one run for equal concurrent requests. The clock is
passed in."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from roundtrip.domain.base.errors import ServiceFull

from .places import NOBODY, FlightCaller, RunPlace, RunPlaces, Turn, use_place

_MAX_ANSWERS = 10_000
FINISH_RUNS_S, _CANCEL_S = 2.0, 1.0
"""At shutdown: how long runs may take to finish, and then to be cancelled."""


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """An encoded answer that is shared with all equal requests for ``ttl_ms``. ``block``: the block that it
    was computed at, if that matters. ``is_absence``: it says that something does not exist, and is shared
    only while that block is the newest. ``forms``: encodings that doors cache with it, by name. ``answer``:
    the answer itself, for callers in this process; None: it is stored, as bytes only."""

    body: bytes
    ttl_ms: int
    counted: bool
    block: int = 0
    is_absence: bool = False
    forms: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    answer: Any = field(default=None, compare=False, repr=False)


class TookTooLong(ServiceFull):
    """A run passed its deadline; another process would not be faster."""

    def __init__(self) -> None:
        super().__init__("busy", "The answer took too long. Retry in 1 second.", 1)


MakeAnswer = Callable[[], Awaitable[SharedAnswer]]
"""Runs a request."""


async def never_newest_block(block: int) -> bool:
    """The default of ``is_newest_block``: the newest block is unknown."""
    return False


class OtherProcesses(Protocol):
    """The answers and runs of other processes."""

    async def find(self, key: str) -> tuple[SharedAnswer, int] | None:
        """The stored answer, if there is one, and for how many more milliseconds it may be shared."""

    async def get(self, key: str, make: MakeAnswer) -> tuple[SharedAnswer, int, bool]:
        """The answer, for how many more milliseconds it may be shared, and whether another process made it.
        Raises what ``make`` raises, here or in another process, and ServiceFull (busy)."""


@dataclass(slots=True, eq=False)
class _Flight:
    """A run that waits for its place, in the lines of all who ask (``turns``), or is under way (``task``)."""

    turns: set[Turn] = field(default_factory=set)
    askers: int = 0
    task: asyncio.Task[tuple[SharedAnswer, bool]] | None = None


@dataclass(slots=True)
class SharedAnswers:
    """Runs equal concurrent requests once, and shares the answer until it expires.

    A run takes one of ``places``, also while it waits for another process's; a stored answer needs none.
    ``others``: shares with other processes. ``is_newest_block``: whether the node has no later block now.
    """

    clock: Callable[[], float]
    places: RunPlaces = field(default_factory=RunPlaces)
    others: OtherProcesses | None = None
    is_newest_block: Callable[[int], Awaitable[bool]] = never_newest_block
    max_answers: int = _MAX_ANSWERS
    _answers: OrderedDict[str, tuple[float, SharedAnswer]] = field(default_factory=OrderedDict)
    _flights: dict[str, _Flight] = field(default_factory=dict)

    def count_answers(self) -> int:
        """The number of stored answers, including expired ones."""
        return len(self._answers)

    def find_fresh(self, key: str) -> SharedAnswer | None:
        """The stored answer, if it has not expired."""
        entry = self._answers.get(key)
        if entry is None:
            return None
        if entry[0] <= self.clock():
            del self._answers[key]
            return None
        return entry[1]

    def has(self, key: str) -> bool:
        """Whether an answer is stored that is no absence, or a run is under way."""
        answer = self.find_fresh(key)
        return key in self._flights if answer is None else not answer.is_absence

    async def get(
        self, key: str, make: MakeAnswer, asker: FlightCaller | None = NOBODY, size: Callable[[], int] = int
    ) -> tuple[SharedAnswer, bool]:
        """The answer, and whether it is a hit: it was stored, or an earlier caller's run returned it.
        ``asker``: the caller who waits for a place; None: the run takes none of the shared places. ``size``:
        the bytes of the request, which stay in memory while it waits. Raises ServiceFull (busy).

        Cancelling a caller does not end the run: others may be waiting for it.
        """
        shared, is_hit = await self._get(key, make, asker, size)
        if not (is_hit and shared.is_absence) or await self.is_newest_block(shared.block):
            return shared, is_hit
        entry = self._answers.get(key)
        if entry is not None and entry[1] is shared:
            del self._answers[key]
        # Any answer from here on was started after this caller's request.
        return await self._get(key, make, asker, size)

    async def _get(
        self, key: str, make: MakeAnswer, asker: FlightCaller | None, size: Callable[[], int]
    ) -> tuple[SharedAnswer, bool]:
        answer = self.find_fresh(key)
        if answer is not None:
            return answer, True
        flight = self._flights.get(key)
        is_hit = flight is not None
        if flight is None:
            flight = self._flights[key] = _Flight()
        if asker is None and flight.task is None:
            own_place = RunPlaces(1).take_now(NOBODY)
            assert own_place is not None
            self._depart(key, flight, make, own_place)
        elif asker is not None and flight.task is None:
            found = await self._board(key, flight, make, asker, size)
            if found is not None:
                return found, True
        assert flight.task is not None
        shared, is_elsewhere = await asyncio.shield(flight.task)
        return shared, is_hit or is_elsewhere

    async def _board(
        self, key: str, flight: _Flight, make: MakeAnswer, asker: FlightCaller, size: Callable[[], int]
    ) -> SharedAnswer | None:
        """Starts the run when the first of those who ask for it has a place. Returns another process's
        answer, if there is one already and no place is free."""
        place = self.places.take_now(asker)
        flight.askers += 1
        try:
            if place is None:
                if self.others is not None and (found := await self.others.find(key)) is not None:
                    return self._keep(key, *found)
                if flight.task is None:
                    place = await self.places.wait(asker, size(), flight.turns)
        finally:
            flight.askers -= 1
            if flight.task is None and place is None and not flight.askers:
                del self._flights[key]
        if place is not None and flight.task is not None:
            place.end()
        elif place is not None:
            self._depart(key, flight, make, place)
        return None

    def _depart(self, key: str, flight: _Flight, make: MakeAnswer, place: RunPlace) -> None:
        flight.task = asyncio.create_task(self._run(key, make, place))
        # All that wait for it may have disconnected: its failure is no error of this service.
        flight.task.add_done_callback(_read_outcome)
        for turn in flight.turns:
            turn.withdraw()

    async def _run(self, key: str, make: MakeAnswer, place: RunPlace) -> tuple[SharedAnswer, bool]:
        try:
            with use_place(place):
                if self.others is None:
                    shared = await make()
                    return self._keep(key, shared, shared.ttl_ms), False
                shared, left_ms, is_hit = await self.others.get(key, make)
                return self._keep(key, shared, left_ms), is_hit
        finally:
            del self._flights[key]

    def _keep(self, key: str, shared: SharedAnswer, left_ms: int) -> SharedAnswer:
        self._store(key, shared, left_ms)
        return shared

    def _store(self, key: str, shared: SharedAnswer, left_ms: int) -> None:
        if left_ms <= 0:
            return
        self._answers[key] = (self.clock() + left_ms / 1000, shared)
        self._answers.move_to_end(key)
        if len(self._answers) > self.max_answers:
            self._answers.popitem(last=False)

    async def finish_runs(self, within_s: float = FINISH_RUNS_S) -> None:
        """Waits for the running runs, which have no callers left, and cancels those that take longer: a
        process that waits for one runs it instead."""
        late = await _wait_for_tasks(
            {flight.task for flight in self._flights.values() if flight.task is not None}, within_s
        )
        for task in late:
            task.cancel()
        await _wait_for_tasks(late, _CANCEL_S)


def _read_outcome(task: asyncio.Task[tuple[SharedAnswer, bool]]) -> None:
    if not task.cancelled():
        task.exception()


async def _wait_for_tasks(
    tasks: set[asyncio.Task[tuple[SharedAnswer, bool]]], within_s: float
) -> set[asyncio.Task[tuple[SharedAnswer, bool]]]:
    """Waits for the tasks; returns those that have not ended after ``within_s``. Ignores exceptions of the
    others."""
    if not tasks:
        return tasks
    done, unfinished = await asyncio.wait(tasks, timeout=within_s)
    for task in done:
        if not task.cancelled():
            task.exception()
    return unfinished
