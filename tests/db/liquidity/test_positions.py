"""Positions out of the index: what they are, who holds them, and what is left out."""

from types import SimpleNamespace
from typing import Any, cast

from roundtrip.domain.base.types import BPS, ZERO_ADDRESS, Address
from roundtrip.domain.liquidity.depth import (
    HeldPosition,
    PoolDepth,
    PoolPositions,
    Position,
    TokenDepth,
    TokenPositions,
    Withdrawal,
)
from roundtrip.domain.liquidity.text import describe
from roundtrip.services.engine.candidates import venue_of
from roundtrip.services.liquidity.handler import present_venue
from roundtrip.services.liquidity.position_reader import MAX_POOLS, MAX_POSITIONS
from roundtrip.store.liquidity.positions import read_positions
from roundtrip.store.server.rows import Connection
from support.tables import append_blocks, begin_index
from support.told_blocks import (
    HOOK,
    USDG,
    V3_POSITIONS,
    V4_POSITIONS,
    WETH,
    Chain,
    launched,
    nft_moved,
    sent,
    v3_at,
    v3_burnt,
    v3_minted,
    v3_numbered,
    v3_opened,
    v3_priced,
    v3_swap,
    v4_at,
    v4_moved,
    v4_opened,
    v4_swap,
)
from unit.sync.telling import ALICE, BOB, CURVE, DEV, HIGH, LOW, NVDA
from unit.venues.logs import NETWORK, STRANGER

AT, V4 = v3_at(LOW, WETH), v4_at(LOW, ZERO_ADDRESS)
Q96 = 1 << 96
_RUN = SimpleNamespace(means=SimpleNamespace(contracts=NETWORK))


async def read(index: Connection, token: Address = LOW, pools: int = 9, positions: int = 9) -> TokenPositions:
    found = await read_positions(index, NETWORK, token, pools, positions)
    assert found is not None
    return found


async def only(index: Connection, token: Address = LOW, positions: int = 9) -> PoolPositions:
    (pool,) = (await read(index, token, positions=positions)).pools
    return pool


def opened() -> Chain:
    """A v3 pool of the token with a position of the manager's and one of a wallet's own."""
    chain = Chain()
    chain.block(sent(v3_opened(LOW, WETH), v3_priced(AT, Q96)))
    chain.block(
        sent(
            v3_minted(AT, V3_POSITIONS, 900, 1, 2),
            nft_moved(V3_POSITIONS, 7, ZERO_ADDRESS, ALICE),
            v3_numbered(7, 900, 1, 2),
        ),
        sent(v3_minted(AT, BOB, 50, 1, 2)),
    )
    return chain


async def test_an_index_without_a_block_answers_nothing(index: Connection) -> None:
    await begin_index(index, Chain().parent)
    await index.execute("DELETE FROM facts.cursor")
    assert await read_positions(index, NETWORK, LOW, 9, 9) is None


async def test_a_token_that_nobody_met_has_no_pools(index: Connection) -> None:
    chain = opened()
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    found = await read(index, STRANGER)
    assert (found.block, found.pools) == (chain.blocks[-1].ref, ())


async def test_a_position_is_its_nfts_holders_or_its_owners(index: Connection) -> None:
    chain = opened()
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks)
    pool = await only(index)
    assert (pool.pool.at, pool.pool.token, pool.pool.quote, pool.is_whole) == (AT, LOW, WETH, True)
    assert (pool.tick, pool.active_liquidity, pool.left_out) == (0, 950, 0)
    mine, own = Position(V3_POSITIONS, 7, -60, 60, 900, ALICE), Position(BOB, 0, -60, 60, 50, BOB)
    assert pool.positions == (mine, own)
    # Given to another, and a part of it taken away; what a stranger's log says is nothing.
    chain.block(sent(nft_moved(V3_POSITIONS, 7, ALICE, DEV), nft_moved(STRANGER, 7, DEV, BOB)))
    chain.block(sent(v3_burnt(AT, V3_POSITIONS, 300, 1, 2), v3_numbered(7, 300, 1, 2, adds=False)))
    await append_blocks(index, writer, chain.blocks[2:])
    pool = await only(index)
    assert pool.positions == (Position(V3_POSITIONS, 7, -60, 60, 600, DEV, ALICE), own)
    assert pool.active_liquidity == 650


