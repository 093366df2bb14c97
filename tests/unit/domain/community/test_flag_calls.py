"""Flags: their life against a model of it, what proves them, and what they say of an account."""

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from roundtrip.domain.base.errors import IllegalMove
from roundtrip.domain.community.flag_calls import (
    APART_S,
    DAY_S,
    DEAD_WEI,
    LIFE,
    RUNS_WEI,
    SETTLED_S,
    WEEK_S,
    Event,
    FlaggedToken,
    FlagReading,
    FlagScore,
    FlagWeek,
    State,
    TradedSinceFlag,
    drain_cause,
    is_dead,
    next_state,
    quiet_since_s,
    run_event,
)

AT_S = 1_760_000_000
WEEK = FlagWeek(AT_S, AT_S + WEEK_S)


class FlagLife(RuleBasedStateMachine):
    """``over``: what it came to. ``high``: it was seen to pay enough, and not since to pay less."""

    def __init__(self) -> None:
        super().__init__()
        self.state: State = "open"
        self.over: State | None = None
        self.high = False

    @rule(event=st.sampled_from(get_args(Event)))
    def happens(self, event: Event) -> None:
        legal = self.over is None and (
            event in ("late", "lost")
            or (self.high and event in ("held", "fell"))
            or (not self.high and event in ("fits", "proved"))
        )
        if not legal:
            with pytest.raises(IllegalMove):
                next_state(self.state, event)
            return
        self.state = next_state(self.state, event)
        if event in ("fits", "fell"):
            self.high = event == "fits"
        else:
            ends: dict[Event, State] = {"late": "failed", "lost": "void"}
            self.over = ends.get(event, "proved")

    @rule()
    def another(self) -> None:
        if self.over is not None:
            self.state, self.over, self.high = "open", None, False

    @invariant()
    def is_what_the_model_says(self) -> None:
        assert self.state == (self.over or ("seen" if self.high else "open"))
        assert (self.state in ("open", "seen")) == (self.over is None)


def test_the_life_of_a_flag() -> None:
    run_state_machine_as_test(FlagLife)


def test_every_state_is_reached_and_what_is_over_stays_so() -> None:
    assert {"open", *LIFE.values()} == set(get_args(State))
    assert {state for state, _ in LIFE} == {"open", "seen"}


def paid(wei: int, after_s: int = 0) -> FlagReading:
    return FlagReading(7, AT_S + after_s, wei)


@pytest.mark.parametrize(
    ("state", "seen_s", "now", "event"),
    [
        ("open", None, paid(RUNS_WEI - 1), None),
        ("open", None, paid(RUNS_WEI), "fits"),
        ("open", None, paid(RUNS_WEI, WEEK_S), "fits"),
        ("open", None, paid(RUNS_WEI, WEEK_S + 1), None),
        ("seen", AT_S, paid(RUNS_WEI, APART_S - 1), None),
        ("seen", AT_S, paid(RUNS_WEI, APART_S), "held"),
        ("seen", AT_S, paid(RUNS_WEI - 1, APART_S), "fell"),
        ("seen", AT_S, paid(0, 1), "fell"),
        ("seen", AT_S, paid(RUNS_WEI, WEEK_S + 1), None),
    ],
)
def test_it_runs_in_two_readings_ten_minutes_apart(
    state: State, seen_s: int | None, now: FlagReading, event: Event | None
) -> None:
    assert run_event(state, seen_s, now, WEEK.ends_s) == event


@given(prices=st.lists(st.tuples(st.integers(1, 900), st.sampled_from((0, RUNS_WEI - 1, RUNS_WEI)))))
def test_a_moment_proves_nothing(prices: list[tuple[int, int]]) -> None:
    """It is proved only where it paid enough for ten minutes, at every reading of them."""
    state: State = "open"
    at_s, seen_s, high_s = AT_S, None, None
    for after_s, wei in prices:
        at_s += after_s
        high_s = None if wei < RUNS_WEI else (at_s if high_s is None else high_s)
        event = run_event(state, seen_s, FlagReading(1, at_s, wei), WEEK.ends_s)
        if event is not None:
            state = next_state(state, event)
        seen_s = at_s if event == "fits" else (None if event == "fell" else seen_s)
        assert (state == "proved") == (high_s is not None and at_s - high_s >= APART_S)
        if state == "proved":
            return


def test_it_is_dead_when_it_is_down_ninety_percent() -> None:
    assert is_dead(paid(DEAD_WEI))
    assert is_dead(paid(0))
    assert not is_dead(paid(DEAD_WEI + 1))


def test_the_day_without_a_trade_comes_after_the_flag_and_within_the_week() -> None:
    assert quiet_since_s(WEEK, AT_S + DAY_S + SETTLED_S - 1) is None
    assert quiet_since_s(WEEK, AT_S + DAY_S + SETTLED_S) == AT_S
    assert quiet_since_s(WEEK, WEEK.ends_s + SETTLED_S) == WEEK.ends_s - DAY_S
    assert quiet_since_s(WEEK, WEEK.ends_s + SETTLED_S + 1) is None


