"""How fast simulations and prepared trades are: trips, times, the node's share; then many wallets at once.

    python -m bench.prepare [--times 40]

One row for each tool and venue: "trips" made and allowed, "node" the share of the time spent waiting for
it; "alone" is the node answering the same requests in as many trips, with a client that parses nothing, and
"ratio" is the whole against that. Rows that make more trips than they may come first, marked MISS. Compare
the ratios: machines are noisy. Everything runs on loopback, against a local chain that makes ten blocks a
second.
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
import uvloop
from bench.check import PROJECT, figures, service

from roundtrip.app.build import open_context
from roundtrip.chain.rpc.client import Node
from roundtrip.config.networks import contracts_from
from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.trade.prepare import (
    PrepareBuyParams,
    PreparedTrade,
    PrepareSellParams,
    prepare_buy,
    prepare_sell,
)
from roundtrip.services.trade.simulate import simulate
from roundtrip.services.trade.simulate_params import CallParams, SimulateParams
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc

VENUES = {"v3": "plain", "v4": "v4_eth", "curve": "curve", "graduated": "graduated"}
"""The sample token of each venue."""
SIMULATE_TRIPS, PREPARE_TRIPS = 2, 3
AT_ONCE = 16
ETH = 10**18
_APPROVE_ONE = "0x095ea7b3{:0>64}{:064x}"
_WAIT_S = 10.0


@dataclass(slots=True)
class TimingNode(Node):
    """Keeps every request of a use case, with when it left and when it was answered."""

    sent: list[tuple[float, float, bytes]] = field(default_factory=list)

    async def _post(self, body: bytes, timeout_s: float) -> bytes:
        started = time.perf_counter()
        answer = await Node._post(self, body, timeout_s)
        self.sent.append((started, time.perf_counter(), body))
        return answer

    def trips(self) -> list[list[bytes]]:
        """The requests, those together that were under way at the same time."""
        found: list[list[bytes]] = []
        ends = 0.0
        for started, ended, body in sorted(self.sent):
            if not found or started > ends:
                found.append([])
                ends = ended
            found[-1].append(body)
            ends = min(ends, ended)
        return found


async def _exchange(wire: tuple[asyncio.StreamReader, asyncio.StreamWriter], body: bytes) -> None:
    reader, writer = wire
    head = "POST / HTTP/1.1\r\nhost: node\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n"
    writer.write(head.format(len(body)).encode() + body)
    answered = (await reader.readuntil(b"\r\n\r\n")).lower()
    await reader.readexactly(int(answered.split(b"content-length: ")[1].split(b"\r\n")[0]))


async def alone_ms(url: str, trips: list[list[bytes]]) -> float:
    """The node's own time for these requests, trip by trip: answers are read and not parsed."""
    parts = urlsplit(url)
    width = max(len(trip) for trip in trips)
    wires = [await asyncio.open_connection(parts.hostname, parts.port, limit=2**24) for _ in range(width)]
    started = time.perf_counter()
    for trip in trips:
        await asyncio.gather(*(_exchange(wire, body) for wire, body in zip(wires, trip, strict=False)))
    spent = (time.perf_counter() - started) * 1000
    for _, writer in wires:
        writer.close()
    return spent


# --- wallets -------------------------------------------------------------------------------------------


