"""The money in launches' curves: folded block by block, and reverted with a reorg."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from roundtrip.domain.base.events import Buyback, LaunchEvent, TradeEvent
from roundtrip.domain.base.types import Address, BlockRef, Numeric
from roundtrip.store.server.rows import Connection, as_bytes, fetch

from .cursor import Ids


@dataclass(slots=True)
class _CurveSum:
    """How some blocks changed one curve. ``last_s`` 0: no trade. ``token_id``, ``threshold_raw``: set if
    these blocks launched it."""

    added_raw: int = 0
    last_s: int = 0
    token_id: int | None = None
    threshold_raw: int = 0


async def put_buybacks(connection: Connection, buybacks: Sequence[Buyback], ids: Ids) -> None:
    """Inserts buybacks by curves."""
    if buybacks:
        await connection.execute(
            "INSERT INTO facts.buyback (block_number, log_index, at_s, pool_id, quote_raw, tx_hash)"
            " SELECT block, log, at_s, pool, quote::numeric, tx FROM unnest($1::int[], $2::int[], $3::int[],"
            " $4::int[], $5::text[], $6::bytea[]) AS given (block, log, at_s, pool, quote, tx)",
            [buyback.spot.block_number for buyback in buybacks],
            [buyback.spot.log_index for buyback in buybacks],
            [buyback.spot.at_s for buyback in buybacks],
            [ids.pools[buyback.at] for buyback in buybacks],
            [str(buyback.quote_raw) for buyback in buybacks],
            [as_bytes(buyback.spot.tx_hash) for buyback in buybacks],
        )


_FOLD = """
WITH given AS (
    SELECT pool_id, added::numeric AS added, last_s, token_id, threshold::numeric AS threshold
    FROM unnest($1::int[], $2::text[], $3::int[], $4::int[], $5::text[])
        AS change (pool_id, added, last_s, token_id, threshold)
), begun AS (
    INSERT INTO facts.curve (pool_id, token_id, threshold_raw, raised_raw, last_s)
    SELECT pool_id, token_id, threshold, added, last_s FROM given WHERE token_id IS NOT NULL
)
UPDATE facts.curve AS curve
SET raised_raw = curve.raised_raw + given.added, last_s = greatest(curve.last_s, given.last_s)
FROM given WHERE curve.pool_id = given.pool_id AND given.token_id IS NULL
"""


async def fold(
    connection: Connection,
    launches: Sequence[LaunchEvent],
    trades: Sequence[TradeEvent],
    buybacks: Sequence[Buyback],
    ids: Ids,
) -> None:
    """Adds some blocks' launches, trades and buybacks to the curves. A curve without a row gets none unless
    it was launched in these blocks, because its start is not known."""
    sums = {
        launched.at: _CurveSum(0, spot.at_s, ids.addresses[launched.token], launched.threshold_raw or 0)
        for spot, launched, _ in launches
        if launched.generation != 1
    }
    for trade in trades:
        # Only a trade on a curve has it.
        if trade.kept_raw is not None:
            curve = sums.setdefault(trade.at, _CurveSum())
            moved_raw = trade.quote_raw if trade.buys else -trade.quote_raw
            curve.added_raw += moved_raw - trade.kept_raw
            curve.last_s = trade.spot.at_s
    for buyback in buybacks:
        sums.setdefault(buyback.at, _CurveSum()).added_raw += buyback.quote_raw
    if sums:
        await connection.execute(
            _FOLD,
            [ids.pools[at] for at in sums],
            [str(curve.added_raw) for curve in sums.values()],
            [curve.last_s for curve in sums.values()],
            [curve.token_id for curve in sums.values()],
            [str(curve.threshold_raw) for curve in sums.values()],
        )


_GONE = """
WITH gone AS MATERIALIZED (
    SELECT pool_id, sum(moved) AS moved FROM (
        SELECT pool_id, CASE WHEN buys THEN quote_raw ELSE -quote_raw END - kept_raw AS moved
        FROM facts.trade WHERE at_s >= $1 AND block_number > $2 AND kept_raw IS NOT NULL
        UNION ALL SELECT pool_id, quote_raw FROM facts.buyback WHERE block_number > $2
    ) AS moves GROUP BY pool_id
), same_second AS MATERIALIZED (
    SELECT DISTINCT pool_id FROM facts.trade WHERE at_s = $1 AND block_number <= $2
)
SELECT gone.pool_id, gone.moved::text AS moved_raw,
    coalesce(CASE WHEN same_second.pool_id IS NOT NULL THEN $1 END, before.at_s, pool.at_s) AS last_s
