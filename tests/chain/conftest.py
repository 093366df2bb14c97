"""What several files' tests over the local chain begin with."""

from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from roundtrip.chain.blocks.adaptive_width import Width
from roundtrip.domain.accounts.account import Account
from roundtrip.services.runtime.book_cache import ReadBounds
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.faulty_node import FaultyNode
from support.fixtures import context_for
from support.holding import HoldersStage
from support.keys import random_context
from support.made_index import MadeIndex
from support.practising import new_account
from support.reading import RANGE, ReadingService, service_over
from support.simulated import Strangers
from support.tables import emptied, own_database
from support.wallet import Wallet

MADE_BLOCK = 1000
"""The newest of an index made by hand."""


@pytest.fixture
async def service(
    ctx: Context, rpc: SyncRpc, built: Built, database_url: str
) -> AsyncIterator[ReadingService]:
    """Its node gives few blocks at once."""
    async with service_over(ctx, HoldersStage(rpc, built), database_url) as found:
        found.limits.new_width = lambda: Width(RANGE, RANGE)
        yield found


@pytest.fixture
def busy(service: ReadingService) -> None:
    """Every token of more than some dozen transfers is."""
    service.limits.at_once, service.limits.piece = ReadBounds(5, 60.0), ReadBounds(8, 60.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shop(ctx: Context, clock: Clock) -> Context:
    """Where accounts are made."""
    return random_context(ctx, clock)


@pytest.fixture
async def account(shop: Context) -> Account:
    return await new_account(shop)


@pytest.fixture
async def faulty(rpc: SyncRpc) -> AsyncIterator[FaultyNode]:
    async with FaultyNode(rpc.url).running() as node:
        yield node


@pytest.fixture
async def shaky(
    faulty: FaultyNode, built: Built, pool: asyncpg.Pool, request: pytest.FixtureRequest
) -> AsyncIterator[Context]:
    """A context whose node may fail; its head is known from before. A busy machine gets all the time that it
    takes, but where the node, by the test's ``fault``, never answers."""
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    timeout_s = 1.5 if params.get("fault") == "slow" else 20.0
    async with context_for(faulty.url, built, pool, timeout_s) as ctx:
        await ctx.heads.refresh()
        yield ctx


@pytest.fixture(scope="session")
async def made_url(database_url: str) -> AsyncIterator[str]:
    async with own_database(database_url, "made_by_hand") as url:
        yield url


@pytest.fixture
async def made(made_url: str) -> AsyncIterator[MadeIndex]:
    connection = await asyncpg.connect(made_url)
    await emptied(connection)
    index = MadeIndex(connection)
    await index.begin(0, MADE_BLOCK)
    yield index
    await connection.close()


@pytest.fixture
async def by_hand(ctx: Context, made_url: str) -> AsyncIterator[Context]:
    """The real local chain's node, and the index made by hand."""
    async with connections.create_pool(made_url, min_size=1, max_size=2) as pool:
        yield replace(ctx, pool=pool)


@pytest.fixture
def wallet(rpc: SyncRpc, built: Built) -> Wallet:
    """Ten eth and nothing else."""
    return Wallet(rpc, built.contracts, "simulated")


@pytest.fixture
def strangers(rpc: SyncRpc, tmp_path_factory: pytest.TempPathFactory) -> Strangers:
    return Strangers(rpc, tmp_path_factory.mktemp("odd"))
