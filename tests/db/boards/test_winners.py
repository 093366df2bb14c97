"""Boards are kept beside a sync that goes on, and never of a chain that is gone."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.market.fairness import Fairness
from roundtrip.store.boards import winners
from roundtrip.store.boards.winners import ClosingTotals, WinnersBoard
from roundtrip.store.index import cursor
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.maintenance.backup import forget
from roundtrip.store.server.rows import Connection, as_bytes
from support.tables import append_blocks, begin_index
from support.told_winners import BEST, DAY_S, DEPLOYER, Won

WAIT_S = 20
NOBODY = WinnersBoard("24h", 107, 7, ())


@pytest.fixture
async def index(url: str) -> AsyncIterator[Connection]:
    """The index of a chain on which somebody wins."""
    connection = await asyncpg.connect(url)
    won = Won().chain
    await append_blocks(connection, await begin_index(connection, won.parent), won.blocks)
    yield connection
    await connection.close()


@pytest.fixture
async def sync(url: str) -> AsyncIterator[Connection]:
    """A second connection, which waits for nobody."""
    connection = await asyncpg.connect(url, server_settings={"lock_timeout": "100ms"})
    yield connection
    await connection.close()


async def stood(connection: Connection) -> Cursor:
    stands = await cursor.cursor(connection)
    assert stands is not None
    return stands


async def newest(connection: Connection) -> BlockRef:
    return (await stood(connection)).block


async def count(connection: Connection, span: str = "24h") -> WinnersBoard:
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        return await winners.count_board(connection, span, await newest(connection))


async def test_what_is_kept_reads_back(index: Connection) -> None:
    at = await newest(index)
    board = await count(index)
    assert len(board.rows) == 2
    assert len(board.found) == 1
    assert await winners.load_board(index, "24h") is None
    assert await winners.counted_to(index) == {}
    assert await winners.keep(index, board, await stood(index))
    assert await winners.load_board(index, "24h") == replace(board, found=())
    assert await winners.load_board(index, "24h", 1) == replace(board, found=(), rows=board.rows[:1])
    assert await winners.load_board(index, "7d") is None
    assert await winners.counted_to(index) == {"24h": at.number}


async def test_amounts_are_kept_to_the_wei(index: Connection) -> None:
    row = replace(
        (await count(index)).rows[0], profit_wei=2**255 - 1, spent_wei=2**256 - 1, best_got_wei=10**60
    )
    board = replace(NOBODY, rows=(row,))
    assert await winners.keep(index, board, await stood(index))
    assert await winners.load_board(index, "24h") == board


async def test_a_board_takes_the_place_of_the_one_before_and_of_no_other_span(index: Connection) -> None:
    at = await stood(index)
    for span in ("24h", "7d"):
        assert await winners.keep(index, await count(index, span), at)
    assert await winners.keep(index, NOBODY, at)
    assert await winners.load_board(index, "24h") == NOBODY
    kept = await winners.load_board(index, "7d")
    assert kept is not None
    assert len(kept.rows) == 2


async def test_counting_keeps_no_sync_waiting(index: Connection, sync: Connection) -> None:
    async with index.transaction(isolation="repeatable_read", readonly=True):
        await winners.count_board(index, "24h", await newest(index))
        async with sync.transaction():
            for table in (
                "cursor",
                "closing",
                "position",
                "origin",
                "winner",
                "fair_token",
                "launch",
                "pool",
            ):
                await sync.execute(f"LOCK TABLE facts.{table} IN SHARE ROW EXCLUSIVE MODE")
            await sync.execute("UPDATE facts.cursor SET number = number")


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_a_board_of_blocks_that_are_gone_is_not_kept(index: Connection, is_replaced: bool) -> None:
    """Also where others have their numbers by now."""
    at, board = await stood(index), await count(index)
    won = Won().chain
    forked = won.fork(105, "another")
    writer = await begin_index(index, won.parent)
    await append_blocks(index, writer, won.blocks)
    await writer.rewind(index, won.blocks[-1].ref, forked.blocks[-1].ref)
    if is_replaced:
        for _ in range(5):
            forked.block()
        await append_blocks(index, writer, forked.blocks[-5:])
    assert not await winners.keep(index, board, at)
    assert await winners.load_board(index, "24h") is None
    assert await index.fetchval("SELECT count(*) FROM facts.fair_token") == 0


async def test_a_board_of_a_block_before_the_newest_is_kept(index: Connection) -> None:
    at, board = await stood(index), await count(index)
    won = Won().chain
    writer = await begin_index(index, won.parent)
    won.block()
    await append_blocks(index, writer, won.blocks)
    assert await winners.keep(index, board, at)
    assert await winners.counted_to(index) == {"24h": at.block.number}


async def test_a_board_is_kept_however_many_blocks_came_since(index: Connection) -> None:
    """A span of all takes minutes to count: its block is among those that are forgotten by then. That none
    was taken away is known."""
    board, won = await count(index), Won().chain
    writer = await begin_index(index, won.parent)
    await append_blocks(index, writer, won.blocks)
    at = await stood(index)
    await index.execute("DELETE FROM facts.block")
    won.block()
    await append_blocks(index, writer, won.blocks[-1:])
    assert await winners.keep(index, board, at)


async def test_a_board_is_not_kept_where_a_block_was_taken_away_and_its_own_is_forgotten(
    index: Connection,
) -> None:
    """It cannot be told whether its own was among them."""
    board, won = await count(index), Won().chain
    writer = await begin_index(index, won.parent)
    await append_blocks(index, writer, won.blocks)
    at = await stood(index)
    await index.execute("DELETE FROM facts.block")
    won.block()
    await append_blocks(index, writer, won.blocks[-1:])
    await writer.rewind(index, won.blocks[-1].ref, won.blocks[-2].ref)
    # The newest block is not the one that the board was counted at.
    await index.execute("UPDATE facts.cursor SET hash = $1", bytes(32))
    assert not await winners.keep(index, board, at)


async def test_a_board_of_an_index_that_was_forgotten_is_not_kept(index: Connection) -> None:
    """Numbers of addresses begin anew there: it would name others."""
    at, board = await stood(index), await count(index)
    await forget(index)
    assert not await winners.keep(index, board, at)
    await cursor.begin(index, 100, BlockRef(99, "0x" + "77" * 32, 1_760_000_000))
    assert not await winners.keep(index, board, at)


async def test_a_fork_just_then_is_waited_for(index: Connection, sync: Connection) -> None:
    """It takes away what it sees: a board written beside it would stay."""
    at, board = await stood(index), await count(index)
    await sync.execute("SET lock_timeout = 0")
    going_back = sync.transaction()
    await going_back.start()
    await cursor.advance(sync, at.block.hash, BlockRef(105, "0x" + "01" * 32, at.block.timestamp_s))
    await sync.execute("DELETE FROM facts.block WHERE number > 105")

    async def keep() -> bool:
        async with index.transaction():
            return await winners.keep(index, board, at)

    keeping = asyncio.create_task(keep())
    async with asyncio.timeout(WAIT_S):
        while not await sync.fetchval("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"):
            assert not keeping.done()
    await going_back.commit()
    assert not await keeping


async def test_a_fork_waits_until_a_board_is_kept_and_then_sees_it(
    index: Connection, sync: Connection
) -> None:
    at, board = await stood(index), await count(index)
    async with index.transaction():
        assert await winners.keep(index, board, at)
        with pytest.raises(asyncpg.LockNotAvailableError):
            await sync.execute("UPDATE facts.cursor SET number = 105")


async def test_what_there_is_to_count_from_is_known(index: Connection) -> None:
    at = await newest(index)
    first_s = Won().chain.blocks[0].ref.timestamp_s
    found = await winners.closings(index, "24h", at.timestamp_s)
    assert found == ClosingTotals(closings=7, tokens=2, young=1, fair=0, first_s=first_s)
    assert await winners.keep(index, await count(index), await stood(index))
    assert (await winners.closings(index, "24h", at.timestamp_s)).fair == 1
    assert (await winners.closings(index, "24h", at.timestamp_s - 2)).closings == 2
    assert (await winners.closings(index, "24h", at.timestamp_s + DAY_S)).closings == 0
    assert (await winners.closings(index, "all", at.timestamp_s + DAY_S)).young == 0


@pytest.mark.parametrize(("late_s", "rows"), [(0, 2), (1, 0)])
async def test_who_was_there_a_day_before_is_a_buyer_without_a_funder(
    index: Connection, late_s: int, rows: int
) -> None:
    """To the second."""
    await index.execute(
        "UPDATE facts.origin SET funder_id = NULL, first_s = (SELECT min(at_s) FROM facts.launch) - $1"
        " WHERE funder_id <> (SELECT min(deployer_id) FROM facts.launch)",
        DAY_S - late_s,
    )
    assert len((await count(index)).rows) == rows


@pytest.mark.parametrize(("apart_s", "rows"), [(DAY_S, 1), (-DAY_S, 1), (DAY_S + 1, 2), (-DAY_S - 1, 2)])
async def test_an_exchange_that_paid_the_winner_within_a_day_of_the_deployer_tells_they_are_kin(
    index: Connection, apart_s: int, rows: int
) -> None:
    """To the second; and kin is none of the twenty buyers."""
    ids = {row["address"]: row["id"] for row in await index.fetch("SELECT id, address FROM facts.address")}
    best, deployer = (ids[as_bytes(one)] for one in (BEST, DEPLOYER))
    exchange = 10**6
    await index.execute(
        "INSERT INTO facts.origin SELECT $1 + n, 1, 1, $1, 1, 1 FROM generate_series(1, 500) n", exchange
    )
    for wallet, at_s in ((best, 10**9), (deployer, 10**9 + apart_s)):
        await index.execute(
            "UPDATE facts.origin SET funder_id = $2, funded_number = 1, funded_s = $3 WHERE wallet_id = $1",
            wallet,
            exchange,
            at_s,
        )
    at = await newest(index)
    for least, expected in ((19, rows), (20, 0 if rows == 1 else 2)):
        fairness = Fairness(least_buyers=least)
        async with index.transaction(isolation="repeatable_read", readonly=True):
            board = await winners.count_board(index, "24h", at, fairness)
        assert len(board.rows) == expected
