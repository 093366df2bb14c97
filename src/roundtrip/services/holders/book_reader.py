"""Reads a token's transfers into its book: from where it stands up to a block, in the request as far as that
goes quickly, and on as a job where it does not.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from roundtrip.chain.blocks.span_stream import ForkSeen
from roundtrip.chain.blocks.spans import BlockTooLarge, read_refs
from roundtrip.chain.holders.token_logs import HistoryPruned, TokenSpan, gives_logs, oldest_logs, token_spans
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import NodeFault, ReadFailed, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.book import BookStart, HolderBook
from roundtrip.domain.holders.read_state import Event, step
from roundtrip.services.runtime.book_cache import OpenBook
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import looking
from roundtrip.store.holders.books import StoredBook
from roundtrip.store.index.prices import past_prices

from .book_store import is_worth_writing, load_book, note_asked, pack_book, wish, write
from .late_venues import lacks_venues
from .sources import TokenSource, beginning, made_by, near_node, reading_node, source

MOST_TRANSFERS = 5_000_000
MOST_WALLETS = 1_000_000
"""A book that has more is read no further: it is told as far as it goes."""
NEAR_BLOCKS = 5_000
"""A book that is no further behind is brought on beside those that are read at once: it takes two trips."""
SURE_S = 60.0
"""A book is begun anew because the node has let go what comes next, once it says so again so long after: of
several nodes one may say so today."""
PROBED_EVERY_S = 3600.0
"""How often it is asked whether the node gives by now what it had let go, and the first time after
``SURE_S``; PROBE_S: so long."""
PROBE_S = 4.0


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """How much is read in one go: after so many logs, or so many seconds, it stops. ``patience_s``: so long a
    node that gives nothing is asked again."""

    logs: int
    seconds: float
    patience_s: float = 12.0


AT_ONCE = ReadBounds(25_000, 4.0)
"""While somebody waits."""
PIECE = ReadBounds(500_000, 15.0, 30.0)
"""As one job: what a process loses that dies."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class BookChange:
    """What a run of the job has to write. ``forget``: the hash of the block that the book was kept for which
    counts no longer. ``done``: there is nothing more to read."""

    kept: StoredBook | None
    forget: str | None
    done: bool


async def read(ctx: Context, found: TokenSource, clock: Clock = time.perf_counter) -> OpenBook:
    """The token's book, up to ``found.head`` where its state is not ``reading``: then a job goes on with it.
    The caller holds the token's lock. Raises NodeFault, ReadFailed (holders_failed), ServiceFull
    (holders_busy, holders_budget, holders_no_archive, busy)."""
    opened, forget = await _reopen(ctx, found)
    if opened is not None and opened.state == "capped":
        return opened
    if opened is not None and opened.state == "reading":
        await wish(ctx, found.token, None, None)
        return opened
    try:
        with _place(ctx, found, opened), _or_as_before(ctx, found, opened):
            opened = opened or await _begin_book(ctx, found, AT_ONCE)
            opened, broken = await _brought_on(ctx, found, opened, AT_ONCE, clock)
    except _StartNotFound:
        # The job has more time for it.
        await wish(ctx, found.token, None, forget)
        opened = _not_begun(found)
        ctx.books.put(found.token, opened)
        return opened
    forget = broken or forget
    ctx.books.put(found.token, opened)
    if opened.state == "reading":
        kept = await pack_book(ctx, opened)
        await wish(ctx, found.token, kept, forget)
        opened.kept_transfers = kept.transfers
    elif forget is not None or is_worth_writing(opened):
        await write(ctx, opened, await pack_book(ctx, opened), forget)
    else:
        await note_asked(ctx, found.token)
    return opened


