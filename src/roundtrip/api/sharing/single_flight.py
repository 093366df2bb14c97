"""Answers that everyone shares for a while, and one run for all who ask at once. Time comes in."""

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from roundtrip.domain.base.errors import ServiceFull

_MOST_ANSWERS = 10_000
_LEAST_OF_ONE = 2
_MOST_WAITING = 8
"""Times as many as may run here may wait here, where other processes run, too."""
SETTLE_S, _BREAK_OFF_S = 2.0, 1.0
"""For what is under way when everybody here is answered, and for what is then broken off."""


@dataclass(frozen=True, slots=True)
class SharedAnswer:
    """An encoded answer that is handed to everyone who asks within its time. ``block``: the one that it is
    of, where that matters. ``is_absence``: it is handed to those only who ask while that block is the newest.
    ``forms``: what doors made of it, by names of their own, so that each form is made once."""

    body: bytes
    ttl_ms: int
    counted: bool
    block: int = 0
    is_absence: bool = False
    forms: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)


class NoPlace(ServiceFull):
    """As many runs as may be are under way in this process; that says nothing of the next one. ``counts``:
    those of the caller are in the way."""

    def __init__(
        self, message: str = "Too many requests are under way; ask again in a moment.", counts: bool = False
    ) -> None:
        super().__init__("busy", message, 1)
        self.counts = counts


class TookTooLong(ServiceFull):
    """A run that had all the time a run may have; the next one would not end sooner."""

    def __init__(self) -> None:
        super().__init__("busy", "This took too long; ask again in a moment.", 1)


Makes = Callable[[], Awaitable[SharedAnswer]]


async def never_newest(block: int) -> bool:
    """Of whom nobody knows which block is the newest."""
    return False


class OtherProcesses(Protocol):
    """What other processes have made, or are making."""

    async def get(self, key: str, make: Makes) -> tuple[SharedAnswer, int, bool]:
        """The answer, for how many milliseconds it may be shared from now on, and whether another process
        made it; else ``make`` did. Raises what ``make`` raises, also in another process, and ServiceFull
        (busy)."""


@dataclass(frozen=True, slots=True)
class FlightCaller:
    """Who asks: whether with a key, and whose; from which ``address``, None where that bounds nothing."""

    keyed: bool = False
    account: int | None = None
    address: str | None = None

    def names(self) -> tuple[int | str, ...]:
        """What its runs are counted under."""
        return tuple(name for name in (self.account, self.address) if name is not None)


@dataclass(slots=True)
class _Flight:
    """A question that is being answered. ``askers``: those who wait for it, in the order that they came."""

    askers: dict["FlightCaller", None]
    task: asyncio.Task[tuple[SharedAnswer, bool]] = field(init=False)


