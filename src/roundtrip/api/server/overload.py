"""How far the loop is behind, and what is taken on then. Time comes in."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from roundtrip.chain.rpc.background import run_in_background

TICK_S = 0.05
LATE_S = 0.15
"""Later than this the loop is behind."""
RUNS_AFTER_S, SHEDS_AFTER_S = 1.0, 2.0
"""A loop that was behind at every look for so long has more runs under way than it can do; and for so long
cannot even answer what is shared."""
OVERDUE_S, SHEDS_S = 0.05, 10.0
"""A loop that sheds turns away whoever comes while its next look is overdue by so much; and it sheds until
nobody was turned away for so long."""
LEAST_RUNNING = 8
_CUT, _GROWS_S = 0.7, 5.0
"""What is left of the runs that may be under way, at most every ``RUNS_AFTER_S``; how many more a second may
be while the loop is not behind."""
_COUNTS_S = 0.5
"""So much of the time since the last look counts at most: a process that stood still was not behind then."""


class RunLimit:
    """How many runs may be under way, ``most`` at most, and who is turned away.

    A single look says nothing: a burst makes the loop late, and is over. What counts is a delay that stands,
    as nobody who waits behind it is answered sooner for having come. Then the loop sheds: who comes in a turn
    of the loop that is long already is turned away at once, so that no turn gets much longer than that, and
    nobody is told late. ``clock``: as the loop's, in seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._allowed = float(most)
        self._sheds_until_s = -1e9
        self._due_s = 1e18
        self._looked_s: float | None = None
        self._stood_s: float | None = None
        self._cut_s = 0.0

    def allowed_runs(self) -> int:
        """So many runs."""
        return int(self._allowed)

    def turns_away(self) -> bool:
        """Whether the request that is here now is turned away."""
        now_s = self._clock()
        if now_s >= self._sheds_until_s or now_s - self._due_s < OVERDUE_S:
            return False
        self._sheds_until_s = now_s + SHEDS_S
        return True

    def note(self, now_s: float, late_s: float, running: int) -> None:
        """The loop came back so late, with so many runs under way."""
        spent_s = 0.0 if self._looked_s is None else min(_COUNTS_S, now_s - self._looked_s)
        self._looked_s, self._due_s = now_s, now_s + TICK_S
        if late_s < LATE_S:
            self._stood_s = None
            self._allowed = min(self._most, self._allowed + _GROWS_S * spent_s)
            return
        if self._stood_s is None:
            # However late one look is: a process that stood still goes on with what it had.
            self._stood_s = 0.0
        else:
            self._stood_s += spent_s
        if self._stood_s >= RUNS_AFTER_S and now_s - self._cut_s >= RUNS_AFTER_S:
            least = min(LEAST_RUNNING, self._most)
            self._allowed = max(least, min(self._allowed, running) * _CUT)
            self._cut_s = now_s
        if self._stood_s >= SHEDS_AFTER_S:
            self._sheds_until_s = now_s + SHEDS_S

    @contextlib.asynccontextmanager
    async def watch_loop(self, running: Callable[[], int]) -> AsyncIterator[None]:
        """Looks at the loop while the block runs. ``running``: how many runs are under way."""
        async with run_in_background(self._watch(running), "pressure"):
            yield

    async def _watch(self, running: Callable[[], int]) -> None:
        now_s = asyncio.get_running_loop().time
        while True:
            due_s = now_s() + TICK_S
            await asyncio.sleep(TICK_S)
            self.note(now_s(), now_s() - due_s, running())
