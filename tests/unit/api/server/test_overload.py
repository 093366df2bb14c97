"""What is taken on while the loop is behind: looks come in by hand."""

import asyncio
import time

import pytest

from roundtrip.api.server import overload as module
from roundtrip.api.server.overload import (
    LATE_S,
    LEAST_RUNNING,
    OVERDUE_S,
    RUNS_AFTER_S,
    SHEDS_AFTER_S,
    SHEDS_S,
    TICK_S,
    RunLimit,
)
from roundtrip.api.sharing.single_flight import SharedAnswer, SharedAnswers
from roundtrip.domain.base.errors import ServiceFull

MOST = 100


class Looks:
    """One look after another, by a clock of its own."""

    def __init__(self, most: int = MOST) -> None:
        self.now_s = 1_000.0
        self.pressure = RunLimit(most, lambda: self.now_s)

    def late(self, late_s: float, seconds: float, running: int = MOST) -> None:
        """So long every look finds the loop so late."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.now_s += TICK_S + late_s
            self.pressure.record_delay(self.now_s, late_s, running)

    def should_shed(self, overdue_s: float) -> bool:
        """Whoever comes when the next look is overdue by so much."""
        before_s, self.now_s = self.now_s, self.now_s + TICK_S + overdue_s
        try:
            return self.pressure.should_shed()
        finally:
            self.now_s = before_s


@pytest.fixture
def looks() -> Looks:
    found = Looks()
    found.late(0.0, 1.0)
    return found


def test_in_time_all_of_it_is_allowed(looks: Looks) -> None:
    looks.late(LATE_S * 0.9, 60.0)
    assert looks.pressure.allowed_runs() == MOST
    assert not looks.should_shed(overdue_s=60.0)


def test_a_burst_changes_nothing(looks: Looks) -> None:
    """However late it makes one look."""
    looks.late(10 * SHEDS_AFTER_S, 0.01)
    looks.late(0.0, 0.01)
    assert looks.pressure.allowed_runs() == MOST
    assert not looks.should_shed(overdue_s=60.0)


@pytest.mark.parametrize("stood_s", [2.0, 60.0, 3600.0])
def test_a_process_that_stood_still_while_it_was_late_goes_on_with_what_it_had(
    looks: Looks, stood_s: float
) -> None:
    looks.late(LATE_S, 0.01)
    looks.late(stood_s, 0.01)
    assert looks.pressure.allowed_runs() == MOST
    assert not looks.should_shed(overdue_s=60.0)


def test_a_delay_that_stands_takes_runs_away(looks: Looks) -> None:
    """From those that are under way, down to a few, which stay."""
    looks.late(LATE_S, RUNS_AFTER_S + 3 * TICK_S, running=40)
    assert looks.pressure.allowed_runs() == 28
    assert not looks.should_shed(overdue_s=60.0)
    looks.late(LATE_S, 60.0, running=40)
    assert looks.pressure.allowed_runs() == LEAST_RUNNING


def test_of_few_places_none_is_added() -> None:
    looks = Looks(most=2)
    looks.late(LATE_S, 60.0, running=2)
    assert looks.pressure.allowed_runs() == 2


def test_runs_come_back_when_the_loop_is_in_time(looks: Looks) -> None:
    looks.late(LATE_S, 60.0)
    looks.late(0.0, 2.0)
    assert LEAST_RUNNING < looks.pressure.allowed_runs() < MOST
    looks.late(0.0, 60.0)
    assert looks.pressure.allowed_runs() == MOST


def test_a_loop_far_behind_turns_away_who_comes_in_a_long_turn(looks: Looks) -> None:
    """Nobody in a turn that is short, so that the loop always has as much to do as it can."""
    looks.late(LATE_S, SHEDS_AFTER_S * 0.7)
    assert not looks.should_shed(overdue_s=5.0)
    looks.late(LATE_S, SHEDS_AFTER_S)
    assert not looks.should_shed(overdue_s=OVERDUE_S * 0.9)
    assert looks.should_shed(overdue_s=OVERDUE_S * 1.1)


def test_it_sheds_until_nobody_was_turned_away_for_a_while(looks: Looks) -> None:
    looks.late(LATE_S, 5.0)
    for _ in range(5):
        looks.late(0.0, SHEDS_S * 0.8)
        assert looks.should_shed(overdue_s=1.0)
    looks.late(0.0, SHEDS_S * 1.1)
    assert not looks.should_shed(overdue_s=1.0)


async def test_fewer_runs_are_begun_under_pressure() -> None:
    """And whoever comes then is told so at once."""
    allowed, gate = 4, asyncio.Event()
    shared = SharedAnswers(lambda: 0.0, most_running=100, allowed=lambda: allowed)

    async def makes() -> SharedAnswer:
        await gate.wait()
        return SharedAnswer(b"", 1000, True)

    runs = [asyncio.create_task(shared.get(str(number), makes)) for number in range(3)]
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        with pytest.raises(ServiceFull, match="busy"):
            await shared.get("without a key", makes)
    assert shared.running() == 3
    gate.set()
    await asyncio.gather(*runs)


async def test_the_loop_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_S", 0.001)
    noted, seen = asyncio.Event(), list[tuple[float, int]]()

    class Noting(RunLimit):
        def record_delay(self, now_s: float, late_s: float, running: int) -> None:
            seen.append((late_s, running))
            noted.set()

    async with Noting(1, time.monotonic).watch_loop(lambda: 7):
        await asyncio.wait_for(noted.wait(), 10)
    assert seen[0][0] >= 0.0
    assert seen[0][1] == 7
