"""What a wallet held of tokens in the last days, and what these traded for. Each function uses the caller's
connection and does not end the transaction."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from roundtrip.domain.base.types import Numeric
from roundtrip.domain.market.candles import MIN_RAW
from roundtrip.store.index.addresses import eth_quotes
from roundtrip.store.server.rows import Connection, fetch
from roundtrip.venues.base import Contracts

MAX_OWN_TRADES = 5_000
_MAX_DUST = 50
"""So many trades that set no price hide an older one."""


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
        "SELECT pool.token_id, trade.at_s,"
        " (CASE WHEN trade.buys THEN trade.token_raw ELSE -trade.token_raw END)::text AS raw"
        " FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id"
        " WHERE trade.trader_id = $1 AND trade.at_s > $3 AND pool.token_id = ANY($2::int[]) LIMIT $4",
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
            FROM facts.newest_trades(given.pool_id, 0, asked.at_s, {_MAX_DUST}, 0)
        ) AS few WHERE wei >= {MIN_RAW} AND token_raw >= {MIN_RAW}
        ORDER BY at_s DESC, block_number DESC, log_index DESC LIMIT 1
    ) AS traded ORDER BY at_s DESC, block_number DESC, log_index DESC LIMIT 1
) AS last
"""  # noqa: S608


async def read_past_trades(
    connection: Connection, pool_ids: Collection[int], times_s: Collection[int], contracts: Contracts
) -> dict[int, PastTrade]:
    """By second; one for which no trade with a worth in eth is known is missing."""
    rows = await fetch(connection, PastTrade, _PAST, list(pool_ids), list(times_s), eth_quotes(contracts))
    return {trade.asked_s: trade for trade in rows}
