"""What a wallet holds by the index, what has changed about it since it was bought, and what checks found
then and now; how much each of a token's pools matters at the start of a minute; a wallet's own trades of
tokens, and what these traded for at times in the past. Each function uses the caller's connection and does
not end the transaction."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from roundtrip.domain.base.types import Address, Numeric
from roundtrip.domain.market.candles import MIN_RAW
from roundtrip.domain.market.signals import NARROW_TICKS, Turnover
from roundtrip.domain.watch.alerts import MINUTE_S
from roundtrip.domain.watch.bag_guard import PoolMoney
from roundtrip.domain.watch.rules import Happening
from roundtrip.store.boards.signals import MAX_CHANGES, MAX_POOLS, TRADED_WITHIN_S
from roundtrip.store.index.tokens import eth_quotes
from roundtrip.store.server.rows import Connection, fetch
from roundtrip.store.watch.happening_moves import WHOLE_WITHIN_S
from roundtrip.store.watch.happening_rows import HappeningReader
from roundtrip.venues.base import Contracts


@dataclass(frozen=True, slots=True)
class BagToken:
    """A token that a wallet holds by the index. ``held_raw``: what it bought and has not sold; 0 of a token
    of which it holds nothing that it bought. ``cost_wei``: what that cost. ``realised_wei``: what all its
    sales have brought over their cost. None: the worth of some trade is unknown, or it holds nothing that it
    bought. ``number``, ``at_s``: block and time of the first buy since it last sold out
    (``domain/market/profit.py``), or of the first transfer that is kept."""

    token_id: int
    held_raw: Numeric
    cost_wei: Numeric | None
    realised_wei: Numeric | None
    number: int
    at_s: int


_HELD = """
WITH held AS MATERIALIZED (
    SELECT token_id, held_raw, CASE WHEN round_unpriced = 0 THEN cost_wei END AS cost_wei,
        CASE WHEN unpriced = 0 THEN profit_wei + round_got_wei - round_spent_wei + cost_wei END
            AS realised_wei,
        round_number AS number, first_s
    FROM facts.position WHERE wallet_id = $1 AND held_raw > 0 ORDER BY token_id DESC LIMIT $2
), first AS MATERIALIZED (
    SELECT held.token_id, min(trade.at_s) AS at_s FROM held
    JOIN facts.trade AS trade ON trade.block_number = held.number AND trade.at_s >= held.first_s
    JOIN facts.pool AS pool ON pool.id = trade.pool_id AND pool.token_id = held.token_id
    WHERE trade.trader_id = $1 GROUP BY held.token_id
)
SELECT held.token_id, held.held_raw::text, held.cost_wei::text, held.realised_wei::text, held.number,
    coalesce(first.at_s, held.first_s) AS at_s
FROM held LEFT JOIN first ON first.token_id = held.token_id ORDER BY held.token_id DESC
"""
_GIVEN = """
WITH given AS MATERIALIZED (
    SELECT got.token_id, got.number, got.at_s FROM (
        SELECT token_id, sum(amount_raw) AS got_raw, min(block_number) AS number, min(at_s) AS at_s
        FROM facts.transfer WHERE to_id = $1 AND from_id <> $1 GROUP BY token_id
    ) AS got
    LEFT JOIN (
        SELECT token_id, sum(amount_raw) AS gone_raw FROM facts.transfer
        WHERE from_id = $1 AND to_id <> $1 GROUP BY token_id
    ) AS gone USING (token_id)
    WHERE got.got_raw > coalesce(gone.gone_raw, 0)
)
SELECT token_id, '0' AS held_raw, NULL AS cost_wei, NULL AS realised_wei, number, at_s FROM given
WHERE NOT EXISTS (
    SELECT FROM facts.position_of($1, given.token_id) AS bought WHERE bought.held_raw > 0
) ORDER BY token_id DESC LIMIT $2
"""


async def list_held(connection: Connection, wallet_id: int, limit: int) -> list[BagToken]:
    """Of the tokens that a wallet bought, the ``limit`` that the index met last; where there is room,
    after them launchpad tokens of which it holds nothing that it bought, within the days for which transfers
    are kept."""
    tokens = await fetch(connection, BagToken, _HELD, wallet_id, limit)
    if len(tokens) < limit:
        tokens += await fetch(connection, BagToken, _GIVEN, wallet_id, limit - len(tokens))
    return tokens


@dataclass(frozen=True, slots=True)
class DeployerSold:
    """A launchpad token's deployer. ``had_raw``: how much of the token it had when the wallet bought, as far
    as is known, and has bought since; ``sold_raw``: how much it has sold since. In base units."""

    deployer: Address
    had_raw: Numeric
    sold_raw: Numeric


_SOLD = """
SELECT given.token_id, deployer.address AS deployer,
    (greatest(own.bought_raw, own.sold_raw, 0) - coalesce(own.sold_raw, 0) + since.sold_raw)::text AS had_raw,
    since.sold_raw::text
