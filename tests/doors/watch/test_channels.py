"""Channels from the door to the receiver: a webhook that is set over the tool server, and what it is sent."""

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from roundtrip.app.notifiers import open_notifiers
from roundtrip.config.settings import Settings
from roundtrip.domain.accounts import keys
from roundtrip.domain.watch.alerts import Draft
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.runtime.context import Context
from roundtrip.store.delivery import deliveries
from roundtrip.store.watch import alerts
from support.clocks import Clock
from support.keys import Person, account_of_key, key_for, random_context
from support.loopback import on_loopback
from support.serving import service

KEY = base64.b64encode(b"k" * 32).decode()


@dataclass
class HookServer:
    """Somebody's server on this machine."""

    port: int = 0
    status: int = 204
    came: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/alerts"

    async def take(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.came.append((headers, await request.read()))
        return web.Response(status=self.status)

    def is_signed(self, secret: str) -> list[bool]:
        made = [hmac.new(secret.encode(), body, hashlib.sha256).hexdigest() for _, body in self.came]
        answer = [headers["x-service-sig"] for headers, _ in self.came]
        return [one == f"sha256={other}" for one, other in zip(answer, made, strict=True)]


@pytest.fixture
async def receiver() -> AsyncIterator[HookServer]:
    found = HookServer()
    app = web.Application()
    app.router.add_post("/alerts", found.take)
    async with on_loopback(app) as found.port:
        yield found


@pytest.fixture
async def shop(ctx: Context, receiver: HookServer, tmp_path: Path) -> AsyncIterator[Context]:
    settings = Settings(secret_key=KEY, var=tmp_path, webhook_loopback=(f"127.0.0.1:{receiver.port}",))
    async with open_notifiers(settings) as out:
        yield replace(random_context(ctx, Clock()), outward=out)


async def called(base_url: str, key: str, tool: str, /, **given: Any) -> tuple[bool, str, dict[str, Any]]:
    """Whether it failed, its text, its answer."""
    request = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given},
    }  # fmt: skip
    async with (
        aiohttp.ClientSession(headers={"x-api-key": key}) as session,
        session.post(f"{base_url}/mcp", json=request) as response,
    ):
        result = (await response.json())["result"]
    return result["isError"], result["content"][0]["text"], result.get("structuredContent") or {}


async def test_a_webhook_is_set_and_told_and_removed(shop: Context, receiver: HookServer) -> None:
    key = (await key_for(shop, Person()))["key"]
    async with service(shop) as url:
        failed, _, answer = await called(url, key, "set_webhook", url=receiver.url)
        assert not failed
        secret, channel = answer["secret"], answer["channel"]
        async with shop.pool.acquire() as connection, connection.transaction():
            account = await account_of_key(connection, keys.hash_of(key))
            assert account is not None
            draft = Draft(account.id, "rule", 1, 0, "it buys")
            made = await alerts.put(connection, [draft], now(shop))
            await deliveries.enqueue(connection, made, now(shop))
        await work(shop)
        assert receiver.is_signed(secret) == [True, True]
        test, rows = receiver.came
        assert test[0]["webhook-id"] != rows[0]["webhook-id"]
        _, _, listed = await called(url, key, "list_channels")
        assert [(one["id"], one["state"]) for one in listed["channels"]] == [(channel["id"], "live")]
        assert secret not in str(listed)
        assert (await called(url, key, "remove_channel", id=channel["id"]))[2]["removed"] is True
        assert (await called(url, key, "list_channels"))[2]["channels"] == []


async def test_what_does_not_answer_well_is_not_saved(shop: Context, receiver: HookServer) -> None:
    key = (await key_for(shop, Person()))["key"]
    receiver.status = 302
    async with service(shop) as url:
        failed, text, _ = await called(url, key, "set_webhook", url=receiver.url)
        assert (failed, text.split(":")[0]) == (True, "bad_input")
        assert "answered 302" in text
        other = receiver.url.replace(str(receiver.port), str(receiver.port + 1))
        failed, text, _ = await called(url, key, "set_webhook", url=other)
        assert (failed, text.split(":")[0]) == (True, "bad_input")
        assert len(receiver.came) == 1
        assert (await called(url, key, "list_channels"))[2]["channels"] == []


async def test_too_many_tries_say_when_to_come_again(shop: Context, receiver: HookServer) -> None:
    key = (await key_for(shop, Person()))["key"]
    await shop.pool.execute("TRUNCATE accounts.channel_attempt")
    async with service(shop) as url:
        codes = [
            (await called(url, key, "set_webhook", url=f"{receiver.url}?{n}"))[1].split(":")[0]
            for n in range(6)
        ]
    assert codes[-1] == "rate_limited"
    assert "rate_limited" not in codes[:-1]
    assert len(receiver.came) == 5


def now(shop: Context) -> datetime:
    return datetime.fromtimestamp(shop.now_s(), UTC)


async def work(shop: Context) -> None:
    """One round of a worker that only delivers."""
    for task in await Worker(shop, {"deliver": KINDS["deliver"]}, lambda: 0.5).take():
        await task
