"""Measures holders' answers: a token read whole for the first time, and again a little later.

    make bench NAME=holders, or: PYTHONPATH=src python -m bench.holders [--transfers 10000 1000000] [--reuse]

A local chain with one token for each size (``crowd_token``), a database with an empty index, and a process of
its own that asks as the service does, jobs and all: until the answer is complete, then after 100 new
transfers each time; then processes that are new, which find the book in the database. Beside them, in the
same run, the node alone: the token's logs in wide ranges and nothing done with them, and the very requests
that were made, sent again. Memory is the asking process's most. Compare the ratios: machines are noisy.

--reuse   starts from chains that an earlier run made; a million transfers take half an hour to make
"""

import argparse
import asyncio
import dataclasses
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from roundtrip.app.build import collect_garbage_rarely, open_context
from roundtrip.chain.blocks.spans import read_refs
from roundtrip.chain.rpc import background
from roundtrip.chain.rpc.client import Node
from roundtrip.config.networks import contracts_from
from roundtrip.config.settings import Settings
from roundtrip.domain.base.types import parse_address
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.holders.handlers import token_holders
from roundtrip.services.holders.schema import Holders
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip.store.holders import books
from roundtrip.store.index import cursor
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import RunningNode
from roundtrip_development.devnet.sync_rpc import SyncRpc

from .check import bare_ms, figures
from .crowd_token import PROJECT, Crowd, CrowdToken, build, started
from .figures import SIDE_BY_SIDE, Table, beside, keep
from .plain_logs import Plain, Reader
from .timing import Times
from .watched import started as process_started

TRANSFERS = (10_000, 100_000, 1_000_000)
NEW_TRANSFERS, NEW_BLOCKS = 100, 5
AGAIN, NEW_PROCESSES = 20, 5
LOGS_AN_ANSWER, AT_ONCE = 4000, 4
ASK_EVERY_S, MAX_S = 0.2, 600.0
AIMS = {10_000: 1.0, 1_000_000: 30.0}
AIM_AGAIN_MS, AIM_MB = 100.0, 1024.0
_ANSWER_S, _BEAT_S = 60.0, 0.01


# --- the process that asks -------------------------------------------------------------------------


class _Call(msgspec.Struct, omit_defaults=False):
    jsonrpc: str
    id: int
    method: str
    params: list[Any]


class _Answer(msgspec.Struct):
    id: int
    jsonrpc: str = "2.0"
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_STATE = (b'"eth_getCode"', b'"eth_getTransactionCount"', b'"eth_getBalance"')
_AROUND = range(-16, 5)


@dataclass(slots=True)
class ArchiveNode(Node):
    """Keeps the bytes of every trip, to send them again with nothing around them. The chain's node has no
    state from before its start, and an archive has: so for old blocks it gets the newest state, without the
    token's code before ``first_number``, and with the ``nonces`` that senders had then. It is asked for all
    the same. ``last_number``: the last block before its start."""

    first_number: int = 0
    last_number: int = 0
    nonces: Mapping[str, int] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)

    async def _post(self, body: bytes, timeout_s: float) -> bytes:
        if not any(method in body for method in _STATE):
            self.bodies.append(body)
            return await Node._post(self, body, timeout_s)
        calls, told = msgspec.json.decode(body, type=list[_Call]), {}
        for call in calls:
            if f'"{call.method}"'.encode() in _STATE and str(call.params[1]).startswith("0x"):
                who, number = str(call.params[0]), int(call.params[1], 16)
                if number > self.last_number:
                    continue
                call.params[1] = "latest"
                if call.method == "eth_getCode" and number < self.first_number:
                    told[call.id] = b'"0x"'
                elif call.method == "eth_getTransactionCount" and who in self.nonces:
                    told[call.id] = f'"{self.nonces[who]:#x}"'.encode()
        self.bodies.append(msgspec.json.encode(calls))
        answers = msgspec.json.decode(await Node._post(self, self.bodies[-1], timeout_s), type=list[_Answer])
        for answer in answers:
            if answer.id in told:
                answer.result = msgspec.Raw(told[answer.id])
        return msgspec.json.encode(answers)


def nonces_before(rpc: SyncRpc, number: int) -> dict[str, int]:
    """What nonces the senders around a block had before it, by their transactions."""
    found: dict[str, int] = {}
    for at in _AROUND:
        for sent in rpc.call("eth_getBlockByNumber", hex(number + at), True)["transactions"]:
            nonce = int(sent["nonce"], 16)
            if at < 0:
                found[sent["from"]] = nonce + 1
            else:
                found.setdefault(sent["from"], nonce)
    return found


class First(msgspec.Struct):
    """The first answers. ``first_s``: until the first one of all, ``whole_s``: until it was complete;
    ``asked``: so many were needed. ``read_s``, ``trips``: the same requests sent again, with nothing around
    them, one after another. ``memory_mb``: the most that the process held, ``start_mb``: before it asked.
    ``late_ms``: how late other work in the process was, each hundredth second."""

    first_s: float
    whole_s: float
    asked: int
    transfers: int
    holders: int
    status: str
    read_s: float
    trips: int
    start_mb: float
    memory_mb: float
    cpu_s: float
    late_ms: list[float]


