"""What a second process that serves brings, and whether what is shared holds: with real servers.

    python -m bench.processes [--requests 8000] [--rounds 5] [--at-once 1000] [--restarts 3]

``roundtrip serve --processes`` over an embedded PostgreSQL, a Valkey server and a local chain. Calls a second
of one process and of two, in turns, from a load of its own process over 32 connections; so many requests of
ten tokens at the same moment, how many checks that ran, and how many each process answered; rolling restarts
under load, and how many requests those lost. The load, the database and the chain take their share of the
processors: on two, two processes that serve bring less than each with a processor of its own would, and what
others do on the machine counts as well.
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
from bench.watched import cpu_s

from roundtrip.domain.base.policy import POLICY
from roundtrip.store.server import valkey
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions, free_port

PROJECT = Path(__file__).resolve().parents[1]
LOAD = Path(__file__).with_name("load.py")
CONNECTIONS = 32
TOKENS = 10
_START_S, _END_S, _ANSWER_S = 60.0, 60.0, 60.0


@dataclass
class Service:
    """``roundtrip serve`` in so many processes. ``replaced``: whether a rolling restart has ended since."""

    process: asyncio.subprocess.Process
    port: int
    replaced: asyncio.Event = field(default_factory=asyncio.Event)

    def cpu_s(self) -> float:
        """Processor time of it and of its processes."""
        return cpu_s(self.process.pid)

    def connections(self) -> list[int]:
        """How many connections each of its processes has taken and not closed, in ascending order."""
        taken = _established(self.port)
        return sorted(len(taken & _sockets(pid)) for pid in _children(self.process.pid))

    async def restart(self) -> float:
        """Replaces every process; how many seconds that took."""
        self.replaced.clear()
        began = time.perf_counter()
        self.process.send_signal(signal.SIGUSR1)
        await asyncio.wait_for(self.replaced.wait(), _END_S)
        return time.perf_counter() - began


def _children(pid: int) -> list[int]:
    told = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in told if b"--listening" in Path(f"/proc/{one}/cmdline").read_bytes()]


def _established(port: int) -> set[str]:
    """The inodes of the sockets of this port that are connected."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"}


