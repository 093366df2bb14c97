"""How a reader looks at what moves: sorted and filtered, by the address of the page."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from roundtrip.domain.base.types import plain_decimal
from roundtrip.domain.base.venue import TRAITS, VenueKind
from roundtrip.domain.market.moving import LEVELS

Row = Mapping[str, Any]
"""A row of the page's answer, as decoded JSON."""


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column that rows are sorted by. ``read``: the value; None: not known, which stands last.
    ``rises``: the smallest value comes first, unless the reader turns it."""

    name: str
    title: str
    read: Callable[[Row], float | int | None]
    rises: bool = False


SORTS: tuple[SortColumn, ...] = (
    SortColumn("inflow", "Net inflow", lambda row: row["netInEth"]),
    SortColumn("verdict", "Verdict", lambda row: _rank(row["verdict"]), rises=True),
    SortColumn("price", "Price", lambda row: row["priceEth"]),
    SortColumn("5m", "5 min", lambda row: row["change5m"]),
    SortColumn("1h", "1 h", lambda row: row["change1h"]),
    SortColumn("24h", "24 h", lambda row: row["change24h"]),
    SortColumn("volume", "Volume, 10 min", lambda row: row["volumeEth"]),
    SortColumn("liquidity", "Liquidity", lambda row: row["liquidityEth"]),
    SortColumn("holders", "Holders", lambda row: row["holders"]),
    SortColumn("age", "Age", lambda row: row["ageS"], rises=True),
)
BY_NAME = {sort.name: sort for sort in SORTS}
_VENUES: dict[str, str] = {
    kind: traits.label[0].upper() + traits.label[1:] for kind, traits in TRAITS.items()
}
FILTERS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "verdict": {"ok": "Can sell", "warn": "With a warning"},
        "venue": _VENUES,
        "age": {"1h": "Under an hour", "1d": "Under a day", "7d": "Under a week"},
        "liquidity": {"1": "1 eth or more", "10": "10 eth or more", "100": "100 eth or more"},
    }
)
"""Filters and their values in words."""
_AGES_S = {"1h": 3600, "1d": 86_400, "7d": 604_800}


def _rank(verdict: Row | None) -> int | None:
    return None if verdict is None else LEVELS.index(verdict["level"])


def read_tags(row: Row) -> frozenset[str]:
    """The filters that let the row through, as ``name-value``. What is not known passes none."""
    liquidity = row["liquidityEth"]
    tags = {f"age-{age}" for age, within_s in _AGES_S.items() if row["ageS"] < within_s}
    if liquidity is not None:
        tags |= {f"liquidity-{least}" for least in FILTERS["liquidity"] if liquidity >= int(least)}
    if row["verdict"] is not None and row["group"] != "checking":
        tags.add(f"verdict-{row['verdict']['level']}")
    venue: VenueKind = row["venue"]
    return frozenset({*tags, f"venue-{venue}", f"group-{row['group']}"})


@dataclass(frozen=True, slots=True)
class MovingView:
    """One way to look. ``turned``: the sort is against the column's own direction. ``filters``: chosen
    values by name. ``hides_dangers``: traps and the like are left out."""

    sort: SortColumn = SORTS[0]
    turned: bool = False
    filters: Mapping[str, str] = field(default_factory=dict)
    hides_dangers: bool = False

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "MovingView":
        """The view that a query string names. What it does not know is left out: an old link shows all."""
        return cls(
            BY_NAME.get(query.get("sort", ""), SORTS[0]),
            query.get("turned") == "1",
            {name: query[name] for name, values in FILTERS.items() if query.get(name) in values},
            query.get("dangers") == "hide",
        )

    @property
    def needs(self) -> frozenset[str]:
        """The tags that a row must have."""
        return frozenset(f"{name}-{value}" for name, value in self.filters.items())

    @property
    def rises(self) -> bool:
        """Whether the smallest value comes first."""
        return self.sort.rises != self.turned

    def link(self, **changes: Any) -> str:
        """The query string of this view with changes; empty: the usual view."""
        view = replace(self, **changes)
        query = {} if view.sort is SORTS[0] else {"sort": view.sort.name}
        query |= {"turned": "1"} if view.turned else {}
        query |= {**view.filters} | ({"dangers": "hide"} if view.hides_dangers else {})
        return f"?{urlencode(query)}" if query else ""

    def link_sort(self, sort: SortColumn) -> str:
        """The view sorted by a column; turned, if it is sorted by it already."""
        return self.link(sort=sort, turned=sort is self.sort and not self.turned) or "?"

    def arrange(self, rows: Iterable[Row]) -> dict[str, list[Row]]:
        """The rows that pass, by group, sorted; where equal, most money first."""
        groups: dict[str, list[Row]] = {"listed": [], "danger": [], "checking": []}
        for row in rows:
            if self.needs <= read_tags(row) and not (self.hides_dangers and row["group"] == "danger"):
                groups[row["group"]].append(row)
        return {name: self._sort(some) for name, some in groups.items()}

    def _sort(self, rows: list[Row]) -> list[Row]:
        known = [row for row in rows if self.sort.read(row) is not None]
        rest = [row for row in rows if self.sort.read(row) is None]
        return sorted(known, key=lambda row: self.sort.read(row) or 0, reverse=not self.rises) + rest


USUAL = MovingView()


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
    """A change in percent with its sign: ``+12.3 %``; without decimals from 100 % on."""
    sign, size = ("−" if bps < 0 else "+"), abs(bps)
    return f"{sign}{size // 100:,} %" if size >= 10_000 else f"{sign}{size // 100}.{size % 100 // 10} %"
