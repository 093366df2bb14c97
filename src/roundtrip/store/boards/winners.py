"""Boards of winners, counted from closings as ``domain/market/winners.py`` defines, and stored whole."""

from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base.types import Address, BlockRef, Numeric
from roundtrip.domain.market.fairness import FAIRNESS, Fairness
from roundtrip.domain.market.winners import MAX_WINNERS, SPANS
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_one, fetch_row, fetch_value, read

from .fair_tokens import LOOKED_AT, began_sql, find_fair_sold_out_of, is_kin, pays_many, store_fair

COUNTING_S = 600.0
"""Timeout of each statement of a count: long enough for the longest span's first count. Later ones take less,
since fair tokens are stored."""
KEEPING_S = 60.0
"""Timeout of the wait for the cursor, which the sync holds while it writes a batch."""
_WORK_MEM = "32MB"
"""Memory of each sort and hash of a count; larger ones spill to disk."""


@dataclass(frozen=True, slots=True)
class RankedClosings:
    """One rank: the wallet, the sums of its closings in the span, and the closing with the most profit."""

    wallet_id: int
    wallet: Address
    profit_wei: Numeric
    spent_wei: Numeric
    closed: int
    won: int
    best_token_id: int
    best_spent_wei: Numeric
    best_got_wei: Numeric
    best_s: int


@dataclass(frozen=True, slots=True)
class WinnersBoard:
    """The winners of a span up to a block, first rank first. ``found``: tokens that this count found to be
    fair and that are not stored as fair."""

    span: str
    block_number: int
    at_s: int
    rows: tuple[RankedClosings, ...]
    found: tuple[int, ...] = ()


class ClosingTotals(NamedTuple):
    """The closings in a span of time, fair or not; their tokens, and how many of these are young and how many
    are stored as fair. ``first_s``: the time of the oldest stored block, near where the index begins."""

    closings: int
    tokens: int
    young: int
    fair: int
    first_s: int | None


_KIN = is_kin("closing.wallet_id", "own", "fair", by_exchange="(exchange.paid_by IS NOT NULL)", young_s="$5")
# $1 from_s, $2 tokens found to be fair just now, $3 most_funded, $4 how many, $5 young_s
_RANKED = f"""
WITH fair AS MATERIALIZED (
    SELECT fair.token_id, launch.deployer_id, his.funder_id AS paid_by, his.funded_s AS paid_s
    FROM (
        SELECT DISTINCT token_id FROM facts.closing WHERE at_s > $1
        INTERSECT (SELECT token_id FROM facts.fair_token UNION ALL SELECT unnest($2::int[]))
    ) AS fair
    LEFT JOIN facts.launch AS launch ON launch.token_id = fair.token_id
    LEFT JOIN facts.origin AS his ON his.wallet_id = launch.deployer_id
), exchange AS MATERIALIZED (
    SELECT paid_by FROM (SELECT DISTINCT paid_by FROM fair WHERE paid_by IS NOT NULL) AS funder
    WHERE {pays_many("funder.paid_by", "$3")}
), counted AS NOT MATERIALIZED (
    SELECT closing.*, closing.got_wei - closing.spent_wei AS profit_wei
    FROM facts.closing AS closing
    JOIN fair ON fair.token_id = closing.token_id
    LEFT JOIN exchange ON exchange.paid_by = fair.paid_by
    LEFT JOIN facts.origin AS own ON own.wallet_id = closing.wallet_id
    WHERE closing.at_s > $1 AND NOT {_KIN}
), ahead AS MATERIALIZED (
    SELECT wallet_id, sum(profit_wei) AS profit_wei, sum(spent_wei) AS spent_wei, count(*) AS closed,
        count(*) FILTER (WHERE profit_wei > 0) AS won
    FROM counted GROUP BY wallet_id HAVING sum(profit_wei) > 0
    ORDER BY sum(profit_wei) DESC, count(*) FETCH FIRST ($4::bigint) ROWS WITH TIES
), first AS MATERIALIZED (
    SELECT ahead.*, address.address FROM ahead JOIN facts.address AS address ON address.id = ahead.wallet_id
    ORDER BY profit_wei DESC, closed, address.address LIMIT $4
), best AS (
    SELECT DISTINCT ON (wallet_id) wallet_id, token_id, spent_wei, got_wei, at_s
    FROM counted WHERE wallet_id IN (SELECT wallet_id FROM first)
    ORDER BY wallet_id, profit_wei DESC, block_number, log_index
)
SELECT first.wallet_id, first.address AS wallet, first.profit_wei, first.spent_wei, first.closed, first.won,
    best.token_id AS best_token_id, best.spent_wei AS best_spent_wei, best.got_wei AS best_got_wei,
    best.at_s AS best_s
FROM first JOIN best ON best.wallet_id = first.wallet_id
ORDER BY first.profit_wei DESC, first.closed, first.address
"""  # noqa: S608

# $1 from_s, $2 at_s, $3 young_s
_CLOSINGS = f"""
WITH closed AS MATERIALIZED (
    SELECT token_id, count(*) AS closings FROM facts.closing WHERE at_s > $1 AND at_s <= $2 GROUP BY token_id
)
SELECT coalesce(sum(closed.closings), 0)::bigint AS closings, count(*) AS tokens,
    count(*) FILTER (WHERE {began_sql("closed.token_id")} > $2::int - $3::int) AS young,
    count(fair.token_id) AS fair,
    (SELECT at_s FROM facts.block ORDER BY number LIMIT 1) AS first_s
FROM closed
LEFT JOIN facts.launch AS launch ON launch.token_id = closed.token_id
LEFT JOIN facts.fair_token AS fair ON fair.token_id = closed.token_id
"""  # noqa: S608


