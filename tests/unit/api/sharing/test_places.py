"""Places for runs, in simulated time: who is refused, and how long the others wait.

An attacker's checks burn gas: they wait for the node's lane ``dear``, which has one place. The lanes are the
service's own, and so are the shared answers.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.api.http.app import MAX_BODY_BYTES
from roundtrip.api.sharing.places import (
    MAX_LINE,
    MAX_WAITING,
    MAX_WAITING_BYTES,
    PAGE_WAIT_S,
    PLACES,
    WAIT_S,
    FlightCaller,
    RunPlaces,
)
from roundtrip.api.sharing.single_flight import SharedAnswer, SharedAnswers
from roundtrip.chain.rpc.bulkhead import Bulkhead, Lane
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import ServiceFull
from support.simulated_time import simulate

CHECK_S, BURN_S, HISTORY_S = 0.05, 0.4, 0.005
SECONDS = 30.0


@dataclass
class PlaceCaller:
    """``share``: refused of asked."""

    who: FlightCaller
    waits_s: list[float] = field(default_factory=list)
    refusals: list[ServiceFull] = field(default_factory=list)

    def share(self) -> float:
        return len(self.refusals) / max(1, len(self.refusals) + len(self.waits_s))

    def p95_s(self) -> float:
        return sorted(self.waits_s)[int(len(self.waits_s) * 0.95)]


class BusyProcess:
    """A process, and all who ask it."""

    def __init__(self, places: int = PLACES) -> None:
        self.now_s = asyncio.get_running_loop().time
        self.shared = SharedAnswers(self.now_s, RunPlaces(places))
        self.lanes = Bulkhead(clock=self.now_s)
        self.numbers = itertools.count()
        self.lanes.mark_dear("burner")
        self.most_held: Counter[str] = Counter()

    async def check(self, caller: FlightCaller, token: str, took_s: float) -> SharedAnswer:
        lane: Lane = "dear" if self.lanes.is_dear(token) else "checks"
        async with self.lanes.place(lane, caller.name, token):
            await asyncio.sleep(took_s)
        return SharedAnswer(b"", 15_000, True)

    async def ask(
        self, caller: PlaceCaller, run: Callable[[], Awaitable[SharedAnswer]], key: str = ""
    ) -> bool:
        began_s = self.now_s()
        try:
            await self.shared.get(key or f"{next(self.numbers)}", run, caller.who)
        except ServiceFull as refusal:
            caller.refusals.append(refusal)
            return False
        caller.waits_s.append(self.now_s() - began_s)
        return True

    async def burn(self, caller: PlaceCaller, until_s: float) -> None:
        """One request after the other; a refused one is repeated when it may be."""
        while self.now_s() < until_s:
            if not await self.ask(caller, lambda: self.check(caller.who, "burner", BURN_S)):
                await asyncio.sleep(0.2)

    async def browse(self, caller: PlaceCaller, until_s: float, took_s: float, every_s: float) -> None:
        while self.now_s() < until_s:
            token = f"plain {next(self.numbers)}"
            await self.ask(caller, lambda token=token: self.check(caller.who, token, took_s))  # type: ignore[misc]
            await asyncio.sleep(every_s)


def honest() -> list[PlaceCaller]:
    return [
        PlaceCaller(FlightCaller("account:1", "address:1")),
        PlaceCaller(FlightCaller("address:2", "address:2")),
        PlaceCaller(FlightCaller("address:3", "address:3", PAGE_WAIT_S)),
    ]


async def beside(attackers: Sequence[tuple[PlaceCaller, int]], places: int = PLACES) -> list[PlaceCaller]:
    """Honest callers with a key, without one and on a page, beside attackers with so many in flight."""
    street, callers = BusyProcess(places), honest()
    async with asyncio.TaskGroup() as tasks:
        for attacker, in_flight in attackers:
            for _ in range(in_flight):
                tasks.create_task(street.burn(attacker, SECONDS))
        for caller in callers:
            tasks.create_task(street.browse(caller, SECONDS, CHECK_S, 0.3))
            tasks.create_task(street.browse(caller, SECONDS, HISTORY_S, 0.3))
    assert (street.shared.places.count_held(), street.shared.places.count_waiting()) == (0, 0)
    return callers


@pytest.mark.parametrize("in_flight", [5, 6, 7, 8, 16, 60])
def test_burners_of_one_account_take_nothing_from_others(in_flight: int) -> None:
    attacker = PlaceCaller(FlightCaller("account:9", "address:9"))
    for caller in simulate(beside([(attacker, in_flight)])):
        assert caller.share() == 0
        assert caller.p95_s() < 2 * CHECK_S
    if in_flight > PLACES // 3 + MAX_LINE:
        assert all(refusal.counts for refusal in attacker.refusals)
        assert attacker.share() > 0


@pytest.mark.parametrize("places", [3, 6, 12])
def test_of_few_places_an_account_has_a_third_at_most(places: int) -> None:
    attacker = PlaceCaller(FlightCaller("account:9", "address:9"))
    for caller in simulate(beside([(attacker, 16)], places)):
        assert caller.share() <= 0.1
        assert caller.p95_s() < 1


@pytest.mark.parametrize("addresses", [1, 10])
def test_ten_accounts_take_nothing_from_others(addresses: int) -> None:
    """Of one address they have one share; of ten addresses each has its own, and its own lane's turns."""
    attackers = [
        (PlaceCaller(FlightCaller(f"account:{n}", f"address:{90 + n % addresses}")), 16)
        for n in range(10, 20)
    ]
    for caller in simulate(beside(attackers)):
        assert caller.share() <= 0.1
        assert caller.p95_s() < 1