def _sockets(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    return found


@contextlib.asynccontextmanager
async def service(count: int, environment: dict[str, str]) -> AsyncIterator[Service]:
    """Ended at the end."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "roundtrip", "serve", "--processes", str(count)),
        env={**os.environ, **environment, "ROUNDTRIP_PORT": str(port)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    found = Service(process, port)

    async def listen() -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            if b"every process was replaced" in line:
                found.replaced.set()

    listening = asyncio.create_task(listen())
    try:
        assert process.stdout is not None
        said = await asyncio.wait_for(process.stdout.readline(), _START_S)
        assert said.startswith(b"roundtrip is at "), said
        yield found
    finally:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        finally:
            if process.returncode is None:
                process.kill()
            await listening


# --- calls a second ---------------------------------------------------------------------------------


async def load(port: int, path: str, posted: str, requests: int) -> tuple[float, list[float]]:
    """Requests a second, and the times, from a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(str(LOAD), f"http://127.0.0.1:{port}{path}", str(requests), str(CONNECTIONS), posted),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    told = json.loads(said)
    assert set(told["statuses"]) == {"200"}, told["statuses"]
    return float(told["per_second"]), list(told["times_ms"])


async def calls(
    name: str, services: dict[int, Service], path: str, posted: str, requests: int, rounds: int
) -> None:
    """One process and two, in turns; the first round warms up."""
    rates: dict[int, list[float]] = {count: [] for count in services}
    times: dict[int, list[float]] = {count: [] for count in services}
    spent: dict[int, list[float]] = {count: [] for count in services}
    for number in range(rounds + 1):
        for count, one in services.items():
            before = one.cpu_s()
            rate, took = await load(one.port, path, posted, requests)
            if number:
                rates[count].append(rate)
                times[count] += took
                spent[count].append((one.cpu_s() - before) * 1000 / len(took))
    middle = {count: statistics.median(found) for count, found in rates.items()}
    print(name)
    for count, found in times.items():
        ordered = sorted(found)
        told = f"median {statistics.median(ordered):6.2f} ms   p95 {ordered[int(len(ordered) * 0.95)]:6.2f}"
        each = f"{statistics.median(spent[count]):.2f} ms of processor a call"
        print(f"  {count} serving {middle[count]:7.0f} calls/s   {told}   {each}")
    print(f"  2 / 1: {middle[2] / middle[1]:.2f}, on {os.cpu_count()} processors")


# --- one check for all ------------------------------------------------------------------------------


async def at_once(
    one: Service, database_url: str, tokens: list[str], requests: int
) -> tuple[int, float, list[int]]:
    """So many requests of these tokens, sent at the same moment over connections that are open; how many
    checks that ran, after how many ms the last was answered, and how many each process answered."""
    opened = [await asyncio.open_connection("127.0.0.1", one.port) for _ in range(requests)]
    async with asyncio.timeout(_START_S):
        while sum(by_process := one.connections()) < requests:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    database = await asyncpg.connect(database_url)
    before = await database.fetchval("SELECT count(*) FROM facts.evidence")

    async def ask(number: int) -> None:
        reader, writer = opened[number]
        token = tokens[number % len(tokens)]
        writer.write(f"GET /v1/check/{token} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        came = await asyncio.wait_for(reader.read(), _ANSWER_S)
        assert came.startswith(b"HTTP/1.1 200"), came[:300]

    began = time.perf_counter()
    await asyncio.gather(*(ask(number) for number in range(requests)))
    took_ms = (time.perf_counter() - began) * 1000
    for _, writer in opened:
        writer.close()
    ran = await database.fetchval("SELECT count(*) FROM facts.evidence") - before
    await database.close()
    return ran, took_ms, by_process


async def checks(one: Service, database_url: str, tokens: list[str], requests: int, rounds: int) -> None:
    """Again and again, each time when the answers of before are no longer shared."""
    found = []
    for _ in range(rounds):
        await asyncio.sleep(POLICY.answer_ttl_ms / 1000 + 1.0)
        found.append(await at_once(one, database_url, tokens, requests))
    ran = " ".join(str(count) for count, _, _ in found)
    took_ms = statistics.median(took for _, took, _ in found)
    answered = ", ".join(" + ".join(map(str, each)) for _, _, each in found)
    print(
        f"{requests} requests of {len(tokens)} tokens at once, 2 serving: {ran} checks ran"
        f" (aim {len(tokens)}), all answered in {took_ms:.0f} ms (median),"
        f" by the two processes {answered}"
    )


# --- a rolling restart ------------------------------------------------------------------------------


@dataclass
class Clients:
    """Clients that keep their connections for as long as they may."""

    port: int
    answered: int = 0
    dropped: list[str] = field(default_factory=list)
    over: bool = False

    async def client(self, path: str) -> None:
        """One of them, until it is over."""
        while not self.over:
            try:
                await self._connection(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as fault:
                self.dropped.append(repr(fault))

    async def _connection(self, request: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            while not self.over:
                writer.write(request)
                head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _ANSWER_S)).lower()
                await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
                if not head.startswith(b"http/1.1 200"):
                    self.dropped.append(head.decode())
                self.answered += 1
                if b"connection: close" in head:
                    return
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def restarts(one: Service, paths: list[str], count: int) -> None:
    """Under a load that never pauses."""
    clients = Clients(one.port)
    tasks = [asyncio.create_task(clients.client(paths[n % len(paths)])) for n in range(CONNECTIONS)]
    took_s = [await one.restart() for _ in range(count)]
    clients.over = True
    await asyncio.gather(*tasks)
    print(
        f"{count} rolling restarts under load, 2 serving: {clients.answered} requests, "
        f"{len(clients.dropped)} dropped (aim 0); {statistics.median(took_s):.1f} s each (median)"
    )
    for dropped in clients.dropped[:5]:
        print(f"  {dropped}")


async def main(asked: argparse.Namespace, rpc_url: str, built: world.Built, folder: Path) -> None:
    """Every figure, one after another."""
    world.write_description(world.DevnetFolders(PROJECT, folder), built, rpc_url)
    tokens = sorted(built.tokens.values())
    plain = f"/v1/check/{built.tokens['plain']}"
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(EmbeddedPostgres(folder / "postgres"))
        environment = {
            "ROUNDTRIP_VAR": str(folder),
            "ROUNDTRIP_DATABASE_URL": server.dsn,
            "ROUNDTRIP_REDIS_URL": await stack.enter_async_context(valkey.running()),
            "ROUNDTRIP_ANON_PER_MINUTE": str(10**9),
            # A tenth of them from one address.
            "ROUNDTRIP_MOST_CONNECTIONS": str(10 * (asked.at_once + CONNECTIONS)),
        }
        one = await stack.enter_async_context(service(1, environment))
        two = await stack.enter_async_context(service(2, environment))
        both = {1: one, 2: two}
        await calls("a cached check over HTTP", both, plain, "", asked.requests, asked.rounds)
        tool = {"name": "check_token", "arguments": {"address": built.tokens["plain"]}, "_meta": {}}
        posted = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool})
        name = "the same by a tool, through the protocol's library"
        await calls(name, both, "/mcp", posted, asked.requests // 4, asked.rounds)
        await checks(two, server.dsn, tokens[:TOKENS], asked.at_once, asked.rounds)
        await restarts(two, [plain, "/v1/tools.json"], asked.restarts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=1000)
    parser.add_argument("--restarts", type=int, default=3)
    options = parser.parse_args()
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    state = world.build(places, print)
    with (
        tempfile.TemporaryDirectory() as scratch,
        world.start_world(places, state, NodeOptions(block_time_s=0.1, state=state.state)) as node,
    ):
        asyncio.run(main(options, node.url, state, Path(scratch)))
