"""Positions and closings made again from the trades, some wallets at a time, while the sync goes on."""

from collections.abc import AsyncIterator

import asyncpg

from roundtrip.domain.profit import folded
from roundtrip.store import chain
from roundtrip.store.positions import (
    Closed,
    clear_wallets,
    fills_of_wallets,
    positions_of_wallets,
    put_closings,
    put_positions,
)
from roundtrip.venues.base import Contracts

ADDRESSES_AT_ONCE = 5_000


async def rebuild(connection: asyncpg.Connection, contracts: Contracts) -> AsyncIterator[int]:
    """Gives, after each of its transactions, how many positions that one made again. The sync waits while one
    is under way, and then reads again what it remembered. Trades that are gone stay counted: they were folded
    into ``facts.position_base``, and closings from their time are left as they are."""
    last = await chain.last_address(connection)
    for first in range(1, last + 1, ADDRESSES_AT_ONCE):
        yield await _rebuild(connection, first, first + ADDRESSES_AT_ONCE, contracts)


async def _rebuild(connection: asyncpg.Connection, first: int, end: int, contracts: Contracts) -> int:
    async with connection.transaction():
        trades_from_s = await chain.hold(connection)
        if trades_from_s is None:
            return 0
        await clear_wallets(connection, first, end, trades_from_s)
        found = await positions_of_wallets(connection, first, end, "position_base")
        closed = []
        for key, fills in (await fills_of_wallets(connection, first, end, contracts)).items():
            found[key], closings = folded(found.get(key), fills)
            closed += [Closed(key, closing) for closing in closings]
        await put_positions(connection, found)
        await put_closings(connection, closed)
    return len(found)