class Again(msgspec.Struct):
    """Times of answers after new transfers, of some with nothing new, and the process's memory."""

    times_ms: list[float]
    same_ms: list[float]
    transfers: int
    status: str
    memory_mb: float


@dataclass(slots=True)
class Desk:
    """Who asks: a context as the service has one, its jobs beside it, and a chain that can go on."""

    ctx: Context
    node: ArchiveNode
    rpc: SyncRpc
    built: world.Built
    found: CrowdToken
    acted: int

    async def ask(self) -> Holders:
        """One answer, as a caller gets it, not through the shared ones."""
        return (await token_holders(self.ctx, TokenParams(self.found.token))).answer

    async def _read_on(self) -> None:
        """Until the job has read it to the end: who asks all the time would be measured, too."""
        while True:
            await asyncio.sleep(ASK_EVERY_S)
            async with self.ctx.pool.acquire() as connection:
                head = await books.load_head(connection, parse_address(self.found.token))
            if head is not None and head.state != "reading":
                return

    async def first(self) -> First:
        """Until the answer is complete."""
        start_mb, cpu_s = _memory_mb(), time.process_time()
        self.node.bodies.clear()
        late_ms: list[float] = []
        async with background.run_in_background(_beat(late_ms), "beat"):
            began = time.perf_counter()
            answer, asked = await self.ask(), 1
            first_s = time.perf_counter() - began
            while answer.status == "reading" and time.perf_counter() - began < MAX_S:
                await self._read_on()
                answer, asked = await self.ask(), asked + 1
            whole_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
        # Before the requests are sent again: their answers are held here, too.
        memory_mb = _memory_mb()
        assert answer.holders is not None, "nothing was counted"
        read_s = await asyncio.to_thread(bare_ms, self.node.url, self.node.bodies) / 1000
        return First(
            first_s, whole_s, asked, answer.transfers_read, answer.holders.count, answer.status, read_s,
            len(self.node.bodies), start_mb, memory_mb, cpu_s, late_ms,
        )  # fmt: skip

    async def again(self, times: int) -> Again:
        """After new transfers, so many times; and each time once more with nothing new."""
        found: list[float] = []
        same: list[float] = []
        answer = None
        for _ in range(times):
            await asyncio.to_thread(self._act)
            await self.ctx.heads.refresh()
            for kept in (found, same):
                began = time.perf_counter()
                answer = await self.ask()
                kept.append((time.perf_counter() - began) * 1000)
        assert answer is not None
        return Again(found, same, answer.transfers_read, answer.status, _memory_mb())

    def _act(self) -> None:
        size = NEW_TRANSFERS // NEW_BLOCKS
        Crowd(self.rpc, self.built, self.found.token).act(self.acted + 1, [size] * NEW_BLOCKS)
        self.acted += NEW_TRANSFERS


@asynccontextmanager
async def desk(url: str, dsn: str, transfers: int, acted: int) -> AsyncIterator[Desk]:
    """Over the node at ``url``, with an index that has met no wallet. For loopback nodes only: the chain is
    made to go on."""
    built, found = build(transfers, True, lambda _: None)
    async with open_context(Settings(), url, contracts_from(built.contracts), dsn) as plain:
        assert isinstance(plain.node, Node)
        own = {one.name: getattr(plain.node, one.name) for one in dataclasses.fields(Node)}
        with SyncRpc(url, _ANSWER_S) as rpc:
            nonces = nonces_before(rpc, found.first_number)
            node = ArchiveNode(
                **own, first_number=found.first_number, last_number=found.last_number, nonces=nonces
            )
            ctx = dataclasses.replace(plain, node=node)
            # As if followed from its first block on: no archive is searched for where wallets come from.
            (last,) = await read_refs(node, [found.last_number])
            assert last is not None
            async with ctx.pool.acquire() as connection:
                await cursor.begin(connection, 0, last[0], is_local=True)
            worker = Worker(ctx, KINDS, random.SystemRandom().random)
            async with background.run_in_background(worker.run(), "jobs"):
                yield Desk(ctx, node, rpc, built, found, acted or found.acted)


