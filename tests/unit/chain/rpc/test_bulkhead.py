"""Places at the node: who gets them, who waits, and whose fault a timeout is."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import pytest

from roundtrip.chain.rpc.bulkhead import BoundedNode, Bulkhead, Lane, LaneLimits, limits
from roundtrip.chain.rpc.client import CodeFault, Meter, NodeTimeout, RpcCall, RpcError, SimulationTooLong
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from support.clocks import Clock
from unit.chain.samples import raw

SIMULATION = [RpcCall("eth_simulateV1", [])]
PLAIN = [RpcCall("eth_getBalance", [])]
_TURNS = 20


@dataclass
class Workers:
    """Requests that hold a place until the test lets go of it."""

    bulkhead: Bulkhead
    started: list[str] = field(default_factory=list)
    running: Counter[str] = field(default_factory=Counter)
    most: int = 0

    async def hold(self, caller: str, done: asyncio.Event) -> None:
        async with self.bulkhead.place("calls", caller):
            self.started.append(caller)
            self.running[caller] += 1
            self.most = max(self.most, self.running.total())
            try:
                await done.wait()
            finally:
                self.running[caller] -= 1


async def turns() -> None:
    """Lets everything run that can."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


def bulkhead(clock: Clock, **other: float | bool) -> Bulkhead:
    given = {
        "places": 2,
        "of_caller": 1,
        "of_token": 2,
        "waiting": 3,
        "wait_s": 60.0,
        "request_s": 5.0,
        **other,
    }
    lane = LaneLimits(**given)  # type: ignore[arg-type]
    return Bulkhead({"calls": lane, "checks": lane}, clock)


async def test_a_caller_with_many_requests_holds_one_place_and_others_get_theirs() -> None:
    work = Workers(bulkhead(Clock(0.0)))
    done = asyncio.Event()
    mine = [asyncio.create_task(work.hold("greedy", done)) for _ in range(3)]
    await turns()
    other = asyncio.create_task(work.hold("honest", done))
    await turns()
    assert work.started == ["greedy", "honest"]
    assert work.most == 2
    done.set()
    await asyncio.gather(*mine, other)
    assert work.running.total() == 0


async def test_the_caller_who_used_least_is_next_and_use_is_forgotten() -> None:
    clock = Clock(0.0)
    work = Workers(bulkhead(clock, places=1))
    for caller, took_s in (("long", 8.0), ("short", 2.0)):
        async with work.bulkhead.place("calls", caller):
            clock.now_s += took_s
    done = asyncio.Event()
    first = asyncio.create_task(work.hold("first", done))
    await turns()
    rest = [asyncio.create_task(work.hold(caller, done)) for caller in ("long", "short", "new")]
    await turns()
    done.set()
    await asyncio.gather(first, *rest)
    assert work.started == ["first", "new", "short", "long"]
    # An hour later what was used then counts for nothing against two seconds now.
    clock.now_s += 3600.0
    async with work.bulkhead.place("calls", "short"):
        clock.now_s += 2.0
    again = asyncio.Event()
    first = asyncio.create_task(work.hold("first", again))
    await turns()
    rest = [asyncio.create_task(work.hold(caller, again)) for caller in ("short", "long")]
    await turns()
    again.set()
    await asyncio.gather(first, *rest)
    assert work.started[4:] == ["first", "long", "short"]


async def test_one_who_waits_with_too_many_is_told_that_it_is_his_own_doing() -> None:
    work = Workers(bulkhead(Clock(0.0)))
    done = asyncio.Event()
    mine = [asyncio.create_task(work.hold("greedy", done)) for _ in range(4)]
    await turns()
    with pytest.raises(ServiceFull) as caught:
        await work.hold("greedy", done)
    assert (caught.value.code, caught.value.counts) == ("busy", True)
    done.set()
    await asyncio.gather(*mine)


@pytest.mark.parametrize(("caller", "counts"), [("greedy", True), ("honest", False)])
async def test_who_waits_too_long_is_told_whose_doing_it_is(caller: str, counts: bool) -> None:
    work = Workers(bulkhead(Clock(0.0), places=1, wait_s=0.01))
    done = asyncio.Event()
    holds = asyncio.create_task(work.hold("greedy", done))
    await turns()
    with pytest.raises(ServiceFull) as caught:
        await work.hold(caller, done)
    assert caught.value.counts is counts
    done.set()
    await holds
    assert work.running.total() == 0


async def test_many_callers_of_one_token_leave_places_to_other_tokens() -> None:
    work, done = bulkhead(Clock(0.0), places=3, of_token=2), asyncio.Event()
    work.mark_plain("attacked")
    started: list[tuple[str, str]] = []

    async def hold(caller: str, token: str) -> None:
        async with work.place("checks", caller, token):
            started.append((caller, token))
            await done.wait()

    tasks = [asyncio.create_task(hold(caller, "attacked")) for caller in "abc"]
    await turns()
    tasks.append(asyncio.create_task(hold("d", "other")))
    await turns()
    assert started == [("a", "attacked"), ("b", "attacked"), ("d", "other")]
    done.set()
    await asyncio.gather(*tasks)
    assert started[3:] == [("c", "attacked")]


