"""The search for a wallet's origin as a job, on a real node with an archive."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial

import asyncpg
import pytest

from conftest import context_for
from roundtrip.devnet import world
from roundtrip.devnet.node import NodeOptions, find_anvil, running
from roundtrip.devnet.wire import SyncRpc
from roundtrip.domain.types import Address
from roundtrip.jobs.kinds import KINDS
from roundtrip.jobs.worker import Worker
from roundtrip.services.context import Context
from roundtrip.store import jobs, origins
from roundtrip.store.origins import OlderOrigin, Origin
from support.faulty_node import FaultyNode

WAIT_S = 30
DAY_S = 86_400
EARLY, LATE, NOBODY = (Address("0x" + pair * 20) for pair in ("c0", "c1", "de"))
FUNDED, FUNDED_LATE, BLOCKS, START = 21, 35, 50, 31
FIRST_S = 1_700_000_000


@pytest.fixture(scope="module")
def archive(places: world.Places) -> Iterator[tuple[str, Address, int]]:
    """Its url, who funded EARLY, and when. Blocks of one transaction each."""
    options = NodeOptions(prune_history=600, timestamp_s=FIRST_S)
    with running(find_anvil(places.project), options) as node, SyncRpc(node.url) as rpc:
        busy, funder = (Address(one.lower()) for one in rpc.call("eth_accounts")[:2])
        for number in range(1, BLOCKS + 1):
            to = {FUNDED: EARLY, FUNDED_LATE: LATE}.get(number, busy)
            sender = funder if number == FUNDED else busy
            rpc.call("eth_sendTransaction", {"from": sender, "to": to, "value": "0x5"})
        assert int(rpc.call("eth_blockNumber"), 16) == BLOCKS
        block = rpc.call("eth_getBlockByNumber", hex(FUNDED), True)
        yield node.url, funder, int(block["timestamp"], 16)


@pytest.fixture
async def clean(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    tables = "jobs.job, facts.older_origin, facts.cursor"
    connection = await asyncpg.connect(database_url)
    await connection.execute(f"TRUNCATE {tables}")
    yield connection
    await connection.execute(f"TRUNCATE {tables}")
    await connection.close()


@pytest.fixture
async def asks(
    archive: tuple[str, Address, int], built: world.Built, pool: asyncpg.Pool
) -> AsyncIterator[Context]:
    async with context_for(archive[0], built, pool) as found:
        yield found


async def searched(
    ctx: Context, connection: asyncpg.Connection, wallet: Address, start: int
) -> OlderOrigin | None:
    """After one round, for an index that begins with block ``start``."""
    await connection.execute("INSERT INTO facts.cursor VALUES (true, $1, 50, $2, 7)", start, bytes(32))
    await jobs.enqueue(connection, "origin", wallet)
    await work(ctx)
    return await origins.older(connection, wallet)


async def work(ctx: Context) -> None:
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*await Worker(ctx, KINDS, lambda: 0.5).take())


async def left(connection: asyncpg.Connection) -> int:
    count: int = await connection.fetchval("SELECT count(*) FROM jobs.job")
    return count


async def test_what_is_older_than_the_index_is_found_and_kept(
    asks: Context, clean: asyncpg.Connection, archive: tuple[str, Address, int]
) -> None:
    _, funder, at_s = archive
    found = OlderOrigin(Origin(FUNDED, at_s, funder), FUNDED)
    assert await searched(asks, clean, EARLY, START) == found
    assert await left(clean) == 0


@pytest.mark.parametrize("wallet", [LATE, NOBODY])
async def test_nothing_before_the_index_is_kept_as_that(
    asks: Context, clean: asyncpg.Connection, wallet: Address
) -> None:
    assert await searched(asks, clean, wallet, START) == OlderOrigin(None, START - 1)
    assert await left(clean) == 0


async def test_of_a_whole_index_nothing_is_older(asks: Context, clean: asyncpg.Connection) -> None:
    assert await searched(asks, clean, EARLY, 0) is None
    assert await left(clean) == 0


async def test_where_it_could_not_be_found_out_it_is_tried_three_days(
    asks: Context, clean: asyncpg.Connection
) -> None:
    """A node that does not know that block yet stands for one without an archive."""
    assert await searched(asks, clean, EARLY, BLOCKS + 100) is None
    run_s = asks.now_s()
    for tries in (1, 2):
        row = await clean.fetchrow("SELECT run_at, tries, failed_at FROM jobs.job")
        waited_s, run_s = row["run_at"].timestamp() - run_s, row["run_at"].timestamp()
        assert (row["tries"], row["failed_at"], round(waited_s / DAY_S)) == (tries, None, 1)
        await work(replace(asks, now_s=partial(float, run_s)))
    assert await clean.fetchval("SELECT failed_at IS NOT NULL FROM jobs.job")
    assert await origins.older(clean, EARLY) is None


async def test_a_node_that_fails_in_the_search_is_no_origin(
    archive: tuple[str, Address, int], built: world.Built, pool: asyncpg.Pool, clean: asyncpg.Connection
) -> None:
    async with (
        FaultyNode(archive[0]).running() as faulty,
        context_for(faulty.url, built, pool) as asks,
    ):
        faulty.fault, faulty.after = "all errors", 1
        assert await searched(asks, clean, EARLY, START) is None
        said = await clean.fetchval("SELECT last_error FROM jobs.job WHERE run_at > now()")
        assert said == "NotYet: it could not be found out"


async def test_before_the_index_begins_it_waits(asks: Context, clean: asyncpg.Connection) -> None:
    await jobs.enqueue(clean, "origin", EARLY)
    await work(asks)
    assert await clean.fetchval("SELECT last_error FROM jobs.job") == "NotYet: the index has not begun"
