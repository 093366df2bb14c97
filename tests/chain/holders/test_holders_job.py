"""A busy token's reading as a job: piece by piece, each kept before the next, tokens in turns."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.holders.read_state import State
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.holder_record import book_reader
from roundtrip.services.holder_record.book_reader import BookChange
from roundtrip.services.runtime.context import Context
from roundtrip.store.holders import books
from roundtrip.store.holders.books import StoredBook
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection
from support.tables import emptied_tables
from unit.venues.network import address

WAIT_S = 30
NOW_S = 2_000_000_000.0
NOW = datetime.fromtimestamp(NOW_S, UTC)
TOKEN, OTHER = address(0x70CE), address(0x70CF)
LAST = 3


def block(number: int, side: int = 0) -> BlockRef:
    return BlockRef(number, f"0x{side:032x}{number:032x}", number)


def book(number: int, side: int = 0) -> StoredBook:
    state: State = "whole" if number == LAST else "reading"
    return StoredBook(state, block(number, side), number, 1, False, bytes([number]), NOW, NOW)


@dataclass
class PieceReader:
    """Stands for reading: a block a piece, of every token. ``read``: the pieces, in their order; ``fails``:
    what is raised in place of the next ones."""

    ctx: Context
    read: list[tuple[Address, int]] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)
    side: int = 0

    async def go_on(self, ctx: Context, token: Address) -> BookChange:
        if self.fails:
            raise self.fails.pop(0)
        async with ctx.pool.acquire() as connection:
            found = await books.load_head(connection, token)
        if found is not None and found.block != block(found.block.number, self.side):
            return BookChange(None, found.block.hash, done=False)
        number = 1 if found is None else found.block.number + 1
        self.read.append((token, number))
        return BookChange(book(number, self.side), None, done=number == LAST)


@pytest.fixture
async def clean(database_url: str) -> AsyncIterator[Connection]:
    tables = "jobs.job, facts.holder_read"
    async with emptied_tables(database_url, tables) as connection:
        yield connection


@pytest.fixture
def reader(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> PieceReader:
    found = PieceReader(ctx)
    monkeypatch.setattr(book_reader, "read_piece", found.go_on)
    return found


async def work(ctx: Context, after_s: float = 0) -> None:
    """One round, so long after the test's beginning."""
    later = replace(ctx, now_s=lambda: NOW_S + after_s)
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*await Worker(later, KINDS, lambda: 0.5).take())


async def kept(connection: Connection, token: Address = TOKEN) -> StoredBook | None:
    return await books.load_book(connection, token)


async def waits(connection: Connection) -> list[str]:
    return [row["key"] for row in await connection.fetch("SELECT key FROM jobs.job ORDER BY run_at, id")]


async def test_it_is_read_piece_by_piece_until_there_is_no_more(
    ctx: Context, clean: Connection, reader: PieceReader
) -> None:
    await jobs.enqueue(clean, "holders", TOKEN)
    seen = []
    for _ in range(LAST):
        await work(ctx)
        seen.append((await kept(clean), await waits(clean)))
    assert seen == [(book(1), [TOKEN]), (book(2), [TOKEN]), (book(3), [])]
    assert reader.read == [(TOKEN, 1), (TOKEN, 2), (TOKEN, 3)]


async def test_tokens_take_turns(ctx: Context, clean: Connection, reader: PieceReader) -> None:
    """Also where one was wished for while the other was being read."""
    await jobs.enqueue(clean, "holders", TOKEN)
    await work(ctx)
    await jobs.enqueue(clean, "holders", OTHER)
    for after_s in range(1, 6):
        await work(ctx, after_s)
    assert reader.read == [(TOKEN, 1), (OTHER, 1), (TOKEN, 2), (OTHER, 2), (TOKEN, 3), (OTHER, 3)]
    assert await waits(clean) == []


async def test_a_piece_that_fails_loses_nothing_that_was_kept(
    ctx: Context, clean: Connection, reader: PieceReader
) -> None:
    await jobs.enqueue(clean, "holders", TOKEN)
    await work(ctx)
    reader.fails = [ServiceFull("busy", "Nothing can be kept just now.")]
    await work(ctx)
    [row] = await clean.fetch("SELECT run_at, tries, last_error FROM jobs.job")
    assert (row["run_at"] - NOW, row["tries"]) == (timedelta(seconds=5), 1)
    assert row["last_error"] == "ServiceFull: Nothing can be kept just now."
    assert await kept(clean) == book(1)
    await work(ctx, 5)
    assert await kept(clean) == book(2)
    assert await clean.fetchval("SELECT tries FROM jobs.job") == 0


