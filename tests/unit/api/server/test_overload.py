"""What is taken on while the loop is behind: looks come in by hand."""

import asyncio
import contextlib
import time

import pytest

from roundtrip.api.server import overload as module
from roundtrip.api.server.overload import (
    FEW_RUNNING,
    LATE_S,
    LEAST_RUNNING,
    LEAST_SEEN,
    LEAST_USUAL_S,
    RUNS_AFTER_S,
    SLOW_LOOK_S,
    SLOW_LOOKS,
    SLOWER,
    TICK_S,
    RunLimit,
)
from roundtrip.api.sharing.single_flight import FlightCaller, SharedAnswer, SharedAnswers
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

    def runs(self, took_s: float, count: int, name: str = "check_token", rounds: int = 1) -> None:
        """So many runs at once, each of which takes so long, and a look after them."""
        for _ in range(rounds):
            with contextlib.ExitStack() as stack:
                for _ in range(count):
                    stack.enter_context(self.pressure.measure_run(name))
                self.now_s += took_s
            self.now_s += SLOW_LOOK_S
            self.pressure.record_delay(self.now_s, 0.0, count)


@pytest.fixture
def looks() -> Looks:
    found = Looks()
    found.late(0.0, 1.0)
    return found


def test_in_time_all_of_it_is_allowed(looks: Looks) -> None:
    looks.late(LATE_S * 0.9, 60.0)
    assert looks.pressure.allowed_runs() == MOST


def test_a_burst_changes_nothing(looks: Looks) -> None:
    """However late it makes one look."""
    looks.late(20.0, 0.01)
    looks.late(0.0, 0.01)
    assert looks.pressure.allowed_runs() == MOST


@pytest.mark.parametrize("stood_s", [2.0, 60.0, 3600.0])
def test_a_process_that_stood_still_while_it_was_late_goes_on_with_what_it_had(
    looks: Looks, stood_s: float
) -> None:
    looks.late(LATE_S, 0.01)
    looks.late(stood_s, 0.01)
    assert looks.pressure.allowed_runs() == MOST


def test_a_delay_that_stands_takes_runs_away(looks: Looks) -> None:
    """From those that are under way, down to a few, which stay."""
    looks.late(LATE_S, RUNS_AFTER_S + 3 * TICK_S, running=40)
    assert looks.pressure.allowed_runs() == 28
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


USUAL_S = 5 * LEAST_USUAL_S


@pytest.fixture
def knowing(looks: Looks) -> Looks:
    """It knows what runs take when few are under way."""
    for name in ("check_token", "token_holders", "simulate"):
        looks.runs(USUAL_S, FEW_RUNNING, name, rounds=5)
    return looks


def test_runs_that_wait_for_each_other_take_runs_away(knowing: Looks) -> None:
    """From those that are under way, down to a few, which stay."""
    knowing.runs(USUAL_S * SLOWER * 1.1, 20, rounds=SLOW_LOOKS)
    assert knowing.pressure.allowed_runs() == 14
    knowing.runs(USUAL_S * SLOWER * 1.1, 14)
    assert knowing.pressure.allowed_runs() == 9
    knowing.runs(USUAL_S * 100, FEW_RUNNING + 1, rounds=40)
    assert knowing.pressure.allowed_runs() >= FEW_RUNNING


def test_a_burst_of_slow_runs_is_no_reason(knowing: Looks) -> None:
    """As on a machine that for a moment has much else to do."""
    for _ in range(5):
        knowing.runs(USUAL_S * SLOWER * 3, MOST, rounds=SLOW_LOOKS - 1)
        knowing.runs(USUAL_S, FEW_RUNNING)
    assert knowing.pressure.allowed_runs() == MOST


def test_many_runs_that_take_what_runs_take_are_no_reason(knowing: Looks) -> None:
    knowing.runs(USUAL_S * SLOWER * 0.9, MOST, rounds=20)
    assert knowing.pressure.allowed_runs() == MOST


def test_a_slow_node_is_no_reason(knowing: Looks) -> None:
    """Few runs at once: fewer would be no faster."""
    knowing.runs(USUAL_S * 20, FEW_RUNNING, rounds=20)
    assert knowing.pressure.allowed_runs() == MOST


def test_runs_of_an_unknown_name_are_no_reason(looks: Looks) -> None:
    looks.runs(USUAL_S, MOST, rounds=5)
    assert looks.pressure.allowed_runs() == MOST


def test_short_runs_are_no_reason(looks: Looks) -> None:
    """A turn of the loop is most of what they take."""
    looks.runs(LEAST_USUAL_S / 100, 1, rounds=10)
    looks.runs(LEAST_USUAL_S * SLOWER * 0.9, MOST, rounds=10)
    assert looks.pressure.allowed_runs() == MOST


def test_runs_that_hang_are_seen_before_they_end(knowing: Looks) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(knowing.pressure.measure_run("check_token"))
        for _ in range(SLOW_LOOKS):
            knowing.now_s += max(USUAL_S * SLOWER * 1.1, SLOW_LOOK_S)
            knowing.pressure.record_delay(knowing.now_s, 0.0, 20)
        assert knowing.pressure.allowed_runs() == 14


def test_slow_runs_of_few_do_not_cost_the_others_theirs(knowing: Looks) -> None:
    """Whoever sends expensive tokens or calls waits in a lane of its own."""
    pressure = knowing.pressure
    with contextlib.ExitStack() as stack:
        for name, count in (("check_token", 2 * LEAST_SEEN), ("simulate", 40)):
            for _ in range(count):
                stack.enter_context(pressure.measure_run(name))
        for _ in range(40):
            with contextlib.ExitStack() as honest:
                for name in ("check_token", "token_holders"):
                    for _ in range(LEAST_SEEN):
                        honest.enter_context(pressure.measure_run(name))
                knowing.now_s += max(USUAL_S, SLOW_LOOK_S / 2)
            pressure.record_delay(knowing.now_s, 0.0, 50)
    assert pressure.allowed_runs() == MOST


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


async def test_of_few_places_one_is_for_a_key() -> None:
    shared = SharedAnswers(lambda: 0.0, most_running=100, allowed=lambda: FEW_RUNNING)
    with contextlib.ExitStack() as held:
        for _ in range(FEW_RUNNING - 1):
            held.enter_context(shared.reserve_place())
        with pytest.raises(ServiceFull, match="busy"):
            held.enter_context(shared.reserve_place())
        held.enter_context(shared.reserve_place(FlightCaller(keyed=True)))
    with SharedAnswers(lambda: 0.0, most_running=1).reserve_place():
        pass


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