async def _beat(late_ms: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(_BEAT_S)
        late_ms.append((time.perf_counter() - began - _BEAT_S) * 1000)


def _memory_mb() -> float:
    """The most that this process ever held."""
    (line,) = (row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


async def ask(asked: argparse.Namespace) -> None:
    """Asks and says what it found, as JSON, on its last line."""
    async with desk(asked.ask, asked.dsn, asked.transfers[0], asked.acted) as there:
        said = [await there.first()] if asked.new else []
        found = await there.again(AGAIN if asked.new else 1)
        print(msgspec.json.encode([*said, found]).decode(), flush=True)


# --- the run ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """One size's chain, its node and its database."""

    found: CrowdToken
    transfers: int
    url: str
    dsn: str
    folder: Path

    async def asking(self, new: bool, acted: int) -> bytes:
        """What a process of its own says. ``new``: it asks for the first time of all."""
        command = [sys.executable, "-m", "bench.holders", "--ask", self.url, "--dsn", self.dsn]
        command += ["--transfers", str(self.transfers), "--acted", str(acted), *(["--new"] if new else [])]
        environment = {"PYTHONPATH": str(PROJECT / "src"), "ROUNDTRIP_NETWORK": "devnet"}
        with process_started(command, environment, self.folder / "asking.log", PROJECT) as watched:
            if await asyncio.to_thread(watched.process.wait, 2 * MAX_S):
                watched.check()
            return watched.log.read_bytes().splitlines()[-1]


def plain(place: Place) -> Plain:
    """The node alone: all of the token's logs, in ranges of a good width; the best of three."""
    found = place.found
    logs_a_block = found.made * 1.1 / (found.last_number - found.first_number + 1)
    width, reader = max(1, round(LOGS_AN_ANSWER / logs_a_block)), Reader(place.url, found)
    return min((reader.read(width, AT_ONCE, len) for _ in range(3)), key=lambda one: one.seconds)


async def measure(place: Place) -> list[list[str]]:
    """Prints one size's figures; the rows of ``figures.SIDE_BY_SIDE`` that tell most."""
    alone = await asyncio.to_thread(plain, place)
    first, again = msgspec.json.decode(await place.asking(True, 0), type=tuple[First, Again])
    assert first.status == "complete", first
    assert first.transfers == place.found.made, f"{first.transfers} of {place.found.made} transfers"
    acted, cold = place.found.acted + AGAIN * NEW_TRANSFERS, []
    for _ in range(NEW_PROCESSES):
        (found,) = msgspec.json.decode(await place.asking(False, acted), type=tuple[Again])
        acted += NEW_TRANSFERS
        cold += found.times_ms
        assert found.transfers == place.found.made + acted - place.found.acted, found
    tell(place.transfers, first, again, cold, alone)
    size = f"holders, {first.transfers:,} transfers"
    once, node = Times([first.whole_s * 1000]), Times([alone.seconds * 1000])
    return [
        beside(f"{size}: read whole", once, "its logs from the node, not parsed", node),
        beside(f"{size}: 100 new", Times(again.times_ms), "nothing new", Times(again.same_ms)),
    ]


def tell(transfers: int, first: First, again: Again, cold: list[float], alone: Plain) -> None:
    """Prints them."""
    aim = f" (aim {AIMS[transfers]:g})" if transfers in AIMS else ""
    each_us, plain_us = (seconds / first.transfers * 1e6 for seconds in (first.whole_s, alone.seconds))
    print(f"{first.transfers:,} transfers, {first.holders:,} holders")
    print(
        f"  whole           {first.whole_s:8.2f} s{aim}, {each_us:.1f} us a transfer; the first of"
        f" {first.asked} answers after {first.first_s:.2f} s; processor {first.cpu_s:.2f} s"
    )
    print(
        f"  node alone      {alone.seconds:8.2f} s, {plain_us:.1f} us a transfer: whole is"
        f" {first.whole_s / alone.seconds:.2f}x; the same {first.trips} requests one by one"
        f" {first.read_s:.2f} s: {first.whole_s / first.read_s:.2f}x"
    )
    print(f"  others wait     {figures(first.late_ms)}   worst {max(first.late_ms):.0f} ms while it reads")
    print(f"  memory          {first.memory_mb:8.0f} MB (aim {AIM_MB:g}), {first.start_mb:.0f} before")
    print(f"  100 new         {figures(again.times_ms)} (aim {AIM_AGAIN_MS:g})")
    print(f"  nothing new     {figures(again.same_ms)}")
    print(
        f"  new process     median {statistics.median(cold):7.2f} ms   worst {max(cold):7.2f} ms, 100 new;"
        f" {again.memory_mb:.0f} MB at most after all of these",
        flush=True,
    )


async def run(transfers: int, node: RunningNode, found: CrowdToken) -> list[list[str]]:
    """With a server of its own around it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with EmbeddedPostgres(folder) as server:
            return await measure(Place(found, transfers, node.url, server.dsn, folder))


def each(sizes: list[int], reuse: bool, say: Callable[[str], None]) -> list[list[str]]:
    """One size after the other."""
    rows = []
    for transfers in sizes:
        built, found = build(transfers, reuse, say)
        with started(built) as node, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            rows += runner.run(run(transfers, node, found))
    return rows


def main() -> None:
    """Builds or finds the chains and measures; with ``--ask`` it is the process that asks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transfers", type=int, nargs="+", default=list(TRANSFERS))
    parser.add_argument("--reuse", action="store_true")
    for name in ("--ask", "--dsn"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--acted", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--new", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--keep", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.ask:
        # As the processes that serve or run jobs do.
        collect_garbage_rarely()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(ask(asked))
        return
    rows = each(asked.transfers, asked.reuse, print)
    keep(asked.keep, [Table("who holds a token", SIDE_BY_SIDE, rows)])


if __name__ == "__main__":
    main()
