"""How far the loop is behind, and what is taken on then. Time comes in."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from roundtrip.chain.background import beside

TICK_S = 0.05
LATE_S, LATE_FOR_S = 0.05, 0.25
"""A loop that was late at every look for so long has more runs under way than it can do."""
FAR_S, FAR_FOR_S = 0.1, 1.0
"""One that was so late for so long cannot even answer what is shared."""
LEAST_RUNNING = 4
_CUT, _GROWS_S = 0.7, 5.0
"""What is left of the runs that may be under way, at most every ``LATE_FOR_S``; how many more a second may be
while the loop is in time."""
_AWAY_RISES_S, _AWAY_FALLS_S = 1.0, 0.1
"""By how much a second the share that is turned away changes: while the loop is far behind, and while not."""


class Pressure:
    """How many runs may be under way, ``most`` at most, and who is turned away.

    A single look says nothing: a burst makes the loop late, and is over. What counts is a delay that stands,
    as nobody who waits behind it is answered sooner for having come.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = float(most)
        self._away = 0.0
        self._owed = 0.0
        self._looked_s: float | None = None
        self._late_since_s: float | None = None
        self._far_since_s: float | None = None

    def allowed(self) -> int:
        """So many runs."""
        return int(self._allowed)

    def turns_away(self) -> bool:
        """Whether this request, of a share of all of them, is turned away."""
        self._owed += self._away
        if self._owed < 1.0:
            return False
        self._owed -= 1.0
        return True

    def note(self, now_s: float, late_s: float, running: int) -> None:
        """The loop came back so late, with so many runs under way."""
        spent_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        self._looked_s = now_s
        self._late_since_s = _since(self._late_since_s, now_s, late_s, LATE_S)
        self._far_since_s = _since(self._far_since_s, now_s, late_s, FAR_S)
        if self._late_since_s is None:
            self._allowed = min(self._most, self._allowed + _GROWS_S * spent_s)
        elif now_s - self._late_since_s >= LATE_FOR_S:
            least = min(LEAST_RUNNING, self._most)
            self._allowed = max(least, min(self._allowed, running) * _CUT)
            self._late_since_s = now_s
        if self._far_since_s is None:
            self._away = max(0.0, self._away - _AWAY_FALLS_S * spent_s)
        elif self._away or now_s - self._far_since_s >= FAR_FOR_S:
            self._away = min(1.0, self._away + _AWAY_RISES_S * spent_s)

    @contextlib.asynccontextmanager
    async def watched(self, running: Callable[[], int]) -> AsyncIterator[None]:
        """Looks at the loop while the block runs. ``running``: how many runs are under way."""
        async with beside(self._watch(running), "pressure"):
            yield

    async def _watch(self, running: Callable[[], int]) -> None:
        now_s = asyncio.get_running_loop().time
        while True:
            due_s = now_s() + TICK_S
            await asyncio.sleep(TICK_S)
            self.note(now_s(), now_s() - due_s, running())


def _since(known_s: float | None, now_s: float, late_s: float, bound_s: float) -> float | None:
    """Since when every look found it as late; None: the last one did not."""
    if late_s < bound_s:
        return None
    return now_s - late_s if known_s is None else known_s
