"""What a wallet has done, by the index. "Its" in a docstring means the wallet's."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base.types import Numeric, TxHash
from roundtrip.domain.market.winners import SPANS
from roundtrip.store.index.tokens import eth_quotes
from roundtrip.store.server.rows import Connection, fetch, fetch_one, fetch_row, fetch_value
from roundtrip.venues.base import Contracts

MAX_ROWS = 4_000
"""Positions and closings of a wallet that are summed up, the newest: a bot has half a million."""
MAX_LAUNCHES_SHOWN = 10
MAX_HELD_SHOWN = 20
MAX_LAUNCHES_LOOKED_AT = 50
PRICES_BACK_S = (86_400, 9 * 86_400, 90 * 86_400)
"""How far back a token's last trade is looked for, in turn: most tokens traded on the last day, and each day
more is one more partition to read."""
TRADES_LOOKED_AT, PLACES_LOOKED_AT = 20, 8
"""The newest trades of a place, and the oldest places of a token: the token began in one of them, and anyone
can make a thousand more."""
MIN_PRICED_WEI = 10**14
"""A smaller trade gives no price: with a few base units, rounding yields any."""


@dataclass(frozen=True, slots=True)
class WalletLaunch:
    """A token that the wallet launched. ``generation`` 1: straight into a pool. ``steps``: swept, pooled,
    rescued. ``raised_raw``, ``threshold_raw``: what its curve holds and what it takes, in the quote's base
    units; None: not known. ``bought_raw``, ``sold_raw``: of the token by the wallet itself."""

    token_id: int
    at_s: int
    generation: int
    steps: frozenset[str]
    raised_raw: Numeric | None
    threshold_raw: Numeric | None
    bought_raw: Numeric
    sold_raw: Numeric


@dataclass(frozen=True, slots=True)
class TradeTotals:
    """The sums of its positions; where ``is_part``, of the ``MAX_ROWS`` newest tokens only. ``held``:
    positions with some of what it bought left. ``unpriced``: trades without a known worth in eth.
    ``recent_tokens``: tokens it has traded since a given time."""

    tokens: int
    buys: int
    sells: int
    spent_wei: Numeric
    got_wei: Numeric
    unpriced: int
    held: int
    recent_tokens: int
    is_part: bool


@dataclass(frozen=True, slots=True)
class WalletClosing:
    """One closing: the token, the time (seconds since 1970), the cost and the proceeds."""

    token_id: int
    at_s: int
    spent_wei: Numeric
    got_wei: Numeric


@dataclass(frozen=True, slots=True)
class WalletClosings:
    """The sums of closings; where ``is_part``, of the ``MAX_ROWS`` newest."""

    closed: int
    won: int
    spent_wei: Numeric
    got_wei: Numeric
    is_part: bool


@dataclass(frozen=True, slots=True)
class ClosingsSummary:
    """All closings, those since a given time, and of all the one that won most and the one that won least."""

    all: WalletClosings
    recent: WalletClosings
    best: WalletClosing | None
    worst: WalletClosing | None


@dataclass(frozen=True, slots=True)
class OpenPosition:
    """A position with something left of what was bought, all fields as in facts.position."""

    token_id: int
    held_raw: Numeric
    cost_wei: Numeric
    bought_raw: Numeric
    spent_wei: Numeric
    unpriced: int
    spent_micro_usd: Numeric | None
    last_s: int
    round_unpriced: int


@dataclass(frozen=True, slots=True)
class LastTrade:
    """The newest trade of a token whose worth in eth is known."""

    at_s: int
    token_raw: Numeric
    eth_wei: Numeric


_LAUNCHED = """
SELECT launched.token_id, launched.at_s, launched.generation,
    ARRAY(SELECT step FROM facts.launch_step WHERE token_id = launched.token_id) AS steps,
    curve.raised_raw, launched.threshold_raw,
    coalesce(own.bought_raw, 0) AS bought_raw, coalesce(own.sold_raw, 0) AS sold_raw
