"""Measures a check: cold and warm, the node's share, what it asks of a node; warm against a constant route.

    python -m bench.check [--cold 300] [--warm 20000] [--beside OTHER/src]
    python -m bench.check --replay 40 [--beside OTHER/src]
    python -m bench.check --same --beside OTHER/src

With ``--beside`` only cold checks are measured, of this code and of another checkout's, in turns. With
``--replay`` the processor time of cold checks whose node answers from a recording (``replayed_check``), so
many of each, and the node's own processor time for their requests. A busy machine moves these figures least:
the tenth that was fastest is shown. ``--same`` checks every sample token with both, and says where requests
or answers differ, to the byte.

Prints medians and 95th percentiles; compare the ratios: machines are noisy. Everything runs on loopback,
against a local chain that makes ten blocks a second.
"""

import argparse
import asyncio
import contextlib
import gzip
import http.client
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import uvloop
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from roundtrip.app.build import open_context
from roundtrip.app.http_server import build_application, build_http_server, listen
from roundtrip.chain.rpc.client import Meter, Node
from roundtrip.config.networks import contracts_from
from roundtrip.config.settings import Settings
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet import world
from roundtrip_development.devnet.compile import compile_contract
from roundtrip_development.devnet.deploy import ContractDeployer, put_token
from roundtrip_development.devnet.node import NodeOptions, RunningNode
from roundtrip_development.devnet.stories import PoolPlan, Story
from roundtrip_development.devnet.sync_rpc import SyncRpc

from .figures import SIDE_BY_SIDE, Table, beside, keep
from .serving import serving
from .timing import WARM_UPS, Times
from .watched import cpu_s

PROJECT = Path(__file__).resolve().parents[1]
STORIES = ("plain", "usdg_pool", "two_pools", "owner_only_sell", "six_decimals", "curve", "graduated")
COUNTED = {"one v3 pool": "plain", "one v4 pool": "v4_eth", "a curve": "curve", "two pools": "both_versions"}
"""Tokens whose requests are counted."""
CHECKS_A_CALLER = 4
AT_ONCE = 64
EIGHT_VENUES = tuple(
    PoolPlan("weth" if version == 3 else quote, fee, 5_000, 900, version)
    for version, quote in ((3, "weth"), (4, "eth"))
    for fee in (100, 500, 3000, 10_000)
)
CONNECTIONS = 16


def figures(times_ms: list[float]) -> str:
    """Median and 95th percentile."""
    ordered = sorted(times_ms)
    return f"median {statistics.median(ordered):7.2f} ms   p95 {ordered[int(len(ordered) * 0.95)]:7.2f} ms"


@dataclass(slots=True)
class RecordingNode(Node):
    """Keeps the bytes of every trip, to send them again with nothing around them."""

    bodies: list[bytes] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)

    async def _post(self, body: bytes, timeout_s: float) -> bytes:
        answer = await Node._post(self, body, timeout_s)
        self.bodies.append(body)
        self.answers.append(answer)
        return answer


def bare_ms(url: str, bodies: list[bytes]) -> float:
    """The node's own time for these requests: a blocking client that reads and parses nothing."""
    host, port = url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port))
    connection.connect()
    started = time.perf_counter()
    for body in bodies:
        connection.request("POST", "/", body, {"content-type": "application/json"})
        connection.getresponse().read()
    spent = (time.perf_counter() - started) * 1000
    connection.close()
    return spent


async def cold(ctx: Context, tokens: list[str], count: int) -> list[str]:
    """Checks that share nothing, one after another, each followed by its own requests sent bare. Returns its
    row of ``SIDE_BY_SIDE``."""
    assert isinstance(ctx.node, Node)
    node = RecordingNode(ctx.node.url, ctx.node.session)
    recording = replace(ctx, node=node)
    whole, waiting, bare = [], [], []
    trips: set[int] = set()
    for token in itertools.islice(itertools.cycle(tokens), count):
        node.bodies.clear()
        node.answers.clear()
        started = time.perf_counter()
        answered = await check(recording, CheckParams(token))
        whole.append((time.perf_counter() - started) * 1000)
        meter: Meter | None = answered.meter
        assert meter is not None
        waiting.append(meter.node_ms)
        trips.add(meter.trips)
        bare.append(bare_ms(node.url, node.bodies))
    ratio = statistics.median(whole) / statistics.median(bare)
    share = statistics.median(waiting) / statistics.median(whole)
    print(f"cold check       {figures(whole)}   trips {sorted(trips)}")
    print(f"  awaiting node  {figures(waiting)}   {share:.0%} of it")
    print(f"  node alone     {figures(bare)}   cold is {ratio:.2f}x")
    return beside("a cold check", Times(whole), "its requests to the node, sent bare", Times(bare))


