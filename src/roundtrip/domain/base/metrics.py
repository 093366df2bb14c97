"""How long things took, how often they happened, how many wait: what this process measured, to be shown and
to be exported. Times are handed in."""

import bisect
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

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


class TraceSpan(Protocol):
    """Something that is being done, for whoever traces it."""

    def note(self, name: str, value: str | int) -> None:
        """What is to be known of it. Values are ours: of closed sets, numbers, request ids."""


class Tracer(Protocol):
    """Whoever follows what is done inside of what. ``is_root``: it is inside of nothing, whatever goes on;
    what is no root and inside of nothing is not followed."""

    def span(self, what: str, name: str, is_root: bool) -> AbstractContextManager[TraceSpan]: ...


class _NoSpan:
    """A span that nobody follows."""

    __slots__ = ()

    def note(self, name: str, value: str | int) -> None:
        """Nothing is kept."""

    def __enter__(self) -> "_NoSpan":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


UNTRACED = _NoSpan()


@dataclass(slots=True)
class Measures:
    """All that one process measures: the one registry, which an export walks over, too. ``traces``: who
    follows it; None: nobody does."""

    traces: Tracer | None = None
    _by_label: dict[Label, Durations] = field(default_factory=dict)
    _counts: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    _watched: dict[tuple[str, str], Callable[[], int | None]] = field(default_factory=dict)

    def observe(self, what: str, name: str, ended: str, took_s: float) -> None:
        """Something took so long."""
        self.of(what, name, ended).observe(took_s)

    def of(self, what: str, name: str, ended: str) -> Durations:
        """What was measured of it by now."""
        label = (what, name, ended)
        found = self._by_label.get(label)
        if found is None:
            found = self._by_label[label] = Durations()
        return found

    def all(self) -> Iterator[tuple[Label, Durations]]:
        """By label."""
        yield from sorted(self._by_label.items())

    def count(self, what: str, *labels: str, by: int = 1) -> None:
        """Something happened. ``labels``: of closed sets, and always as many of one thing."""
        key = (what, labels)
        self._counts[key] = self._counts.get(key, 0) + by

    def counts(self) -> Iterator[tuple[str, tuple[str, ...], int]]:
        """What happened, its labels, how often since the process began."""
        yield from ((what, labels, count) for (what, labels), count in sorted(self._counts.items()))

    def watch(self, what: str, of: str, read: Callable[[], int | None]) -> None:
        """How many of something there are is asked of ``read`` whenever somebody looks; None: it cannot be
        told. Who watches the same again takes the place of who did."""
        self._watched[what, of] = read

    def read_gauges(self) -> Iterator[tuple[str, str, int]]:
        """What there is, which of it, how many."""
        for (what, of), read in sorted(self._watched.items()):
            value = read()
            if value is not None:
                yield what, of, value

    def span(self, what: str, name: str, is_root: bool = False) -> AbstractContextManager[TraceSpan]:
        """Around something that is done. Where nobody follows it costs nothing worth speaking of."""
        return UNTRACED if self.traces is None else self.traces.span(what, name, is_root)
