"""Two syncs over one database: one leads, one stands by and takes over; who does not lead writes nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest
from structlog.testing import capture_logs

from roundtrip.domain.base.errors import NodeFault
from roundtrip.store.server.sync_lock import LET_GO, SYNC_LOCK, leader, name_of_sync
from roundtrip.sync.run import OtherChain
from support.scripted_chain import ScriptedChain
from support.syncs import Ground, Hints, ground_in
from support.tables import emptied, tables

LEADS, STANDS_BY = "this sync leads", "another sync leads; this one waits"


@pytest.fixture
async def ground(url: str) -> AsyncIterator[Ground]:
    async with ground_in(url) as found:
        yield found


def other(ground: Ground) -> Ground:
    """Another sync of the same chain into the same database; nobody tells it of blocks."""
    node = ScriptedChain(seed=4, blocks=31)
    return replace(ground, node=node, feed=Hints(), waited=asyncio.Queue())


async def test_one_stands_by_and_takes_over_when_the_leader_ends(ground: Ground) -> None:
    second = other(ground)
    async with ground.following() as leading:
        await ground.until(30)
        with capture_logs() as logs:
            async with second.following():
                # It tries again and again, and asked the node once only, whose it is.
                for _ in range(3):
                    assert await second.waited.get() <= 0.5
                assert [entry["event"] for entry in logs] == [STANDS_BY]
                asked = [call.method for calls in second.node.asked for call in calls]
                assert sorted(asked) == ["eth_chainId", "eth_getBlockByNumber", "eth_getBlockByNumber"]
                leading.cancel()
                second.node.grow(2)
                second.feed.say(32)
                await second.until(32)
                assert await second.is_at_the_end()
                assert [entry["event"] for entry in logs] == [STANDS_BY, LEADS]


async def test_it_opens_its_feed_only_while_it_leads(ground: Ground) -> None:
    opened = asyncio.Event()

    @contextlib.asynccontextmanager
    async def listening() -> AsyncIterator[None]:
        opened.set()
        yield

    second = other(ground)
    async with ground.following() as leading:
        await ground.until(30)
        sync = second.sync()
        sync._following = replace(sync._following, listening=listening)
        task = asyncio.create_task(sync.run())
        for _ in range(3):
            await second.waited.get()
        assert not opened.is_set()
        leading.cancel()
        await opened.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


_WAITS = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
)
_CUT_OFF = (
    "SELECT pg_terminate_backend(l.pid, 10000) FROM pg_locks l WHERE locktype = 'advisory' AND objid = $1"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


async def test_a_leader_that_is_cut_off_while_it_writes_leaves_what_one_sync_would(ground: Ground) -> None:
    """In the middle of a batch, again and again: whoever leads next goes on at the cursor, and of what the
    one before had not committed nothing is there. That one stands by, or leads again."""
    turns = 5
    second, holding = other(ground), await asyncpg.connect(ground.url)
    second.feed.say(30)
    with capture_logs() as logs:
        async with ground.following(), second.following():
            await ground.until(30)
            for _ in range(turns):
                async with holding.transaction():
                    await holding.execute("LOCK TABLE facts.cursor IN EXCLUSIVE MODE")
                    for one in (ground, second):
                        one.node.grow(2)
                        one.feed.say(one.node.last)
                    while not await holding.fetchval(_WAITS):  # noqa: ASYNC110
                        await asyncio.sleep(0.001)
                    assert await holding.fetchval(_CUT_OFF, SYNC_LOCK)
                await ground.until(ground.node.last)
            assert await ground.is_at_the_end()
    await holding.close()
    assert [entry["event"] for entry in logs].count(LEADS) >= 2
    disturbed = await tables(ground.index)
    await emptied(ground.index)
    async with ground.following():
        await ground.until(ground.node.last)
    assert await tables(ground.index) == disturbed


async def test_another_chains_sync_does_not_even_stand_by(ground: Ground) -> None:
    async with ground.following(deepest_fork=64):
        await ground.until(30)
        stranger = replace(other(ground), node=ScriptedChain(seed=5, blocks=31))
        with pytest.raises(OtherChain):
            await stranger.sync(deepest_fork=64).run()
        assert stranger.waited.empty()


async def test_one_whose_node_is_away_stands_by(ground: Ground) -> None:
    async with ground.following() as leading:
        await ground.until(30)
        second = other(ground)

        async def away(calls: object) -> None:
            raise NodeFault("it is away")

        second.node.before = away
        async with second.following():
            await second.waited.get()
            leading.cancel()
            second.node.before = None
            second.node.grow(1)
            second.feed.say(31)
            await second.until(31)


# --- the lock --------------------------------------------------------------------------------------


async def test_who_leads_is_told_by_name(ground: Ground) -> None:
    assert await leader(ground.index) is None
    async with ground.following():
        await ground.until(30)
        assert await leader(ground.index) == "the sync"
    assert name_of_sync(12, "here") == "roundtrip sync, process 12 on here"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (name_of_sync(4_000_000, "h" * 64), "roundtrip sync, process 4000000 on " + "h" * 28),
        ("", "a connection without a name"),
    ],
)
async def test_who_leads_is_told_whatever_its_connection_is_called(
    ground: Ground, name: str, expected: str
) -> None:
    leading = await asyncpg.connect(ground.url, server_settings={"application_name": name})
    assert await leading.fetchval("SELECT pg_try_advisory_lock($1)", SYNC_LOCK)
    assert await leader(ground.index) == expected
    await leading.close()


async def test_the_lock_of_another_database_is_not_told_of(ground: Ground, database_url: str) -> None:
    elsewhere = await asyncpg.connect(database_url)
    async with ground.following():
        await ground.until(30)
        assert await leader(elsewhere) is None
    await elsewhere.close()


async def test_a_leader_that_is_gone_lets_go_in_the_middle_of_a_statement(ground: Ground) -> None:
    gone = await asyncpg.connect(ground.url, server_settings=LET_GO)
    assert await gone.fetchval("SELECT pg_try_advisory_lock($1)", SYNC_LOCK)
    asleep = asyncio.create_task(gone.execute("SELECT pg_sleep(100)"))
    while not await ground.index.fetchval(  # noqa: ASYNC110
        "SELECT EXISTS (SELECT FROM pg_stat_activity"
        " WHERE wait_event = 'PgSleep' AND datname = current_database())"
    ):
        await asyncio.sleep(0.001)
    # As when its process is killed: nothing is said to the server.
    gone._transport.abort()  # type: ignore[attr-defined]
    with contextlib.suppress(asyncpg.PostgresError, ConnectionError):
        await asleep
    async with ground.following():
        await ground.until(30)