async def go_on(ctx: Context, token: Address, clock: Clock = time.perf_counter) -> BookChange:
    """One piece of a busy token. What was folded before a fault is a piece, too. Raises as ``read``."""
    async with ctx.books.alone(token):
        found = await source(ctx, token, Meter())
        opened, forget = await _reopen(ctx, found)
        if opened is not None and opened.state == "capped":
            return BookChange(None, None, done=True)
        with _or_as_before(ctx, found, opened) as is_again:
            if opened is None or not opened.is_begun:
                opened = await _begin_book(ctx, found, PIECE)
                # Who asks meanwhile does not wait for this piece.
                ctx.books.put(token, opened)
            before = opened.book.block
            try:
                opened, broken = await _brought_on(ctx, found, opened, PIECE, clock)
            except (ReadFailed, ServiceFull) as error:
                if opened.book.block == before or (is_again and isinstance(error, _LogsPruned)):
                    raise
                opened.state, broken = step(opened.state, "advanced"), None
        ctx.books.put(token, opened)
        return BookChange(await pack_book(ctx, opened), broken or forget, done=opened.state != "reading")


def _place(
    ctx: Context, found: TokenSource, opened: OpenBook | None
) -> contextlib.AbstractContextManager[None]:
    """One of the places for reading, where there is much to read. Raises ServiceFull (holders_busy)."""
    if opened is not None and _is_near(found, opened):
        return contextlib.nullcontext()
    return ctx.books.a_place()


def _is_near(found: TokenSource, opened: OpenBook) -> bool:
    block = opened.book.block
    return block is not None and found.head.number - block.number <= NEAR_BLOCKS


@contextlib.contextmanager
def _or_as_before(ctx: Context, found: TokenSource, opened: OpenBook | None) -> Iterator[bool]:
    """Where all is begun anew beside a book that there is: that one stays until as much is read as can be,
    and where that fails. Tells whether it is so."""
    before, asked = ctx.books.get(found.token) if opened is None else None, ctx.books.probe_times(found.token)
    if before is not None:
        asked.again_s = ctx.now_s()
    try:
        yield before is not None
    except BaseException:
        if before is not None:
            asked.gone_s = None
            ctx.books.put(found.token, before)
        raise


# --- what is there already -------------------------------------------------------------------------


async def _reopen(ctx: Context, found: TokenSource) -> tuple[OpenBook | None, str | None]:
    """The book as it was left, None where there is none or it is of no use any more; then, with the hash of
    the block that it was kept for. One that is only to be read again is still in memory."""
    opened = ctx.books.get(found.token)
    if opened is None or opened.state == "reading":
        # Another process may have read on.
        opened = await load_book(ctx, found.token, opened)
    if opened is None or not opened.is_begun:
        return opened, None
    block = opened.book.block
    if block is None:
        ctx.books.drop(found.token)
        return None, None
    if not await _is_still_there(ctx, found, opened):
        ctx.books.drop(found.token)
        return None, block.hash
    if await lacks_venues(ctx, found, opened) or await _is_given_again(ctx, found, opened):
        # Trades that were taken for gifts, its oldest transfers: all of it is read again.
        return None, block.hash
    opened.book.add_venues(frozenset(found.sources.venues.keys() - opened.unread_venues.keys()), found.places)
    begun = opened.book.beginning
    if begun.maker is not None and begun.maker.tx_hash is None and found.spot is not None:
        # The index did not know the launch yet.
        opened.book.beginning = replace(begun, maker=await made_by(ctx, found, begun.maker))
    return opened, None


async def _is_still_there(ctx: Context, found: TokenSource, opened: OpenBook) -> bool:
    """Whether the book's block is on the chain. A node that has not got so far may be behind, or of a chain
    that became shorter: a book that is soon read again is, for a larger one it is waited until the node gets
    there. Raises NodeFault."""
    block, head = opened.book.block, found.head
    assert block is not None
    if block == head:
        return True
    # With one that it has: a node that knows none of all that it is asked for says nothing.
    _, there = await read_refs(ctx.node, [min(head.number, block.number), block.number])
    if there is not None:
        return there[0].hash == block.hash
    if block.number > head.number and opened.book.transfers <= AT_ONCE.logs:
        return False
    raise NodeFault("it has not got as far as the token was read before")


