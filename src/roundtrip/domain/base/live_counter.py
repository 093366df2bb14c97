"""The history of a count, by minute, over the last days."""

from bisect import bisect_right
from dataclasses import dataclass, field

KEPT_MINUTES = 8 * 24 * 60
"""Eight days."""


@dataclass(slots=True)
class HolderMinutes:
    """How many wallets held the token at the end of each minute in which that number changed."""

    numbers: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def put(self, minute: int, count: int) -> None:
        """Records the count of a minute. A minute that is not later than the last one replaces the last
        count."""
        if not self.numbers or minute > self.numbers[-1]:
            if self.counts and self.counts[-1] == count:
                return
            self.numbers.append(minute)
            self.counts.append(count)
            # The last entry before the kept range gives the count at its start.
            expired = bisect_right(self.numbers, minute - KEPT_MINUTES) - 1
            if expired > 0:
                del self.numbers[:expired]
                del self.counts[:expired]
        else:
            self.counts[-1] = count

    def at(self, minute: int) -> int | None:
        """The count at the end of a minute; None: before the first entry, or no longer kept."""
        end = bisect_right(self.numbers, minute)
        return self.counts[end - 1] if end else None
