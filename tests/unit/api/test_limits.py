"""Counted calls and shared answers, under a clock that stands still until it is moved."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.api import answers as answers_module
from roundtrip.api import minutes as minutes_module
from roundtrip.api.answers import Shared, SharedAnswers
from roundtrip.api.callers import anonymous
from roundtrip.api.minutes import MinuteLimits, Ticket
from roundtrip.domain.errors import LimitReached, NodeFault, ServiceFull
from support.counting import Wall


class Clock:
    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


# --- counted calls ---------------------------------------------------------------------------------


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
    assert limits.hand_back(spoiled) == Ticket("a", spoiled.taken_ms, 2, 1)
    assert limits.take("a", 2).remaining == 0
    told_to_wait(limits, "a", 2)


def test_of_two_calls_at_the_same_moment_one_is_handed_back(limits: MinuteLimits) -> None:
    limits.take("a", 2)
    limits.hand_back(limits.take("a", 2))
    assert limits.take("a", 2).remaining == 0


def test_a_call_is_handed_back_only_once(limits: MinuteLimits, wall: Wall) -> None:
    ticket = limits.take("a", 2)
    wall.ms += 1_000
    limits.take("a", 2)
    limits.hand_back(ticket)
    assert limits.hand_back(ticket) is ticket
    assert limits.take("a", 2).remaining == 0


def test_a_call_that_is_over_a_minute_old_has_nothing_to_hand_back(limits: MinuteLimits, wall: Wall) -> None:
    ticket = limits.take("a", 1)
    wall.ms += 60_000
    limits.take("a", 1)
    assert limits.hand_back(ticket) is ticket
    told_to_wait(limits, "a", 1)


def test_an_unknown_caller_has_nothing_to_hand_back(limits: MinuteLimits) -> None:
    ticket = Ticket("nobody", 0, 5, 4)
    assert limits.hand_back(ticket) is ticket


def test_of_too_many_callers_nobodys_minute_is_forgotten(
    limits: MinuteLimits, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newcomers count together until somebody's minute is over; accounts always have their own."""
    monkeypatch.setattr(minutes_module, "_MOST_CALLERS", 3)
    for caller in ("a", "b", "c"):
        limits.take(caller, 5)
    wall.ms += 59_999
    assert [limits.take(caller, 5).remaining for caller in ("d", "e", "mite:1", "a")] == [4, 3, 4, 3]
    wall.ms += 1
    assert [limits.take(caller, 5).remaining for caller in ("f", "mite:1", "a")] == [4, 3, 3]


def test_calls_that_are_known_late_count_from_when_they_were(limits: MinuteLimits, wall: Wall) -> None:
    limits.take("a", 3)
    limits.load([("a", wall.ms - 30_000, 2)])
    assert told_to_wait(limits, "a", 3) == 30
    wall.ms += 30_000
    assert limits.take("a", 3).remaining == 1


