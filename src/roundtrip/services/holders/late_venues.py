"""Places of a token that nobody knew of when its book was read: whether trades there were taken for gifts."""

import asyncio
import contextlib

from roundtrip.chain.holders.venue_trades import venue_trades
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.book_cache import OpenBook, UnreadVenue
from roundtrip.services.runtime.context import Context

from .sources import TokenSource, reading_node

PATIENCE_S = 4.0
"""So long it is looked for trades at once. The next question goes on from there."""
AGAIN_EVERY_S = 3600.0
"""A token is read again for their sake once in so long: else whoever trades there has it read all day."""
_DUST = 10_000
"""What a place was sent before it was known is not worth reading all again below one part in so many."""


async def lacks_venues(ctx: Context, found: TokenSource, opened: OpenBook) -> bool:
    """Whether all is to be read again, since trades were not read at a place that the book did not know of,
    or much was sent there. One that opened later, or that nobody used, changes nothing: else whoever opens
    pools has all read anew each time. Those of which the node does not say it, and those that have it read
    again too soon, are ``unread_venues`` afterwards; all others the book may learn."""
    book = opened.book
    assert book.block is not None
    number = book.block.number
    _lose(found, opened)
    older = late_venues(found, opened)
    opened.unread_venues = {
        at: opened.unread_venues.get(at, UnreadVenue(_empty_to(found, opened, at), number)) for at in older
    }
    again_s = ctx.books.probe_times(found.token).again_s
    is_soon = again_s is not None and ctx.now_s() - again_s < AGAIN_EVERY_S
    sent = {at: book.wallets[Address(at)].received_raw for at in older if Address(at) in book.wallets}
    if any(raw * _DUST > found.supply_raw for raw in sent.values()):
        return not is_soon
    return await _have_traded(ctx, found, opened) and not is_soon


def late_venues(found: TokenSource, opened: OpenBook) -> list[str]:
    """Places that the book does not know of, and that may be older than its block."""
    book = opened.book
    number = -1 if book.block is None else book.block.number
    unknown = found.sources.venues.keys() - book.beginning.venues
    return sorted(at for at in unknown if at in book.lost_venues or not found.is_new(at, number))


def _lose(found: TokenSource, opened: OpenBook) -> None:
    """What nobody knows of any more is not read from here on: it is a late one once somebody does."""
    book, there = opened.book, found.sources.venues.keys()
    assert book.block is not None
    lost = dict.fromkeys(book.beginning.venues - there, book.block.number)
    lost |= {at: one.empty_to for at, one in opened.unread_venues.items() if at not in there}
    if lost:
        book.drop_venues(lost)


def _empty_to(found: TokenSource, opened: OpenBook, at: str) -> int:
    """Up to which block nothing can be missing there."""
    book = opened.book
    if at in book.lost_venues:
        return book.lost_venues[at]
    return max(book.beginning.first_number, found.opened_at.get(at, 0)) - 1


async def _have_traded(ctx: Context, found: TokenSource, opened: OpenBook) -> bool:
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


async def _traded_at(
    ctx: Context, found: TokenSource, opened: OpenBook, venues: list[str], where: UnreadVenue
) -> bool:
    """Writes down how far there is nothing."""
    trades = venue_trades(
        reading_node(ctx), found.sources, venues, where.empty_to + 1, where.last, opened.venues_width
    )
    async with contextlib.aclosing(trades) as reading:
        async for one in reading:
            if one.trades:
                return True
            opened.unread_venues.update(dict.fromkeys(venues, UnreadVenue(one.last, where.last)))
    return False