FROM (
    SELECT token_id, at_s, generation, threshold_raw, at, block_number, log_index FROM facts.launch
    WHERE deployer_id = $1 ORDER BY block_number DESC, log_index DESC LIMIT $2
) AS launched
LEFT JOIN facts.pool AS pool ON pool.at = launched.at
LEFT JOIN facts.curve AS curve ON curve.pool_id = pool.id
LEFT JOIN LATERAL facts.position_of($1, launched.token_id) AS own ON true
ORDER BY launched.block_number DESC, launched.log_index DESC
"""


async def launches(connection: Connection, wallet_id: int) -> list[WalletLaunch]:
    """Its newest ``MAX_LAUNCHES_SHOWN`` launches, the newest first."""
    return await fetch(connection, WalletLaunch, _LAUNCHED, wallet_id, MAX_LAUNCHES_SHOWN)


async def pool_launches(connection: Connection, wallet_id: int) -> int:
    """How many tokens it launched straight into a pool; counted up to ``MAX_ROWS``."""
    return await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM (SELECT FROM facts.launch WHERE deployer_id = $1 AND generation = 1 LIMIT $2)"
        " AS counted",
        wallet_id,
        MAX_ROWS,
    )


_TRADED = """
SELECT count(*) AS tokens, coalesce(sum(buys), 0) AS buys, coalesce(sum(sells), 0) AS sells,
    coalesce(sum(spent_wei), 0) AS spent_wei, coalesce(sum(got_wei), 0) AS got_wei,
    coalesce(sum(unpriced), 0) AS unpriced, count(*) FILTER (WHERE held_raw > 0) AS held,
    count(*) FILTER (WHERE last_s >= $3) AS recent_tokens,
    EXISTS (SELECT FROM facts.position WHERE wallet_id = $1 OFFSET $2) AS is_part
