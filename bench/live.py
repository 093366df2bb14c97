"""Measures how far the sync is behind a chain of ten blocks and a hundred trades a second, and its memory.

    PYTHONPATH=src python -m bench.live [--minutes 1] [--trades 100]

The lag of a block: from when its header came over a websocket of ours to when the database told us that its
facts are there, both by this process's clock. The crowd trades from a process of its own, and ends by itself.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import aiohttp
import asyncpg
import uvloop

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions, RunningNode
from roundtrip_development.devnet.sync_rpc import SyncRpc

from .busy_chain import PROJECT, SEED, Crowd, ways
from .indexers import sync_environment, until
from .watched import Watched, started

BLOCK_TIME_S, TICK_S = 0.1, 0.1
MEMORY_EVERY_S = 5.0
MAX_MOVING_S = 120.0
AIM_P95_MS = 300
KEPT_BLOCKS = 6000
_MOVED_IN = "moved in"


class LongRun(NodeOptions):
    """A node that forgets transactions after ten minutes, long read by then: with traces each is 70 kB."""

    def arguments(self, port: int) -> list[str]:
        """anvil's command line."""
        return [*NodeOptions.arguments(self, port), "--transaction-block-keeper", str(KEPT_BLOCKS)]


def trade(rpc_url: str, seconds: float, trades_per_s: int) -> None:
    """The crowd: moves in, says so, and trades for so long. For loopback nodes only."""
    assert urlsplit(rpc_url).hostname == "127.0.0.1", "loads go to loopback only"
    built = world.build(world.DevnetFolders(PROJECT, PROJECT / "var"), print)
    with SyncRpc(rpc_url) as chain:
        crowd = Crowd(chain, built, ways(chain, built), Random(SEED))
        crowd.move_in(lambda: chain.call("evm_mine"))
        print(_MOVED_IN, flush=True)
        began, sent, each = time.monotonic(), 0, round(trades_per_s * TICK_S)
        while (now := time.monotonic() - began) < seconds:
            due = (sent // each) * TICK_S
            if now < due:
                time.sleep(due - now)
            crowd.look(each)
            crowd.send(crowd.orders(each))
            sent += each
    print(f"sent {sent} trades in {time.monotonic() - began:.0f} s", flush=True)


@dataclass
class Clock:
    """When blocks were seen, and when the database announced their facts."""

    seen: dict[int, float] = field(default_factory=dict)
    told: list[tuple[int, float]] = field(default_factory=list)

    def lags_ms(self, since: float) -> list[float]:
        """Of the blocks seen since then: until the first word of that block, or of a later one."""
        lags, at = [], 0
        for number, seen in sorted(self.seen.items()):
            while at < len(self.told) and self.told[at][0] < number:
                at += 1
            if at < len(self.told) and seen >= since:
                lags.append((self.told[at][1] - seen) * 1000)
        return lags


@contextlib.asynccontextmanager
async def headers(rpc_url: str, clock: Clock) -> AsyncIterator[None]:
    """Notes when each new header comes."""

    async def note(socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            at, told = time.perf_counter(), json.loads(message.data)
            if "params" in told:
                clock.seen.setdefault(int(told["params"]["result"]["number"], 16), at)

    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(rpc_url.replace("http:", "ws:"), max_msg_size=0) as socket,
    ):
        await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]})
        task = asyncio.create_task(note(socket))
        yield
        task.cancel()


async def caught_up(connection: Connection, clock: Clock) -> bool:
    """Whether the cursor is at the newest block."""
    with contextlib.suppress(asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        number = await connection.fetchval("SELECT number FROM facts.cursor")
        return number is not None and bool(clock.seen) and number >= max(clock.seen) - 2
    return False


async def watch_memory(watched: Watched, seconds: float) -> list[float]:
    """What the process holds, every few seconds for so long."""
    found, began = [], time.perf_counter()
    while time.perf_counter() - began < seconds:
        watched.check()
        found.append(watched.memory_mb())
        await asyncio.sleep(MEMORY_EVERY_S)
    return found


async def measure(node: RunningNode, built: world.Built, folder: Path, seconds: float, trades: int) -> None:
    """One run."""
    clock = Clock()
    world.write_description(world.DevnetFolders(PROJECT, folder), built, node.url)
    crowd = [sys.executable, "-m", "bench.live", "--trade", node.url]
    crowd += ["--minutes", str(seconds / 60), "--trades", str(trades)]
    path = {"PYTHONPATH": str(PROJECT / "src")}
    async with EmbeddedPostgres(folder) as server:
        connection = await asyncpg.connect(server.dsn)
        await connection.add_listener(
            "facts", lambda *told: clock.told.append((int(told[3]), time.perf_counter()))
        )
        environment = sync_environment(node.url, server.dsn, folder)
        environment["ROUNDTRIP_WS_URL"] = node.url.replace("http:", "ws:")
        command = [sys.executable, "-m", "roundtrip", "sync"]
        with started(crowd, path, folder / "crowd.log", PROJECT) as trading:
            async with asyncio.timeout(MAX_MOVING_S):
                while _MOVED_IN not in trading.log.read_text():
                    trading.check()
                    await asyncio.sleep(0.1)
            async with headers(node.url, clock):
                with started(command, environment, folder / "sync.log", PROJECT) as syncing:
                    await until(lambda: caught_up(connection, clock), syncing)
                    began, cpu_s = time.perf_counter(), syncing.cpu_s()
                    before = await connection.fetchval("SELECT count(*) FROM facts.trade")
                    left_s = seconds - 5.0
                    held = await watch_memory(syncing, left_s)
                    spent = time.perf_counter() - began
                    busy = (syncing.cpu_s() - cpu_s) / spent
                    after = await connection.fetchval("SELECT count(*) FROM facts.trade")
        await connection.close()
    tell(clock.lags_ms(began), held, spent, after - before, busy, node.memory_bytes() / 2**20)


def tell(
    lags_ms: list[float], held_mb: list[float], spent_s: float, trades: int, busy: float, node_mb: float
) -> None:
    """Prints the figures."""
    ordered, third = sorted(lags_ms), max(1, len(held_mb) // 3)
    p95_ms = ordered[int(len(ordered) * 0.95)]
    first, last = (statistics.median(part) for part in (held_mb[:third], held_mb[-third:]))
    print(
        f"{len(lags_ms) / spent_s:.1f} blocks and {trades / spent_s:.0f} trades a second for {spent_s:.0f} s"
    )
    print(
        f"lag       median {statistics.median(ordered):.0f} ms   p95 {p95_ms:.0f} ms (aim {AIM_P95_MS})"
        f"   worst {ordered[-1]:.0f} ms"
    )
    print(
        f"memory    {first:.0f} MB in the first third, {last:.0f} MB in the last, most {max(held_mb):.0f} MB;"
        f" the node {node_mb:.0f} MB"
    )
    print(f"processor {busy:.0%} of one core")


def main() -> None:
    """Starts the chain and measures; with ``--trade`` it is the crowd."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--trades", type=int, default=100, help="a second")
    parser.add_argument("--trade", metavar="URL", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    seconds = asked.minutes * 60
    if asked.trade:
        trade(asked.trade, seconds, asked.trades)
        return
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    options = LongRun(block_time_s=BLOCK_TIME_S, state=built.state)
    with (
        tempfile.TemporaryDirectory() as folder,
        world.start_world(places, built, options) as node,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(measure(node, built, Path(folder), seconds, asked.trades))


if __name__ == "__main__":
    main()
