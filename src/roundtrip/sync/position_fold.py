"""Trades folded onto the positions that are there, as they are read."""

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
    """``table``: position, or position_base. ``trades``: key after key, each one's in the order of the chain
    and later than its position. In memory are some of them only, however many one wallet made; between them
    others of the event loop have their turn. What is closed is written where ``puts_closings``."""
    # The last key of some trades may go on in the next ones: written when all of it is folded.
    open_key: PositionKey | None = None
    found: dict[PositionKey, WalletPosition] = {}
    async for some in trades:
        found.update(await positions(connection, {trade.key for trade in some} - found.keys(), table))
        closed = []
        for key, of_key in groupby(some, attrgetter("key")):
            found[key], closings = fold_fills(found.get(key), (trade.fill for trade in of_key))
            closed += [PositionClosing(key, closing) for closing in closings]
            open_key = key
        if puts_closings:
            await put_closings(connection, closed)
        await put_positions(connection, {key: one for key, one in found.items() if key != open_key}, table)
        found = {key: one for key, one in found.items() if key == open_key}
    await put_positions(connection, found, table)
