"""Shared answers, under a clock that stands still until it is moved."""

import asyncio

import pytest

from roundtrip.api.dispatch import DEADLINE_S
from roundtrip.api.server.drain import ANSWERS_S, DRAIN_S
from roundtrip.api.sharing.places import RunPlaces
from roundtrip.api.sharing.shared_single_flight import FlightTimes
from roundtrip.api.sharing.single_flight import FINISH_RUNS_S, SharedAnswer, SharedAnswers
from roundtrip.app.supervisor import END_S
from roundtrip.domain.base.errors import NodeFault
from support.answering import PATIENT_S
from support.clocks import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000.0)


class CountedRuns:
    """Makes answers; waits for ``gate`` where there is one, and counts."""

    def __init__(self, ttl_ms: int = 15_000, fault: Exception | None = None) -> None:
        self.ttl_ms = ttl_ms
        self.fault = fault
        self.gate = asyncio.Event()
        self.gate.set()
        self.count = 0

    async def __call__(self) -> SharedAnswer:
        self.count += 1
        number = self.count
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return SharedAnswer(b"%d" % number, self.ttl_ms, True)


@pytest.fixture
def shared(clock: Clock) -> SharedAnswers:
    return SharedAnswers(clock, RunPlaces(6))


async def turns() -> None:
    """Lets everything that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_fifty_who_ask_at_once_cause_one_run(shared: SharedAnswers) -> None:
    runs = CountedRuns()
    runs.gate.clear()
    waiting = [asyncio.create_task(shared.get("k", runs)) for _ in range(50)]
    await turns()
    assert runs.count == 1
    runs.gate.set()
    came = await asyncio.gather(*waiting)
    assert {answer.body for answer, _ in came} == {b"1"}
    assert [hit for _, hit in came] == [False] + [True] * 49
    assert runs.count == 1


async def test_an_answer_is_kept_for_its_time_to_the_millisecond(shared: SharedAnswers, clock: Clock) -> None:
    runs = CountedRuns(ttl_ms=1_500)
    assert (await shared.get("k", runs))[1] is False
    clock.now_s += 1.499
    assert await shared.get("k", runs) == (SharedAnswer(b"1", 1_500, True), True)
    clock.now_s = 1_001.5
    assert await shared.get("k", runs) == (SharedAnswer(b"2", 1_500, True), False)


async def test_an_answers_time_begins_when_it_is_there(shared: SharedAnswers, clock: Clock) -> None:
    runs = CountedRuns(ttl_ms=1_000)
    runs.gate.clear()
    asking = asyncio.create_task(shared.get("k", runs))
    await turns()
    clock.now_s += 30
    runs.gate.set()
    await asking
    clock.now_s += 0.999
    assert (await shared.get("k", runs))[1] is True


async def test_an_answer_of_no_time_is_not_kept(shared: SharedAnswers) -> None:
    runs = CountedRuns(ttl_ms=0)
    assert [(await shared.get("k", runs))[0].body for _ in range(2)] == [b"1", b"2"]
    assert shared.find_fresh("k") is None


async def test_an_answer_of_no_time_takes_no_others_place(shared: SharedAnswers) -> None:
    shared.max_answers = 1
    await shared.get("kept", CountedRuns())
    await shared.get("k", CountedRuns(ttl_ms=0))
    assert shared.find_fresh("kept") is not None


async def test_different_questions_run_apart(shared: SharedAnswers) -> None:
    runs = CountedRuns()
    assert [(await shared.get(key, runs))[1] for key in ("a", "b", "a")] == [False, False, True]
    assert runs.count == 2


async def test_a_failure_reaches_all_who_wait_and_is_not_kept(shared: SharedAnswers) -> None:
    runs = CountedRuns(fault=NodeFault("it took too long"))
    runs.gate.clear()
    waiting = [asyncio.create_task(shared.get("k", runs)) for _ in range(50)]
    await turns()
    runs.gate.set()
    came = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in came] == [NodeFault] * 50
    assert runs.count == 1
    runs.fault = None
    assert (await shared.get("k", runs))[0].body == b"2"


async def test_a_caller_that_goes_away_takes_nothing_from_the_others(shared: SharedAnswers) -> None:
    runs = CountedRuns()
    runs.gate.clear()
    waiting = [asyncio.create_task(shared.get("k", runs)) for _ in range(3)]
    await turns()
    waiting[0].cancel()
    waiting[2].cancel()
    await turns()
    runs.gate.set()
    assert (await waiting[1])[0].body == b"1"
    assert [task.cancelled() for task in waiting] == [True, False, True]
    assert runs.count == 1


async def test_a_run_that_everybody_left_is_finished_and_kept(shared: SharedAnswers) -> None:
    runs = CountedRuns()
    runs.gate.clear()
    asking = asyncio.create_task(shared.get("k", runs))
    await turns()
    asking.cancel()
    await turns()
    runs.gate.set()
    await turns()
    kept = shared.find_fresh("k")
    assert kept is not None
    assert kept.body == b"1"


async def test_a_failure_that_everybody_left_disturbs_nobody(shared: SharedAnswers) -> None:
    runs = CountedRuns(fault=NodeFault("gone"))
    runs.gate.clear()
    asking = asyncio.create_task(shared.get("k", runs))
    await turns()
    asking.cancel()
    runs.gate.set()
    await turns()
    runs.fault = None
    assert (await shared.get("k", runs))[1] is False


async def test_a_failed_run_gives_its_place_back(shared: SharedAnswers) -> None:
    runs = CountedRuns(fault=NodeFault("down"))
    for key in "abcdefgh":
        with pytest.raises(NodeFault):
            await shared.get(key, runs)


async def test_of_too_many_answers_the_oldest_goes(shared: SharedAnswers) -> None:
    shared.max_answers = 2
    runs = CountedRuns()
    for key in ("a", "b", "c"):
        await shared.get(key, runs)
    assert [shared.find_fresh(key) is not None for key in ("a", "b", "c")] == [False, True, True]


async def test_settling_waits_for_what_runs_and_minds_no_failure(shared: SharedAnswers) -> None:
    good, bad = CountedRuns(), CountedRuns(fault=NodeFault("down"))
    good.gate.clear()
    bad.gate.clear()
    asking = [asyncio.create_task(shared.get("a", good)), asyncio.create_task(shared.get("b", bad))]
    await turns()
    settling = asyncio.create_task(shared.finish_runs())
    await turns()
    assert not settling.done()
    good.gate.set()
    bad.gate.set()
    await settling
    await asyncio.gather(*asking, return_exceptions=True)
    assert shared.find_fresh("a") is not None


async def test_settling_breaks_off_what_takes_too_long(shared: SharedAnswers) -> None:
    runs = CountedRuns()
    runs.gate.clear()
    asking = asyncio.create_task(shared.get("a", runs))
    await turns()
    async with asyncio.timeout(PATIENT_S):
        await shared.finish_runs(within_s=0.0)
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert shared.places.count_held() == 0


def test_a_process_that_is_told_to_end_has_time_for_all_of_it() -> None:
    """A request may come as long as it drains, and wait for another process before it runs itself."""
    assert DEADLINE_S < FlightTimes().wait_s < ANSWERS_S
    assert DRAIN_S + ANSWERS_S + FINISH_RUNS_S < END_S - 1


# --- absences --------------------------------------------------------------------------------------


class NewestBlock:
    """Whose newest block is what the test says; runs on it find nothing."""

    def __init__(self) -> None:
        self.newest = 7
        self.gate = asyncio.Event()
        self.gate.set()
        self.count = 0

    async def __call__(self) -> SharedAnswer:
        self.count += 1
        block = self.newest
        await self.gate.wait()
        return SharedAnswer(b"none in %d" % block, 15_000, True, block, is_absence=True)

    async def is_newest(self, number: int) -> bool:
        await asyncio.sleep(0)
        return number == self.newest


@pytest.fixture
def chain() -> NewestBlock:
    return NewestBlock()


@pytest.fixture
def watching(clock: Clock, chain: NewestBlock) -> SharedAnswers:
    return SharedAnswers(clock, RunPlaces(6), is_newest_block=chain.is_newest)


async def test_an_absence_is_shared_while_its_block_is_the_newest(
    watching: SharedAnswers, chain: NewestBlock
) -> None:
    came = [await watching.get("k", chain) for _ in range(3)]
    assert [(shared.body, hit) for shared, hit in came] == [
        (b"none in 7", False), (b"none in 7", True), (b"none in 7", True),
    ]  # fmt: skip
    chain.newest = 8
    assert [(await watching.get("k", chain))[0].body for _ in range(2)] == [b"none in 8"] * 2
    assert chain.count == 2


async def test_who_joined_a_run_after_a_newer_block_is_told_of_that_block(
    watching: SharedAnswers, chain: NewestBlock
) -> None:
    chain.gate.clear()
    first = asyncio.create_task(watching.get("k", chain))
    await turns()
    chain.newest = 8
    joined = [asyncio.create_task(watching.get("k", chain)) for _ in range(20)]
    await turns()
    chain.gate.set()
    assert (await first)[0].body == b"none in 7"
    assert {shared.body for shared, _ in await asyncio.gather(*joined)} == {b"none in 8"}
    assert chain.count == 2


async def test_where_nobody_knows_the_newest_block_an_absence_is_for_one(
    shared: SharedAnswers, chain: NewestBlock
) -> None:
    assert [(await shared.get("k", chain))[1] for _ in range(3)] == [False] * 3
