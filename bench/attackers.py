"""Measures honest checks while attackers make the node work: can one caller block the others?

    PYTHONPATH=src:tests python -m bench.attackers [--seconds 40]

``roundtrip demo --actors`` with ten calls a minute without a key, an embedded PostgreSQL and a load of this
process. Honest callers, each from a separate address, check one token after another; no two share an answer.
Attackers send ``POST /v1/simulate`` with six calls to a contract that hashes until its gas is gone: from one
address without a key, with one account, and with nine; then nine prepare buys of a token that loops. One
account checks tokens that burn gas, with eight and with sixteen in flight; a crowd of 128 connections, each
request of another address, asks for one cached check. X-Forwarded-For gives the addresses. Before all of it,
others have made ordinary checks and simulations.

Aims: no honest check fails, their p95 stays within three times that of before, sync and alerts within two
blocks, and every call of an attacker counts. Ends with 1 where a check failed, an index fell behind or a call
was free; a p95 that misses its aim is only printed.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import uvloop
from eth_account import Account
from eth_account.messages import encode_defunct

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import free_port

from .figures import Table
from .indexers import sync_environment, until
from .timing import Times
from .watched import Watched, started

PROJECT = Path(__file__).resolve().parents[1]
BURNER = "0x" + "b0" * 20
SIX_BURNERS: dict[str, Any] = {
    "from": "0x" + "a1" * 20,
    "calls": [{"to": BURNER, "data": "0x"}] * 6,
    "fund": True,
}
BURNER_CODE = "0x5b612000600020505a614e201060005700"
"""Hashes 8 KiB again and again while more than 20,000 gas is left, and succeeds: the most seconds for gas."""
ANON_PER_MINUTE, KEY_PER_MINUTE = 10, 60
HONEST, PAUSE_S = 3, 0.3
MAX_BEHIND, AIM_P95 = 2, 3.0
CROWD = 128
QUIET: dict[str, Any] = {
    "from": "0x" + "a1" * 20,
    "calls": [{"to": "0x" + "a2" * 20, "data": "0x", "value": "1"}],
    "fund": True,
}
_STARTED = "Press Ctrl-C to stop."


@dataclass
class Phase:
    """The result of one load. ``free``: attackers' answers beyond what their limits allow."""

    name: str
    times_ms: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    attacks: Counter[str] = field(default_factory=Counter)
    behind: list[int] = field(default_factory=list)
    alerts_behind: list[int] = field(default_factory=list)
    allowed: int = 0

    def failed(self) -> int:
        """Honest checks without a verdict of the token."""
        return sum(count for outcome, count in self.outcomes.items() if outcome in _FAILURES)

    def free(self) -> int:
        """Attackers' calls that were answered beyond their limits."""
        answered = sum(self.attacks[code] for code in ("200", "404", "422", "502"))
        return max(0, answered - self.allowed)

    def row(self, base: Times | None) -> list[str]:
        """As the table has it."""
        times = Times(self.times_ms)
        ratio = "-" if base is None else f"{times.p95 / base.p95:.2f}"
        attacks = ", ".join(f"{code} {count}" for code, count in sorted(self.attacks.items())) or "-"
        return [
            self.name,
            str(len(self.times_ms)),
            str(self.failed()),
            f"{times.median:.1f}",
            f"{times.p95:.1f}",
            ratio,
            str(max(self.behind, default=0)),
            str(max(self.alerts_behind, default=0)),
            attacks,
            str(self.free()),
        ]


_FAILURES = frozenset({"unproven", "429", "500", "502", "503", "lost"})
HEADS = (
    "attackers", "honest checks", "failed", "median ms", "p95 ms", "p95 / before", "sync behind",
    "alerts behind", "attackers' answers", "free",
)  # fmt: skip


class Door:
    """The service, from addresses of one's own."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str) -> None:
        self._session, self._base_url = session, base_url

    async def post(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        """Status and answer."""
        async with self._session.post(self._base_url + path, json=body, headers=headers) as response:
            return response.status, await response.json()

    async def check(self, token: str, address: str) -> tuple[str, str]:
        """What became of it, and whether it was shared."""
        headers = {"x-forwarded-for": address}
        async with self._session.get(f"{self._base_url}/v1/check/{token}", headers=headers) as response:
            said = await response.json()
            outcome = said["verdict"]["code"] if response.status == 200 else str(response.status)
            return outcome, response.headers.get("x-cache", "")

    async def get(self, path: str, headers: dict[str, str]) -> int:
        """The status."""
        async with self._session.get(self._base_url + path, headers=headers) as response:
            await response.read()
            return response.status

    async def health(self) -> dict[str, Any]:
        """As anybody sees it."""
        async with self._session.get(f"{self._base_url}/v1/health") as response:
            found: dict[str, Any] = await response.json()
            return found

    async def key(self, address: str) -> str:
        """A new account's."""
        wallet = Account.create()
        headers = {"x-forwarded-for": address}
        _, asked = await self.post("/v1/keys/nonce", {"address": wallet.address}, headers)
        signed = wallet.sign_message(encode_defunct(text=asked["message"]))
        given = {"address": wallet.address, "signature": "0x" + bytes(signed.signature).hex()}
        status, made = await self.post("/v1/keys", given, headers)
        assert status == 200, made
        return str(made["key"])


