"""The primary dies by SIGKILL while everything writes, a standby is promoted, and everything goes on. What
was acknowledged under synchronous commit is there."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import asyncpg
import pytest

from roundtrip.api.admission.call_counter import CallCounter, DatabaseCalls
from roundtrip.api.admission.gate import Admitted, Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.request.callers import CallerRequest
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.base.types import Address
from roundtrip.store.accounts import call_counts
from roundtrip.store.server import connections, jobs
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.rows import Connection
from support.counting import DrawnIds, Wall, conserved, key_of, put_account, put_credits
from support.databases import connected
from support.processes import ModelProcess
from support.scripted_chain import ScriptedChain
from support.standbys import Cluster, ReplicatedPostgres, cluster
from support.syncs import SyncGround

WAIT_S = 120
# Three servers are made and started.
pytestmark = pytest.mark.timeout(600)
MANY = CallAllowance(10**6, 10**6)
BEFORE, AFTER = 30, 10
"""Acknowledged writes of each kind before the primary dies, and after it."""


@dataclass
class Writing:
    """One kind of write, over and over. ``done``: what was acknowledged."""

    write: Callable[[int], Awaitable[bool]]
    done: list[int] = field(default_factory=list)
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            try:
                if await self.write(number):
                    self.done.append(number)
                    self._told.set()
            except DATABASE_FAULTS:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.01)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(WAIT_S):
            while len(self.done) < count:
                self._told.clear()
                await self._told.wait()


class HealingGround(SyncGround):
    """Its sync connects as the service's does."""

    async def connect(self) -> Connection:
        return await connections.connect(self.url, more={"application_name": "the sync"})


async def newest_of(standbys: list[ReplicatedPostgres]) -> ReplicatedPostgres:
    """The one to promote: with the most of the dead primary's log."""
    ends = []
    for standby in standbys:
        async with connected(standby.dsn) as connection:
            ends.append(
                await connection.fetchval("SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint")
            )
    return standbys[ends.index(max(ends))]


async def fail_over(servers: Cluster) -> ReplicatedPostgres:
    """Kills the primary; the new one, which the other standby follows, as a manager of clusters has it."""
    await servers.primary.kill()
    promoted = await newest_of(servers.standbys)
    await promoted.execute("SELECT pg_promote()")
    for standby in servers.standbys:
        if standby is not promoted:
            where = f"host={promoted.folder} user=roundtrip application_name={standby.directory.name}"
            await standby.execute(f"ALTER SYSTEM SET primary_conninfo = '{where}'")
            await standby.execute("SELECT pg_reload_conf()")
    return promoted


def writers(pool: asyncpg.Pool) -> dict[str, Writing]:
    """Jobs, counted calls and paid calls, over the service's own parts."""
    wall = Wall()
    counter = CallCounter(DatabaseCalls(pool), wall, clock=lambda: 0.0, retry_s=0.0)
    gate = Gate(MinuteLimits(wall), Allowances(MANY, MANY, MANY), counter)
    payer = ModelProcess(pool, Wall(), DrawnIds())

    async def enqueue(number: int) -> bool:
        async with pool.acquire(timeout=5) as connection:
            await jobs.enqueue(connection, "token", f"0x{number:040x}")
        return True

    async def call(number: int) -> bool:
        with suppress(Exception):
            await gate.admit(CallerRequest(f"address:{number}", key_of("free")), "day", needs_key=True)
            return True
        await asyncio.sleep(0.05)
        return False

    async def pay(number: int) -> bool:
        # Past every retry, and never the limit of a minute.
        payer.now_s += 10**7
        payer.wall.ms += 1000
        admitted = await payer.ask("paying")
        if not isinstance(admitted, Admitted):
            await asyncio.sleep(0.05)
            return False
        await payer.gate.charge(admitted)
        return admitted.hold is not None

    return {"jobs": Writing(enqueue), "calls": Writing(call), "paid": Writing(pay)}


async def test_nothing_acknowledged_is_lost_when_the_primary_dies() -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        waits = ["synchronous_standby_names=ANY 1 (standby1, standby2)"]
        servers = await stack.enter_async_context(cluster(folder, 2, waits))
        url = servers.url_of_all()
        async with connected(servers.primary.dsn) as connection:
            await migrate(connection)
            free = await put_account(connection, Address(f"0x{1:040x}"), "free")
            paying = await put_account(connection, Address(f"0x{2:040x}"), "paying")
            await put_credits(connection, paying, 10**6)
        ground = HealingGround(url, ScriptedChain(seed=4, blocks=31), cast(Connection, None))
        ground.feed.say(10)
        pool = await stack.enter_async_context(connections.create_pool(url, max_size=6, command_timeout=5))
        # Counters keep their connections.
        stack.callback(pool.terminate)
        writing = writers(pool)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ground.sync().run())]
            tasks += [group.create_task(one.run()) for one in writing.values()]
            await asyncio.gather(*(one.until(BEFORE) for one in writing.values()))
            promoted = await fail_over(servers)
            at_promotion = {kind: len(one.done) for kind, one in writing.items()}
            ground.feed.say(30)
            await asyncio.gather(*(one.until(at_promotion[kind] + AFTER) for kind, one in writing.items()))
            async with connected(promoted.dsn) as connection:
                ground.index = connection
                async with asyncio.timeout(WAIT_S):
                    while not await _is_indexed(ground):  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                for task in tasks:
                    task.cancel()
        async with connected(promoted.dsn) as connection:
            keys = {int(row["key"], 16) for row in await connection.fetch("SELECT key FROM jobs.job")}
            # A call of a lease is counted when it is leased, before it is made.
            counted = await connection.fetchval(
                "SELECT sum(calls) FROM accounts.day WHERE account_id = $1", free
            )
            _, held, spent = (await conserved(connection, 0))[paying]
        assert set(writing["jobs"].done) - keys == set()
        assert counted >= len(writing["calls"].done)
        assert held + spent >= len(writing["paid"].done)


async def _is_indexed(ground: SyncGround) -> bool:
    with suppress(AssertionError):
        return await ground.is_at_the_end()
    return False


@pytest.fixture(scope="module")
async def lone() -> AsyncIterator[ReplicatedPostgres]:
    with tempfile.TemporaryDirectory() as folder:
        async with cluster(Path(folder), 0) as servers:
            yield servers.primary


async def test_counts_wait_for_a_standby_only_where_commits_do(lone: ReplicatedPostgres) -> None:
    for names, setting in (("nobody", "on"), ("", "off")):
        await lone.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        await lone.execute("SELECT pg_reload_conf()")
        async with connected(lone.dsn) as connection, asyncio.timeout(WAIT_S):
            while await connection.fetchval("SHOW synchronous_standby_names") != names:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await call_counts.without_waiting_for_the_disk(connection)
            assert await connection.fetchval("SHOW synchronous_commit") == setting


async def test_a_host_that_is_silent_leaves_time_for_the_next(lone: ReplicatedPostgres) -> None:
    """A machine that is gone answers nothing at all."""
    asked = []

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(1)
        await reader.read()
        writer.close()

    with tempfile.TemporaryDirectory() as folder:
        silent = await asyncio.start_unix_server(hang, f"{folder}/.s.PGSQL.5432")
        url = lone.dsn.replace("host=", f"host={folder},", 1)
        async with silent, connections.create_pool(url, max_size=2) as pool:
            assert await pool.fetchval("SELECT 1") == 1
            async with pool.acquire() as one, pool.acquire() as other:
                assert await one.fetchval("SELECT 1") == await other.fetchval("SELECT 1")
    # The second connection began with the host that took the first.
    assert len(asked) == 1
