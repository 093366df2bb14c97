"""How a reader looks at a board: sorted and filtered, by the address of the page."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

R = TypeVar("R", contravariant=True)
"""A row of the page's answer."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SortColumn(Generic[R]):
    """A column that rows are sorted by. ``read``: a number or a text; None: not known, which stands last.
    ``rises``: the smallest value comes first, unless the reader turns it."""

    name: str
    title: str
    read: Callable[[R], Any]
    rises: bool = False


@dataclass(frozen=True, slots=True)
class RowFilter(Generic[R]):
    """A filter. ``values``: its values in words. ``read``: those that let a row through; what is not known
    passes none."""

    name: str
    title: str
    values: Mapping[str, str]
    read: Callable[[R], Iterable[str]]


@dataclass(frozen=True, slots=True)
class BoardTable(Generic[R]):
    """How the rows of a page can be sorted and filtered. ``sorts``: the first one is the usual order.
    ``groups``: those that rows may belong to, in the order of the page; ``group``: that of a row."""

    path: str
    sorts: tuple[SortColumn[R], ...]
    filters: tuple[RowFilter[R], ...] = ()
    groups: tuple[str, ...] = ("listed",)
    group: Callable[[R], str] = lambda row: "listed"

    def find_sort(self, name: str) -> SortColumn[R]:
        """The column of this name; the usual one for another name."""
        return next((sort for sort in self.sorts if sort.name == name), self.sorts[0])

    def read_tags(self, row: R) -> frozenset[str]:
        """The filters that let the row through, as ``name-value``, and its group."""
        tags = {f"{one.name}-{value}" for one in self.filters for value in one.read(row)}
        return frozenset({*tags, f"group-{self.group(row)}"})


@dataclass(frozen=True, slots=True)
class BoardView(Generic[R]):
    """One way to look. ``turned``: the sort is against the column's own direction. ``filters``: chosen
    values by name. ``hides_dangers``: traps and the like are left out."""

    table: BoardTable[R]
    sort: SortColumn[R]
    turned: bool = False
    filters: Mapping[str, str] = field(default_factory=dict)
    hides_dangers: bool = False

    @classmethod
    def of(cls, table: BoardTable[R], query: Mapping[str, str]) -> "BoardView[R]":
        """The view that a query string names. What it does not know is left out: an old link shows all."""
        filters = {one.name: query[one.name] for one in table.filters if query.get(one.name) in one.values}
        hides_dangers = "danger" in table.groups and query.get("dangers") == "hide"
        sort = table.find_sort(query.get("sort", ""))
        return cls(table, sort, query.get("turned") == "1", filters, hides_dangers)

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
        query = {} if view.sort is self.table.sorts[0] else {"sort": view.sort.name}
        query |= {"turned": "1"} if view.turned else {}
        query |= {**view.filters} | ({"dangers": "hide"} if view.hides_dangers else {})
        return f"?{urlencode(query)}" if query else ""

    def link_sort(self, sort: SortColumn[R]) -> str:
        """The view sorted by a column; turned, if it is sorted by it already."""
        return self.link(sort=sort, turned=sort is self.sort and not self.turned) or "?"

    def arrange(self: "BoardView[T]", rows: Iterable[T]) -> dict[str, list[T]]:
        """The rows that pass, by group, sorted; equal ones as they came."""
        groups: dict[str, list[T]] = {name: [] for name in self.table.groups}
        for row in rows:
            tags = self.table.read_tags(row)
            if self.needs <= tags and not (self.hides_dangers and "group-danger" in tags):
                groups[self.table.group(row)].append(row)
        return {name: self._sort(some) for name, some in groups.items()}

    def _sort(self: "BoardView[T]", rows: list[T]) -> list[T]:
        known = [row for row in rows if self.sort.read(row) is not None]
        rest = [row for row in rows if self.sort.read(row) is None]
        return sorted(known, key=self.sort.read, reverse=not self.rises) + rest
