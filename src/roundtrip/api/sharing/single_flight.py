"""Shared answers with a lifetime, and single flight: one run for equal concurrent requests. The caller gives
the clock."""

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from roundtrip.domain.base.errors import ServiceFull

_MOST_ANSWERS = 10_000
_LEAST_PER_CALLER = 2
_WAITING_FACTOR = 8
"""With other processes, this many times the runs allowed here may wait here."""
FINISH_RUNS_S, _CANCEL_S = 2.0, 1.0
"""At shutdown: how long runs may take to finish, and then to be cancelled."""


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """An encoded answer that is shared with all equal requests for ``ttl_ms``. ``block``: the block that it
    was computed at, if that matters. ``is_absence``: it says that something does not exist, and is shared
    only while that block is the newest. ``forms``: encodings that doors cache with it, by name."""

    body: bytes
    ttl_ms: int
    counted: bool
    block: int = 0
    is_absence: bool = False
    forms: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)


class NoPlace(ServiceFull):
    """This process is at its limit of runs; another process may have room. ``counts``: the caller's own runs
    are the reason."""

    def __init__(
        self, message: str = "Too many requests are running. Retry in 1 second.", counts: bool = False
    ) -> None:
        super().__init__("busy", message, 1)
        self.counts = counts


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

    async def get(self, key: str, make: MakeAnswer) -> tuple[SharedAnswer, int, bool]:
        """The answer, for how many more milliseconds it may be shared, and whether another process made it.
        Raises what ``make`` raises, here or in another process, and ServiceFull (busy)."""


@dataclass(frozen=True, slots=True)
class FlightCaller:
    """The caller of a run: whether it has a key, its account, and its ``address`` (None: not limited)."""

    keyed: bool = False
    account: int | None = None
    address: str | None = None

    def names(self) -> tuple[int | str, ...]:
        """The keys that its runs are counted under."""
        return tuple(name for name in (self.account, self.address) if name is not None)


@dataclass(slots=True)
class _Flight:
    """A run under way. ``askers``: the callers that wait for it, in the order of arrival."""

    askers: dict["FlightCaller", None]
    task: asyncio.Task[tuple[SharedAnswer, bool]] = field(init=False)


