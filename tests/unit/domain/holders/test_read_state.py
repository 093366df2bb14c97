"""The life of a reading: every state with every event, and any order of them."""

from typing import get_args

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from roundtrip.domain.holders.read_state import (
    STEPS,
    Event,
    IllegalStep,
    ReadStatus,
    State,
    read_status,
    step,
)

STATES: tuple[State, ...] = get_args(State)
EVENTS: tuple[Event, ...] = get_args(Event)
LEGAL: dict[tuple[State, Event], State] = {
    ("unread", "begun"): "reading",
    ("reading", "advanced"): "reading",
    ("reading", "caught_up"): "whole",
    ("reading", "capped"): "capped",
    ("whole", "advanced"): "reading",
    ("whole", "caught_up"): "whole",
    ("whole", "capped"): "capped",
}
"""Written down a second time, the other way round."""


def test_the_table_has_every_state_and_only_known_words() -> None:
    assert set(STEPS) == set(STATES)
    assert {event for steps in STEPS.values() for event in steps} == set(EVENTS)
    assert {after for steps in STEPS.values() for after in steps.values()} == set(STATES) - {"unread"}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("event", EVENTS)
def test_every_event_in_every_state(state: State, event: Event) -> None:
    if (state, event) in LEGAL:
        assert step(state, event) == LEGAL[state, event]
        return
    with pytest.raises(IllegalStep, match=f"a reading that is {state} cannot be {event}") as refused:
        step(state, event)
    assert (refused.value.state, refused.value.event) == (state, event)


def test_nobody_changes_the_table() -> None:
    with pytest.raises(TypeError):
        STEPS["unread"]["caught_up"] = "whole"  # type: ignore[index]


class Reading(RuleBasedStateMachine):
    """Blocks are a number; a book is how many of them it has. Nothing claims more than was read."""

    def __init__(self) -> None:
        super().__init__()
        self.state: State = "unread"
        self.newest = 1
        self.read: int | None = None

    def take(self, event: Event) -> bool:
        """Whether it could happen; where it could not nothing has changed."""
        before = self.state
        try:
            self.state = step(before, event)
        except IllegalStep:
            assert self.state == before
            assert (before, event) not in LEGAL
            return False
        return True

    @rule(more=st.integers(1, 9))
    def blocks_pass(self, more: int) -> None:
        self.newest += more

    @rule()
    def begins(self) -> None:
        if self.take("begun"):
            assert self.read is None
            self.read = 0

    @rule(share=st.integers(0, 99))
    def goes_on(self, share: int) -> None:
        if self.take("advanced"):
            assert self.read is not None
            self.read += (self.newest - self.read) * share // 100

    @rule()
    def catches_up(self) -> None:
        if self.take("caught_up"):
            self.read = self.newest

    @rule()
    def reaches_the_limit(self) -> None:
        self.take("capped")

    @rule()
    def is_dropped(self) -> None:
        """As the reader does, in any state."""
        self.state, self.read = "unread", None

    @invariant()
    def has_a_book_when_it_says_so(self) -> None:
        assert (self.read is None) == (self.state == "unread")

    @invariant()
    def is_complete_only_where_all_was_read(self) -> None:
        assert read_status(self.state, pruned=True) != "complete"
        if read_status(self.state, pruned=False) == "complete":
            assert self.state == "whole"
            assert self.read is not None


TestReading = Reading.TestCase


@pytest.mark.parametrize(
    ("state", "whole", "pruned"),
    [
        ("unread", "reading", "reading"),
        ("reading", "reading", "reading"),
        ("whole", "complete", "partial"),
        ("capped", "partial", "partial"),
    ],
)
def test_what_callers_are_told(state: State, whole: ReadStatus, pruned: ReadStatus) -> None:
    assert (read_status(state, False), read_status(state, True)) == (whole, pruned)
