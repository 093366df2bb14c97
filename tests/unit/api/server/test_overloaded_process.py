"""A process that gets more than it can do, in a time of its own: how soon it says so, and whom it serves.

The model is an event loop that does one thing after another. A turn reads what has arrived, runs the steps
that are ready, and ends. Each request is a few steps with a wait for the node between them.
"""

import heapq
import itertools
from dataclasses import dataclass, field
from random import Random

import pytest

from roundtrip.api.server.arrivals import Arrival, ArrivalQueue, CallerSort

STEPS, STEP_S, WAIT_S = 4, 0.002, 0.010
READ_S, REFUSE_S = 0.00004, 0.00003
CAPACITY = 1 / (STEPS * STEP_S)
SHARES: dict[CallerSort, float] = {"keyed": 0.25, "page": 0.15, "other": 0.6}
SECONDS, SETTLES_S = 12.0, 2.0


@dataclass
class Load:
    """What became of requests at so many times the capacity, from their arrival in the socket on."""

    times: float
    seed: int
    now_s: float = 0.0
    answered_s: list[float] = field(default_factory=list)
    busy_s: list[float] = field(default_factory=list)
    counts: dict[tuple[CallerSort, str], int] = field(default_factory=dict)

    def run(self) -> "Load":
        """Until the load ends."""
        rng, queue, numbers = Random(self.seed), ArrivalQueue(), itertools.count()
        ready: list[tuple[float, int, CallerSort, float, int]] = []
        """Steps: when each may run, its number, and its request's sort, arrival and steps left."""
        due_s = rng.expovariate(self.times * CAPACITY)
        while self.now_s < SECONDS:
            if due_s > self.now_s and not queue.count_waiting() and (not ready or ready[0][0] > self.now_s):
                self.now_s = min(due_s, ready[0][0]) if ready else due_s
            began_s = self.now_s
            while due_s <= began_s:
                self.now_s += READ_S
                [sort] = rng.choices(list(SHARES), list(SHARES.values()))

                def start(sort: CallerSort = sort, came_s: float = due_s) -> None:
                    heapq.heappush(ready, (self.now_s, next(numbers), sort, came_s, STEPS))

                def refuse(waited_s: float, sort: CallerSort = sort, came_s: float = due_s) -> None:
                    self.now_s += REFUSE_S
                    self._end(sort, "busy", came_s, self.busy_s)

                if queue.starts_now():
                    start()
                else:
                    queue.add(sort, Arrival(self.now_s, start, refuse))
                due_s += rng.expovariate(self.times * CAPACITY)
            reached_s = self.now_s
            while ready and ready[0][0] <= reached_s:
                _, _, sort, came_s, left = heapq.heappop(ready)
                self.now_s += STEP_S * rng.expovariate(1.0)
                if left == 1:
                    self._end(sort, "answered", came_s, self.answered_s)
                else:
                    heapq.heappush(ready, (self.now_s + WAIT_S, next(numbers), sort, came_s, left - 1))
            queue.end_turn(self.now_s, self.now_s - began_s)
        return self

    def _end(self, sort: CallerSort, how: str, came_s: float, took_s: list[float]) -> None:
        if came_s > SETTLES_S:
            took_s.append(self.now_s - came_s)
            self.counts[sort, how] = self.counts.get((sort, how), 0) + 1

    def answered(self, sort: CallerSort) -> float:
        """The share of a sort that was answered."""
        answered, busy = (self.counts.get((sort, how), 0) for how in ("answered", "busy"))
        return answered / (answered + busy)


def p95(times_s: list[float]) -> float:
    return sorted(times_s)[int(len(times_s) * 0.95)]


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_borne_is_answered(seed: int) -> None:
    found = Load(0.6, seed).run()
    assert len(found.busy_s) <= 0.001 * len(found.answered_s)


@pytest.mark.parametrize("times", [2.0, 10.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_overload_is_told_soon_and_the_others_are_served_as_usual(times: float, seed: int) -> None:
    usual, found = Load(0.25, seed).run(), Load(times, seed).run()
    assert p95(found.busy_s) < 0.050
    assert p95(found.answered_s) < 3 * p95(usual.answered_s)
    # And the process does what it can: refusals cost little.
    assert len(found.answered_s) > 0.8 * CAPACITY * (SECONDS - SETTLES_S) * (1.0 if times < 5 else 0.85)


def test_at_twice_the_load_keys_are_served_and_pages_have_their_part() -> None:
    found = Load(2.0, 3).run()
    assert found.answered("keyed") > 0.85
    assert found.answered("page") > found.answered("other")


def test_far_beyond_the_load_keys_come_before_others() -> None:
    found = Load(10.0, 3).run()
    assert found.answered("keyed") > 4 * found.answered("other")
    assert found.answered("page") > found.answered("other")
