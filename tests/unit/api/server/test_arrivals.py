"""In which order requests are started, and which are refused: turns are made by hand."""

import functools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.api.server.arrivals import (
    INTERVAL_S,
    MOST_STARTS,
    PAGES_TURN,
    PATIENCE_S,
    TARGET_S,
    TURN_S,
    Arrival,
    ArrivalQueue,
    CallerSort,
    StandingDelay,
)

SORTS: list[CallerSort] = ["keyed", "page", "other"]
QUICK_S, LONG_S = TURN_S / 4, TURN_S * 1.5


class Turns:
    """A queue, its turns, and what became of each request."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.queue = ArrivalQueue()
        self.started: list[int] = []
        self.refused: list[int] = []
        self.came_s: dict[int, float] = {}
        self.waited_s: dict[int, float] = {}

    def come(self, sort: CallerSort, count: int = 1) -> None:
        """So many requests are read."""
        for _ in range(count):
            number = len(self.came_s)
            self.came_s[number] = self.now_s
            if self.queue.starts_now():
                self._end(number, self.started)
                continue
            start: Callable[[], None] = functools.partial(self._end, number, self.started)
            refuse = functools.partial(self._refuse, number)
            self.queue.add(sort, Arrival(self.now_s, start, refuse))

    def end(self, took_s: float = QUICK_S) -> bool:
        """A turn ends."""
        self.now_s += took_s
        return self.queue.end_turn(self.now_s, took_s)

    def _refuse(self, number: int, waited_s: float) -> None:
        self._end(number, self.refused)
        assert waited_s == self.waited_s[number]

    def _end(self, number: int, ends: list[int]) -> None:
        assert number not in self.waited_s, "it ended twice"
        self.waited_s[number] = self.now_s - self.came_s[number]
        ends.append(number)

    def overload(self) -> None:
        """More than can be done, of all sorts, until it stands."""
        for _ in range(int(3 * INTERVAL_S / LONG_S)):
            for sort in SORTS:
                self.come(sort, 3)
            self.end(LONG_S)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 0.05)), max_size=60))
def test_a_delay_stands_only_after_an_interval_above_the_target(looks: list[tuple[bool, float]]) -> None:
    """And ends only after one below it."""
    delay, now_s = StandingDelay(), 0.0
    other_s, stood = 0.0, False
    for is_late, gap_s in looks:
        now_s += gap_s
        delay.look(now_s, TARGET_S * (2.0 if is_late else 0.5))
        other_s = 0.0 if is_late == stood else other_s + gap_s
        if delay.stands != stood:
            assert other_s >= INTERVAL_S
            stood, other_s = delay.stands, 0.0
    if looks and all(is_late for is_late, _ in looks) and len(looks) > 1:
        # A gap counts up to a quarter of the interval.
        assert delay.stands == (sum(min(gap_s, INTERVAL_S / 4) for _, gap_s in looks[1:]) >= INTERVAL_S)


def test_a_process_that_stood_still_was_not_behind() -> None:
    delay = StandingDelay()
    delay.look(0.0, TARGET_S * 2)
    delay.look(3600.0, 3600.0)
    assert not delay.stands


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(SORTS), max_size=40), st.floats(0.0001, 0.04)),
        min_size=1,
        max_size=40,
    )
)
def test_every_request_is_started_or_refused_once(turns: list[tuple[list[CallerSort], float]]) -> None:
    """At once or in a turn; the queue asks for turns as long as one waits, and never without end."""
    found = Turns()
    for sorts, took_s in turns:
        for sort in sorts:
            found.come(sort)
        before = len(found.started)
        found.end(took_s)
        assert len(found.started) - before <= MOST_STARTS
    ends = 0
    while found.end(QUICK_S):
        ends += 1
        assert ends <= len(found.came_s) + 1
    assert sorted(found.started + found.refused) == list(range(len(found.came_s)))
    assert found.queue.count_waiting() == 0


@given(st.lists(st.lists(st.sampled_from(SORTS), max_size=12), min_size=1, max_size=200))
def test_without_a_delay_that_stands_nobody_is_refused(turns: list[list[CallerSort]]) -> None:
    """Whoever waits less than the interval did not meet overload."""
    found = Turns()
    for sorts in turns:
        for sort in sorts:
            found.come(sort)
        found.end(QUICK_S)
        while found.queue.count_waiting():
            found.end(QUICK_S)
    assert not found.refused


def test_in_time_each_is_started_as_it_comes() -> None:
    found = Turns()
    found.come("other", MOST_STARTS)
    assert len(found.started) == MOST_STARTS
    found.come("other")
    assert len(found.started) == MOST_STARTS
    assert found.end()
    assert len(found.started) == MOST_STARTS + 1
    assert not [turn for turn in range(2) if found.end()], "nothing is left to do"


def test_long_turns_start_fewer_and_short_ones_more() -> None:
    found = Turns()
    found.come("other", 200)
    counts = []
    for took_s in [LONG_S] * 6 + [QUICK_S] * 4:
        before = len(found.started)
        found.end(took_s)
        counts.append(len(found.started) - before)
    assert counts == [16, 8, 4, 2, 1, 1, 2, 3, 4, 5]


def test_a_key_is_served_before_the_others() -> None:
    found = Turns()
    found.come("other", MOST_STARTS)
    found.come("other", 20)
    found.come("keyed", 3)
    found.end(LONG_S)
    keyed = range(MOST_STARTS + 20, MOST_STARTS + 23)
    assert found.started[MOST_STARTS:][:3] == list(keyed)


def test_pages_have_their_part_and_no_more_beside_keys() -> None:
    found = Turns()
    found.come("other", MOST_STARTS)
    found.come("keyed", 40)
    found.come("page", 40)
    found.end(QUICK_S)
    pages = [number for number in found.started if number >= MOST_STARTS + 40]
    assert len(pages) == MOST_STARTS // PAGES_TURN


def test_under_overload_who_waits_too_long_is_told_soon() -> None:
    found = Turns()
    found.overload()
    before = len(found.refused)
    found.overload()
    late = found.refused[before:]
    assert late
    assert max(found.waited_s[number] for number in late) <= max(PATIENCE_S.values()) + 2 * LONG_S


def test_under_overload_the_newest_is_started() -> None:
    found = Turns()
    found.overload()
    while found.end(LONG_S) and found.queue.count_waiting():
        pass
    found.come("other", 1)
    found.come("other", 3)
    first, *_, last = range(len(found.came_s) - 3, len(found.came_s))
    found.end(LONG_S)
    assert found.started[-1] == last
    assert first not in found.started


@pytest.mark.parametrize("sort", SORTS)
def test_it_ends_with_the_load(sort: CallerSort) -> None:
    found = Turns()
    found.overload()
    while found.end(QUICK_S):
        pass
    found.now_s += INTERVAL_S
    refused = len(found.refused)
    found.come(sort, 2 * MOST_STARTS)
    found.now_s += max(PATIENCE_S.values())
    while found.end(QUICK_S):
        pass
    assert len(found.refused) == refused


@given(st.lists(st.sampled_from(SORTS), min_size=1, max_size=200), st.integers(1, 12))
def test_keys_are_refused_no_sooner_than_others(sorts: list[CallerSort], each: int) -> None:
    """Of those that came at the same time."""
    found = Turns()
    of: dict[int, CallerSort] = {}
    for start in range(0, len(sorts), each):
        for sort in sorts[start : start + each]:
            of[len(found.came_s)] = sort
            found.come(sort)
        found.end(LONG_S)
    refused = {number: found.waited_s[number] for number in found.refused}
    for number, waited_s in refused.items():
        assert waited_s > PATIENCE_S[of[number]]


def test_turns_in_which_none_waits_are_not_measured_and_start_more_again() -> None:
    found = Turns()
    found.come("other", 200)
    while found.queue.count_waiting():
        found.end(LONG_S)
    for _ in range(MOST_STARTS):
        found.queue.end_calm_turn()
    started = len(found.started)
    found.come("other", MOST_STARTS + 1)
    assert len(found.started) - started == MOST_STARTS