@pytest.mark.parametrize("code", ["holders_budget", "budget_spent"])
@pytest.mark.parametrize("told_s", [None, 700])
async def test_where_a_days_budget_is_spent_it_waits_for_the_next_day_and_uses_no_try(
    ctx: Context, clean: Connection, reader: PieceReader, code: str, told_s: int | None
) -> None:
    await jobs.enqueue(clean, "holders", TOKEN, {"why": "asked"})
    await work(ctx)
    later_s, day_s = 0.0, 86_400 - NOW_S % 86_400
    for _ in range(12):
        reader.fails = [ServiceFull(code, "Nothing is left for today.", told_s)]
        await work(ctx, later_s)
        [row] = await clean.fetch("SELECT run_at, tries, failed_at, payload FROM jobs.job")
        waits_s = (row["run_at"] - NOW).total_seconds() - later_s
        assert (row["tries"], row["failed_at"], waits_s) == (0, None, told_s or day_s)
        assert row["payload"] == '{"why": "asked"}'
        later_s += waits_s
        day_s = 86_400
    assert await kept(clean) == book(1)
    await work(ctx, later_s)
    assert await kept(clean) == book(2)


async def test_a_worker_that_dies_as_it_writes_loses_its_piece_alone(
    ctx: Context, clean: Connection, reader: PieceReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it did is one transaction with the end of the job."""

    async def dies(*given: object) -> bool:
        raise ConnectionError("gone")

    await jobs.enqueue(clean, "holders", TOKEN)
    await work(ctx)
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "finish", dies)
        await work(ctx)
    assert await kept(clean) == book(1)
    await work(ctx, 5)
    assert await kept(clean) == book(2)


async def test_a_book_of_another_chain_goes_and_is_begun_anew(
    ctx: Context, clean: Connection, reader: PieceReader
) -> None:
    await jobs.enqueue(clean, "holders", TOKEN)
    await work(ctx)
    await work(ctx)
    reader.side = 1
    await work(ctx)
    assert await kept(clean) is None
    await work(ctx)
    assert await kept(clean) == book(1, side=1)


async def test_one_that_does_not_get_on_is_not_tried_for_ever(
    ctx: Context, clean: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stands(ctx: Context, token: Address) -> BookChange:
        return BookChange(None, None, done=False)

    monkeypatch.setattr(book_reader, "read_piece", stands)
    await jobs.enqueue(clean, "holders", TOKEN)
    waited: list[float] = []
    while (row := (await clean.fetch("SELECT * FROM jobs.job"))[0])["failed_at"] is None:
        waited.append(max(row["run_at"].timestamp() - NOW_S, 0.0))
        assert len(waited) < 20
        await work(ctx, waited[-1])
    assert row["last_error"] == "NotYet: the read stopped before the end"
    assert len(waited) == KINDS["holders"].most_tries == 10
    assert 5 * 3600 < waited[-1] < 6 * 3600


async def test_what_another_worker_has_read_further_stays(
    ctx: Context, clean: Connection, reader: PieceReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on from there."""
    read_on = reader.go_on

    async def slowly(ctx: Context, token: Address) -> BookChange:
        piece = await read_on(ctx, token)
        await books.save_book(clean, token, book(2))
        return piece

    monkeypatch.setattr(book_reader, "read_piece", slowly)
    await jobs.enqueue(clean, "holders", TOKEN)
    await work(ctx)
    assert await kept(clean) == book(2)
    monkeypatch.setattr(book_reader, "read_piece", read_on)
    await work(ctx)
    assert (await kept(clean), await waits(clean)) == (book(3), [])


async def test_large_books_do_not_wait_for_the_end_of_the_day(
    ctx: Context, clean: Connection, reader: PieceReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = books.prune_to.__defaults__
    assert bounds == (books.MAX_BYTES,)
    monkeypatch.setattr(books.prune_to, "__defaults__", (1,))
    await books.save_book(clean, OTHER, replace(book(1), asked_at=NOW - timedelta(days=1)))
    await jobs.enqueue(clean, "holders", TOKEN)
    await work(ctx)
    assert await kept(clean, OTHER) is None
    assert await kept(clean) == book(1)
