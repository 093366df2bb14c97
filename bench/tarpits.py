"""Measures the time from an alert to an honest webhook while other webhooks answer slowly.

    PYTHONPATH=src:tests python -m bench.tarpits [--seconds 20]

An embedded PostgreSQL, one worker, real sockets on loopback by http, all in this process. One honest account
gets an alert four times a second, by one webhook that answers at once. Beside it 60 accounts with five
webhooks each always have more alerts; their webhooks answer the test at once, as if they were quick, and
alerts after 9.5 s. Then 60 other accounts have webhooks that answer after 0.9 s, which is just not slow.

Aim: under 300 webhooks that take 9.5 s the honest one's p95 stays under a second; ends with 1 where it does
not, or where an alert did not come. The figure of those that take 0.9 s is only printed. At last how long
taking jobs takes with 100,000 that wait.
"""

import argparse
import asyncio
import contextlib
import json
import os
import resource
import secrets
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import asyncpg
import uvloop

from roundtrip.channels.post import Poster
from roundtrip.channels.secrets import Seal
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.metrics import Measures
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import Draft
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.delivery.channels import WebhookParams, set_webhook
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import Notifiers
from roundtrip.store.accounts import accounts
from roundtrip.store.delivery import deliveries
from roundtrip.store.server import jobs
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.watch import alerts

from .figures import Table
from .serving import connected
from .timing import Times

ACCOUNTS, EACH = 60, 5
SLOW_S, NOT_SLOW_S = 9.5, 0.9
EVERY_S, MORE_EVERY_S = 0.25, 3.0
AIM_P95_MS = 1000.0
COMES_S = 120.0
"""So long an alert that was made in its phase may take before it counts as not come."""
WAITING = 100_000
JUST_NOT_SLOW = "300 more that take 0.9 s"
HEADS = (
    "beside it",
    "alerts",
    "median ms",
    "p95 ms",
    "worst ms",
    "median / alone",
    "p95 / alone",
    "slow answers",
)


