"""Reads of the index on real replicas, that stall, die, cancel statements and are promoted."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from roundtrip.api.dispatch import _wake_and_run
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import HandlerCall
from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.rpc.client import RpcNode
from roundtrip.chain.simulate.rates import Rates
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BlockRef
from roundtrip.services.boards.signals import signals
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import read_from_replica
from roundtrip.services.support.index_reader import Nothing, reading
from roundtrip.store.index import cursor
from roundtrip.store.replicas import pools
from roundtrip.store.replicas.pools import Replicas
from roundtrip.store.server import connections
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.rows import Connection
from support.databases import connected
from support.standbys import Cluster, cluster
from unit.venues.logs import NETWORK

WAIT_S = 60
# Three servers are made and started.
pytestmark = pytest.mark.timeout(600)
GENESIS = BlockRef(0, f"0x{0:064x}", 1_760_000_000)


@dataclass
class Ground:
    """A service over a primary and two standbys. ``now_s``: the clock by which replicas are judged."""

    servers: Cluster
    index: Connection
    ctx: Context
    replicas: Replicas
    now_s: float = 1000.0
    head: BlockRef = GENESIS

    async def advance(self) -> int:
        """One block more on the primary; its number."""
        number = self.head.number + 1
        after = BlockRef(number, f"0x{number:064x}", self.head.timestamp_s + 1)
        assert await cursor.advance(self.index, self.head.hash, after) is not None
        self.head = after
        return number

    async def look(self, times: int = 1) -> None:
        """What the loops do, so many times, a quarter of a second apart."""
        for _ in range(times):
            await asyncio.gather(*(self.replicas.ask(replica) for replica in self.replicas.replicas))
            await self.replicas.look()
            self.now_s += pools.EVERY_S

    def fit(self) -> list[bool]:
        return [self.replicas.fits(replica) for replica in self.replicas.replicas]

    async def until_fit(self, *wanted: bool) -> None:
        async with asyncio.timeout(WAIT_S):
            while self.fit() != list(wanted):
                await self.look()
                await asyncio.sleep(0.02)

    async def read(self, beside: Callable[[Connection], Awaitable[object]] | None = None) -> tuple[int, bool]:
        """The block of an answer, and whether a replica gave it."""

        async def run(ctx: Context) -> tuple[int, bool]:
            async with reading(ctx) as (connection, at):
                if beside is not None and ctx.loan is not None:
                    await beside(connection)
                is_replica = await connection.fetchval("SELECT pg_is_in_recovery()")
                assert at.block.number == await cursor.newest_number(connection)
                return at.block.number, is_replica

        return await read_from_replica(self.ctx, run)


@contextlib.asynccontextmanager
async def grounded() -> AsyncIterator[Ground]:
    """Standbys that cancel at once what stands in the way of replaying."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = await stack.enter_async_context(cluster(folder, 2, (), ("max_standby_streaming_delay=0",)))
        url, urls = servers.primary.dsn, [standby.dsn for standby in servers.standbys]
        connection = await stack.enter_async_context(connected(url))
        await migrate(connection)
        await cursor.begin(connection, 1, GENESIS)
        pool = await stack.enter_async_context(connections.create_pool(url, max_size=4))
        opening = pools.open_replicas(urls, url, lambda: made.now_s, max_size=4, command_timeout=10)
        replicas = await stack.enter_async_context(opening)
        ctx = Context(
            chain_id=4663, contracts=NETWORK, node=cast(RpcNode, None), heads=cast(Heads, None),
            policy=POLICY, pool=pool, rates=cast(Rates, None), now_s=lambda: 0.0, entropy=lambda: b"",
            replicas=replicas,
        )  # fmt: skip
        made = Ground(servers, connection, ctx, replicas)
        yield made


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[Ground]:
    async with grounded() as found:
        yield found