async def count_board(
    connection: Connection,
    span: str,
    at: BlockRef,
    fairness: Fairness = FAIRNESS,
    timeout_s: float = COUNTING_S,
    looked_at: int = LOOKED_AT,
) -> WinnersBoard:
    """Counts the board of a span up to ``at``, where the cursor is. Call it in a transaction that sees one
    snapshot; it writes nothing and locks no row. ``timeout_s``: of each of three statements. ``looked_at``:
    buyers of a token that are read first; the board does not depend on it."""
    # A day and a year need different plans for the same statement.
    await connection.execute(
        f"SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL work_mem = '{_WORK_MEM}'"
    )
    seconds = SPANS[span]
    from_s = -1 if seconds is None else at.timestamp_s - seconds
    fair_ids = await find_fair_sold_out_of(connection, from_s, at.timestamp_s, fairness, looked_at, timeout_s)
    records = await connection.fetch(
        _RANKED, from_s, fair_ids, fairness.most_funded, MAX_WINNERS, fairness.young_s, timeout=timeout_s
    )
    ranks = tuple(read(records, RankedClosings))
    return WinnersBoard(span, at.number, at.timestamp_s, ranks, tuple(sorted(fair_ids)))


async def keep(connection: Connection, board: WinnersBoard, counted_at: Cursor) -> bool:
    """Stores a board that was counted where the cursor was at ``counted_at``, in place of the one before. The
    caller commits its transaction at once: the sync waits for it. False, and nothing is written: blocks were
    rewound since, and the board's own block may be gone, so that it has to be counted again."""
    at = counted_at.block
    # The lock holds off a reorganisation, which deletes what was counted above it, until the board is stored.
    records = await connection.fetch("SELECT hash, rewinds FROM facts.cursor FOR SHARE", timeout=KEEPING_S)
    states = read(records, tuple[bytes, int])
    if not states:
        return False
    [(newest_hash, rewinds)] = states
    still_there = rewinds == counted_at.rewinds or newest_hash == as_bytes(at.hash)
    if not still_there and not await fetch_value(
        connection,
        bool,
        "SELECT EXISTS (SELECT FROM facts.block WHERE number = $1 AND hash = $2)",
        at.number,
        as_bytes(at.hash),
    ):
        return False
    await connection.execute("DELETE FROM facts.winner WHERE span = $1", board.span)
    await connection.executemany(
        "INSERT INTO facts.winner (span, rank, wallet_id, profit_wei, spent_wei, closed, won, best_token_id,"
        " best_spent_wei, best_got_wei, best_s) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        [
            (board.span, rank, row.wallet_id, row.profit_wei, row.spent_wei, row.closed, row.won,
             row.best_token_id, row.best_spent_wei, row.best_got_wei, row.best_s)
            for rank, row in enumerate(board.rows, 1)
        ],
    )  # fmt: skip
    await connection.execute(
        "INSERT INTO facts.winners_counted (span, block_number, at_s) VALUES ($1, $2, $3) ON CONFLICT (span)"
        " DO UPDATE SET block_number = excluded.block_number, at_s = excluded.at_s",
        board.span,
        board.block_number,
        board.at_s,
    )
    await store_fair(connection, list(board.found), board.block_number)
    return True


async def load_board(connection: Connection, span: str, limit: int = MAX_WINNERS) -> WinnersBoard | None:
    """The first ``limit`` ranks of the stored board; None: none is stored, or a reorganisation deleted it."""
    counted = await fetch_row(
        connection,
        tuple[int, int],
        "SELECT block_number, at_s FROM facts.winners_counted WHERE span = $1",
        span,
    )
    if counted is None:
        return None
    rows = await fetch(
        connection,
        RankedClosings,
        "SELECT winner.wallet_id, address.address AS wallet, winner.profit_wei, winner.spent_wei, "
        "winner.closed, winner.won, winner.best_token_id, winner.best_spent_wei, winner.best_got_wei, "
        "winner.best_s FROM facts.winner AS winner JOIN facts.address AS address ON address.id = "
        "winner.wallet_id WHERE winner.span = $1 AND winner.rank <= $2 ORDER BY winner.rank",
        span,
        limit,
    )
    return WinnersBoard(span, *counted, tuple(rows))


async def counted_to(connection: Connection) -> dict[str, int]:
    """The block up to which each span was counted; a span that was not counted is missing."""
    query = "SELECT span, block_number FROM facts.winners_counted"
    return dict(await fetch(connection, tuple[str, int], query))


async def closings(
    connection: Connection, span: str, at_s: int, fairness: Fairness = FAIRNESS
) -> ClosingTotals:
    """The closings that a board of a span up to ``at_s`` is counted from, which explain why it may be
    empty."""
    seconds = SPANS[span]
    return await fetch_one(
        connection,
        ClosingTotals,
        _CLOSINGS,
        -1 if seconds is None else at_s - seconds,
        at_s,
        fairness.young_s,
    )
