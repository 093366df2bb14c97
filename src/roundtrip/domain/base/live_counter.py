"""A count that changes, minute by minute, for as long as somebody asks back."""

from bisect import bisect_right
from dataclasses import dataclass, field

KEPT_MINUTES = 8 * 24 * 60
"""Eight days."""


@dataclass(slots=True)
class HolderMinutes:
    """How many wallets held the token at the end of each minute in which that changed."""

    numbers: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def put(self, minute: int, count: int) -> None:
        """How many there are in a minute, later than all before. A clock that goes back stands still."""
        if not self.numbers or minute > self.numbers[-1]:
            if self.counts and self.counts[-1] == count:
                return
            self.numbers.append(minute)
            self.counts.append(count)
            # The last one before what is kept tells of the first minutes of it.
            gone = bisect_right(self.numbers, minute - KEPT_MINUTES) - 1
            if gone > 0:
                del self.numbers[:gone]
                del self.counts[:gone]
        else:
            self.counts[-1] = count

    def at(self, minute: int) -> int | None:
        """None: before the first, or no more kept."""
        found = bisect_right(self.numbers, minute)
        return self.counts[found - 1] if found else None
