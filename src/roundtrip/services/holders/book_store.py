"""Books as they lie in the database, and the job that goes on with one."""

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
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.server.jobs import PendingJob
from roundtrip.store.server.rows import Connection

JOB = "holders"
MOST_JOBS = 50
"""More busy tokens are not taken in: each is a million transfers, perhaps."""
_GIVEN_UP = timedelta(minutes=10)
"""After a job was given up nobody is told to wait for another one so long."""
_SOON_S = 60
"""A job that waits longer is not what anybody waits for."""
_FAILED = "it failed again and again while transfers were read"
_DATABASE_S = 5.0
_SMALL = 20_000
"""Books of so many wallets are packed in some 50 ms; larger ones beside the loop."""
_WRITTEN_EVERY = 500
"""A whole book is written again when so many transfers, or a fiftieth of all, are new: what is not written is
read once more."""


async def load_book(ctx: Context, token: Address, opened: OpenBook | None) -> OpenBook | None:
    """The book that is kept, where it goes further than the one that is open. Raises ServiceFull (busy)."""
    try:
        if opened is not None and opened.book.block is not None:
            async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                head = await books.head_of(connection, token)
            if head is None or head.block.number <= opened.book.block.number:
                return opened
        async with ctx.books.loading:
            async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                kept = await books.load_book(connection, token)
            if kept is None:
                return opened
            try:
                book = await asyncio.to_thread(load, kept.book)
            except ValueError:
                # Of another release. It goes, however far it went: nothing may be kept in its place before.
                async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
                    await books.forget(connection, token, kept.block.hash)
                return opened
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "What was read before cannot be had just now.", 5) from error
    opened = OpenBook(book, kept.state, kept.pruned, kept.transfers)
    asked = ctx.books.probe_times(token)
    if asked.probed_s is None and kept.pruned:
        asked.probed_s = kept.read_at.timestamp()
    ctx.books.put(token, opened)
    return opened


def is_worth_writing(opened: OpenBook) -> bool:
    """Whether enough is new in a book that is whole."""
    new = opened.book.transfers - max(0, opened.kept_transfers)
    return opened.kept_transfers < 0 or new >= max(_WRITTEN_EVERY, opened.kept_transfers // 50)


async def pack_book(ctx: Context, opened: OpenBook) -> StoredBook:
    """The book as it is written down. It goes to a block."""
    book, now = opened.book, datetime.fromtimestamp(ctx.now_s(), UTC)
    assert book.block is not None
    packing = asyncio.to_thread(dump, book) if len(book.wallets) > _SMALL else None
    written = dump(book) if packing is None else await packing
    first_number = book.beginning.first_number
    return StoredBook(
        opened.state, book.block, book.transfers, first_number, opened.pruned, written, now, now
    )


async def note_asked(ctx: Context, token: Address) -> None:
    """It is kept so much longer: also one that has nothing new to write."""
    with contextlib.suppress(*DATABASE_FAULTS):
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
            await books.touch(connection, token, datetime.fromtimestamp(ctx.now_s(), UTC))


async def write(ctx: Context, opened: OpenBook, kept: StoredBook, forget: str | None) -> None:
    """Nothing is lost where it cannot be written: it is read again then."""
    with contextlib.suppress(*DATABASE_FAULTS):
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection, connection.transaction():
            await _write(connection, opened.book.beginning.token, kept, forget)
        opened.kept_transfers = kept.transfers


async def _write(connection: Connection, token: Address, kept: StoredBook | None, forget: str | None) -> None:
    if forget is not None:
        await books.forget(connection, token, forget)
    if kept is not None:
        await books.keep(connection, token, kept)


async def wish(ctx: Context, token: Address, kept: StoredBook | None, forget: str | None) -> None:
    """Has a job go on with it, with what was read so far. Raises ServiceFull (holders_busy) where too many
    wait, (holders_budget) where it waits for another day's budget; ReadFailed where it was given up not long
    ago, or waits since it failed."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    try:
        async with ctx.pool.acquire(timeout=_DATABASE_S) as connection:
            async with connection.transaction():
                await _write(connection, token, kept, forget)
            waits = await jobs.to_come(connection, JOB, token)
            if waits is not None:
                _raise_if_late(waits, now)
                return
            if await jobs.among(connection, JOB, [token], now - _GIVEN_UP):
                raise ReadFailed(NodeFault(_FAILED))
            if await jobs.due(connection, JOB, now) >= MOST_JOBS:
                raise ServiceFull(
                    "holders_busy", "Too many busy tokens are being read; ask again in a few minutes.", 60
                )
            await jobs.enqueue(connection, JOB, token)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "What was read cannot be kept just now.", 5) from error


def _raise_if_late(job: PendingJob, now: datetime) -> None:
    wait_s = int((job.run_at - now).total_seconds())
    if wait_s <= _SOON_S:
        return
    if job.last_error is not None:
        raise ReadFailed(NodeFault(_FAILED), wait_s)
    raise ServiceFull("holders_budget", BUDGET_SAID, wait_s)
