"""Positions in the event stream, and ids whose rows come late."""

import pytest

from roundtrip.domain.verdicts.stream_position import LATE_S, IdTracker, StreamPosition, parse_position

POSITION = StreamPosition(7, 100, 3, 1_700_000_000, 2, 9, 1_800_000_000)


def test_a_position_is_read_as_it_is_written() -> None:
    assert str(POSITION) == "7.100.3.1700000000.2.9.1800000000"
    assert parse_position(str(POSITION)) == POSITION


@pytest.mark.parametrize(
    "text",
    ["", "7", "1.2.3.4.5.6", "1.2.3.4.5.6.7.8", "1.2.3.4.5.6.-7", "1.2.3.4.5.6.x", " 1.2.3.4.5.6.7",
     "1.2.3.4.5.6.7\n", "1..3.4.5.6.7", "1.2.3.4.5.6." + "9" * 16, ".".join(["9" * 15] * 7),
     "\u0661.2.3.4.5.6.7"],
)  # fmt: skip
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no id"):
        parse_position(text)


def test_ids_in_order_are_sent_up_to_the_last() -> None:
    tracker = IdTracker(5)
    for row_id in (6, 7):
        tracker.note(row_id, 0.0)
    assert (tracker.sent(), list(tracker.waited_for())) == (7, [])


def test_a_skipped_id_is_waited_for_and_holds_the_position_back() -> None:
    tracker = IdTracker(5)
    tracker.note(9, 0.0)
    assert (tracker.sent(), list(tracker.waited_for())) == (5, [6, 7, 8])
    tracker.note(6, 1.0)
    tracker.note(8, 1.0)
    assert (tracker.sent(), tracker.last, list(tracker.waited_for())) == (6, 9, [7])
    tracker.forget_late(LATE_S - 1)
    assert tracker.sent() == 6
    tracker.forget_late(LATE_S)
    assert (tracker.sent(), list(tracker.waited_for())) == (9, [])


def test_a_huge_jump_waits_for_a_bounded_number() -> None:
    tracker = IdTracker(0)
    tracker.note(10**9, 0.0)
    assert len(tracker.missing) == 10_000
