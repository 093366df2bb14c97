"""What of bad days takes seconds; the whole service through all of them is ``make long NAME=bad-days``."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest

from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip.store.server.migrate import migrate
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from sim import arena
from sim.bad_faults import DAY_S, FAULTS, HOUR_S, NO_LOG, NO_TABLES
from sim.bad_service import Disk, fill
from support.clocks import Clock
from support.databases import connected
from support.fixtures import PROJECT, context_for
from support.keys import Person, key_for, random_context
from support.serving import service

WAIT_S = 30.0
SECTION = (PROJECT / "docs/load.md").read_text().partition("\n## Single faults\n")[2].partition("\n## ")[0]
ROW = re.compile(r"^\| ([a-z][^|]*) \|(.*)\|$", re.MULTILINE)


def test_every_fault_is_a_line_of_the_documentation_and_what_tests_see_of_one_is_there() -> None:
    rows = {name: cells.split("|") for name, cells in ROW.findall(SECTION) if name != "fault"}
    assert list(rows) == list(FAULTS)
    for name, cells in rows.items():
        assert len(cells) == 4, name
        tests = cells[-1].split()
        assert all((PROJECT / one.strip("`")).is_file() for one in tests), (name, tests)
        assert all(one.startswith("`tests/") for one in tests), (name, tests)


# --- a disk that is full ---------------------------------------------------------------------------


@pytest.fixture
async def disk(open_folder: Path) -> AsyncIterator[Disk]:
    found = Disk(open_folder / "disk")
    await found.start()
    try:
        async with found.keep_running():
            yield found
    finally:
        await found.stop()


async def _is_back(disk: Disk) -> bool:
    try:
        async with connected(disk.dsn) as connection:
            return bool(await connection.fetchval("SELECT true"))
    except (OSError, asyncpg.PostgresError):
        return False


@pytest.mark.parametrize("most_bytes", [NO_TABLES, NO_LOG])
async def test_without_room_for_what_a_check_saw_there_is_no_verdict(
    disk: Disk, rpc: SyncRpc, built: Built, most_bytes: int
) -> None:
    asked = CheckParams(address=built.tokens["plain"])
    async with connected(disk.dsn) as connection:
        await migrate(connection)
    async with (
        connections.create_pool(disk.dsn, min_size=0, max_size=4, command_timeout=5) as pool,
        context_for(rpc.url, built, pool) as ctx,
    ):
        await ctx.heads.refresh()
        disk.bound(most_bytes)
        await fill(disk.dsn)
        with pytest.raises(ServiceFull) as result:
            await check(ctx, asked)
        assert result.value.code == "busy"
        disk.bound(None)

        async def is_back() -> bool:
            return await _is_back(disk)

        assert await arena.until(is_back, WAIT_S)
        kept = await pool.fetchval("SELECT count(*) FROM facts.evidence")
        levels = list[str]()

        async def is_checked() -> bool:
            # A server that ended may end once more while it recovers.
            try:
                levels.append((await check(ctx, asked)).answer.verdict.level)
            except ServiceFull:
                return False
            return True

        assert await arena.until(is_checked, WAIT_S)
        assert levels == ["ok"]
        assert await pool.fetchval("SELECT count(*) FROM facts.evidence") == kept + 1


# --- clocks that jump ------------------------------------------------------------------------------


async def _told(session: aiohttp.ClientSession, url: str, key: str) -> tuple[int, Any]:
    headers = {"x-api-key": key} if key else {}
    async with session.get(url, headers=headers) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S, DAY_S, -DAY_S])
async def test_a_clock_that_jumps_changes_no_verdict_and_locks_nobody_out(
    ctx: Context, built: Built, jump_s: float
) -> None:
    clock = Clock()
    ours = replace(random_context(ctx, clock))
    settings = Settings(anon_per_minute=2, key_per_minute=2)
    path = f"/v1/check/{built.tokens['owner_only_sell']}"
    async with service(ours, settings) as url, aiohttp.ClientSession() as session:
        key = (await key_for(ours, Person()))["key"]
        for moved_s in (0.0, jump_s, -jump_s):
            clock.now_s += moved_s
            for whose in ("", key):
                rows = [await _told(session, url + path, whose) for _ in range(3)]
                assert [status for status, _ in rows] == [200, 200, 429]
                assert {body["verdict"]["level"] for status, body in rows[:2]} == {"danger"}