FROM unnest($1::int[], $2::int[], $3::int[]) AS given (token_id, number, at_s)
JOIN facts.launch AS launch ON launch.token_id = given.token_id
JOIN facts.address AS deployer ON deployer.id = launch.deployer_id
LEFT JOIN LATERAL facts.position_of(launch.deployer_id, given.token_id) AS own ON true
CROSS JOIN LATERAL (
    SELECT coalesce(sum(trade.token_raw), 0) AS sold_raw
    FROM facts.trades_of(launch.deployer_id, given.at_s) AS trade
    JOIN facts.pool AS pool ON pool.id = trade.pool_id
    WHERE own.sells > 0 AND own.last_s >= given.at_s AND pool.token_id = given.token_id AND NOT trade.buys
        AND trade.block_number >= given.number
) AS since
"""


async def deployers_sold(connection: Connection, bought: Sequence[BagToken]) -> dict[int, DeployerSold]:
    """By token, what its deployer has sold since it was bought. What the deployer got other than by buying is
    unknown: it is taken to be at least what it sold."""
    return dict(await fetch(connection, tuple[int, DeployerSold], _SOLD, *_columns_of(bought)))


@dataclass(frozen=True, slots=True)
class LiquidityLeft:
    """The money pool in which a token had most liquidity when it was bought: how much that was, and how much
    of it is gone, net of what others have added since. Both in liquidity times ticks of its ranges: only
    their ratio means something."""

    before: int
    gone: int


_LEFT = """
SELECT given.token_id, sums.changes,
    coalesce(sums.before, 0)::text AS before, coalesce(sums.since, 0)::text AS since
FROM unnest($1::int[], $2::int[], $3::int[]) AS given (token_id, number, at_s)
CROSS JOIN LATERAL (
    SELECT pool.id, pool.at_s FROM facts.pool AS pool
    WHERE pool.token_id = given.token_id AND pool.in_money_from IS NOT NULL
        AND pool.block_number >= $4 AND pool.at_s > $5
    ORDER BY pool.id LIMIT $6
) AS place
CROSS JOIN LATERAL (
    SELECT count(*) AS changes,
        sum(weight) FILTER (WHERE block_number < given.number) AS before,
        sum(weight) FILTER (WHERE block_number >= given.number) AS since
    FROM (
        SELECT change.block_number,
            change.liquidity_delta * least(change.tick_upper - change.tick_lower, $7) AS weight
        FROM facts.liquidity AS change WHERE change.pool_id = place.id AND change.at_s >= place.at_s
        LIMIT $8 + 1
    ) AS changes
) AS sums
WHERE NOT EXISTS (
    SELECT FROM (
        SELECT pool.block_number, pool.at_s FROM facts.pool AS pool
        WHERE pool.token_id = given.token_id AND pool.in_money_from IS NOT NULL ORDER BY pool.id LIMIT $6
    ) AS oldest WHERE oldest.block_number < $4 OR oldest.at_s <= $5
)
"""


async def liquidity_left(
    connection: Connection, bought: Sequence[BagToken], start_number: int, now_s: int
) -> dict[int, LiquidityLeft]:
    """What is gone of each token's main pool, by token; a token is left out where a change of its liquidity
    is unknown, such as of a pool that is older than the rows that are kept. ``start_number``: the index's
    first block; ``now_s``: the time of its last."""
    rows = await fetch(
        connection,
        tuple[int, int, Numeric, Numeric],
        _LEFT,
        *_columns_of(bought),
        start_number,
        now_s - WHOLE_WITHIN_S,
        MAX_POOLS,
        NARROW_TICKS,
        MAX_CHANGES,
    )
    largest: dict[int, LiquidityLeft] = {}
    incomplete = {token_id for token_id, changes, _, _ in rows if changes > MAX_CHANGES}
    for token_id, _, before, since in rows:
        known = largest.get(token_id)
        if token_id not in incomplete and before > (0 if known is None else known.before):
            largest[token_id] = LiquidityLeft(before, min(before, max(0, -since)))
    return largest


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A stored check: its verdict's code and level, and its evidence as canonical JSON."""

    checked_at: datetime
    block_number: int
    code: str
    level: str
    document: bytes


