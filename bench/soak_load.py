"""An open-loop load on one loopback service: arrivals do not wait for answers.

    PYTHONPATH=src:tests python -m bench.soak_load PLAN SEED

PLAN is a file (``soak_mix.Plan`` as JSON). Each line of standard input is an order, ``{"rate": 200,
"seconds": 30, "streams": 20, "slow": 10}``: so many requests a second, drawn from the mix with exponential
gaps, live boards that are kept open, and slow clients. Every four seconds a JSON line gives the results
(``Window``), and ``{"done": true}`` ends an order. Times count from when a request was due.

Requests come from a thousand addresses of loopback, each over connections that it keeps; 1,500 in all. One
that finds none free is not sent, and counted: the service let too much pile up. A kept connection that ends
before a byte of an answer came is what HTTP allows: the request is sent once more.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random
from typing import cast

import msgspec
import uvloop

from roundtrip.api.server.protocol import raise_file_limit
from support.slow_clients import SlowClients

from .soak_mix import Ask, Mix, Plan, outcome

ADDRESSES, MAX_LINES, MAX_FILES = 1000, 1500, 4000
WINDOW_S, LATE_S = 4.0, 45.0
_WRONG_KEPT = 20
_TIMES = ("answered_ms", "busy_ms", "sent_late_ms")
BUSY = ("busy", "page 503")


@dataclass(slots=True)
class Window:
    """The results of four seconds. ``unsent``: no connection was free. ``lost``: no answer came, or none
    within 45 seconds. ``again``: sent twice. ``answered_ms``, ``busy_ms``: p50, p95, p99 of what was
    answered and of busy ones; ``kind_ms``: of what was answered, by kind. ``sent_late_ms``: how long this
    process itself took to send requests that were due. ``callers``: how many of each sort were answered and
    busy. ``waiting``: under way at the end
    of it. ``wrong``: what should never be, in words."""

    spent_s: float = 0.0
    offered: int = 0
    unsent: int = 0
    lost: int = 0
    again: int = 0
    waiting: int = 0
    events: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[str] = field(default_factory=Counter)
    callers: Counter[str] = field(default_factory=Counter)
    answered_ms: list[float] = field(default_factory=list)
    busy_ms: list[float] = field(default_factory=list)
    kind_ms: dict[str, list[float]] = field(default_factory=dict)
    sent_late_ms: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def summed(self) -> dict[str, object]:
        """As JSON values."""
        times = {name: _percentiles(getattr(self, name)) for name in _TIMES}
        kinds = {"kind_ms": {kind: _percentiles(found) for kind, found in self.kind_ms.items()}}
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return plain | times | kinds | {"wrong": self.wrong[:_WRONG_KEPT]}


def _percentiles(times_ms: list[float]) -> list[float]:
    ordered = sorted(times_ms)
    if not ordered:
        return []
    return [round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 2) for part in (0.5, 0.95, 0.99)]


@dataclass(slots=True)
class _Waiting:
    ask: Ask
    due_s: float
    address: str
    tries: int = 1


class _Line(asyncio.Protocol):
    """A connection of one address: one request at a time."""

    def __init__(self, load: "Load", address: str) -> None:
        self._load, self._address = load, address
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._used = False
        self.waiting: _Waiting | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def ask(self, waiting: _Waiting) -> None:
        """Sends it."""
        assert self._transport is not None
        self.waiting = waiting
        self._transport.write(waiting.ask.request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).lower()
        length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
        if len(self._buffer) < end + 4 + length:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        self._buffer.clear()
        self._used = True
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            self._load.answered(waiting, int(head[9:12]), body)
        if b"connection: close" in head:
            self.close()
        else:
            self._load.free(self._address, self)

    def connection_lost(self, exc: Exception | None) -> None:
        waiting, self.waiting = self.waiting, None
        self._load.gone(self._address, self)
        if waiting is not None:
            self._load.unanswered(waiting, self._used and not self._buffer)

    def close(self) -> None:
        """Ends it."""
        if self._transport is not None:
            self._transport.abort()


class Load:
    """The clients."""

    def __init__(self, plan: Plan, rng: Random) -> None:
        self._plan, self._rng, self._mix = plan, rng, Mix(plan, rng)
        self._free: dict[str, deque[_Line]] = {}
        self._lines: set[_Line] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self.window = Window()

    def free(self, address: str, line: _Line) -> None:
        """It may be asked again."""
        self._free.setdefault(address, deque()).append(line)

    def gone(self, address: str, line: _Line) -> None:
        """It may not."""
        self._lines.discard(line)
        with contextlib.suppress(KeyError, ValueError):
            self._free[address].remove(line)

    def answered(self, waiting: _Waiting, status: int, body: bytes) -> None:
        """Counts it."""
        took_ms = (time.perf_counter() - waiting.due_s) * 1000
        said, wrong = outcome(waiting.ask, status, body)
        self.window.outcomes[said] += 1
        self.window.by_kind[f"{waiting.ask.kind}: {said}"] += 1
        self.window.callers[f"{waiting.ask.caller()}: {'busy' if said in BUSY else 'answered'}"] += 1
        if said in BUSY:
            self.window.busy_ms.append(took_ms)
        else:
            self.window.answered_ms.append(took_ms)
            self.window.kind_ms.setdefault(waiting.ask.kind, []).append(took_ms)
        if wrong:
            self.window.wrong.append(wrong)

    def unanswered(self, waiting: _Waiting, crossed: bool) -> None:
        """Its connection ended. ``crossed``: it was a kept one, and nothing had come."""
        if crossed and waiting.tries == 1:
            waiting.tries = 2
            self.window.again += 1
            self._send(waiting)
        else:
            self.window.lost += 1
            self.window.by_kind[f"{waiting.ask.kind}: lost"] += 1

    def _send(self, waiting: _Waiting) -> None:
        known = self._free.get(waiting.address)
        if known and waiting.tries == 1:
            known.pop().ask(waiting)
        elif len(self._lines) + len(self._opening) >= MAX_LINES and not self._closed_one():
            self.window.unsent += 1
        else:
            task = asyncio.create_task(self._opened(waiting))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _closed_one(self) -> bool:
        """Another address leaves, where one is idle."""
        for known in self._free.values():
            if known:
                known.popleft().close()
                return True
        return False

    async def _opened(self, waiting: _Waiting) -> None:
        address = waiting.address
        try:
            _, line = await asyncio.get_running_loop().create_connection(
                lambda: _Line(self, address), "127.0.0.1", self._plan.port, local_addr=(address, 0)
            )
        except OSError:
            self.window.lost += 1
            self.window.by_kind[f"{waiting.ask.kind}: no connection"] += 1
        else:
            self._lines.add(line)
            line.ask(waiting)

    def offer(self, due_s: float) -> None:
        """One arrival."""
        number = self._rng.randrange(ADDRESSES)
        self.window.offered += 1
        self.window.sent_late_ms.append((time.perf_counter() - due_s) * 1000)
        self._send(_Waiting(self._mix.draw(), due_s, f"127.1.{number // 250}.{number % 250 + 1}"))

    def end_late(self) -> None:
        """Gives up requests that have waited too long."""
        oldest_s = time.perf_counter() - LATE_S
        for line in [one for one in self._lines if one.waiting and one.waiting.due_s < oldest_s]:
            assert line.waiting is not None
            line.waiting.tries = 2
            line.close()

    def told(self, spent_s: float) -> dict[str, object]:
        """Returns the window and begins a new one."""
        window, self.window = self.window, Window()
        window.spent_s = round(spent_s, 3)
        window.waiting = sum(1 for one in self._lines if one.waiting) + len(self._opening)
        return window.summed()

    async def stream(self, number: int) -> None:
        """Reads a live board until the end."""
        request = f"GET {self._plan.stream} HTTP/1.1\r\nhost: 127.0.0.1:{self._plan.port}\r\n\r\n".encode()
        address = f"127.2.0.{number // 3 + 1}"
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", self._plan.port, local_addr=(address, 0)
                )
                writer.write(request)
                try:
                    while line := await reader.readline():
                        self.window.events += line.startswith(b"event:")
                finally:
                    writer.close()
            await asyncio.sleep(1.0)


async def arrivals(load: Load, rng: Random, rate: float, seconds: float) -> None:
    """Sends so many requests a second for so long, and prints the results."""
    began_s = told_s = time.perf_counter()
    due_s, end_s = began_s, began_s + seconds
    while (now_s := time.perf_counter()) < end_s:
        while due_s <= now_s:
            load.offer(due_s)
            due_s += rng.expovariate(rate)
        if now_s - told_s >= WINDOW_S:
            load.end_late()
            print(json.dumps(load.told(now_s - told_s)), flush=True)
            told_s = now_s
        await asyncio.sleep(max(0.0, min(due_s, end_s) - time.perf_counter()))
    print(json.dumps(load.told(time.perf_counter() - told_s)), flush=True)


async def main(plan: Plan, seed: int) -> None:
    """Follows orders until standard input ends."""
    rng, reader = Random(seed), asyncio.StreamReader()
    load = Load(plan, rng)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async for line in reader:
        order = json.loads(line)
        slow = SlowClients(plan.port, "/v1/openapi.json", "/v1/simulate", plan.stream)
        looking = [asyncio.create_task(load.stream(number)) for number in range(order.get("streams", 0))]
        async with slow.many(order.get("slow", 0)):
            await arrivals(load, rng, order["rate"], order["seconds"])
        for task in looking:
            task.cancel()
        print(json.dumps({"done": True, "slow": slow.came, "ended": slow.ended}), flush=True)


if __name__ == "__main__":
    raise_file_limit(MAX_FILES)
    asked = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(asked, int(sys.argv[2])))
