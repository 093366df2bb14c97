"""The readers of a chain for ``bench.index``: plain, as the sync does, and as Ponder does."""

import asyncio
import contextlib
import http.client
import json
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import asyncpg
import msgspec

from roundtrip.config.networks import contracts_from
from roundtrip.domain.base.types import Address
from roundtrip.store.server.rows import Connection
from roundtrip.venues.abi import keccak
from roundtrip.venues.base import Log
from roundtrip.venues.decode import Decoder
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import free_port

from . import busy_chain
from .watched import Watched, cpu_s, started

PROJECT = busy_chain.PROJECT
PONDER = PROJECT / "bench/peers/ponder"
BLOCKS_A_RANGE, BLOCKS_A_BATCH = 2000, 200
LOOK_S, MAX_S = 0.02, 900.0
EVENTS = (
    "PoolCreated(address,address,uint24,int24,address)",
    "Swap(address,address,int256,int256,uint160,uint128,int24)",
    "Initialize(bytes32,address,address,uint24,int24,address,uint160,int24)",
    "Swap(bytes32,address,int128,int128,uint160,uint128,int24,uint24)",
    "TokenLaunched(address,address,address,address,uint256,uint256)",
    "TokenLaunched(address,address,address,address,address,uint256,uint256,uint256,uint256,uint256)",
    "CurveBuy(address,address,uint256,uint256,uint256,uint256)",
    "CurveSell(address,address,uint256,uint256,uint256,uint256)",
    "Transfer(address,address,uint256)",
)
"""What Ponder's project listens to."""
TABLES = ("pool", "launch", "trade", "transfer")


@dataclass(frozen=True, slots=True)
class Run:
    """``whole_s``: from the process's start; ``backfill_s``: since it began to read. ``rows`` by table.
    ``cpu_s``: processor time of its own, of the node and of the database."""

    whole_s: float
    backfill_s: float
    rows: dict[str, int]
    cpu_s: tuple[float, float, float]
    memory_mb: float


class Place(NamedTuple):
    """Where everything is: the node, its last block with a trade and its newest, and the server.
    ``pids``: of the node and of the server. ``kept_from_s``: the sync keeps transfers from then on."""

    rpc_url: str
    pids: tuple[int, int]
    built: world.Built
    last: int
    newest: int
    kept_from_s: int
    dsn: str
    folder: Path

    def cpu_s(self) -> tuple[float, float]:
        """Processor time of node and server so far."""
        node, server = map(cpu_s, self.pids)
        return node, server

    def spent(self, own_s: float, before: tuple[float, float]) -> tuple[float, float, float]:
        """``own_s``, and what node and server spent since."""
        node, server = self.cpu_s()
        return own_s, node - before[0], server - before[1]

    def database(self, name: str) -> str:
        """The address of a database of that name."""
        return self.dsn.replace("///roundtrip?", f"///{name}?")


# --- plain -----------------------------------------------------------------------------------------


class _RawLog(msgspec.Struct):
    address: str
    topics: tuple[str, ...]
    data: str


class _RawTransaction(msgspec.Struct):
    hash: str
    sender: str = msgspec.field(name="from")


class _RawBlock(msgspec.Struct):
    hash: str
    timestamp: str
    transactions: list[_RawTransaction]


class _Answer(msgspec.Struct):
    id: int
    result: msgspec.Raw


def plain(place: Place, blocks: bool) -> Run:
    """Reads the same events and keeps nothing. ``blocks``: and every block with its transactions, without
    which the traders are unknown."""
    decode = Decoder(contracts_from(place.built.contracts))
    answers = msgspec.json.Decoder(list[_Answer])
    logs, block = msgspec.json.Decoder(list[_RawLog]), msgspec.json.Decoder(_RawBlock)
    width = BLOCKS_A_BATCH if blocks else BLOCKS_A_RANGE
    host, port = urlsplit(place.rpc_url).netloc.split(":")
    connection = http.client.HTTPConnection(host, int(port))

    def ask(first: int) -> bytes:
        body = _asked(first, min(first + width - 1, place.last), blocks)
        connection.request("POST", "/", body, {"content-type": "application/json"})
        return connection.getresponse().read()

    rows = {"logs": 0, "events": 0, "transactions": 0}
    before, began, began_cpu_s = place.cpu_s(), time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(1) as asking:
        coming = asking.submit(ask, 0)
        for following in range(width, place.last + width + 1, width):
            answer = coming.result()
            if following <= place.last:
                coming = asking.submit(ask, following)
            for part in answers.decode(answer):
                if part.id:
                    rows["transactions"] += len(block.decode(part.result).transactions)
                    continue
                for raw in logs.decode(part.result):
                    log = Log(Address(raw.address), raw.topics, bytes.fromhex(raw.data[2:]))
                    rows["logs"] += 1
                    rows["events"] += decode(log) is not None
    seconds = time.perf_counter() - began
    spent = place.spent(time.process_time() - began_cpu_s, before)
    connection.close()
    return Run(seconds, seconds, rows, spent, 0.0)