FROM (
    -- Tokens are numbered in the order in which they were met.
    SELECT * FROM facts.position WHERE wallet_id = $1 ORDER BY token_id DESC LIMIT $2
) AS newest
"""


async def sum_trades(connection: Connection, wallet_id: int, since_s: int) -> TradeTotals:
    """The sums of its positions; ``since_s``: a token traded since then is recently traded."""
    return await fetch_one(connection, TradeTotals, _TRADED, wallet_id, MAX_ROWS, since_s)


_CLOSINGS = """
WITH newest AS MATERIALIZED (
    SELECT token_id, at_s, spent_wei, got_wei, block_number, log_index FROM facts.closing
    WHERE wallet_id = $1 ORDER BY at_s DESC LIMIT $3
)
SELECT whole.*, recent.*, best.*, worst.* FROM (
    SELECT count(*) AS closed, count(*) FILTER (WHERE got_wei > spent_wei) AS won,
        coalesce(sum(spent_wei), 0) AS spent_wei, coalesce(sum(got_wei), 0) AS got_wei,
        EXISTS (SELECT FROM facts.closing WHERE wallet_id = $1 OFFSET $3) AS is_part
    FROM newest
) AS whole CROSS JOIN (
    SELECT count(*) AS closed, count(*) FILTER (WHERE got_wei > spent_wei) AS won,
        coalesce(sum(spent_wei), 0) AS spent_wei, coalesce(sum(got_wei), 0) AS got_wei,
        EXISTS (SELECT FROM facts.closing WHERE wallet_id = $1 AND at_s >= $2 OFFSET $3) AS is_part
    FROM newest WHERE at_s >= $2
) AS recent LEFT JOIN (
    SELECT token_id, at_s, spent_wei, got_wei FROM newest
    ORDER BY got_wei - spent_wei DESC, block_number, log_index LIMIT 1
) AS best ON true LEFT JOIN (
    SELECT token_id, at_s, spent_wei, got_wei FROM newest
    ORDER BY got_wei - spent_wei, block_number, log_index LIMIT 1
) AS worst ON true
"""


async def closings(connection: Connection, wallet_id: int, since_s: int) -> ClosingsSummary:
    """Its closings; those since ``since_s`` are recent."""
    return await fetch_one(connection, ClosingsSummary, _CLOSINGS, wallet_id, since_s, MAX_ROWS)


_HELD = """
SELECT token_id, held_raw, cost_wei, bought_raw, spent_wei, unpriced, spent_micro_usd, last_s, round_unpriced
FROM (SELECT * FROM facts.position WHERE wallet_id = $1 ORDER BY token_id DESC LIMIT $2) AS newest
WHERE held_raw > 0 ORDER BY cost_wei DESC, last_s DESC, token_id LIMIT $3
"""


async def list_held(connection: Connection, wallet_id: int) -> list[OpenPosition]:
    """Its positions with something left that cost most, among those of the ``MAX_ROWS`` newest tokens."""
    return await fetch(connection, OpenPosition, _HELD, wallet_id, MAX_ROWS, MAX_HELD_SHOWN)


_LAST_TRADES = """
SELECT DISTINCT ON (token_id) token_id, last_s AS at_s, last_token_raw AS token_raw, last_eth_wei AS eth_wei
FROM (
    SELECT given.token_id, place.id, told.* FROM unnest($1::int[]) AS given (token_id)
    CROSS JOIN LATERAL (
        SELECT pool.id, pool.quote_id FROM facts.pool AS pool
        WHERE pool.token_id = given.token_id AND pool.in_money_from IS NOT NULL ORDER BY pool.id LIMIT $7
    ) AS place
    JOIN facts.address AS quote ON quote.id = place.quote_id
    CROSS JOIN LATERAL (
        SELECT count(DISTINCT trader_id) AS traders, sum(wei) AS wei,
            (array_agg(at_s ORDER BY nth))[1] AS last_s,
            (array_agg(token_raw ORDER BY nth))[1] AS last_token_raw,
            (array_agg(wei ORDER BY nth))[1] AS last_eth_wei
        FROM (
            SELECT trader_id, at_s, token_raw,
                row_number() OVER (ORDER BY at_s DESC, block_number DESC, log_index DESC) AS nth,
                coalesce(eth_wei, CASE WHEN quote.address = ANY($2::bytea[]) THEN quote_raw END) AS wei
            FROM facts.newest_trades(place.id, $4 - 1, $5 - 1, $6::int, 1)
        ) AS newest WHERE wei >= $3
    ) AS told
    WHERE told.traders > 0
) AS priced ORDER BY token_id, traders DESC, wei DESC, id
"""


async def last_trades(
    connection: Connection, token_ids: Collection[int], contracts: Contracts, now_s: int
) -> dict[int, LastTrade]:
    """The newest trade of each of these tokens that gives a price in eth, in the one of its
    ``PLACES_LOOKED_AT`` oldest places where most wallets made the ``TRADES_LOOKED_AT`` newest trades:
    nobody must set the price by one trade in a place of their own. ``now_s``: of the newest block."""
    trades: dict[int, LastTrade] = {}
    end_s = now_s + 1
    for back_s in PRICES_BACK_S:
        remaining_ids = [token_id for token_id in token_ids if token_id not in trades]
        if not remaining_ids:
            break
        rows = await fetch(
            connection,
            tuple[int, LastTrade],
            _LAST_TRADES,
            remaining_ids,
            eth_quotes(contracts),
            MIN_PRICED_WEI,
            now_s - back_s,
            end_s,
            TRADES_LOOKED_AT,
            PLACES_LOOKED_AT,
        )
        trades.update(rows)
        end_s = now_s - back_s
    return trades


class TradePlace(NamedTuple):
    """A trade's place in the order of the chain."""

    at_s: int
    block_number: int
    log_index: int


class WalletTrade(NamedTuple):
    """A trade of the wallet. ``eth_wei``, ``micro_usd``: its worth; None: not known."""

    at_s: int
    block_number: int
    log_index: int
    token_id: int
    buys: bool
    token_raw: Numeric
    eth_wei: Numeric | None
    micro_usd: int | None
    tx_hash: TxHash


_OWN_TRADES = """
SELECT trade.at_s, trade.block_number, trade.log_index, pool.token_id, trade.buys,
    trade.token_raw::text AS token_raw,
    coalesce(
        trade.eth_wei, CASE WHEN quote.address = ANY($6::bytea[]) THEN trade.quote_raw END
    )::text AS eth_wei,
    trade.micro_usd, trade.tx_hash
FROM (
    SELECT * FROM facts.trade WHERE trader_id = $1 AND at_s > $2 AND at_s <= $3
        AND (at_s, block_number, log_index) < ($3, $4, $5)
    ORDER BY at_s DESC, block_number DESC, log_index DESC LIMIT $7
) AS trade
JOIN facts.pool AS pool ON pool.id = trade.pool_id JOIN facts.address AS quote ON quote.id = pool.quote_id
ORDER BY trade.at_s DESC, trade.block_number DESC, trade.log_index DESC
"""


