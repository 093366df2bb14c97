"""How a reader looks at what moves: what passes, in which order, and which address shows it again."""

from typing import Any
from urllib.parse import parse_qsl

import pytest

from roundtrip.console.support.moving_view import (
    BY_NAME,
    SORTS,
    USUAL,
    MovingView,
    draw_line,
    read_tags,
    short_age,
    short_amount,
    short_change,
)


def row(name: str, group: str = "listed", level: str | None = "ok", **figures: Any) -> dict[str, Any]:
    usual = {
        "name": name, "group": group, "verdict": level and {"level": level}, "venue": "amm_v3",
        "netInEth": 1.0, "priceEth": 1.0, "change5m": None, "change1h": None, "change24h": None,
        "volumeEth": 1.0, "liquidityEth": 1.0, "holders": 1, "ageS": 60,
    }  # fmt: skip
    return usual | figures


def look(query: str, *rows: dict[str, Any]) -> dict[str, list[str]]:
    groups = MovingView.of(dict(parse_qsl(query))).arrange(rows)
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
    assert "verdict-ok" not in read_tags(row("a", "checking", "ok"))


def test_an_address_shows_the_same_view_again() -> None:
    view = MovingView.of({"sort": "age", "turned": "1", "venue": "amm_v4", "dangers": "hide"})
    assert MovingView.of(dict(parse_qsl(view.link().lstrip("?")))) == view
    assert USUAL.link() == ""
    assert USUAL.link_sort(BY_NAME["age"]) == "?sort=age"
    assert MovingView.of({"sort": "age"}).link_sort(BY_NAME["age"]) == "?sort=age&turned=1"
    # Turned once more it is as before; an empty query would keep the old one.
    assert MovingView.of({"turned": "1"}).link_sort(SORTS[0]) == "?"


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    assert draw_line([None, 0, 100, None, 50, 50], 100, 12) == ["20,11.0 40,1.0", "80,6.0 100,6.0"]
    assert draw_line([None, 5, None], 100, 12) == []


def test_figures_are_short() -> None:
    assert [short_amount(value) for value in (0, 1234.5, 2_661_911.5, 999.9, 0.00012345, 5)] == [
        "0", "1.23K", "2.66M", "999", "0.000123", "5",
    ]  # fmt: skip
    assert [short_change(bps) for bps in (0, 1234, -1234, -5, 22_400)] == [
        "+0.0 %", "+12.3 %", "−12.3 %", "−0.0 %", "+224 %",
    ]  # fmt: skip
    assert [short_age(seconds) for seconds in (0, 59, 3599, 7200, 200_000)] == [
        "0 s", "59 s", "59 min", "2 h", "2 d",
    ]  # fmt: skip
