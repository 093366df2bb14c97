"""What tests run on: a real local chain with snapshots, a real database, the service over both."""

import contextlib
import itertools
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import aiohttp
import asyncpg
import pytest
import redis

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.rpc.client import Node
from roundtrip.chain.rpc.dialect import ANVIL, Dialect
from roundtrip.chain.simulate.rates import Rates
from roundtrip.config.networks import CHAIN_ID, contracts_from
from roundtrip.domain.base.policy import POLICY
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.databases import database, migrate_placed, server
from support.holding_asked import Holding, copied, holding_over
from support.indexing import at, follow
from support.mining import settle
from support.valkey_clusters import StoreCluster, client_of, cluster
from support.valkeys import Store, store

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def places() -> world.DevnetFolders:
    return world.DevnetFolders(PROJECT, PROJECT / "var")


@pytest.fixture(scope="session")
def built(places: world.DevnetFolders) -> world.Built:
    return world.build(places, print)


@pytest.fixture(scope="session")
def chain_url(places: world.DevnetFolders, built: world.Built) -> Iterator[str]:
    with world.start_world(places, built, NodeOptions(state=built.state)) as node:
        yield node.url


@pytest.fixture
def rpc(chain_url: str) -> Iterator[SyncRpc]:
    """The local chain, put back afterwards to what it was."""
    with SyncRpc(chain_url) as chain:
        before, snapshot = chain.call("eth_blockNumber"), chain.call("evm_snapshot")
        fee = chain.call("eth_getBlockByNumber", "latest", False)["baseFeePerGas"]
        yield chain
        # A block that is just being made is put on top of what was gone back to, and its parent is missing.
        settle(chain)
        assert chain.call("evm_revert", snapshot)
        # The node keeps the fee of the blocks that are gone.
        chain.call("anvil_setNextBlockBaseFeePerGas", fee)
        assert chain.call("eth_blockNumber") == before, "a transaction was left to be mined"


@pytest.fixture(scope="session")
def open_folder() -> Iterator[Path]:
    """A folder that the database's own user can reach; pytest's lie below a closed one."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture(scope="session")
def valkey_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as name, store(Path(name)) as found:
        yield found


@pytest.fixture
def valkey_url(valkey_store: Store) -> str:
    """A real server, which nobody else uses meanwhile; empty."""
    with redis.Redis.from_url(valkey_store.url) as client:
        client.flushall()
    return valkey_store.url


@pytest.fixture(scope="session")
def valkey_cluster() -> Iterator[StoreCluster]:
    """Three masters, which nobody else uses meanwhile. Who moves a slot moves it back."""
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)) as found:
        yield found


# A cluster takes some seconds to form.
@pytest.fixture(params=["server", pytest.param("cluster", marks=pytest.mark.slow)])
def shared_url(request: pytest.FixtureRequest) -> str:
    """A store that processes share, of each kind; empty."""
    name = {"server": "valkey_store", "cluster": "valkey_cluster"}[request.param]
    found: Store | StoreCluster = request.getfixturevalue(name)
    with client_of(found.url) as client:
        client.flushall()
    return found.url


@pytest.fixture
def own_valkey() -> Iterator[Store]:
    """One to stop and start."""
    with tempfile.TemporaryDirectory() as name, store(Path(name)) as found:
        yield found


@pytest.fixture(scope="session")
async def database_url(open_folder: Path) -> AsyncIterator[str]:
    async with server(open_folder / "postgres") as url:
        await migrate_placed(url)
        yield url


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    """A connection whose transaction is rolled back afterwards."""
    found = await asyncpg.connect(database_url)
    transaction = found.transaction()
    await transaction.start()
    yield found
    await transaction.rollback()
    await found.close()


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[asyncpg.Pool]:
    async with connections.create_pool(database_url, min_size=1, max_size=4) as found:
        yield found


def closed_database() -> asyncpg.Pool:
    """A pool that was never opened: whoever asks it is told that it cannot be asked."""
    return connections.create_pool("postgresql://nowhere", min_size=0)


class _Empty:
    """A connection to a database that has nothing in it."""

    async def fetch(self, *asked: object) -> list[asyncpg.Record]:
        return []

    async def fetchrow(self, *asked: object) -> None:
        return None

    async def fetchval(self, *asked: object) -> None:
        return None

    @contextlib.asynccontextmanager
    async def transaction(self, **how: object) -> AsyncIterator[None]:
        yield


class _EmptyPool:
    @contextlib.asynccontextmanager
    async def acquire(self, **how: object) -> AsyncIterator[_Empty]:
        yield _Empty()


def no_database() -> asyncpg.Pool:
    """Of a database without an index: checks go without, and nothing is kept."""
    return cast(asyncpg.Pool, _EmptyPool())


@contextlib.asynccontextmanager
async def context_for(
    node_url: str,
    built: world.Built,
    pool: asyncpg.Pool,
    timeout_s: float = 20.0,
    dialect: Dialect | None = ANVIL,
) -> AsyncIterator[Context]:
    """A context over the node at ``node_url``, its head refreshed once and not followed."""
    async with aiohttp.ClientSession() as session:
        node = Node(node_url, session, timeout_s)
        contracts = contracts_from(built.contracts)
        heads = Heads(
            node, CHAIN_ID, contracts, market_age_s=0.0, venue_index=VenueIndex(contracts), dialect=dialect
        )
        draws = itertools.count()
        yield Context(
            chain_id=CHAIN_ID,
            contracts=contracts,
            node=node,
            heads=heads,
            policy=POLICY,
            pool=pool,
            rates=Rates(node, contracts),
            now_s=time.time,
            entropy=lambda: next(draws).to_bytes(32, "big"),
            # A database on a busy machine: a check without its holders would be undecided.
            index_patience_s=20.0,
        )


@pytest.fixture
async def ctx(rpc: SyncRpc, built: world.Built, pool: asyncpg.Pool) -> AsyncIterator[Context]:
    """A use case's context over the real local chain and the real database."""
    async with context_for(rpc.url, built, pool) as found:
        await found.heads.refresh()
        yield found


@pytest.fixture(scope="session")
async def indexed_url(
    places: world.DevnetFolders, built: world.Built, open_folder: Path, database_url: str
) -> AsyncIterator[str]:
    """A database of its own that has the whole local chain, as it was built, followed; its jobs are not
    done."""
    with world.start_world(places, built, NodeOptions(state=built.state)) as node, SyncRpc(node.url) as asked:
        newest = int(asked.call("eth_blockNumber"), 16)
        async with database(database_url, "indexed") as url:
            await migrate_placed(url)
            await follow(node.url, built, url, 0, at(newest))
            yield url


@pytest.fixture
async def indexed(rpc: SyncRpc, built: world.Built, indexed_url: str) -> AsyncIterator[Context]:
    """A use case's context over the real local chain, and the index of it."""
    async with (
        connections.create_pool(indexed_url, min_size=1, max_size=4) as pool,
        context_for(rpc.url, built, pool) as found,
    ):
        await found.heads.refresh()
        yield found


@pytest.fixture
async def holding(
    rpc: SyncRpc, built: world.Built, database_url: str, indexed_url: str
) -> AsyncIterator[Holding]:
    """The real local chain to act on, and an index of its own that has all of it as it was built."""
    async with (
        copied(database_url, indexed_url) as url,
        context_for(rpc.url, built, closed_database()) as found,
        holding_over(found, rpc, built, url) as holding,
    ):
        yield holding