# --- who an address counts as ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"),
        ("2001:DB8:1:2::1", "2001:db8:0001:0002::9"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("::ffff:cb00:7107", "203.0.113.7"),
        ("fe80::1%eth0", "fe80::2"),
    ],
)
def test_one_callers_addresses_count_together(one: str, other: str) -> None:
    assert anonymous(one) == anonymous(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("203.0.113.7", "203.0.113.8"),
        ("2001:db8:1:2::1", "2001:db8:1:3::1"),
        ("2001:db8:1:2::1", "2001:db8:0:2::1"),
        ("::ffff:203.0.113.7", "::ffff:203.0.113.8"),
        ("::1", "203.0.113.7"),
        ("::1", "::ffff:0.0.0.1"),
    ],
)
def test_different_callers_addresses_count_apart(one: str, other: str) -> None:
    assert anonymous(one) != anonymous(other)


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**64 - 1))
def test_all_of_a_64_counts_as_one(address: int, host: int) -> None:
    if address >> 32 == 0xFFFF:
        return
    inside = address >> 64 << 64 | host
    if inside >> 32 == 0xFFFF:
        return
    forms = [":".join(f"{n >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)) for n in (address, inside)]
    assert anonymous(forms[0]) == anonymous(forms[1])


@pytest.mark.parametrize("host", [None, ""])
def test_whoever_has_no_address_shares_one(host: str | None) -> None:
    assert anonymous(host) == "address:unknown"


@given(st.text(max_size=60))
def test_any_text_counts_as_somebody(host: str) -> None:
    assert anonymous(host).startswith("address:")


# --- shared answers --------------------------------------------------------------------------------


class Runs:
    """Makes answers; waits for ``gate`` where there is one, and counts."""

    def __init__(self, ttl_ms: int = 15_000, fault: Exception | None = None) -> None:
        self.ttl_ms = ttl_ms
        self.fault = fault
        self.gate = asyncio.Event()
        self.gate.set()
        self.count = 0

    async def __call__(self) -> Shared:
        self.count += 1
        number = self.count
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return Shared(b"%d" % number, self.ttl_ms, True)


@pytest.fixture
def shared(clock: Clock) -> SharedAnswers:
    return SharedAnswers(clock, most_running=2)


async def turns() -> None:
    """Lets everything that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_fifty_who_ask_at_once_cause_one_run(shared: SharedAnswers) -> None:
    runs = Runs()
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
    runs = Runs(ttl_ms=1_500)
    assert (await shared.get("k", runs))[1] is False
    clock.now += 1.499
    assert await shared.get("k", runs) == (Shared(b"1", 1_500, True), True)
    clock.now = 1_001.5
    assert await shared.get("k", runs) == (Shared(b"2", 1_500, True), False)


async def test_an_answers_time_begins_when_it_is_there(shared: SharedAnswers, clock: Clock) -> None:
    runs = Runs(ttl_ms=1_000)
    runs.gate.clear()
    asking = asyncio.create_task(shared.get("k", runs))
    await turns()
    clock.now += 30
    runs.gate.set()
    await asking
    clock.now += 0.999
    assert (await shared.get("k", runs))[1] is True


async def test_an_answer_of_no_time_is_not_kept(shared: SharedAnswers) -> None:
    runs = Runs(ttl_ms=0)
    assert [(await shared.get("k", runs))[0].body for _ in range(2)] == [b"1", b"2"]
    assert shared.fresh("k") is None


async def test_an_answer_of_no_time_takes_no_others_place(
    shared: SharedAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers_module, "_MOST_ANSWERS", 1)
    await shared.get("kept", Runs())
    await shared.get("k", Runs(ttl_ms=0))
    assert shared.fresh("kept") is not None


async def test_different_questions_run_apart(shared: SharedAnswers) -> None:
    runs = Runs()
    assert [(await shared.get(key, runs))[1] for key in ("a", "b", "a")] == [False, False, True]
    assert runs.count == 2


async def test_a_failure_reaches_all_who_wait_and_is_not_kept(shared: SharedAnswers) -> None:
    runs = Runs(fault=NodeFault("it took too long"))
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
    runs = Runs()
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
    runs = Runs()
    runs.gate.clear()
    asking = asyncio.create_task(shared.get("k", runs))
    await turns()
    asking.cancel()
    await turns()
    runs.gate.set()
    await turns()
    kept = shared.fresh("k")
    assert kept is not None
    assert kept.body == b"1"


async def test_a_failure_that_everybody_left_disturbs_nobody(shared: SharedAnswers) -> None:
    runs = Runs(fault=NodeFault("gone"))
    runs.gate.clear()
    asking = asyncio.create_task(shared.get("k", runs))
    await turns()
    asking.cancel()
    runs.gate.set()
    await turns()
    runs.fault = None
    assert (await shared.get("k", runs))[1] is False


async def test_one_run_too_many_is_told_busy(shared: SharedAnswers) -> None:
    runs = Runs()
    await shared.get("kept", runs)
    runs.gate.clear()
    running = [asyncio.create_task(shared.get(key, runs)) for key in ("a", "b")]
    await turns()
    with pytest.raises(ServiceFull) as caught:
        await shared.get("c", runs)
    assert (caught.value.code, caught.value.retry_after_s) == ("busy", 1)
    assert (await shared.get("kept", runs))[1] is True
    joined = asyncio.create_task(shared.get("a", runs))
    await turns()
    runs.gate.set()
    assert [hit for _, hit in await asyncio.gather(*running, joined)] == [False, False, True]
    assert (await shared.get("c", runs))[1] is False


async def test_the_last_quarter_of_the_places_is_for_callers_with_a_key(clock: Clock) -> None:
    shared, runs = SharedAnswers(clock, most_running=4), Runs()
    runs.gate.clear()
    asking = [asyncio.create_task(shared.get(key, runs)) for key in ("a", "b", "c")]
    await turns()
    with pytest.raises(ServiceFull):
        await shared.get("d", runs)
    with pytest.raises(ServiceFull), shared.alone():
        pass
    asking.append(asyncio.create_task(shared.get("d", runs, keyed=True)))
    asking.append(asyncio.create_task(shared.get("d", runs)))
    await turns()
    for keyed in (True, False):
        with pytest.raises(ServiceFull), shared.alone(keyed):
            pass
    runs.gate.set()
    assert [hit for _, hit in await asyncio.gather(*asking)] == [False, False, False, False, True]
    with shared.alone(), shared.alone(), shared.alone(), shared.alone(keyed=True):
        pass


async def test_an_account_has_an_eighth_of_the_places(clock: Clock) -> None:
    """Accounts are free: a few of them must not fill the service."""
    shared, runs = SharedAnswers(clock, most_running=24), Runs()
    runs.gate.clear()
    asking = [asyncio.create_task(shared.get(key, runs, True, account=1)) for key in ("a", "b")]
    await turns()
    with shared.alone(True, account=1):
        with pytest.raises(ServiceFull) as caught, shared.alone(True, account=1):
            pass
        assert (caught.value.code, caught.value.retry_after_s) == ("busy", 1)
        with pytest.raises(ServiceFull):
            await shared.get("c", runs, True, account=1)
        asking.append(asyncio.create_task(shared.get("c", runs, True, account=2)))
        asking.append(asyncio.create_task(shared.get("c", runs, True, account=1)))
        await turns()
    runs.gate.set()
    assert [hit for _, hit in await asyncio.gather(*asking)] == [False, False, False, True]
    await turns()
    with shared.alone(True, 1), shared.alone(True, 1), shared.alone(True, 1):
        pass


async def test_a_failed_run_gives_its_place_back(shared: SharedAnswers) -> None:
    runs = Runs(fault=NodeFault("down"))
    for key in ("a", "b", "c", "d"):
        with pytest.raises(NodeFault):
            await shared.get(key, runs)


async def test_of_too_many_answers_the_oldest_goes(
    shared: SharedAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers_module, "_MOST_ANSWERS", 2)
    runs = Runs()
    for key in ("a", "b", "c"):
        await shared.get(key, runs)
    assert [shared.fresh(key) is not None for key in ("a", "b", "c")] == [False, True, True]


async def test_settling_waits_for_what_runs_and_minds_no_failure(shared: SharedAnswers) -> None:
    good, bad = Runs(), Runs(fault=NodeFault("down"))
    good.gate.clear()
    bad.gate.clear()
    asking = [asyncio.create_task(shared.get("a", good)), asyncio.create_task(shared.get("b", bad))]
    await turns()
    settling = asyncio.create_task(shared.settle())
    await turns()
    assert not settling.done()
    good.gate.set()
    bad.gate.set()
    await settling
    await asyncio.gather(*asking, return_exceptions=True)
    assert shared.fresh("a") is not None
