"""Whether a figure that was sampled for long stays where it is.

The first third of a run warms up and does not count. The rest is cut into twelve windows, each of which
counts by its median, and a line is laid through these by least squares: its rise over the two thirds is what
is judged, so that one peak says nothing and a run of four minutes is judged as one of thirty.

``flat``: the line rises by no more than the figure's allowance, a share of its level and at least so much
of its unit. ``fills``: it rises by more, but the last third by no more than half of what the third before it
did, as a cache does that fills up to its bound. ``rises``: else. What falls is flat.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

WINDOWS = 12
_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """By how much a figure may rise over two thirds of a run: ``share`` of its level, and at least ``least``
    of its unit. ``most``: what the median of its windows may not pass, however flat."""

    share: float
    least: float
    most: float = float("inf")


@dataclass(frozen=True, slots=True)
class Course:
    """How a figure went. ``start``, ``middle``, ``end``: medians of the first, middle and last tenth.
    ``per_hour``: the slope. ``says``: flat, fills, rises, or high (past what it may be)."""

    start: float
    middle: float
    end: float
    most: float
    per_hour: float
    says: str


def course(samples: Sequence[tuple[float, float]], allowed: Allowance) -> Course:
    """Of samples (seconds since the start, value) in the order of time, six at least. Raises ValueError."""
    if len(samples) < 6:
        raise ValueError(f"{len(samples)} samples tell nothing")
    values = [value for _, value in samples]
    tenth = max(1, len(values) // 10)
    middle = (len(values) - tenth) // 2
    begin_s, end_s = samples[0][0], samples[-1][0]
    counted = [(at, value) for at, value in samples if at >= begin_s + (end_s - begin_s) / 3]
    windows = _windows(counted)
    slope = _slope(windows)
    level = statistics.median(value for _, value in windows)
    return Course(
        start=statistics.median(values[:tenth]),
        middle=statistics.median(values[middle : middle + tenth]),
        end=statistics.median(values[-tenth:]),
        most=max(values),
        per_hour=slope * _HOUR_S,
        says="high" if level > allowed.most else _says(windows, slope, allowed),
    )


def _says(windows: Sequence[tuple[float, float]], slope: float, allowed: Allowance) -> str:
    spent_s = windows[-1][0] - windows[0][0]
    level = statistics.median(value for _, value in windows)
    room = max(allowed.least, allowed.share * level)
    if slope * spent_s <= room:
        return "flat"
    half = len(windows) // 2
    earlier, later = _slope(windows[:half]), _slope(windows[half:])
    return "fills" if earlier > 0 and later <= earlier / 2 else "rises"


def _windows(counted: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    size = max(1, len(counted) // WINDOWS)
    parts = [counted[at : at + size] for at in range(0, len(counted) - size + 1, size)]
    return [
        (statistics.mean(at for at, _ in part), statistics.median(value for _, value in part))
        for part in parts
    ]


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """A second, by least squares; 0 of fewer than two points."""
    if len(points) < 2:
        return 0.0
    return statistics.linear_regression([at for at, _ in points], [value for _, value in points]).slope
