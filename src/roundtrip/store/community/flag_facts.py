"""What facts show of a flagged token. Wallets and tokens are given by their numbers in facts.address."""

from dataclasses import dataclass

from roundtrip.domain.base.types import Address, Numeric, TxHash
from roundtrip.domain.base.venue import is_curve
from roundtrip.domain.market.signals import NARROW_TICKS
from roundtrip.store.boards.reference_pools import in_eth, most_used
from roundtrip.store.boards.signals import MAX_CHANGES
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.server import partitions
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_row, fetch_value, fetch_values
from roundtrip.store.watch.happening_moves import WHOLE_WITHIN_S
from roundtrip.venues.base import Contracts

MAX_TRADERS = 500
"""Traders of a token since it was flagged that are read, those with the most money."""
MAX_TRADES = 1000
"""Trades of a day that are searched for one that counts: a token with more is alive."""
_DAY_S = 86_400


async def is_counted(connection: Connection, token_id: int) -> bool:
    """Whether the token counts: it is stored as fair, that is, it was older than a day and had enough
    independent buyers (``domain/market/fairness.py``)."""
    return await fetch_value(
        connection, bool, "SELECT EXISTS (SELECT FROM facts.fair_token WHERE token_id = $1)", token_id
    )


# Shuffled, then tested one by one until there are enough: the planner does not turn a scalar subquery into a
# join.
_DRAWN = f"""
SELECT shuffled.token_id, shuffled.address FROM (
    SELECT fair.token_id, address.address, md5($1::bytea || address.address) AS place
    FROM facts.fair_token AS fair JOIN facts.address AS address ON address.id = fair.token_id
    ORDER BY place OFFSET 0
) AS shuffled WHERE (
    SELECT true FROM facts.pool AS pool
    CROSS JOIN LATERAL facts.trades_by_second(pool.id, $2, {partitions.LAST_S}, 1)
    WHERE pool.token_id = shuffled.token_id LIMIT 1
) ORDER BY shuffled.place LIMIT $3
"""  # noqa: S608


async def draw_tokens(
    connection: Connection, seed: bytes, newest_s: int, limit: int
) -> list[tuple[int, Address]]:
    """At most ``limit`` random tokens that count (``is_counted``) and were traded within a day. ``seed``: 32
    bytes."""
    return await fetch(connection, tuple[int, Address], _DRAWN, seed, newest_s - _DAY_S, limit)


async def deployer_of(connection: Connection, token_id: int) -> tuple[int | None, int]:
    """The token's deployer, None where it is not known, and what it holds of the token by its trades, in base
    units."""
    row = await fetch_row(
        connection,
        tuple[int, Numeric],
        "SELECT launch.deployer_id, greatest(own.bought_raw - own.sold_raw, 0)::text AS held_raw FROM "
        "facts.launch AS launch LEFT JOIN LATERAL facts.position_of(launch.deployer_id, launch.token_id) AS "
        "own ON true WHERE launch.token_id = $1",
        token_id,
    )
    return row or (None, 0)


async def traded_by(connection: Connection, token_id: int, from_s: int) -> set[int] | None:
    """The wallets that traded the token after ``from_s``; None: there are too many trades to read all."""
    trader_ids = await fetch_values(
        connection,
        int,
        "SELECT trade.trader_id FROM facts.pool AS pool JOIN facts.trade AS trade"
        " ON trade.pool_id = pool.id AND trade.at_s > $2 WHERE pool.token_id = $1 LIMIT $3",
        token_id,
        from_s,
        MAX_TRADES,
    )
    return None if len(trader_ids) == MAX_TRADES else set(trader_ids)


@dataclass(frozen=True, slots=True)
class Trader:
    """What a wallet paid for a token and got for it, in wei, as far as that is known."""

    wallet_id: int
    bought_wei: Numeric
    sold_wei: Numeric


_SINCE = """
SELECT trade.trader_id AS wallet_id, coalesce(sum(told.wei) FILTER (WHERE trade.buys), 0)::text AS bought_wei,
    coalesce(sum(told.wei) FILTER (WHERE NOT trade.buys), 0)::text AS sold_wei
FROM facts.pool AS pool JOIN facts.trade AS trade ON trade.pool_id = pool.id AND trade.at_s >= $2
CROSS JOIN LATERAL (SELECT coalesce(
    trade.eth_wei, CASE WHEN pool.quote_id = ANY($4::int[]) THEN trade.quote_raw END
) AS wei) AS told
WHERE pool.token_id = $1 AND trade.block_number > $3
GROUP BY trade.trader_id ORDER BY sum(told.wei) DESC NULLS LAST LIMIT $5
"""


async def traders_since(
    connection: Connection, token_id: int, at_s: int, number: int, contracts: Contracts
) -> list[Trader]:
    """The wallets that traded the token after block ``number``, whose time is ``at_s``."""
    eth_ids = await in_eth(connection, contracts)
    return await fetch(connection, Trader, _SINCE, token_id, at_s, number, eth_ids, MAX_TRADERS)


