"""The rule by which a long run is told flat: what rises, what only fills up, and what a peak says."""

from collections.abc import Callable

import pytest

from support.flatness import Allowance, course

RULE = Allowance(share=0.02, least=4.0)


def sampled(of: Callable[[float], float], seconds: int = 1800) -> list[tuple[float, float]]:
    """Every five seconds, with the saw that a collector of garbage makes."""
    return [(float(at), of(at) + at // 5 % 4) for at in range(0, seconds, 5)]


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (lambda at: 100.0, "flat"),
        (lambda at: 100 + at / 1800 * 3, "flat"),
        (lambda at: 100 + at / 1800 * 20, "rises"),
        (lambda at: 500 + at / 1800 * 13, "flat"),
        (lambda at: 100 + min(at, 400) / 10, "flat"),
        (lambda at: 100 + min(at, 1100) / 10, "fills"),
        (lambda at: 100 + max(0.0, at - 1100) / 10, "rises"),
        (lambda at: 200 - at / 20, "flat"),
        (lambda at: 5_000 if 900 <= at < 960 else 100, "flat"),
    ],
    ids=[
        "level", "within the least", "a leak", "within the share", "warmed up", "a cache that fills",
        "a leak that begins late", "falls", "one peak",
    ],
)  # fmt: skip
@pytest.mark.parametrize("seconds", [180, 1800])
def test_what_a_course_is_told(of: Callable[[float], float], says: str, seconds: int) -> None:
    """Of a short run as of a long one."""
    samples = [(at * seconds / 1800, value) for at, value in sampled(of)]
    assert course(samples, RULE).says == says


def test_a_peak_at_the_end_is_no_rise() -> None:
    assert course(sampled(lambda at: 5_000 if 1700 <= at < 1740 else 100), RULE).says == "flat"


def test_what_is_too_high_is_told_however_flat() -> None:
    assert course(sampled(lambda at: 10.0), Allowance(0.1, 1.0, most=5.0)).says == "high"
    assert course(sampled(lambda at: 10.0), Allowance(0.1, 1.0, most=14.0)).says == "flat"


def test_the_figures_of_a_course() -> None:
    found = course([(float(at), at / 10) for at in range(0, 1800, 5)], RULE)
    assert (found.start, found.middle, found.end) == pytest.approx((8.75, 89.75, 170.75), abs=0.5)
    assert found.per_hour == pytest.approx(360.0)
    assert found.most == 179.5


def test_too_few_samples_tell_nothing() -> None:
    with pytest.raises(ValueError, match="5 samples"):
        course([(0.0, 1.0)] * 5, RULE)
