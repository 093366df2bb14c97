"""Places of a token that nobody knew of when its book was read: whether trades there were taken for gifts."""

import asyncio
import contextlib

from roundtrip.chain.venue_trades import venue_trades
from roundtrip.domain.errors import NodeFault, ServiceFull
from roundtrip.domain.types import Address

from .books import Open, Unread
from .context import Context
from .token_source import Source, reading_node

PATIENCE_S = 4.0
"""So long it is looked for trades at once. The next question goes on from there."""
_DUST = 10_000
"""What a place was sent before it was known is not worth reading all again below one part in so many."""


async def lacks_venues(ctx: Context, found: Source, opened: Open) -> bool:
    """Whether trades were not read at a place that the book did not know of, or much was sent there. One that
    opened later, or that nobody used, changes nothing: else whoever opens pools has all read anew each
    time. Those of which the node does not say it are ``unread_venues`` afterwards; all others the book may
    learn."""
    book = opened.book
    assert book.block is not None
    unknown = found.sources.venues.keys() - book.beginning.venues
    older = sorted(at for at in unknown if not found.is_new(at, book.block.number))
    before, number = book.beginning.first_number - 1, book.block.number
    new = [Address(at) for at in older if at not in opened.unread_venues]
    sent = [book.wallets[one].received_raw for one in new if one in book.wallets]
    if any(raw * _DUST > found.supply_raw for raw in sent):
        return True
    opened.unread_venues = {at: opened.unread_venues.get(at, Unread(before, number)) for at in older}
    return await _have_traded(ctx, found, opened)


async def _have_traded(ctx: Context, found: Source, opened: Open) -> bool:
    unread = opened.unread_venues
    with contextlib.suppress(TimeoutError, NodeFault, ServiceFull):
        async with asyncio.timeout(PATIENCE_S):
            for where in sorted(set(unread.values())):
                venues = [at for at, one in unread.items() if one == where]
                if await _traded_at(ctx, found, opened, venues, where):
                    return True
                for at in venues:
                    del unread[at]
    return False


async def _traded_at(ctx: Context, found: Source, opened: Open, venues: list[str], where: Unread) -> bool:
    """Writes down how far there is nothing."""
    trades = venue_trades(
        reading_node(ctx), found.sources, venues, where.empty_to + 1, where.last, opened.venues_width
    )
    async with contextlib.aclosing(trades) as reading:
        async for one in reading:
            if one.trades:
                return True
            opened.unread_venues.update(dict.fromkeys(venues, Unread(one.last, where.last)))
    return False
