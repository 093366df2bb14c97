"""Loads and saves holder books, and enqueues the job that reads one on."""

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta

from roundtrip.domain.base.errors import NodeFault, ReadFailed, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.book import dump, load
from roundtrip.services.runtime.book_cache import BUDGET_SAID, OpenBook
from roundtrip.services.runtime.context import Context
from roundtrip.store.holders import books
from roundtrip.store.holders.books import StoredBook
from roundtrip.store.server import jobs
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection

JOB = "holders"
"""The kind of the job that reads a token's book on."""
_GIVEN_UP = timedelta(minutes=10)
"""How long after a job was given up callers get an error instead of another job."""
_SOON_S = 60
"""If a job is scheduled later than this, the caller gets an error instead of waiting for it."""
_FAILED = "reading the transfers failed repeatedly"
_DATABASE_S = 5.0
_SMALL = 20_000
"""Books with up to this many wallets are packed in about 50 ms; larger ones in a thread."""


async def load_book(ctx: Context, token: Address, open_book: OpenBook | None) -> OpenBook | None:
    """The stored book if it goes further than the open one, else the open one. Raises ServiceFull (busy)."""
    try:
        if open_book is not None and open_book.book.block is not None:
            async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                head = await books.load_head(connection, token)
            if head is None or head.block.number <= open_book.book.block.number:
                return open_book
        async with ctx.books.loading:
            async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                stored = await books.load_book(connection, token)
            if stored is None:
                return open_book
            try:
                book = await asyncio.to_thread(load, stored.book)
            except ValueError:
                # The book is of another release. It would block shorter ones, so it is deleted.
                async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                    await books.delete_book(connection, token, stored.block.hash)
                return open_book
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Saved holder data is unavailable; retry in 5 seconds.", 5) from error
    open_book = ctx.books.new_book(book, stored.state, stored.pruned, stored.transfers)
    probe_times = ctx.books.probe_times(token)
    if probe_times.probed_s is None and stored.pruned:
        probe_times.probed_s = stored.read_at.timestamp()
    ctx.books.put(token, open_book)
    return open_book


def is_worth_writing(ctx: Context, open_book: OpenBook) -> bool:
    """Whether enough transfers are new in a book that reached the head; always, if it was never stored."""
    new_transfers = open_book.book.transfers - max(0, open_book.kept_transfers)
    return open_book.kept_transfers < 0 or new_transfers >= max(
        ctx.books.limits.written_every, open_book.kept_transfers // 50
    )


async def pack_book(ctx: Context, open_book: OpenBook) -> StoredBook:
    """The book in stored form. It must have a block."""
    book, now = open_book.book, datetime.fromtimestamp(ctx.now_s(), UTC)
    assert book.block is not None
    packing = asyncio.to_thread(dump, book) if len(book.wallets) > _SMALL else None
    packed = dump(book) if packing is None else await packing
    first_number = book.beginning.first_number
    return StoredBook(
        open_book.state, book.block, book.transfers, first_number, open_book.pruned, packed, now, now
    )


async def record_request(ctx: Context, token: Address) -> None:
    """Records a request for a book with nothing new to save, which keeps it longer."""
    with contextlib.suppress(*DATABASE_FAULTS):
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
            await books.touch(connection, token, datetime.fromtimestamp(ctx.now_s(), UTC))


async def save_book(ctx: Context, open_book: OpenBook, stored: StoredBook, forget: str | None) -> None:
    """Saves the book. If the database is unavailable, nothing is lost: the transfers are read again."""
    with contextlib.suppress(*DATABASE_FAULTS):
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            await _replace_book(connection, open_book.book.beginning.token, stored, forget)
        open_book.kept_transfers = stored.transfers


async def _replace_book(
    connection: Connection, token: Address, stored: StoredBook | None, forget: str | None
) -> None:
    if forget is not None:
        await books.delete_book(connection, token, forget)
    if stored is not None:
        await books.save_book(connection, token, stored)


async def enqueue_read(ctx: Context, token: Address, stored: StoredBook | None, forget: str | None) -> None:
    """Saves what was read so far, and enqueues a job that reads on. Raises ServiceFull (holders_busy) if too
    many jobs wait, (holders_budget) if it waits for the next day's budget; ReadFailed if it was given up
    recently, or is to be retried later after a failure."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    try:
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
            async with connection.transaction():
                await _replace_book(connection, token, stored, forget)
            pending = await jobs.to_come(connection, JOB, token)
            if pending is not None:
                _raise_if_late(*pending, now)
                return
            if await jobs.among(connection, JOB, [token], now - _GIVEN_UP):
                raise ReadFailed(NodeFault(_FAILED))
            if await jobs.due(connection, JOB, now) >= ctx.books.limits.max_jobs:
                raise ServiceFull(
                    "holders_busy", "Too many busy tokens are being read; ask again in a few minutes.", 60
                )
            await jobs.enqueue(connection, JOB, token)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Holder data cannot be saved just now; retry in 5 seconds.", 5) from error


def _raise_if_late(run_at: datetime, last_error: str | None, now: datetime) -> None:
    wait_s = int((run_at - now).total_seconds())
    if wait_s <= _SOON_S:
        return
    if last_error is not None:
        raise ReadFailed(NodeFault(_FAILED), wait_s)
    raise ServiceFull("holders_budget", BUDGET_SAID, wait_s)