@pytest.fixture
async def ground(shared: Ground) -> AsyncIterator[Ground]:
    """All three servers are there, and nothing is held against them. Every connection is given back."""
    shared.now_s += 10_000
    await shared.servers.wait_until_replayed()
    await shared.until_fit(True, True)
    yield shared
    for pool in (shared.ctx.pool, *(replica.pool for replica in shared.replicas.replicas)):
        assert pool.get_size() == pool.get_idle_size()


def test_what_callers_write_themselves_is_never_read_from_a_replica() -> None:
    own = [row.name for row in OPERATIONS if row.from_replica and (row.key or row.writes)]
    assert own == []
    assert {row.name for row in OPERATIONS if row.from_replica} == {
        "moving_now", "graduating_soon", "winners", "signals", "wallet_history", "linked_wallets", "look_up",
        "explain_transaction",
    }  # fmt: skip


async def test_the_dispatch_lends_one_only_where_the_row_says_so(ground: Ground) -> None:
    lent = []

    async def answer(call: HandlerCall[Any]) -> UseCaseAnswer[Any]:
        lent.append(call.ctx.loan is not None)
        return UseCaseAnswer(None)

    for row in OPERATIONS:
        await _wake_and_run(replace(row, handler=answer, lane=None), HandlerCall(ground.ctx, Nothing()))
    assert lent == [row.from_replica for row in OPERATIONS]