async def test_a_v4_position_has_its_salt_for_a_number(index: Connection) -> None:
    chain = Chain()
    chain.block(sent(v4_opened(LOW, ZERO_ADDRESS), nft_moved(V4_POSITIONS, 3, ZERO_ADDRESS, ALICE)))
    chain.block(sent(v4_moved(V4, V4_POSITIONS, 70, 3), v4_moved(V4, BOB, 60, 2**256 - 1)))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    pool = await only(index)
    assert pool.positions == (
        Position(V4_POSITIONS, 3, -600, 600, 70, ALICE),
        Position(BOB, 2**256 - 1, -600, 600, 60, BOB),
    )
    assert (pool.tick, pool.active_liquidity) == (0, 130)


async def test_without_its_number_or_its_nfts_transfer_the_holder_is_not_known(index: Connection) -> None:
    chain = opened()
    chain.block(sent(v3_minted(AT, V3_POSITIONS, 20, 1, 2)))
    chain.block(sent(v3_minted(AT, V3_POSITIONS, 10, 1, 2), v3_numbered(8, 10, 1, 2)))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    found = {one.number: one.holder for one in (await only(index)).positions if one.owner == V3_POSITIONS}
    assert found == {7: ALICE, 0: None, 8: None}


async def test_active_positions_come_first_and_the_rest_is_counted(index: Connection) -> None:
    chain = Chain()
    chain.block(sent(v4_opened(LOW, ZERO_ADDRESS)))
    chain.block(sent(*(v4_moved(V4, BOB, 10 + salt, salt) for salt in range(5))))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    # The largest of all lies out of range.
    await index.execute("UPDATE facts.lp_position SET tick_lower = 60 WHERE number = 4")
    pool = await only(index, positions=2)
    assert [one.number for one in pool.positions] == [3, 2]
    assert (pool.left_out, pool.left_out_liquidity) == (3, 10 + 11 + 14)


async def test_of_ten_thousand_positions_the_largest_in_range_are_read_and_the_rest_is_unknown(
    index: Connection,
) -> None:
    count, wide = 10_000, 50
    chain = Chain()
    chain.block(sent(v4_opened(LOW, ZERO_ADDRESS)))
    chain.block(sent(*(v4_moved(V4, BOB, 1000 + salt, salt) for salt in range(count))))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    # The largest of all lie out of range.
    await index.execute("UPDATE facts.lp_position SET tick_lower = 60 WHERE number >= $1", count - wide)
    (pool,) = (await read(index, LOW, MAX_POOLS, MAX_POSITIONS)).pools
    salts = range(count - wide - 1, count - wide - 1 - MAX_POSITIONS, -1)
    assert [one.number for one in pool.positions] == list(salts)
    assert pool.left_out == count - MAX_POSITIONS
    # What a reader makes of it: all that it read is free, nobody has the rest.
    active, known = sum(1000 + salt for salt in range(count - wide)), sum(1000 + salt for salt in salts)
    held = tuple(HeldPosition(one, True, "free", Withdrawal(BOB)) for one in pool.positions)
    depth = TokenDepth.of([PoolDepth(venue_of(pool.pool, NETWORK), active, 10**18, held, pool.left_out)])
    free_bps = known * BPS // active
    assert 0 < free_bps < 500
    assert [depth.totals_bps[one] for one in ("free", "unknown")] == [free_bps, BPS - free_bps - 1]
    assert f"We could not find out who can withdraw {(BPS - free_bps - 1) / 100:.2f} %" in " ".join(
        describe(depth, None, {})
    )
    venue = present_venue(depth.pools[0], depth, cast(Any, SimpleNamespace(run=_RUN)), {})
    assert (venue.known_bps, venue.left_out, len(venue.positions)) == (free_bps, pool.left_out, MAX_POSITIONS)


