"""Prices and trades of a token in its main pools, and what the index knows of wallets that trade it. Each
function uses the caller's connection and does not end the transaction."""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from roundtrip.domain.base.types import Address, HexBytes, Numeric, TxHash
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.holders.findings import MIN_BUNDLE
from roundtrip.domain.holders.launch_window import MAX_LAUNCH_BUYERS, WINDOW_BLOCKS
from roundtrip.domain.market.candles import MIN_RAW, PRICE_DECIMALS, TradeBucket
from roundtrip.domain.market.fairness import FAIRNESS
from roundtrip.domain.market.winners import SPANS
from roundtrip.store.boards.reference_pools import most_used, own_pools
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_value
from roundtrip.venues.base import Contracts

MAX_POOLS = 2
"""A launch has a curve and the pool that it became; other tokens one main pool."""
MAX_TRADES = 10_000
"""Trades that candles are made of, the newest."""
MAX_SALES = 50
"""Sales of insiders that are read, the newest."""
_MAX_DUST = 50
"""How many trades before a moment are searched for one that sets a price."""
_MAX_PLACES = 30
"""How many of a token's oldest pools are searched for its last trade."""


class MainPool(NamedTuple):
    """A pool or curve whose trades set the token's price. ``at``: its address, or the id of a v4 pool.
    ``opened_s``: seconds since 1970."""

    id: int
    at: HexBytes
    kind: VenueKind
    quote_id: int
    opened_s: int


async def main_pools(
    connection: Connection, token_id: int, newest_s: int, contracts: Contracts
) -> list[MainPool]:
    """Where the token's price is made, the oldest pool first: a launch's own curve and pool; for other
    tokens the pool where it was traded most within a day, else where it was traded last. Empty: it was never
    traded, or its trades are no longer stored."""
    ids = await own_pools(connection, token_id)
    if not ids:
        used = await most_used(connection, token_id, newest_s, contracts)
        ids = [used.pool_id] if used is not None else []
    query = (
        "SELECT id, at, kind, quote_id, at_s AS opened_s FROM facts.pool"
        " WHERE id = ANY($1::int[]) ORDER BY id"
    )
    rows = await fetch(connection, MainPool, query if ids else _TRADED_LAST, ids or token_id)
    return rows[-MAX_POOLS:]


_TRADED_LAST = f"""
SELECT pool.id, pool.at, pool.kind, pool.quote_id, pool.at_s AS opened_s FROM (
    SELECT * FROM facts.pool AS one WHERE one.token_id = $1 AND one.in_money_from IS NOT NULL
    ORDER BY one.id LIMIT {_MAX_PLACES}
) AS pool CROSS JOIN LATERAL facts.trades_by_second(pool.id, 0, {partitions.LAST_S}, 1) AS last
ORDER BY last.at_s DESC, pool.id LIMIT 1
"""  # noqa: S608

# A price is without the pool's fee and what the launchpad kept: buys and sells would differ by them.
_FEE = "(CASE WHEN trade.kept_raw IS NULL AND pool.fee_pips < 1000000 THEN pool.fee_pips ELSE 0 END)"
_PRICE = f"""
CASE WHEN trade.quote_raw < {MIN_RAW} OR trade.token_raw < {MIN_RAW} THEN NULL
WHEN trade.buys THEN nullif(greatest(div((trade.quote_raw - coalesce(trade.kept_raw, 0)) * (1000000 - {_FEE})
    * 10::numeric ^ {PRICE_DECIMALS - 6}, trade.token_raw), 0), 0)
ELSE nullif(div((trade.quote_raw + coalesce(trade.kept_raw, 0)) * 10::numeric ^ {PRICE_DECIMALS + 6},
    trade.token_raw * (1000000 - {_FEE})), 0) END
"""
_NEWEST_FIRST = "ORDER BY at_s DESC, block_number DESC, log_index DESC"

