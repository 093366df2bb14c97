"""How far behind its primary a replica is, and how long one that failed is left alone. Pure: times are
seconds of one monotonic clock, positions are bytes of the write-ahead log."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

MAX_BEHIND_S = 2.0
"""A replica further behind does not answer."""
UNFLUSHED_S = 0.6
"""How long a commit that does not wait for the disk is in no log yet: three times PostgreSQL's
``wal_writer_delay``. The part of ``MAX_BEHIND_S`` that no position shows."""
FIRST_LEAVE_S = 1.0
LONGEST_LEAVE_S = 30.0
FORGIVEN_S = 60.0
"""After so long without a fault the next one is a first one."""

T = TypeVar("T")


class _LogEnd(NamedTuple):
    at_s: float
    position: int


@dataclass(slots=True)
class PrimaryLog:
    """Where the primary's log ended lately. ``position``: at ``at_s`` or a little later."""

    _ends: deque[_LogEnd] = field(default_factory=deque)

    def note(self, at_s: float, position: int) -> None:
        """Adds the newest end. One before the last is another primary's: all others are dropped."""
        if self._ends and position < self._ends[-1].position:
            self._ends.clear()
        self._ends.append(_LogEnd(at_s, position))
        while self._ends[0].at_s < at_s - 2 * MAX_BEHIND_S:
            self._ends.popleft()

    def clear(self) -> None:
        """Forgets all: the next primary may be another one."""
        self._ends.clear()

    def current_until(self, replayed: int) -> float | None:
        """Until when a replica has every commit, if it had replayed that much before the last ``note``. None:
        not known; minus infinity: it is ahead of the primary, so its history is another one."""
        if self._ends and replayed > self._ends[-1].position:
            return -math.inf
        return max((end.at_s for end in self._ends if end.position <= replayed), default=None)


@dataclass(slots=True)
class ReplicaStanding:
    """What is known of one replica. ``current_s``: it has every commit until then; minus infinity: it does
    not answer, or is no replica. ``left_until_s``: it failed, and is left alone until then."""

    current_s: float = -math.inf
    left_until_s: float = -math.inf
    _faults: int = 0

    def note_fault(self, now_s: float) -> None:
        """Leaves it alone: a second at first, twice as long each time, half a minute at most. Faults of
        requests that began before the replica was left are one fault."""
        if now_s < self.left_until_s:
            return
        if now_s > self.left_until_s + FORGIVEN_S:
            self._faults = 0
        self.left_until_s = now_s + min(LONGEST_LEAVE_S, FIRST_LEAVE_S * 2.0**self._faults)
        self._faults = min(self._faults + 1, 10)

    def fits(self, now_s: float, primary_lost_s: float | None) -> bool:
        """Whether it may answer. ``primary_lost_s``: when a primary that is gone was last there. Nobody knows
        more than a replica that was current then; None: the primary is there."""
        judged_s = now_s if primary_lost_s is None else primary_lost_s
        return now_s >= self.left_until_s and judged_s - self.current_s <= MAX_BEHIND_S - UNFLUSHED_S


def pick_least_lent(fit: Sequence[T], lent: Sequence[int], turn: int) -> T | None:
    """The one with the fewest lent connections; of equals each in its ``turn``. None: there is none."""
    if not fit:
        return None
    order = sorted(range(len(fit)), key=lambda index: (lent[index], (index - turn) % len(fit)))
    return fit[order[0]]
