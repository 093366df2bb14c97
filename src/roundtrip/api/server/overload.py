"""Overload control: measures the event loop's delay and limits what the service accepts. The caller gives the
time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from roundtrip.chain.rpc.background import run_in_background

TICK_S = 0.05
LATE_S = 0.15
"""A tick later than this means that the loop is behind."""
RUNS_AFTER_S, SHEDS_AFTER_S = 1.0, 2.0
"""A loop that was behind at every tick for ``RUNS_AFTER_S`` has too many runs under way; after
``SHEDS_AFTER_S`` it cannot even serve shared answers."""
OVERDUE_S, SHEDS_S = 0.05, 10.0
"""A loop that sheds refuses requests while its next tick is overdue by ``OVERDUE_S``. It sheds until it has
refused none for ``SHEDS_S``."""
LEAST_RUNNING = 8
_CUT, _GROWS_S = 0.7, 5.0
"""The factor by which the limit of runs is cut, at most every ``RUNS_AFTER_S``; how many runs a second it
grows by while the loop is not behind."""
_COUNTS_S = 0.5
"""How much of the time since the last tick counts at most: a suspended process was not behind."""


class RunLimit:
    """How many runs may be under way, at most ``most``, and which requests are refused.

    A single late tick says nothing: it may be a short burst. Only a lasting delay counts. Then the loop
    sheds: it refuses requests at once that arrive in a turn that is long already, so that no turn gets much
    longer and refusals are fast. ``clock``: the event loop's, in seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._allowed = float(most)
        self._sheds_until_s = -1e9
        self._due_s = 1e18
        self._looked_s: float | None = None
        self._behind_s: float | None = None
        self._cut_s = 0.0

    def allowed_runs(self) -> int:
        """How many runs may be under way now."""
        return int(self._allowed)

    def should_shed(self) -> bool:
        """Whether to refuse the request that has just arrived."""
        now_s = self._clock()
        if now_s >= self._sheds_until_s or now_s - self._due_s < OVERDUE_S:
            return False
        self._sheds_until_s = now_s + SHEDS_S
        return True

    def record_delay(self, now_s: float, late_s: float, running: int) -> None:
        """Records a tick: the loop was ``late_s`` late, with ``running`` runs under way."""
        spent_s = 0.0 if self._looked_s is None else min(_COUNTS_S, now_s - self._looked_s)
        self._looked_s, self._due_s = now_s, now_s + TICK_S
        if late_s < LATE_S:
            self._behind_s = None
            self._allowed = min(self._most, self._allowed + _GROWS_S * spent_s)
            return
        if self._behind_s is None:
            # The first late tick does not count, however late: a suspended process keeps its limit.
            self._behind_s = 0.0
        else:
            self._behind_s += spent_s
        if self._behind_s >= RUNS_AFTER_S and now_s - self._cut_s >= RUNS_AFTER_S:
            least = min(LEAST_RUNNING, self._most)
            self._allowed = max(least, min(self._allowed, running) * _CUT)
            self._cut_s = now_s
        if self._behind_s >= SHEDS_AFTER_S:
            self._sheds_until_s = now_s + SHEDS_S

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