@dataclass(slots=True)
class SharedAnswers:
    """Runs equal concurrent requests once, and shares the answer until it expires.

    At most ``most_running`` runs may be under way; one more raises ServiceFull (busy). The last quarter of
    the places is for callers with a key. An account has at most an eighth of the places (accounts are free),
    an address a tenth. ``others``: shares with other processes; waiting for another process's run takes no
    place, and a run that then starts here takes the place of one of the waiting callers. ``allowed``: returns
    how many runs this process can do now, if fewer. ``is_newest_block``: whether the node has no later
    block now. ``measure_run``: measures a run by its operation's name.
    """

    clock: Callable[[], float]
    most_running: int = 128
    others: OtherProcesses | None = None
    allowed: Callable[[], int] | None = None
    is_newest_block: Callable[[int], Awaitable[bool]] = never_newest_block
    measure_run: Callable[[str], AbstractContextManager[object]] = contextlib.nullcontext
    _answers: OrderedDict[str, tuple[float, SharedAnswer]] = field(default_factory=OrderedDict)
    _flights: dict[str, _Flight] = field(default_factory=dict)
    _running: int = 0
    _running_by: Counter[int | str] = field(default_factory=Counter)

    def running(self) -> int:
        """The number of runs under way."""
        return self._running

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
        self, key: str, make: MakeAnswer, asker: FlightCaller = FlightCaller()
    ) -> tuple[SharedAnswer, bool]:
        """The answer, and whether it is a hit (stored, or from a run that was already under way).

        Cancelling a caller does not end the run: others may be waiting for it.
        """
        shared, is_hit = await self._get(key, make, asker)
        if not (is_hit and shared.is_absence) or await self.is_newest_block(shared.block):
            return shared, is_hit
        entry = self._answers.get(key)
        if entry is not None and entry[1] is shared:
            del self._answers[key]
        # Any answer from here on was started after this caller's request.
        return await self._get(key, make, asker)

    async def _get(self, key: str, make: MakeAnswer, asker: FlightCaller) -> tuple[SharedAnswer, bool]:
        answer = self.find_fresh(key)
        if answer is not None:
            return answer, True
        flight = self._flights.get(key)
        if flight is not None:
            flight.askers[asker] = None
            return (await asyncio.shield(flight.task))[0], True
        flight = _Flight({asker: None})
        if self.others is None:
            place = self.reserve_place(asker, _operation_of(key))
            place.__enter__()
            run = self._run(key, make, place)
        else:
            if len(self._flights) >= self._run_limit(asker.keyed) * _WAITING_FACTOR:
                raise NoPlace
            run = self._run_with_others(key, make, self.others, flight)
        flight.task = asyncio.create_task(run)
        # All that wait for it may have disconnected: its failure is no error of this service.
        flight.task.add_done_callback(_read_outcome)
        self._flights[key] = flight
        return await asyncio.shield(flight.task)

    @contextlib.contextmanager
    def reserve_place(self, asker: FlightCaller = FlightCaller(), operation: str = "") -> Iterator[None]:
        """Takes a run's place while the block runs. Raises ServiceFull (busy): there is none."""
        self._check_room(asker)
        self._running += 1
        self._running_by.update(asker.names())
        try:
            with self.measure_run(operation):
                yield
        finally:
            self._running -= 1
            for name in asker.names():
                self._running_by[name] -= 1
                if not self._running_by[name]:
                    del self._running_by[name]

    def _first_with_room(self, askers: Collection[FlightCaller]) -> FlightCaller:
        """The first of the callers that has room for a run. Raises NoPlace: none of them has."""
        for asker in askers:
            try:
                self._check_room(asker)
            except NoPlace:
                if len(askers) == 1:
                    raise
            else:
                return asker
        raise NoPlace

    def _check_room(self, asker: FlightCaller) -> None:
        for name, owner, share in ((asker.account, "account", 8), (asker.address, "address", 10)):
            limit = max(_LEAST_PER_CALLER, self.most_running // share)
            if name is not None and self._running_by[name] >= limit:
                message = (
                    f"{limit} requests of this {owner} are running, which is the limit. Retry when one ends."
                )
                raise NoPlace(message, counts=True)
        if self._running >= self._run_limit(asker.keyed):
            raise NoPlace

    def _run_limit(self, keyed: bool) -> int:
        limit = self.most_running if self.allowed is None else min(self.most_running, self.allowed())
        # Of few places, one is kept for a key: a limit is that low when many ask.
        kept = limit // 4 if limit == self.most_running else max(1, limit // 4)
        return limit if keyed else max(1, limit - kept)

    async def _run(
        self, key: str, make: MakeAnswer, place: contextlib.AbstractContextManager[None]
    ) -> tuple[SharedAnswer, bool]:
        try:
            shared = await make()
            self._store(key, shared, shared.ttl_ms)
            return shared, False
        finally:
            place.__exit__(None, None, None)
            del self._flights[key]

    async def _run_with_others(
        self, key: str, make: MakeAnswer, others: OtherProcesses, flight: _Flight
    ) -> tuple[SharedAnswer, bool]:
        async def make_in_turn() -> SharedAnswer:
            with self.reserve_place(self._first_with_room(flight.askers), _operation_of(key)):
                return await make()

        try:
            shared, left_ms, is_hit = await others.get(key, make_in_turn)
            self._store(key, shared, left_ms)
            return shared, is_hit
        finally:
            del self._flights[key]

    def _store(self, key: str, shared: SharedAnswer, left_ms: int) -> None:
        if left_ms <= 0:
            return
        self._answers[key] = (self.clock() + left_ms / 1000, shared)
        self._answers.move_to_end(key)
        if len(self._answers) > _MOST_ANSWERS:
            self._answers.popitem(last=False)

    async def finish_runs(self, within_s: float = FINISH_RUNS_S) -> None:
        """Waits for the running runs, which have no callers left, and cancels those that take longer: a
        process that waits for one runs it instead."""
        late = await _wait_for_tasks({flight.task for flight in self._flights.values()}, within_s)
        for task in late:
            task.cancel()
        await _wait_for_tasks(late, _CANCEL_S)


def _read_outcome(task: asyncio.Task[tuple[SharedAnswer, bool]]) -> None:
    if not task.cancelled():
        task.exception()


def _operation_of(key: str) -> str:
    return key.partition(":")[0]


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
