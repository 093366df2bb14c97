"""How long things took: what this process measured, to be shown and to be exported. Times are handed in."""

import bisect
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds, as a histogram of Prometheus has them."""
NEWEST = 512
"""So many durations of each kind are kept one by one."""


@dataclass(slots=True)
class Durations:
    """``counts``: how many since the process began, by the buckets they fell in, the last without a bound;
    ``total_s``: their sum. Quantiles are of the newest alone: they say how it is now."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0
    _newest: deque[float] = field(default_factory=lambda: deque(maxlen=NEWEST))

    def observe(self, took_s: float) -> None:
        """One more."""
        self.counts[bisect.bisect_left(BUCKETS_S, took_s)] += 1
        self.total_s += took_s
        self._newest.append(took_s)

    def count(self) -> int:
        """Of all."""
        return sum(self.counts)

    def quantile_s(self, percent: int) -> float | None:
        """What so many in a hundred of the newest did not exceed, by nearest rank; None: nothing was
        measured."""
        ordered = sorted(self._newest)
        return ordered[max(0, -(-percent * len(ordered) // 100) - 1)] if ordered else None


Label = tuple[str, str, str]
"""What was done, which of it, how it ended. All of closed sets."""


@dataclass(slots=True)
class Measures:
    """All that one process measures: the one registry, which an export walks over, too."""

    _by_label: dict[Label, Durations] = field(default_factory=dict)

    def observe(self, what: str, name: str, ended: str, took_s: float) -> None:
        """Something took so long."""
        self.of(what, name, ended).observe(took_s)

    def of(self, what: str, name: str, ended: str) -> Durations:
        """What was measured of it by now."""
        return self._by_label.setdefault((what, name, ended), Durations())

    def all(self) -> Iterator[tuple[Label, Durations]]:
        """By label."""
        yield from sorted(self._by_label.items())
