"""A sync that begins in the middle of the real local chain knows every place that was there before."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from roundtrip.devnet.deploy import await_receipt, calldata
from roundtrip.devnet.sync_rpc import SyncRpc
from roundtrip.devnet.world import Built
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.store.index import cursor as chain
from roundtrip.sync.run import Progress
from roundtrip.venues import amm_v3
from support.databases import connected, database
from support.indexing import NarrowNode, at, cursor, follow

FIRST = 700
"""About half of the chain's past lies before it."""
AFTER_ALL_SORTS = 1265
"""Of every sort of fact there is one before it, launches against a money of their own among them."""
_TRANSFERS_KEPT_S = 7 * 86_400

_ADDRESS = "encode((SELECT address FROM facts.address WHERE id = {}), 'hex')"
_PLACE = "encode((SELECT at FROM facts.pool WHERE id = pool_id), 'hex')"
_SPOT = "block_number, log_index, at_s"


def _who(*columns: str) -> str:
    return ", ".join(_ADDRESS.format(f"{column}_id") for column in columns)


PLACES = {
    "pool": f"at, kind, in_money_from, fee_pips, tick_spacing, {_SPOT}, {_who('token', 'quote', 'hook')}",
    "launch": f"generation, at, threshold_raw, tx_hash, {_SPOT}, {_who('token', 'deployer', 'quote')}",
    "launch_step": f"step, quote_raw, token_raw, tx_hash, {_SPOT}, {_who('token')}",
    "launch_quote": f"block_number, {_who('quote')}",
}
"""What is known of all blocks."""
EVENTS = {
    "trade": f"buys, token_raw, quote_raw, tx_hash, {_SPOT}, {_PLACE}, {_who('trader')}",
    "liquidity": "tick_lower, tick_upper, liquidity_delta, token_raw, quote_raw, tx_hash,"
    f" {_SPOT}, {_PLACE}, {_who('owner', 'sender')}",
    "transfer": f"amount_raw, tx_hash, {_SPOT}, {_who('token', 'from', 'to')}",
}
"""What is known of the blocks that were read in full."""
Rows = dict[str, list[tuple[Any, ...]]]


async def rows(url: str, first: int = FIRST) -> Rows:
    """Everything that has to be the same where block ``first`` is the first that one of two read in full;
    with addresses for ids."""
    async with connected(url) as connection:
        found = {}
        for table, columns in PLACES.items():
            query = f"SELECT {columns} FROM facts.{table}"  # noqa: S608
            found[table] = [tuple(row) for row in await connection.fetch(query)]
        recent_s = await connection.fetchval("SELECT at_s FROM facts.cursor") - _TRANSFERS_KEPT_S
        for table, columns in EVENTS.items():
            since = recent_s if table == "transfer" else 0
            query = f"SELECT {columns} FROM facts.{table} WHERE block_number >= $1 AND at_s >= $2"  # noqa: S608
            found[table] = [tuple(row) for row in await connection.fetch(query, first, since)]
    return {table: sorted(lines, key=str) for table, lines in found.items()}


@pytest.fixture
def last(rpc: SyncRpc) -> int:
    number: str = rpc.call("eth_blockNumber")
    return int(number, 16)


@pytest.fixture
async def whole(rpc: SyncRpc, built: Built, database_url: str, last: int) -> AsyncIterator[str]:
    """The database of a sync of the whole chain."""
    async with database(database_url, "older_whole") as url:
        await follow(rpc.url, built, url, 0, at(last))
        yield url


