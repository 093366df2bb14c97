"""Figures and lines that fit into a cell."""

from roundtrip.console.support.render import draw_line, short_age, short_amount, short_change


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    assert draw_line([None, 0, 100, None, 50, 50], 100, 12) == ["20,11.0 40,1.0", "80,6.0 100,6.0"]
    assert draw_line([None, 5, None], 100, 12) == []


def test_figures_are_short() -> None:
    assert [short_amount(value) for value in (0, 1234.5, 2_661_911.5, 999.9, 0.00012345, 5)] == [
        "0", "1.23K", "2.66M", "999", "0.000123", "5",
    ]  # fmt: skip
    assert [short_change(bps) for bps in (0, 1234, -1236, -5, 22_477, -9_999, 9_996)] == [
        "+0.0 %", "+12.3 %", "−12.4 %", "−0.1 %", "+225 %", "−99.9 %", "+100 %",
    ]  # fmt: skip
    assert [short_age(seconds) for seconds in (0, 59, 3599, 7200, 200_000)] == [
        "0 s", "59 s", "59 min", "2 h", "2 d",
    ]  # fmt: skip