_FIELDS = "checked_at, block_number, verdict_code AS code, verdict_level AS level, document"
_AT_BUY_AND_NEWEST = f"""
SELECT given.token_id, one.* FROM unnest($1::int[], $2::int[], $3::int[]) AS given (token_id, number, at_s)
JOIN facts.address AS token ON token.id = given.token_id
CROSS JOIN LATERAL (
    (SELECT false AS is_now, {_FIELDS} FROM facts.evidence
    WHERE evidence.token = token.address AND block_number <= given.number ORDER BY id DESC LIMIT 1)
    UNION ALL
    (SELECT true, {_FIELDS} FROM facts.evidence
    WHERE evidence.token = token.address ORDER BY id DESC LIMIT 1)
) AS one
"""  # noqa: S608


async def checks(
    connection: Connection, bought: Sequence[BagToken]
) -> tuple[dict[int, StoredCheck], dict[int, StoredCheck]]:
    """By token: the newest check made at the buy or before it, and the newest of all."""
    at_buy: dict[int, StoredCheck] = {}
    newest: dict[int, StoredCheck] = {}
    rows = await fetch(connection, tuple[int, bool, StoredCheck], _AT_BUY_AND_NEWEST, *_columns_of(bought))
    for token_id, is_now, check in rows:
        (newest if is_now else at_buy)[token_id] = check
    return at_buy, newest


def _columns_of(bought: Collection[BagToken]) -> tuple[list[int], list[int], list[int]]:
    return (
        [token.token_id for token in bought],
        [token.number for token in bought],
        [token.at_s for token in bought],
    )


MAX_ROWS = 1_000
"""The money in a pool with more trades or liquidity changes than this is unknown."""


_POOLS = f"""
SELECT given.nth, change.pool_id, pool.token_id, (put.quote_raw + paid.quote_raw)::text AS came_raw
FROM unnest($1::int[], $2::int[], $3::int[]) WITH ORDINALITY AS given (at_s, block_number, log_index, nth)
JOIN facts.liquidity AS change USING (at_s, block_number, log_index)
JOIN facts.pool AS pool ON pool.id = change.pool_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(one.quote_raw), 0) AS quote_raw FROM facts.liquidity AS one
    WHERE one.pool_id = change.pool_id AND one.at_s >= given.at_s / {MINUTE_S} * {MINUTE_S}
        AND one.at_s <= given.at_s
        AND (one.block_number, one.log_index) < (given.block_number, given.log_index)
) AS put
CROSS JOIN LATERAL (
    SELECT coalesce(sum(CASE WHEN trade.buys THEN trade.quote_raw ELSE -trade.quote_raw END), 0) AS quote_raw
    FROM facts.trades_by_second(change.pool_id, given.at_s / {MINUTE_S} * {MINUTE_S} - 1, given.at_s, $4)
        AS trade
    WHERE (trade.block_number, trade.log_index) < (given.block_number, given.log_index)
) AS paid
"""  # noqa: S608
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
    """A row of ``_PLACES``, whose parameters are: $1, $2 tokens and minutes; $3 drained pools; $4 MAX_POOLS;
    $5 TRADED_WITHIN_S; $6 WHOLE_WITHIN_S; $7 MAX_ROWS; $8 ids of the quotes that are eth."""

    token_id: int
    minute_s: int
    id: int
    quote: Address
    traded: Turnover
    quote_raw: Numeric | None


async def weigh_drains(
    connection: Connection, contracts: Contracts, drains: Sequence[Happening]
) -> list[tuple[int | None, tuple[PoolMoney, list[PoolMoney]]] | None]:
    """For each drain the money that its pool had just before, in wei (None: not known); the drained pool; and
    all pools of its token that were read, this one included. None: its pool is unknown. The day's trades and
    the money of others are those up to the start of the drain's minute, so that each token is read once a
    minute. A pool's money is what was put in and paid in, less what was taken and paid out; in a curve only
    what was paid. A drained pool has at least what the drain took out."""
    weights: list[tuple[int | None, tuple[PoolMoney, list[PoolMoney]]] | None] = [None] * len(drains)
    spots = [drain.spot for drain in drains]
    if not spots:
        return weights
    drained = await fetch(
        connection,
        tuple[int, int, int, Numeric],
        _POOLS,
        [spot.at_s for spot in spots],
        [spot.block_number for spot in spots],
        [spot.log_index for spot in spots],
        MAX_ROWS,
    )
    pools = {nth - 1: (token_id, pool_id) for nth, pool_id, token_id, _ in drained}
    came_raw = {nth - 1: raw for nth, _, _, raw in drained}
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
        MAX_POOLS,
        TRADED_WITHIN_S,
        WHOLE_WITHIN_S,
        MAX_ROWS,
        list(reader.eth_ids),
    )
    # Of several drains in a token's minute, the first gives the moment of the prices.
    spot_of = {(pools[nth][0], minutes[nth]): spots[nth] for nth in reversed(pools)}
    sums = []
    for row in rows:
        raw = None if row.quote_raw is None else max(0, row.quote_raw)
        sums.append((row.quote, raw, spot_of[row.token_id, row.minute_s]))
    places: dict[tuple[int, int], dict[int, PoolMoney]] = {}
    begun_raw: dict[tuple[int, int], int] = {}
    for row, (wei, _) in zip(rows, await reader.worths(sums), strict=True):
        places.setdefault((row.token_id, row.minute_s), {})[row.id] = PoolMoney(row.traded, wei)
        begun_raw[row.id, row.minute_s] = row.quote_raw or 0
    for nth, (token_id, pool_id) in pools.items():
        token_pools = places[token_id, minutes[nth]]
        known = token_pools[pool_id]
        own = _add_drained(known, drains[nth])
        pools_now = [own if other_id == pool_id else place for other_id, place in token_pools.items()]
        before_wei = _add_since(known, begun_raw[pool_id, minutes[nth]], came_raw[nth])
        weights[nth] = before_wei, (own, pools_now)
    return weights


