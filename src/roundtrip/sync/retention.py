"""Deletes old trades and keeps their effect on positions."""

from datetime import timedelta

from roundtrip.store.index import cursor
from roundtrip.store.index.positions import fills_of_wallets
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

from .position_fold import fold_onto

_TRADE: partitions.Daily = "facts.trade"
ADDRESSES_AT_ONCE = 20_000


async def retire_trades(connection: Connection, before_s: int, contracts: Contracts) -> bool:
    """Folds the oldest day of trades into ``position_base`` and drops it, where it ended by ``before_s``;
    returns False where there is none. One transaction. The sync waits only for its last part, which holds
    the cursor: a concurrent fold of positions counts the day exactly once. Raises
    asyncpg.LockNotAvailableError when the table stays locked; the caller tries again later."""
    async with connection.transaction():
        days = await partitions.days(connection, _TRADE)
        if not days:
            return False
        first_s = partitions.start_s(days[0])
        end_s = first_s + partitions.DAY_S
        if end_s > before_s:
            return False
        last = await cursor.last_address(connection)
        for first in range(1, last + 1, ADDRESSES_AT_ONCE):
            wallets = first, first + ADDRESSES_AT_ONCE
            trades = fills_of_wallets(connection, *wallets, contracts, (first_s, end_s))
            await fold_onto(connection, "position_base", trades)
        await cursor.hold(connection)
        await cursor.trades_gone(connection, end_s)
        await partitions.drop_before(connection, _TRADE, days[0] + timedelta(days=1))
        return True
