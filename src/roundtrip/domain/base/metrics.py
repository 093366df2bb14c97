"""Durations, counts and gauges of this process, for status pages and export. The caller measures the
times."""

import bisect
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of a Prometheus histogram."""
NEWEST = 512
"""Durations of each label that are kept individually."""


@dataclass(slots=True)
class Durations:
    """``counts``: since the process began, by bucket, the last without a bound; ``total_s``: of all of them.
    Quantiles are of the newest only, to show the current state."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0
    _newest: deque[float] = field(default_factory=lambda: deque(maxlen=NEWEST))

    def observe(self, took_s: float) -> None:
        """Adds one duration."""
        self.counts[bisect.bisect_left(BUCKETS_S, took_s)] += 1
        self.total_s += took_s
        self._newest.append(took_s)

    def count(self) -> int:
        """The number of all durations."""
        return sum(self.counts)

    def quantile_s(self, percent: int) -> float | None:
        """The duration that ``percent`` of the newest did not exceed, by nearest rank; None: none was
        measured."""
        ordered = sorted(self._newest)
        return ordered[max(0, -(-percent * len(ordered) // 100) - 1)] if ordered else None


Label = tuple[str, str, str]
"""What was done (the metric), its name, how it ended. All from closed sets."""


NoteOnSpan = Callable[[str, str | int], None]
"""Adds an attribute to a span: its name and value. Values are ours: from closed sets, numbers, request
ids."""
Tracer = Callable[[str, str, bool], AbstractContextManager[NoteOnSpan]]
"""Follows units of work inside each other: what is done, its name, and whether its span starts a trace of its
own. A span that does not and has no parent is not followed."""
UNTRACED: AbstractContextManager[NoteOnSpan] = nullcontext(lambda name, value: None)
"""A span that no tracer follows."""


@dataclass(slots=True)
class Measures:
    """The registry of all that one process measures; an export reads it, too. ``traces``: the tracer; None:
    there is none."""

    traces: Tracer | None = None
    _by_label: dict[Label, Durations] = field(default_factory=dict)
    _counts: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    _gauges: dict[tuple[str, str], Callable[[], int | None]] = field(default_factory=dict)

    def observe(self, metric: str, name: str, ended: str, took_s: float) -> None:
        """Adds a duration."""
        self.of(metric, name, ended).observe(took_s)

    def of(self, metric: str, name: str, ended: str) -> Durations:
        """The durations of a label so far; a new label is registered."""
        label = (metric, name, ended)
        durations = self._by_label.get(label)
        if durations is None:
            durations = self._by_label[label] = Durations()
        return durations

    def all(self) -> Iterator[tuple[Label, Durations]]:
        """All durations, by label."""
        yield from sorted(self._by_label.items())

    def count(self, metric: str, *labels: str, by: int = 1) -> None:
        """Counts an event. ``labels``: from closed sets, and always the same number of them for one
        ``metric``."""
        key = (metric, labels)
        self._counts[key] = self._counts.get(key, 0) + by

    def counts(self) -> Iterator[tuple[str, tuple[str, ...], int]]:
        """Each event, its labels, how often it occurred since the process began."""
        yield from ((metric, labels, count) for (metric, labels), count in sorted(self._counts.items()))

    def watch(self, metric: str, label: str, read: Callable[[], int | None]) -> None:
        """Registers a gauge: ``read`` returns its value when it is read, or None: unknown. A second gauge of
        the same name and label replaces the first."""
        self._gauges[metric, label] = read

    def read_gauges(self) -> Iterator[tuple[str, str, int]]:
        """Each gauge whose value is known: its name, its label, its value."""
        for (metric, label), read in sorted(self._gauges.items()):
            value = read()
            if value is not None:
                yield metric, label, value

    def span(self, what: str, name: str, is_root: bool = False) -> AbstractContextManager[NoteOnSpan]:
        """A span around a unit of work. Without a tracer it costs next to nothing."""
        return UNTRACED if self.traces is None else self.traces(what, name, is_root)