@dataclass(slots=True)
class SharedAnswers:
    """One run for everyone who asks the same thing at once, and its answer for all until it is old.

    ``most_running`` runs may be under way; one more raises ServiceFull (busy). The last quarter of the places
    is for callers with a key. An account has an eighth of the places at most, since accounts are free, and an
    address a tenth. ``across``: for several processes together; who waits for the run
    of another takes no place; a run that comes to be here has the place of one of those who wait.
    ``allowed``: how many the loop can do now, where that is fewer. ``is_newest``: whether the chain has no
    block after this one, by what its node says now.
    """

    clock: Callable[[], float]
    most_running: int = 128
    across: OtherProcesses | None = None
    allowed: Callable[[], int] | None = None
    is_newest: Callable[[int], Awaitable[bool]] = never_newest
    _kept: OrderedDict[str, tuple[float, SharedAnswer]] = field(default_factory=OrderedDict)
    _flights: dict[str, _Flight] = field(default_factory=dict)
    _running: int = 0
    _of: Counter[int | str] = field(default_factory=Counter)

    def running(self) -> int:
        """How many runs are under way."""
        return self._running

    def count_shared(self) -> int:
        """Answers that are kept to be shared; some may be too old."""
        return len(self._kept)

    def fresh(self, key: str) -> SharedAnswer | None:
        """The kept answer, if it is not too old."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept[0] <= self.clock():
            del self._kept[key]
            return None
        return kept[1]

    async def get(
        self, key: str, make: Makes, asker: FlightCaller = FlightCaller()
    ) -> tuple[SharedAnswer, bool]:
        """The answer, and whether it was there already (a run that was under way counts as there).

        A caller that goes away does not end the run: others may be waiting for it.
        """
        shared, hit = await self._get(key, make, asker)
        if not (hit and shared.is_absence) or await self.is_newest(shared.block):
            return shared, hit
        kept = self._kept.get(key)
        if kept is not None and kept[1] is shared:
            del self._kept[key]
        # Whatever this comes to was begun after the caller asked.
        return await self._get(key, make, asker)

    async def _get(self, key: str, make: Makes, asker: FlightCaller) -> tuple[SharedAnswer, bool]:
        kept = self.fresh(key)
        if kept is not None:
            return kept, True
        flight = self._flights.get(key)
        if flight is not None:
            flight.askers[asker] = None
            return (await asyncio.shield(flight.task))[0], True
        flight = _Flight({asker: None})
        if self.across is None:
            place = self.alone(asker)
            place.__enter__()
            flying = self._run(key, make, place)
        else:
            if len(self._flights) >= self._most(asker.keyed) * _MOST_WAITING:
                raise NoPlace
            flying = self._run_across(key, make, self.across, flight)
        flight.task = asyncio.create_task(flying)
        self._flights[key] = flight
        return await asyncio.shield(flight.task)

    @contextlib.contextmanager
    def alone(self, asker: FlightCaller = FlightCaller()) -> Iterator[None]:
        """A run among as many as may be under way. Raises ServiceFull (busy)."""
        self._check_room(asker)
        self._running += 1
        self._of.update(asker.names())
        try:
            yield
        finally:
            self._running -= 1
            for name in asker.names():
                self._of[name] -= 1
                if not self._of[name]:
                    del self._of[name]

    def _roomy(self, askers: Collection[FlightCaller]) -> FlightCaller:
        """The first of them who has room for a run. Raises NoPlace, which is true of each of them."""
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
        for name, whose, share in ((asker.account, "account", 8), (asker.address, "address", 10)):
            most = max(_LEAST_OF_ONE, self.most_running // share)
            if name is not None and self._of[name] >= most:
                said = f"{most} requests of this {whose} are under way; ask again in a moment."
                raise NoPlace(said, counts=True)
        if self._running >= self._most(asker.keyed):
            raise NoPlace

    def _most(self, keyed: bool) -> int:
        most = self.most_running if self.allowed is None else min(self.most_running, self.allowed())
        return most if keyed else most - most // 4

    async def _run(
        self, key: str, make: Makes, place: contextlib.AbstractContextManager[None]
    ) -> tuple[SharedAnswer, bool]:
        try:
            shared = await make()
            self._keep(key, shared, shared.ttl_ms)
            return shared, False
        finally:
            place.__exit__(None, None, None)
            del self._flights[key]

    async def _run_across(
        self, key: str, make: Makes, across: OtherProcesses, flight: _Flight
    ) -> tuple[SharedAnswer, bool]:
        async def make_in_turn() -> SharedAnswer:
            with self.alone(self._roomy(flight.askers)):
                return await make()

        try:
            shared, left_ms, hit = await across.get(key, make_in_turn)
            self._keep(key, shared, left_ms)
            return shared, hit
        finally:
            del self._flights[key]

    def _keep(self, key: str, shared: SharedAnswer, left_ms: int) -> None:
        if left_ms <= 0:
            return
        self._kept[key] = (self.clock() + left_ms / 1000, shared)
        self._kept.move_to_end(key)
        if len(self._kept) > _MOST_ANSWERS:
            self._kept.popitem(last=False)

    async def settle(self, within_s: float = SETTLE_S) -> None:
        """Waits for what is under way, whose results are no longer wanted here, and breaks off what takes
        longer: another process that waits for it runs instead."""
        late = await _late({one.task for one in self._flights.values()}, within_s)
        for task in late:
            task.cancel()
        await _late(late, _BREAK_OFF_S)


async def _late(
    tasks: set[asyncio.Task[tuple[SharedAnswer, bool]]], within_s: float
) -> set[asyncio.Task[tuple[SharedAnswer, bool]]]:
    """Those that are not over then. How the others ended is nobody's concern."""
    if not tasks:
        return tasks
    over, late = await asyncio.wait(tasks, timeout=within_s)
    for task in over:
        if not task.cancelled():
            task.exception()
    return late