class Wallets:
    """Fresh wallets with eth; they send what was prepared for them, with the local node's signature."""

    def __init__(self, rpc_url: str) -> None:
        self._rpc_url, self._made = rpc_url, 0

    def fresh(self, count: int) -> list[str]:
        """The addresses of wallets with ten eth each, as of the newest block."""
        first, self._made = self._made, self._made + count
        found = [f"0x{0xBE7C << 64 | number:040x}" for number in range(first, first + count)]
        with SyncRpc(self._rpc_url) as chain:
            for address in found:
                chain.call("anvil_setBalance", address, hex(10 * ETH))
                chain.call("anvil_impersonateAccount", address)
            chain.call("evm_mine")
        return found

    def send(self, trade: PreparedTrade) -> None:
        """Sends every step in order, and waits, bounded, until each went through."""
        with SyncRpc(self._rpc_url) as chain:
            for step in trade.steps:
                sent = {"from": trade.sender, "to": step.to, "data": step.data}
                sent |= {"value": hex(int(step.value)), "gas": hex(step.gas)}
                transaction = chain.call("eth_sendTransaction", sent)
                deadline = time.monotonic() + _WAIT_S
                while (receipt := chain.call("eth_getTransactionReceipt", transaction)) is None:
                    assert time.monotonic() < deadline, "no block took the transaction"
                    time.sleep(0.01)
                assert receipt["status"] == "0x1", step.does


# --- one row ---------------------------------------------------------------------------------------------

UseCase = Callable[[Context], Awaitable[UseCaseAnswer[Any]]]


@dataclass(frozen=True, slots=True)
class Row:
    """One case, measured: times in ms, the most trips it made, the most it may make, node calls."""

    name: str
    trips: int
    allowed: int
    calls: list[int]
    whole: list[float]
    waiting: list[float]
    alone: list[float]

    def missed(self) -> bool:
        """It made more trips than it may."""
        return self.trips > self.allowed

    def ratio(self) -> float:
        """The whole against the node alone."""
        return statistics.median(self.whole) / statistics.median(self.alone)

    def line(self) -> str:
        """For the table."""
        whole, p95 = statistics.median(self.whole), sorted(self.whole)[int(len(self.whole) * 0.95)]
        alone, share = statistics.median(self.alone), statistics.median(self.waiting) / whole
        miss = "MISS" if self.missed() else ""
        return (
            f"{miss:<5}{self.name:<19}{self.trips:>3}/{self.allowed}{statistics.median(self.calls):>7.0f}"
            f"{whole:>10.2f}{p95:>10.2f}{share:>8.0%}{alone:>10.2f}{self.ratio():>7.2f}x"
        )


_HEAD = f"{'':<24}trips  calls  median ms    p95 ms    node  alone ms   ratio"


async def measured(ctx: Context, name: str, use: UseCase, allowed: int, code: str, times: int) -> Row:
    """``times`` runs after two to warm up, each followed by its own requests to the node alone."""
    assert isinstance(ctx.node, Node)
    node = TimingNode(ctx.node.url, ctx.node.session)
    recording = replace(ctx, node=node)
    row = Row(name, 0, allowed, [], [], [], [])
    for number in range(-2, times):
        node.sent.clear()
        started = time.perf_counter()
        answered = await use(recording)
        whole_ms = (time.perf_counter() - started) * 1000
        assert answered.answer.verdict.code == code, (name, answered.answer.verdict)
        meter = answered.meter
        assert meter is not None
        alone = await alone_ms(node.url, node.trips())
        if number >= 0:
            row.whole.append(whole_ms)
            row.waiting.append(meter.node_ms)
            row.alone.append(alone)
            row.calls.append(meter.calls)
            row = replace(row, trips=max(row.trips, meter.trips))
    return row


def simulating(wallet: str, *calls: CallParams) -> UseCase:
    """These calls, simulated."""
    return lambda ctx: simulate(ctx, SimulateParams(wallet, calls=list(calls)))


def buying(wallet: str, token: str) -> UseCase:
    """A tenth of an eth, prepared."""
    return lambda ctx: prepare_buy(ctx, PrepareBuyParams(token, wallet, "0.1"))


def selling(wallet: str, token: str) -> UseCase:
    """All of it, prepared."""
    return lambda ctx: prepare_sell(ctx, PrepareSellParams(token, wallet, "all"))


