"""Which replica may answer, by what was seen of it and when."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.config.settings import Settings
from roundtrip.store.replicas.pools import (
    FORGIVEN_S,
    LONGEST_LEAVE_S,
    MAX_BEHIND_S,
    UNFLUSHED_S,
    PrimaryLog,
    ReplicaStanding,
    pick_least_lent,
)

LIMIT_S = MAX_BEHIND_S - UNFLUSHED_S


@given(
    st.lists(st.tuples(st.floats(0.01, 1.0), st.integers(0, 50)), min_size=1, max_size=40),
    st.integers(0, 39),
    st.integers(0, 60),
)
def test_a_replica_is_never_taken_for_newer_than_it_is(
    steps: list[tuple[float, int]], seen: int, missing: int
) -> None:
    log, now_s, position = PrimaryLog(), 0.0, 100
    history = []
    for waited_s, written in steps:
        now_s, position = now_s + waited_s, position + written
        log.note(now_s, position)
        history.append((now_s, position))
    replayed = history[min(seen, len(history) - 1)][1] - missing
    current_s = log.current_until(replayed)
    has = [at_s for at_s, end in history if end <= replayed]
    assert current_s is None or current_s == max(has)
    # What is kept decides about everything that could still be fit.
    assert current_s is not None or not has or has[-1] < now_s - MAX_BEHIND_S


def test_one_that_is_ahead_of_the_primary_is_of_another_history() -> None:
    log = PrimaryLog()
    assert log.current_until(5) is None
    log.note(1.0, 100)
    assert log.current_until(101) == -math.inf
    assert log.current_until(100) == 1.0


def test_positions_of_another_primary_are_not_compared() -> None:
    log = PrimaryLog()
    log.note(1.0, 100)
    log.note(2.0, 50)
    assert log.current_until(49) is None
    assert log.current_until(100) == -math.inf
    log.note(3.0, 60)
    log.clear()
    assert log.current_until(60) is None


def test_it_fits_until_what_it_has_and_has_not_flushed_is_two_seconds_old() -> None:
    standing = ReplicaStanding(current_s=10.0)
    assert standing.fits(10.0 + LIMIT_S - 0.01, None)
    assert not standing.fits(10.0 + LIMIT_S + 0.01, None)
    assert not ReplicaStanding().fits(0.0, None)


def test_without_a_primary_it_is_judged_by_when_that_was_last_there() -> None:
    assert ReplicaStanding(current_s=10.0).fits(500.0, 11.0)
    assert not ReplicaStanding(current_s=10.0).fits(500.0, 12.0)
    assert not ReplicaStanding().fits(500.0, -math.inf)


def test_one_that_fails_is_left_for_longer_each_time_and_forgiven() -> None:
    standing, now_s, waits = ReplicaStanding(current_s=math.inf), 0.0, []
    for _ in range(8):
        standing.note_fault(now_s)
        waits.append(standing.left_until_s - now_s)
        now_s = standing.left_until_s
        assert standing.fits(now_s, None)
        assert not standing.fits(now_s - 0.01, None)
    assert waits == [1, 2, 4, 8, 16, LONGEST_LEAVE_S, LONGEST_LEAVE_S, LONGEST_LEAVE_S]
    now_s += FORGIVEN_S + 1
    standing.note_fault(now_s)
    assert standing.left_until_s == now_s + 1


def test_requests_that_fail_together_are_one_fault() -> None:
    standing = ReplicaStanding(current_s=math.inf)
    for at_s in (5.0, 5.1, 5.9):
        standing.note_fault(at_s)
    assert standing.left_until_s == 6.0


@given(st.lists(st.integers(0, 3), max_size=5), st.integers(0, 100))
def test_the_least_busy_is_chosen_and_equals_take_turns(lent: list[int], turn: int) -> None:
    fit = list(range(len(lent)))
    chosen = pick_least_lent(fit, lent, turn)
    if chosen is None:
        assert not lent
        return
    assert lent[chosen] == min(lent)
    if len(set(lent)) == 1:
        assert chosen == turn % len(lent)


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("postgresql://a/x", ("postgresql://a/x",)),
        (
            "postgresql://a,b/x?password=p,q, postgres://c:1/x",
            ("postgresql://a,b/x?password=p,q", "postgres://c:1/x"),
        ),
    ],
)
def test_a_comma_within_a_url_separates_hosts(text: str, urls: tuple[str, ...]) -> None:
    assert Settings(read_database_url=text).read_database_urls() == urls


def test_without_the_setting_there_is_no_replica() -> None:
    assert Settings().read_database_urls() == ()
