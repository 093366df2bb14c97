"""Webhooks that answer slowly, on real sockets: an honest one is told in time all the same."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from roundtrip.channels.post import Poster
from roundtrip.channels.secrets import Seal
from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.watch.alerts import Draft
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import Notifiers
from roundtrip.store.delivery import deliveries
from roundtrip.store.watch import alerts
from support.clocks import Clock
from support.keys import Person, account_of_key, key_for, random_context
from support.paying import answer_of

ACCOUNTS, EACH = 20, 5
KEY = b"k" * 32
HANGS_S, IN_TIME_S = 60.0, 15.0
"""A tarpit answers no sooner than this; an honest target is told within that, on a busy machine."""


@dataclass
class Targets:
    """Servers on this machine. ``slow``: those that answer a test at once, and alerts not before the end."""

    ports: list[int] = field(default_factory=list)
    slow: set[int] = field(default_factory=set)
    held: int = 0
    crowded: asyncio.Event = field(default_factory=asyncio.Event)
    came: dict[int, asyncio.Event] = field(default_factory=dict)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            answer = json.loads(await reader.readexactly(int(headers["content-length"])))
            port = writer.get_extra_info("sockname")[1]
            if port in self.slow and answer["kind"] != "test":
                self.held += 1
                if self.held == ACCOUNTS:
                    self.crowded.set()
                await self.over.wait()
            body = headers.get("webhook-challenge", "")
            writer.write(f"HTTP/1.1 200 Told\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
            await writer.drain()
            if answer["kind"] != "test":
                self.came.setdefault(port, asyncio.Event()).set()
        writer.close()


@pytest.fixture
async def targets() -> AsyncIterator[Targets]:
    made = Targets()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(ACCOUNTS * EACH + 1):
            server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
            stack.callback(server.close)
            made.ports.append(server.sockets[0].getsockname()[1])
        made.slow = set(made.ports[:-1])
        yield made
        made.over.set()


@pytest.fixture
async def shop(ctx: Context, targets: Targets) -> AsyncIterator[Context]:
    loopback = frozenset(f"127.0.0.1:{port}" for port in targets.ports)
    async with Poster(loopback, timeout_s=HANGS_S) as poster:
        out = Notifiers(poster.post, lambda: Seal(KEY), loopback=loopback)
        yield replace(random_context(ctx, Clock()), outward=out)


async def account_with_webhooks(shop: Context, ports: list[int]) -> Account:
    """A new one, with a webhook at each of these."""
    key = (await key_for(shop, Person()))["key"]
    async with shop.pool.acquire() as connection:
        account = await account_of_key(connection, keys.hash_of(key))
    assert account is not None
    for port in ports:
        await answer_of(shop, "set_webhook", account, url=f"http://127.0.0.1:{port}/alerts")
    return account


async def alert(shop: Context, account: Account) -> None:
    now = datetime.fromtimestamp(shop.now_s(), UTC)
    async with shop.pool.acquire() as connection, connection.transaction():
        made = await alerts.put(connection, [Draft(account.id, "rule", 1, 0, "it buys")], now)
        await deliveries.enqueue(connection, made, now)


async def test_a_hundred_tarpits_of_twenty_accounts_do_not_hold_up_an_honest_target(
    shop: Context, targets: Targets
) -> None:
    *slow, honest = targets.ports
    tarpits = [await account_with_webhooks(shop, slow[n * EACH : (n + 1) * EACH]) for n in range(ACCOUNTS)]
    account = await account_with_webhooks(shop, [honest])
    for one in tarpits:
        await alert(shop, one)
    worker = Worker(shop, {"deliver": KINDS["deliver"]}, lambda: 0.5)
    working = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(IN_TIME_S):
            await targets.crowded.wait()
            await alert(shop, account)
            await targets.came.setdefault(honest, asyncio.Event()).wait()
        assert targets.held <= ACCOUNTS, "no account has two places at once"
    finally:
        targets.over.set()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