async def test_a_curve_is_a_pool_without_positions_and_stays_when_there_are_many(index: Connection) -> None:
    """The launch's own places come first, then those that changed last."""
    chain, wide = Chain(), v4_at(HIGH, USDG)
    chain.block(sent(launched(HIGH, CURVE, DEV)))
    chain.block(sent(v3_opened(HIGH, WETH), v4_opened(HIGH, USDG), v4_opened(HIGH, ZERO_ADDRESS, HOOK)))
    chain.block(sent(v4_swap(wide, -5, 7, tick=9)))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    curve, newest = (await read(index, HIGH, pools=2)).pools
    assert (curve.pool.kind, curve.pool.at, curve.positions) == ("launchpad_curve", CURVE, ())
    assert (newest.pool.at, newest.tick, newest.active_liquidity) == (wide, 9, 10**18)
    assert len((await read(index, HIGH)).pools) == 4


async def test_a_pool_of_before_the_index_or_of_before_its_money_is_not_whole(index: Connection) -> None:
    chain, at = opened(), v4_at(HIGH, NVDA)
    chain.block(sent(v4_opened(HIGH, NVDA)), sent(v4_moved(at, DEV, 40)))
    chain.block(sent(launched(LOW, CURVE, DEV, NVDA)), sent(v4_moved(at, DEV, -15), v4_moved(at, BOB, 1)))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    pool = await only(index, HIGH)
    # More was taken out than is known to have been put in.
    assert (pool.is_whole, pool.tick, pool.positions) == (False, None, (Position(BOB, 0, -600, 600, 1, BOB),))
    assert [one.is_whole for one in (await read(index)).pools] == [True, True]
    await index.execute("UPDATE facts.cursor SET positions_from = 101")
    assert [one.is_whole for one in (await read(index)).pools if one.pool.at == AT] == [False]


async def test_an_nft_that_moved_in_a_fork_is_with_whom_it_was(index: Connection) -> None:
    chain = opened()
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks)
    before, to = await read(index), chain.blocks[-1].ref
    forked = chain.fork(to.number, "fork")
    chain.block(sent(nft_moved(V3_POSITIONS, 7, ALICE, BOB)))
    chain.block(sent(v3_burnt(AT, V3_POSITIONS, 900, 1, 2), v3_numbered(7, 900, 1, 2, adds=False)))
    chain.block(sent(v3_swap(AT, 5, -7, tick=500)))
    await append_blocks(index, writer, chain.blocks[2:])
    pool = await only(index)
    assert (pool.tick, pool.positions) == (500, (Position(BOB, 0, -60, 60, 50, BOB),))
    await writer.rewind(index, chain.blocks[-1].ref, to)
    assert await read(index) == before
    forked.block(sent(nft_moved(V3_POSITIONS, 7, ALICE, DEV)))
    await append_blocks(index, writer, forked.blocks[2:])
    assert (await only(index)).positions[0].holder == DEV


async def test_a_state_that_a_deep_fork_would_need_is_not_guessed(index: Connection) -> None:
    """The pool changed in blocks of which only the last state is kept."""
    chain = opened()
    chain.block(sent(v3_swap(AT, 5, -7, tick=5)))
    chain.block(sent(v3_swap(AT, 5, -7, tick=6)))
    writer = await begin_index(index, chain.parent)
    await append_blocks(index, writer, chain.blocks)
    await index.execute("DELETE FROM facts.pool_state WHERE block_number < 103")
    await index.execute("DELETE FROM facts.block WHERE number < 103")
    await writer.rewind(index, chain.blocks[-1].ref, chain.blocks[1].ref)
    pool = await only(index)
    assert (pool.tick, pool.active_liquidity, len(pool.positions)) == (None, None, 2)
