"""When a call is tried again. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from .errors import ClientError, ServiceError

PASSING = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_FIRST_WAIT_S = 0.5
_LONGEST_BACKOFF_S = 30.0


@dataclass(frozen=True, slots=True)
class Retries:
    """``attempts``: how often a call is sent at most; None: without end. ``longest_wait_s``: a call that
    would have to wait longer fails at once, and its error says how long."""

    attempts: int | None = 4
    longest_wait_s: float = 65.0


class Attempts:
    """The attempts of one call. ``random``: numbers from 0 to 1, so that clients do not return together."""

    def __init__(self, retries: Retries, repeatable: bool, random: Callable[[], float]) -> None:
        self._retries = retries
        self._repeatable = repeatable
        self._random = random
        self._failed = 0

    def wait_s(self, error: ClientError, was_sent: bool = True) -> float:
        """Seconds until the next attempt. Raises the error where there is none. A call that is not repeatable
        is sent again only where it certainly did nothing: it was refused (429), or never sent."""
        self._failed += 1
        status = error.status if isinstance(error, ServiceError) else None
        is_passing = status is None or status in PASSING
        was_done = was_sent and status != 429
        if not is_passing or (was_done and not self._repeatable):
            raise error
        if self._retries.attempts is not None and self._failed >= self._retries.attempts:
            raise error
        wait_s = error.retry_after_s if isinstance(error, ServiceError) else None
        if wait_s is None:
            longest_s = min(_FIRST_WAIT_S * 2.0 ** min(self._failed - 1, 16), _LONGEST_BACKOFF_S)
            return longest_s * (0.5 + self._random() / 2)
        if wait_s > self._retries.longest_wait_s:
            raise error
        return wait_s


def read_retry_after(text: str | None, now_s: float) -> float | None:
    """Seconds to wait by a Retry-After header, which names seconds or a date; None where it is missing or
    wrong. ``now_s``: seconds since 1970."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now_s, 0.0)
