"""Trades folded as they are read: any number of one key, a few in memory, and the same positions."""

import tracemalloc
from collections.abc import Awaitable, Callable

import pytest

from roundtrip.store.index import positions
from roundtrip.store.index.positions import PositionKey
from roundtrip.store.server.partitions import DAY_S
from roundtrip.store.server.rows import Connection
from roundtrip.sync.apply import refold
from roundtrip.sync.position_fold import rebuild, retire_trades
from support.tables import append_blocks, begin_index, tables
from support.told_blocks import Chain, MadeUp, bought, launched, sent
from unit.sync.telling import ALICE, BOB, CURVE, DEV, HIGH
from unit.venues.logs import NETWORK

TRADES = 20_000
MAX_BYTES = 6_000_000
"""All of them at once are 16 MB and more, some at a time 3."""


async def rebuilt(connection: Connection) -> None:
    assert [made async for made in rebuild(connection, NETWORK)]


async def refolded(connection: Connection) -> None:
    async with connection.transaction():
        keys = [
            PositionKey(*row)
            for row in await connection.fetch("SELECT wallet_id, token_id FROM facts.position")
        ]
        await refold(connection, keys, NETWORK)


async def retired(connection: Connection) -> None:
    newest_s = await connection.fetchval("SELECT max(at_s) FROM facts.trade")
    while await retire_trades(connection, newest_s + DAY_S, NETWORK):
        pass


Way = Callable[[Connection], Awaitable[None]]
WAYS: dict[str, Way] = {"rebuild": rebuilt, "refold": refolded, "retire": retired}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at_once", [1, 2, 3, 7])
async def test_however_few_are_read_at_once_positions_are_the_same(
    index: Connection, monkeypatch: pytest.MonkeyPatch, way: str, at_once: int
) -> None:
    chain = Chain()
    MadeUp(at_once).grow(chain, 90)
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    before = await tables(index)
    assert len(before["trade"]) > 30
    monkeypatch.setattr(positions, "TRADES_AT_ONCE", at_once)
    await WAYS[way](index)
    after = await tables(index)
    assert [after["position"], after["closing"]] == [before["position"], before["closing"]]
    if way == "retire":
        await rebuilt(index)
        assert (await tables(index))["position"] == before["position"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_bot_with_many_trades_of_one_token_takes_little_memory(index: Connection, way: str) -> None:
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), bought(CURVE, ALICE, ALICE, 7, 500), sender=BOB))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    await index.execute(
        "INSERT INTO facts.trade (at_s, block_number, log_index, pool_id, trader_id, buys, token_raw,"
        " quote_raw, tx_hash) SELECT at_s, block_number + n, 0, pool_id, trader_id, n % 2 = 0, 10 ^ 18,"
        " 10 ^ 18, tx_hash FROM facts.trade, generate_series(1, $1::int) AS n",
        TRADES,
    )
    tracemalloc.start()
    try:
        await WAYS[way](index)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    table = "position_base" if way == "retire" else "position"
    assert await index.fetchval(f"SELECT max(buys + sells) FROM facts.{table}") == TRADES + 1  # noqa: S608
    assert peak_bytes < MAX_BYTES


async def test_what_was_folded_of_a_day_that_is_gone_is_gone_on_from(index: Connection) -> None:
    """Also where no trade came after it."""
    chain = Chain()
    chain.block(sent(launched(HIGH, CURVE, DEV), bought(CURVE, ALICE, ALICE, 7, 500), sender=BOB))
    await append_blocks(index, await begin_index(index, chain.parent), chain.blocks)
    before = await tables(index)
    await retired(index)
    for way in (refolded, rebuilt):
        await way(index)
        assert (await tables(index))["position"] == before["position"]