# $1 and $2 pools, $3 and $4 after and up to which second, $5 how many trades, $6 seconds of a bucket. Each
# pool is a parameter of its own: then the planner knows a busy one, and reads no more of its trades than it
# needs.
_OF_POOL = """(
    SELECT trade.at_s, trade.block_number, trade.log_index, trade.buys, trade.quote_raw, {price} AS price
    FROM facts.trade AS trade CROSS JOIN (SELECT fee_pips FROM facts.pool WHERE id = {pool}) AS pool
    WHERE trade.pool_id = {pool} AND trade.at_s > $3 AND trade.at_s <= $4 {order} LIMIT $5
)"""
_OF_POOLS = " UNION ALL ".join(
    _OF_POOL.format(price=_PRICE, pool=f"${place}::int", order=_NEWEST_FIRST)
    for place in range(1, MAX_POOLS + 1)
)
_CANDLES = f"""
WITH newest AS MATERIALIZED (
    SELECT * FROM ({_OF_POOLS}) AS traded {_NEWEST_FIRST} LIMIT $5
), ended AS (
    SELECT *, count(*) OVER () AS trades, price IS NOT NULL AND row_number() OVER (
        PARTITION BY block_number ORDER BY price IS NULL, log_index DESC
    ) = 1 AS is_last FROM newest
)
SELECT at_s / $6 * $6 AS from_s,
    ((array_agg(price ORDER BY block_number) FILTER (WHERE is_last))[1])::text AS open_raw,
    (max(price) FILTER (WHERE is_last))::text AS high_raw,
    (min(price) FILTER (WHERE is_last))::text AS low_raw,
    ((array_agg(price ORDER BY block_number DESC) FILTER (WHERE is_last))[1])::text AS close_raw,
    sum(quote_raw)::text AS volume_raw, (count(*) FILTER (WHERE buys))::int AS buys,
    (count(*) FILTER (WHERE NOT buys))::int AS sells, max(trades)::int AS trades
FROM ended GROUP BY 1 ORDER BY 1
"""  # noqa: S608


async def read_buckets(
    connection: Connection,
    pool_ids: Sequence[int],
    span_s: int,
    from_s: int,
    to_s: int,
    limit: int = MAX_TRADES,
) -> tuple[list[TradeBucket], bool]:
    """What was traded in at most ``MAX_POOLS`` pools from ``from_s`` (a multiple of ``span_s``) up to
    ``to_s``, in buckets of ``span_s`` seconds, the oldest first; buckets without a trade are left out. True:
    there were more than ``limit`` trades; then the buckets are of the newest, and the one that is not whole
    is left out."""
    pools = [*pool_ids, *[None] * (MAX_POOLS - len(pool_ids))]
    rows = await fetch(
        connection, tuple[TradeBucket, int], _CANDLES, *pools, from_s - 1, to_s, limit + 1, span_s
    )
    buckets = [bucket for bucket, _ in rows]
    is_cut = bool(rows) and rows[0][1] > limit
    return buckets[1:] if is_cut else buckets, is_cut


_PRICES = f"""
SELECT asked.at_s AS asked_s, last.at_s, last.price::text AS price_raw FROM unnest($2::int[]) AS asked (at_s)
CROSS JOIN LATERAL (
    SELECT priced.* FROM unnest($1::int[]) AS given (pool_id)
    JOIN facts.pool AS pool ON pool.id = given.pool_id
    CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT trade.at_s, trade.block_number, trade.log_index, {_PRICE} AS price
            FROM facts.newest_trades(given.pool_id, 0, asked.at_s, {_MAX_DUST}, 0) AS trade
        ) AS few WHERE price IS NOT NULL {_NEWEST_FIRST} LIMIT 1
    ) AS priced {_NEWEST_FIRST} LIMIT 1
) AS last
"""  # noqa: S608


class PastPrice(NamedTuple):
    """The price after the last trade up to ``asked_s``, and when that trade was."""

    asked_s: int
    at_s: int
    price_raw: Numeric