# --- reading ---------------------------------------------------------------------------------------


class _StartNotFound(ReadFailed):
    """Where its transfers begin was not found out in time."""


class _LogsPruned(ReadFailed):
    """The node has let go what comes next."""


async def _begin_book(ctx: Context, found: TokenSource, bounds: ReadBounds) -> OpenBook:
    """A book with nothing in it. Raises NodeFault, ReadFailed, ServiceFull (holders_no_archive)."""
    try:
        async with asyncio.timeout(bounds.patience_s):
            begun = await beginning(ctx, found)
    except TimeoutError as late:
        raise _StartNotFound(NodeFault("it took too long")) from late
    return OpenBook(HolderBook(begun), step("unread", "begun"))


def _not_begun(found: TokenSource) -> OpenBook:
    """In the place of a book that a job begins."""
    venues = frozenset(found.sources.venues)
    begun = BookStart(found.token, found.places, venues, 0, None, frozenset())
    return OpenBook(HolderBook(begun), step("unread", "begun"), is_begun=False)


async def _is_given_again(ctx: Context, found: TokenSource, opened: OpenBook) -> bool:
    """Whether the node gives by now the first transfers, and the last ones, that it had let go. Whatever it
    says, it is not asked again for some time."""
    now_s, asked = ctx.now_s(), ctx.books.probe_times(found.token)
    if not opened.pruned or now_s - (asked.probed_s or 0.0) < PROBED_EVERY_S:
        return False
    asked.probed_s = now_s
    begins, node = opened.book.beginning.first_number, reading_node(ctx)
    with contextlib.suppress(TimeoutError, NodeFault, ReadFailed, ServiceFull):
        async with asyncio.timeout(PROBE_S):
            first_number = (await beginning(ctx, found)).first_number
            if first_number < begins and await gives_logs(node, found.sources, first_number):
                return await gives_logs(node, found.sources, begins - 1)
    return False


async def _brought_on(
    ctx: Context, found: TokenSource, opened: OpenBook, bounds: ReadBounds, clock: Clock
) -> tuple[OpenBook, str | None]:
    """The book, read on. Where that shows that it is of another chain, or that the node has let go what comes
    next, it is begun anew, once: then with the hash of the block that it went to, and whatever was read by
    then. Raises ReadFailed, ServiceFull."""
    is_gone = False
    try:
        try:
            await _read_on(ctx, found, opened, bounds, clock)
            return opened, None
        except ForkSeen:
            if opened.book.block is None or await _is_still_there(ctx, found, opened):
                raise
        except HistoryPruned:
            if opened.book.block is None or not _is_gone_for_good(ctx, found):
                raise
            is_gone = True
        gone = opened.book.block
        ctx.books.drop(found.token)
        opened = await _begin_book(ctx, found, bounds)
        if is_gone:
            # Behind it: what is before may be given, and would lead there again.
            await _begin_later(ctx, found, opened, gone.number + 1)
        try:
            await _read_on(ctx, found, opened, bounds, clock)
        except (ForkSeen, NodeFault, ServiceFull):
            if opened.book.block is None:
                raise
            opened.state = step(opened.state, "advanced")
        return opened, gone.hash
    except ForkSeen as forked:
        raise ReadFailed(NodeFault("the chain became another one meanwhile")) from forked
    except HistoryPruned as fault:
        raise _LogsPruned(fault) from fault
    except NodeFault as fault:
        raise ReadFailed(fault) from fault


def _is_gone_for_good(ctx: Context, found: TokenSource) -> bool:
    """Whether the node said some time ago that it has let go what comes next, and gave nothing since."""
    asked, now_s = ctx.books.probe_times(found.token), ctx.now_s()
    if asked.gone_s is None:
        asked.gone_s = now_s
    return now_s - asked.gone_s >= SURE_S


