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
    ) -> None:
        self.encode_refusal = encode_refusal
        self._sort_caller = sort_caller
        self._queue = queue or ArrivalQueue()
        self._clock = clock
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
            self._begin_turn(self._clock())

    def _begin_turn(self, now_s: float) -> None:
        # It ends behind all that has been started in it: the loop runs callbacks in their order.
        self._is_turning = True
        asyncio.get_running_loop().call_soon(self._end_turn, now_s)

    def _end_turn(self, began_s: float) -> None:
        now_s = self._clock()
        if self._queue.end_turn(now_s, now_s - began_s):
            self._begin_turn(now_s)
        else:
            self._is_turning = False
