"""Limits how many runs may be under way, by the event loop's delay and by the time that runs take. The caller
gives the time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

from roundtrip.chain.rpc.background import run_in_background

TICK_S = 0.05
LATE_S = 0.15
"""A tick later than this means that the loop is behind."""
RUNS_AFTER_S = 1.0
"""A loop that was behind at every tick for so long has too many runs under way."""
LEAST_RUNNING = 8
_CUT, _GROWS, _LEAST_GROWS = 0.7, 0.2, 1.0
"""The factor by which the limit of runs is cut; by what part of itself, and by how many runs at least, it
grows in a second while nothing is late."""
_COUNTS_S = 0.5
"""How much of the time since the last tick counts at most: a suspended process was not behind."""
FEW_RUNNING = 6
"""So few runs at once are never too many; the time that they take is what a run takes."""
SLOWER, SLOW_LOOK_S, LEAST_SEEN = 2.0, 0.25, 5
"""If runs, at least ``LEAST_SEEN`` in ``SLOW_LOOK_S``, take ``SLOWER`` times what runs of their names take
when few are under way, they wait for each other: in a node's lane, in the database, for a processor."""
SLOW_LOOKS = 4
"""Only so many slow looks in succession count: a burst of runs is slow, and soon done."""
LEAST_USUAL_S = 0.02
"""Shorter runs count as if they usually took so long: a turn of the loop is a large part of them."""
_LEARNS = 0.2
_MOST_NAMES = 1000


@dataclass(slots=True, eq=False)
class _TimedRun:
    """A run under way."""

    name: str
    began_s: float


@dataclass(slots=True)
class RunTimes:
    """How much slower runs are than when few of them are under way, by name."""

    _usual_s: dict[str, float] = field(default_factory=dict)
    _under_way: dict[_TimedRun, None] = field(default_factory=dict)
    _uncrowded: set[_TimedRun] = field(default_factory=set)
    """Those of them that have had few beside them all the time."""
    _ended: dict[str, list[float]] = field(default_factory=dict)

    def begin(self, name: str, now_s: float) -> _TimedRun:
        """A run begins."""
        run = _TimedRun(name, now_s)
        self._under_way[run] = None
        if len(self._under_way) > FEW_RUNNING:
            self._uncrowded.clear()
        else:
            self._uncrowded.add(run)
        return run

    def end(self, run: _TimedRun, now_s: float) -> None:
        """It has ended."""
        del self._under_way[run]
        took_s, usual_s = now_s - run.began_s, self._usual_s.get(run.name)
        if usual_s is not None:
            self._ended.setdefault(run.name, []).append(_times(took_s, usual_s))
        if run not in self._uncrowded:
            return
        self._uncrowded.discard(run)
        if usual_s is not None:
            self._usual_s[run.name] = usual_s + _LEARNS * (took_s - usual_s)
        elif len(self._usual_s) < _MOST_NAMES:
            self._usual_s[run.name] = took_s

    def take_slowness(self, now_s: float) -> float | None:
        """How many times the usual time the runs took that ended since the last call; None: too few to say.

        The median of the names' medians: expensive tokens and callers' own calls wait in lanes of their own,
        and must not look like a process that is behind.
        """
        ended, self._ended = self._ended, {}
        waiting: dict[str, list[float]] = {}
        for run in self._under_way:
            usual_s = self._usual_s.get(run.name)
            if usual_s is not None and run.name not in ended and now_s - run.began_s > usual_s:
                waiting.setdefault(run.name, []).append(_times(now_s - run.began_s, usual_s))
        found = [*ended.values(), *waiting.values()]
        if sum(map(len, found)) < LEAST_SEEN:
            return None
        return median(map(median, found))


def _times(took_s: float, usual_s: float) -> float:
    return took_s / max(usual_s, LEAST_USUAL_S)


class RunLimit:
    """How many runs may be under way, at most ``most``.

    A single late tick says nothing: it may be a short burst. Only a lasting delay counts. Runs that take much
    longer than usual count as well: more of them at once would only take longer still. ``clock``: monotonic
    seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._allowed = float(most)
        self._looked_s: float | None = None
        self._behind_s: float | None = None
        self._cut_s = 0.0
        self._times = RunTimes()
        self._slow_look_s = 0.0
        self._slow_looks = 0

    def allowed_runs(self) -> int:
        """How many runs may be under way now."""
        return int(self._allowed)

    @contextlib.contextmanager
    def measure_run(self, name: str) -> Iterator[None]:
        """Measures a run of this name while the block runs."""
        run = self._times.begin(name, self._clock())
        try:
            yield
        finally:
            self._times.end(run, self._clock())

    def record_delay(self, now_s: float, late_s: float, running: int) -> None:
        """Records a tick: the loop was ``late_s`` late, with ``running`` runs under way."""
        spent_s = 0.0 if self._looked_s is None else min(_COUNTS_S, now_s - self._looked_s)
        self._looked_s = now_s
        self._look_at_times(now_s, running)
        if self._slow_looks >= SLOW_LOOKS and self._slow_look_s == now_s:
            self._cut(max(FEW_RUNNING, min(self._allowed, running) * _CUT), now_s)
        if late_s < LATE_S:
            self._behind_s = None
            if now_s - self._cut_s >= RUNS_AFTER_S:
                self._allowed = min(
                    self._most, self._allowed + max(_LEAST_GROWS, _GROWS * self._allowed) * spent_s
                )
            return
        if self._behind_s is None:
            # The first late tick does not count, however late: a suspended process keeps its limit.
            self._behind_s = 0.0
        else:
            self._behind_s += spent_s
        if self._behind_s >= RUNS_AFTER_S and now_s - self._cut_s >= RUNS_AFTER_S:
            self._cut(max(LEAST_RUNNING, min(self._allowed, running) * _CUT), now_s)

    def _look_at_times(self, now_s: float, running: int) -> None:
        if now_s - self._slow_look_s < SLOW_LOOK_S:
            return
        self._slow_look_s = now_s
        slowness = self._times.take_slowness(now_s)
        is_slow = slowness is not None and slowness > SLOWER and running > FEW_RUNNING
        self._slow_looks = self._slow_looks + 1 if is_slow else 0

    def _cut(self, allowed: float, now_s: float) -> None:
        self._allowed = min(self._allowed, allowed)
        self._cut_s = now_s

    @contextlib.asynccontextmanager
    async def watch_loop(self, running: Callable[[], int]) -> AsyncIterator[None]:
        """Measures the loop while the block runs. ``running``: returns how many runs are under way."""
        async with run_in_background(self._watch(running), "pressure"):
            yield

    async def _watch(self, running: Callable[[], int]) -> None:
        now_s = asyncio.get_running_loop().time
        while True:
            due_s = now_s() + TICK_S
            await asyncio.sleep(TICK_S)
            self.record_delay(now_s(), now_s() - due_s, running())