def _asked(first: int, last: int, blocks: bool) -> str:
    """The request for one range."""
    topics = ["0x" + keccak(event.encode()).hex() for event in EVENTS]
    calls: list[tuple[str, list[object]]] = [
        ("eth_getLogs", [{"fromBlock": hex(first), "toBlock": hex(last), "topics": [topics]}])
    ]
    if blocks:
        calls += [("eth_getBlockByNumber", [hex(number), True]) for number in range(first, last + 1)]
    return json.dumps(
        [{"jsonrpc": "2.0", "id": n, "method": method, "params": p} for n, (method, p) in enumerate(calls)]
    )


# --- roundtrip -------------------------------------------------------------------------------------


async def sync(place: Place, database: str) -> Run:
    """The sync in a process of its own, until its cursor is at the newest block."""
    places = world.DevnetFolders(PROJECT, place.folder)
    world.write_description(places, place.built, place.rpc_url)
    environment = sync_environment(place.rpc_url, place.database(database), place.folder)
    command = [sys.executable, "-m", "roundtrip", "sync"]
    connection = await asyncpg.connect(place.database(database))
    before, began = place.cpu_s(), time.perf_counter()
    first: list[float] = []

    async def done() -> bool:
        with contextlib.suppress(asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
            number = await connection.fetchval("SELECT number FROM facts.cursor")
            if number is not None and not first:
                first.append(time.perf_counter())
            return number is not None and number >= place.newest
        return False

    try:
        with started(command, environment, place.folder / "sync.log", PROJECT) as watched:
            await until(done, watched)
            ended = time.perf_counter()
            spent, memory_mb = place.spent(watched.cpu_s(), before), watched.memory_mb("VmHWM")
        rows = await counted(connection, "facts", place.kept_from_s)
    finally:
        await connection.close()
    return Run(ended - began, ended - first[0], rows, spent, memory_mb)


def sync_environment(rpc_url: str, database_url: str, var: Path) -> dict[str, str]:
    """The settings of a sync on the local chain. ``var`` holds the description of it."""
    return {
        "ROUNDTRIP_NETWORK": "devnet",
        "ROUNDTRIP_RPC_URL": rpc_url,
        "ROUNDTRIP_DATABASE_URL": database_url,
        "ROUNDTRIP_VAR": str(var),
        "PYTHONPATH": str(PROJECT / "src"),
    }


async def until(done: Callable[[], Awaitable[bool]], watched: Watched) -> None:
    """Looks again and again. Raises EndedEarly, or TimeoutError after a quarter of an hour."""
    async with asyncio.timeout(MAX_S):
        while not await done():
            watched.check()
            await asyncio.sleep(LOOK_S)


async def counted(connection: Connection, schema: str, from_s: int) -> dict[str, int]:
    """Rows by table; transfers since ``from_s``."""
    found = {}
    for table in TABLES:
        since = f" WHERE at_s >= {from_s}" if table == "transfer" else ""
        found[table] = await connection.fetchval(f"SELECT count(*) FROM {schema}.{table}{since}")  # noqa: S608
    return found


# --- Ponder ----------------------------------------------------------------------------------------


async def ponder(place: Place, database: str, limited: bool) -> Run:
    """Ponder in a process of its own, until it says that it is ready."""
    port, log = free_port(), place.folder / "ponder.log"
    command = [str(PONDER / "node_modules/.bin/ponder"), "start", "--schema", "peer", "--port", str(port)]
    command += ["--hostname", "127.0.0.1", "--log-format", "json"]
    environment = ponder_environment(place, database) | {"BENCH_URLS": "1" if limited else "64"}

    def ready() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    async def done() -> bool:
        return await asyncio.to_thread(ready)

    before, began = place.cpu_s(), time.perf_counter()
    with started(command, environment, log, PONDER) as watched:
        await until(done, watched)
        whole_s = time.perf_counter() - began
        spent, memory_mb = place.spent(watched.cpu_s(), before), watched.memory_mb("VmHWM")
    connection = await asyncpg.connect(place.database(database))
    try:
        rows = await counted(connection, "peer", place.kept_from_s)
    finally:
        await connection.close()
    said = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    at_ms = {line["msg"]: line["time"] for line in said}
    backfill_s = (at_ms["Completed indexing across all chains"] - at_ms["Started backfill indexing"]) / 1000
    return Run(whole_s, backfill_s, rows, spent, memory_mb)


def ponder_environment(place: Place, database: str) -> dict[str, str]:
    """What Ponder's project reads. It may tell its makers nothing."""
    contracts = place.built.contracts
    return {
        "DATABASE_URL": place.database(database),
        "PONDER_TELEMETRY_DISABLED": "1",
        "BENCH_CHAIN_ID": "4663",
        "BENCH_RPC_URL": place.rpc_url,
        "BENCH_START_BLOCK": "0",
        "BENCH_END_BLOCK": str(place.last),
        "BENCH_WETH": contracts["weth"],
        "BENCH_USDG": contracts["usdg"],
        "BENCH_V3_FACTORY": contracts["v3Factory"],
        "BENCH_V4_POOL_MANAGER": contracts["v4PoolManager"],
        "BENCH_LAUNCHPAD_FACTORY": contracts["launchpadFactory"],
        "BENCH_LAUNCHPAD_HOOK": contracts["launchpadHook"],
        "BENCH_LAUNCHPAD_V1_FACTORY": contracts["launchpadV1Factories"],
    }
