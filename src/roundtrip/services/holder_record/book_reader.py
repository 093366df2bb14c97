"""Reads a token's transfers into its book, from the book's block up to the head: in the request as far as
that is quick, and beyond that in a job."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from roundtrip.chain.blocks.span_stream import ForkSeen
from roundtrip.chain.blocks.spans import BlockTooLarge, read_refs
from roundtrip.chain.holders.token_logs import (
    HistoryPruned,
    TokenSpan,
    find_oldest_logs,
    has_logs,
    token_spans,
)
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import NodeFault, ReadFailed, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.book import BookStart, HolderBook
from roundtrip.domain.holders.read_state import Event, step
from roundtrip.services.runtime.book_cache import OpenBook, ReadBounds
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import looking
from roundtrip.store.holders.books import StoredBook
from roundtrip.store.index.prices import past_prices

from .book_store import enqueue_read, is_worth_writing, load_book, pack_book, record_request, save_book
from .late_venues import must_reread
from .sources import TokenSource, find_start, history_node, new_blocks_node, read_source, update_maker

CONFIRMED_AFTER_S = 60.0
"""A book is restarted because the node has pruned the next logs only if the node still says so after this
time: one of several nodes may say so once."""
PROBED_EVERY_S = 3600.0
"""How often to check whether the node has pruned logs again; the first time after
``CONFIRMED_AFTER_S``. ``PROBE_S``: the timeout."""
PROBE_S = 4.0


Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class BookChange:
    """What a job run has to write. ``book`` None: nothing new. ``forget``: the hash of the block of a stored
    book that is no longer valid; None: there is none. ``done``: there is nothing more to read."""

    book: StoredBook | None
    forget: str | None
    done: bool


async def read_book(ctx: Context, source: TokenSource, clock: Clock = time.perf_counter) -> OpenBook:
    """The token's book, read up to ``source.head`` unless its state is ``reading``: then a job reads on. The
    caller holds the token's lock. Raises NodeFault, ReadFailed (holders_failed), ServiceFull (holders_busy,
    holders_budget, holders_no_archive, busy)."""
    limits = ctx.books.limits
    open_book, forget = await _reopen(ctx, source)
    if open_book is not None and open_book.state == "capped":
        return open_book
    if open_book is not None and open_book.state == "reading":
        await enqueue_read(ctx, source.token, None, None)
        return open_book
    try:
        with _reading_slot(ctx, source, open_book), _restore_on_error(ctx, source, open_book):
            open_book = open_book or await _start_book(ctx, source, limits.at_once)
            open_book, stale_hash = await _read_or_restart(ctx, source, open_book, limits.at_once, clock)
    except _StartNotFound:
        # The job has more time to find the start.
        await enqueue_read(ctx, source.token, None, forget)
        open_book = _placeholder_book(ctx, source)
        ctx.books.put(source.token, open_book)
        return open_book
    forget = stale_hash or forget
    ctx.books.put(source.token, open_book)
    if open_book.state == "reading":
        stored = await pack_book(ctx, open_book)
        await enqueue_read(ctx, source.token, stored, forget)
        open_book.kept_transfers = stored.transfers
    elif forget is not None or is_worth_writing(ctx, open_book):
        await save_book(ctx, open_book, await pack_book(ctx, open_book), forget)
    else:
        await record_request(ctx, source.token)
    return open_book


async def read_piece(ctx: Context, token: Address, clock: Clock = time.perf_counter) -> BookChange:
    """Reads one piece of a busy token. What was folded before an error counts as a piece. Raises as
    ``read_book``."""
    limits = ctx.books.limits
    async with ctx.books.alone(token):
        source = await read_source(ctx, token, Meter())
        open_book, forget = await _reopen(ctx, source)
        if open_book is not None and open_book.state == "capped":
            return BookChange(None, None, done=True)
        with _restore_on_error(ctx, source, open_book) as is_reread:
            if open_book is None or not open_book.is_begun:
                open_book = await _start_book(ctx, source, limits.piece)
                # Otherwise concurrent requests would wait for this piece.
                ctx.books.put(token, open_book)
            block_before = open_book.book.block
            try:
                open_book, stale_hash = await _read_or_restart(ctx, source, open_book, limits.piece, clock)
            except (ReadFailed, ServiceFull) as error:
                if open_book.book.block == block_before or (is_reread and isinstance(error, _LogsPruned)):
                    raise
                open_book.state, stale_hash = step(open_book.state, "advanced"), None
        ctx.books.put(token, open_book)
        return BookChange(
            await pack_book(ctx, open_book), stale_hash or forget, done=open_book.state != "reading"
        )


def _reading_slot(
    ctx: Context, source: TokenSource, open_book: OpenBook | None
) -> contextlib.AbstractContextManager[None]:
    """A reading slot, if there is much to read. Raises ServiceFull (holders_busy)."""
    if open_book is not None and _is_near(ctx, source, open_book):
        return contextlib.nullcontext()
    return ctx.books.take_place()


def _is_near(ctx: Context, source: TokenSource, open_book: OpenBook) -> bool:
    block = open_book.book.block
    return block is not None and source.head.number - block.number <= ctx.books.limits.near_blocks


@contextlib.contextmanager
def _restore_on_error(ctx: Context, source: TokenSource, open_book: OpenBook | None) -> Iterator[bool]:
    """While a book is reread from the start (``open_book`` None, but one in memory), the old one is put back
    if reading fails. Yields whether there is an old one."""
    old_book, probe_times = (
        ctx.books.get(source.token) if open_book is None else None,
        ctx.books.probe_times(source.token),
    )
    if old_book is not None:
        probe_times.again_s = ctx.now_s()
    try:
        yield old_book is not None
    except BaseException:
        if old_book is not None:
            probe_times.gone_s = None
            ctx.books.put(source.token, old_book)
        raise


# --- the book so far -------------------------------------------------------------------------


async def _reopen(ctx: Context, source: TokenSource) -> tuple[OpenBook | None, str | None]:
    """The book as it was left; None: there is none, or it cannot be used, with the hash of the block that it
    was saved for. A book that only has to be reread stays in memory."""
    open_book = ctx.books.get(source.token)
    if open_book is None or open_book.state == "reading":
        # Another process may have read on.
        open_book = await load_book(ctx, source.token, open_book)
    if open_book is None or not open_book.is_begun:
        return open_book, None
    block = open_book.book.block
    if block is None:
        ctx.books.drop(source.token)
        return None, None
    if not await _is_on_chain(ctx, source, open_book):
        ctx.books.drop(source.token)
        return None, block.hash
    if await must_reread(ctx, source, open_book) or await _are_older_logs_back(ctx, source, open_book):
        # The book has trades at unknown venues as gifts, or lacks the oldest transfers: read everything
        # again.
        return None, block.hash
    open_book.book.add_venues(
        frozenset(source.log_sources.venues.keys() - open_book.unread_venues.keys()), source.places
    )
    start = open_book.book.beginning
    if start.maker is not None and start.maker.tx_hash is None and source.spot is not None:
        # The index did not know the launch yet.
        open_book.book.beginning = replace(start, maker=await update_maker(ctx, source, start.maker))
    return open_book, None


async def _is_on_chain(ctx: Context, source: TokenSource, open_book: OpenBook) -> bool:
    """Whether the book's block is on the chain. If the node has not reached it, the node may be behind, or
    the chain may have become shorter: a small book is reread, a large one waits for the node. Raises
    NodeFault."""
    block, head = open_book.book.block, source.head
    assert block is not None
    if block == head:
        return True
    # The batch includes a block that the node has: a node that knows neither block proves nothing.
    _, ref = await read_refs(ctx.node, [min(head.number, block.number), block.number])
    if ref is not None:
        return ref[0].hash == block.hash
    if block.number > head.number and open_book.book.transfers <= ctx.books.limits.at_once.logs:
        return False
    raise NodeFault("it is behind the block up to which the token was read")


# --- reading ---------------------------------------------------------------------------------------


class _StartNotFound(ReadFailed):
    """The first transfer was not found in time."""


class _LogsPruned(ReadFailed):
    """The node has pruned the next logs."""


async def _start_book(ctx: Context, source: TokenSource, bounds: ReadBounds) -> OpenBook:
    """An empty book. Raises NodeFault, ReadFailed, ServiceFull (holders_no_archive)."""
    try:
        async with asyncio.timeout(bounds.patience_s):
            start = await find_start(ctx, source)
    except TimeoutError as late:
        raise _StartNotFound(NodeFault("it took too long")) from late
    return ctx.books.new_book(HolderBook(start), step("unread", "begun"))


def _placeholder_book(ctx: Context, source: TokenSource) -> OpenBook:
    """An empty book, used until a job has found the start and replaces it."""
    venues = frozenset(source.log_sources.venues)
    start = BookStart(source.token, source.places, venues, 0, None, frozenset())
    return ctx.books.new_book(HolderBook(start), step("unread", "begun"), is_begun=False)


async def _are_older_logs_back(ctx: Context, source: TokenSource, open_book: OpenBook) -> bool:
    """Whether the node has the first and the last of the pruned transfers again. Whatever it answers, it is
    not asked again for ``PROBED_EVERY_S``."""
    now_s, probe_times = ctx.now_s(), ctx.books.probe_times(source.token)
    if not open_book.pruned or now_s - (probe_times.probed_s or 0.0) < PROBED_EVERY_S:
        return False
    probe_times.probed_s = now_s
    first_read, node = open_book.book.beginning.first_number, history_node(ctx)
    with contextlib.suppress(TimeoutError, NodeFault, ReadFailed, ServiceFull):
        async with asyncio.timeout(PROBE_S):
            first_number = (await find_start(ctx, source)).first_number
            if first_number < first_read and await has_logs(node, source.log_sources, first_number):
                return await has_logs(node, source.log_sources, first_read - 1)
    return False


async def _read_or_restart(
    ctx: Context, source: TokenSource, open_book: OpenBook, bounds: ReadBounds, clock: Clock
) -> tuple[OpenBook, str | None]:
    """Reads the book on. If its block was reorged out, or the node has pruned the next logs, the book is
    restarted once: then it is returned as far as it was read, with the hash of the old book's block. Raises
    ReadFailed, ServiceFull."""
    is_pruned = False
    try:
        try:
            await _read_up_to_head(ctx, source, open_book, bounds, clock)
            return open_book, None
        except ForkSeen:
            if open_book.book.block is None or await _is_on_chain(ctx, source, open_book):
                raise
        except HistoryPruned:
            if open_book.book.block is None or not _is_confirmed_pruned(ctx, source):
                raise
            is_pruned = True
        lost_block = open_book.book.block
        ctx.books.drop(source.token)
        open_book = await _start_book(ctx, source, bounds)
        if is_pruned:
            # Start after the pruned block: older logs may be available, and would lead back to it.
            await _start_later(ctx, source, open_book, lost_block.number + 1)
        try:
            await _read_up_to_head(ctx, source, open_book, bounds, clock)
        except (ForkSeen, NodeFault, ServiceFull):
            if open_book.book.block is None:
                raise
            open_book.state = step(open_book.state, "advanced")
        return open_book, lost_block.hash
    except ForkSeen as forked:
        raise ReadFailed(NodeFault("blocks were reorganized while the transfers were read")) from forked
    except HistoryPruned as fault:
        raise _LogsPruned(fault) from fault
    except NodeFault as fault:
        raise ReadFailed(fault) from fault


def _is_confirmed_pruned(ctx: Context, source: TokenSource) -> bool:
    """Whether the node first reported some time ago that it has pruned the next logs, and has returned none
    since."""
    probe_times, now_s = ctx.books.probe_times(source.token), ctx.now_s()
    if probe_times.gone_s is None:
        probe_times.gone_s = now_s
    return now_s - probe_times.gone_s >= CONFIRMED_AFTER_S


async def _read_up_to_head(
    ctx: Context, source: TokenSource, open_book: OpenBook, bounds: ReadBounds, clock: Clock
) -> None:
    """Folds new transfers, up to the head or the bounds. What was folded before an error stays. Raises
    ForkSeen, HistoryPruned, NodeFault, ServiceFull."""
    book, block_before = open_book.book, open_book.book.block
    try:
        async with asyncio.timeout(bounds.patience_s):
            open_book.state = step(open_book.state, await _read_spans(ctx, source, open_book, bounds, clock))
    except TimeoutError as late:
        if book.block == block_before:
            raise NodeFault("it took too long") from late
        open_book.state = step(open_book.state, "advanced")
    except BlockTooLarge:
        # A single block exceeds the limit; that cannot happen on a chain with bounded blocks.
        if book.block is None:
            number = max(0, book.beginning.first_number - 1)
            (previous,) = await read_refs(ctx.node, [number])
            if previous is None:
                raise
            book.advance_to(previous[0])
        open_book.state = step(open_book.state, "capped")
    except HistoryPruned:
        if open_book.pruned or book.block is not None:
            raise
        await _start_later(ctx, source, open_book, book.beginning.first_number)
        await _read_up_to_head(ctx, source, open_book, bounds, clock)
    finally:
        if book.block is not None:
            ctx.books.put(source.token, open_book)


async def _read_spans(
    ctx: Context, source: TokenSource, open_book: OpenBook, bounds: ReadBounds, clock: Clock
) -> Event:
    """Folds spans of blocks into the book, and returns how far that came: caught_up, advanced or capped."""
    book, started_s, logs, limits = open_book.book, clock(), 0, ctx.books.limits
    block = book.block
    first, parent_hash = book.beginning.first_number, None
    if block is not None:
        first, parent_hash = block.number + 1, block.hash
    if first > source.head.number:
        return "caught_up"
    node = new_blocks_node(ctx) if _is_near(ctx, source, open_book) else history_node(ctx)
    spans = token_spans(
        node, source.log_sources, first, source.head, open_book.width, parent_hash=parent_hash
    )
    async with contextlib.aclosing(spans) as reading:
        async for span in reading:
            await _fold_span(ctx, book, span)
            ctx.books.probe_times(source.token).gone_s = None
            open_book.standing.touch(wallet for tx in span.txs for move in tx.moves for wallet in move[:2])
            logs += span.logs
            if book.transfers > limits.max_transfers or len(book.wallets) > limits.max_wallets:
                return "capped"
            is_over = logs >= bounds.logs or clock() - started_s >= bounds.seconds
            if is_over and span.last.number < source.head.number:
                return "advanced"
    return "caught_up"


async def _fold_span(ctx: Context, book: HolderBook, span: TokenSpan) -> None:
    quotes = {fill.quote for tx in span.txs for fill in tx.fills if fill.buys}
    blocks = {tx.block_number: tx.at_s for tx in span.txs if any(fill.buys for fill in tx.fills)}
    async with looking(ctx) as (connection, _):
        prices = await past_prices(connection, ctx.contracts, quotes, blocks)
    for tx in span.txs:
        book.fold(tx, prices.worth)
    book.unreadable += span.unreadable
    book.advance_to(span.last)


async def _start_later(ctx: Context, source: TokenSource, open_book: OpenBook, low: int) -> None:
    """The node has pruned the logs at block ``low``: moves the start to the first block from there on whose
    logs it has. Raises ServiceFull (holders_no_archive)."""
    start = open_book.book.beginning
    number = await find_oldest_logs(history_node(ctx), source.log_sources, low, source.head.number)
    if number is None:
        raise ServiceFull(
            "holders_no_archive", "No node of this service keeps the token's oldest transfers.", 3600
        )
    open_book.book.beginning = replace(start, first_number=number, launch_number=None)
    probe_times, now_s = ctx.books.probe_times(source.token), ctx.now_s()
    # The answer may be of one node of several, so the first repetition is soon.
    probe_times.probed_s = (
        now_s if probe_times.probed_s is not None else now_s - PROBED_EVERY_S + CONFIRMED_AFTER_S
    )
    open_book.pruned = True
