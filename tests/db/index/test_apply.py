"""Batches into a real database: all of one or nothing of it, by one writer at a time."""

import asyncio
import gc
import tracemalloc
from datetime import date

import asyncpg
import pytest

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.store.index import cursor, curves, facts, insiders, liquidity, rewind
from roundtrip.store.server import jobs, partitions
from roundtrip.store.server.rows import Connection
from roundtrip.sync import apply
from roundtrip.sync import batch as fold_context
from roundtrip.sync.apply import CursorMoved, Writer
from support.tables import all_rows, append_blocks, begin_index, tables
from support.told_blocks import (
    USDG,
    V3_POSITIONS,
    WETH,
    Chain,
    bought,
    bought_back,
    launched,
    moved,
    nft_moved,
    sent,
    sold,
    v3_at,
    v3_minted,
    v3_opened,
    v3_swap,
    v4_at,
    v4_opened,
    v4_swap,
)
from unit.sync.telling import ALICE, BOB, CURVE, DEV, HIGH, LOW, NVDA
from unit.venues.logs import NETWORK
from unit.venues.network import address

WAIT_S = 10
CHEAP, DEAR = bought(CURVE, ALICE, ALICE, 7, 500), sold(CURVE, ALICE, ALICE, 9, 500)
TURNED = v4_at(HIGH, NVDA)


def story() -> Chain:
    """Blocks 100 to 103: something for every table."""
    found = Chain()
    deep = v3_at(WETH, USDG)
    found.block(sent(v4_opened(HIGH, NVDA), v3_opened(WETH, USDG), v3_opened(LOW, WETH), sender=BOB))
    found.block(
        sent(launched(HIGH, CURVE, DEV), CHEAP), sent(v3_swap(deep, 5, -7, 1 << 80), to=BOB, value_wei=5)
    )
    found.block(
        sent(v3_minted(v3_at(LOW, WETH), DEV, 9, 1, 2), moved(HIGH, CURVE, ALICE, 500)),
        sent(nft_moved(V3_POSITIONS, 7, ALICE, BOB)),
        sent(DEAR, bought_back(CURVE, 3), moved(HIGH, DEV, BOB, 5)),
    )
    found.block(sent(launched(LOW, address(0x10C), DEV, NVDA), v4_swap(TURNED, -7, 5)), sent(CHEAP))
    return found


async def test_every_table_is_written(index: Connection) -> None:
    blocks = story()
    await append_blocks(index, await begin_index(index, blocks.parent), blocks.blocks, [1])
    assert [name for name, rows in (await tables(index)).items() if not rows] == ["launch_step"]
    assert await cursor.cursor(index) == cursor.Cursor(100, blocks.blocks[-1].ref)
    wished = await index.fetch("SELECT key FROM jobs.job WHERE kind = 'token'")
    assert {HIGH, LOW, WETH} <= {row["key"] for row in wished}


async def test_blocks_that_do_not_follow_change_nothing(index: Connection) -> None:
    blocks = story()
    writer = await begin_index(index, blocks.parent)
    await append_blocks(index, writer, blocks.blocks[:2])
    before = await tables(index)
    for wrong in (blocks.blocks[:2], blocks.blocks[3:], blocks.blocks[:1]):
        with pytest.raises(CursorMoved):
            await append_blocks(index, writer, wrong)
        assert await tables(index) == before
    await append_blocks(index, writer, blocks.blocks[2:])
    await begin_index(index, blocks.parent)
    await index.execute("DELETE FROM facts.cursor")
    with pytest.raises(CursorMoved):
        await append_blocks(index, writer, blocks.blocks)


STEPS = (
    (facts, "intern"), (facts, "put_pools"), (facts, "reorient_pools"), (facts, "put_launches"),
    (partitions, "ensure"), (facts, "put_trades"), (facts, "put_liquidity"), (facts, "put_transfers"),
    (liquidity, "fold_positions"), (facts, "put_position_transfers"), (facts, "put_states"),
    (liquidity, "forget_states"),
    (facts, "put_prices"), (facts, "put_origins"), (apply, "positions"), (apply, "put_positions"),
    (apply, "put_closings"), (curves, "put_buybacks"), (curves, "fold"), (insiders, "put"),
    (jobs, "enqueue_many"), (cursor, "keep_blocks"), (facts, "announce"),
)  # fmt: skip