async def count_requests(ctx: Context, name: str, token: str) -> None:
    """Prints what one check asks of a node. Nodes that compress send a small part of the bytes down."""
    assert isinstance(ctx.node, Node)
    node = RecordingNode(ctx.node.url, ctx.node.session)
    answered = await check(replace(ctx, node=node), CheckParams(token))
    calls = [call["method"] for body in node.bodies for call in json.loads(body)]
    up, down, packed = (
        sum(map(len, bodies)) / 1000
        for bodies in (node.bodies, node.answers, [gzip.compress(answer, 5) for answer in node.answers])
    )
    assert answered.meter is not None
    simulations = calls.count("eth_simulateV1")
    print(
        f"{name:14} {answered.meter.trips} trips {len(calls):4} calls {simulations:4} simulations"
        f" {up:6.0f} KB up {down:6.0f} KB down {packed:5.0f} KB in gzip"
    )


async def load(url: str, requests: int) -> tuple[float, list[float]]:
    """Requests a second and times, from a process of its own."""
    script = str(Path(__file__).with_name("load.py"))
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, url, str(requests), str(CONNECTIONS), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    found = json.loads(output)
    assert set(found["statuses"]) == {"200"}, found["statuses"]
    return found["per_second"], found["times_ms"]


async def warm(base_url: str, token: str, requests: int) -> list[str]:
    """A shared answer against a constant route of the same server and size, in turns. Returns its
    row of ``SIDE_BY_SIDE``."""
    rounds: dict[str, list[tuple[float, list[float]]]] = {"/constant": [], f"/v1/check/{token}": []}
    for _ in range(3):
        for path, found in rounds.items():
            found.append(await load(base_url + path, requests // 3))
    (constant, answer) = (
        (statistics.median(rate for rate, _ in found), [t for _, times in found for t in times])
        for found in rounds.values()
    )
    print(f"constant route   {figures(constant[1])}   {constant[0]:,.0f} a second")
    print(
        f"warm check       {figures(answer[1])}   {answer[0]:,.0f} a second, {answer[0] / constant[0]:.2f}x"
    )
    return beside("a shared check", Times(answer[1]), "constant route", Times(constant[1]))


async def at_once(base_url: str, tokens: list[str]) -> None:
    """Distinct tokens at once, cold, of callers with an address each, since one has few places, who wait
    where the service is busy, as our clients do. And what the service holds in memory before and after."""
    before = memory_mb()
    async with contextlib.AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(local_addr=(f"127.0.1.{number}", 0)))
            )
            for number in range(1, 1 + -(-len(tokens) // CHECKS_A_CALLER))
        ]

        async def ask(number: int, token: str) -> float:
            started, session = time.perf_counter(), sessions[number // CHECKS_A_CALLER]
            while True:
                async with session.get(f"{base_url}/v1/check/{token}") as response:
                    if response.status == 200:
                        assert response.headers["x-cache"] == "miss"
                        return (time.perf_counter() - started) * 1000
                    assert "busy" in await response.text()
                await asyncio.sleep(float(response.headers["retry-after"]))

        started = time.perf_counter()
        times = await asyncio.gather(*(ask(number, token) for number, token in enumerate(tokens)))
        spent = (time.perf_counter() - started) * 1000
    held = f"memory {before:.0f} -> {memory_mb():.0f} MB"
    print(f"{len(tokens)} cold at once  {figures(times)}   all in {spent:.0f} ms, no error, {held}")


def memory_mb() -> float:
    """What this process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def put_tokens(rpc_url: str, built: world.Built) -> tuple[list[str], str]:
    """64 distinct plain tokens of their own pools, and one with eight venues."""
    source = compile_contract(PROJECT / "contracts/tokens/plain.vy")
    with SyncRpc(rpc_url) as chain:
        deployer = ContractDeployer(chain, built.accounts[0])
        pools = (PoolPlan(), PoolPlan("eth", version=4), PoolPlan("usdg", 500, 60_000_000))
        found = []
        for number in range(AT_ONCE):
            story = Story(f"bench{number}", "", "", pools=(pools[number % len(pools)],))
            found.append(put_token(deployer, built.contracts, story, source))
        eight = put_token(deployer, built.contracts, Story("eight", "", "", pools=EIGHT_VENUES), source)
        deployer.check_receipts()
    return found, eight


@contextlib.asynccontextmanager
async def service(ctx: Context) -> AsyncIterator[str]:
    """The service with a constant route beside it. The route's body is as long as a check's."""
    app = build_application(Settings(anon_per_minute=10**9), ctx)
    body = b"x" * 850

    async def constant(request: Request) -> Response:
        return Response(body, media_type="application/json")

    app.router.routes.append(Route("/constant", constant))
    with listen("127.0.0.1", 0, "a port") as listening:
        server = build_http_server(app)
        async with serving(server, listening) as url:
            while not server.started:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            yield url


async def measure(rpc_url: str, built: world.Built, cold_checks: int, warm_requests: int) -> list[list[str]]:
    """Every figure, one after another; the rows of ``SIDE_BY_SIDE``. Without warm requests only cold ones."""
    contracts = contracts_from(built.contracts)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            EmbeddedPostgres(Path(folder)) as server,
            open_context(Settings(), rpc_url, contracts, server.dsn) as ctx,
            service(ctx) as base_url,
        ):
            tokens = [built.tokens[key] for key in STORIES]
            await cold(ctx, tokens, 20)
            print("--- after warming up")
            rows = [await cold(ctx, tokens, cold_checks)]
            print("--- a token with eight venues")
            many, eight = await asyncio.to_thread(put_tokens, rpc_url, built)
            await ctx.heads.refresh()
            await cold(ctx, [eight], 30)
            for name, key in COUNTED.items():
                await count_requests(ctx, name, built.tokens[key])
            await count_requests(ctx, "eight pools", eight)
            if not warm_requests:
                await at_once(base_url, many)
                return rows
            print("--- distinct tokens at once; then the same again, cold, for memory")
            for _ in range(3):
                await at_once(base_url, many)
                await asyncio.sleep(ctx.policy.answer_ttl_ms / 1000 + 0.1)
            await at_once(base_url, list(built.tokens.values()))
            rows.append(await warm(base_url, tokens[0], warm_requests))
    return rows


def measure_beside(other: Path, cold_checks: int, rounds: int = 3) -> None:
    """Cold checks of this code and of another checkout's, in turns."""
    command = [sys.executable, "-m", "bench.check", "--cold", str(cold_checks), "--warm", "0"]
    for _ in range(rounds):
        for name, source in (("this", PROJECT / "src"), ("other", other.resolve())):
            print(f"=== {name}", flush=True)
            paths = os.pathsep.join(map(str, (source, PROJECT / "tests", PROJECT)))
            subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, cwd=PROJECT, check=True)


class ReplayedSide:
    """A process that replays checks with the code of one checkout. ``source``: its ``src``."""

    def __init__(self, name: str, source: Path, url: str, built: world.Built) -> None:
        paths = os.pathsep.join(map(str, (source.resolve(), PROJECT)))
        command = [sys.executable, "-m", "bench.replayed_check", url, json.dumps(built.contracts)]
        command.append(str(built.head_s + 1))
        self.name = name
        self.process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": paths}, cwd=PROJECT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        while self._read_line() != "ready":
            pass

    def ask(self, what: str, token: str) -> Any:
        """Sends one line; returns the answer. Raises RuntimeError: the process ended."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what} {token}\n")
        self.process.stdin.flush()
        while not (line := self._read_line()).startswith(("{", "[")) or '"event"' in line:
            pass
        return json.loads(line)

    def _read_line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the replay of {self.name} ended")
        return line.rstrip()

    def end(self) -> None:
        """Closes its input, and waits until it has ended."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def replay(sides: list[ReplayedSide], node: RunningNode, tokens: Mapping[str, str], runs: int) -> None:
    """Prints for each token the processor time of a replayed check and of the node, by side, in turns, and
    the longest that a check held the event loop."""
    for name, token in tokens.items():
        own_ms: dict[str, list[float]] = {side.name: [] for side in sides}
        verdicts = {}
        for _ in range(runs + WARM_UPS):
            for side in sides:
                answer = side.ask("check", token)
                verdicts[side.name] = answer["answer"]["verdict"]["code"]
                if not answer["missed"]:
                    own_ms[side.name].append(answer["ms"])
        turn_ms = {
            side.name: _tenth([side.ask("turn", token)["turn_ms"] for _ in range(runs)]) for side in sides
        }
        bodies = {side.name: [body.encode() for body in side.ask("bodies", token)] for side in sides}
        node_ms = _node_processor_ms(node, bodies, runs)
        first = sides[0].name
        for side in sides:
            fastest, at_node = _tenth(own_ms[side.name]), node_ms[side.name]
            print(
                f"{name:12} {side.name:6} {verdicts[side.name]:12} {fastest:7.2f} ms"
                f" {_tenth(own_ms[first]) / fastest:6.2f}   node {at_node:7.2f} ms"
                f" {node_ms[first] / at_node:6.2f}   longest turn {turn_ms[side.name]:5.2f} ms"
                f"   {len(own_ms[side.name])} replayed",
                flush=True,
            )


def _tenth(times_ms: list[float]) -> float:
    return sorted(times_ms)[len(times_ms) // 10]


def _node_processor_ms(node: RunningNode, bodies: Mapping[str, list[bytes]], runs: int) -> dict[str, float]:
    """By side, the node's processor time for the requests of one check: the mean, because the system counts
    it in hundredths of a second."""
    spent_s = dict.fromkeys(bodies, 0.0)
    for _ in range(runs):
        for name, requests in bodies.items():
            before_s = cpu_s(node.pid)
            bare_ms(node.url, requests)
            spent_s[name] += cpu_s(node.pid) - before_s
    return {name: seconds * 1000 / runs for name, seconds in spent_s.items()}


def compare(sides: list[ReplayedSide], tokens: Mapping[str, str]) -> None:
    """Says for which tokens the sides' requests or answers differ."""
    different = 0
    for name, token in tokens.items():
        answers = [side.ask("check", token)["answer"] for side in sides]
        requests = [side.ask("bodies", token) for side in sides]
        parts = {"requests": requests, "answer": answers}
        unlike = [part for part, values in parts.items() if any(value != values[0] for value in values)]
        different += bool(unlike)
        if unlike:
            print(f"{name:24} {' and '.join(unlike)} differ: {answers[0]['verdict']['code']}", flush=True)
    print(f"{different} of {len(tokens)} differ")


def measure_replayed(beside: Path | None, runs: int) -> None:
    """Replays checks of this code, and of another checkout's: ``runs`` of each to measure them, in ratios of
    this one's to the other's; 0: every sample token once to compare them."""
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    with world.start_world(places, built, NodeOptions(state=built.state)) as node:
        _, eight = put_tokens(node.url, built)
        tokens = {name: built.tokens[key] for name, key in COUNTED.items()} | {"eight pools": eight}
        sources = {"this": PROJECT / "src"} | ({} if beside is None else {"other": beside})
        sides = [ReplayedSide(name, source, node.url, built) for name, source in sources.items()]
        try:
            if runs:
                replay(sides, node, tokens, runs)
            else:
                compare(sides, built.tokens | {"eight pools": eight})
        finally:
            for side in sides:
                side.end()


def main() -> None:
    """Builds or finds the local chain, starts it, measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold", type=int, default=300)
    parser.add_argument("--warm", type=int, default=20_000)
    parser.add_argument("--beside", type=Path, help="src of another checkout")
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--replay", type=int, default=0, help="so many replayed checks of each sort")
    parser.add_argument("--same", action="store_true", help="compares requests and answers")
    asked = parser.parse_args()
    if asked.replay or asked.same:
        measure_replayed(asked.beside, asked.replay)
        return
    if asked.beside is not None:
        measure_beside(asked.beside, asked.cold)
        return
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    options = NodeOptions(block_time_s=0.1, state=built.state)
    loop = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    with world.start_world(places, built, options) as node, loop as runner:
        rows = runner.run(measure(node.url, built, asked.cold, asked.warm))
    keep(asked.keep, [Table("a check", SIDE_BY_SIDE, rows)])


if __name__ == "__main__":
    main()
