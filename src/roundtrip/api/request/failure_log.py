"""Each failure of ours is a line of the log, but not too many of them: strangers could fill a disk."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

MOST_A_SECOND = 20
log = structlog.get_logger(__name__)


class LoggedFailure(Protocol):
    """A failure that its caller was told of."""

    code: str
    said: str
    request_id: str


@dataclass(slots=True)
class Failures:
    """Says what failed, ``MOST_A_SECOND`` times a second at most; how many were left out is told with the
    next one that is not. All of them are counted in the metrics. ``clock``: seconds, of any beginning."""

    clock: Callable[[], float]
    _second: int = -1
    _said: int = 0
    _left_out: int = 0

    def tell(self, error: LoggedFailure, operation: str, door: str) -> None:
        """One more."""
        second = int(self.clock())
        if second != self._second:
            self._second, self._said = second, 0
        if self._said >= MOST_A_SECOND:
            self._left_out += 1
            return
        more = {"left_out": self._left_out} if self._left_out else {}
        self._said, self._left_out = self._said + 1, 0
        log.warning(
            "a request failed", request=error.request_id, operation=operation, door=door, code=error.code,
            said=error.said, **more,
        )  # fmt: skip