async def _read_on(
    ctx: Context, found: TokenSource, opened: OpenBook, bounds: ReadBounds, clock: Clock
) -> None:
    """Folds what is new, up to the head or the bounds. What was folded before a fault stays. Raises Forked,
    HistoryPruned, NodeFault, ServiceFull."""
    book, before = opened.book, opened.book.block
    try:
        async with asyncio.timeout(bounds.patience_s):
            opened.state = step(opened.state, await _read_spans(ctx, found, opened, bounds, clock))
    except TimeoutError as late:
        if book.block == before:
            raise NodeFault("it took too long") from late
        opened.state = step(opened.state, "advanced")
    except BlockTooLarge:
        # One block of it is more than is ever read: of no chain that bounds its blocks.
        if book.block is None:
            number = max(0, book.beginning.first_number - 1)
            (before_it,) = await read_refs(ctx.node, [number])
            if before_it is None:
                raise
            book.advance_to(before_it[0])
        opened.state = step(opened.state, "capped")
    except HistoryPruned:
        if opened.pruned or book.block is not None:
            raise
        await _begin_later(ctx, found, opened, book.beginning.first_number)
        await _read_on(ctx, found, opened, bounds, clock)
    finally:
        if book.block is not None:
            ctx.books.put(found.token, opened)


async def _read_spans(
    ctx: Context, found: TokenSource, opened: OpenBook, bounds: ReadBounds, clock: Clock
) -> Event:
    """How far it came."""
    book, started_s, logs = opened.book, clock(), 0
    block = book.block
    first, parent_hash = book.beginning.first_number, None
    if block is not None:
        first, parent_hash = block.number + 1, block.hash
    if first > found.head.number:
        return "caught_up"
    node = near_node(ctx) if _is_near(found, opened) else reading_node(ctx)
    spans = token_spans(node, found.sources, first, found.head, opened.width, parent_hash=parent_hash)
    async with contextlib.aclosing(spans) as reading:
        async for span in reading:
            await _fold(ctx, book, span)
            ctx.books.probe_times(found.token).gone_s = None
            opened.standing.touch(one for tx in span.txs for move in tx.moves for one in move[:2])
            logs += span.count_logs()
            if book.transfers > MOST_TRANSFERS or len(book.wallets) > MOST_WALLETS:
                return "capped"
            is_over = logs >= bounds.logs or clock() - started_s >= bounds.seconds
            if is_over and span.last.number < found.head.number:
                return "advanced"
    return "caught_up"


async def _fold(ctx: Context, book: HolderBook, span: TokenSpan) -> None:
    quotes = {fill.quote for tx in span.txs for fill in tx.fills if fill.buys}
    blocks = {tx.block_number: tx.at_s for tx in span.txs if any(fill.buys for fill in tx.fills)}
    async with looking(ctx) as (connection, _):
        prices = await past_prices(connection, ctx.contracts, quotes, blocks)
    for tx in span.txs:
        book.fold(tx, prices.worth)
    book.unreadable += span.unreadable
    book.advance_to(span.last)


async def _begin_later(ctx: Context, found: TokenSource, opened: OpenBook, low: int) -> None:
    """The node gives no logs of the blocks from ``low`` on: the book begins where it gives some."""
    begun = opened.book.beginning
    number = await oldest_logs(reading_node(ctx), found.sources, low, found.head.number)
    if number is None:
        raise ServiceFull("holders_no_archive", "No node here keeps the token's transfers of long ago.", 3600)
    opened.book.beginning = replace(begun, first_number=number, launch_number=None)
    asked, now_s = ctx.books.probe_times(found.token), ctx.now_s()
    # Of several nodes one may have said so: the first time it is soon asked again.
    asked.probed_s = now_s if asked.probed_s is not None else now_s - PROBED_EVERY_S + SURE_S
    opened.pruned = True
