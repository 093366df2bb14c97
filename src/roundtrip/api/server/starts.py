"""Starts the requests that have arrived, few in each turn of the event loop, one of each caller in turn."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable

MAX_STARTS = 16
"""Some 2 ms of warm answers: as long as any other request waits for its next step."""


class FairStarts:
    """Starts the requests of each name in turn. It refuses none: a warm answer costs what a refusal costs.
    The length of a turn is fixed. ``call_soon``: calls in the next turn."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object] | None = None) -> None:
        self._call_soon = call_soon
        self._lines: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        self._started = 0
        self._is_turning = False

    def starts_now(self) -> bool:
        """Whether the request that has just arrived may be started at once; else it has to ``wait``."""
        if self._lines or self._started >= MAX_STARTS:
            return False
        self._started += 1
        self._begin_turn()
        return True

    def wait(self, caller: str, start: Callable[[], None]) -> None:
        """Calls ``start`` in a later turn."""
        self._lines.setdefault(caller, deque()).append(start)
        self._begin_turn()

    def _begin_turn(self) -> None:
        if not self._is_turning:
            self._is_turning = True
            (self._call_soon or asyncio.get_running_loop().call_soon)(self._turn)

    def _turn(self) -> None:
        self._started, self._is_turning = 0, False
        while self._lines and self._started < MAX_STARTS:
            caller, line = self._lines.popitem(last=False)
            self._started += 1
            self._begin_turn()
            line.popleft()()
            if line:
                self._lines[caller] = line
