"""Takes requests in whose heads have been read: starts them in turns of the event loop, or refuses them with
their bodies unread."""

import asyncio
import time
from collections.abc import Callable

from starlette.types import Scope

from .arrivals import Arrival, ArrivalQueue, CallerSort


class _QueueClock:
    """Seconds for the delays of requests: processor time while one waits, time as it passes otherwise. What
    other processes take of the processor is no sign that this one gets too much, and refuses nobody."""

    def __init__(self, clock: Callable[[], float], processor_time: Callable[[], float]) -> None:
        self._clocks = clock, processor_time
        self._is_working = False
        self._was_s, self._since_s = 0.0, clock()

    def now_s(self) -> float:
        """The time, from an arbitrary start."""
        return self._was_s + self._clocks[self._is_working]() - self._since_s

    def switch(self, is_working: bool) -> None:
        """From now on processor time passes, or all time."""
        if is_working != self._is_working:
            self._was_s = self.now_s()
            self._is_working = is_working
            self._since_s = self._clocks[is_working]()


class Reception:
    """The requests of one process. ``sort_caller``: who sent a request; None: it never waits and is never
    refused. ``encode_refusal``: the whole answer to a request that was refused after so many seconds; False:
    its connection is closed after it."""

    def __init__(
        self,
        sort_caller: Callable[[Scope], CallerSort | None],
        encode_refusal: Callable[[Scope, float, bool], bytes],
        queue: ArrivalQueue | None = None,
        clock: Callable[[], float] = time.monotonic,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self.encode_refusal = encode_refusal
        self._sort_caller = sort_caller
        self._queue = queue or ArrivalQueue()
        self._clock = clock
        self._queue_clock = _QueueClock(clock, processor_time)
        self._is_turning = False
        self._began_s: float | None = None
        """When the measured turn began, by the queue's clock."""
        self._has_run = False
        """What was started in the measured turn has run."""

    def starts_now(self) -> bool:
        """Whether the request that has just arrived may be started at once; else it has to ``wait``."""
        if not self._is_turning:
            self._begin_turn()
        starts = self._queue.starts_now()
        if self._began_s is None and not self._queue.is_calm():
            self._measure_turn()
        return starts

    def wait(self, scope: Scope, start: Callable[[], None], refuse: Callable[[float], None]) -> None:
        """Calls ``start``, now or in a later turn, or ``refuse`` with the seconds that have passed."""
        sort = self._sort_caller(scope)
        if sort is None:
            start()
            return
        if self._began_s is None:
            self._measure_turn()
        came_s = self._clock()
        self._queue.add(
            sort, Arrival(self._queue_clock.now_s(), start, lambda _: refuse(self._clock() - came_s))
        )

    def _begin_turn(self) -> None:
        self._is_turning = True
        asyncio.get_running_loop().call_soon(self._end_turn)

    def _measure_turn(self) -> None:
        self._queue_clock.switch(True)
        self._began_s = self._queue_clock.now_s()

    def _end_turn(self) -> None:
        self._is_turning = False
        if self._began_s is None:
            self._queue.end_calm_turn()
        elif not self._has_run:
            # The loop runs callbacks in their order: this one before all that was started since.
            self._has_run = True
            self._queue.begin_turn()
            self._begin_turn()
        else:
            now_s = self._queue_clock.now_s()
            if self._queue.end_turn(now_s, now_s - self._began_s):
                self._began_s = self._queue_clock.now_s()
                self._begin_turn()
            else:
                self._began_s, self._has_run = None, False
                self._queue_clock.switch(False)
