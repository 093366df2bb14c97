"""Measures the time from a trade's block to its alert at a webhook: node, sync, alerts, worker.

    PYTHONPATH=src:tests python -m bench.alerts [--trades 100]

``roundtrip demo`` as it stands, over a database of ours: one process, a block each second, polled. An account
has a webhook on loopback, the rule ``any buying`` and a follow of a wallet, which buys one token after
another and waits each time until both rows are there. A row's time: from when a websocket or a poll of ours
first knew of the block to when the receiver had the request in full, both by this process's clock. Each
request is verified as docs/receivers does it.

A rule or a follow raises at most 20 rows a minute, by the chain's clock. Here that advances by four seconds a
block, so no minute has more than 15 blocks, and no block has more than one of these trades.
"""

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import uvloop
from eth_account import Account
from eth_account.messages import encode_defunct

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.venues.abi import keccak
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import free_port
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.receiver import Receiver, answer, receiver

from .busy_chain import PROJECT, ways
from .indexers import sync_environment, until
from .live import Clock, caught_up, headers
from .watched import Watched, started

TRADES = 100
AIM_P95_MS = 1000
CHAIN_S_A_BLOCK = 4
LOOK_S, MAX_S = 0.005, 15.0
KINDS = ("follow", "rule")
WALLET = "0x" + keccak(b"roundtrip alerts")[12:].hex()
_FUNDS_WEI, _BUY_WEI = 10**22, 10**16
_RECEIPT = "eth_getTransactionReceipt"
_STARTED = "Press Ctrl-C to stop."


