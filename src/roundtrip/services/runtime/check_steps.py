"""The steps of checks under way, for people who wait for one."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

NoteStep = Callable[[str], None]
"""Adds a step to a check: nothing that strangers wrote."""


def ignore_step(text: str) -> None:
    """For a check that nobody follows."""


class CheckSteps:
    """The steps that each running check of this process has done, by the key that equal checks share."""

    def __init__(self) -> None:
        self._running: dict[str, list[str]] = {}

    @contextlib.contextmanager
    def follow(self, key: str) -> Iterator[NoteStep]:
        """Gives the block what adds steps to the check ``key``."""
        steps: list[str] = []
        self._running[key] = steps
        try:
            yield steps.append
        finally:
            if self._running.get(key) is steps:
                del self._running[key]

    def find(self, key: str) -> Sequence[str] | None:
        """The steps of the check that runs now; they grow until it ends. None: none runs in this process."""
        return self._running.get(key)
