"""Measures how soon 1,000 readers of the event stream have one verdict change, and what they take in memory.

    PYTHONPATH=src python -m bench.stream [--readers 1000] [--events 100]

The readers are sockets of a process of their own. The service is real but for the source of its events, which
is this process. A time is from when an event is handed out to when a reader has it, by one clock. At the end
half of the readers stop to read: the memory is measured again once they are cut.
"""

import argparse
import asyncio
import multiprocessing
import os
import socket
import statistics
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
import uvloop

from roundtrip.api.server.drain import EndlessAnswers
from roundtrip.api.stream.hub import StreamHub, send_stream
from roundtrip.domain.base.types import Address
from roundtrip.domain.verdicts.stream_position import IdTracker, StreamPosition
from roundtrip.services.verdicts.news import KINDS, NewsCursor, NewsEvent, StreamPlan

from .serving import serving

START = StreamPosition(0, 0, 0, 0, 0, 0, 0)
TOKEN = Address("0x" + "1" * 40)
PLAN = StreamPlan(1, None, list(KINDS), None)
AIM_P95_MS = 100
BETWEEN_S, FLOOD, PADDING = 0.1, 600, "x" * 500
SOCKET_BYTES = 16 * 1024
"""Buffers of the sockets: the kernel would hold megabytes for a reader that does not read."""


class Source:
    """Events of this process."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[NewsEvent] = asyncio.Queue()

    async def begin(self) -> NewsCursor:
        """A cursor at the start."""
        return NewsCursor(START, IdTracker(0), IdTracker(0))

    async def dead_keys(self, hashes: Collection[bytes]) -> set[bytes]:
        """None."""
        return set()

    async def read(self, cursor: NewsCursor, accounts: Collection[int]) -> tuple[list[NewsEvent], bool]:
        """The next event."""
        event = await self.events.get()
        cursor.position = event.position
        stamped = msgspec.json.encode({"at": time.monotonic(), "text": PADDING})
        return [event._replace(data=stamped)], False

    async def resume(self, plan: StreamPlan, after: StreamPosition, to: StreamPosition) -> list[NewsEvent]:
        """Nothing."""
        return []


def resident_mb() -> float:
    """The memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def read_streams(port: int, readers: int, events: int, results: Any, done: Any) -> None:
    """The readers' process."""
    uvloop.run(_read_streams(port, readers, events, results, done))


async def _read_streams(port: int, readers: int, events: int, results: Any, done: Any) -> None:
    pairs = []
    for _ in range(readers):
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
        pair = await asyncio.open_connection(sock=opened)
        pair[1].write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        pairs.append(pair)
    for reader, _ in pairs:
        await reader.readuntil(b"retry: 1000\n")
    results.put("open")
    took_ms: list[float] = []

    async def read_one(reader: asyncio.StreamReader) -> None:
        for _ in range(events):
            while not (line := await reader.readline()).startswith(b"data: "):
                pass
            took_ms.append(1000 * (time.monotonic() - msgspec.json.decode(line[6:])["at"]))

    await asyncio.gather(*(read_one(reader) for reader, _ in pairs))
    results.put(took_ms)

    async def drain(reader: asyncio.StreamReader) -> None:
        while await reader.read(65_536):
            pass

    draining = [asyncio.create_task(drain(reader)) for reader, _ in pairs[readers // 2 :]]
    await asyncio.to_thread(done.wait)
    for task in draining:
        task.cancel()
    for _, writer in pairs:
        writer.close()


async def measure(readers: int, events: int) -> None:
    """Prints what it measured."""
    source = Source()
    hub = StreamHub(source, most=readers, most_per_account=readers)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send_stream(hub, PLAN, {}, 1_000, receive, send, EndlessAnswers())

    with socket.create_server(("127.0.0.1", 0), backlog=readers) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
        config = uvicorn.Config(app, lifespan="off", log_level="error", loop="uvloop", http="httptools")
        server = uvicorn.Server(config)
        async with serving(server, listening):
            context = multiprocessing.get_context("spawn")
            results, done, port = context.Queue(), context.Event(), listening.getsockname()[1]
            before_mb = resident_mb()
            process = context.Process(target=read_streams, args=(port, readers, events, results, done))
            process.start()
            assert await asyncio.to_thread(results.get) == "open"
            open_mb = resident_mb()
            for number in range(events):
                position = replace(START, evidence=number + 1)
                source.events.put_nowait(NewsEvent(position, "verdict", TOKEN, None, b""))
                await asyncio.sleep(BETWEEN_S)
            took_ms = await asyncio.to_thread(results.get)
            after_mb = resident_mb()
            for number in range(FLOOD):
                source.events.put_nowait(
                    NewsEvent(replace(START, evidence=events + number), "verdict", TOKEN, None, b"")
                )
                await asyncio.sleep(0.001)
            flooded_mb = resident_mb()
            done.set()
            await asyncio.to_thread(process.join)
    print(f"{readers} readers, {events} events, one each {1000 * BETWEEN_S:.0f} ms")
    print(
        f"until a reader has it: median {statistics.median(took_ms):.1f} ms, "
        f"p95 {statistics.quantiles(took_ms, n=20)[18]:.1f} ms (aim: {AIM_P95_MS} ms), "
        f"max {max(took_ms):.1f} ms"
    )
    print(
        f"memory: {before_mb:.0f} MB without readers, {open_mb:.0f} MB with them, {after_mb:.0f} MB after "
        f"the events, {flooded_mb:.0f} MB after {FLOOD:,} more of which half of the readers read none"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--readers", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=100)
    arguments = parser.parse_args()
    uvloop.run(measure(arguments.readers, arguments.events))
