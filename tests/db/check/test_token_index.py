"""What the index knows of a token, in one snapshot."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import OtherPool
from roundtrip.domain.check.evidence import DeployerRecord
from roundtrip.domain.check.proof_input import NOTHING, IndexInputs, RecalledWallet, TokenIndex
from roundtrip.store.check import token_index
from roundtrip.store.check.token_index import HolderDraw, IndexedPlace, read_places, read_token_index
from roundtrip.store.index import cursor
from roundtrip.store.server import connections
from roundtrip.store.server.rows import Connection
from support.tables import append_blocks, begin_index
from support.told_blocks import WETH, Chain, launched, sent, v3_at, v3_opened
from unit.sync.telling import ALICE, BOB, CURVE, DEV, HIGH, LOW
from unit.venues.logs import STRANGER

NOW = datetime(2026, 11, 28, tzinfo=UTC)
SINCE = NOW - timedelta(days=1)
POOL = v3_at(LOW, WETH)
RECALLED = RecalledWallet(POOL, "0x" + "07" * 32, 3)


@pytest.fixture
async def pool(url: str) -> AsyncIterator[asyncpg.Pool]:
    async with connections.create_pool(url, min_size=1, max_size=2) as found:
        yield found


async def index_two_pools(index: Connection) -> Chain:
    """Indexes a token with a pool against weth, one against another token, and a wallet of an earlier
    check."""
    chain = Chain()
    chain.block(sent(v3_opened(LOW, WETH)), sent(v3_opened(LOW, HIGH)))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    await token_index.keep_recalled_wallets(index, LOW, [RECALLED], NOW, SINCE)
    return chain


async def test_all_of_a_token_is_read_at_once(index: Connection, pool: asyncpg.Pool) -> None:
    chain = await index_two_pools(index)
    found = await read_token_index(pool, LOW, 20.0, SINCE)
    assert found is not None
    assert [place.at for place in found.pools] == [POOL]
    assert found.others == (OtherPool(v3_at(LOW, HIGH), HIGH),)
    assert found.recalled == (RECALLED,)
    assert (found.newest_number, found.facts) == (chain.blocks[-1].ref.number, NOTHING)
    assert (await read_token_index(pool, LOW, 20.0, NOW + timedelta(seconds=1))) == TokenIndex(
        found.newest_number, found.whole_to, found.pools, found.others
    )


async def test_it_has_every_pool_only_once_older_blocks_are_read(
    index: Connection, pool: asyncpg.Pool
) -> None:
    chain = await index_two_pools(index)
    found = await read_token_index(pool, LOW, 20.0, SINCE)
    assert found is not None
    assert found.whole_to is None
    at = await cursor.cursor(index)
    assert at is not None
    await cursor.advance_older(index, at, at.start_number)
    found = await read_token_index(pool, LOW, 20.0, SINCE)
    assert found is not None
    assert found.whole_to == chain.blocks[-1].ref.number


async def test_of_a_launch_it_has_the_deployer_and_the_holders_that_are_asked_for(
    index: Connection, pool: asyncpg.Pool
) -> None:
    chain = Chain()
    chain.block(sent(launched(LOW, CURVE, DEV)))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    found = await read_token_index(pool, LOW, 20.0, SINCE, HolderDraw(12, bytes(32), {BOB}))
    assert found is not None
    assert found.facts == IndexInputs((), DEV, DeployerRecord(1, 0, 0, 0, 0))
    assert [place.kind for place in found.pools] == ["launchpad_curve"]


async def test_of_an_unknown_token_it_has_only_the_newest_block(
    index: Connection, pool: asyncpg.Pool
) -> None:
    chain = await index_two_pools(index)
    assert await read_token_index(pool, STRANGER, 20.0, SINCE) == TokenIndex(chain.blocks[-1].ref.number)


async def test_an_index_without_a_block_is_read_and_empty(index: Connection, pool: asyncpg.Pool) -> None:
    await begin_index(index, Chain().parent)
    await index.execute("DELETE FROM facts.cursor")
    assert await read_token_index(pool, LOW, 20.0, SINCE) == TokenIndex()


async def test_a_database_that_cannot_be_reached_is_not_an_empty_one(url: str) -> None:
    closed = connections.create_pool(url, min_size=0)
    assert await read_token_index(closed, LOW, 20.0, SINCE) is None
    assert await read_places(closed, [POOL], 20.0) == {}


async def test_pools_and_tokens_are_known_by_their_addresses(index: Connection, pool: asyncpg.Pool) -> None:
    await index_two_pools(index)
    against_no_money = v3_at(LOW, HIGH)
    found = await read_places(pool, [POOL, LOW, against_no_money, HIGH, ALICE, "0x" + "ab" * 32], 20.0)
    assert found == {POOL: IndexedPlace(Address(LOW), "amm_v3"), LOW: IndexedPlace(Address(LOW), None)}