# --- liquidity and the deployer --------------------------------------------------------------------


async def main_pool(
    connection: Connection, token_id: int, index_cursor: Cursor, contracts: Contracts
) -> tuple[str, dict[int, int]] | None:
    """The pool where the token was traded most within a day, and the liquidity that each wallet has put into
    it and not taken out, times the width of its range. None: it is a curve, which has no liquidity to take;
    there is none; it is younger than a day; or not every change of its liquidity is known."""
    newest_s = index_cursor.block.timestamp_s
    pool = await most_used(connection, token_id, newest_s, contracts)
    if pool is None or is_curve(pool.kind) or pool.block_number < index_cursor.start_number:
        return None
    if not newest_s - WHOLE_WITHIN_S < pool.at_s <= newest_s - _DAY_S:
        return None
    changes = await fetch(
        connection,
        tuple[int, Numeric],
        "SELECT sender_id, liquidity_delta * least(tick_upper - tick_lower, $2) AS weight"
        " FROM facts.liquidity WHERE pool_id = $1 LIMIT $3",
        pool.pool_id,
        NARROW_TICKS,
        MAX_CHANGES + 1,
    )
    if len(changes) > MAX_CHANGES:
        return None
    of_wallets: dict[int, int] = {}
    for sender_id, weight in changes:
        of_wallets[sender_id] = of_wallets.get(sender_id, 0) + weight
    return pool.at, of_wallets


@dataclass(frozen=True, slots=True)
class RemovedLiquidity:
    """The liquidity that a wallet took out (times the width of its range), or the base units that the
    deployer sold, net of what went the other way, since a flag was made. ``settled``: up to the time
    ``settled_s``, after which facts do not count yet; ``now``: up to now. ``largest`` and the rest: of the
    largest settled transaction."""

    wallet_id: int
    settled: Numeric
    now: Numeric
    largest: Numeric
    tx_hash: TxHash
    block_number: int
    at_s: int


# $1 the pool or the token, $2 at_s, $3 number, $4 settled_s
_GONE = """
SELECT wallet_id, coalesce(sum(amount) FILTER (WHERE at_s <= $4), 0)::text AS settled,
    sum(amount)::text AS now,
    (array_agg(amount::text ORDER BY at_s <= $4 DESC, amount DESC, block_number, log_index))[1] AS largest,
    (array_agg(tx_hash ORDER BY at_s <= $4 DESC, amount DESC, block_number, log_index))[1] AS tx_hash,
    (array_agg(block_number ORDER BY at_s <= $4 DESC, amount DESC, block_number, log_index))[1]
        AS block_number,
    (array_agg(at_s ORDER BY at_s <= $4 DESC, amount DESC, block_number, log_index))[1] AS at_s
FROM ({changes}) AS change WHERE at_s >= $2 AND block_number > $3 GROUP BY wallet_id
"""
_LIQUIDITY = _GONE.format(
    changes="SELECT change.sender_id AS wallet_id, change.at_s, change.block_number, change.log_index,"
    " change.tx_hash, -change.liquidity_delta * least(change.tick_upper - change.tick_lower, $5) AS amount"
    " FROM facts.liquidity AS change WHERE change.at_s >= $2"
    " AND change.pool_id = (SELECT id FROM facts.pool WHERE at = $1)"
)
_SOLD = _GONE.format(
    changes="SELECT trade.trader_id AS wallet_id, trade.at_s, trade.block_number, trade.log_index,"
    " trade.tx_hash, CASE WHEN trade.buys THEN -trade.token_raw ELSE trade.token_raw END AS amount"
    " FROM facts.launch AS launch JOIN facts.trade AS trade"
    " ON trade.trader_id = launch.deployer_id AND trade.at_s >= $2"
    " JOIN facts.pool AS pool ON pool.id = trade.pool_id AND pool.token_id = launch.token_id"
    " WHERE launch.token_id = $1"
)


async def liquidity_gone(
    connection: Connection, pool: str, at_s: int, number: int, settled_s: int
) -> list[RemovedLiquidity]:
    """What each wallet took out of a pool after block ``number``, whose time is ``at_s``; below zero: put
    in."""
    return await fetch(
        connection, RemovedLiquidity, _LIQUIDITY, as_bytes(pool), at_s, number, settled_s, NARROW_TICKS
    )


async def deployer_sold(
    connection: Connection, token_id: int, at_s: int, number: int, settled_s: int
) -> RemovedLiquidity | None:
    """What the token's deployer sold of it after block ``number``, whose time is ``at_s``; None: it traded
    none."""
    return await fetch_row(connection, RemovedLiquidity, _SOLD, token_id, at_s, number, settled_s)