async def test_of_a_token_that_nobody_knows_one_request_runs_before_others_follow() -> None:
    bulkhead, node = Bulkhead(), ScriptedNode()
    gate = asyncio.Event()
    started: list[str] = []

    async def ask(caller: str) -> None:
        async with bulkhead.place("checks", caller, "new"):
            started.append(caller)
            await gate.wait()

    tasks = [asyncio.create_task(ask(caller)) for caller in "abc"]
    await turns()
    assert started == ["a"]
    # What it used was no very much.
    await BoundedNode.of(node, bulkhead, "checks", "z", "other").batch(SIMULATION)
    bulkhead.mark_plain("new")
    gate.set()
    await asyncio.gather(*tasks)
    gate.clear()
    tasks = [asyncio.create_task(ask(caller)) for caller in "abc"]
    await turns()
    assert started == ["a", "b", "c", "a", "b", "c"]
    gate.set()
    await asyncio.gather(*tasks)


async def test_who_goes_away_gives_his_place_or_his_turn_back() -> None:
    work = Workers(bulkhead(Clock(0.0), places=1))
    done = asyncio.Event()
    holds = asyncio.create_task(work.hold("one", done))
    await turns()
    waits = asyncio.create_task(work.hold("two", done))
    await turns()
    waits.cancel()
    holds.cancel()
    await asyncio.gather(holds, waits, return_exceptions=True)
    done.set()
    await asyncio.wait_for(work.hold("three", done), 5)
    assert work.started == ["one", "three"]


async def test_whatever_happens_no_place_is_lost_and_none_is_given_twice() -> None:
    for seed in range(30):
        chance, work = random.Random(seed), Workers(bulkhead(Clock(0.0), waiting=50))
        tasks: list[tuple[asyncio.Task[None], asyncio.Event]] = []
        for _ in range(60):
            done = asyncio.Event()
            tasks.append((asyncio.create_task(work.hold(chance.choice("abcd"), done)), done))
            task, over = chance.choice(tasks)
            if chance.random() < 0.5:
                over.set()
            elif chance.random() < 0.3:
                task.cancel()
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
        for _, done in tasks:
            done.set()
        await asyncio.wait_for(asyncio.gather(*(task for task, _ in tasks), return_exceptions=True), 5)
        assert work.most <= 2
        free = Workers(work.bulkhead)
        now = asyncio.Event()
        ends = [asyncio.create_task(free.hold(caller, now)) for caller in ("x", "y")]
        await turns()
        assert free.started == ["x", "y"]
        now.set()
        await asyncio.gather(*ends)


async def test_a_place_held_for_long_rests_as_long_where_callers_write_the_calls() -> None:
    clock = Clock(0.0)
    rests = bulkhead(clock, places=1, rests=True)
    async with rests.place("calls", "one"):
        clock.now_s += 0.3
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    async with rests.place("calls", "two"):
        assert loop.time() - began_s >= 0.29
    async with asyncio.timeout(5), rests.place("calls", "three"):
        pass


# --- the node behind it ----------------------------------------------------------------------------


@dataclass
class ScriptedNode:
    """Simulations time out while ``hangs``; the probe after one fails while ``dead``."""

    hangs: bool = False
    dead: bool = False
    asked: list[str] = field(default_factory=list)
    answer: msgspec.Raw = field(default_factory=lambda: raw("0x1"))

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        self.asked.append(calls[0].method)
        is_probe = len(calls) == 2
        if self.dead or (self.hangs and not is_probe and calls[0].method == "eth_simulateV1"):
            raise NodeTimeout
        return [self.answer] * len(calls)

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        found: list[list[msgspec.Raw | RpcError] | NodeFault] = []
        for calls in groups:
            try:
                found.append(await self.batch(calls, meter))
            except NodeFault as fault:
                found.append(fault)
        return found


def bounded(node: ScriptedNode, left_s: float = 5.0) -> BoundedNode:
    return BoundedNode(node, Bulkhead(), "calls", "someone", left_s)


async def test_a_timeout_is_the_codes_where_the_node_answers_a_plain_question() -> None:
    node = ScriptedNode(hangs=True)
    with pytest.raises(SimulationTooLong) as caught:
        await bounded(node).batch(SIMULATION)
    assert isinstance(caught.value, CodeFault)
    assert isinstance((await bounded(node).batches([SIMULATION], Meter()))[0], SimulationTooLong)


async def test_a_timeout_is_the_nodes_where_it_answers_nothing() -> None:
    node = ScriptedNode(dead=True)
    with pytest.raises(NodeTimeout):
        await bounded(node).batch(SIMULATION)
    (fault,) = await bounded(node).batches([SIMULATION], Meter())
    assert isinstance(fault, NodeTimeout)


async def test_the_time_of_one_request_is_bounded() -> None:
    node = bounded(ScriptedNode(), left_s=0.0)
    with pytest.raises(SimulationTooLong):
        await node.batch(SIMULATION)
    assert isinstance((await node.batches([SIMULATION], Meter()))[0], SimulationTooLong)