def _add_since(place: PoolMoney, begun_raw: int, came_raw: int) -> int | None:
    """The pool's money with what came in since the minute began, in wei; None: not known, such as where it
    had none then."""
    if place.wei is None or begun_raw <= 0:
        return None
    return place.wei * max(0, begun_raw + came_raw) // begun_raw


def _add_drained(place: PoolMoney, drained: Happening) -> PoolMoney:
    """The pool with at least the money that was drained and, where the share is known, what was left."""
    drained_wei, share_ppm = drained.eth_wei, drained.share_ppm()
    if drained_wei is None:
        return place
    before_wei = drained_wei * 1_000_000 // share_ppm if share_ppm else drained_wei
    return place._replace(wei=max(before_wei, place.wei or 0))


MAX_OWN_TRADES = 5_000
_MAX_TRADES_SEARCHED = 50
"""How many trades before a moment are searched for one that sets a price."""


class OwnTrade(NamedTuple):
    """A trade of a wallet. ``raw``: what it bought of the token, in base units; below zero: what it sold."""

    token_id: int
    at_s: int
    raw: Numeric


async def read_own_trades(
    connection: Connection, wallet_id: int, token_ids: Sequence[int], after_s: int
) -> list[OwnTrade] | None:
    """The wallet's trades of these tokens after ``after_s``, in no order; None: more than MAX_OWN_TRADES."""
    rows = await fetch(
        connection,
        OwnTrade,
        "SELECT pool.token_id, trade.at_s, (CASE WHEN trade.buys THEN trade.token_raw ELSE -trade.token_raw "
        "END)::text AS raw FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id "
        "WHERE trade.trader_id = $1 AND trade.at_s > $3 AND pool.token_id = ANY($2::int[]) LIMIT $4",
        wallet_id,
        list(token_ids),
        after_s,
        MAX_OWN_TRADES + 1,
    )
    return None if len(rows) > MAX_OWN_TRADES else rows


class PastTrade(NamedTuple):
    """The last trade up to ``asked_s`` that sets a price: ``eth_wei`` for ``token_raw``."""

    asked_s: int
    eth_wei: Numeric
    token_raw: Numeric


_PAST = f"""
SELECT asked.at_s AS asked_s, last.wei::text AS eth_wei, last.token_raw::text
FROM unnest($2::int[]) AS asked (at_s)
CROSS JOIN LATERAL (
    SELECT traded.* FROM unnest($1::int[]) AS given (pool_id)
    JOIN facts.pool AS pool ON pool.id = given.pool_id
    JOIN facts.address AS quote ON quote.id = pool.quote_id
    CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT at_s, block_number, log_index, token_raw,
                coalesce(eth_wei, CASE WHEN quote.address = ANY($3::bytea[]) THEN quote_raw END) AS wei
            FROM facts.newest_trades(given.pool_id, 0, asked.at_s, {_MAX_TRADES_SEARCHED}, 0)
        ) AS few WHERE wei >= {MIN_RAW} AND token_raw >= {MIN_RAW}
        ORDER BY at_s DESC, block_number DESC, log_index DESC LIMIT 1
    ) AS traded ORDER BY at_s DESC, block_number DESC, log_index DESC LIMIT 1
) AS last
"""  # noqa: S608


async def read_past_trades(
    connection: Connection, pool_ids: Collection[int], times_s: Collection[int], contracts: Contracts
) -> dict[int, PastTrade]:
    """The last trade up to each second that sets a price, by second; a second without one is missing."""
    rows = await fetch(connection, PastTrade, _PAST, list(pool_ids), list(times_s), eth_quotes(contracts))
    return {trade.asked_s: trade for trade in rows}
