"""How a reader looks at what moves: what passes, in which order, and which address shows it again."""

from typing import Any
from urllib.parse import parse_qsl

import pytest

from roundtrip.console.support.board_tables import (
    GRADUATING,
    LEAGUE,
    MOVING,
    NAMES,
    NEWEST,
    PROVEN,
    SIGNALS,
    TABLES,
    WINNERS,
)
from roundtrip.console.support.board_view import BoardTable, BoardView, Row

SORTS = MOVING.sorts
TOKEN = {"symbol": "AB", "address": "0x1"}


def row(name: str, group: str = "listed", level: str | None = "ok", **figures: Any) -> dict[str, Any]:
    usual = {
        "name": name, "token": TOKEN, "group": group, "venue": "amm_v3",
        "verdict": level and {"level": level},
        "netInEth": 1.0, "priceEth": 1.0, "change5m": None, "change1h": None, "change24h": None,
        "volumeEth": 1.0, "liquidityEth": 1.0, "freeBps": None, "insidersBps": None, "holders": 1, "ageS": 60,
    }  # fmt: skip
    return usual | figures


def look(query: str, *rows: dict[str, Any]) -> dict[str, list[str]]:
    groups = BoardView.of(MOVING, dict(parse_qsl(query))).arrange(rows)
    return {name: [one["name"] for one in some] for name, some in groups.items() if some}


def test_traps_and_what_is_not_proven_stand_below_whatever_they_are_sorted_by() -> None:
    rows = (
        row("trap", "danger", "danger", netInEth=9.0),
        row("new", "checking", None, netInEth=8.0),
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
    assert look("sort=age", row("old", ageS=90), row("young", ageS=5)) == {"listed": ["young", "old"]}
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
        row("a", liquidityEth=1.0, ageS=3599),
        row("b", venue="launchpad_curve", liquidityEth=10.0, ageS=3600),
        row("c", level="warn", liquidityEth=None, ageS=10**7),
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


MADE: list[tuple[BoardTable, Row, set[str]]] = [
    (MOVING, row("a", liquidityEth=10.0), {"verdict-ok", "venue-amm_v3", "age-1h", "liquidity-10"}),
    (
        GRADUATING,
        {
            "token": TOKEN, "verdict": None, "fillBps": 9_500, "raised": "3.5", "quote": "usdg", "buys": 1,
            "buyers": 1, "insidersBps": 700, "ageS": 90_000, "deployer": {"graduated": 2, "soldOwn": 0},
        },
        {"full-50", "full-80", "full-95", "age-7d", "insiders-20", "deployer-1", "deployer-kept"},
    ),
    (NEWEST, {"token": TOKEN, "verdict": {"level": "danger", "checkedAt": "2026"}}, {"verdict-danger"}),
    (
        WINNERS,
        {
            "wallet": "0x1", "profitEth": 1.0, "returnMultiple": None, "closed": 2, "won": 1, "winRate": 0.5,
            "best": {"profitEth": 1.0},
        },
        {"closed-2", "won-50"},
    ),
    (
        SIGNALS,
        {
            "token": TOKEN, "verdict": None, "kind": "large_burn", "block": 1,
            "size": {"eth": None, "supplyBps": 5},
        },
        {"kind-large_burn"},
    ),
    (NAMES, {"wallet": "0x1", "names": [], "marks": [{"mark": "scam", "people": 3}]}, {"mark-scam"}),
    (
        PROVEN,
        {
            "token": TOKEN, "kind": "dead", "provedAt": "2026", "beforeS": 1,
            "mite": {"designation": "a", "level": 1, "proved": 0, "decided": 0, "agent": True},
        },
        {"flag-dead", "who-agents"},
    ),
    (
        LEAGUE,
        {"profitEth": "-1.5", "designation": "a", "agent": False, "sells": 3, "won": 0, "best": None},
        {"who-people"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("table", "made", "passes"), MADE, ids=[table.path for table, _, _ in MADE])
def test_every_board_can_be_sorted_by_each_column_and_filtered(
    table: BoardTable, made: Row, passes: set[str]
) -> None:
    tags = table.read_tags(made)
    assert passes <= tags
    offered = {f"{one.name}-{value}" for one in table.filters for value in one.values}
    assert tags - {"group-listed"} <= offered
    for sort in table.sorts:
        view = BoardView.of(table, {"sort": sort.name})
        assert view.sort is sort
        assert view.arrange([made, made])["listed"] == [made, made]


def test_amounts_of_different_money_are_not_compared() -> None:
    rows: list[Row] = [{**made, "raised": raised, "quote": quote} for _, made, _ in MADE[1:2]
            for raised, quote in (("9000", "usdg"), ("1", "eth"), ("2", "weth"))]  # fmt: skip
    found = BoardView.of(GRADUATING, {"sort": "raised"}).arrange(rows)["listed"]
    assert [row["raised"] for row in found] == ["2", "1", "9000"]


def test_every_board_has_a_table() -> None:
    assert {table.path for table, _, _ in MADE} == {"/league", *(table.path for table in TABLES.values())}
