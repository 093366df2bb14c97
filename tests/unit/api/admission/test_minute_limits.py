"""Counted calls, under a clock that stands still until it is moved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.api.admission.minute_limits import MinuteLimits, Ticket
from roundtrip.domain.base.errors import LimitReached
from support.counting import Wall


@pytest.fixture
def wall() -> Wall:
    return Wall(1_000_000)


@pytest.fixture
def limits(wall: Wall) -> MinuteLimits:
    return MinuteLimits(wall)


def told_to_wait(limits: MinuteLimits, caller: str, limit: int) -> int:
    with pytest.raises(LimitReached) as caught:
        limits.take(caller, limit)
    assert (caught.value.code, caught.value.limit) == ("rate_limited", limit)
    assert caught.value.retry_after_s is not None
    return caught.value.retry_after_s


def test_so_many_calls_and_not_one_more(limits: MinuteLimits) -> None:
    assert [limits.take("a", 3).remaining for _ in range(3)] == [2, 1, 0]
    assert told_to_wait(limits, "a", 3) == 60


def test_a_call_counts_for_sixty_seconds_and_no_longer(limits: MinuteLimits, wall: Wall) -> None:
    limits.take("a", 1)
    wall.ms += 59_999
    assert told_to_wait(limits, "a", 1) == 1
    wall.ms += 1
    assert limits.take("a", 1).remaining == 0


def test_the_window_moves_and_does_not_start_anew(limits: MinuteLimits, wall: Wall) -> None:
    limits.take("a", 2)
    wall.ms += 30_000
    limits.take("a", 2)
    wall.ms += 31_000
    assert limits.take("a", 2).remaining == 0
    assert told_to_wait(limits, "a", 2) == 29
    wall.ms += 29_000
    assert limits.take("a", 2).remaining == 0


def test_refused_calls_do_not_count(limits: MinuteLimits, wall: Wall) -> None:
    limits.take("a", 1)
    for _ in range(5):
        wall.ms += 10_000
        told_to_wait(limits, "a", 1)
    wall.ms += 10_000
    limits.take("a", 1)


@given(st.lists(st.integers(0, 40_000), max_size=40), st.integers(1, 4))
def test_a_call_is_refused_exactly_when_the_last_sixty_seconds_are_full(
    pauses: list[int], limit: int
) -> None:
    """And to the second as long as told: a second earlier it would be refused, too."""
    wall = Wall()
    limits = MinuteLimits(wall)
    taken: list[int] = []

    def is_full(at_ms: int) -> bool:
        return sum(at_ms - 60_000 < at for at in taken) >= limit

    for pause in pauses:
        wall.ms += pause
        if is_full(wall.ms):
            wait_s = told_to_wait(limits, "a", limit)
            assert not is_full(wall.ms + wait_s * 1000)
            assert is_full(wall.ms + (wait_s - 1) * 1000)
        else:
            limits.take("a", limit)
            taken.append(wall.ms)


def test_whose_limit_was_lowered_waits_until_enough_are_over(limits: MinuteLimits, wall: Wall) -> None:
    for _ in range(5):
        limits.take("a", 5)
        wall.ms += 1_000
    assert told_to_wait(limits, "a", 2) == 58
    wall.ms += 57_999
    assert told_to_wait(limits, "a", 2) == 1
    wall.ms += 1
    assert limits.take("a", 2).remaining == 0


def test_a_clock_put_back_locks_nobody_out_for_longer_than_a_minute(limits: MinuteLimits, wall: Wall) -> None:
    limits.take("a", 1)
    wall.ms -= 3_600_000
    assert limits.take("a", 1).remaining == 0
    assert told_to_wait(limits, "a", 1) == 60


def test_a_clock_put_back_a_little_forgets_no_call(limits: MinuteLimits, wall: Wall) -> None:
    limits.take("a", 2)
    wall.ms -= 10_000
    limits.take("a", 2)
    assert told_to_wait(limits, "a", 2) == 70
    wall.ms += 70_000
    assert limits.take("a", 2).remaining == 1


def test_callers_do_not_count_for_each_other(limits: MinuteLimits) -> None:
    limits.take("a", 1)
    assert limits.take("b", 1).remaining == 0


def test_calls_of_before_the_process_began_count(limits: MinuteLimits, wall: Wall) -> None:
    limits.load([("a", wall.ms - 60_000, 3), ("a", wall.ms - 59_000, 2), ("b", wall.ms, 1)])
    assert limits.take("a", 3).remaining == 0
    assert told_to_wait(limits, "a", 3) == 1
    assert limits.take("b", 3).remaining == 1


def test_a_call_handed_back_can_be_made_again(limits: MinuteLimits, wall: Wall) -> None:
    limits.take("a", 2)
    wall.ms += 1_000
    spoiled = limits.take("a", 2)
    assert limits.refund(spoiled) == Ticket("a", spoiled.taken_ms, 2, 1)
    assert limits.take("a", 2).remaining == 0
    told_to_wait(limits, "a", 2)


def test_of_two_calls_at_the_same_moment_one_is_handed_back(limits: MinuteLimits) -> None:
    limits.take("a", 2)
    limits.refund(limits.take("a", 2))
    assert limits.take("a", 2).remaining == 0


def test_a_call_is_handed_back_only_once(limits: MinuteLimits, wall: Wall) -> None:
    ticket = limits.take("a", 2)
    wall.ms += 1_000
    limits.take("a", 2)
    limits.refund(ticket)
    assert limits.refund(ticket) is ticket
    assert limits.take("a", 2).remaining == 0


def test_a_call_that_is_over_a_minute_old_has_nothing_to_hand_back(limits: MinuteLimits, wall: Wall) -> None:
    ticket = limits.take("a", 1)
    wall.ms += 60_000
    limits.take("a", 1)
    assert limits.refund(ticket) is ticket
    told_to_wait(limits, "a", 1)


def test_an_unknown_caller_has_nothing_to_hand_back(limits: MinuteLimits) -> None:
    ticket = Ticket("nobody", 0, 5, 4)
    assert limits.refund(ticket) is ticket


def test_of_too_many_callers_nobodys_minute_is_forgotten(limits: MinuteLimits, wall: Wall) -> None:
    """Newcomers count together until somebody's minute is over; accounts always have their own."""
    limits.max_callers = 3
    for caller in ("a", "b", "c"):
        limits.take(caller, 5)
    wall.ms += 59_999
    assert [limits.take(caller, 5).remaining for caller in ("d", "e", "account:1", "a")] == [4, 3, 4, 3]
    wall.ms += 1
    assert [limits.take(caller, 5).remaining for caller in ("f", "account:1", "a")] == [4, 3, 3]


def test_calls_that_are_known_late_count_from_when_they_were(limits: MinuteLimits, wall: Wall) -> None:
    limits.take("a", 3)
    limits.load([("a", wall.ms - 30_000, 2)])
    assert told_to_wait(limits, "a", 3) == 30
    wall.ms += 30_000
    assert limits.take("a", 3).remaining == 1
