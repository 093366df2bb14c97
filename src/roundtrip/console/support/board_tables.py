"""What the rows of each board can be sorted and filtered by, and the view of a board that a query string
names."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import TRAITS
from roundtrip.domain.market.moving import LEVELS
from roundtrip.services.boards.graduating_soon import FillingRow
from roundtrip.services.boards.moving_now import USUAL_WINDOW, MovingRow
from roundtrip.services.boards.newest_verdicts import NewestVerdict
from roundtrip.services.boards.signals import SignalRow
from roundtrip.services.boards.winners import WinnerRow
from roundtrip.services.community.proven_flags import ProvenCall
from roundtrip.services.practice.league import LeagueRow
from roundtrip.services.wallets.names import WalletNamed

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
    """How the rows of the page at ``path`` can be sorted and filtered. ``sorts``: the first one is the usual
    order. ``chips``: values of filters that one press sets or takes back, by filter and value, with the words
    on each. ``windows``: how long ago what is counted may be, with the words on each. ``groups``: those that
    rows may belong to, in the order of the page; ``group``: that of a row."""

    path: str
    sorts: tuple[SortColumn[R], ...]
    filters: tuple[RowFilter[R], ...] = ()
    chips: Mapping[tuple[str, str], str] = field(default_factory=dict)
    windows: Mapping[str, str] = field(default_factory=dict)
    usual_window: str = ""
    groups: tuple[str, ...] = ("listed",)
    group: Callable[[R], str] = lambda row: "listed"

    def find_sort(self, name: str) -> SortColumn[R]:
        """The column of this name; the usual one for another name."""
        return next((sort for sort in self.sorts if sort.name == name), self.sorts[0])

    def read_tags(self, row: R) -> frozenset[str]:
        """The filters that let the row through, as ``name-value``, and its group."""
        tags = {f"{choice.name}-{value}" for choice in self.filters for value in choice.read(row)}
        return frozenset({*tags, f"group-{self.group(row)}"})


@dataclass(frozen=True, slots=True)
class BoardView(Generic[R]):
    """One way to look at a board. ``turned``: sorted against the column's own direction. ``filters``: chosen
    values by name. ``hides_dangers``: traps and the like are left out. ``before``: the id that an older page
    begins before; empty: it is the first one."""

    table: BoardTable[R]
    sort: SortColumn[R]
    turned: bool = False
    filters: Mapping[str, str] = field(default_factory=dict)
    hides_dangers: bool = False
    window: str = ""
    before: str = ""

    @classmethod
    def of(cls, table: BoardTable[R], query: Mapping[str, str]) -> "BoardView[R]":
        """The view that a query string names. What it does not know is left out: an old link shows all."""
        filters = {
            choice.name: query[choice.name]
            for choice in table.filters
            if query.get(choice.name) in choice.values
        }
        hides_dangers = "danger" in table.groups and query.get("dangers") == "hide"
        sort = table.find_sort(query.get("sort", ""))
        window = query.get("window", "")
        window = window if window in table.windows else table.usual_window
        return cls(table, sort, query.get("turned") == "1", filters, hides_dangers, window)

    @property
    def params(self) -> Mapping[str, str]:
        """What of the view the rows are read for: all else arranges them."""
        return {"window": self.window} if self.table.windows else {}

    @property
    def is_at_usual_window(self) -> bool:
        """Whether what is counted is so."""
        return self.window == self.table.usual_window

    @property
    def is_usual(self) -> bool:
        """Whether rows stand as they are read."""
        return not self.link(window=self.table.usual_window)

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
        query |= {"window": view.window} if view.window != view.table.usual_window else {}
        query |= {**view.filters} | ({"dangers": "hide"} if view.hides_dangers else {})
        query |= {"before": view.before} if view.before else {}
        return f"?{urlencode(query)}" if query else ""

    def link_sort(self, sort: SortColumn[R]) -> str:
        """The view sorted by a column; turned, if it is sorted by it already."""
        return self.link(sort=sort, turned=sort is self.sort and not self.turned) or "?"

    def link_chip(self, name: str, value: str) -> str:
        """The view with this value of a filter, or without it where it is chosen already."""
        others = {one: chosen for one, chosen in self.filters.items() if one != name}
        chosen = self.filters.get(name) == value
        return self.link(filters=others if chosen else others | {name: value}) or "?"

    def has_more_than_chips(self) -> bool:
        """Whether the view was chosen by more than a chip."""
        others = self.filters.items() - self.table.chips.keys()
        is_sorted = self.sort is not self.table.sorts[0]
        return bool(others or is_sorted or self.turned or self.hides_dangers)

    def arrange(self: "BoardView[T]", rows: Iterable[T]) -> dict[str, list[T]]:
        """The rows that pass, by group, sorted; equal ones as they came."""
        groups: dict[str, list[T]] = {name: [] for name in self.table.groups}
        for row in rows:
            tags = self.table.read_tags(row)
            if self.needs <= tags and not (self.hides_dangers and "group-danger" in tags):
                groups[self.table.group(row)].append(row)
        return {name: self._sort(group) for name, group in groups.items()}

    def _sort(self: "BoardView[T]", rows: list[T]) -> list[T]:
        known = [row for row in rows if self.sort.read(row) is not None]
        rest = [row for row in rows if self.sort.read(row) is None]
        return sorted(known, key=self.sort.read, reverse=not self.rises) + rest


SIGNAL_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "insider_sold": "Insider sold",
        "insider_moved": "Insider moved tokens",
        "liquidity_left": "Liquidity left",
        "serial_launcher": "Launches in series",
        "large_burn": "Large burn",
    }
)
_AGES_S = {"1h": 3600, "1d": 86_400, "7d": 604_800}
_VENUES: dict[str, str] = {
    kind: traits.label[0].upper() + traits.label[1:] for kind, traits in TRAITS.items()
}


# --- columns and filters that several boards have ----------------------------------------------------


_Launched = FillingRow | MovingRow | NewestVerdict
_Held = FillingRow | MovingRow | NewestVerdict | SignalRow
_Checked = FillingRow | MovingRow | NewestVerdict | SignalRow
_Named = FillingRow | MovingRow | NewestVerdict | ProvenCall | SignalRow


def _symbol(row: _Named) -> str | None:
    symbol = row.token.symbol
    return symbol.casefold() if symbol else None


def _rank(row: _Checked) -> int | None:
    verdict = row.verdict
    return None if verdict is None else LEVELS.index(verdict.level)


def _levels(row: _Checked) -> Iterable[str]:
    verdict = row.verdict
    return () if verdict is None else (verdict.level,)


def _at_least(value: float | None, steps: Mapping[str, str]) -> Iterable[str]:
    return () if value is None else (least for least in steps if value >= float(least))


def _shares(part: int, whole: int) -> Iterable[str]:
    return () if not whole else (least for least in _SHARES if part * 100 >= whole * int(least))


_SHARES = {"50": "Half or more", "100": "All"}
_TOKEN: SortColumn[_Named] = SortColumn("token", "Token", _symbol, rises=True)
_VERDICT: SortColumn[_Checked] = SortColumn("verdict", "Verdict", _rank, rises=True)
_AGE: SortColumn[_Launched] = SortColumn("age", "Age", lambda row: row.age_s, rises=True)
_BY_AGE: RowFilter[_Launched] = RowFilter(
    "age",
    "Age",
    {"1h": "Under an hour", "1d": "Under a day", "7d": "Under a week"},
    lambda row: (age for age, within_s in _AGES_S.items() if row.age_s is not None and row.age_s < within_s),
)
_SELLS = {"ok": "Can sell", "warn": "With a warning"}


# --- what moves, and what graduates ------------------------------------------------------------------

_INSIDERS_BELOW = {"5": "Under 5 %", "20": "Under 20 %"}
_INSIDERS: SortColumn[_Held] = SortColumn("insiders", "Insiders", lambda row: row.insiders_bps, rises=True)
_BY_INSIDERS: RowFilter[_Launched] = RowFilter(
    "insiders",
    "Insiders",
    _INSIDERS_BELOW,
    lambda row: (
        most
        for most in _INSIDERS_BELOW
        if row.insiders_bps is not None and row.insiders_bps < int(most) * 100
    ),
)
_KEPT = {"all": "None can be withdrawn now"}
_CHIPS = {
    ("verdict", "ok"): "Can sell",
    ("insiders", "20"): "Insiders under 20 %",
    ("age", "1d"): "Under a day old",
}
_LIQUIDITY = {"1": "1 eth or more", "10": "10 eth or more", "100": "100 eth or more"}
MOVING: BoardTable[MovingRow] = BoardTable(
    "/boards/moving_now",
    (
        SortColumn("inflow", "Net inflow", lambda row: row.net_in_eth),
        _TOKEN,
        _VERDICT,
        SortColumn("price", "Price", lambda row: row.price_eth),
        SortColumn("5m", "5 min", lambda row: row.change5m),
        SortColumn("1h", "1 h", lambda row: row.change1h),
        SortColumn("24h", "24 h", lambda row: row.change24h),
        SortColumn("volume", "Volume", lambda row: row.volume_eth),
        SortColumn("trades", "Buys / sells", lambda row: row.buys + row.sells),
        SortColumn("makers", "Makers", lambda row: row.makers),
        SortColumn("liquidity", "Liquidity", lambda row: row.liquidity_eth),
        SortColumn("free", "Free to leave", lambda row: row.free_bps),
        SortColumn("holders", "Holders", lambda row: row.holders),
        _INSIDERS,
        _AGE,
    ),
    (
        RowFilter("verdict", "Verdict", _SELLS, lambda row: () if row.group == "checking" else _levels(row)),
        RowFilter("venue", "Venue", _VENUES, lambda row: (row.venue,)),
        _BY_AGE,
        _BY_INSIDERS,
        RowFilter("liquidity", "Liquidity", _LIQUIDITY, lambda row: _at_least(row.liquidity_eth, _LIQUIDITY)),
        RowFilter("kept", "Withdrawal", _KEPT, lambda row: _KEPT if is_locked(row) else ()),
    ),
    {**_CHIPS, ("kept", "all"): "Liquidity locked"},
    {"5m": "5 min", "10m": "10 min", "1h": "1 h", "6h": "6 h", "24h": "24 h"},
    USUAL_WINDOW,
    ("listed", "danger", "checking"),
    lambda row: row.group,
)


def is_locked(row: MovingRow) -> bool:
    """Whether it is proven that nobody can withdraw its liquidity now."""
    return row.kept_bps == BPS or (row.free_bps == 0 and row.unproven_bps == 0)


def _read_raised(row: FillingRow) -> float | None:
    """None where the curve is not paid in eth: amounts of different money do not compare."""
    return float(row.raised) if row.raised is not None and row.quote in ("eth", "weth") else None


def _is_closed_for_buys(row: FillingRow) -> bool:
    return row.fill_bps >= BPS or (
        row.verdict is not None and row.verdict.code in ("cannot_buy", "empty_pool")
    )


_FULL = {"50": "Half or more", "80": "80 % or more", "95": "95 % or more"}
_GRADUATED = {"1": "Graduated one before", "3": "Graduated three or more"}
GRADUATING: BoardTable[FillingRow] = BoardTable(
    "/boards/graduating_soon",
    (
        SortColumn("full", "Full", lambda row: row.fill_bps),
        _TOKEN,
        _VERDICT,
        SortColumn("price", "Price", lambda row: row.price_eth),
        SortColumn("1h", "1 h", lambda row: row.change1h),
        SortColumn("raised", "Raised", _read_raised),
        SortColumn("buys", "Buys, 10 min", lambda row: row.buys),
        SortColumn("buyers", "Buyers", lambda row: row.buyers),
        _INSIDERS,
        _AGE,
        SortColumn("deployer", "Deployer", lambda row: row.deployer.graduated),
    ),
    (
        RowFilter("verdict", "Verdict", _SELLS, _levels),
        RowFilter("full", "Full", _FULL, lambda row: _at_least(row.fill_bps * 100 / BPS, _FULL)),
        _BY_AGE,
        _BY_INSIDERS,
        RowFilter(
            "deployer",
            "Deployer",
            _GRADUATED | {"kept": "Never sold its own"},
            lambda row: (
                *_at_least(row.deployer.graduated, _GRADUATED),
                *(() if row.deployer.sold_own else ("kept",)),
            ),
        ),
    ),
    {**_CHIPS, ("full", "80"): "80 % full or more"},
    groups=("listed", "danger", "full"),
    group=lambda row: (
        "danger" if "danger" in _levels(row) else "full" if _is_closed_for_buys(row) else "listed"
    ),
)


# --- checks, wallets, signs, flags -------------------------------------------------------------------

NEWEST: BoardTable[NewestVerdict] = BoardTable(
    "/boards/newest_verdicts",
    (
        SortColumn("time", "Checked", lambda row: row.verdict.checked_at),
        _TOKEN,
        _VERDICT,
        SortColumn("loss", "Loss", lambda row: row.verdict.loss_bps, rises=True),
        SortColumn("price", "Price", lambda row: row.price_eth),
        SortColumn("cap", "Market cap", lambda row: row.cap_usd),
        SortColumn("liquidity", "Liquidity", lambda row: row.liquidity_eth),
        _INSIDERS,
        _AGE,
    ),
    (
        RowFilter(
            "verdict",
            "Verdict",
            {"ok": "Can sell", "warn": "With a warning", "danger": "Danger", "unknown": "Not known"},
            _levels,
        ),
    ),
    {("verdict", "ok"): "Can sell", ("verdict", "warn"): "With a warning", ("verdict", "danger"): "Danger"},
)

_CLOSED = {"2": "2 or more", "5": "5 or more", "20": "20 or more"}
WINNERS: BoardTable[WinnerRow] = BoardTable(
    "/boards/winners",
    (
        SortColumn("profit", "Profit, eth", lambda row: row.profit_eth),
        SortColumn("wallet", "Wallet", lambda row: row.wallet, rises=True),
        SortColumn("times", "Return", lambda row: row.return_multiple),
        SortColumn("closed", "Closed", lambda row: row.closed),
        SortColumn("won", "Win rate", lambda row: row.win_rate),
        SortColumn("best", "Best trade, eth", lambda row: row.best.profit_eth),
    ),
    (
        RowFilter("closed", "Closed", _CLOSED, lambda row: _at_least(row.closed, _CLOSED)),
        RowFilter("won", "With profit", _SHARES, lambda row: _shares(row.won, row.closed)),
    ),
    {("closed", "5"): "5 or more closed", ("won", "100"): "All with a profit"},
)

SIGNALS: BoardTable[SignalRow] = BoardTable(
    "/boards/signals",
    (
        SortColumn("time", "When", lambda row: row.block),
        _TOKEN,
        _VERDICT,
        SortColumn("kind", "What", lambda row: SIGNAL_WORDS[row.kind], rises=True),
        SortColumn("eth", "Eth", lambda row: row.size.eth),
        SortColumn("supply", "Of the supply", lambda row: row.size.supply_bps),
        _INSIDERS,
    ),
    (RowFilter("kind", "What", SIGNAL_WORDS, lambda row: (row.kind,)),),
    {("kind", kind): words for kind, words in SIGNAL_WORDS.items()},
)

_MARKS = {"good": "Good", "bad": "Bad", "scam": "Scam"}
NAMES: BoardTable[WalletNamed] = BoardTable(
    "/boards/wallet_names",
    (
        SortColumn("people", "People", lambda row: sum(given.people for given in row.names + row.marks)),
        SortColumn("wallet", "Wallet", lambda row: row.wallet, rises=True),
        SortColumn(
            "name", "Name", lambda row: row.names[0].name.casefold() if row.names else None, rises=True
        ),
        SortColumn("mark", "Mark", lambda row: row.marks[0].mark if row.marks else None, rises=True),
    ),
    (RowFilter("mark", "Mark", _MARKS, lambda row: (given.mark for given in row.marks)),),
)

_FLAGS = {"runs": "Runs", "drains": "Drains", "dead": "Dies"}
_WHO = {"agents": "Agents", "people": "People"}
PROVEN: BoardTable[ProvenCall] = BoardTable(
    "/boards/proven_calls",
    (
        SortColumn("time", "Proved", lambda row: row.proved_at),
        _TOKEN,
        SortColumn("flag", "Flag", lambda row: row.kind, rises=True),
        SortColumn("account", "Account", lambda row: row.mite.designation, rises=True),
        SortColumn("level", "Level", lambda row: row.mite.level),
        SortColumn("right", "Right so far", lambda row: row.mite.proved / max(1, row.mite.decided)),
        SortColumn("before", "In advance", lambda row: row.before_s),
    ),
    (
        RowFilter("flag", "Flag", _FLAGS, lambda row: (row.kind,)),
        RowFilter("who", "Accounts", _WHO, lambda row: ("agents" if row.mite.agent else "people",)),
    ),
)

LEAGUE: BoardTable[LeagueRow] = BoardTable(
    "/league",
    (
        SortColumn("profit", "Profit", lambda row: float(row.profit_eth)),
        SortColumn("account", "Account", lambda row: row.designation, rises=True),
        SortColumn("sells", "Sells", lambda row: row.sells),
        SortColumn("won", "With profit", lambda row: row.won / max(1, row.sells)),
        SortColumn("best", "Best sell", lambda row: float(row.best.profit_eth) if row.best else None),
    ),
    (RowFilter("who", "Accounts", _WHO, lambda row: ("agents" if row.agent else "people",)),),
)
