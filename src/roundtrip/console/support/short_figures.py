"""Figures and lines as they fit into a cell."""

from collections.abc import Iterable

from roundtrip.domain.base.types import BPS, plain_decimal


def draw_line(points: Iterable[int | None], width: int, height: int) -> list[str]:
    """Pieces of a line as points of an SVG polyline, the heights from 0 to 100 turned to ``height``; a gap
    where a value is not known. A piece of one point is no line."""
    places = list(points)
    step = width / max(1, len(places) - 1)
    pieces: list[list[str]] = [[]]
    for number, point in enumerate(places):
        if point is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{number * step:.0f},{height - 1 - point * (height - 2) / 100:.1f}")
    return [" ".join(piece) for piece in pieces if len(piece) > 1]


_AGE_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def short_age(seconds: int) -> str:
    """A span in its largest whole unit: ``3 d``, ``20 min``."""
    for unit_s, unit in _AGE_UNITS:
        if seconds >= unit_s:
            return f"{seconds // unit_s:,} {unit}"
    return "0 s"


def short_amount(value: float) -> str:
    """An amount with three significant digits, cut: ``1.23K``, ``45.6M``, ``0.0123``."""
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= size:
            return _cut(value / size) + unit
    return _cut(value)


def _cut(value: float) -> str:
    raw = int(value * 10**18)
    digits = len(str(raw))
    if raw <= 0:
        return "0"
    cut = raw // 10 ** max(0, digits - 3) * 10 ** max(0, digits - 3)
    return plain_decimal(cut, 18)


def short_change(bps: int) -> str:
    """A change in percent with its sign, rounded: ``+12.3 %``; without decimals from 100 % on. Less than a
    whole loss is never ``−100 %``."""
    tenths, sign = (abs(bps) + 5) // 10, "−" if bps < 0 else "+"
    if -BPS < bps < 0:
        tenths = min(tenths, 999)
    return f"{sign}{(abs(bps) + 50) // 100:,} %" if tenths >= 1000 else f"{sign}{tenths / 10:.1f} %"
