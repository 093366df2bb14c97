"""Takes requests in whose heads have been read: starts them in turns of the event loop, or refuses them with
their bodies unread."""

import asyncio
import time
from collections.abc import Callable

from starlette.types import Scope

from .arrivals import Arrival, ArrivalQueue, CallerSort


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
        self._processor_time = processor_time
        self._is_turning = False

    def take_in(self, scope: Scope, start: Callable[[], None], refuse: Callable[[float], None]) -> None:
        """Calls ``start``, now or in a later turn, or ``refuse`` with the seconds that it has waited."""
        if self._queue.starts_now():
            start()
        else:
            sort = self._sort_caller(scope)
            if sort is None:
                start()
            else:
                self._queue.add(sort, Arrival(self._clock(), start, refuse))
        if not self._is_turning:
            self._is_turning = True
            self._begin_turn()

    def _begin_turn(self) -> None:
        # It ends behind all that has been started in it: the loop runs callbacks in their order.
        asyncio.get_running_loop().call_soon(self._end_turn, self._processor_time())

    def _end_turn(self, before_s: float) -> None:
        # Of processor time: a turn that waited for a processor would be no shorter if it started less.
        self._is_turning = self._queue.end_turn(self._clock(), self._processor_time() - before_s)
        if self._is_turning:
            self._begin_turn()
