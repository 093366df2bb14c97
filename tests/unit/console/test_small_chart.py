"""Small charts: where their points are."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from roundtrip.console.support.render import HEIGHT, WIDTH, draw_curve

START = datetime(2026, 1, 5, tzinfo=UTC)


def at(*values: tuple[int, str]) -> list[tuple[datetime, Decimal]]:
    return [(START + timedelta(hours=hours), Decimal(value)) for hours, value in values]


def test_nothing_is_drawn_of_one_moment() -> None:
    assert draw_curve([]) is None
    assert draw_curve(at((0, "1"))) is None
    assert draw_curve(at((0, "1"), (0, "2"))) is None


def test_zero_is_always_within_and_the_time_is_to_scale() -> None:
    curve = draw_curve(at((0, "1"), (1, "2"), (4, "-1")))
    assert curve is not None
    assert [x for x, _ in curve.points] == [0, WIDTH / 4, WIDTH]
    heights = [y for _, y in curve.points]
    assert heights[1] < heights[0] < curve.zero < heights[2] < HEIGHT
    assert (curve.low, curve.high) == (Decimal(-1), Decimal(2))


def test_a_line_of_zeros_lies_on_zero() -> None:
    curve = draw_curve(at((0, "0"), (1, "0")))
    assert curve is not None
    assert {y for _, y in curve.points} == {curve.zero}


def test_in_stairs_a_value_holds_until_the_next() -> None:
    curve = draw_curve(at((0, "0"), (1, "1"), (2, "1")))
    assert curve is not None
    assert curve.line() == "0.0,116.0 300.0,4.0 600.0,4.0"
    assert curve.stairs() == "0.0,116.0 300.0,116.0 300.0,4.0 600.0,4.0 600.0,4.0"
    assert curve.stairs(2) == "0.0,116.0 300.0,116.0 300.0,4.0"
