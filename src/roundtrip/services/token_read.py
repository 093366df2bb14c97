"""Reads a token's transfers into its book: from where it stands up to a block, in the request as far as that
goes quickly, and on as a job where it does not.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import asyncpg

from roundtrip.chain.own_budget import OwnBudget
from roundtrip.chain.rpc import Meter
from roundtrip.chain.span_stream import Forked
from roundtrip.chain.spans import BlockTooLarge, read_refs
from roundtrip.chain.token_logs import HistoryPruned, TokenSpan, oldest_logs, token_spans
from roundtrip.domain.errors import NodeFault, ReadFailed, ServiceFull
from roundtrip.domain.holder_book import HolderBook, dump, load
from roundtrip.domain.holder_read import Event, step
from roundtrip.domain.types import Address, BlockRef
from roundtrip.store import holder_reads, jobs
from roundtrip.store.faults import DATABASE_FAULTS
from roundtrip.store.holder_reads import Kept
from roundtrip.store.past_prices import past_prices

from .books import Open
from .context import Context
from .index_answer import looking
from .token_source import Source, beginning, have_traded, made_by, source

JOB = "holders"
MOST_JOBS = 50
"""More busy tokens are not taken in: each is a million transfers, perhaps."""
MOST_TRANSFERS = 5_000_000
MOST_WALLETS = 1_000_000
"""A book that has more is read no further: it is told as far as it goes."""
_GIVEN_UP = timedelta(minutes=10)
"""After a job was given up nobody is told to wait for another one so long."""
_DATABASE_S = 5.0
_SMALL = 20_000
"""Books of so many wallets are packed in some 50 ms; larger ones beside the loop."""
_WRITTEN_EVERY = 500
"""A whole book is written again when so many transfers, or a fiftieth of all, are new: what is not written is
read once more."""
_DUST = 10_000
"""What a place was sent before it was known is not worth reading all again below one part in so many."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is read in one go: after so many logs, or so many seconds, it stops. ``patience_s``: so long a
    node that gives nothing is asked again."""

    logs: int
    seconds: float
    patience_s: float = 12.0


AT_ONCE = Bounds(25_000, 4.0)
"""While somebody waits."""
PIECE = Bounds(500_000, 15.0, 30.0)
"""As one job: what a process loses that dies."""

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Piece:
    """What a run of the job has to write. ``forget``: the hash of the block that the book was kept for which
    counts no longer. ``done``: there is nothing more to read."""

    kept: Kept | None
    forget: str | None
    done: bool


async def read(ctx: Context, found: Source, clock: Clock = time.perf_counter) -> Open:
    """The token's book, up to ``found.head`` where its state is not ``reading``: then a job goes on with it.
    The caller holds the token's lock. Raises NodeFault, ReadFailed (holders_failed), ServiceFull
    (holders_busy, holders_budget, holders_no_archive, busy)."""
    opened, forget = await _opened(ctx, found)
    if opened is not None and opened.state == "capped":
        return opened
    if opened is not None and opened.state == "reading":
        await _wish(ctx, found.token, None, None)
        return opened
    with ctx.books.a_place():
        opened = opened or await _begun(ctx, found, AT_ONCE)
        opened, broken = await _brought_on(ctx, found, opened, AT_ONCE, clock)
    forget = broken or forget
    ctx.books.put(found.token, opened)
    if opened.state == "reading":
        kept = await _kept(ctx, opened)
        await _wish(ctx, found.token, kept, forget)
        opened.kept_transfers = kept.transfers
    elif forget is not None or _is_worth_writing(opened):
        await _write(ctx, opened, await _kept(ctx, opened), forget)
    else:
        await _note_asked(ctx, found.token)
    return opened


async def go_on(ctx: Context, token: Address, clock: Clock = time.perf_counter) -> Piece:
    """One piece of a busy token. Raises as ``read``."""
    async with ctx.books.alone(token):
        found = await source(ctx, token, Meter())
        opened, forget = await _opened(ctx, found)
        if opened is not None and opened.state == "capped":
            return Piece(None, None, done=True)
        if opened is None:
            opened = await _begun(ctx, found, PIECE)
            # Who asks meanwhile does not wait for this piece.
            ctx.books.put(token, opened)
        opened, broken = await _brought_on(ctx, found, opened, PIECE, clock)
        ctx.books.put(token, opened)
        return Piece(await _kept(ctx, opened), broken or forget, done=opened.state != "reading")


# --- what is there already -------------------------------------------------------------------------


async def _opened(ctx: Context, found: Source) -> tuple[Open | None, str | None]:
    """The book as it was left, None where there is none or it is of no use any more; then, with the hash of
    the block that it was kept for."""
    opened = ctx.books.get(found.token)
    if opened is None or opened.state == "reading":
        # Another process may have read on.
        opened = await _loaded(ctx, found.token, opened)
    if opened is None:
        return None, None
    block = opened.book.block
    if block is None:
        ctx.books.drop(found.token)
        return None, None
    if not await _is_still_there(ctx, found, opened) or await _lacks_venues(ctx, found, opened):
        # A fork below it, or trades that were taken for gifts: all of it is read again.
        ctx.books.drop(found.token)
        return None, block.hash
    opened.book.learn(frozenset(found.sources.venues), found.places)
    begun = opened.book.beginning
    if begun.maker is not None and begun.maker.tx_hash is None and found.spot is not None:
        # The index did not know the launch yet.
        opened.book.beginning = replace(begun, maker=await made_by(ctx, found, begun.maker))
    return opened, None


async def _loaded(ctx: Context, token: Address, opened: Open | None) -> Open | None:
    """The book that is kept, where it goes further than the one that is open."""
    try:
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
            if opened is not None and opened.book.block is not None:
                head = await holder_reads.head_of(connection, token)
                if head is None or head.block.number <= opened.book.block.number:
                    return opened
            kept = await holder_reads.kept(connection, token)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "What was read before cannot be had just now.", 5) from error
    if kept is None:
        return opened
    try:
        book = await asyncio.to_thread(load, kept.book)
    except ValueError:
        # Of another release. It goes, however far it went: nothing may be kept in its place before.
        await _forget(ctx, token, kept.block)
        return opened
    opened = Open(book, kept.state, kept.pruned, kept.transfers)
    ctx.books.put(token, opened)
    return opened


async def _forget(ctx: Context, token: Address, block: BlockRef) -> None:
    try:
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
            await holder_reads.forget(connection, token, block.hash)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "What was read before cannot be had just now.", 5) from error


async def _is_still_there(ctx: Context, found: Source, opened: Open) -> bool:
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


async def _lacks_venues(ctx: Context, found: Source, opened: Open) -> bool:
    """Whether trades were not read at a place that the book did not know of, or much was sent there. One that
    opened later, or that nobody used, changes nothing: else whoever opens pools has all read anew each
    time."""
    book = opened.book
    assert book.block is not None
    unknown = found.sources.venues.keys() - book.beginning.venues
    older = sorted(at for at in unknown if not found.is_new(at, book.block.number))
    if not older:
        return False
    sent = [book.wallets[one].received_raw for one in map(Address, older) if one in book.wallets]
    if any(raw * _DUST > found.supply_raw for raw in sent):
        return True
    return await have_traded(ctx, found, older, book.beginning.first_number, book.block.number)


# --- reading ---------------------------------------------------------------------------------------


async def _begun(ctx: Context, found: Source, bounds: Bounds) -> Open:
    """A book with nothing in it. Raises NodeFault, ReadFailed, ServiceFull (holders_no_archive)."""
    try:
        async with asyncio.timeout(bounds.patience_s):
            begun = await beginning(ctx, found)
    except TimeoutError as late:
        raise ReadFailed(NodeFault("it took too long")) from late
    return Open(HolderBook(begun), step("unread", "begun"))


async def _brought_on(
    ctx: Context, found: Source, opened: Open, bounds: Bounds, clock: Clock
) -> tuple[Open, str | None]:
    """The book, read on. Where that shows that it is of another chain, or that the node has let go what comes
    next, it is begun anew, once: then with the hash of the block that it went to. Raises ReadFailed,
    ServiceFull."""
    try:
        try:
            await _read_on(ctx, found, opened, bounds, clock)
            return opened, None
        except Forked:
            if opened.book.block is None or await _is_still_there(ctx, found, opened):
                raise
        except HistoryPruned:
            if opened.book.block is None:
                raise
        gone = opened.book.block
        ctx.books.drop(found.token)
        opened = await _begun(ctx, found, bounds)
        await _read_on(ctx, found, opened, bounds, clock)
        return opened, gone.hash
    except Forked as forked:
        raise ReadFailed(NodeFault("the chain became another one meanwhile")) from forked
    except NodeFault as fault:
        raise ReadFailed(fault) from fault


async def _read_on(ctx: Context, found: Source, opened: Open, bounds: Bounds, clock: Clock) -> None:
    """Folds what is new, up to the head or the bounds. Raises Forked, HistoryPruned, NodeFault,
    ServiceFull."""
    book, before = opened.book, opened.book.block
    try:
        async with asyncio.timeout(bounds.patience_s):
            opened.state = step(opened.state, await _read_spans(ctx, found, opened, bounds, clock))
    except TimeoutError as late:
        if book.block == before:
            raise NodeFault("it took too long") from late
        # What was folded stays.
        opened.state = step(opened.state, "advanced")
    except BlockTooLarge:
        # One block of it is more than is ever read: of no chain that bounds its blocks.
        if book.block is None:
            number = max(0, book.beginning.first_number - 1)
            (before_it,) = await read_refs(ctx.node, [number])
            if before_it is None:
                raise
            book.reached(before_it[0])
        opened.state = step(opened.state, "capped")
    except HistoryPruned:
        if opened.pruned or book.block is not None:
            raise
        await _begin_later(ctx, found, opened)
        await _read_on(ctx, found, opened, bounds, clock)


async def _read_spans(ctx: Context, found: Source, opened: Open, bounds: Bounds, clock: Clock) -> Event:
    """How far it came."""
    book, started_s, logs = opened.book, clock(), 0
    block = book.block
    first, parent_hash = book.beginning.first_number, None
    if block is not None:
        first, parent_hash = block.number + 1, block.hash
    if first > found.head.number:
        return "caught_up"
    node = OwnBudget(ctx.node, ctx.books.budget, ctx.now_s)
    spans = token_spans(node, found.sources, first, found.head, opened.width, parent_hash=parent_hash)
    async with contextlib.aclosing(spans) as reading:
        async for span in reading:
            await _fold(ctx, book, span)
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
    book.reached(span.last)


async def _begin_later(ctx: Context, found: Source, opened: Open) -> None:
    """The node gives no logs of the token's first blocks: the book begins where it gives some."""
    begun = opened.book.beginning
    number = await oldest_logs(ctx.node, found.sources, begun.first_number, found.head.number)
    if number is None:
        raise ServiceFull("holders_no_archive", "No node here keeps the token's transfers of long ago.", 3600)
    opened.book.beginning = replace(begun, first_number=number, launch_number=None)
    opened.pruned = True