def _documented() -> Any:
    """The receiver that the documentation hands out."""
    path = PROJECT / "docs/receivers/receiver.py"
    spec = importlib.util.spec_from_file_location("documented_receiver", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Told:
    """What the receiver got. ``rows``: when each came first, by transaction and kind. ``again``: of rows
    that had come before. ``minutes``: rows by kind and minute of the chain. ``refused``: requests with a bad
    signature."""

    verified: Any
    secret: str = ""
    rows: dict[tuple[str, str], float] = field(default_factory=dict)
    verbs: Counter[str] = field(default_factory=Counter)
    minutes: Counter[tuple[str, str]] = field(default_factory=Counter)
    requests: int = 0
    refused: int = 0
    again: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, at: Receiver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The newest request."""
        now, got = time.perf_counter(), at.got[-1]
        if not self.secret:  # the test of set_webhook, whose answer has the secret
            await answer(204)(reader, writer)
            return
        self.requests += 1
        if not self.verified(self.secret, got.headers, got.body, time.time()):
            self.refused += 1
            await answer(401)(reader, writer)
            return
        for row in json.loads(got.body)["rows"]:
            key = (row["tx"], row["kind"])
            self.again += key in self.rows
            self.rows.setdefault(key, now)
            self.verbs[row["verb"]] += 1
            self.minutes[row["kind"], row["ts"][: len("2026-01-05T12:00")]] += 1
        self.came.set()
        await answer(204)(reader, writer)

    async def both(self, transaction: str) -> None:
        """Waits for both rows of it. Raises TimeoutError."""
        async with asyncio.timeout(MAX_S):
            while not all((transaction, kind) in self.rows for kind in KINDS):
                self.came.clear()
                await self.came.wait()


@dataclass(frozen=True, slots=True)
class Trade:
    """One that went through."""

    transaction: str
    block: int


class Service:
    """The service's doors, and the node's, over one session."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, rpc_url: str) -> None:
        self._session, self._base_url, self._rpc_url, self._key = session, base_url, rpc_url, ""

    async def _post(self, url: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        async with self._session.post(url, json=body, headers=headers) as response:
            said: dict[str, Any] = await response.json()
            assert response.status == 200, said
            return said

    async def log_in(self) -> None:
        """A key for a new wallet, as docs/keys.md has it."""
        wallet = Account.create()
        asked = await self._post(f"{self._base_url}/v1/keys/nonce", {"address": wallet.address})
        signed = wallet.sign_message(encode_defunct(text=asked["message"]))
        given = {"address": wallet.address, "signature": "0x" + bytes(signed.signature).hex()}
        self._key = (await self._post(f"{self._base_url}/v1/keys", given))["key"]

    async def tool(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """A tool's answer."""
        call = {"name": name, "arguments": arguments}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        said = (await self._post(f"{self._base_url}/mcp", asked))["result"]
        assert not said.get("isError"), said
        found: dict[str, Any] = said["structuredContent"]
        return found

    async def node(self, method: str, *params: object) -> Any:
        """The node's answer."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self._session.post(self._rpc_url, json=asked) as response:
            said = await response.json()
            assert "result" in said, said
            return said["result"]


async def bought(service: Service, clock: Clock, order: dict[str, str]) -> Trade:
    """Buys, and waits for the receipt; the block counts as seen now unless a header came before."""
    transaction = await service.node("eth_sendTransaction", order)
    async with asyncio.timeout(MAX_S):
        while (receipt := await service.node(_RECEIPT, transaction)) is None:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
    block = int(receipt["blockNumber"], 16)
    clock.seen.setdefault(block, time.perf_counter())
    assert receipt["status"] == "0x1", receipt
    return Trade(transaction, block)


async def measure(
    service: Service, demo: Watched, clock: Clock, told: Told, orders: Sequence[dict[str, str]]
) -> None:
    """One trade after another."""
    await service.node("anvil_setBalance", WALLET, hex(_FUNDS_WEI))
    await service.node("anvil_impersonateAccount", WALLET)
    await service.node("anvil_setBlockTimestampInterval", CHAIN_S_A_BLOCK)
    trades, reads_ms = [], []
    for order in orders:
        demo.check()
        began = time.perf_counter()
        await service.node("eth_getBlockByNumber", "latest", True)
        reads_ms.append((time.perf_counter() - began) * 1000)
        trades.append(await bought(service, clock, order))
        with contextlib.suppress(TimeoutError):  # it is counted as missing
            await told.both(trades[-1].transaction)
    tell(trades, clock, told, reads_ms)


def tell(trades: Sequence[Trade], clock: Clock, told: Told, reads_ms: list[float]) -> None:
    """Prints the figures. Raises SystemExit where a row is missing or is not what it should be."""
    own = Clock({trade.block: clock.seen[trade.block] for trade in trades}, clock.told)
    wanted = {(trade.transaction, kind): trade.block for trade in trades for kind in KINDS}
    missing, strange = wanted.keys() - told.rows.keys(), told.rows.keys() - wanted.keys()
    print(
        f"{len(trades)} trades in {len(own.seen)} blocks, {len(wanted)} rows to come: "
        f"{len(missing)} missing, {told.again} twice, {len(strange)} of no trade, verbs {dict(told.verbs)}; "
        f"{told.requests} requests, {told.refused} with a bad signature; "
        f"at most {max(told.minutes.values(), default=0)} rows of one kind in a minute of the chain"
    )
    if not told.rows:
        raise SystemExit("no alert arrived")
    lags_ms = {
        kind: [
            (told.rows[key] - own.seen[block]) * 1000
            for key, block in wanted.items()
            if key[1] == kind and key in told.rows
        ]
        for kind in KINDS
    }
    every_ms, facts_ms = [lag for found in lags_ms.values() for lag in found], own.lags_ms(0.0)
    print(f"block to webhook:      {_figures(every_ms)}   (aim: p95 under {AIM_P95_MS})")
    for kind, found in lags_ms.items():
        print(f"  {kind + ' rows':<19}  {_figures(found)}")
    print(f"block to its facts:    {_figures(facts_ms)}")
    print(f"eth_getBlockByNumber:  {_figures(reads_ms)}")
    middle, middle_facts = statistics.median(every_ms), statistics.median(facts_ms)
    print(
        f"medians: webhook / facts {middle / middle_facts:.1f}, "
        f"webhook / eth_getBlockByNumber {middle / statistics.median(reads_ms):.0f}; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
    if missing or strange or told.again or told.refused or set(told.verbs) != {"buying"}:
        raise SystemExit("not every trade raised one alert by the rule and one by the follow")


def _figures(found_ms: list[float]) -> str:
    if not found_ms:
        return "0"
    ordered = sorted(found_ms)
    p95 = ordered[int(len(ordered) * 0.95)]
    return (
        f"{len(ordered)}: median {statistics.median(ordered):.1f} ms, p95 {p95:.1f}, worst {ordered[-1]:.1f}"
    )


@contextlib.contextmanager
def demo_started(folder: Path, rpc_url: str, port: int, database_url: str, hook: str) -> Iterator[Watched]:
    """``roundtrip demo``, with everything of its own in ``folder`` but the chain that was built before."""
    for kept in ("devnet", "artifacts"):
        (folder / kept).symlink_to(PROJECT / "var" / kept)
    environment = sync_environment(rpc_url, database_url, folder) | {
        "ROUNDTRIP_PORT": str(port),
        "ROUNDTRIP_RPC_PORT": rpc_url.rpartition(":")[2],
        "ROUNDTRIP_WEBHOOK_LOOPBACK": json.dumps([hook]),
    }
    command = [sys.executable, "-m", "roundtrip", "demo", "--genesis", str(world.GENESIS_S)]
    with started(command, environment, folder / "log", PROJECT) as demo:
        yield demo


async def main(count: int, built: world.Built, folder: Path) -> None:
    """One run."""
    port, rpc_url, clock = free_port(), f"http://127.0.0.1:{free_port()}", Clock()
    told = Told(_documented().verified)
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(EmbeddedPostgres(folder / "database"))
        connection = await asyncpg.connect(server.dsn)
        stack.push_async_callback(connection.close)
        await connection.add_listener(
            "facts", lambda *said: clock.told.append((int(said[3]), time.perf_counter()))
        )
        hook = await stack.enter_async_context(receiver())
        hook.behave = lambda reader, writer: told.take(hook, reader, writer)
        demo = stack.enter_context(demo_started(folder, rpc_url, port, server.dsn, hook.at))

        async def up() -> bool:
            return _STARTED in demo.log.read_text()

        await until(up, demo)
        await stack.enter_async_context(headers(rpc_url, clock))
        await until(lambda: caught_up(connection, clock), demo)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        service = Service(session, f"http://127.0.0.1:{port}", rpc_url)
        await service.log_in()
        told.secret = (await service.tool("set_webhook", url=hook.url))["secret"]
        await service.tool("create_rule", rule="any buying")
        await service.tool("follow_wallet", address=WALLET, name="buyer")
        with SyncRpc(rpc_url) as chain:
            found = ways(chain, built)
        orders = [found[turn % len(found)].buy.sent_by(WALLET, _BUY_WEI) for turn in range(count)]
        await measure(service, demo, clock, told, orders)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=TRADES)
    asked = parser.parse_args()
    prepared = world.build(world.DevnetFolders(PROJECT, PROJECT / "var"), print)
    with (
        tempfile.TemporaryDirectory() as scratch,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(main(asked.trades, prepared, Path(scratch)))