async def test_replicas_answer_in_turn_with_the_primarys_newest_block(ground: Ground) -> None:
    number = await ground.advance()
    await ground.servers.wait_until_replayed()
    await ground.look()
    first, second = (ground.replicas.lend() for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.replica is not second.replica
    assert await ground.read() == (number, True)
    answered = await read_from_replica(ground.ctx, lambda ctx: signals(ctx, Nothing()))
    assert answered.answer.block == number


async def test_an_answer_names_the_block_that_its_replica_has(ground: Ground) -> None:
    """A replica that lags within the limit answers, and claims no newer block."""
    before = ground.head.number
    for standby in ground.servers.standbys:
        await standby.execute("SELECT pg_wal_replay_pause()")
    try:
        await ground.advance()
        assert await ground.read() == (before, True)
    finally:
        for standby in ground.servers.standbys:
            await standby.execute("SELECT pg_wal_replay_resume()")


async def test_one_that_stalls_is_left_within_two_seconds_and_taken_back(ground: Ground) -> None:
    one, other = ground.servers.standbys
    await one.execute("SELECT pg_wal_replay_pause()")
    try:
        started_s = ground.now_s
        while ground.fit()[0]:
            await ground.advance()
            # The other one keeps up.
            async with asyncio.timeout(WAIT_S):
                await Cluster(ground.servers.primary, [other]).wait_until_replayed()
            await ground.look()
        assert ground.now_s - started_s <= 2.0
        assert ground.fit() == [False, True]
        assert await ground.read() == (ground.head.number, True)
    finally:
        await one.execute("SELECT pg_wal_replay_resume()")
    await ground.until_fit(True, True)


async def test_where_all_lag_the_primary_answers(ground: Ground) -> None:
    for standby in ground.servers.standbys:
        await standby.execute("SELECT pg_wal_replay_pause()")
    try:
        for _ in range(8):
            await ground.advance()
            await ground.look()
        assert ground.fit() == [False, False]
        assert await ground.read() == (ground.head.number, False)
    finally:
        for standby in ground.servers.standbys:
            await standby.execute("SELECT pg_wal_replay_resume()")
    await ground.until_fit(True, True)


async def test_a_loop_that_stands_still_leaves_them(ground: Ground) -> None:
    """Nobody knows how far they are."""
    ground.now_s += 1.5
    assert ground.fit() == [False, False]
    assert await ground.read() == (ground.head.number, False)


async def test_a_cancelled_statement_is_answered_by_the_primary(ground: Ground) -> None:
    """Recovery conflict: the primary drops what a statement on the replica reads."""
    await ground.index.execute("CREATE TABLE public.dropped AS SELECT 1 AS one")
    await ground.servers.wait_until_replayed()
    await ground.look()
    is_reading = asyncio.Event()

    async def read_long(connection: Connection) -> None:
        await connection.fetch("SELECT one FROM public.dropped")
        is_reading.set()
        await connection.fetch("SELECT pg_sleep(8)")

    answering = asyncio.create_task(ground.read(read_long))
    async with asyncio.timeout(WAIT_S):
        await is_reading.wait()
        await ground.index.execute("DROP TABLE public.dropped")
        assert await answering == (ground.head.number, False)
    assert sorted(ground.fit()) == [False, True]
    await ground.until_fit(True, True)


async def test_a_long_statement_is_held_against_nobody(ground: Ground) -> None:
    async def run_too_long(connection: Connection) -> None:
        await connection.fetch("SELECT pg_sleep(8)", timeout=0.1)

    with pytest.raises(ServiceFull, match="unavailable"):
        await ground.read(run_too_long)
    assert ground.fit() == [True, True]


async def test_what_a_replica_does_not_have_yet_is_read_from_the_primary(ground: Ground) -> None:
    """A table of a migration that it has not replayed, say; it stays in use for others."""

    async def read_unknown(connection: Connection) -> None:
        await connection.fetch("SELECT 1 FROM facts.not_yet")

    assert await ground.read(read_unknown) == (ground.head.number, False)
    assert ground.fit() == [True, True]


async def test_of_a_swallowed_fault_nothing_is_left_out(ground: Ground) -> None:
    """A use case that makes do without the index says more on the primary."""

    async def run(ctx: Context) -> str:
        try:
            async with reading(ctx) as (connection, _):
                if ctx.loan is not None:
                    await connection.fetch("SELECT 1 FROM facts.not_yet")
                return "all of it"
        except ServiceFull:
            return "without the index"

    assert await read_from_replica(ground.ctx, run) == "all of it"


async def test_a_database_that_is_no_replica_of_ours_never_answers(ground: Ground) -> None:
    one, other = ground.servers.standbys
    urls = [ground.servers.primary.dsn, one.dsn.replace("/roundtrip?", "/postgres?"), other.dsn]
    opening = pools.open_replicas(urls, ground.servers.primary.dsn, lambda: ground.now_s)
    async with opening as replicas:
        again = Ground(ground.servers, ground.index, ground.ctx, replicas, ground.now_s)
        await again.until_fit(False, False, True)
        await again.look(3)
        assert again.fit() == [False, False, True]


async def test_the_loop_itself_takes_them_up(ground: Ground) -> None:
    clock = asyncio.get_running_loop().time
    urls = [standby.dsn for standby in ground.servers.standbys]
    async with pools.open_replicas(urls, ground.servers.primary.dsn, clock) as replicas:
        watching = asyncio.create_task(replicas.watch())
        async with asyncio.timeout(WAIT_S):
            while not all(map(replicas.fits, replicas.replicas)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        watching.cancel()
        await asyncio.wait([watching])


async def test_one_that_dies_is_left_and_taken_back(ground: Ground) -> None:
    one, _ = ground.servers.standbys
    assert await ground.read() == (ground.head.number, True)
    assert await ground.read() == (ground.head.number, True)
    await one.kill()
    # Before anybody has looked: the primary answers, and it is left at once.
    answers = [await ground.read() for _ in range(4)]
    assert {number for number, _ in answers} == {ground.head.number}
    await ground.look()
    assert ground.fit() == [False, True]
    assert await ground.read() == (ground.head.number, True)
    await one.start()
    ground.now_s += 60
    await ground.until_fit(True, True)


async def test_without_a_primary_current_replicas_answer_and_a_promoted_one_does_not() -> None:
    async with grounded() as ground:
        await ground.advance()
        await ground.servers.wait_until_replayed()
        await ground.until_fit(True, True)
        await ground.index.close()
        await ground.servers.primary.kill()
        await ground.look()
        ground.now_s += 100
        await ground.look()
        assert ground.fit() == [True, True]
        assert await ground.read() == (1, True)
        await ground.servers.standbys[0].execute("SELECT pg_promote()")
        await ground.look()
        assert ground.fit() == [False, True]
