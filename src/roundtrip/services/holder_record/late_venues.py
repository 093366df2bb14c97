"""Venues that were not known when a token's book was read: their trades may have been taken for gifts."""

import asyncio
import contextlib

from roundtrip.chain.holders.venue_trades import venue_trades
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.book_cache import OpenBook, UnreadVenue
from roundtrip.services.runtime.context import Context

from .sources import TokenSource, history_node

REREAD_EVERY_S = 3600.0
"""How often a token is read again because of late venues, at most; otherwise one trader could have it read
all day."""
_DUST = 10_000
"""If a late venue received less than one part in this many of the supply, the token is not read again for
it."""


async def must_reread(ctx: Context, source: TokenSource, open_book: OpenBook) -> bool:
    """Whether all transfers must be read again, because the book misses trades at a venue that it did not
    know, or because much was sent there. A venue that opened later, or was never used, does not count;
    otherwise anyone could cause rereads by opening pools. Afterwards ``unread_venues`` holds those that the
    node could not decide, and those reread too recently; the book may add all others."""
    book = open_book.book
    assert book.block is not None
    number = book.block.number
    _drop_lost_venues(source, open_book)
    late = late_venues(source, open_book)
    open_book.unread_venues = {
        at: open_book.unread_venues.get(at, UnreadVenue(_empty_up_to(source, open_book, at), number))
        for at in late
    }
    reread_s = ctx.books.probe_times(source.token).again_s
    is_soon = reread_s is not None and ctx.now_s() - reread_s < REREAD_EVERY_S
    received = {at: book.wallets[Address(at)].received_raw for at in late if Address(at) in book.wallets}
    if any(raw * _DUST > source.supply_raw for raw in received.values()):
        return not is_soon
    return await _any_traded(ctx, source, open_book) and not is_soon


def late_venues(source: TokenSource, open_book: OpenBook) -> list[str]:
    """Venues that the book does not know, and that may be older than its block."""
    book = open_book.book
    number = -1 if book.block is None else book.block.number
    unknown = source.log_sources.venues.keys() - book.beginning.venues
    return sorted(at for at in unknown if at in book.lost_venues or not source.is_new(at, number))


def _drop_lost_venues(source: TokenSource, open_book: OpenBook) -> None:
    """Stops reading venues that are no longer known; they are late venues if they become known again."""
    book, known = open_book.book, source.log_sources.venues.keys()
    assert book.block is not None
    lost = dict.fromkeys(book.beginning.venues - known, book.block.number)
    lost |= {at: venue.empty_to for at, venue in open_book.unread_venues.items() if at not in known}
    if lost:
        book.drop_venues(lost)


def _empty_up_to(source: TokenSource, open_book: OpenBook, at: str) -> int:
    """The block up to which no trade at the venue ``at`` can be missing."""
    book = open_book.book
    if at in book.lost_venues:
        return book.lost_venues[at]
    return max(book.beginning.first_number, source.opened_in.get(at, 0)) - 1


async def _any_traded(ctx: Context, source: TokenSource, open_book: OpenBook) -> bool:
    """Whether the node shows a trade at an unread venue. Those without one are no longer unread
    afterwards."""
    unread = open_book.unread_venues
    with contextlib.suppress(TimeoutError, NodeFault, ServiceFull):
        async with asyncio.timeout(ctx.books.limits.late_venues_s):
            for unread_range in sorted(set(unread.values())):
                venues = [at for at, venue in unread.items() if venue == unread_range]
                if await _has_trades(ctx, source, open_book, venues, unread_range):
                    return True
                for at in venues:
                    del unread[at]
    return False


async def _has_trades(
    ctx: Context, source: TokenSource, open_book: OpenBook, venues: list[str], unread_range: UnreadVenue
) -> bool:
    """Whether any of the venues has a trade in the range. Records in ``unread_venues`` how far there are
    none."""
    trades = venue_trades(
        history_node(ctx),
        source.log_sources,
        venues,
        unread_range.empty_to + 1,
        unread_range.last,
        open_book.venues_width,
    )
    async with contextlib.aclosing(trades) as reading:
        async for counted in reading:
            if counted.trades:
                return True
            open_book.unread_venues.update(
                dict.fromkeys(venues, UnreadVenue(counted.last, unread_range.last))
            )
    return False