@dataclass
class Targets:
    """Everybody's servers. ``waits_s``: by port, how long an alert is not answered. ``came_s``: when each row
    of the honest one came."""

    waits_s: dict[int, float] = field(default_factory=dict)
    came_s: dict[str, float] = field(default_factory=dict)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    answered: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            said = json.loads(await reader.readexactly(int(headers["content-length"])))
            wait_s = self.waits_s.get(writer.get_extra_info("sockname")[1])
            if wait_s is None:
                for row in said["rows"]:
                    self.came_s.setdefault(row["text"], time.perf_counter())
                self.came.set()
            elif said["kind"] != "test":
                await asyncio.sleep(wait_s)
                self.answered += 1
            body = headers.get("webhook-challenge", "")
            writer.write(f"HTTP/1.1 200 Told\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
            await writer.drain()
        writer.close()


@dataclass
class House:
    """What setting, telling and sending need of a context."""

    pool: asyncpg.Pool
    outward: Notifiers
    measures: Measures = field(default_factory=Measures)

    @property
    def ctx(self) -> Context:
        """As handlers take it."""
        return cast(Context, self)

    def now_s(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def entropy(self) -> bytes:
        """Random bytes."""
        return secrets.token_bytes(32)

    async def account(self, ports: list[int]) -> Account:
        """A new one, with a webhook at each of these."""
        wallet = Address("0x" + secrets.token_hex(20))
        async with self.pool.acquire() as connection, connection.transaction():
            found = await accounts.lock_account(connection, wallet, [f"mite-{secrets.token_hex(6)}"], _now())
        for port in ports:
            await set_webhook(self.ctx, WebhookParams(f"http://127.0.0.1:{port}/"), found.account)
        return found.account

    async def tell(self, accounts: list[Account], said: str) -> None:
        """An alert to each, in one transaction."""
        drafts = [Draft(account.id, "rule", 1, 0, said, verb="buying") for account in accounts]
        async with self.pool.acquire() as connection, connection.transaction():
            made = await alerts.put(connection, drafts, _now())
            await deliveries.enqueue(connection, made, _now())


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)


async def measured(
    house: House, targets: Targets, honest: Account, others: list[Account], name: str, seconds: float
) -> tuple[str, Times, int, int]:
    """One phase: its times, how many alerts did not come, how many slow answers there were."""
    began_s, made_s = time.perf_counter(), dict[str, float]()
    next_more_s, answered = 0.0, targets.answered
    while (now_s := time.perf_counter()) - began_s < seconds:
        if others and now_s >= next_more_s:
            await house.tell(others, "for a tarpit")
            next_more_s = now_s + MORE_EVERY_S
        said = f"{name} {len(made_s)}"
        made_s[said] = time.perf_counter()
        await house.tell([honest], said)
        await asyncio.sleep(max(0.0, EVERY_S - (time.perf_counter() - now_s)))
    slow = targets.answered - answered
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(COMES_S):
            while not made_s.keys() <= targets.came_s.keys():
                targets.came.clear()
                await targets.came.wait()
    times = [(targets.came_s[one] - at_s) * 1000 for one, at_s in made_s.items() if one in targets.came_s]
    return name, Times(times or [COMES_S * 1000]), len(made_s) - len(times), slow


async def crowd(house: House, ports: list[int]) -> list[Account]:
    """Accounts with five of the ports each."""
    return [await house.account(ports[n * EACH : (n + 1) * EACH]) for n in range(ACCOUNTS)]


async def phases(
    house: House, targets: Targets, ports: list[int], seconds: float
) -> list[tuple[str, Times, int, int]]:
    """All of them, one after another."""
    half = ACCOUNTS * EACH
    targets.waits_s = dict.fromkeys(ports[1 : half + 1], SLOW_S) | dict.fromkeys(
        ports[half + 1 :], NOT_SLOW_S
    )
    began_s = time.perf_counter()
    honest = await house.account(ports[:1])
    slow = await crowd(house, ports[1 : half + 1])
    just_not = await crowd(house, ports[half + 1 :])
    await house.tell([honest], "warm")
    print(f"set {len(ports)} webhooks in {time.perf_counter() - began_s:.0f} s", flush=True)
    found = []
    for name, others, lasts_s in (
        ("no other", [], seconds),
        ("300 that take 9.5 s, from the first on", slow, seconds),
        ("the same, known as slow", slow, seconds),
        (JUST_NOT_SLOW, just_not, seconds),
    ):
        found.append(await measured(house, targets, honest, others, name, lasts_s))
    return found


def told(found: list[tuple[str, Times, int, int]]) -> int:
    """Prints the table, and what missed its aim; 1 where anything did."""
    alone, wrong = found[0][1], 0
    rows = [
        [
            name,
            str(len(times.times_ms)),
            f"{times.median:.0f}",
            f"{times.p95:.0f}",
            f"{max(times.times_ms):.0f}",
            f"{times.median / alone.median:.1f}",
            f"{times.p95 / alone.p95:.1f}",
            str(slow),
        ]
        for name, times, _, slow in found
    ]
    print(Table("an honest webhook beside slow ones", HEADS, rows).text())
    for name, times, lost, _ in found:
        if lost:
            wrong = 1
            print(f"MISSED, {name}: {lost} alerts did not come")
        if times.p95 >= AIM_P95_MS and name != JUST_NOT_SLOW:
            wrong = 1
            print(f"MISSED, {name}: p95 over a second")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    return wrong


_FILL = """
WITH account AS (
    INSERT INTO accounts.account (wallet, designation, made_at)
    SELECT decode(lpad(to_hex(n), 40, '0'), 'hex'), 'filled-' || n, $2 FROM generate_series(1, $1 / 5) AS n
    RETURNING id
), channel AS (
    INSERT INTO accounts.channel (account_id, kind, target, shown, state, made_at, host, proven_at,
        answers_ms)
    SELECT account.id, 'telegram', '1', '', 'live', $2, 'h' || account.id || '-' || n, $2,
        5000 * (account.id % 2)
    FROM account CROSS JOIN generate_series(1, 5) AS n RETURNING id
)
INSERT INTO jobs.job (kind, key, run_at) SELECT 'deliver', id::text, $2 FROM channel
"""


async def claims(pool: asyncpg.Pool) -> None:
    """How long taking 16 jobs takes with many that wait: sorted, not sorted yet, and not due."""
    kind = KINDS["deliver"]
    await pool.execute("TRUNCATE jobs.job")
    # New connections: old plans, made for few accounts, read all of them for each channel.
    await pool.expire_connections()
    await pool.execute(_FILL, WAITING, _now(), timeout=120)
    await pool.execute("ANALYZE")
    assert kind.turns is not None
    began = time.perf_counter()
    count = 1
    async with pool.acquire() as connection:
        while await kind.turns.sort(connection, _now()):
            count += 1
    print(f"{WAITING:,} due at once are sorted in {time.perf_counter() - began:.1f} s, in {count} steps")
    await _timed_claims(pool, "all due and sorted")
    # A failed one waits for its time: it is not sorted, and blocks no other.
    await pool.execute(
        "UPDATE jobs.job SET lane = NULL, run_at = run_at + interval '1 hour' WHERE id % 10 <> 0", timeout=120
    )
    await pool.execute("VACUUM ANALYZE jobs.job", timeout=120)
    await _timed_claims(pool, "nine of ten not due")


async def _timed_claims(pool: asyncpg.Pool, name: str) -> None:
    class _Handed:
        def __init__(self) -> None:
            self.pool, self.now_s = pool, time.time

    times = []
    for _ in range(100):
        worker = Worker(cast(Context, _Handed()), {"deliver": KINDS["deliver"]}, lambda: 0.5)
        taking = worker._take_turns
        kind = KINDS["deliver"]
        assert kind.turns is not None
        began = time.perf_counter()
        async with pool.acquire() as connection:
            taken = await taking(connection, "deliver", kind, 16, [])
        times.append((time.perf_counter() - began) * 1000)
        assert len(taken) == 16
        async with pool.acquire() as connection, connection.transaction():
            for job in taken:
                await jobs.finish(connection, job)
    found = Times(times)
    print(
        f"taking 16 of {WAITING:,}, {name}: median {found.median:.1f} ms, p95 {found.p95:.1f} ms", flush=True
    )


@contextlib.asynccontextmanager
async def listening(targets: Targets) -> AsyncIterator[list[int]]:
    """A port of its own for every target."""
    async with contextlib.AsyncExitStack() as stack:
        ports = []
        for _ in range(2 * ACCOUNTS * EACH + 1):
            server = await asyncio.start_server(targets.serve, "127.0.0.1", 0)
            stack.callback(server.close)
            ports.append(server.sockets[0].getsockname()[1])
        yield ports


async def main(seconds: float, folder: Path) -> int:
    """Every phase, and the claims."""
    targets = Targets()
    async with (
        EmbeddedPostgres(folder) as server,
        connected(server.dsn, min_size=4, max_size=16, command_timeout=30) as pool,
        listening(targets) as ports,
    ):
        async with pool.acquire() as connection:
            await migrate(connection)
        loopback = frozenset(f"127.0.0.1:{port}" for port in ports)
        async with Poster(loopback) as poster:
            house = House(pool, Notifiers(poster.post, lambda: Seal(b"k" * 32), loopback=loopback))
            worker = Worker(house.ctx, {"deliver": KINDS["deliver"]}, lambda: 0.5)
            working = asyncio.create_task(worker.run())
            try:
                found = await phases(house, targets, ports, seconds)
            finally:
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)
        wrong = told(found)
        await claims(pool)
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    asked = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with (
        tempfile.TemporaryDirectory() as scratch,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        Path(scratch).chmod(0o711)
        raise SystemExit(runner.run(main(asked.seconds, Path(scratch) / "database")))
