"""Curves at their edges, written by hand: what a made-up chain seldom does."""

from roundtrip.store.index import curves
from roundtrip.store.server.rows import Connection
from support.tables import all_rows, append_blocks, begin_index
from support.told_blocks import Chain, bought, bought_back, launched, sent
from unit.sync.telling import ALICE, CURVE, DEV, HIGH, LOW
from unit.venues.network import address

OTHER = address(0xC04F)


async def test_equal_moves_are_each_taken_back(index: Connection) -> None:
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), bought_back(CURVE, 50)))
    # The buy brings 99, of 100 that were paid.
    same = bought_back(CURVE, 99), bought_back(CURVE, 99), bought(CURVE, ALICE, ALICE, 100, 7)
    first, last = chain.blocks[0].ref, chain.block(sent(*same)).ref
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks)
    assert [row["raised_raw"] for row in await all_rows(index, "curve", "1")] == [50 + 3 * 99]
    await writer.rewind(index, last, first)
    assert [row["raised_raw"] for row in await all_rows(index, "curve", "1")] == [50]


async def test_the_first_block_that_goes_takes_its_curves_along(index: Connection) -> None:
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV)))
    chain.block(sent(launched(LOW, OTHER, DEV)))
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks)
    kept, gone = await all_rows(index, "curve", "pool_id")
    assert kept["last_s"] == chain.blocks[0].ref.timestamp_s
    assert gone["last_s"] == chain.blocks[1].ref.timestamp_s
    await writer.rewind(index, chain.blocks[1].ref, chain.blocks[0].ref)
    assert await all_rows(index, "curve", "pool_id") == [kept]


async def test_of_equally_full_curves_the_last_comes_first_and_stays_until_its_second_is_over(
    index: Connection,
) -> None:
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV)))
    newest = chain.block(sent(launched(LOW, OTHER, DEV))).ref
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)

    async def shown(after_s: int, most: int) -> list[str]:
        return [one.curve for one in await curves.fullest(index, after_s, most)]

    assert await shown(0, 2) == [OTHER, CURVE]
    assert await shown(0, 1) == [OTHER]
    assert await shown(newest.timestamp_s - 1, 2) == [OTHER]
    assert await shown(newest.timestamp_s, 2) == []
