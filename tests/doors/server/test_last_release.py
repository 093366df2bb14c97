"""A rolling upgrade: the last release's code runs beside this one's, on one database and one store.
``docs/operations.md`` says what a migration may do meanwhile."""

import asyncio
import contextlib
import io
import shutil
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest

from roundtrip.api.admission.call_counter import CallCounter, DatabaseCalls
from roundtrip.api.admission.gate import CallRefused, Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.request.callers import CallerRequest
from roundtrip.devnet import world
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.server.migrate import migrations
from roundtrip.store.server.rows import Connection
from support.cases import GOOD
from support.counting import key_of, put_account
from support.databases import connected, database
from support.doors import over_bare_mcp
from support.ground import Ground
from support.serving import serve_apart

LAST_RELEASE = "7565782530be8b3f1b4dbb21e80bcb1e517c3291"
"""The commit of the last release. Whoever makes a release sets it to its commit (CONTRIBUTING.md)."""
SCHEMA_THEN = 35
"""The last migration that it has."""
SCHEMA_NOW = max(number for number, _ in migrations())
pytestmark = pytest.mark.timeout(300)
PROJECT = Path(__file__).resolve().parents[3]
WAIT_S = 60
WALLET, OTHER = Address("0x" + "c0" * 20), "0x" + "1" * 40
PER_DAY = 1_100
CLIENTS = 4
BY_NAME = {operation.name: operation for operation in OPERATIONS}


@pytest.fixture(scope="module")
def last_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its packages, out of this repository's history."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed: the last release's code cannot be read")
    command = [git, "-C", str(PROJECT), "archive", "--format=tar", LAST_RELEASE, "src"]
    archived = subprocess.run(command, capture_output=True, check=False)
    if archived.returncode:
        pytest.skip(f"this checkout has no history with the last release, {LAST_RELEASE[:8]}")
    folder = tmp_path_factory.mktemp("last_release")
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


NOW = PROJECT / "src"


def serving(packages: Path, environment: Mapping[str, str], *flags: str) -> AbstractAsyncContextManager[str]:
    """``roundtrip serve`` of the code in ``packages``; its url."""
    return serve_apart({**environment, "PYTHONPATH": str(packages), "ROUNDTRIP_PORT": "0"}, *flags)


async def schema_of(connection: Connection) -> int:
    """The last migration that was applied."""
    return int(await connection.fetchval("SELECT max(number) FROM public.migrations"))


# --- one schema -------------------------------------------------------------------------------------


@pytest.fixture
async def place(
    database_url: str, valkey_url: str, rpc: SyncRpc, places: world.DevnetFolders, built: world.Built,
    tmp_path: Path,
) -> AsyncIterator[dict[str, str]]:  # fmt: skip
    """What all processes are told: a chain, an empty database, a store."""
    world.write_description(world.DevnetFolders(places.project, tmp_path), built, rpc.url)
    async with database(database_url, "last_release") as url:
        yield {
            "ROUNDTRIP_DATABASE_URL": url,
            "ROUNDTRIP_REDIS_URL": valkey_url,
            "ROUNDTRIP_RPC_URL": rpc.url,
            "ROUNDTRIP_VAR": str(tmp_path),
            "ROUNDTRIP_ANON_PER_MINUTE": "100000",
            "ROUNDTRIP_KEY_PER_MINUTE": "100000",
            "ROUNDTRIP_KEY_PER_DAY": "100000",
        }


