"""Logs failures of this service at a bounded rate, so that strangers cannot fill the disk."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from roundtrip.domain.base.errors import RoundtripError

MAX_A_SECOND = 20
log = structlog.get_logger(__name__)


class TracedFailure(RoundtripError):
    """A failure that the caller did not cause. Its message names the request id under which it is logged."""

    def __init__(self, code: str, message: str, request: str, retry_after_s: int | None = None) -> None:
        super().__init__(code, f"{message} Request {request}.", retry_after_s)
        self.reason = message
        self.request_id = request


@dataclass(slots=True)
class FailureLog:
    """Logs at most ``MAX_A_SECOND`` failures a second; the next line says how many were left out. The
    metrics count all of them. ``clock``: seconds from any origin."""

    clock: Callable[[], float]
    _second: int = -1
    _written: int = 0
    _left_out: int = 0

    def write(self, error: TracedFailure, operation: str, door: str) -> None:
        """Logs one failure, if this second has room."""
        second = int(self.clock())
        if second != self._second:
            self._second, self._written = second, 0
        if self._written >= MAX_A_SECOND:
            self._left_out += 1
            return
        left_out = {"left_out": self._left_out} if self._left_out else {}
        self._written, self._left_out = self._written + 1, 0
        log.warning(
            "a request failed", request=error.request_id, operation=operation, door=door, code=error.code,
            said=error.reason, **left_out,
        )  # fmt: skip
