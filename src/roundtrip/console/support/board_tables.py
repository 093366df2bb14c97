"""What the rows of each board are sorted and filtered by."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import TRAITS
from roundtrip.domain.market.moving import LEVELS

from .board_view import BoardTable, Row, RowFilter, SortColumn

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


def _symbol(row: Row) -> str | None:
    symbol = row["token"]["symbol"]
    return symbol.casefold() if symbol else None


def _rank(row: Row) -> int | None:
    verdict = row["verdict"]
    return None if verdict is None else LEVELS.index(verdict["level"])


def _ages(row: Row) -> Iterable[str]:
    return (age for age, within_s in _AGES_S.items() if row["ageS"] < within_s)


def _levels(row: Row) -> Iterable[str]:
    verdict = row["verdict"]
    return () if verdict is None or row.get("group") == "checking" else (verdict["level"],)


def _at_least(value: float | None, steps: Mapping[str, str]) -> Iterable[str]:
    return () if value is None else (least for least in steps if value >= float(least))


def _is_below(value: float | None, most: float) -> bool:
    return value is not None and value < most


def _shares(part: int, whole: int) -> Iterable[str]:
    return () if not whole else (least for least in _SHARES if part * 100 >= whole * int(least))


_SHARES = {"50": "Half or more", "100": "All"}
_TOKEN = SortColumn("token", "Token", _symbol, rises=True)
_VERDICT = SortColumn("verdict", "Verdict", _rank, rises=True)
_AGE = SortColumn("age", "Age", lambda row: row["ageS"], rises=True)
_BY_AGE = RowFilter("age", "Age", {"1h": "Under an hour", "1d": "Under a day", "7d": "Under a week"}, _ages)
_BY_SALE = RowFilter("verdict", "Verdict", {"ok": "Can sell", "warn": "With a warning"}, _levels)


# --- what moves, and what graduates ------------------------------------------------------------------

_INSIDERS_BELOW = {"5": "Under 5 %", "20": "Under 20 %"}
_INSIDERS = SortColumn("insiders", "Insiders", lambda row: row["insidersBps"], rises=True)
_BY_INSIDERS = RowFilter(
    "insiders",
    "Insiders",
    _INSIDERS_BELOW,
    lambda row: (most for most in _INSIDERS_BELOW if _is_below(row["insidersBps"], int(most) * 100)),
)
_LIQUIDITY = {"1": "1 eth or more", "10": "10 eth or more", "100": "100 eth or more"}
MOVING = BoardTable(
    "/boards/moving_now",
    (
        SortColumn("inflow", "Net inflow", lambda row: row["netInEth"]),
        _TOKEN,
        _VERDICT,
        SortColumn("price", "Price", lambda row: row["priceEth"]),
        SortColumn("5m", "5 min", lambda row: row["change5m"]),
        SortColumn("1h", "1 h", lambda row: row["change1h"]),
        SortColumn("24h", "24 h", lambda row: row["change24h"]),
        SortColumn("volume", "Volume, 10 min", lambda row: row["volumeEth"]),
        SortColumn("liquidity", "Liquidity", lambda row: row["liquidityEth"]),
        SortColumn("free", "Free to leave", lambda row: row["freeBps"]),
        SortColumn("holders", "Holders", lambda row: row["holders"]),
        _INSIDERS,
        _AGE,
    ),
    (
        _BY_SALE,
        RowFilter("venue", "Venue", _VENUES, lambda row: (row["venue"],)),
        _BY_AGE,
        _BY_INSIDERS,
        RowFilter(
            "liquidity", "Liquidity", _LIQUIDITY, lambda row: _at_least(row["liquidityEth"], _LIQUIDITY)
        ),
    ),
    ("listed", "danger", "checking"),
)


def _read_raised(row: Row) -> float | None:
    """None where the curve is not paid in eth: amounts of different money do not compare."""
    return float(row["raised"]) if row["raised"] is not None and row["quote"] in ("eth", "weth") else None


_FULL = {"50": "Half or more", "80": "80 % or more", "95": "95 % or more"}
_GRADUATED = {"1": "Graduated one before", "3": "Graduated three or more"}
GRADUATING = BoardTable(
    "/boards/graduating_soon",
    (
        SortColumn("full", "Full", lambda row: row["fillBps"]),
        _TOKEN,
        _VERDICT,
        SortColumn("raised", "Raised", _read_raised),
        SortColumn("buys", "Buys, 10 min", lambda row: row["buys"]),
        SortColumn("buyers", "Buyers", lambda row: row["buyers"]),
        _INSIDERS,
        _AGE,
        SortColumn("deployer", "Deployer", lambda row: row["deployer"]["graduated"]),
    ),
    (
        _BY_SALE,
        RowFilter("full", "Full", _FULL, lambda row: _at_least(row["fillBps"] * 100 / BPS, _FULL)),
        _BY_AGE,
        _BY_INSIDERS,
        RowFilter(
            "deployer",
            "Deployer",
            _GRADUATED | {"kept": "Never sold its own"},
            lambda row: (
                *_at_least(row["deployer"]["graduated"], _GRADUATED),
                *(() if row["deployer"]["soldOwn"] else ("kept",)),
            ),
        ),
    ),
    ("listed", "danger"),
)


# --- checks, wallets, signs, flags -------------------------------------------------------------------

NEWEST = BoardTable(
    "/boards/newest_verdicts",
    (SortColumn("time", "Time", lambda row: row["verdict"]["checkedAt"]), _TOKEN, _VERDICT),
    (
        RowFilter(
            "verdict",
            "Verdict",
            {"ok": "Can sell", "warn": "With a warning", "danger": "Danger", "unknown": "Not known"},
            _levels,
        ),
    ),
)

_CLOSED = {"2": "2 or more", "5": "5 or more", "20": "20 or more"}
WINNERS = BoardTable(
    "/boards/winners",
    (
        SortColumn("profit", "Profit, eth", lambda row: row["profitEth"]),
        SortColumn("wallet", "Wallet", lambda row: row["wallet"], rises=True),
        SortColumn("times", "Return", lambda row: row["returnMultiple"]),
        SortColumn("closed", "Closed", lambda row: row["closed"]),
        SortColumn("won", "Win rate", lambda row: row["winRate"]),
        SortColumn("best", "Best trade, eth", lambda row: row["best"]["profitEth"]),
    ),
    (
        RowFilter("closed", "Closed", _CLOSED, lambda row: _at_least(row["closed"], _CLOSED)),
        RowFilter("won", "With profit", _SHARES, lambda row: _shares(row["won"], row["closed"])),
    ),
)

SIGNALS = BoardTable(
    "/boards/signals",
    (
        SortColumn("time", "When", lambda row: row["block"]),
        _TOKEN,
        _VERDICT,
        SortColumn("kind", "What", lambda row: SIGNAL_WORDS[row["kind"]], rises=True),
        SortColumn("eth", "Eth", lambda row: row["size"]["eth"]),
        SortColumn("supply", "Of the supply", lambda row: row["size"]["supplyBps"]),
    ),
    (RowFilter("kind", "What", SIGNAL_WORDS, lambda row: (row["kind"],)),),
)

_MARKS = {"good": "Good", "bad": "Bad", "scam": "Scam"}
NAMES = BoardTable(
    "/boards/wallet_names",
    (
        SortColumn("people", "People", lambda row: sum(one["people"] for one in row["names"] + row["marks"])),
        SortColumn("wallet", "Wallet", lambda row: row["wallet"], rises=True),
        SortColumn(
            "name",
            "Name",
            lambda row: row["names"][0]["name"].casefold() if row["names"] else None,
            rises=True,
        ),
        SortColumn("mark", "Mark", lambda row: row["marks"][0]["mark"] if row["marks"] else None, rises=True),
    ),
    (RowFilter("mark", "Mark", _MARKS, lambda row: (one["mark"] for one in row["marks"])),),
)

_FLAGS = {"runs": "Runs", "drains": "Drains", "dead": "Dies"}
_WHO = {"agents": "Agents", "people": "People"}
PROVEN = BoardTable(
    "/boards/proven_calls",
    (
        SortColumn("time", "Proved", lambda row: row["provedAt"]),
        _TOKEN,
        SortColumn("flag", "Flag", lambda row: row["kind"], rises=True),
        SortColumn("account", "Account", lambda row: row["mite"]["designation"], rises=True),
        SortColumn("level", "Level", lambda row: row["mite"]["level"]),
        SortColumn(
            "right", "Right so far", lambda row: row["mite"]["proved"] / max(1, row["mite"]["decided"])
        ),
        SortColumn("before", "In advance", lambda row: row["beforeS"]),
    ),
    (
        RowFilter("flag", "Flag", _FLAGS, lambda row: (row["kind"],)),
        RowFilter("who", "Accounts", _WHO, lambda row: ("agents" if row["mite"]["agent"] else "people",)),
    ),
)

LEAGUE = BoardTable(
    "/league",
    (
        SortColumn("profit", "Profit", lambda row: float(row["profitEth"])),
        SortColumn("account", "Account", lambda row: row["designation"], rises=True),
        SortColumn("sells", "Sells", lambda row: row["sells"]),
        SortColumn("won", "With profit", lambda row: row["won"] / max(1, row["sells"])),
        SortColumn("best", "Best sell", lambda row: float(row["best"]["profitEth"]) if row["best"] else None),
    ),
    (RowFilter("who", "Accounts", _WHO, lambda row: ("agents" if row["agent"] else "people",)),),
)

TABLES: Mapping[str, BoardTable] = MappingProxyType(
    {
        "moving_now": MOVING,
        "graduating_soon": GRADUATING,
        "winners": WINNERS,
        "newest_verdicts": NEWEST,
        "signals": SIGNALS,
        "wallet_names": NAMES,
        "proven_calls": PROVEN,
    }
)
"""By the board's name."""
