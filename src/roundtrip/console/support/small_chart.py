"""Small charts that the server draws: lines over time, as the points of an SVG."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

WIDTH, HEIGHT = 600, 120
_EDGE = 4
"""Free above the highest and below the lowest value, so that no line is cut."""


class SmallCurve(NamedTuple):
    """``points``: of an SVG of WIDTH by HEIGHT, left to right. ``zero``: the height of 0, which is always
    within the drawing. ``low``, ``high``: the least and the greatest value."""

    points: tuple[tuple[float, float], ...]
    zero: float
    low: Decimal
    high: Decimal

    def line(self) -> str:
        """The straight line through all points, for ``points`` of a polyline."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)

    def stairs(self, to: int | None = None) -> str:
        """As ``line``, but each value holds until the next one. ``to``: of the first so many points."""
        corners, points = list[str](), self.points[:to]
        for number, (x, y) in enumerate(points):
            if number:
                corners.append(f"{x:.1f},{points[number - 1][1]:.1f}")
            corners.append(f"{x:.1f},{y:.1f}")
        return " ".join(corners)


def draw_curve(values: Sequence[tuple[datetime, Decimal]]) -> SmallCurve | None:
    """The curve of values in order of time; None: fewer than two, or all of one moment."""
    if len(values) < 2 or values[0][0] == values[-1][0]:
        return None
    first, whole_s = values[0][0], (values[-1][0] - values[0][0]).total_seconds()
    low = min(Decimal(0), *(value for _, value in values))
    high = max(Decimal(0), *(value for _, value in values))
    span = (high - low) or Decimal(1)

    def height(value: Decimal) -> float:
        return round(_EDGE + float((high - value) / span) * (HEIGHT - 2 * _EDGE), 1)

    points = tuple(
        (round(WIDTH * (at - first).total_seconds() / whole_s, 1), height(value)) for at, value in values
    )
    return SmallCurve(points, height(Decimal(0)), low, high)
