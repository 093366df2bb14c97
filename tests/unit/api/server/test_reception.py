"""Requests in turns of a real event loop, by clocks that stand still until they are moved."""

import asyncio
from dataclasses import dataclass, field

import pytest

from roundtrip.api.server.arrivals import INTERVAL_S, MOST_STARTS, CallerSort
from roundtrip.api.server.reception import Reception


@dataclass
class Process:
    """A process that gets requests. ``share``: how much of the time it has the processor."""

    share: float
    now_s: float = 100.0
    used_s: float = 1.0
    started: int = 0
    refused: list[float] = field(default_factory=list)
    sort: CallerSort | None = "other"

    def __post_init__(self) -> None:
        self.reception = Reception(
            lambda scope: self.sort,
            lambda scope, waited_s, keeps: b"",
            clock=lambda: self.now_s,
            processor_time=lambda: self.used_s,
        )

    def work(self, used_s: float) -> None:
        self.used_s += used_s
        self.now_s += used_s / self.share

    def start(self, used_s: float) -> None:
        self.started += 1
        asyncio.get_running_loop().call_soon(self.work, used_s)

    def come(self, count: int, used_s: float) -> None:
        for _ in range(count):
            if self.reception.starts_now():
                self.start(used_s)
            else:
                self.reception.wait({}, lambda: self.start(used_s), self.refused.append)

    async def arrive(self, rate: float, used_s: float, seconds: float) -> None:
        """So many requests come in a second that the process works, each of which takes so much work."""
        ends_s, due = self.used_s + seconds, 0.0
        last_s = self.used_s
        while self.used_s < ends_s:
            due += max(1e-4, self.used_s - last_s) * rate
            last_s = self.used_s
            self.come(int(due), used_s)
            due -= int(due)
            self.work(1e-4)
            await asyncio.sleep(0)
        await self.quiet()

    async def quiet(self) -> None:
        # Only the loop's turns move it.
        while self.reception._is_turning:  # noqa: ASYNC110
            await asyncio.sleep(0)


@pytest.mark.parametrize("share", [1.0, 0.05])
@pytest.mark.parametrize(("rate", "is_refused"), [(250.0, False), (1_500.0, True)])
async def test_a_load_is_refused_that_is_too_much_for_a_processor(
    share: float, rate: float, is_refused: bool
) -> None:
    """It can do five hundred a second of its own time."""
    process = Process(share)
    await process.arrive(rate, 0.002, 2.0)
    assert bool(process.refused) == is_refused


async def test_who_waits_for_a_processor_that_others_have_is_not_refused() -> None:
    """The same burst, and a hundredth of the processor: it takes seconds and not an interval of work."""
    process = Process(0.01)
    process.come(2 * MOST_STARTS, INTERVAL_S / MOST_STARTS / 4)
    await process.quiet()
    assert process.now_s - 100.0 > 20 * INTERVAL_S / 4
    assert (process.started, process.refused) == (2 * MOST_STARTS, [])


async def test_a_refusal_says_how_long_it_really_took() -> None:
    process = Process(0.1)
    await process.arrive(1_500.0, 0.002, 1.0)
    # Ten milliseconds of work take a hundred.
    assert max(process.refused) >= 0.1


async def test_what_never_waits_is_started_at_once() -> None:
    process = Process(1.0)
    process.come(MOST_STARTS, 0.001)
    process.sort = None
    process.come(3, 0.001)
    assert process.started == MOST_STARTS + 3
    await process.quiet()
