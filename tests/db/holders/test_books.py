"""Books of holders: kept as they were, never set back, forgotten and pruned."""

import asyncio
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.holders.read_state import State
from roundtrip.store.holders import books as holder_reads
from roundtrip.store.holders.books import KEPT_FOR, PRUNE_BATCH, StoredBook
from roundtrip.store.server.rows import Connection, as_bytes
from support.tables import own_database
from unit.venues.network import address

TOKEN, OTHER = address(0x70CE), address(0x70CF)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOON, LATER = NOW + timedelta(seconds=59), NOW + timedelta(minutes=1)


def at(number: int, side: int = 0) -> BlockRef:
    """A block; ``side``: of which fork."""
    return BlockRef(number, f"0x{side:032x}{number:032x}", 1_760_000_000 + number)


def book(number: int = 100, state: State = "reading", side: int = 0) -> StoredBook:
    return StoredBook(state, at(number, side), 2**40, 7, True, b"\x00" + bytes([number % 256]) * 9, NOW, NOW)


async def test_what_is_kept_reads_back(connection: Connection) -> None:
    assert await holder_reads.load_book(connection, TOKEN) is None
    assert await holder_reads.load_head(connection, TOKEN) is None
    whole = replace(
        book(), state="whole", pruned=False, block=BlockRef(2**31 - 1, "0x" + "0f" * 32, 2**31 - 1)
    )
    assert await holder_reads.save_book(connection, TOKEN, whole)
    assert await holder_reads.save_book(connection, OTHER, book())
    assert await holder_reads.load_book(connection, TOKEN) == whole
    assert await holder_reads.load_book(connection, OTHER) == book()


async def test_the_head_is_the_same_without_the_book(connection: Connection) -> None:
    await holder_reads.save_book(connection, TOKEN, replace(book(), read_at=LATER))
    found = await holder_reads.load_head(connection, TOKEN)
    assert found is not None
    rows = asdict(replace(book(), read_at=LATER))
    assert asdict(found) == {**{name: rows[name] for name in rows if name != "book"}, "book_bytes": 10}


async def test_the_head_of_a_large_book_is_not_made_of_it(connection: Connection) -> None:
    """It lies outside of the row, uncompressed, and no page of it is touched."""
    large = bytes(range(256)) * 40_000
    await holder_reads.save_book(connection, TOKEN, replace(book(), book=large))
    found, whole = [await ask(connection, TOKEN) for ask in (holder_reads.load_head, holder_reads.load_book)]
    assert isinstance(whole, StoredBook)
    assert whole.book == large
    lies = await connection.fetchrow(
        "SELECT pg_column_size(book) AS stored, length(book) AS bytes FROM facts.holder_read"
        " WHERE token = $1",
        as_bytes(TOKEN),
    )
    assert lies is not None
    assert (lies["stored"], lies["bytes"]) == (len(large), len(large))
    assert not isinstance(found, StoredBook)
    assert found is not None
    assert found.book_bytes == len(large)


@pytest.mark.parametrize(
    ("then", "written"),
    [
        (book(101), True),
        (book(101, "whole"), True),
        (book(101, "capped"), True),
        (book(99, "whole"), False),
        (book(99, "capped"), False),
        (book(100, "whole"), True),
        (book(100, "capped"), True),
        (book(100), True),
        (book(101, side=1), True),
        (book(99, side=1), False),
    ],
)
async def test_a_book_is_never_set_back(connection: Connection, then: StoredBook, written: bool) -> None:
    await holder_reads.save_book(connection, TOKEN, book(100))
    then = replace(then, transfers=3, first_number=8, pruned=False, book=b"then")
    assert await holder_reads.save_book(connection, TOKEN, then) == written
    assert await holder_reads.load_book(connection, TOKEN) == (then if written else book(100))


@pytest.mark.parametrize("before", ["whole", "capped"])
@pytest.mark.parametrize("then", get_args(State)[1:])
async def test_what_was_whole_at_a_block_stays_so_at_it(
    connection: Connection, before: State, then: State
) -> None:
    await holder_reads.save_book(connection, TOKEN, book(100, before))
    assert await holder_reads.save_book(connection, TOKEN, book(100, then)) == (before == then)
    assert await holder_reads.load_book(connection, TOKEN) == book(100, before)
    assert await holder_reads.save_book(connection, TOKEN, book(101, then))


async def test_what_is_unread_cannot_be_kept(connection: Connection) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await holder_reads.save_book(connection, TOKEN, book(100, "unread"))


async def test_a_book_of_another_chain_is_forgotten_first(connection: Connection) -> None:
    await holder_reads.save_book(connection, TOKEN, book(100))
    await holder_reads.save_book(connection, OTHER, book(100))
    assert not await holder_reads.delete_book(connection, TOKEN, at(100, side=1).hash)
    assert not await holder_reads.save_book(connection, TOKEN, book(50, side=1))
    assert await holder_reads.delete_book(connection, TOKEN, at(100).hash)
    assert await holder_reads.load_book(connection, TOKEN) is None
    assert not await holder_reads.delete_book(connection, TOKEN, at(100).hash)
    assert await holder_reads.save_book(connection, TOKEN, book(50, side=1))
    assert await holder_reads.load_book(connection, OTHER) == book(100)