@dataclass(frozen=True)
class Attacker:
    """One identity, with so many requests in flight. ``burning``: tokens that it checks, each time for
    another amount, instead of sending the body. ``cached``: a check that it asks for each time from another
    address."""

    headers: dict[str, str]
    in_flight: int
    per_minute: int
    path: str = "/v1/simulate"
    body: dict[str, Any] = field(default_factory=lambda: SIX_BURNERS)
    burning: Sequence[str] = ()
    cached: str = ""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def send(self, door: Door) -> int:
        """Sends one request; its status."""
        number = next(self.numbers)
        if self.cached:
            address = f"100.{64 + number // 250 % 60}.{number % 250}.9"
            return await door.get(f"/v1/check/{self.cached}", {"x-forwarded-for": address})
        if self.burning:
            token = self.burning[number % len(self.burning)]
            return await door.get(f"/v1/check/{token}?amount=0.0{1 + number}", self.headers)
        return (await door.post(self.path, self.body, self.headers))[0]


async def attack(door: Door, one: Attacker, phase: Phase, until_s: float) -> None:
    """One of an attacker's requests after another. A 429 is waited for a little: more of them are cheap."""
    while time.monotonic() < until_s:
        try:
            status = await one.send(door)
        except (aiohttp.ClientError, TimeoutError):
            phase.attacks["lost"] += 1
            continue
        phase.attacks[str(status)] += 1
        if status == 429:
            await asyncio.sleep(0.2)


async def honest(door: Door, tokens: Sequence[str], phase: Phase, until_s: float) -> None:
    """Checks, each from an address that asks seldom, and none of them shared."""
    numbers, lock = itertools.count(), asyncio.Lock()

    async def one() -> None:
        while time.monotonic() < until_s:
            async with lock:
                number = next(numbers)
            address = f"198.{18 + number // 250 % 200}.{number % 250}.7"  # each in a network of its own
            began = time.perf_counter()
            try:
                outcome, cache = await door.check(tokens[number % len(tokens)], address)
            except (aiohttp.ClientError, TimeoutError):
                outcome, cache = "lost", "miss"
            if cache != "hit":
                phase.times_ms.append((time.perf_counter() - began) * 1000)
                phase.outcomes[outcome] += 1
            await asyncio.sleep(PAUSE_S)

    await asyncio.gather(*(one() for _ in range(HONEST)))


async def watch(door: Door, connection: Connection, phase: Phase, until_s: float) -> None:
    """How far sync and alerts are behind the chain, as health and the database tell."""
    while time.monotonic() < until_s:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            phase.behind.append(int((await door.health())["blocksBehind"]))
        behind = await connection.fetchval(_ALERTS_BEHIND)
        phase.alerts_behind.append(int(behind or 0))
        await asyncio.sleep(0.5)


_ALERTS_BEHIND = """
SELECT (SELECT max(number) FROM facts.block) - (SELECT max(number) FROM accounts.alert_cursor)
"""


