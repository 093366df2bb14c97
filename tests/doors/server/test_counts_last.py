"""Counts of keys outlive the process that made them, however it ends. No node is needed: a wrong address
counts."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import asyncpg
import pytest

from roundtrip.domain.base.types import Address
from roundtrip.store.server.postgres import EmbeddedPostgres
from support.counting import conserved, key_of, put_account, put_credits
from support.databases import database

WAIT_S = 30
WALLET = Address("0x" + "c0" * 20)
SETTINGS = {
    "ROUNDTRIP_NETWORK": "robinhood",
    "ROUNDTRIP_RPC_URL": "http://127.0.0.1:9",
    "ROUNDTRIP_PORT": "0",
    "ROUNDTRIP_ANON_PER_MINUTE": "3",
    "ROUNDTRIP_KEY_PER_MINUTE": "6",
    "ROUNDTRIP_KEY_PER_DAY": "5",
}


@dataclass
class CountingService:
    """A service in a process of its own."""

    process: asyncio.subprocess.Process
    base_url: str

    async def ask(self, key: str | None = None) -> tuple[str, str | None]:
        """The code, and what is left of the minute."""
        headers = {} if key is None else {"x-api-key": key_of(key)}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.base_url}/v1/check/0x12", headers=headers) as response,
        ):
            body = await response.json()
            return body["error"]["code"], response.headers.get("x-ratelimit-remaining")

    async def pay(self, key: str) -> str:
        """The code of a tool that needs no node; "ok": of an answer, which alone is paid for."""
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "league", "arguments": {}},
        }
        headers = {"x-api-key": key_of(key)}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.base_url}/mcp", json=call, headers=headers) as response,
        ):
            result = (await response.json())["result"]
            return str(result["content"][0]["text"]).split(":")[0] if result["isError"] else "ok"

    async def ask_until_known(self, key: str) -> tuple[str, str | None]:
        """The same, once it is not busy: a database that takes longer than two seconds counts as away."""
        async with asyncio.timeout(WAIT_S):
            # Only asking tells.
            while (came := await self.ask(key))[0] == "busy":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return came


@contextlib.asynccontextmanager
async def served(environment: Mapping[str, str], end: signal.Signals) -> AsyncIterator[CountingService]:
    """Ended by ``end``."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "roundtrip",
        "serve",
        env={**os.environ, **SETTINGS, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WAIT_S):
            answer = (await process.stdout.readline()).decode()
        assert answer.startswith("roundtrip is at "), answer
        yield CountingService(process, answer.split()[-1])
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(end)
        async with asyncio.timeout(WAIT_S):
            await process.communicate()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
async def test_minutes_and_days_go_on_where_they_stood(database_url: str, end: signal.Signals) -> None:
    async with database(database_url, f"counts_{end.name.lower()}") as url:
        environment = {"ROUNDTRIP_DATABASE_URL": url}
        async with served(environment, end) as first:
            connection = await asyncpg.connect(url)
            await put_account(connection, WALLET, "k", "l")
            assert [await first.ask() for _ in range(2)] == [("bad_address", "2"), ("bad_address", "1")]
            assert [await first.ask("k") for _ in range(3)] == [("bad_address", left) for left in "543"]
        async with served(environment, end) as second:
            assert [await second.ask("l") for _ in range(2)] == [("bad_address", "2"), ("bad_address", "1")]
            assert await second.ask("k") == ("daily_limit", "1")
            # Callers without a key are counted in memory.
            assert [await second.ask() for _ in range(3)] == [("bad_address", left) for left in "210"]
            await connection.execute("UPDATE accounts.key SET revoked_at = now()")
            assert await second.ask("k") == ("bad_key", "0")
        assert await connection.fetchval("SELECT sum(calls) FROM accounts.day") == 5
        await connection.close()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
async def test_past_the_day_calls_cost_credits_and_no_more(database_url: str, end: signal.Signals) -> None:
    async with database(database_url, f"credits_{end.name.lower()}_{os.getpid()}") as url:
        environment = {"ROUNDTRIP_DATABASE_URL": url, "ROUNDTRIP_KEY_PER_DAY": "1"}
        async with served(environment, end) as first:
            connection = await asyncpg.connect(url)
            number = await put_account(connection, WALLET, "k")
            await put_credits(connection, number, 3)
            assert [await first.pay("k") for _ in range(3)] == ["ok"] * 3
            assert await conserved(connection, 0) == {number: (1, 0, 2)}
        async with served(environment, end) as second:
            assert [await second.pay("k") for _ in range(2)] == ["ok", "daily_limit"]
            assert await conserved(connection, 0) == {number: (0, 0, 3)}
        await connection.close()


async def test_a_killed_service_with_a_database_of_its_own_counts_on(open_folder: Path) -> None:
    """Which ends with it, and begins again with the next one."""
    environment = {"ROUNDTRIP_VAR": str(open_folder / "killed")}
    async with served(environment, signal.SIGKILL) as first:
        socket = next((open_folder / "killed").rglob(".s.PGSQL.*")).parent
        connection = await asyncpg.connect(f"postgresql:///roundtrip?host={socket}&user=roundtrip")
        await put_account(connection, WALLET, "k")
        connection.terminate()
        assert [await first.ask_until_known("k") for _ in range(2)] == [
            ("bad_address", left) for left in "54"
        ]
    async with served(environment, signal.SIGTERM) as second:
        assert await second.ask_until_known("k") == ("bad_address", "3")


async def test_while_the_database_is_away_keys_are_busy_and_others_are_counted(open_folder: Path) -> None:
    server = EmbeddedPostgres(open_folder / "away", durable=False)
    await server.start()
    try:
        async with served({"ROUNDTRIP_DATABASE_URL": server.dsn}, signal.SIGTERM) as service:
            connection = await asyncpg.connect(server.dsn)
            await put_account(connection, WALLET, "k")
            await connection.close()
            assert await service.ask_until_known("k") == ("bad_address", "5")
            assert await service.ask() == ("bad_address", "2")
            await server.stop()
            assert (await service.ask("k"))[0] == "busy"
            assert [await service.ask() for _ in range(2)] == [("bad_address", "1"), ("bad_address", "0")]
            assert (await service.ask())[0] == "rate_limited"
            await server.start()
            assert await service.ask_until_known("k") == ("bad_address", "4")
            assert (await service.ask())[0] == "rate_limited"
    finally:
        await server.stop()