@pytest.mark.parametrize(("module", "name"), STEPS, ids=[name for _, name in STEPS])
async def test_a_batch_that_fails_anywhere_leaves_nothing_and_is_written_when_tried_again(
    index: Connection, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    """Broken after it did its work, so that what it did is taken back, too."""
    blocks = story()
    await append_blocks(index, await begin_index(index, blocks.parent), blocks.blocks)
    expected = await tables(index)
    writer = await begin_index(index, blocks.parent)
    await append_blocks(index, writer, blocks.blocks[:1])
    before, works, broken = await tables(index), getattr(module, name), []

    async def breaks(*arguments: object) -> object:
        broken.append(await works(*arguments))
        raise OSError("away")

    with monkeypatch.context() as patch:
        patch.setattr(module, name, breaks)
        for _ in range(2):
            with pytest.raises(OSError, match="away"):
                await append_blocks(index, writer, blocks.blocks[1:])
    assert broken
    assert await tables(index) == before
    assert await index.fetchval("SELECT count(*) FROM jobs.job") == 2
    await append_blocks(index, writer, blocks.blocks[1:])
    assert await tables(index) == expected


@pytest.mark.parametrize(("module", "name"), [(rewind, "take_away"), (apply, "refold"), (facts, "announce")])
async def test_a_rewind_that_fails_leaves_everything(
    index: Connection, monkeypatch: pytest.MonkeyPatch, module: object, name: str
) -> None:
    blocks = story()
    writer = await begin_index(index, blocks.parent)
    await append_blocks(index, writer, blocks.blocks)
    before, works = await tables(index), getattr(module, name)

    async def breaks(*arguments: object) -> None:
        await works(*arguments)
        raise OSError("away")

    at, to = blocks.blocks[-1].ref, blocks.blocks[0].ref
    with monkeypatch.context() as patch:
        patch.setattr(module, name, breaks)
        with pytest.raises(OSError, match="away"):
            await writer.rewind(index, at, to)
    assert await tables(index) == before
    with pytest.raises(CursorMoved):
        await writer.rewind(index, blocks.blocks[1].ref, to)
    assert await tables(index) == before
    await writer.rewind(index, at, to)
    assert await cursor.cursor(index) == cursor.Cursor(100, to)
    await append_blocks(index, writer, blocks.blocks[1:])
    assert await tables(index) == before


async def test_of_two_writers_the_second_is_told_and_changes_nothing(index: Connection, url: str) -> None:
    blocks, other = story(), await asyncpg.connect(url)
    writer, second = await begin_index(index, blocks.parent), Writer(NETWORK)
    both = await asyncio.wait_for(
        asyncio.gather(
            append_blocks(index, writer, blocks.blocks),
            append_blocks(other, second, blocks.blocks),
            return_exceptions=True,
        ),
        WAIT_S,
    )
    await other.close()
    assert [type(one) for one in both if one is not None] == [CursorMoved]
    answer = await tables(index)
    await append_blocks(index, await begin_index(index, blocks.parent), blocks.blocks)
    assert await tables(index) == answer


async def test_two_writers_that_take_turns_make_one_index(index: Connection) -> None:
    """Only by mistake: each remembers what was before the other wrote."""
    blocks = story()
    for _ in range(3):
        blocks.block(sent(CHEAP, DEAR), sent(v4_swap(TURNED, -7, 5), sender=DEV))
    await append_blocks(index, await begin_index(index, blocks.parent), blocks.blocks)
    expected = await tables(index)
    writers = await begin_index(index, blocks.parent), Writer(NETWORK)
    for turn, block in enumerate(blocks.blocks):
        await append_blocks(index, writers[turn % 2], [block])
    assert await tables(index) == expected


async def test_who_changed_what_was_folded_is_heard_of(index: Connection) -> None:
    blocks = story()
    writer = await begin_index(index, blocks.parent)
    await append_blocks(index, writer, blocks.blocks)
    async with index.transaction():
        await cursor.lock_for_refold(index)
        await index.execute("UPDATE facts.position SET buys = 70")
    blocks.block(sent(CHEAP))
    await append_blocks(index, writer, blocks.blocks[4:])
    assert 71 in [row["buys"] for row in await all_rows(index, "position", "1")]


async def test_pools_that_were_read_long_ago_turn_when_their_quote_becomes_money(index: Connection) -> None:
    blocks = story()
    writer = await begin_index(index, blocks.parent)
    await append_blocks(index, writer, blocks.blocks[:3])
    writer.forget()
    # Nothing of this batch but the launch speaks of the pool.
    blocks.blocks.pop()
    blocks.block(sent(launched(LOW, address(0x10C), DEV, NVDA)))
    await append_blocks(index, writer, blocks.blocks[3:])
    (pool,) = (await cursor.pools_at(index, [TURNED], cursor.Ids())).values()
    assert (pool.token, pool.quote, pool.in_money_from) == (HIGH, NVDA, 103)


@pytest.mark.parametrize("quote", [NVDA, address(0xF5 << 140)])
@pytest.mark.parametrize("token", [LOW, HIGH])
async def test_a_quote_whose_launch_is_gone_is_no_money_any_more(
    index: Connection, token: Address, quote: Address
) -> None:
    at, blocks = v4_at(token, quote), Chain()
    blocks.block(sent(v4_opened(token, quote)))
    writer = await begin_index(index, blocks.parent)
    await append_blocks(index, writer, blocks.blocks)
    before = await tables(index)
    blocks.block(sent(launched(address(0x74), CURVE, DEV, quote), v4_swap(at, -7, 5)))
    await append_blocks(index, writer, blocks.blocks[1:])
    assert (await tables(index))["launch_quote"]
    await writer.rewind(index, blocks.blocks[1].ref, blocks.blocks[0].ref)
    assert await tables(index) == before
    other = blocks.fork(100, "other")
    other.block(sent(v4_swap(at, -7, 5)))
    await append_blocks(index, writer, other.blocks[1:])
    assert (await tables(index))["trade"] == ()


async def test_a_fork_may_go_back_to_before_the_first_block(index: Connection) -> None:
    blocks = story()
    writer = await begin_index(index, blocks.parent)
    empty = await tables(index)
    await append_blocks(index, writer, blocks.blocks)
    await writer.rewind(index, blocks.blocks[-1].ref, blocks.parent)
    assert await tables(index) == empty


async def test_a_night_has_two_partitions(index: Connection) -> None:
    blocks = Chain()
    midnight_s = (blocks.parent.timestamp_s // partitions.DAY_S + 1) * partitions.DAY_S
    writer = await begin_index(index, blocks.parent)
    first = [launched(HIGH, CURVE, DEV), v3_opened(LOW, WETH)]
    rest = [CHEAP, moved(HIGH, CURVE, ALICE, 5), v3_minted(v3_at(LOW, WETH), DEV, 9, 1, 2)]
    blocks.block(sent(*first, *rest), after_s=midnight_s - 1 - blocks.parent.timestamp_s)
    blocks.block(sent(*rest), after_s=1)
    blocks.block(sent(*rest), after_s=3 * partitions.DAY_S)
    await append_blocks(index, writer, blocks.blocks)
    for table in partitions.DAILY:
        made = await partitions.days(index, table)
        held = [
            (day, await index.fetchval(f"SELECT count(*) FROM {partitions.partition_of(table, day)}"))  # noqa: S608
            for day in made
        ]
        days = [date(2025, 10, 9), date(2025, 10, 10), date(2025, 10, 13)]
        assert [one for one in held if one[1]] == [(day, 1) for day in days]


async def test_a_batch_is_told_of_when_it_is_there(index: Connection, url: str) -> None:
    blocks, listener, heard = story(), await asyncpg.connect(url), asyncio.Queue[str]()
    await listener.add_listener("facts", lambda *told: heard.put_nowait(str(told[-1])))
    writer = await begin_index(index, blocks.parent)
    await append_blocks(index, writer, blocks.blocks)
    assert await asyncio.wait_for(heard.get(), WAIT_S) == "103"
    await writer.rewind(index, blocks.blocks[-1].ref, blocks.blocks[0].ref)
    assert await asyncio.wait_for(heard.get(), WAIT_S) == "100"
    await listener.close()


async def test_old_transfers_are_left_out(index: Connection) -> None:
    blocks = Chain()
    writer = await begin_index(index, blocks.parent)
    blocks.block(sent(launched(HIGH, CURVE, DEV), moved(HIGH, CURVE, ALICE, 5)))
    blocks.block(sent(moved(HIGH, CURVE, ALICE, 6)))
    newest_s = blocks.blocks[1].ref.timestamp_s + apply.TRANSFERS_KEPT_S
    assert await writer.append(index, blocks.blocks, newest_s) == 3
    assert [row["amount_raw"] for row in await all_rows(index, "transfer", "1")] == [6]


MEMORIES = (
    "roundtrip.sync.batch.MAX_REMEMBERED", "roundtrip.sync.apply.MAX_POSITIONS",
    "roundtrip.store.index.cursor.MAX_IDS",
)  # fmt: skip


@pytest.mark.parametrize("small", [MEMORIES, *((one,) for one in MEMORIES)])
async def test_memories_stay_small_and_lose_nothing(
    index: Connection, monkeypatch: pytest.MonkeyPatch, small: tuple[str, ...]
) -> None:
    blocks = story()
    for _ in range(2):
        blocks.block(sent(CHEAP, v4_swap(TURNED, -7, 5)), sent(v3_swap(v3_at(WETH, USDG), 5, -7, 1 << 80)))
    await append_blocks(index, await begin_index(index, blocks.parent), blocks.blocks)
    expected = await tables(index)
    for one in small:
        monkeypatch.setattr(one, 1)
    writer = await begin_index(index, blocks.parent)
    await append_blocks(index, writer, blocks.blocks, [1])
    assert await tables(index) == expected


async def test_all_that_is_remembered_of_wallets_has_room_in_64_mb(index: Connection) -> None:
    """Each that trades once has a position, a number, and stands among those that are met and funded."""
    blocks, wallets = story(), 600

    async def traded(first: int, end: int) -> None:
        some = [address(0xA_0000 + number) for number in range(first, end)]
        blocks.block(*(sent(bought(CURVE, one, one, 10**18 + 7, 10**24 + 7), sender=one) for one in some))
        blocks.block(*(sent(sold(CURVE, one, one, 10**17 + 7, 10**23 + 7), sender=one) for one in some))
        await append_blocks(index, writer, blocks.blocks[-2:])

    writer = await begin_index(index, blocks.parent)
    await append_blocks(index, writer, blocks.blocks)
    await traded(0, 50)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await traded(50, 50 + wallets)
        del blocks.blocks[:]
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    bytes_a_wallet = (after - before) / wallets
    most = max(cursor.MAX_IDS, fold_context.MAX_REMEMBERED, apply.MAX_POSITIONS)
    print(f"{bytes_a_wallet:.0f} bytes a wallet")
    assert 500 < bytes_a_wallet < 64 * 2**20 / most


async def test_eth_is_told_by_one_number_everywhere(index: Connection) -> None:
    """The zero address is interned as any other."""
    blocks = story()
    await append_blocks(index, await begin_index(index, blocks.parent), blocks.blocks)
    assert await index.fetchval(
        "SELECT count(*) FROM facts.address WHERE address = $1", bytes.fromhex(ZERO_ADDRESS[2:])
    ) == 1  # fmt: skip