# --- writing ---------------------------------------------------------------------------------------


def _is_worth_writing(opened: Open) -> bool:
    new = opened.book.transfers - max(0, opened.kept_transfers)
    return opened.kept_transfers < 0 or new >= max(_WRITTEN_EVERY, opened.kept_transfers // 50)


async def _kept(ctx: Context, opened: Open) -> Kept:
    """The book as it is written down."""
    book, now = opened.book, datetime.fromtimestamp(ctx.now_s(), UTC)
    assert book.block is not None
    packing = asyncio.to_thread(dump, book) if len(book.wallets) > _SMALL else None
    packed = dump(book) if packing is None else await packing
    first_number = book.beginning.first_number
    return Kept(opened.state, book.block, book.transfers, first_number, opened.pruned, packed, now, now)


async def _note_asked(ctx: Context, token: Address) -> None:
    """It is kept so much longer: also one that has nothing new to write."""
    with contextlib.suppress(*DATABASE_FAULTS):
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
            await holder_reads.asked(connection, token, datetime.fromtimestamp(ctx.now_s(), UTC))


async def _write(ctx: Context, opened: Open, kept: Kept, forget: str | None) -> None:
    """Nothing is lost where it cannot be written: it is read again then."""
    with contextlib.suppress(*DATABASE_FAULTS):
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            await write(connection, opened.book.beginning.token, kept, forget)
        opened.kept_transfers = kept.transfers


async def write(connection: asyncpg.Connection, token: Address, kept: Kept, forget: str | None) -> None:
    """In the caller's transaction."""
    if forget is not None:
        await holder_reads.forget(connection, token, forget)
    await holder_reads.keep(connection, token, kept)


async def _wish(ctx: Context, token: Address, kept: Kept | None, forget: str | None) -> None:
    """Has a job go on with it, with what was read so far. Raises ServiceFull (holders_busy) where too many
    wait."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    try:
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            if kept is not None:
                await write(connection, token, kept, forget)
            if await jobs.is_to_come(connection, JOB, token):
                return
            if await jobs.among(connection, JOB, [token], now - _GIVEN_UP):
                raise ReadFailed(NodeFault("it failed again and again while transfers were read"))
            if await jobs.due(connection, JOB, now) >= MOST_JOBS:
                raise ServiceFull(
                    "holders_busy", "Too many busy tokens are being read; ask again in a few minutes.", 60
                )
            await jobs.enqueue(connection, JOB, token)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "What was read cannot be kept just now.", 5) from error
