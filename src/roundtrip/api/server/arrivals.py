"""The requests that have arrived and wait to be started: in which order, and which of them are refused. The
caller gives the time."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

TARGET_S, INTERVAL_S = 0.005, 0.100
"""A delay that stays above the target for an interval stands: the process gets more than it can do. One that
stays below for an interval has ended. The figures are those of RFC 8289."""
_COUNTS_S = 0.025
"""How much of the time between two looks counts at most: a suspended process was not behind."""
TURN_S = 0.004
"""If a turn of the event loop uses the processor for longer, the next one starts fewer requests."""
MOST_STARTS = 32
CALM_STARTS = 4
"""A turn that starts no more, and in which none waits, is not measured: reading the processor's time costs a
fiftieth of a shared answer."""
PAGES_TURN = 4
"""One start of so many is a page's, if a page waits."""
CallerSort = Literal["keyed", "page", "other"]
"""Who sent a request, in the order in which they are served: a caller with a key, a person, or any other."""
PATIENCE_S: dict[CallerSort, float] = {"keyed": 0.040, "page": 0.020, "other": 0.010}
"""How long a request may wait while the delay of its sort stands."""
TURNS_AHEAD = 2
"""While it stands, no more wait than so many turns start."""


class StandingDelay:
    """Whether the delay of a queue stands, as in CoDel: by the delay of the request that has waited longest,
    target and interval. A burst that is soon done changes nothing."""

    def __init__(self) -> None:
        self.stands = False
        self._looked_s: float | None = None
        self._other_s = 0.0
        """For how long the delay has been on the other side of the target."""

    def look(self, now_s: float, delay_s: float) -> None:
        """Records the delay at a time. 0: nobody waits."""
        spent_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        self._looked_s = now_s
        if (delay_s > TARGET_S) == self.stands:
            self._other_s = 0.0
            return
        # Idle time counts whole: nobody waited.
        self._other_s += spent_s if self.stands else min(spent_s, _COUNTS_S)
        if self._other_s >= INTERVAL_S:
            self.stands, self._other_s = not self.stands, 0.0


@dataclass(slots=True, eq=False)
class Arrival:
    """A request whose head was read at ``came_s``. Either ``start`` or ``refuse`` is called, once."""

    came_s: float
    start: Callable[[], None]
    refuse: Callable[[float], None]
    """With how many seconds it has waited."""


@dataclass(slots=True)
class _Line:
    """The waiting requests of one sort, the oldest first."""

    waiting: deque[Arrival] = field(default_factory=deque)
    delay: StandingDelay = field(default_factory=StandingDelay)

    def look(self, now_s: float) -> None:
        """Looks at the delay of the oldest one."""
        self.delay.look(now_s, now_s - self.waiting[0].came_s if self.waiting else 0.0)

    def take(self) -> Arrival:
        """The oldest one; while the delay stands the newest, as the oldest will not be in time."""
        return self.waiting.pop() if self.delay.stands else self.waiting.popleft()


class ArrivalQueue:
    """Starts few requests in each turn of the event loop, so that turns stay short: callers with a key before
    the others, with a part for pages. While the delay of a sort stands, refuses those of it that wait for
    longer than its patience. The caller ends turns; times are monotonic seconds."""

    def __init__(self) -> None:
        self._lines = {sort: _Line() for sort in PATIENCE_S}
        self._starts_a_turn = MOST_STARTS
        self._started = 0
        self._waiting = 0
        self._since_page = 0

    def starts_now(self) -> bool:
        """Whether the request that has just arrived may be started at once: none waits, and this turn has
        room for it."""
        if self._waiting or self._started >= self._starts_a_turn:
            return False
        self._started += 1
        return True

    def add(self, sort: CallerSort, arrival: Arrival) -> None:
        """Lets a request wait."""
        line = self._lines[sort]
        if not line.waiting:
            line.look(arrival.came_s)
        line.waiting.append(arrival)
        self._waiting += 1

    def count_waiting(self) -> int:
        """How many requests wait."""
        return self._waiting

    def is_calm(self) -> bool:
        """Whether this turn need not be measured."""
        return not self._waiting and self._started <= CALM_STARTS

    def end_calm_turn(self) -> None:
        """Ends a turn that was not measured."""
        self._started = 0
        if self._starts_a_turn < MOST_STARTS:
            self._starts_a_turn += 1

    def begin_turn(self) -> None:
        """Makes room for further requests, before it is known how long the last ones take."""
        self._started = 0

    def end_turn(self, now_s: float, took_s: float) -> bool:
        """Ends a turn that used the processor so long: refuses requests that have waited too long, and starts
        those that the next turn has room for. Returns whether that turn has to be ended as well."""
        if took_s > TURN_S:
            self._starts_a_turn = max(1, self._starts_a_turn // 2)
        elif took_s < TURN_S / 2:
            self._starts_a_turn = min(MOST_STARTS, self._starts_a_turn + 1)
        self._started = 0
        for sort, line in self._lines.items():
            line.look(now_s)
            while line.delay.stands and line.waiting and self._is_late(line, now_s - PATIENCE_S[sort]):
                late = line.waiting.popleft()
                self._waiting -= 1
                late.refuse(now_s - late.came_s)
        while self._started < self._starts_a_turn and self._waiting:
            self._started += 1
            self._waiting -= 1
            self._next_line().take().start()
        return self._started > 0

    def _is_late(self, line: _Line, before_s: float) -> bool:
        """Whether the oldest one has waited too long, or will have: too many have come after it."""
        return line.waiting[0].came_s < before_s or len(line.waiting) > TURNS_AHEAD * self._starts_a_turn

    def _next_line(self) -> _Line:
        """The line whose turn it is; at least one has a request."""
        pages = self._lines["page"]
        self._since_page += 1
        if pages.waiting and self._since_page >= PAGES_TURN:
            self._since_page = 0
            return pages
        return next(line for line in self._lines.values() if line.waiting)