async def list_trades(
    connection: Connection, wallet_id: int, before: TradePlace | None, limit: int, contracts: Contracts
) -> list[WalletTrade]:
    """Its newest stored trades, the newest first; ``before``: those before this place."""
    last_s = await fetch_value(connection, int, _LAST_TRADED, wallet_id, MAX_ROWS)
    end = before or TradePlace(last_s + 1, 0, 0)
    found: list[WalletTrade] = []
    # A wallet that trades much has enough in the first day, and each day more is one more partition to read.
    for back_s in (*PRICES_BACK_S, end.at_s):
        begin_s = min(end.at_s, last_s) - back_s
        found = await fetch(
            connection, WalletTrade, _OWN_TRADES, wallet_id, begin_s, *end, eth_quotes(contracts), limit
        )
        if len(found) == limit or begin_s <= 0:
            break
    return found


_LAST_TRADED = """
SELECT coalesce(max(last_s), 0) FROM (
    SELECT last_s FROM facts.position WHERE wallet_id = $1 ORDER BY token_id DESC LIMIT $2
) AS newest
"""


class ProfitDay(NamedTuple):
    """The closings of one day (UTC) in which there were any. ``at_s``: its start, in seconds since 1970."""

    at_s: int
    closed: int
    profit_wei: Numeric


_PROFIT_DAYS = """
SELECT at_s / 86400 * 86400 AS at_s, count(*) AS closed, sum(got_wei - spent_wei) AS profit_wei
FROM (SELECT at_s, spent_wei, got_wei FROM facts.closing WHERE wallet_id = $1 ORDER BY at_s DESC LIMIT $2)
    AS newest
GROUP BY 1 ORDER BY 1
"""


async def profit_days(connection: Connection, wallet_id: int) -> list[ProfitDay]:
    """The days of its ``MAX_ROWS`` newest closings, the oldest first."""
    return await fetch(connection, ProfitDay, _PROFIT_DAYS, wallet_id, MAX_ROWS)


async def nearest_board(connection: Connection, wallet_id: int) -> tuple[str, int] | None:
    """Span and rank of its place on the winners board of the shortest span in which it ranks with a profit;
    None: it is on no board."""
    return await fetch_row(
        connection,
        tuple[str, int],
        "SELECT span, rank FROM facts.winner WHERE wallet_id = $1 AND profit_wei > 0"
        " ORDER BY array_position($2::text[], span) LIMIT 1",
        wallet_id,
        list(SPANS),
    )


# The minute lets the plan leave out days, and bounds the trades of a busy launch: $3 blocks take less.
_SNIPED = """
WITH launched AS MATERIALIZED (
    SELECT launch.token_id, launch.at_s, launch.block_number, pool.id AS pool_id
    FROM (SELECT token_id FROM facts.position WHERE wallet_id = $1 ORDER BY token_id DESC LIMIT $2) AS newest
    JOIN facts.launch AS launch USING (token_id) JOIN facts.pool AS pool ON pool.at = launch.at
    WHERE launch.deployer_id <> $1
)
SELECT count(DISTINCT launched.token_id) FROM launched JOIN facts.trade AS trade
    ON trade.pool_id = launched.pool_id AND trade.at_s BETWEEN launched.at_s AND launched.at_s + 60
WHERE trade.block_number <= launched.block_number + $3 AND trade.trader_id = $1 AND trade.buys
"""


async def count_sniped(connection: Connection, wallet_id: int, window_blocks: int) -> int:
    """Of its ``MAX_LAUNCHES_LOOKED_AT`` newest tokens, how many of others' launches it bought in their first
    ``window_blocks``."""
    return await fetch_value(connection, int, _SNIPED, wallet_id, MAX_LAUNCHES_LOOKED_AT, window_blocks)
