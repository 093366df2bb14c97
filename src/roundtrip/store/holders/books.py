"""Books of who holds a token, kept as far as they were read. Whoever uses one holds its block against the
chain: a book of another chain is forgotten, and read anew.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.holders.read_state import State
from roundtrip.store.server.hex import as_bytes, as_text
from roundtrip.store.server.rows import Connection

KEPT_FOR = timedelta(days=7)
"""After it was last asked for: it can be read again."""
MOST_BYTES = 4 * 2**30
"""Of all books together; those that were not asked for the longest go first."""
MOST_PRUNED = 200
"""So many at once, that nobody waits long."""
TOUCHED_EVERY = timedelta(minutes=1)
"""Of somebody who asks every second only so much is written."""


@dataclass(frozen=True, slots=True)
class BookHead:
    """How far a token was read, without the book. ``state``: never unread. ``block``: everything up to its
    end is in it. ``first_number``: where it was begun; ``pruned``: what is older was gone at the node.
    ``book_bytes``: as it lies there. ``asked_at``: when somebody last asked; ``read_at``: when it was last
    read."""

    state: State
    block: BlockRef
    transfers: int
    first_number: int
    pruned: bool
    book_bytes: int
    asked_at: datetime
    read_at: datetime


@dataclass(frozen=True, slots=True)
class StoredBook:
    """The same with the book, as ``holder_book.dump`` writes it."""

    state: State
    block: BlockRef
    transfers: int
    first_number: int
    pruned: bool
    book: bytes
    asked_at: datetime
    read_at: datetime


_WHERE = "state, block_number, block_hash, at_s, transfers, first_number, pruned"


async def load_book(connection: Connection, token: Address) -> StoredBook | None:
    """What lies there; None: it is unread. Whether its block is on the chain is the caller's to find out."""
    row = await connection.fetchrow(
        f"SELECT {_WHERE}, book, asked_at, read_at FROM facts.holder_read WHERE token = $1",  # noqa: S608
        as_bytes(token),
    )
    if row is None:
        return None
    return StoredBook(
        row["state"],
        _block(row),
        row["transfers"],
        row["first_number"],
        row["pruned"],
        row["book"],
        row["asked_at"],
        row["read_at"],
    )


async def head_of(connection: Connection, token: Address) -> BookHead | None:
    """The same without reading the book, which may be tens of megabytes."""
    row = await connection.fetchrow(
        f"SELECT {_WHERE}, length(book) AS book_bytes, asked_at, read_at"  # noqa: S608
        " FROM facts.holder_read WHERE token = $1",
        as_bytes(token),
    )
    if row is None:
        return None
    return BookHead(
        row["state"],
        _block(row),
        row["transfers"],
        row["first_number"],
        row["pruned"],
        row["book_bytes"],
        row["asked_at"],
        row["read_at"],
    )


async def keep(connection: Connection, token: Address, book: StoredBook) -> bool:
    """Writes it in the place of one that goes less far, or as far and is still being read. False, and nothing
    is written: what lies there goes further, somebody else was faster. One of another chain is forgotten
    first. Raises asyncpg.CheckViolationError for the state unread."""
    written = await connection.fetchval(
        "INSERT INTO facts.holder_read AS kept (token, state, block_number, block_hash, at_s, transfers,"
        " first_number, pruned, book, asked_at, read_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (token) DO UPDATE SET"
        " state = excluded.state, block_number = excluded.block_number, block_hash = excluded.block_hash,"
        " at_s = excluded.at_s, transfers = excluded.transfers, first_number = excluded.first_number,"
        " pruned = excluded.pruned, book = excluded.book, read_at = excluded.read_at,"
        " asked_at = greatest(kept.asked_at, excluded.asked_at)"
        " WHERE kept.block_number < excluded.block_number"
        " OR (kept.block_number = excluded.block_number"
        " AND (kept.state = 'reading' OR kept.state = excluded.state))"
        " RETURNING true",
        as_bytes(token),
        book.state,
        book.block.number,
        as_bytes(book.block.hash),
        book.block.timestamp_s,
        book.transfers,
        book.first_number,
        book.pruned,
        book.book,
        book.asked_at,
        book.read_at,
    )
    return written is not None


async def forget(connection: Connection, token: Address, block_hash: str) -> bool:
    """Throws the book away that goes to this block; False: none such lies there."""
    gone = await connection.fetchval(
        "DELETE FROM facts.holder_read WHERE token = $1 AND block_hash = $2 RETURNING true",
        as_bytes(token),
        as_bytes(block_hash),
    )
    return gone is not None


async def touch(connection: Connection, token: Address, at: datetime) -> None:
    """Somebody asked for it: it is kept so much longer. Written once a minute at most."""
    await connection.execute(
        "UPDATE facts.holder_read SET asked_at = $2 WHERE token = $1 AND asked_at <= $3",
        as_bytes(token),
        at,
        at - TOUCHED_EVERY,
    )


_AWAY = """
WITH gone AS (
    DELETE FROM facts.holder_read WHERE token IN (
        SELECT token FROM facts.holder_read WHERE token IN ({which}) FOR UPDATE SKIP LOCKED
    ) RETURNING 1
) SELECT count(*) FROM gone
"""
"""Those that somebody writes just now stay: they are asked for."""
_OLD = "SELECT token FROM facts.holder_read WHERE asked_at < $1 ORDER BY asked_at LIMIT $2"
_TOO_MUCH = """
SELECT token FROM (
    SELECT token, asked_at, sum(length(book)) OVER (ORDER BY asked_at DESC, token) AS bytes
    FROM facts.holder_read
) AS newest WHERE bytes > $1 ORDER BY asked_at LIMIT $2
"""


async def prune(connection: Connection, before: datetime) -> int:
    """Takes those away that nobody asked for since then, ``MOST_PRUNED`` at once; how many that were."""
    count: int = await connection.fetchval(_AWAY.format(which=_OLD), before, MOST_PRUNED)
    return count


async def prune_to(connection: Connection, most_bytes: int = MOST_BYTES) -> int:
    """Takes away what goes past so many bytes of books, those last asked for longest ago, ``MOST_PRUNED`` at
    once; how many that were."""
    count: int = await connection.fetchval(_AWAY.format(which=_TOO_MUCH), most_bytes, MOST_PRUNED)
    return count


def _block(row: asyncpg.Record) -> BlockRef:
    return BlockRef(row["block_number"], as_text(row["block_hash"]), row["at_s"])