async def rows(ctx: Context, wallets: Wallets, built: world.Built, times: int) -> list[Row]:
    """Every case, one after another."""
    wallet, *buyers = await asyncio.to_thread(wallets.fresh, 1 + len(VENUES))
    await ctx.heads.refresh()
    token = built.tokens["plain"]
    approval = CallParams(token, _APPROVE_ONE.format(built.contracts["permit2"][2:], ETH))
    plain = {
        "simulate transfer": CallParams(built.accounts[1], value=str(ETH)),
        "simulate approval": approval,
    }
    codes = {"simulate transfer": "nothing_received"}
    found = [
        await measured(ctx, name, simulating(wallet, call), SIMULATE_TRIPS, codes.get(name, "ok"), times)
        for name, call in plain.items()
    ]
    for wallet, (venue, story) in zip(buyers, VENUES.items(), strict=True):
        token = built.tokens[story]
        buy = buying(wallet, token)
        trade: PreparedTrade = (await buy(ctx)).answer
        calls = [CallParams(step.to, step.data, step.value) for step in trade.steps]
        bought = simulating(wallet, *calls)
        found.append(await measured(ctx, f"simulate {venue}", bought, SIMULATE_TRIPS, "ok", times))
        found.append(await measured(ctx, f"buy {venue}", buy, PREPARE_TRIPS, "ok", times))
        await asyncio.to_thread(wallets.send, trade)
        await ctx.heads.refresh()
        sell = selling(wallet, token)
        found.append(await measured(ctx, f"sell {venue}", sell, PREPARE_TRIPS, "ok", times))
    return found


# --- many at once ----------------------------------------------------------------------------------------


async def at_once(base_url: str, wallets: list[str], tokens: list[str]) -> tuple[list[float], float]:
    """Buys of distinct wallets over HTTP at once: the time of each, and of all."""
    async with aiohttp.ClientSession() as session:

        async def ask(number: int, wallet: str) -> float:
            started = time.perf_counter()
            body = {"token": tokens[number % len(tokens)], "from": wallet, "amount": "0.1"}
            async with session.post(f"{base_url}/v1/prepare/buy", json=body) as response:
                answer = msgspec.json.decode(await response.read())
            assert response.status == 200, answer
            assert answer["verdict"]["code"] == "ok", answer["verdict"]
            return (time.perf_counter() - started) * 1000

        started = time.perf_counter()
        times = await asyncio.gather(*(ask(number, wallet) for number, wallet in enumerate(wallets)))
    return list(times), (time.perf_counter() - started) * 1000


@contextlib.asynccontextmanager
async def _context(rpc_url: str, built: world.Built) -> AsyncIterator[Context]:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            EmbeddedPostgres(Path(folder)) as server,
            open_context(Settings(), rpc_url, contracts_from(built.contracts), server.dsn) as ctx,
        ):
            yield ctx


async def measure(rpc_url: str, built: world.Built, times: int) -> None:
    """Every figure."""
    async with _context(rpc_url, built) as ctx, service(ctx) as base_url:
        wallets = Wallets(rpc_url)
        found = await rows(ctx, wallets, built, times)
        print(_HEAD)
        for row in sorted(found, key=lambda row: (not row.missed(), -row.ratio())):
            print(row.line())
        one = statistics.median(next(row for row in found if row.name == "buy v3").whole)
        tokens = [built.tokens[story] for story in VENUES.values()]
        for _ in range(3):
            fresh = await asyncio.to_thread(wallets.fresh, AT_ONCE)
            await ctx.heads.refresh()
            each, whole_ms = await at_once(base_url, fresh, tokens)
            print(
                f"{AT_ONCE} buys at once  {figures(each)}   all in {whole_ms:.0f} ms, "
                f"{whole_ms / AT_ONCE / one:.2f}x one alone for each"
            )


def main() -> None:
    """Builds or finds the local chain, starts it, measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--times", type=int, default=40)
    times = parser.parse_args().times
    places = world.DevnetFolders(PROJECT, PROJECT / "var")
    built = world.build(places, print)
    options = NodeOptions(block_time_s=0.1, state=built.state)
    loop = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    with world.start_world(places, built, options) as node, loop as runner:
        runner.run(measure(node.url, built, times))


if __name__ == "__main__":
    main()