@pytest.mark.parametrize("first", [FIRST, AFTER_ALL_SORTS])
async def test_a_late_beginning_knows_the_same_places_and_loses_no_trade(
    rpc: SyncRpc, built: Built, database_url: str, last: int, whole: str, first: int
) -> None:
    async with database(database_url, "older_late") as url:
        entries = await follow(rpc.url, built, url, first, at(last))
        everything = await rows(whole, first)
        assert await rows(url, first) == everything
        stands = await cursor(url)
        async with connected(url) as connection:
            unknown = await connection.fetchval(
                "SELECT count(*) FROM facts.launch WHERE block_number < $1"
                " AND sender_id = (SELECT id FROM facts.address WHERE address = $2)",
                first,
                bytes.fromhex(ZERO_ADDRESS[2:]),
            )
            early = await connection.fetchval("SELECT min(first_number) FROM facts.origin")
            asked = await connection.fetchval(_WISHES_OF_OLD, first)
    old = [row for row in everything["launch"] if row[4] < first]
    assert (stands.start_number, stands.older_number, stands.is_whole()) == (first, first, True)
    assert [step.number for step in entries if step.older] == [first - 1]
    assert len(old) > 5
    assert unknown == len(old)
    assert early == first, "no wallet is met where blocks are not read in full"
    assert asked == 0
    assert all(everything.values()), "there is something to compare"


_WISHES_OF_OLD = """
    SELECT count(*) FROM jobs.job WHERE key NOT IN (
        SELECT '0x' || encode(address.address, 'hex') FROM facts.address
        JOIN (
            SELECT token_id FROM facts.launch WHERE block_number >= $1
            UNION SELECT token_id FROM facts.launch_step WHERE block_number >= $1
            UNION SELECT token_id FROM facts.pool WHERE block_number >= $1
            UNION SELECT token_id FROM facts.trade JOIN facts.pool ON pool.id = pool_id
            UNION SELECT token_id FROM facts.liquidity JOIN facts.pool ON pool.id = pool_id
        ) AS new ON new.token_id = address.id
    )
"""
"""Jobs about tokens that nothing has happened to since the first block."""


async def test_one_that_was_stopped_in_the_middle_goes_on_where_it_stood(
    rpc: SyncRpc, built: Built, database_url: str, last: int, whole: str
) -> None:
    async with NarrowNode(rpc.url, 50).running() as narrow, database(database_url, "older_cut") as url:
        assert isinstance(narrow, NarrowNode)
        await follow(narrow.url, built, url, FIRST, lambda step: step.number >= 200)
        stands = await cursor(url)
        assert 200 < stands.older_number < FIRST
        assert stands.block.number == FIRST - 1
        assert not stands.is_whole()
        narrow.ranges.clear()
        entries = await follow(narrow.url, built, url, 5, at(last))
        assert min(narrow.ranges)[0] == stands.older_number, "what was read is not read again"
        assert [step.number for step in entries if step.older][-1] == FIRST - 1
        assert await rows(url) == await rows(whole)
        assert (await cursor(url)).is_whole()


@pytest.mark.parametrize("most_blocks", [1000, 33])
async def test_a_node_that_refuses_wide_ranges_is_asked_for_narrower_ones(
    rpc: SyncRpc, built: Built, database_url: str, last: int, whole: str, most_blocks: int
) -> None:
    async with NarrowNode(rpc.url, most_blocks).running() as narrow:
        assert isinstance(narrow, NarrowNode)
        async with database(database_url, "older_narrow") as url:
            await follow(narrow.url, built, url, FIRST, at(last))
            assert await rows(url) == await rows(whole)
        covered = [number for first, end in sorted(narrow.ranges) for number in range(first, end + 1)]
        assert covered == list(range(FIRST)), "each block once"


async def test_no_block_is_followed_before_all_that_is_older_is_known(
    rpc: SyncRpc, built: Built, database_url: str, last: int
) -> None:
    async with NarrowNode(rpc.url, 50).running() as narrow, database(database_url, "older_first") as url:
        entries = await follow(narrow.url, built, url, FIRST, at(last))
    order = [step.older for step in entries]
    assert order == sorted(order, reverse=True)
    assert [step.number for step in entries] == sorted(step.number for step in entries)
    assert entries[0].head >= last


