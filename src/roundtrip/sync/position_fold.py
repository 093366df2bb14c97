"""Folds a stream of trades onto stored positions."""

from collections.abc import AsyncIterator
from itertools import groupby
from operator import attrgetter

from roundtrip.domain.market.profit import WalletPosition, fold_fills
from roundtrip.store.index.positions import (
    PositionClosing,
    PositionFill,
    PositionKey,
    positions,
    put_closings,
    put_positions,
)
from roundtrip.store.server.rows import Connection


async def fold_onto(
    connection: Connection,
    table: str,
    trades: AsyncIterator[list[PositionFill]],
    *,
    puts_closings: bool = False,
) -> None:
    """``table``: position or position_base. ``trades``: chunks, ordered by key, then by the chain, all later
    than the stored position. Only one chunk is in memory at a time, and other tasks run between chunks.
    ``puts_closings``: closed positions are written, too."""
    # The last key of a chunk may continue in the next one: it is written once all of it is folded.
    open_key: PositionKey | None = None
    folded: dict[PositionKey, WalletPosition] = {}
    async for chunk in trades:
        folded.update(await positions(connection, {trade.key for trade in chunk} - folded.keys(), table))
        closed = []
        for key, of_key in groupby(chunk, attrgetter("key")):
            folded[key], closings = fold_fills(folded.get(key), (trade.fill for trade in of_key))
            closed += [PositionClosing(key, closing) for closing in closings]
            open_key = key
        if puts_closings:
            await put_closings(connection, closed)
        await put_positions(
            connection, {key: position for key, position in folded.items() if key != open_key}, table
        )
        folded = {key: position for key, position in folded.items() if key == open_key}
    await put_positions(connection, folded, table)