async def read_prices(
    connection: Connection, pool_ids: Collection[int], times_s: Collection[int]
) -> dict[int, PastPrice]:
    """The prices at the end of these seconds, by second. A price that is not known is missing."""
    prices = await fetch(connection, PastPrice, _PRICES, list(pool_ids), list(times_s))
    return {price.asked_s: price for price in prices}


MarkKind = Literal["launch", "graduation", "deployer_sold", "insider_sold"]
_MARKS = """
SELECT 'launch' AS kind, at_s, tx_hash, NULL::bytea AS wallet, NULL::text AS token_raw, NULL::text AS eth_wei
FROM facts.launch WHERE token_id = $1
UNION ALL SELECT 'graduation', at_s, tx_hash, NULL, NULL, NULL
FROM facts.launch_step WHERE token_id = $1 AND step = 'pooled'
UNION ALL SELECT * FROM (
    SELECT CASE WHEN inside.wallet_id = launch.deployer_id THEN 'deployer_sold' ELSE 'insider_sold' END,
        inside.at_s, inside.tx_hash, wallet.address, inside.token_raw::text, inside.eth_wei::text
    FROM facts.inside AS inside JOIN facts.launch AS launch ON launch.token_id = inside.token_id
    JOIN facts.address AS wallet ON wallet.id = inside.wallet_id
    WHERE inside.token_id = $1 AND inside.what = 'sold'
    ORDER BY inside.block_number DESC, inside.log_index DESC LIMIT $2
) AS sales
"""


class LaunchMark(NamedTuple):
    """An event in a launch's life. ``wallet``, ``token_raw``: of a sale. ``eth_wei``: what a sale brought;
    None: not known."""

    kind: MarkKind
    at_s: int
    tx_hash: TxHash
    wallet: Address | None
    token_raw: Numeric | None
    eth_wei: Numeric | None


async def read_launch_marks(connection: Connection, token_id: int) -> list[LaunchMark]:
    """The launch, its graduation, and what its insiders sold in the last days, in no order."""
    return await fetch(connection, LaunchMark, _MARKS, token_id, MAX_SALES)


_TRADES = f"""
SELECT traded.*, wallet.address AS wallet FROM unnest($1::int[]) AS given (pool_id)
JOIN facts.pool AS pool ON pool.id = given.pool_id
CROSS JOIN LATERAL (
    SELECT trade.at_s, trade.block_number, trade.log_index, trade.trader_id, trade.buys,
        trade.token_raw::text AS token_raw, trade.quote_raw::text AS quote_raw, trade.micro_usd,
        ({_PRICE})::text AS price_raw, trade.tx_hash
    FROM facts.newest_trades(given.pool_id, 0, {partitions.LAST_S}, $2::int, 0) AS trade
) AS traded
JOIN facts.address AS wallet ON wallet.id = traded.trader_id {_NEWEST_FIRST} LIMIT $2
"""  # noqa: S608


class NewestTrade(NamedTuple):
    """A trade in a main pool. ``micro_usd``, ``price_raw``: None: not known."""

    at_s: int
    block_number: int
    log_index: int
    trader_id: int
    buys: bool
    token_raw: Numeric
    quote_raw: Numeric
    micro_usd: int | None
    price_raw: Numeric | None
    tx_hash: TxHash
    wallet: Address


async def newest_trades(connection: Connection, pool_ids: Sequence[int], limit: int) -> list[NewestTrade]:
    """The newest trades in the pools, the newest first."""
    return await fetch(connection, NewestTrade, _TRADES, list(pool_ids), limit)


async def is_traded(connection: Connection, token: Address) -> bool:
    """Whether the index has a trade of the token."""
    return await fetch_value(connection, bool, _IS_TRADED, as_bytes(token))