def a_pool_that_a_fork_undoes(rpc: SyncRpc, built: Built, last: int) -> Address:
    """Made in block ``last + 3``, which is one of six that a fork will replace, and eight are there."""
    rpc.call("anvil_mine", "0x2")
    low, high = sorted((Address(built.tokens["plain"]), Address(built.tokens["thin"])))
    factory = built.contracts["v3Factory"]
    sender = rpc.call("eth_accounts")[0]
    data = calldata("createPool(address,address,uint24)", low, high, 10_000)
    sent = rpc.call("eth_sendTransaction", {"from": sender, "to": factory, "data": data})
    assert int(await_receipt(rpc, sent)["blockNumber"], 16) == last + 3
    rpc.call("anvil_mine", "0x5")
    return amm_v3.pool_address(Address(factory), low, high, 10_000)


def reorganise(rpc: SyncRpc, built: Built) -> None:
    """Another transaction takes the place of the one that made the pool."""
    sender = rpc.call("eth_accounts")[0]
    deposit = {"from": sender, "to": built.contracts["weth"], "value": "0x1", "data": "0xd0e30db0"}
    rpc.call("anvil_reorg", 6, [[deposit, 0]])
    rpc.call("anvil_mine", "0x1")


async def is_as_a_whole_one(rpc: SyncRpc, built: Built, database_url: str, url: str, end: int) -> None:
    """Holds the index at ``url`` against one of the whole chain as it is now."""
    async with database(database_url, "older_new") as new:
        await follow(rpc.url, built, new, 0, at(end))
        assert (await cursor(url)).block == (await cursor(new)).block
        assert (await cursor(url)).is_whole()
        mine, full = await rows(url), await rows(new)
    assert {table: mine[table] for table in PLACES} == {table: full[table] for table in PLACES}


async def has_pool(url: str, at_address: Address) -> bool:
    async with connected(url) as connection:
        return at_address in await chain.pools_at(connection, [at_address], chain.Ids())


@pytest.mark.parametrize("stops_at", [None, 400])
async def test_what_is_older_is_read_again_where_the_chain_before_the_first_block_is_another(
    rpc: SyncRpc, built: Built, database_url: str, last: int, stops_at: int | None
) -> None:
    """Also where the sync had not come so far yet when it was stopped."""
    undone, first, end = a_pool_that_a_fork_undoes(rpc, built, last), last + 5, last + 8
    async with NarrowNode(rpc.url, 100).running() as narrow, database(database_url, "older_forked") as url:
        ends = at(end) if stops_at is None else lambda step: step.number >= stops_at
        await follow(narrow.url, built, url, first, ends)
        assert await has_pool(url, undone) is (stops_at is None)
        reorganise(rpc, built)
        await follow(narrow.url, built, url, first, at(end + 1))
        assert not await has_pool(url, undone)
        await is_as_a_whole_one(rpc, built, database_url, url, end + 1)


async def test_a_fork_while_what_is_older_is_read_is_seen_at_its_end(
    rpc: SyncRpc, built: Built, database_url: str, last: int
) -> None:
    undone, first, end = a_pool_that_a_fork_undoes(rpc, built, last), last + 5, last + 8
    async with NarrowNode(rpc.url, 100).running() as narrow, database(database_url, "older_midway") as url:
        assert isinstance(narrow, NarrowNode)
        messages: list[Progress] = []

        def ends(step: Progress) -> bool:
            messages.append(step)
            if step.older and step.number >= 400 and not forked:
                forked.append(step.number)
                reorganise(rpc, built)
            return at(end + 1)(step)

        forked: list[int] = []
        await follow(narrow.url, built, url, first, ends)
        assert forked
        assert not await has_pool(url, undone)
        older = [step.number for step in messages if step.older]
        assert older != sorted(older), "it began anew"
        assert older.count(first - 1) == 1, "what is of another chain at its end is not taken"
        await is_as_a_whole_one(rpc, built, database_url, url, end + 1)