def test_a_crowd_of_honest_people_is_answered_or_told_in_time() -> None:
    """Three times what the lanes can do: as much is answered as without the crowd's rest."""

    async def crowd(people: int) -> list[PlaceCaller]:
        street = BusyProcess()
        callers = [PlaceCaller(FlightCaller(f"address:{n}", f"address:{n}")) for n in range(people)]
        async with asyncio.TaskGroup() as tasks:
            for caller in callers:
                tasks.create_task(street.browse(caller, SECONDS, 0.2, 1.0))
        return callers

    few, many = simulate(crowd(80)), simulate(crowd(400))
    assert not any(caller.refusals for caller in few)
    answered = sum(len(caller.waits_s) for caller in many)
    assert answered >= 0.9 * sum(len(caller.waits_s) for caller in few)
    assert max(max(caller.waits_s, default=0) for caller in many) < WAIT_S + 15.0 + 0.2
    # Nobody is answered many times as often as somebody else.
    counts = sorted(len(caller.waits_s) for caller in many)
    assert counts[-1] <= counts[0] + 5


@settings(max_examples=60, deadline=None)
@given(places=st.integers(1, 40), in_flight=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_one_more_caller_takes_a_third_at_most(places: int, in_flight: int, seed: int) -> None:
    """Whatever the others do."""

    async def run() -> None:
        rng, shared = Random(seed), RunPlaces(places)
        held: Counter[str] = Counter()

        async def one(caller: FlightCaller, times: int) -> None:
            for _ in range(times):
                try:
                    async with shared.hold(caller):
                        held[caller.name] += 1
                        assert held["attacker"] <= max(1, places // 3)
                        assert held.total() <= places
                        await asyncio.sleep(rng.random())
                        held[caller.name] -= 1
                except ServiceFull:
                    await asyncio.sleep(rng.random() / 10)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(in_flight):
                tasks.create_task(one(FlightCaller("attacker"), 10))
            for n in range(rng.randrange(12)):
                tasks.create_task(one(FlightCaller(f"{n}"), 10))
        assert (shared.count_held(), shared.count_waiting()) == (0, 0)
        assert not shared._under_way

    simulate(run())


@settings(max_examples=12, deadline=None)
@given(others=st.integers(1, 30), in_flight=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_with_an_attacker_the_others_get_two_thirds_of_what_they_got(
    others: int, in_flight: int, seed: int
) -> None:
    async def answered(attackers: int) -> int:
        rng, shared, count = Random(seed), RunPlaces(12), 0

        async def one(caller: FlightCaller) -> None:
            nonlocal count
            loop = asyncio.get_running_loop()
            while loop.time() < 30.0:
                try:
                    async with shared.hold(caller):
                        await asyncio.sleep(0.5)
                        count += caller.name != "attacker"
                except ServiceFull:
                    await asyncio.sleep(0.1 + rng.random() / 10)

        async with asyncio.TaskGroup() as tasks:
            for n in range(others):
                tasks.create_task(one(FlightCaller(f"{n}")))
            for _ in range(attackers):
                tasks.create_task(one(FlightCaller("attacker")))
        return count

    assert simulate(answered(in_flight)) >= 0.65 * simulate(answered(0))


def test_the_last_free_place_is_for_a_caller_that_has_none() -> None:
    places = RunPlaces(4)
    same_address = [FlightCaller(f"account:{n}", "address:1") for n in (1, 2)]
    taken = [places.take_now(FlightCaller(name)) for name in "abc"]
    assert None not in taken
    assert places.take_now(FlightCaller("a")) is None
    first = places.take_now(same_address[0])
    assert first is not None
    places = RunPlaces(9)
    assert [places.take_now(same_address[n % 2]) is None for n in range(4)] == [False] * 3 + [True]
    assert [places.take_now(FlightCaller("x")) is None for _ in range(4)] == [False] * 3 + [True]
    assert [places.take_now(FlightCaller("y")) is None for _ in range(3)] == [False] * 2 + [True]
    assert places.take_now(FlightCaller("z")) is not None


async def _hold(places: RunPlaces, caller: FlightCaller, until: asyncio.Event) -> None:
    async with places.hold(caller):
        await until.wait()


def test_lines_are_served_in_turn() -> None:
    async def run() -> list[str]:
        places, order, go = RunPlaces(1), [], asyncio.Event()

        async def one(name: str) -> None:
            async with places.hold(FlightCaller(name)):
                order.append(name)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_hold(places, FlightCaller("first"), go))
            await asyncio.sleep(0)
            for name in "aaabbc":
                tasks.create_task(one(name))
            await asyncio.sleep(0)
            go.set()
        return order

    assert simulate(run()) == list("abcaba")


@pytest.mark.parametrize(("wait_s", "counts"), [(WAIT_S, False), (PAGE_WAIT_S, False), (WAIT_S, True)])
def test_a_run_that_cannot_start_in_time_is_told_so(wait_s: float, counts: bool) -> None:
    """It counts if the caller's own runs are the reason."""

    async def run() -> tuple[ServiceFull, float]:
        places, go, loop = RunPlaces(3), asyncio.Event(), asyncio.get_running_loop()
        names = ("me", "you", "they") if counts else ("you", "they", "others")
        holders = [asyncio.create_task(_hold(places, FlightCaller(name), go)) for name in names]
        await asyncio.sleep(0)
        with pytest.raises(ServiceFull) as caught:
            async with places.hold(FlightCaller("me", wait_s=wait_s)):
                raise AssertionError
        took_s = loop.time()
        go.set()
        await asyncio.gather(*holders)
        assert places.count_waiting() == 0
        return caught.value, took_s

    refusal, took_s = simulate(run())
    assert (refusal.code, refusal.retry_after_s, refusal.counts) == ("busy", 1, counts)
    assert took_s == pytest.approx(wait_s)


def test_the_ninth_of_a_line_is_refused_at_once_and_counted() -> None:
    async def run() -> None:
        places, go = RunPlaces(1), asyncio.Event()
        tasks = [asyncio.create_task(_hold(places, FlightCaller("a"), go)) for _ in range(1 + MAX_LINE)]
        await asyncio.sleep(0)
        with pytest.raises(ServiceFull) as caught:
            await places.wait(FlightCaller("a"))
        assert caught.value.counts
        assert asyncio.get_running_loop().time() == 0
        go.set()
        await asyncio.gather(*tasks)

    simulate(run())


@pytest.mark.parametrize("by", ["runs", "bytes"])
def test_all_lines_together_are_bounded_and_the_longest_gives_way(by: str) -> None:
    most = 6 if by == "runs" else MAX_WAITING
    size = 1 if by == "runs" else MAX_WAITING_BYTES // 6

    async def run() -> None:
        places, go = RunPlaces(1, max_waiting=most), asyncio.Event()
        holder = asyncio.create_task(_hold(places, FlightCaller("x"), go))
        await asyncio.sleep(0)
        tasks = [asyncio.create_task(places.wait(FlightCaller("a"), size)) for _ in range(6)]
        await asyncio.sleep(0)
        newcomer = asyncio.create_task(places.wait(FlightCaller("b"), size))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [task.done() for task in tasks] == [False] * 5 + [True]
        with pytest.raises(ServiceFull):
            await tasks[-1]
        with pytest.raises(ServiceFull):
            await places.wait(FlightCaller("a"), size)
        assert places.count_waiting() == 6
        for task in (*tasks, newcomer):
            task.cancel()
        await asyncio.gather(*tasks, newcomer, return_exceptions=True)
        assert places.count_waiting() == 0
        go.set()
        await holder

    simulate(run())


def test_a_run_in_a_lanes_line_holds_no_place_and_counts_in_its_callers_share() -> None:
    async def run() -> None:
        places, lanes, go = RunPlaces(6), Bulkhead(), asyncio.Event()

        async def burn() -> None:
            async with places.hold(FlightCaller("a")), lanes.place("dear", "a"):
                await go.wait()

        tasks = [asyncio.create_task(burn()) for _ in range(4)]
        await asyncio.sleep(0.1)
        assert places.count_held() == 1
        assert places.take_now(FlightCaller("a")) is None
        others = [places.take_now(FlightCaller(name)) for name in "bcdef"]
        assert None not in others
        assert places.take_now(FlightCaller("g")) is None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for place in others:
            assert place is not None
            place.end()
        assert (places.count_held(), places.count_waiting()) == (0, 0)

    simulate(run())


def test_who_asks_for_what_an_attacker_asks_for_stands_in_a_line_of_its_own() -> None:
    async def run() -> list[bool]:
        shared, go = SharedAnswers(asyncio.get_running_loop().time, RunPlaces(3)), asyncio.Event()
        holder = asyncio.create_task(_hold(shared.places, FlightCaller("attacker"), go))
        await asyncio.sleep(0)

        async def make() -> SharedAnswer:
            return SharedAnswer(b"x", 1_000, True)

        attacker = asyncio.create_task(shared.get("popular", make, FlightCaller("attacker")))
        await asyncio.sleep(0)
        answer, _ = await shared.get("popular", make, FlightCaller("honest"))
        assert (await attacker)[0] is answer
        go.set()
        await holder
        return [shared.places.count_held() == 0, shared.places.count_waiting() == 0, not shared._flights]

    assert simulate(run()) == [True] * 3


def test_who_gives_up_leaves_nothing_behind() -> None:
    async def run() -> None:
        places = RunPlaces(1)
        place = places.take_now(FlightCaller("a"))
        assert place is not None
        waiting = asyncio.create_task(places.wait(FlightCaller("b")))
        await asyncio.sleep(0)
        place.end()
        # Its place has come, and it is cancelled before it can see that.
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert (places.count_held(), places.count_waiting()) == (0, 0)

    simulate(run())


def test_what_waits_has_room_in_memory() -> None:
    assert MAX_WAITING * MAX_BODY_BYTES < 1.1 * MAX_WAITING_BYTES
    assert Settings().most_checks_at_once == PLACES
