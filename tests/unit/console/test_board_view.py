"""How a reader looks at what moves: what passes, in which order, and which address shows it again."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from roundtrip.console.pages.boards import BOARDS
from roundtrip.console.support.board_tables import (
    GRADUATING,
    LEAGUE,
    MOVING,
    NAMES,
    NEWEST,
    PROVEN,
    SIGNALS,
    WINNERS,
    BoardTable,
    BoardView,
)
from roundtrip.domain.market.moving import MovingGroup
from roundtrip.services.boards.graduating_soon import FillingRow, LaunchDeployer
from roundtrip.services.boards.moving_now import WINDOWS_S, MovingRow
from roundtrip.services.boards.newest_verdicts import NewestVerdict
from roundtrip.services.boards.signals import SignalRow, SignalSize
from roundtrip.services.boards.winners import BestTrade, WinnerRow
from roundtrip.services.community.proven_flags import CalledBy, FlagReceipt, ProvenCall
from roundtrip.services.practice.league import LeagueRow
from roundtrip.services.support.answer_fields import MarkSaid
from roundtrip.services.support.index_reader import TokenNamed
from roundtrip.services.support.shown_verdict import ShownVerdict
from roundtrip.services.wallets.names import WalletNamed

SORTS = MOVING.sorts
NOW = datetime(2026, 11, 1, tzinfo=UTC)
TOKEN = TokenNamed("0x1", "AB", "Ab")
USUAL = MovingRow(
    token=TOKEN, group="listed", verdict=None, venue="amm_v3", price_eth=1.0, price_usd=None, cap_usd=None,
    change5m=None, change1h=None, change24h=None, line=[], volume_eth=1.0, volume_usd=None, net_in_eth=1.0,
    buys=1, sells=1, makers=1, is_cut=False, liquidity_eth=1.0, liquidity_usd=None, kept_bps=None,
    free_bps=None, unproven_bps=None, insiders_bps=None, holders=1, more_hold=False, age_s=60, opened_at=NOW,
)  # fmt: skip


def verdict(level: str) -> ShownVerdict:
    return ShownVerdict("ok", level, NOW, 0)


def row(name: str, group: MovingGroup = "listed", level: str | None = "ok", **figures: Any) -> MovingRow:
    """A row of this group, whose token is called so."""
    checked = None if level is None else verdict(level)
    token = TokenNamed(name, "AB", "Ab")
    return msgspec.structs.replace(USUAL, token=token, group=group, verdict=checked, **figures)


def look(query: str, *rows: MovingRow) -> dict[str, list[str]]:
    groups = BoardView.of(MOVING, dict(parse_qsl(query))).arrange(rows)
    return {name: [one.token.address for one in some] for name, some in groups.items() if some}


def test_traps_and_what_is_not_proven_stand_below_whatever_they_are_sorted_by() -> None:
    rows = (
        row("trap", "danger", "danger", net_in_eth=9.0),
        row("new", "checking", None, net_in_eth=8.0),
        row("a"),
    )
    for sort in SORTS:
        found = look(f"sort={sort.name}&turned=1", *rows)
        assert list(found.items()) == [("listed", ["a"]), ("danger", ["trap"]), ("checking", ["new"])]
    assert look("dangers=hide", *rows) == {"listed": ["a"], "checking": ["new"]}


def test_what_is_not_known_stands_last_either_way() -> None:
    rows = row("none"), row("low", change1h=-50), row("high", change1h=70)
    assert look("sort=1h", *rows) == {"listed": ["high", "low", "none"]}
    assert look("sort=1h&turned=1", *rows) == {"listed": ["low", "high", "none"]}
    assert look("sort=age", row("old", age_s=90), row("young", age_s=5)) == {"listed": ["young", "old"]}
    assert look("sort=verdict", row("w", level="warn"), row("o")) == {"listed": ["o", "w"]}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["a", "b", "c"]),
        ("verdict=ok", ["a", "b"]),
        ("venue=launchpad_curve", ["b"]),
        ("age=1h", ["a"]),
        ("age=1d", ["a", "b"]),
        ("liquidity=10", ["b"]),
        ("verdict=ok&liquidity=1", ["a", "b"]),
        ("verdict=nonsense&sort=nonsense&more=1", ["a", "b", "c"]),
    ],
)
def test_filters_let_through_what_is_known_to_pass(query: str, expected: list[str]) -> None:
    rows = (
        row("a", liquidity_eth=1.0, age_s=3599),
        row("b", venue="launchpad_curve", liquidity_eth=10.0, age_s=3600),
        row("c", level="warn", liquidity_eth=None, age_s=10**7),
    )
    assert look(query, *rows).get("listed", []) == expected


def test_what_is_not_proven_passes_no_filter_of_a_verdict() -> None:
    assert look("verdict=ok", row("a", "checking", "ok")) == {}
    assert "verdict-ok" not in MOVING.read_tags(row("a", "checking", "ok"))


def test_an_address_shows_the_same_view_again() -> None:
    view = BoardView.of(MOVING, {"sort": "age", "turned": "1", "venue": "amm_v4", "dangers": "hide"})
    assert BoardView.of(MOVING, dict(parse_qsl(view.link().lstrip("?")))) == view
    age = MOVING.find_sort("age")
    assert BoardView.of(MOVING, {}).link() == ""
    assert BoardView.of(MOVING, {}).link_sort(age) == "?sort=age"
    assert BoardView.of(MOVING, {"sort": "age"}).link_sort(age) == "?sort=age&turned=1"
    # Turned once more it is as before; an empty query would keep the old one.
    assert BoardView.of(MOVING, {"turned": "1"}).link_sort(SORTS[0]) == "?"
    # A board without traps does not hide any.
    assert not BoardView.of(WINNERS, {"dangers": "hide"}).hides_dangers


FILLING = FillingRow(
    token=TOKEN, curve="0x2", quote="usdg", fill_bps=9_500, raised="3.5", threshold="4", raised_raw="35",
    threshold_raw="40", buys=1, buyers=1, launched_at=NOW, age_s=90_000, last_trade_at=None,
    deployer=LaunchDeployer("0x3", 3, 2, 0, False), verdict=None, insiders_bps=700,
)  # fmt: skip
CALLER = CalledBy("a", True, 1, 0, 0, None, None, None)
MADE: list[tuple[BoardTable[Any], Any, set[str]]] = [
    (MOVING, row("a", liquidity_eth=10.0), {"verdict-ok", "venue-amm_v3", "age-1h", "liquidity-10"}),
    (
        GRADUATING,
        FILLING,
        {"full-50", "full-80", "full-95", "age-7d", "insiders-20", "deployer-1", "deployer-kept"},
    ),
    (NEWEST, NewestVerdict(token=TOKEN, verdict=verdict("danger"), age_s=60), {"verdict-danger"}),
    (
        WINNERS,
        WinnerRow(1, "0x1", 1.0, 1.0, None, 2, 1, 0.5, BestTrade(TOKEN, 1.0, 0.5, 3.0, NOW)),
        {"closed-2", "won-50"},
    ),
    (
        SIGNALS,
        SignalRow(
            kind="large_burn", token=TOKEN, wallet="0x1", other=None, recipients=None,
            size=SignalSize(None, 5, None, None), tx="0x4", block=1, time=NOW, text="", verdict=None,
        ),
        {"kind-large_burn"},
    ),
    (NAMES, WalletNamed("0x1", [], [MarkSaid("scam", 3)]), {"mark-scam"}),
    (
        PROVEN,
        ProvenCall(TOKEN, "dead", CALLER, NOW, NOW, 1, FlagReceipt("price", 1, None, 0.1)),
        {"flag-dead", "who-agents"},
    ),
    (LEAGUE, LeagueRow(1, "a", False, None, "-1.5", 3, 0, None), {"who-people"}),
]  # fmt: skip


@pytest.mark.parametrize(("table", "made", "passes"), MADE, ids=[table.path for table, _, _ in MADE])
def test_every_board_can_be_sorted_by_each_column_and_filtered(
    table: BoardTable[Any], made: Any, passes: set[str]
) -> None:
    tags = table.read_tags(made)
    assert passes <= tags
    offered = {f"{one.name}-{value}" for one in table.filters for value in one.values}
    assert tags - {"group-listed"} <= offered
    for sort in table.sorts:
        view = BoardView.of(table, {"sort": sort.name})
        assert view.sort is sort
        assert view.arrange([made, made])["listed"] == [made, made]


def test_a_window_stays_in_every_link_and_changes_no_order() -> None:
    view = BoardView.of(MOVING, {"window": "24h"})
    assert (view.link(), view.params, view.is_usual) == ("?window=24h", {"window": "24h"}, True)
    assert view.link_chip("verdict", "ok") == "?window=24h&verdict=ok"
    assert not BoardView.of(MOVING, {"window": "24h", "sort": "makers"}).is_usual
    # One that is not known is the usual one, and a board without windows has none.
    assert BoardView.of(MOVING, {"window": "2y"}).params == {"window": "10m"}
    assert BoardView.of(WINNERS, {"window": "24h"}).link() == ""
    assert set(MOVING.windows) == set(WINDOWS_S)


def test_an_older_page_stays_in_every_link() -> None:
    view = replace(BoardView.of(NEWEST, {"sort": "loss"}), before="71")
    assert view.link() == "?sort=loss&before=71"
    assert view.link_sort(view.sort) == "?sort=loss&turned=1&before=71"
    assert view.link_sort(NEWEST.sorts[0]) == "?before=71"
    assert view.link_chip("verdict", "ok") == "?sort=loss&verdict=ok&before=71"
    assert view.link(before="") == "?sort=loss"


def test_amounts_of_different_money_are_not_compared() -> None:
    rows = [
        msgspec.structs.replace(FILLING, raised=raised, quote=quote)
        for raised, quote in (("9000", "usdg"), ("1", "eth"), ("2", "weth"))
    ]
    sorted_rows = BoardView.of(GRADUATING, {"sort": "raised"}).arrange(rows)["listed"]
    assert [one.raised for one in sorted_rows] == ["2", "1", "9000"]


def test_every_board_has_a_table() -> None:
    assert {table.path for table, _, _ in MADE} == {"/league", *(board.table.path for board in BOARDS)}
