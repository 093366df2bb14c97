"""What is said of how long things took."""

from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.metrics import BUCKETS_S, NEWEST, Durations, Measures


def test_nothing_measured_is_no_zero() -> None:
    assert Durations().quantile_s(95) is None
    assert Durations().count() == 0


def test_quantiles_are_by_nearest_rank() -> None:
    one = Durations()
    for number in range(100, 0, -1):
        one.observe(float(number))
    assert [one.quantile_s(percent) for percent in (1, 50, 95, 100)] == [1.0, 50.0, 95.0, 100.0]


def test_quantiles_are_of_the_newest_and_counts_of_all() -> None:
    one = Durations()
    for took_s in [100.0] * NEWEST + [0.001] * NEWEST:
        one.observe(took_s)
    assert one.quantile_s(95) == 0.001
    assert one.count() == 2 * NEWEST
    assert (one.counts[0], one.counts[-1]) == (NEWEST, NEWEST)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=NEWEST), st.integers(1, 100))
def test_so_many_in_a_hundred_took_no_longer(taken: list[float], percent: int) -> None:
    one = Durations()
    for took_s in taken:
        one.observe(took_s)
    found = one.quantile_s(percent)
    assert found in taken
    assert sum(took_s <= found for took_s in taken) * 100 >= percent * len(taken)
    for place, bound in enumerate(BUCKETS_S, 1):
        assert sum(one.counts[:place]) == sum(took_s <= bound for took_s in taken)


def test_each_label_is_measured_for_itself() -> None:
    measures = Measures()
    measures.observe("node", "reads", "answered", 1.0)
    measures.observe("node", "reads", "failed", 2.0)
    assert [(label, one.total_s) for label, one in measures.all()] == [
        (("node", "reads", "answered"), 1.0),
        (("node", "reads", "failed"), 2.0),
    ]
