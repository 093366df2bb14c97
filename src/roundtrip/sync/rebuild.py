"""Rebuilds positions and closings from the trades, in ranges of wallets, while the sync runs."""

from collections.abc import AsyncIterator

from roundtrip.store.index import cursor
from roundtrip.store.index.positions import count_of_wallets, fills_of_wallets, reset_wallets
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

from .position_fold import fold_onto

ADDRESSES_AT_ONCE = 5_000


async def rebuild(connection: Connection, contracts: Contracts) -> AsyncIterator[int]:
    """Yields the number of rebuilt positions after each transaction. The sync waits during a transaction, and
    then clears its caches. Pruned trades still count: they were folded into ``facts.position_base``, and
    closings from their time are left as they are."""
    last = await cursor.last_address(connection)
    for first in range(1, last + 1, ADDRESSES_AT_ONCE):
        yield await _rebuild(connection, first, first + ADDRESSES_AT_ONCE, contracts)


async def _rebuild(connection: Connection, first: int, end: int, contracts: Contracts) -> int:
    async with connection.transaction():
        trades_from_s = await cursor.hold(connection)
        if trades_from_s is None:
            return 0
        await reset_wallets(connection, first, end, trades_from_s)
        trades = fills_of_wallets(connection, first, end, contracts)
        await fold_onto(connection, "position", trades, puts_closings=True)
        return await count_of_wallets(connection, first, end)
