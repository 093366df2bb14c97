"""Places for runs: a fixed number, one line for each caller, served in turn."""

import asyncio
import contextlib
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field

from roundtrip.chain.rpc.bulkhead import HELD
from roundtrip.domain.base.errors import ServiceFull

PLACES = 24
"""One and a half times the node's lane for checks: while two thirds of the runs are at the node, the others
read and judge. A node of two processors does no more checks a second with more than four at once."""
WAIT_S, PAGE_WAIT_S = 2.0, 5.0
"""How long a run may wait for its place; the second: for a person who looks at a page."""
MAX_LINE = 8
"""Waiting runs of one caller."""
MAX_WAITING, MAX_WAITING_BYTES = 1_000, 64 * 10**6
"""Waiting runs of all callers, and the size of their parameters."""


def _no_place() -> ServiceFull:
    return ServiceFull("busy", "Too many requests are running. Retry in 1 second.", 1)


def _own_runs() -> ServiceFull:
    message = "Your earlier requests are still running. Wait for their answers, then retry."
    return ServiceFull("busy", message, 1, counts=True)


@dataclass(frozen=True, slots=True)
class FlightCaller:
    """The caller of a run. ``name``: the account or address whose line the run joins. ``address``: where the
    account calls from; all accounts of one address share one caller's places; None: no such limit.
    ``wait_s``: how long the run may wait."""

    name: str = ""
    address: str | None = None
    wait_s: float = WAIT_S

    def names(self) -> tuple[str, ...]:
        """The names that its runs are counted under."""
        return (self.name,) if self.address in (None, self.name) else (self.name, str(self.address))


NOBODY = FlightCaller()
"""The service itself."""


class RunPlace:
    """The place of one run. While the run waits for a lane of the node, another run may take the place.
    After the lane it goes on at once, even if all places are taken: a lane admits few runs."""

    def __init__(self, places: "RunPlaces", caller: FlightCaller) -> None:
        self._places = places
        self._caller = caller
        self._away = 0
        self._has_ended = False

    def step_out(self) -> None:
        """The run waits for a lane. Parts of it may wait at the same time."""
        self._away += 1
        if self._away == 1 and not self._has_ended:
            self._places.move(-1, 1)

    def step_in(self) -> None:
        """A part of the run has waited. When none waits any more, the run takes its place again."""
        self._away -= 1
        if self._away == 0 and not self._has_ended:
            self._places.move(1, -1)

    def end(self) -> None:
        """The run has ended."""
        if not self._has_ended:
            self._has_ended = True
            self._places.end_run(self._caller, self._away > 0)


@dataclass(slots=True, eq=False)
class Turn:
    """A run that waits. ``place``: set when it may start; None: it need not start any more."""

    caller: FlightCaller
    size: int
    place: "asyncio.Future[RunPlace | None]"

    def withdraw(self) -> None:
        """It need not start any more."""
        if not self.place.done():
            self.place.set_result(None)

    def give_back(self) -> None:
        """Frees the place that came while the run gave up."""
        is_granted = self.place.done() and not self.place.cancelled() and self.place.exception() is None
        if is_granted and (place := self.place.result()) is not None:
            place.end()