@pytest.mark.parametrize(
    ("left", "by"),
    [
        (FlaggedToken(), None),
        (FlaggedToken(100, (49, 49)), None),
        (FlaggedToken(100, (50, 50)), "liquidity"),
        (FlaggedToken(100, (50, 49)), None),
        (FlaggedToken(100, (0, 100)), None),
        (FlaggedToken(None, (100, 100)), None),
        (FlaggedToken(101, (50, 50)), None),
        (FlaggedToken(100, (0, 0), 9, (4, 4)), None),
        (FlaggedToken(100, (0, 0), 9, (5, 5)), "deployer"),
        (FlaggedToken(None, (0, 0), 9, (5, 4)), None),
        (FlaggedToken(None, (0, 0), None, (5, 5)), None),
        (FlaggedToken(100, (50, 50), 9, (9, 9)), "liquidity"),
    ],
)
def test_it_drains_when_half_is_gone_and_stays_away(left: FlaggedToken, by: str | None) -> None:
    assert drain_cause(left) == by


@pytest.mark.parametrize(
    ("answered_s", "newest_s", "event"),
    [
        (WEEK.ends_s, WEEK.ends_s + SETTLED_S, None),
        (WEEK.ends_s, WEEK.ends_s + SETTLED_S + 1, "late"),
        (WEEK.ends_s - DAY_S, WEEK.ends_s + SETTLED_S + 1, "late"),
        (WEEK.ends_s - DAY_S - 1, WEEK.ends_s + SETTLED_S + 1, "lost"),
        (None, WEEK.ends_s + SETTLED_S + 1, "lost"),
        (None, AT_S, None),
    ],
)
def test_what_nobody_could_find_out_is_not_wrong(
    answered_s: int | None, newest_s: int, event: Event | None
) -> None:
    assert FlagWeek(AT_S, AT_S + WEEK_S, answered_s).end(newest_s) == event


def test_facts_count_once_they_are_settled_and_within_the_week() -> None:
    assert WEEK.settled_s(AT_S + 1000) == AT_S + 1000 - SETTLED_S
    assert WEEK.settled_s(WEEK.ends_s + DAY_S) == WEEK.ends_s


def test_whose_money_moved_it() -> None:
    assert TradedSinceFlag(bought_wei=10, purses=3).risen_by_others()
    assert not TradedSinceFlag(bought_wei=10, purses=2).risen_by_others()
    assert TradedSinceFlag(own_bought_wei=1, bought_wei=10, purses=3).risen_by_others()
    assert not TradedSinceFlag(own_bought_wei=2, bought_wei=10, purses=3).risen_by_others()
    assert TradedSinceFlag().fallen_by_others()
    assert TradedSinceFlag(own_sold_wei=1, sold_wei=10).fallen_by_others()
    assert not TradedSinceFlag(own_sold_wei=2, sold_wei=10).fallen_by_others()


@given(proved=st.integers(0, 10**6))
def test_the_level_counts_what_proved_right(proved: int) -> None:
    assert FlagScore(proved, proved).level == 1 + math.floor(math.log2(1 + proved))
    assert FlagScore(proved, 2 * proved, 9, 9).level == 1 + math.floor(math.log2(1 + proved))


@given(proved=st.integers(1, 10**6))
def test_an_account_that_is_never_right_by_chance_is_ahead_of_it(proved: int) -> None:
    assert FlagScore(proved, proved, 0, 1).is_ahead
    assert FlagScore(proved, 2 * proved, 0, 9).is_ahead


@given(proved=st.integers(0, 1000), wrong=st.integers(0, 1000))
def test_an_account_that_is_right_as_often_as_chance_is_not_ahead_of_it(proved: int, wrong: int) -> None:
    decided = proved + wrong
    score = FlagScore(proved, decided, proved, decided)
    assert score.accuracy == score.base_rate
    assert score.is_ahead is (False if decided else None)


def test_to_be_ahead_takes_more_than_luck() -> None:
    assert not FlagScore(30, 60, 29, 60).is_ahead
    assert FlagScore(30, 60, 22, 60).is_ahead
    # Of fewer controls, as often.
    assert not FlagScore(30, 60, 14, 30).is_ahead
    assert not FlagScore(0, 5, 3, 5).is_ahead


def test_rates_of_nothing_are_not_known() -> None:
    assert (FlagScore().accuracy, FlagScore().base_rate, FlagScore().level) == (None, None, 1)
    assert FlagScore().is_ahead is None
    assert FlagScore(9, 9).is_ahead is None
    assert (FlagScore(1, 4, 1, 2).accuracy, FlagScore(1, 4, 1, 2).base_rate) == (0.25, 0.5)
