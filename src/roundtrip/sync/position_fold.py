"""Folds a stream of trades onto stored positions. Rebuilds positions and closings from the trades, in
ranges of wallets, while the sync runs. Deletes old trades and keeps their effect on positions."""

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import groupby
from operator import itemgetter

from roundtrip.domain.market.profit import WalletPosition, fold_fills
from roundtrip.store.index import cursor
from roundtrip.store.index.positions import (
    PositionFill,
    PositionKey,
    count_of_wallets,
    fills_of_wallets,
    positions,
    put_closings,
    put_positions,
    reset_wallets,
)
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts


async def fold_onto(
    connection: Connection,
    table: str,
    trades: AsyncIterator[list[PositionFill]],
    *,
    puts_closings: bool = False,
) -> None:
    """Folds trades onto the stored positions of their wallets. ``table``: position or position_base.
    ``trades``: chunks, ordered by key, then by the chain, all later than the stored position. Only one chunk
    is in memory at a time, and other tasks run between chunks. ``puts_closings``: closings are written, too;
    none of them may be stored already."""
    # The last key of a chunk may continue in the next one: it is written once all of it is folded.
    open_key: PositionKey | None = None
    folded: dict[PositionKey, WalletPosition] = {}
    async for chunk in trades:
        folded.update(await positions(connection, {key for key, _ in chunk} - folded.keys(), table))
        closed = []
        for key, of_key in groupby(chunk, itemgetter(0)):
            folded[key], closings = fold_fills(folded.get(key), (fill for _, fill in of_key))
            closed += [(key, closing) for closing in closings]
            open_key = key
        if puts_closings:
            await put_closings(connection, closed)
        await put_positions(
            connection, {key: position for key, position in folded.items() if key != open_key}, table
        )
        folded = {key: position for key, position in folded.items() if key == open_key}
    await put_positions(connection, folded, table)


REBUILT_IDS_AT_ONCE = 5_000
"""Ids of addresses, whose trades of all days are folded in one transaction, for which the sync waits."""


async def rebuild(connection: Connection, contracts: Contracts) -> AsyncIterator[int]:
    """Yields the number of rebuilt positions after each transaction. The sync waits during a transaction, and
    then clears its caches. Pruned trades still count: they were folded into ``facts.position_base``, and
    closings from their time are left as they are."""
    last = await cursor.highest_address_id(connection)
    for first in range(1, last + 1, REBUILT_IDS_AT_ONCE):
        yield await _rebuild(connection, first, first + REBUILT_IDS_AT_ONCE, contracts)


async def _rebuild(connection: Connection, first: int, end: int, contracts: Contracts) -> int:
    async with connection.transaction():
        trades_from_s = await cursor.lock_for_refold(connection)
        if trades_from_s is None:
            return 0
        await reset_wallets(connection, first, end, trades_from_s)
        trades = fills_of_wallets(connection, first, end, contracts)
        await fold_onto(connection, "position", trades, puts_closings=True)
        return await count_of_wallets(connection, first, end)


_TRADE: partitions.Daily = "facts.trade"
RETIRED_IDS_AT_ONCE = 20_000
"""Ids of addresses, whose trades of one day are folded with one query."""


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
        last = await cursor.highest_address_id(connection)
        for first in range(1, last + 1, RETIRED_IDS_AT_ONCE):
            wallets = first, first + RETIRED_IDS_AT_ONCE
            trades = fills_of_wallets(connection, *wallets, contracts, (first_s, end_s))
            await fold_onto(connection, "position_base", trades)
        await cursor.lock_for_refold(connection)
        await cursor.record_deleted_trades(connection, end_s)
        await partitions.drop_before(connection, _TRADE, days[0] + timedelta(days=1))
        return True
