"""Stored holder books. The caller checks a book's block against the chain, and deletes a book whose block was
reorged out."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.holders.read_state import State
from roundtrip.store.server.rows import Connection, as_bytes, fetch_optional, fetch_row, fetch_value

KEPT_FOR = timedelta(days=7)
"""How long a book is kept after it was last requested; it can be read again."""
MAX_BYTES = 4 * 2**30
"""The maximum size of all books together; those requested longest ago are deleted first."""
PRUNE_BATCH = 200
"""How many books are deleted at once, so that no other query waits long."""
TOUCHED_EVERY = timedelta(minutes=1)
"""``asked_at`` is written at most this often."""


@dataclass(frozen=True, slots=True)
class BookHead:
    """A stored book without its content. ``state``: never ``unread``. ``block``: all transfers up to its end
    are included. ``first_number``: the book's first block; ``pruned``: the node no longer had older ones.
    ``book_bytes``: the stored size. ``asked_at``: when it was last requested; ``read_at``: when it was last
    read on."""

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
    """A stored book, with the content that ``domain.holders.book.dump`` writes. Other fields as in
    ``BookHead``."""

    state: State
    block: BlockRef
    transfers: int
    first_number: int
    pruned: bool
    book: bytes
    asked_at: datetime
    read_at: datetime


_COLUMNS = (
    "state, block_number AS number, block_hash AS hash, at_s AS timestamp_s, transfers, first_number, pruned"
)


async def load_book(connection: Connection, token: Address) -> StoredBook | None:
    """The stored book; None: there is none. The caller checks that its block is on the chain."""
    return await fetch_row(
        connection,
        StoredBook,
        f"SELECT {_COLUMNS}, book, asked_at, read_at FROM facts.holder_read WHERE token = $1",  # noqa: S608
        as_bytes(token),
    )


async def load_head(connection: Connection, token: Address) -> BookHead | None:
    """As ``load_book``, without the book itself, which may be tens of megabytes."""
    return await fetch_row(
        connection,
        BookHead,
        f"SELECT {_COLUMNS}, length(book) AS book_bytes, asked_at, read_at"  # noqa: S608
        " FROM facts.holder_read WHERE token = $1",
        as_bytes(token),
    )


async def save_book(connection: Connection, token: Address, book: StoredBook) -> bool:
    """Replaces a stored book that ends earlier, or at the same block and is still being read. False, and
    nothing is written: the stored book goes further, since another process was faster. A book whose block was
    reorged out must be deleted first. Raises asyncpg.CheckViolationError for the state unread."""
    saved = await fetch_optional(
        connection,
        bool,
        "INSERT INTO facts.holder_read AS stored (token, state, block_number, block_hash, at_s, transfers, "
        "first_number, pruned, book, asked_at, read_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, "
        "$11) ON CONFLICT (token) DO UPDATE SET state = excluded.state, block_number = "
        "excluded.block_number, block_hash = excluded.block_hash, at_s = excluded.at_s, transfers = "
        "excluded.transfers, first_number = excluded.first_number, pruned = excluded.pruned, book = "
        "excluded.book, read_at = excluded.read_at, asked_at = greatest(stored.asked_at, excluded.asked_at) "
        "WHERE stored.block_number < excluded.block_number OR (stored.block_number = excluded.block_number "
        "AND (stored.state = 'reading' OR stored.state = excluded.state)) RETURNING true",
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
    return saved is not None


async def delete_book(connection: Connection, token: Address, block_hash: str) -> bool:
    """Deletes the book if it ends at this block; False: there is no such book."""
    deleted = await fetch_optional(
        connection,
        bool,
        "DELETE FROM facts.holder_read WHERE token = $1 AND block_hash = $2 RETURNING true",
        as_bytes(token),
        as_bytes(block_hash),
    )
    return deleted is not None


async def touch(connection: Connection, token: Address, at: datetime) -> None:
    """Records a request, which keeps the book longer. Written at most once a minute."""
    await connection.execute(
        "UPDATE facts.holder_read SET asked_at = $2 WHERE token = $1 AND asked_at <= $3",
        as_bytes(token),
        at,
        at - TOUCHED_EVERY,
    )


_DELETE = """
WITH deleted AS (
    DELETE FROM facts.holder_read WHERE token IN (
        SELECT token FROM facts.holder_read WHERE token IN ({which}) FOR UPDATE SKIP LOCKED
    ) RETURNING 1
) SELECT count(*) FROM deleted
"""
"""Rows that another transaction is writing are skipped: those books are in use."""
_OLD = "SELECT token FROM facts.holder_read WHERE asked_at < $1 ORDER BY asked_at LIMIT $2"
_OVERSIZED = """
SELECT token FROM (
    SELECT token, asked_at, sum(length(book)) OVER (ORDER BY asked_at DESC, token) AS bytes
    FROM facts.holder_read
) AS newest WHERE bytes > $1 ORDER BY asked_at LIMIT $2
"""


async def prune(connection: Connection, before: datetime) -> int:
    """Deletes books not requested since ``before``, at most ``PRUNE_BATCH`` at once, and returns how many."""
    return await fetch_value(connection, int, _DELETE.format(which=_OLD), before, PRUNE_BATCH)


async def prune_to(connection: Connection, most_bytes: int = MAX_BYTES) -> int:
    """Deletes the books requested longest ago until the rest fits into ``most_bytes``, at most
    ``PRUNE_BATCH`` at once, and returns how many."""
    return await fetch_value(connection, int, _DELETE.format(which=_OVERSIZED), most_bytes, PRUNE_BATCH)
