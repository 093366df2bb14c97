"""The lives of channels and deliveries against models of them, and the waits between tries."""

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from roundtrip.domain.base.errors import IllegalMove
from roundtrip.domain.watch.channels import (
    DELIVERY_LIFE,
    LIFE,
    MAX_TRIES,
    OFF_AFTER_S,
    QUIET,
    WAITS_S,
    DeliveryEvent,
    DeliveryState,
    Event,
    State,
    failing_since,
    failure,
    next_delivery_state,
    next_state,
    split_messages,
    wait_s,
)

NOW = datetime(2025, 10, 9, tzinfo=UTC)


class ChannelLife(RuleBasedStateMachine):
    """``model``: what is known of the channel in other words."""

    def __init__(self) -> None:
        super().__init__()
        self.state: State = "live"
        self.alive = self.well = True
        self.is_told = True

    @rule(event=st.sampled_from(get_args(Event)))
    def happens(self, event: Event) -> None:
        before = self.state
        is_legal = self.alive and (
            event in ("delivered", "removed")
            or (self.is_told and event in ("failed", "gone"))
            or (self.is_told and not self.well and event == "failed_long")
        )
        if not is_legal:
            with pytest.raises(IllegalMove):
                next_state(before, event)
            return
        self.state = next_state(before, event)
        if event == "delivered":
            self.well = self.is_told = True
        elif event == "failed":
            self.well = False
        elif event == "failed_long":
            self.well = self.is_told = False
        else:
            self.alive = self.well = self.is_told = False

    @precondition(lambda self: not self.alive)
    @rule()
    def another_one(self) -> None:
        self.state = "live"
        self.alive = self.well = self.is_told = True

    @invariant()
    def is_what_the_model_says(self) -> None:
        expected = {
            (True, True, True): "live",
            (True, True, False): "failing",
            (True, False, False): "off",
            (False, False, False): "removed",
        }
        assert self.state == expected[self.alive, self.is_told, self.well]


class DeliveryLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state: DeliveryState = "waiting"
        self.ended: str | None = None

    @rule(event=st.sampled_from(get_args(DeliveryEvent)))
    def happens(self, event: DeliveryEvent) -> None:
        is_legal = (self.ended is not None) == (event == "resent")
        if not is_legal:
            with pytest.raises(IllegalMove):
                next_delivery_state(self.state, event)
            return
        self.state = next_delivery_state(self.state, event)
        ends = {"delivered": "delivered", "failed_last": "failed", "dropped": "dropped"}
        self.ended = ends.get(event)

    @invariant()
    def is_what_the_model_says(self) -> None:
        assert self.state == (self.ended or "waiting")


@pytest.mark.parametrize("machine", [ChannelLife, DeliveryLife])
def test_any_order_of_events(machine: type[RuleBasedStateMachine]) -> None:
    run_state_machine_as_test(machine)


def test_the_tables_name_every_state() -> None:
    assert {state for state, _ in LIFE} | set(LIFE.values()) == set(get_args(State))
    assert {event for _, event in LIFE} == set(get_args(Event))
    assert {state for state, _ in DELIVERY_LIFE} | set(DELIVERY_LIFE.values()) == set(get_args(DeliveryState))
    assert {event for _, event in DELIVERY_LIFE} == set(get_args(DeliveryEvent))
    assert not [state for state, _ in LIFE if state == "removed"]


@given(failures=st.integers(1, 1000), drawn=st.floats(0, 1), wished=st.none() | st.floats(0, 1e12))
def test_a_wait_is_of_the_table_spread_by_a_quarter_and_never_shorter_for_a_wish(
    failures: int, drawn: float, wished: float | None
) -> None:
    of_table = WAITS_S[min(failures, MAX_TRIES - 1) - 1]
    plain = wait_s(failures, drawn)
    assert of_table * 0.75 <= plain <= of_table * 1.25
    waited = wait_s(failures, drawn, wished)
    assert plain <= waited <= max(plain, WAITS_S[-1])
    if wished is not None and wished <= WAITS_S[-1]:
        assert waited >= wished


def test_waits_are_as_decided() -> None:
    assert [wait_s(n, 0.5) for n in range(1, 10)] == [
        5, 60, 300, 1800, 7200, 21_600, 43_200, 43_200, 43_200,
    ]  # fmt: skip
    assert [wait_s(1, drawn) for drawn in (0.0, 1.0)] == [3.75, 6.25]
    assert wait_s(1, 0.5, 10**9) == 43_200
    assert timedelta(seconds=OFF_AFTER_S) == timedelta(days=3)


@pytest.mark.parametrize(
    ("state", "failing_s", "event"),
    [
        ("live", OFF_AFTER_S * 2, "failed"),
        ("failing", OFF_AFTER_S - 1, "failed"),
        ("failing", OFF_AFTER_S, "failed_long"),
    ],
)
def test_what_a_failure_is_to_its_channel(state: State, failing_s: float, event: Event) -> None:
    assert failure(state, failing_s) == event
    next_state(state, event)


def test_a_failure_after_a_long_quiet_is_the_first_again() -> None:
    since, rests = NOW - timedelta(days=2), NOW - QUIET
    assert failing_since(None, None, NOW) == NOW
    assert failing_since(since, rests, NOW) == since
    assert failing_since(since, rests - timedelta(seconds=1), NOW) == NOW
    assert failing_since(since, None, NOW) == since


@given(count=st.integers(0, 500), most=st.integers(1, 60))
def test_messages_hold_every_row_once_in_order(count: int, most: int) -> None:
    found = split_messages(count, most)
    assert [place for one in found for place in one] == list(range(count))
    assert all(0 < len(one) <= most for one in found)
    assert len(found) == -(-count // most)
