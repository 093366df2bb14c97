"""An event loop whose time passes only while everybody waits: no machine, the same result every time."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Waits for no file: moves the loop's time instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("all wait, and nothing will happen")
        self.now_s += max(0.0, timeout)
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """``time``: seconds since it was made, those that its tasks have slept."""

    def __init__(self) -> None:
        self._simulated = _Selector()
        super().__init__(self._simulated)

    def time(self) -> float:
        return self._simulated.now_s

    def work(self, seconds: float) -> None:
        """The processor is busy for so long: nothing else happens meanwhile."""
        self._simulated.now_s += seconds


def simulate(main: Coroutine[Any, Any, T]) -> T:
    """Runs to the end in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