# By a position: trades are in one table a day.
_IS_TRADED = """
SELECT EXISTS (
    SELECT FROM facts.address AS token CROSS JOIN LATERAL facts.positions_in(token.id, 1)
    WHERE token.address = $1
)
"""
_WITHIN_S = 600
"""The launch window is shorter than this on every chain. It bounds the days of trades that are read."""

# $1 token, $2 wallets, $3 most_funded, $4 blocks of the window, $5 wallets of a bundle, $6 spans of boards
_TAGS = f"""
WITH begun AS MATERIALIZED (
    SELECT launch.deployer_id, launch.block_number, launch.at_s, pool.id AS pool_id
    FROM facts.launch AS launch JOIN facts.pool AS pool ON pool.at = launch.at WHERE launch.token_id = $1
), early AS MATERIALIZED (
    SELECT DISTINCT trade.trader_id FROM begun JOIN facts.trade AS trade ON trade.pool_id = begun.pool_id
        AND trade.at_s BETWEEN begun.at_s AND begun.at_s + {_WITHIN_S}
        AND trade.block_number <= begun.block_number + $4
    WHERE trade.buys AND trade.trader_id <> begun.deployer_id LIMIT {MAX_LAUNCH_BUYERS}
), bundled AS MATERIALIZED (
    SELECT unnest(array_agg(early.trader_id)) AS wallet_id
    FROM early JOIN facts.origin AS origin ON origin.wallet_id = early.trader_id
    WHERE origin.funder_id IS NOT NULL GROUP BY origin.funder_id HAVING count(*) >= $5 AND (
        SELECT count(*) FROM (
            SELECT FROM facts.origin AS paid WHERE paid.funder_id = origin.funder_id LIMIT $3::int + 1
        ) AS few
    ) <= $3::int
), shared AS MATERIALIZED (
    SELECT (SELECT count(*) FROM (
        SELECT FROM facts.origin AS paid WHERE paid.funder_id = begun.deployer_id LIMIT $3::int + 1
    ) AS few) > $3::int AS pays_many FROM begun
)
SELECT given.id AS wallet_id,
    EXISTS (SELECT FROM begun WHERE begun.deployer_id = given.id) AS is_deployer,
    EXISTS (SELECT FROM facts.origin AS origin JOIN begun ON begun.deployer_id = origin.funder_id
        JOIN shared ON NOT shared.pays_many WHERE origin.wallet_id = given.id) AS is_funded_by_deployer,
    given.id IN (SELECT trader_id FROM early) AS is_sniper,
    given.id IN (SELECT wallet_id FROM bundled) AS is_bundled, board.span, board.rank
FROM unnest($2::int[]) AS given (id) LEFT JOIN LATERAL (
    SELECT winner.span, winner.rank FROM facts.winner AS winner
    WHERE winner.wallet_id = given.id AND winner.profit_wei > 0
    ORDER BY array_position($6::text[], winner.span) LIMIT 1
) AS board ON true
"""  # noqa: S608


class TraderTags(NamedTuple):
    """What is known of a wallet. ``is_sniper``: it bought in the launch window and is not the deployer.
    ``is_bundled``: the same wallet, no exchange, sent it and at least two other snipers their first eth.
    ``span``, ``rank``: its rank among the winners; None: it is not on a board."""

    wallet_id: int
    is_deployer: bool
    is_funded_by_deployer: bool
    is_sniper: bool
    is_bundled: bool
    span: str | None
    rank: int | None


async def read_trader_tags(
    connection: Connection, token_id: int, wallet_ids: Collection[int]
) -> dict[int, TraderTags]:
    """The tags of each of these wallets, as far as the index knows."""
    rows = await fetch(
        connection,
        TraderTags,
        _TAGS,
        token_id,
        sorted(set(wallet_ids)),
        FAIRNESS.most_funded,
        WINDOW_BLOCKS,
        MIN_BUNDLE,
        list(SPANS),
    )
    return {row.wallet_id: row for row in rows}
