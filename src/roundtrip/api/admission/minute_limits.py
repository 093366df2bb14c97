"""Calls counted by the minute, in this process. The clock is passed in."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from roundtrip.domain.base.errors import LimitReached

WINDOW_MS = 60_000
MAX_LOADED = 1_000_000
"""Rows of recent calls that a process reads at its start."""
_MAX_CALLERS = 100_000
_OVERFLOW = "address:overflow"
"""The name that further callers without a key are counted under together, beyond ``_MAX_CALLERS``."""


class Ticket(msgspec.Struct, frozen=True):
    """One counted call: what is left of the minute, and what ``refund`` needs to uncount it. ``taken_ms``:
    since 1970."""

    caller: str
    taken_ms: int
    limit: int
    remaining: int


def over(limit: int, wait_ms: int) -> LimitReached:
    """The refusal of a caller that has to wait ``wait_ms`` for its next call."""
    wait_s = -(-wait_ms // 1000)
    text = f"You made more than {limit:,} calls in a minute. Retry in {wait_s} s."
    return LimitReached("rate_limited", text, wait_s, limit)


@dataclass(slots=True)
class MinuteLimits:
    """At most ``limit`` calls in any sixty seconds, for each caller on its own. ``now_ms``: since 1970, since
    counts outlive the process.

    A counted call can be refunded, which limiter libraries cannot do for a moving window: an answer that the
    node's fault spoiled costs nobody a call.
    """

    now_ms: Callable[[], int]
    max_callers: int = _MAX_CALLERS
    _calls: OrderedDict[str, deque[int]] = field(default_factory=OrderedDict)

    def load(self, calls: Iterable[tuple[str, int, int]]) -> None:
        """Remembers calls of before this process began: caller, when, how many; the oldest first."""
        for caller, taken_ms, count in calls:
            times = self._of(self._counted_as(caller))
            is_late = bool(times) and times[-1] > taken_ms
            times.extend([taken_ms] * count)
            if is_late:
                # Others were counted before these could be read.
                in_order = sorted(times)
                times.clear()
                times.extend(in_order)

    def take(self, caller: str, limit: int) -> Ticket:
        """Counts one call. Raises LimitReached (rate_limited) with the seconds to wait."""
        now = self.now_ms()
        caller = self._counted_as(caller)
        calls = self._of(caller)
        # The clock was put back: calls that now lie in the future would count until it gets there.
        if calls and calls[-1] > now + WINDOW_MS:
            calls.clear()
        while calls and calls[0] <= now - WINDOW_MS:
            calls.popleft()
        if len(calls) >= limit:
            raise over(limit, calls[len(calls) - limit] + WINDOW_MS - now)
        taken = max(now, calls[-1]) if calls else now
        calls.append(taken)
        return Ticket(caller, taken, limit, limit - len(calls))

    def refund(self, ticket: Ticket) -> Ticket:
        """Uncounts a call."""
        calls = self._calls.get(ticket.caller)
        if calls is None or ticket.taken_ms not in calls:
            return ticket
        calls.remove(ticket.taken_ms)
        return msgspec.structs.replace(ticket, remaining=ticket.remaining + 1)

    def _of(self, caller: str) -> deque[int]:
        calls = self._calls.setdefault(caller, deque())
        self._calls.move_to_end(caller)
        return calls

    def _counted_as(self, caller: str) -> str:
        """The caller's own name while there is room: no minute is dropped before it is over. Accounts always
        have their own."""
        if caller in self._calls or len(self._calls) < self.max_callers:
            return caller
        oldest, calls = next(iter(self._calls.items()))
        if not calls or calls[-1] <= self.now_ms() - WINDOW_MS:
            del self._calls[oldest]
            return caller
        return caller if caller.startswith("account:") else _OVERFLOW


class MinuteCounter(Protocol):
    """Counts calls by the minute. ``is_lasting``: it remembers them beyond this process by itself; else
    the gate writes them down."""

    @property
    def is_lasting(self) -> bool: ...

    async def take(self, caller: str, limit: int) -> Ticket:
        """Counts one call. Raises LimitReached (rate_limited) with the seconds to wait."""

    def refund(self, ticket: Ticket) -> Ticket:
        """Uncounts a call, and waits for nothing."""


@dataclass(frozen=True, slots=True)
class LocalMinutes:
    """Minutes of this process alone."""

    limits: MinuteLimits
    is_lasting: bool = False

    async def take(self, caller: str, limit: int) -> Ticket:
        """As ``MinuteLimits.take``."""
        return self.limits.take(caller, limit)

    def refund(self, ticket: Ticket) -> Ticket:
        """As ``MinuteLimits.refund``."""
        return self.limits.refund(ticket)