async def test_who_reads_on_does_not_ask(connection: Connection) -> None:
    """A reader keeps the time that it saw: meanwhile somebody may have asked."""
    await holder_reads.save_book(connection, TOKEN, book(100))
    await holder_reads.touch(connection, TOKEN, LATER)
    await holder_reads.save_book(connection, TOKEN, replace(book(101), read_at=SOON))
    found = await holder_reads.load_book(connection, TOKEN)
    assert found is not None
    assert (found.asked_at, found.read_at) == (LATER, SOON)


async def test_that_it_was_asked_for_is_written_once_a_minute(connection: Connection) -> None:
    await holder_reads.save_book(connection, TOKEN, book())
    await holder_reads.save_book(connection, OTHER, book())

    async def asked_at(token: Address = TOKEN) -> datetime:
        found = await holder_reads.load_head(connection, token)
        assert found is not None
        return found.asked_at

    seen = []
    for when in (SOON, LATER, SOON):
        await holder_reads.touch(connection, TOKEN, when)
        seen.append(await asked_at())
    assert seen == [NOW, LATER, LATER]
    assert await asked_at(OTHER) == NOW


# --- pruning ---------------------------------------------------------------------------------------


async def fill(connection: Connection, books: list[tuple[int, int]]) -> None:
    """Books of so many bytes, asked for so many seconds from now; the nth of token n."""
    await connection.execute("DELETE FROM facts.holder_read")
    await connection.executemany(
        "INSERT INTO facts.holder_read VALUES ($1, 'whole', 1, $2, 1, 0, 0, false, $3, $4, $4)",
        [
            (bytes.fromhex(address(n)[2:]), bytes(32), bytes(size), NOW + timedelta(seconds=asked_s))
            for n, (size, asked_s) in enumerate(books)
        ],
    )


async def left(connection: Connection) -> set[int]:
    rows = await connection.fetch("SELECT token FROM facts.holder_read")
    return {int.from_bytes(row["token"]) for row in rows}


async def test_what_nobody_asks_for_goes(connection: Connection) -> None:
    kept_s = int(KEPT_FOR.total_seconds())
    assert kept_s == 7 * 86_400
    await fill(connection, [(1, -kept_s - 1), (1, -kept_s), (1, 0)])
    assert await holder_reads.prune(connection, NOW - KEPT_FOR) == 1
    assert await left(connection) == {1, 2}


async def test_only_so_many_go_at_once_the_oldest_first(connection: Connection) -> None:
    await fill(connection, [(1, n) for n in range(PRUNE_BATCH + 5)])
    assert await holder_reads.prune(connection, NOW + KEPT_FOR) == PRUNE_BATCH
    assert await left(connection) == set(range(PRUNE_BATCH, PRUNE_BATCH + 5))
    await fill(connection, [(1, n) for n in range(PRUNE_BATCH + 5)])
    assert await holder_reads.prune_to(connection, 2) == PRUNE_BATCH
    assert await left(connection) == set(range(PRUNE_BATCH, PRUNE_BATCH + 5))
    assert await holder_reads.prune_to(connection, 2) == 3
    assert await left(connection) == {PRUNE_BATCH + 3, PRUNE_BATCH + 4}


async def test_of_four_gigabytes_nothing_goes(connection: Connection) -> None:
    await fill(connection, [(1000, 0)] * 5)
    assert await holder_reads.prune_to(connection) == 0
    assert holder_reads.MAX_BYTES == 4 * 2**30


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(books=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), max_size=12), most=st.integers(0, 80))
async def test_those_last_asked_for_stay_as_far_as_there_is_room(
    connection: Connection, books: list[tuple[int, int]], most: int
) -> None:
    await fill(connection, books)
    newest = sorted(range(len(books)), key=lambda n: (-books[n][1], n))
    stay, total = set(), 0
    for n in newest:
        total += books[n][0]
        if total <= most:
            stay.add(n)
    assert await holder_reads.prune_to(connection, most) == len(books) - len(stay)
    assert await left(connection) == stay


async def test_a_book_that_is_being_written_is_not_waited_for(database_url: str) -> None:
    async with own_database(database_url, "holder_reads_pruned") as url:
        writer, pruner = [await asyncpg.connect(url) for _ in range(2)]
        await fill(writer, [(5, 0), (5, 1)])
        async with writer.transaction(), asyncio.timeout(10):
            await writer.execute("UPDATE facts.holder_read SET transfers = 1 WHERE token = $1", bytes(20))
            assert await holder_reads.prune(pruner, NOW + KEPT_FOR) == 1
            assert await holder_reads.prune_to(pruner, 0) == 0
        assert await left(pruner) == {0}
        await writer.close()
        await pruner.close()
