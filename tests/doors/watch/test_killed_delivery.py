"""``roundtrip work``, killed while somebody has its message and has not answered; and a bot that is
started."""

import asyncio
import base64
import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from roundtrip.app.notifiers import open_notifiers
from roundtrip.config.settings import Settings
from roundtrip.domain.watch.alerts import Draft
from roundtrip.services.runtime.context import Context
from roundtrip.store.delivery import deliveries
from roundtrip.store.server import connections
from roundtrip.store.watch import alerts
from roundtrip_development.devnet.world import Built, describe
from support.paying import account_of, answer_of, some_address
from support.receiver import Receiver, answer, receiver, then_silent
from support.tables import own_database
from support.telegram import TelegramApi, telegram_api

KEY = base64.b64encode(b"k" * 32).decode()
WAIT_S = 60
_LEASE_IS_OVER = "UPDATE jobs.job SET claimed_until = now() WHERE kind = 'deliver'"


@dataclass
class KilledShop:
    """A service's context, what its processes are begun with, and somebody's server."""

    ctx: Context
    environment: dict[str, str]
    receiver: Receiver
    telegram: TelegramApi

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "roundtrip", "work"),
            env=self.environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@pytest.fixture
async def shop(
    ctx: Context, chain_url: str, built: Built, database_url: str, tmp_path: Path
) -> AsyncIterator[KilledShop]:
    (tmp_path / "devnet.json").write_text(json.dumps(describe(built, chain_url)))
    async with (
        receiver() as somebody,
        telegram_api() as telegram,
        own_database(database_url, "killed") as url,
        connections.create_pool(url, min_size=1, max_size=4) as pool,
    ):
        targets = (somebody.at, telegram.at)
        settings = Settings(
            secret_key=KEY, webhook_loopback=targets, telegram_token=telegram.token, telegram_url=telegram.url
        )
        ours = {
            "ROUNDTRIP_VAR": str(tmp_path),
            "ROUNDTRIP_DATABASE_URL": url,
            "ROUNDTRIP_SECRET_KEY": KEY,
            "ROUNDTRIP_WEBHOOK_LOOPBACK": json.dumps(targets),
            "ROUNDTRIP_TELEGRAM_TOKEN": telegram.token,
            "ROUNDTRIP_TELEGRAM_URL": telegram.url,
        }
        async with open_notifiers(settings) as out:
            found = replace(
                ctx, pool=pool, outward=out, now_s=time.time, entropy=lambda: secrets.token_bytes(32)
            )
            yield KilledShop(found, {**os.environ, **ours}, somebody, telegram)


async def test_what_a_killed_process_was_sending_is_sent_again_as_the_same(shop: KilledShop) -> None:
    account, somebody = await account_of(shop.ctx, some_address()), shop.receiver
    await answer_of(shop.ctx, "set_webhook", account, url=somebody.url)
    somebody.behave = then_silent(b"")
    now = datetime.fromtimestamp(shop.ctx.now_s(), UTC)
    async with shop.ctx.pool.acquire() as connection, connection.transaction():
        made = await alerts.put(connection, [Draft(account.id, "rule", 1, 0, "it buys")], now)
        await deliveries.enqueue(connection, made, now)
    async with shop.working() as process:
        await somebody.until(lambda: len(somebody.got) == 2)
        process.kill()
        await process.wait()
    await somebody.left()
    assert await states(shop) == [("waiting", 0)]
    somebody.behave = answer(204)
    await shop.ctx.pool.execute(_LEASE_IS_OVER)
    async with shop.working(), asyncio.timeout(WAIT_S):
        await somebody.until(lambda: len(somebody.got) == 3)
        while await states(shop) != [("delivered", 1)]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    _, killed, again = somebody.got
    assert killed.headers["webhook-id"] == again.headers["webhook-id"]
    assert json.loads(killed.body)["rows"] == json.loads(again.body)["rows"]
    assert len(somebody.got) == 3


async def test_a_chat_that_starts_the_bot_is_told_from_then_on(shop: KilledShop) -> None:
    """All of it over HTTP, to what stands in for Telegram."""
    account, bot = await account_of(shop.ctx, some_address()), shop.telegram
    link = (await answer_of(shop.ctx, "list_channels", account))["telegram"]["link"]
    async with shop.working(), asyncio.timeout(WAIT_S):
        await bot.polled()
        await bot.says(77, f"/start {link.partition('?start=')[2]}")
        while not (await answer_of(shop.ctx, "list_channels", account))["channels"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        now = datetime.now(UTC)
        async with shop.ctx.pool.acquire() as connection, connection.transaction():
            made = await alerts.put(connection, [Draft(account.id, "rule", 1, 0, "it buys")], now)
            await deliveries.enqueue(connection, made, now)
        while len(bot.taken) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    linked, reply = bot.taken
    assert (linked["chat_id"], reply["chat_id"]) == (77, 77)
    assert "it buys" in reply["text"]


async def states(shop: KilledShop) -> list[tuple[str, int]]:
    rows = await shop.ctx.pool.fetch("SELECT state, tries FROM accounts.delivery ORDER BY id")
    return [(row["state"], row["tries"]) for row in rows]