async def ask(base_url: str, name: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer of a tool to whoever has a key."""
    came = await over_bare_mcp(base_url, BY_NAME[name], arguments or {}, key_of("k"))
    assert came.code is None, (name, came.code)
    assert came.answer is not None
    return came.answer


async def ask_all(base_url: str, built: world.Built) -> dict[str, str | None]:
    """The code of each tool that answers whoever has a key, asked one by one; None: it answered."""
    asked = {
        name: next(iter(cases.values()))(built) if cases else {}
        for name, cases in GOOD.items()
        if GOOD[name] or not BY_NAME[name].params.__struct_fields__
    }
    return {name: await settled_code(base_url, name, given) for name, given in asked.items()}


async def settled_code(base_url: str, name: str, given: dict[str, Any]) -> str | None:
    """The code, with a few more tries where it is that the processor has other things to do."""
    tries = 20
    while (came := await over_bare_mcp(base_url, BY_NAME[name], given, key_of("k"))).code == "busy" and tries:
        tries -= 1
        await asyncio.sleep(0.1)
    return came.code


async def until_followed(base_url: str, block: int) -> None:
    """Its index has the block."""
    async with asyncio.timeout(WAIT_S), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{base_url}/v1/health") as response:
                told = await response.json()
            if told["ok"] and told["head"] >= block and told["blocksBehind"] == 0:
                return
            # Only asking tells.
            await asyncio.sleep(0.05)


async def test_one_schema_serves_both_releases_and_each_reads_what_the_other_writes(
    place: dict[str, str], ctx: Context, rpc: SyncRpc, built: world.Built, last_release: Path
) -> None:
    url, token = place["ROUNDTRIP_DATABASE_URL"], {"address": built.tokens["plain"]}
    async with connected(url) as connection:
        async with serving(last_release, place, "--all") as old:
            assert await schema_of(connection) == SCHEMA_THEN
            await put_account(connection, WALLET, "k")
            await until_followed(old, int(rpc.call("eth_blockNumber"), 16))
            # This release waits for no other to end: it brings the schema up to date, and serves.
            async with serving(NOW, place) as new:
                assert await schema_of(connection) == SCHEMA_NOW
                for base_url in (old, new):
                    came = await ask_all(base_url, built)
                    assert came == dict.fromkeys(came)
                await assert_alike(old, new, built)
                rule = await ask(old, "create_rule", {"rule": "any buying over 1 eth"})
                await ask(new, "follow_wallet", {"address": OTHER})
                shown = [await ask(base_url, "list_rules") for base_url in (old, new)]
                assert [(len(one["rules"]), len(one["follows"])) for one in shown] == [(1, 1)] * 2
                await ask(new, "delete_rule", {"id": rule["id"]})
                assert (await ask(old, "list_rules"))["rules"] == []
        # What the old sync wrote the new one continues, and an old process reads on.
        async with serving(NOW, place, "--all") as new, serving(last_release, place) as old:
            launched = Ground(ctx, rpc, built, url).launch(1)
            rpc.call("evm_mine")
            block = int(rpc.call("eth_blockNumber"), 16)
            for base_url in (new, old):
                await until_followed(base_url, block)
                found = await ask(base_url, "look_up", {"query": launched.token})
                assert launched.token in str(found)
                await ask(base_url, "check_token", token)
            await assert_alike(old, new, built)
            # Nobody has met an error of the service's own.
            came = await ask_all(old, built)
            assert came == dict.fromkeys(came)


async def assert_alike(old: str, new: str, built: world.Built) -> None:
    """From one index both say the same, as far as the old one knows the words."""
    wallet = GOOD["wallet_history"]["a sniper"](built)
    then, now = await ask(old, "wallet_history", wallet), await ask(new, "wallet_history", wallet)
    assert then == {name: now[name] for name in then}
    assert then["firstSeen"]


# --- one day, one minute ----------------------------------------------------------------------------


@dataclass
class Asking:
    """Calls of one key, and what came of them. No node is needed: a wrong address counts."""

    session: aiohttp.ClientSession
    codes: Counter[str]

    async def ask(self, base_url: str, key: str | None = None) -> str:
        headers = {} if key is None else {"x-api-key": key_of(key)}
        async with self.session.get(f"{base_url}/v1/check/0x12", headers=headers) as response:
            code = str((await response.json())["error"]["code"])
        self.codes[code] += 1
        return code

    async def use_up(self, base_url: str) -> None:
        """Calls until the day is over, as several clients do."""

        async def client() -> None:
            while await self.ask(base_url, "k") != "daily_limit":
                pass

        await asyncio.gather(*(client() for _ in range(CLIENTS)))


@contextlib.asynccontextmanager
async def holding_gate(url: str) -> AsyncIterator[Gate]:
    """This release's gate in a process whose clock stands: what it leased it keeps."""
    free = CallAllowance(10**6, PER_DAY)
    async with asyncpg.create_pool(url, min_size=0, max_size=1) as pool:
        counter = CallCounter(DatabaseCalls(pool), lambda: time.time_ns() // 1_000_000, clock=lambda: 7.0)
        gate = Gate(MinuteLimits(counter.now_ms), Allowances(CallAllowance(1), free, free), counter)
        async with gate.open():
            yield gate


async def admit(gate: Gate) -> str:
    try:
        await gate.admit(CallerRequest("address:x", key_of("k"), is_local=True), "day", needs_key=True)
    except CallRefused as refused:
        return refused.error.code
    return "in"


async def test_both_releases_together_give_what_a_day_and_a_minute_have(
    database_url: str, valkey_url: str, tmp_path: Path, last_release: Path
) -> None:
    """The old one knows no leases: it compares a day's calls with the limit."""
    async with database(database_url, "last_days") as url, aiohttp.ClientSession() as session:
        told = {
            "ROUNDTRIP_NETWORK": "robinhood",
            "ROUNDTRIP_RPC_URL": "http://127.0.0.1:9",
            "ROUNDTRIP_DATABASE_URL": url,
            "ROUNDTRIP_REDIS_URL": valkey_url,
            "ROUNDTRIP_VAR": str(tmp_path),
            "ROUNDTRIP_ANON_PER_MINUTE": "10",
            "ROUNDTRIP_KEY_PER_MINUTE": "1000000",
            "ROUNDTRIP_KEY_PER_DAY": str(PER_DAY),
        }
        asking = Asking(session, Counter())
        async with (
            serving(last_release, told) as old,
            serving(NOW, told) as new,
            connected(url) as connection,
            holding_gate(url) as gate,
        ):
            came = await asyncio.gather(*(asking.ask(base_url) for base_url in (old, new) for _ in range(20)))
            assert Counter(came) == {"bad_address": 10, "rate_limited": 30}
            asking.codes.clear()
            await put_account(connection, WALLET, "k")
            inside = 0
            async with asyncio.timeout(WAIT_S):
                while not await connection.fetchval("SELECT sum(leased) FROM accounts.day"):
                    assert await admit(gate) == "in"
                    inside += 1
                await asyncio.gather(asking.use_up(old), asking.use_up(new))
                while await admit(gate) == "in":
                    inside += 1
            assert asking.codes.keys() == {"bad_address", "daily_limit"}
            assert inside + asking.codes["bad_address"] <= PER_DAY
        # All leases were returned when their processes ended: nothing is lost of the day either.
        async with serving(last_release, told) as old, connected(url) as connection:
            async with asyncio.timeout(WAIT_S):
                await asking.use_up(old)
            assert inside + asking.codes["bad_address"] == PER_DAY
            rows = await connection.fetch("SELECT calls, leased FROM accounts.day")
            assert [tuple(row) for row in rows] == [(PER_DAY, 0)]
