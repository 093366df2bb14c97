"""How much each of a token's pools matters, as a minute began. Each function takes the caller's connection
and ends no transaction."""

from collections.abc import Sequence
from typing import NamedTuple

from roundtrip.domain.market.signals import Turnover
from roundtrip.domain.watch.alerts import MINUTE_S
from roundtrip.domain.watch.bag_guard import PoolMoney
from roundtrip.domain.watch.rules import Happening
from roundtrip.store.boards.signals import MOST_PLACES, TRADED_WITHIN_S
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

from .happening_moves import WHOLE_WITHIN_S
from .happening_rows import HappeningReader, address

MOST_ROWS = 1_000
"""Of a pool with more trades or changes of liquidity it is not told how much money lies in it."""


class DrainWeight(NamedTuple):
    """The pool that was drained, and all of its token's that were looked at, it among them."""

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
        FROM facts.trade AS trade WHERE trade.pool_id = place.id
            AND trade.at_s >= place.minute_s - $5 AND trade.at_s < place.minute_s
        ORDER BY trade.at_s DESC, trade.block_number DESC, trade.log_index DESC LIMIT $7
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
        FROM facts.trade AS trade
        WHERE trade.pool_id = place.id AND trade.at_s >= pool.at_s AND trade.at_s < place.minute_s
        LIMIT $7 + 1
    ) AS one
) AS paid
"""


async def weigh_drains(
    connection: Connection, contracts: Contracts, drains: Sequence[Happening]
) -> list[DrainWeight | None]:
    """Of each drain; None: its pool is not known. By the day up to the minute in which it was, so that each
    token is asked for once a minute. Money is what was put in and paid in, less what was taken and paid out,
    in a curve only the latter; of a pool that was opened since, what left tells."""
    found: list[DrainWeight | None] = [None] * len(drains)
    spots = [one.spot for one in drains]
    if not spots:
        return found
    pools = {
        row["nth"] - 1: (row["token_id"], row["pool_id"])
        for row in await connection.fetch(
            _POOLS,
            [spot.at_s for spot in spots],
            [spot.block_number for spot in spots],
            [spot.log_index for spot in spots],
        )
    }
    minutes = {nth: spots[nth].at_s // MINUTE_S * MINUTE_S for nth in pools}
    asked = sorted({(token, minutes[nth]) for nth, (token, _) in pools.items()})
    if not asked:
        return found
    reader = await HappeningReader.of(connection, contracts)
    rows = await connection.fetch(
        _PLACES,
        [token for token, _ in asked],
        [minute for _, minute in asked],
        [pool for _, pool in pools.values()],
        MOST_PLACES,
        TRADED_WITHIN_S,
        WHOLE_WITHIN_S,
        MOST_ROWS,
        list(reader.eth_ids),
    )
    spot_of = {(pools[nth][0], minutes[nth]): spots[nth] for nth in reversed(pools)}
    sums = []
    for row in rows:
        raw = None if row["quote_raw"] is None else max(0, int(row["quote_raw"]))
        sums.append((address(row["quote"]), raw, spot_of[row["token_id"], row["minute_s"]]))
    places: dict[tuple[int, int], dict[int, PoolMoney]] = {}
    for row, (wei, _) in zip(rows, await reader.worths(sums), strict=True):
        place = PoolMoney(Turnover(row["trades"], int(row["wei"])), wei)
        places.setdefault((row["token_id"], row["minute_s"]), {})[row["id"]] = place
    for nth, (token, pool) in pools.items():
        of = places[token, minutes[nth]]
        own = _at_least(of[pool], drains[nth])
        found[nth] = DrainWeight(own, [own if each == pool else place for each, place in of.items()])
    return found


def _at_least(place: PoolMoney, drained: Happening) -> PoolMoney:
    """What left was there, with the share that stayed."""
    left_wei, share_ppm = drained.eth_wei, drained.share_ppm()
    if left_wei is None:
        return place
    before_wei = left_wei * 1_000_000 // share_ppm if share_ppm else left_wei
    return place._replace(wei=max(before_wei, place.wei or 0))
