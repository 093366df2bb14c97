"""Many hints made one: the newest is kept, and what was taken back is never lost."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.blocks.head_feed import FeedHeader, FeedTimeouts, HeadHint, HeadHints, Subscription
from support.scripted_ws import header


def seen(number: int, fork: str = "a", parent_fork: str | None = None) -> FeedHeader:
    return msgspec.convert(header(number, fork, parent_fork), FeedHeader)


def heard(*numbers: int) -> HeadHints:
    found = HeadHints()
    for number in numbers:
        found.note_head(seen(number), float(number))
    return found


def test_several_heads_are_one_hint_of_the_newest() -> None:
    found = heard(5, 6, 7)
    assert found.take(4) == HeadHint(7, 7.0)
    assert found.take(7) is None
    assert found.take(6) == HeadHint(7, 7.0)


def test_before_the_first_there_is_nothing() -> None:
    assert HeadHints().take(-1) is None
    assert heard(0).take(-1) == HeadHint(0, 0.0)


def test_the_lowest_removed_is_told_first_and_once() -> None:
    found = heard(5, 6, 7)
    found.note_removal(7, 8.0)
    found.note_removal(5, 9.0)
    found.note_removal(6, 10.0)
    found.note_head(seen(8), 11.0)
    assert found.take(100) == HeadHint(5, 8.0, removed=True)
    assert found.take(7) == HeadHint(8, 11.0)
    assert found.take(8) is None


def test_what_is_removed_after_it_was_taken_is_told_again() -> None:
    found = heard(5)
    found.note_removal(5, 1.0)
    assert found.take(5) is not None
    found.note_removal(5, 2.0)
    assert found.take(5) == HeadHint(5, 2.0, removed=True)


def test_another_block_at_the_same_height_takes_that_back() -> None:
    found = heard(5, 6)
    found.note_head(seen(6, "b", "a"), 9.0)
    assert found.take(6) == HeadHint(6, 9.0, removed=True)
    assert found.newest == 6


def test_a_child_of_another_parent_takes_the_parent_back() -> None:
    found = heard(5, 6)
    found.note_head(seen(7, "b"), 9.0)
    assert found.take(6) == HeadHint(6, 9.0, removed=True)
    assert found.take(6) == HeadHint(7, 9.0)


def test_the_same_head_twice_takes_nothing_back() -> None:
    assert heard(5, 6, 6).take(6) is None


def test_a_gap_in_the_numbers_takes_nothing_back() -> None:
    assert heard(5, 9).take(5) == HeadHint(9, 9.0)


def test_a_teller_that_falls_takes_back_and_newest_falls_with_it() -> None:
    found = heard(5, 6, 7)
    found.note_head(seen(5), 9.0, fell=True)
    assert found.newest == 5
    assert found.take(7) == HeadHint(5, 9.0, removed=True)
    assert found.take(4) == HeadHint(5, 9.0)


def test_a_lower_poll_takes_back_once() -> None:
    found = HeadHints()
    for number in (7, 5, 5, 5):
        found.note_poll(seen(number), float(number))
    assert found.take(7) == HeadHint(5, 5.0, removed=True)
    assert found.take(7) is None
    assert found.newest == 5
    found.note_poll(seen(6), 6.0)
    assert found.take(5) == HeadHint(6, 6.0)


def test_a_poll_a_moment_behind_the_websocket_takes_nothing_back() -> None:
    found = HeadHints()
    found.note_poll(seen(5), 0.0)
    found.note_head(seen(6), 1.0)
    found.note_poll(seen(5), 2.0)
    assert (found.newest, found.take(6)) == (6, None)


def test_a_poll_that_never_learns_what_the_websocket_told_takes_it_back() -> None:
    for polls in ((6, 6), (5, 6)):
        found = heard(6, 7)
        for now, number in enumerate(polls):
            assert found.take(7) is None
            found.note_poll(seen(number), float(now))
        assert found.take(7) == HeadHint(6, 1.0, removed=True)


def test_a_node_that_stands_still_below_the_websocket_is_told_of_once() -> None:
    found = heard(7)
    found.note_poll(seen(7), 0.0)
    found.note_poll(seen(5), 1.0)
    assert found.take(7) == HeadHint(5, 1.0, removed=True)
    for number in range(8, 12):
        found.note_head(seen(number), 2.0)
        found.note_poll(seen(5), 2.0)
        found.note_poll(seen(5), 2.0)
        assert found.take(number) is None


def test_a_websocket_a_moment_behind_a_poll_takes_nothing_back() -> None:
    found, ear = heard(5), Subscription(1.0)
    ear.note_head(5)
    found.note_poll(seen(7), 6.0)
    for number in (6, 7):
        found.note_head(seen(number), 7.0, ear.note_head(number))
    assert (found.newest, found.take(7)) == (7, None)


moves = st.one_of(
    st.tuples(st.just("told"), st.integers(0, 30), st.sampled_from("ab"), st.booleans()),
    st.tuples(st.just("polled"), st.integers(0, 30), st.sampled_from("ab"), st.booleans()),
    st.tuples(st.just("removed"), st.integers(0, 30), st.sampled_from("ab"), st.booleans()),
    st.tuples(st.just("take"), st.integers(0, 30), st.sampled_from("ab"), st.booleans()),
)


@given(st.lists(moves, max_size=40))
def test_whatever_comes_nothing_removed_is_lost(script: list[tuple[str, int, str, bool]]) -> None:
    """Whatever was taken back is told by a hint at or below it, before any head is."""
    found, open_removals = HeadHints(), list[int]()
    for now, (move, number, fork, flag) in enumerate(script):
        if move == "removed":
            found.note_removal(number, float(now))
            open_removals.append(number)
        elif move == "told":
            found.note_head(seen(number, fork), float(now), flag)
            open_removals += [number] if flag else []
        elif move == "polled":
            found.note_poll(seen(number, fork), float(now))
        else:
            hint = found.take(number)
            if open_removals:
                assert hint is not None
                assert hint.removed
                assert hint.number <= min(open_removals)
                open_removals.clear()
            elif hint is not None and not hint.removed:
                assert hint.number == found.newest > number


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": "0x"},
        {"number": "0x123456789"},
        {"number": "-0x1"},
        {"number": 7},
        {"number": None},
        {"hash": "0x12"},
        {"hash": "0x" + "z" * 64},
        {"parentHash": None},
    ],
)
def test_an_odd_header_is_malformed(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(header(5) | wrong), type=FeedHeader)


# --- a websocket that hears nothing ----------------------------------------------------------------


def test_it_is_well_once_it_told_and_owes_nothing() -> None:
    ear = Subscription(1.0)
    assert not ear.is_well()
    ear.note_head(5)
    assert ear.is_well()
    ear.note_poll(6, 0.0)
    assert not ear.is_well()
    ear.note_head(6)
    assert ear.is_well()


def test_it_is_deaf_to_a_head_that_it_does_not_tell_in_time() -> None:
    ear = Subscription(1.0)
    ear.note_head(5)
    ear.note_poll(6, 10.0)
    assert not ear.is_silent(10.9)
    ear.note_poll(7, 10.9)
    assert ear.is_silent(11.0)
    ear.note_head(6)
    assert not ear.is_silent(99.0)


def test_what_was_there_before_it_is_not_owed() -> None:
    ear = Subscription(1.0)
    ear.note_poll(5, 0.0)
    assert not ear.is_silent(99.0)
    ear.note_poll(6, 1.0)
    assert ear.is_silent(2.0)


def test_an_old_head_does_not_pay_for_a_new_one() -> None:
    ear = Subscription(1.0)
    for number in (5, 6):
        ear.note_head(number)
    ear.note_poll(8, 0.0)
    ear.note_head(7)
    assert ear.is_silent(1.0)


def test_after_a_fall_nothing_is_owed_that_may_be_gone() -> None:
    ear = Subscription(1.0)
    assert not ear.note_head(8)
    ear.note_poll(9, 0.0)
    assert ear.note_head(6)
    assert ear.is_well()
    ear.note_poll(7, 1.0)
    assert ear.is_silent(2.0)


def test_waits_grow_up_to_a_limit_and_chance_shortens_them() -> None:
    patience = FeedTimeouts()
    assert [patience.wait_s(n, 0.0) for n in range(8)] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert patience.wait_s(10_000, 0.0) == 10.0
    assert patience.wait_s(0, 1.0) == 0.1
