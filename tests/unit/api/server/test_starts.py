"""A crowd on one warm answer, in simulated time: it is all answered, and waits behind itself."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from roundtrip.api.server.protocol import MAX_STARTS, FairStarts
from support.simulated_time import SimulatedLoop, simulate

READ_S, THINK_S = 0.00004, 0.0003
SECONDS = 2.0


class Process:
    """Reads and answers over many connections. ``waits_s``: by caller."""

    def __init__(self) -> None:
        self.loop = cast(SimulatedLoop, asyncio.get_running_loop())
        self.starts = FairStarts()
        self.counts: Counter[str] = Counter()
        self.waits_s: dict[str, list[float]] = {}
        self.until_s = self.loop.time() + SECONDS

    async def request(self, name: str, answer: Callable[[], Awaitable[None]]) -> None:
        began_s, done = self.loop.time(), self.loop.create_future()

        async def run() -> None:
            await answer()
            done.set_result(None)

        def start() -> None:
            tasks.append(self.loop.create_task(run()))

        tasks: list[asyncio.Task[None]] = []
        self.loop.work(READ_S)
        if self.starts.starts_now():
            start()
        else:
            self.starts.wait(name, start)
        await done
        self.counts[name] += 1
        self.waits_s.setdefault(name, []).append(self.loop.time() - began_s)

    async def flood(self, name: str, cost_s: float) -> None:
        async def warm() -> None:
            self.loop.work(cost_s)

        while self.loop.time() < self.until_s:
            await self.request(name, warm)
            await asyncio.sleep(THINK_S)

    async def visit(self, name: str, steps: int) -> None:
        async def page() -> None:
            for _ in range(steps):
                self.loop.work(0.0005)
                await asyncio.sleep(0.001)

        while self.loop.time() < self.until_s:
            await self.request(name, page)
            await asyncio.sleep(0.05)

    def p95_s(self, name: str) -> float:
        waits = sorted(self.waits_s[name])
        return waits[int(len(waits) * 0.95)]


async def crowd(connections: int, cost_s: float, addresses: int = 6) -> Process:
    process = Process()
    async with asyncio.TaskGroup() as tasks:
        for n in range(connections):
            tasks.create_task(process.flood(f"crowd {n % addresses}", cost_s))
        tasks.create_task(process.visit("a check", 1))
        tasks.create_task(process.visit("a page", 12))
    return process


def rate(process: Process) -> float:
    return sum(count for name, count in process.counts.items() if name.startswith("crowd")) / SECONDS


@pytest.mark.parametrize("cost_s", [0.00015, 0.0003])
def test_a_crowd_is_answered_and_others_do_not_wait_for_it(cost_s: float) -> None:
    few = rate(simulate(crowd(32, cost_s)))
    for connections in (8, 64, 128, 512):
        process = simulate(crowd(connections, cost_s))
        assert rate(process) >= 0.9 * few or connections < 32
        assert process.p95_s("a check") < 0.03
        # Twelve steps, each of which waits for two turns at most.
        assert process.p95_s("a page") < 0.25


def test_one_of_each_caller_is_started_in_turn() -> None:
    turns: list[Callable[[], None]] = []
    starts, order = FairStarts(turns.append), list[str]()
    assert [starts.starts_now() for _ in range(MAX_STARTS + 1)] == [True] * MAX_STARTS + [False]
    for name in ("a",) * (MAX_STARTS + 2) + ("b", "c"):
        starts.wait(name, lambda name=name: order.append(name))  # type: ignore[misc]
    assert not order
    assert not starts.starts_now()
    while turns:
        turns.pop(0)()
        order.append("|")
    a = ["a"]
    assert order == [*"abc", *a * (MAX_STARTS - 3), "|", *a * 4, "|", "|"]
    assert starts.starts_now()