FROM gone JOIN facts.pool AS pool ON pool.id = gone.pool_id
LEFT JOIN same_second ON same_second.pool_id = pool.id
LEFT JOIN LATERAL facts.trades_by_second(pool.id, 0, $1 - 1, 1) AS before ON true
"""
_TAKE_BACK = """
UPDATE facts.curve AS curve SET raised_raw = curve.raised_raw - given.moved, last_s = given.last_s
FROM unnest($1::int[], $2::text[]::numeric[], $3::int[]) AS given (pool_id, moved, last_s)
WHERE curve.pool_id = given.pool_id
"""


async def take_away(connection: Connection, to: BlockRef) -> None:
    """Reverts the blocks above ``to``, whose rows must still be there, and deletes curves that they
    launched."""
    await connection.execute(
        "DELETE FROM facts.curve USING facts.pool AS pool"
        " WHERE pool.id = curve.pool_id AND pool.block_number > $1",
        to.number,
    )
    gone = await fetch(connection, tuple[int, str, int], _GONE, to.timestamp_s, to.number)
    await connection.execute(_TAKE_BACK, *([row[n] for row in gone] for n in range(3)))


@dataclass(frozen=True, slots=True)
class CurveProgress:
    """A launch on its curve. Ids are interned addresses; times are seconds since 1970. ``last_s``: the time
    of its newest trade, or of its launch."""

    pool_id: int
    curve: Address
    token_id: int
    deployer_id: int
    quote_id: int
    raised_raw: Numeric
    threshold_raw: Numeric
    launched_s: int
    last_s: int

    @property
    def opened_s(self) -> int:
        """The curve opened with the launch."""
        return self.launched_s


_FULLEST = """
WITH fullest AS MATERIALIZED (
    SELECT curve.*, curve.raised_raw / greatest(curve.threshold_raw, 1) AS fill FROM facts.curve AS curve
    WHERE curve.last_s > $1
        AND NOT EXISTS (SELECT FROM facts.launch_step AS step WHERE step.token_id = curve.token_id)
    ORDER BY fill DESC, curve.last_s DESC, curve.pool_id LIMIT $2
)
SELECT fullest.pool_id, launch.at AS curve, launch.token_id, launch.deployer_id, launch.quote_id,
    fullest.raised_raw::text AS raised_raw, fullest.threshold_raw::text AS threshold_raw,
    launch.at_s AS launched_s, fullest.last_s
FROM fullest JOIN facts.launch AS launch ON launch.token_id = fullest.token_id
ORDER BY fill DESC, fullest.last_s DESC, fullest.pool_id
"""


async def fullest(connection: Connection, after_s: int, most: int) -> list[CurveProgress]:
    """At most ``most`` open curves that were launched or traded after ``after_s``, the fullest first, then
    the one traded last."""
    return await fetch(connection, CurveProgress, _FULLEST, after_s, most)


_BUYS = """
SELECT pool_id, count(*) AS buys, count(DISTINCT trader_id) AS buyers FROM facts.trade
WHERE at_s > $2 AND buys AND pool_id + 0 = ANY($1::int[]) GROUP BY pool_id
"""
"""``pool_id + 0``, so that no index on pool_id is used: rows are found by time, since one pool may have any
number of trades."""


async def buys_since(
    connection: Connection, pool_ids: Collection[int], after_s: int
) -> dict[int, tuple[int, int]]:
    """Buys, and wallets that bought, after ``after_s`` by pool; without pools that had no buy."""
    return dict(await fetch(connection, tuple[int, tuple[int, int]], _BUYS, list(pool_ids), after_s))


async def sold_half(connection: Connection, pairs: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those of these pairs of a wallet and a token where the wallet sold half or more of what it bought."""
    rows = await fetch(
        connection,
        tuple[int, int],
        "SELECT wallet_id, token_id FROM facts.position JOIN unnest($1::int[], $2::int[])"
        " AS given (wallet, token) ON wallet_id = given.wallet AND token_id = given.token"
        " WHERE sold_raw > 0 AND 2 * sold_raw >= bought_raw",
        [wallet for wallet, _ in pairs],
        [token for _, token in pairs],
    )
    return set(rows)