async def measured(
    door: Door,
    connection: Connection,
    tokens: Sequence[str],
    name: str,
    attackers: Sequence[Attacker],
    seconds: float,
) -> Phase:
    """One load for so many seconds."""
    phase = Phase(name)
    began_s = time.monotonic()
    until_s = began_s + seconds
    attacks = (attack(door, one, phase, until_s) for one in attackers for _ in range(one.in_flight))
    await asyncio.gather(
        honest(door, tokens, phase, until_s), watch(door, connection, phase, until_s), *attacks
    )
    minutes = 1 + int((time.monotonic() - began_s) // 60)
    phase.allowed = sum(one.per_minute for one in attackers) * minutes
    return phase


@contextlib.asynccontextmanager
async def service(built: world.Built, folder: Path) -> AsyncIterator[tuple[Watched, str, str, str]]:
    """The demo with everything of its own; its base url, its node's and its database's."""
    for kept in ("devnet", "artifacts"):
        (folder / kept).symlink_to(PROJECT / "var" / kept)
    port, rpc_port = free_port(), free_port()
    rpc_url = f"http://127.0.0.1:{rpc_port}"
    async with EmbeddedPostgres(folder / "database") as server:
        environment = sync_environment(rpc_url, server.dsn, folder) | {
            "ROUNDTRIP_PORT": str(port),
            "ROUNDTRIP_RPC_PORT": str(rpc_port),
            "ROUNDTRIP_TRUSTED_PROXIES": '["127.0.0.1/32"]',
            "ROUNDTRIP_ANON_PER_MINUTE": str(ANON_PER_MINUTE),
        }
        command = [sys.executable, "-m", "roundtrip", "demo", "--actors", "--genesis", str(world.GENESIS_S)]
        with started(command, environment, folder / "log", PROJECT) as demo:

            async def up() -> bool:
                return _STARTED in demo.log.read_text()

            await until(up, demo)
            yield demo, f"http://127.0.0.1:{port}", rpc_url, server.dsn


async def main(seconds: float, built: world.Built, folder: Path) -> int:
    """Every load, and what missed its aim."""
    async with contextlib.AsyncExitStack() as stack:
        demo, base_url, rpc_url, dsn = await stack.enter_async_context(service(built, folder))
        connection = await asyncpg.connect(dsn)
        stack.push_async_callback(connection.close)
        timeout = aiohttp.ClientTimeout(total=60)
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, timeout=timeout))
        async with session.post(
            rpc_url,
            json={"jsonrpc": "2.0", "id": 1, "method": "anvil_setCode", "params": [BURNER, BURNER_CODE]},
        ) as response:
            assert "error" not in await response.json()
        door = Door(session, base_url)
        # A caller who asks for an attacked token waits with the attackers.
        tokens = sorted(address for key, address in built.tokens.items() if not key.startswith("loops"))
        keys = [await door.key(f"203.0.113.{number + 1}") for number in range(9)]
        accounts = [
            {"x-api-key": key, "x-forwarded-for": f"203.0.{number}.9"} for number, key in enumerate(keys)
        ]
        address = {"x-forwarded-for": "192.0.2.7"}
        quiet = {"x-api-key": await door.key("203.0.113.77"), "x-forwarded-for": "203.0.113.77"}
        for _ in range(8):
            await door.post("/v1/simulate", QUIET, quiet)
        await measured(door, connection, tokens, "warm", (), 20)
        phases = [await measured(door, connection, tokens, "no attacker", (), seconds)]
        looping = {"token": built.tokens["loops_on_transfer"], "from": "0x" + "a2" * 20, "amount": "0.1"}
        burning = [address for key, address in built.tokens.items() if key.startswith("loops")]
        prepares = [
            Attacker(one, 7, KEY_PER_MINUTE, "/v1/prepare/buy", looping | {"fund": True}) for one in accounts
        ]
        for name, attackers in (
            ("an address, 5 in flight", [Attacker(address, 5, ANON_PER_MINUTE)]),
            ("an account, 16 in flight", [Attacker(accounts[0], 16, KEY_PER_MINUTE)]),
            ("nine accounts, 64 in flight", [Attacker(one, 7, KEY_PER_MINUTE) for one in accounts]),
            ("the same, preparing buys of a token that loops", prepares),
            *(
                (
                    f"an account, {count} checks of burning tokens in flight",
                    [Attacker(accounts[count // 8], count, KEY_PER_MINUTE, burning=burning)],
                )
                for count in (8, 16)
            ),
            (f"a crowd of {CROWD} on one cached check", [Attacker({}, CROWD, 10**9, cached=tokens[0])]),
        ):
            phases.append(await measured(door, connection, tokens, name, attackers, seconds))
            demo.check()
    base = Times(phases[0].times_ms)
    rows = [phases[0].row(None), *(phase.row(base) for phase in phases[1:])]
    print(Table("honest checks under attack", HEADS, rows).text())
    for phase in phases:
        print(phase.name, dict(phase.outcomes))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return told_misses(phases, base)


def told_misses(phases: Sequence[Phase], base: Times) -> int:
    """Prints what missed its aim; 1 where it was more than a time."""
    wrong = 0
    for phase in phases:
        behind = max((*phase.behind, *phase.alerts_behind), default=0)
        for what, missed in (
            (f"{phase.failed()} honest checks failed", phase.failed() > 0),
            (f"sync or alerts {behind} blocks behind", behind > MAX_BEHIND),
            (f"{phase.free()} attacks were free", phase.free() > 0),
        ):
            if missed:
                wrong = 1
                print(f"MISSED, {phase.name}: {what}")
        if Times(phase.times_ms).p95 > AIM_P95 * base.p95:
            print(f"missed, {phase.name}: p95 over {AIM_P95} times that of before")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=40.0)
    asked = parser.parse_args()
    prepared = world.build(world.DevnetFolders(PROJECT, PROJECT / "var"), print)
    with (
        tempfile.TemporaryDirectory() as scratch,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        Path(scratch).chmod(0o711)
        raise SystemExit(runner.run(main(asked.seconds, prepared, Path(scratch))))