@dataclass
class SlowNode(ScriptedNode):
    """Answers a simulation when the test lets it."""

    answered: list[asyncio.Event] = field(default_factory=list)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        self.answered.append(asyncio.Event())
        await self.answered[-1].wait()
        return [self.answer] * len(calls)


@pytest.mark.parametrize(("lane", "at_once"), [("checks", 2), ("calls", 1)])
async def test_batches_of_one_check_that_overlap_share_a_place(lane: Lane, at_once: int) -> None:
    """Of calls that a caller wrote each waits for its turn."""
    places, node = bulkhead(Clock(), places=1), SlowNode()
    one = BoundedNode(node, places, lane, "someone", 5.0)
    first = asyncio.create_task(one.batch(SIMULATION))
    await turns()
    second = asyncio.create_task(one.batches([SIMULATION], Meter()))
    await turns()
    assert len(node.answered) == at_once
    node.answered[0].set()
    await first
    other = asyncio.create_task(BoundedNode(node, places, lane, "other", 5.0).batch(SIMULATION))
    await turns()
    assert len(node.answered) == 2, "the place is held until the last of them ends"
    node.answered[1].set()
    await second
    await turns()
    node.answered[2].set()
    await other


async def test_the_time_of_batches_that_overlap_counts_once() -> None:
    node = SlowNode()
    one = BoundedNode(node, bulkhead(Clock()), "checks", "someone", 5.0)
    both = [asyncio.create_task(one.batch(SIMULATION)) for _ in range(2)]
    began_s = time.monotonic()
    await turns()
    sent_s = time.monotonic()
    while time.monotonic() < sent_s + 0.05:
        pass
    for answered in node.answered:
        answered.set()
    await asyncio.gather(*both)
    assert 0.05 <= 5.0 - one.left_s <= time.monotonic() - began_s


async def test_what_runs_no_code_waits_for_no_place() -> None:
    node = bounded(ScriptedNode(), left_s=0.0)
    assert await node.batch(PLAIN) == [raw("0x1")]
    assert await node.batches([PLAIN], Meter()) == [[raw("0x1")]]


def gas(used: int) -> msgspec.Raw:
    """A simulation's answer in which a call used so much."""
    return raw([{"calls": [{"gasUsed": "0x5208"}, {"gasUsed": hex(used)}]}])


async def test_a_token_that_uses_very_much_gas_goes_on_in_the_lane_of_its_like() -> None:
    bulkhead, node = Bulkhead(), ScriptedNode()
    for token, used, lane in (("plain", 2_900_000, "checks"), ("loops", 16_000_000, "dear")):
        one = BoundedNode.of(node, bulkhead, "checks", "someone", token)
        node.answer = gas(used)
        await one.batch(SIMULATION)
        assert one.lane == lane
        assert BoundedNode.of(node, bulkhead, "checks", "another", token).lane == lane
    assert BoundedNode.of(node, bulkhead, "calls", "another", "loops").lane == "calls"


async def test_simulations_of_a_dear_token_are_sent_one_at_a_time_and_answered_in_order() -> None:
    bulkhead, node = Bulkhead(), ScriptedNode()
    bulkhead.mark_dear("loops")
    dear = BoundedNode.of(node, bulkhead, "checks", "someone", "loops")
    assert len(await dear.batch([*PLAIN, *PLAIN, *SIMULATION, *SIMULATION, *PLAIN])) == 5
    assert node.asked == ["eth_getBalance", "eth_simulateV1", "eth_simulateV1", "eth_getBalance"]
    node.asked.clear()
    assert [len(one) for one in await dear.batches([SIMULATION * 2, PLAIN], Meter()) if one] == [2, 1]  # type: ignore[arg-type]
    assert node.asked == ["eth_simulateV1", "eth_simulateV1", "eth_getBalance"]


async def test_a_token_that_took_too_long_is_dear_for_an_hour() -> None:
    clock = Clock(0.0)
    bulkhead = Bulkhead(clock=clock)
    with pytest.raises(SimulationTooLong):
        await BoundedNode.of(ScriptedNode(hangs=True), bulkhead, "checks", "a", "loops").batch(SIMULATION)
    assert bulkhead.is_dear("loops")
    clock.now_s += 3601.0
    assert not bulkhead.is_dear("loops")


async def test_a_dead_node_makes_no_token_dear() -> None:
    bulkhead = Bulkhead()
    with pytest.raises(NodeTimeout):
        await BoundedNode.of(ScriptedNode(dead=True), bulkhead, "checks", "a", "fair").batch(SIMULATION)
    assert not bulkhead.is_dear("fair")


def test_callers_own_simulations_cannot_fill_the_places_of_checks() -> None:
    lanes = limits()
    assert lanes["calls"].places * 4 <= lanes["checks"].places
    for name, lane in (*lanes.items(), *limits(2, 2).items()):
        assert 0 < lane.of_caller < lane.places or name == "dear"
