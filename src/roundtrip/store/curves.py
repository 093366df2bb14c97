"""What lies in the curves of launches: folded as blocks come, and taken back with them."""

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from roundtrip.domain.events import Buyback, Pool, Trade
from roundtrip.domain.types import BlockRef

from .chain import Ids
from .words import as_bytes


@dataclass(slots=True)
class _Sum:
    """What some blocks did to one curve. ``last_s`` 0: nobody traded. ``is_new``: they launched it."""

    added_raw: int = 0
    last_s: int = 0
    is_new: bool = False


async def put_buybacks(connection: asyncpg.Connection, buybacks: Sequence[Buyback], ids: Ids) -> None:
    """What curves bought back."""
    if buybacks:
        await connection.execute(
            "INSERT INTO facts.buyback (block_number, log_index, at_s, pool_id, quote_raw, tx_hash)"
            " SELECT block, log, at_s, pool, quote::numeric, tx FROM unnest($1::int[], $2::int[], $3::int[],"
            " $4::int[], $5::text[], $6::bytea[]) AS given (block, log, at_s, pool, quote, tx)",
            [one.spot.block_number for one in buybacks],
            [one.spot.log_index for one in buybacks],
            [one.spot.at_s for one in buybacks],
            [ids.pools[one.at] for one in buybacks],
            [str(one.quote_raw) for one in buybacks],
            [as_bytes(one.spot.tx_hash) for one in buybacks],
        )


_FOLD = """
WITH given AS (
    SELECT pool_id, added::numeric AS added, last_s, is_new
    FROM unnest($1::int[], $2::text[], $3::int[], $4::boolean[]) AS one (pool_id, added, last_s, is_new)
), begun AS (
    INSERT INTO facts.curve (pool_id, raised_raw, last_s)
    SELECT pool_id, added, last_s FROM given WHERE is_new
)
UPDATE facts.curve AS curve
SET raised_raw = curve.raised_raw + given.added, last_s = greatest(curve.last_s, given.last_s)
FROM given WHERE curve.pool_id = given.pool_id AND NOT given.is_new
"""


async def fold(
    connection: asyncpg.Connection,
    opened: Sequence[Pool],
    trades: Sequence[Trade],
    buybacks: Sequence[Buyback],
    ids: Ids,
) -> None:
    """Adds what some blocks brought. ``opened``: the curves that begin with them. A curve that has no row is
    left without: how it began is not known."""
    sums = {pool.at: _Sum(last_s=pool.spot.at_s, is_new=True) for pool in opened}
    for trade in trades:
        if trade.kept_raw is not None:
            found = sums.setdefault(trade.at, _Sum())
            moved_raw = trade.quote_raw if trade.buys else -trade.quote_raw
            found.added_raw += moved_raw - trade.kept_raw
            found.last_s = trade.spot.at_s
    for buyback in buybacks:
        sums.setdefault(buyback.at, _Sum()).added_raw += buyback.quote_raw
    if sums:
        await connection.execute(
            _FOLD,
            [ids.pools[at] for at in sums],
            [str(one.added_raw) for one in sums.values()],
            [one.last_s for one in sums.values()],
            [one.is_new for one in sums.values()],
        )


_TAKE_BACK = """
WITH gone AS (
    SELECT pool_id, sum(moved) AS moved FROM (
        SELECT pool_id, CASE WHEN buys THEN quote_raw ELSE -quote_raw END - kept_raw AS moved
        FROM facts.trade WHERE at_s >= $1 AND block_number > $2 AND kept_raw IS NOT NULL
        UNION ALL SELECT pool_id, quote_raw FROM facts.buyback WHERE block_number > $2
    ) AS moves GROUP BY pool_id
)
UPDATE facts.curve AS curve SET raised_raw = curve.raised_raw - gone.moved, last_s = coalesce((
    SELECT max(trade.at_s) FROM facts.trade AS trade WHERE trade.pool_id = pool.id
    AND trade.block_number <= $2
), pool.at_s)
FROM gone JOIN facts.pool AS pool ON pool.id = gone.pool_id WHERE curve.pool_id = pool.id
"""


async def take_away(connection: asyncpg.Connection, to: BlockRef) -> None:
    """Takes back what the blocks above ``to`` brought, as long as their rows are there; curves that began
    with them go."""
    await connection.execute(
        "DELETE FROM facts.curve USING facts.pool AS pool"
        " WHERE pool.id = curve.pool_id AND pool.block_number > $1",
        to.number,
    )
    await connection.execute(_TAKE_BACK, to.timestamp_s, to.number)