@dataclass(slots=True)
class RunPlaces:
    """At most ``places`` runs at once, apart from those that ``step_in`` again. A caller has at most a third
    of them under way, waiting for lanes or not, and never takes the last free place while it has a run under
    way."""

    places: int = PLACES
    max_waiting: int = MAX_WAITING
    _held: int = 0
    _in_lanes: int = 0
    _under_way: Counter[str] = field(default_factory=Counter)
    _lines: OrderedDict[str, deque[Turn]] = field(default_factory=OrderedDict)
    """In the order of their turns."""
    _waiting: int = 0
    _waiting_bytes: int = 0

    def count_held(self) -> int:
        """The number of places in use."""
        return self._held

    def count_waiting(self) -> int:
        """The number of runs that wait: for their turn, or for a lane."""
        return self._waiting + self._in_lanes

    def share(self) -> int:
        """How many runs of one caller may be under way."""
        return max(1, self.places // 3)

    def take_now(self, caller: FlightCaller) -> RunPlace | None:
        """A place if the run may start at once. None: it has to wait, or its caller has others that wait."""
        if caller.name in self._lines or not self._may_start(caller):
            return None
        return self._start(caller)

    async def wait(
        self, caller: FlightCaller, size: int = 0, turns: set[Turn] | None = None
    ) -> RunPlace | None:
        """A place, when the caller's turn comes; None: the turn was withdrawn. ``size``: bytes that the run
        holds while it waits. ``turns``: holds the turn while it waits. Raises ServiceFull (busy): another
        process may have a place; it counts where the caller's own runs are the reason."""
        turn = Turn(caller, size, asyncio.get_running_loop().create_future())
        self._join(turn)
        turns = set() if turns is None else turns
        turns.add(turn)
        try:
            async with asyncio.timeout(caller.wait_s):
                return await turn.place
        except BaseException as error:
            turn.give_back()
            if isinstance(error, TimeoutError):
                raise (_own_runs() if self._is_own_doing(caller) else _no_place()) from None
            raise
        finally:
            turns.discard(turn)
            self._leave(turn)

    @contextlib.asynccontextmanager
    async def hold(self, caller: FlightCaller, size: Callable[[], int] = int) -> AsyncIterator[None]:
        """Holds a place while the block runs. Raises as ``wait``."""
        place = self.take_now(caller) or await self.wait(caller, size())
        assert place is not None
        with use_place(place):
            yield

    def move(self, held: int, in_lanes: int) -> None:
        """Changes how many runs hold a place, and how many wait for lanes."""
        self._held += held
        self._in_lanes += in_lanes
        self._serve()

    def end_run(self, caller: FlightCaller, is_in_lane: bool) -> None:
        """A run has ended."""
        for name in caller.names():
            self._under_way[name] -= 1
            if not self._under_way[name]:
                del self._under_way[name]
        self.move(*((0, -1) if is_in_lane else (-1, 0)))

    def _may_start(self, caller: FlightCaller) -> bool:
        free = self.places - self._held
        most = max(self._under_way[name] for name in caller.names())
        has_room = free > 0 and self._in_lanes < self.max_waiting
        return has_room and most < self.share() and (free > 1 or not most)

    def _is_own_doing(self, caller: FlightCaller) -> bool:
        """Whether the caller's own runs are why it waits."""
        is_full = any(self._under_way[name] >= self.share() for name in caller.names())
        return is_full or len(self._lines.get(caller.name, ())) >= MAX_LINE

    def _start(self, caller: FlightCaller) -> RunPlace:
        self._under_way.update(caller.names())
        self._held += 1
        return RunPlace(self, caller)

    def _join(self, turn: Turn) -> None:
        line = self._lines.get(turn.caller.name, deque())
        if len(line) >= MAX_LINE:
            raise _own_runs()
        is_long = self.count_waiting() >= self.max_waiting
        is_full = is_long or self._waiting_bytes + turn.size > MAX_WAITING_BYTES
        if is_full and not self._displace(len(line)):
            raise _no_place()
        self._lines.setdefault(turn.caller.name, line).append(turn)
        self._waiting += 1
        self._waiting_bytes += turn.size
        self._serve()

    def _displace(self, length: int) -> bool:
        """Refuses the newest run of the longest line, if that line is longer by more than one."""
        longest = max(self._lines.values(), key=len, default=deque[Turn]())
        if len(longest) <= length + 1:
            return False
        last = longest[-1]
        last.place.set_exception(_no_place())
        self._leave(last)
        return True

    def _leave(self, turn: Turn) -> None:
        line = self._lines.get(turn.caller.name, deque())
        if turn in line:
            line.remove(turn)
            self._waiting -= 1
            self._waiting_bytes -= turn.size
            if not line:
                del self._lines[turn.caller.name]

    def _serve(self) -> None:
        """Gives free places to waiting runs, one of each line in turn."""
        while self._held < self.places and (turn := self._next(self._lines.values())):
            self._lines.move_to_end(turn.caller.name)
            self._leave(turn)
            if not turn.place.done():
                turn.place.set_result(self._start(turn.caller))

    def _next(self, lines: Iterable[deque[Turn]]) -> Turn | None:
        return next((line[0] for line in lines if self._may_start(line[0].caller)), None)


@contextlib.contextmanager
def use_place(place: RunPlace) -> Iterator[None]:
    """Runs the block on this place, and frees it at the end."""
    token = HELD.set(place)
    try:
        yield
    finally:
        HELD.reset(token)
        place.end()
