"""How much each of a token's pools matters at the start of a minute. Each function uses the caller's
connection and does not end the transaction."""

from collections.abc import Sequence
from typing import NamedTuple

from roundtrip.domain.base.types import Address, Numeric
from roundtrip.domain.market.signals import Turnover
from roundtrip.domain.watch.alerts import MINUTE_S
from roundtrip.domain.watch.bag_guard import PoolMoney
from roundtrip.domain.watch.rules import Happening
from roundtrip.store.boards.signals import MAX_PLACES, TRADED_WITHIN_S
from roundtrip.store.server.rows import Connection, fetch
from roundtrip.venues.base import Contracts

from .happening_moves import WHOLE_WITHIN_S
from .happening_rows import HappeningReader

MAX_ROWS = 1_000
"""The money in a pool with more trades or liquidity changes than this is unknown."""


class DrainWeight(NamedTuple):
    """The drained pool, and all pools of its token that were read, this one included."""

    own: PoolMoney
    everywhere: list[PoolMoney]


_POOLS = """
SELECT given.nth, change.pool_id, pool.token_id
FROM unnest($1::int[], $2::int[], $3::int[]) WITH ORDINALITY AS given (at_s, block_number, log_index, nth)
JOIN facts.liquidity AS change USING (at_s, block_number, log_index)
JOIN facts.pool AS pool ON pool.id = change.pool_id
"""
_PLACES = """
WITH given AS MATERIALIZED (SELECT * FROM unnest($1::int[], $2::int[]) AS given (token_id, minute_s)),
place AS MATERIALIZED (
    SELECT given.*, pool.id FROM given CROSS JOIN LATERAL (
        SELECT id FROM facts.pool WHERE pool.token_id = given.token_id AND in_money_from IS NOT NULL
        ORDER BY token_id, id LIMIT $4
    ) AS pool
    UNION SELECT given.*, pool.id FROM given JOIN facts.pool AS pool USING (token_id)
    WHERE pool.id = ANY($3::int[])
)
SELECT place.token_id, place.minute_s, place.id, quote.address AS quote, day.trades, day.wei::text,
    CASE WHEN pool.block_number >= known.start_number AND pool.at_s > place.minute_s - $6
        AND put.changes <= $7 AND paid.trades <= $7 AND coalesce(put.is_known, true)
        THEN coalesce(put.quote_raw, 0) + coalesce(paid.quote_raw, 0) END::text AS quote_raw
FROM place JOIN facts.pool AS pool ON pool.id = place.id
JOIN facts.address AS quote ON quote.id = pool.quote_id
CROSS JOIN facts.cursor AS known
CROSS JOIN LATERAL (
    SELECT count(*) AS trades, coalesce(sum(wei), 0) AS wei FROM (
        SELECT coalesce(eth_wei, CASE WHEN pool.quote_id = ANY($8::int[]) THEN quote_raw END) AS wei
        FROM facts.newest_trades(place.id, place.minute_s - $5 - 1, place.minute_s - 1, $7::int, 0)
    ) AS one
) AS day
CROSS JOIN LATERAL (
    SELECT count(*) AS changes, bool_and(quote_raw IS NOT NULL) AS is_known, sum(quote_raw) AS quote_raw
    FROM (
        SELECT change.quote_raw FROM facts.liquidity AS change
        WHERE change.pool_id = place.id AND change.at_s >= pool.at_s AND change.at_s < place.minute_s
        LIMIT $7 + 1
    ) AS one
) AS put
CROSS JOIN LATERAL (
    SELECT count(*) AS trades, sum(quote_raw) AS quote_raw FROM (
        SELECT CASE WHEN trade.buys THEN trade.quote_raw ELSE -trade.quote_raw END AS quote_raw
        FROM facts.trades_by_second(place.id, pool.at_s - 1, place.minute_s - 1, $7 + 1) AS trade
    ) AS one
) AS paid
"""


class _PoolMoneyRow(NamedTuple):
    token_id: int
    minute_s: int
    id: int
    quote: Address
    traded: Turnover
    quote_raw: Numeric | None


async def weigh_drains(
    connection: Connection, contracts: Contracts, drains: Sequence[Happening]
) -> list[DrainWeight | None]:
    """The weights of each drain's pools; None: its pool is unknown. They are of the day up to the minute of
    the drain, so that each token is read once a minute. A pool's money is what was put in and paid in, less
    what was taken and paid out, in a curve only the latter; a pool opened within that minute has at least
    what the drain took out."""
    weights: list[DrainWeight | None] = [None] * len(drains)
    spots = [drain.spot for drain in drains]
    if not spots:
        return weights
    drained = await fetch(
        connection,
        tuple[int, int, int],
        _POOLS,
        [spot.at_s for spot in spots],
        [spot.block_number for spot in spots],
        [spot.log_index for spot in spots],
    )
    pools = {nth - 1: (token_id, pool_id) for nth, pool_id, token_id in drained}
    minutes = {nth: spots[nth].at_s // MINUTE_S * MINUTE_S for nth in pools}
    token_minutes = sorted({(token_id, minutes[nth]) for nth, (token_id, _) in pools.items()})
    if not token_minutes:
        return weights
    reader = await HappeningReader.of(connection, contracts)
    rows = await fetch(
        connection,
        _PoolMoneyRow,
        _PLACES,
        [token_id for token_id, _ in token_minutes],
        [minute_s for _, minute_s in token_minutes],
        [pool_id for _, pool_id in pools.values()],
        MAX_PLACES,
        TRADED_WITHIN_S,
        WHOLE_WITHIN_S,
        MAX_ROWS,
        list(reader.eth_ids),
    )
    spot_of = {(pools[nth][0], minutes[nth]): spots[nth] for nth in reversed(pools)}
    sums = []
    for row in rows:
        raw = None if row.quote_raw is None else max(0, row.quote_raw)
        sums.append((row.quote, raw, spot_of[row.token_id, row.minute_s]))
    places: dict[tuple[int, int], dict[int, PoolMoney]] = {}
    for row, (wei, _) in zip(rows, await reader.worths(sums), strict=True):
        places.setdefault((row.token_id, row.minute_s), {})[row.id] = PoolMoney(row.traded, wei)
    for nth, (token_id, pool_id) in pools.items():
        token_pools = places[token_id, minutes[nth]]
        own = _add_drained(token_pools[pool_id], drains[nth])
        weights[nth] = DrainWeight(
            own, [own if other_id == pool_id else place for other_id, place in token_pools.items()]
        )
    return weights


def _add_drained(place: PoolMoney, drained: Happening) -> PoolMoney:
    """The pool with at least the money that was drained and the share that stayed."""
    drained_wei, share_ppm = drained.eth_wei, drained.share_ppm()
    if drained_wei is None:
        return place
    before_wei = drained_wei * 1_000_000 // share_ppm if share_ppm else drained_wei
    return place._replace(wei=max(before_wei, place.wei or 0))
