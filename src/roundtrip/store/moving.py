"""Money that goes into tokens and out of them, in a span of the chain's time.

A trade counts by its worth in eth: what it was worth then, or what was paid where that was eth or weth. Those
of which it is not known do not count at all.
"""

from collections.abc import Collection

import asyncpg

from roundtrip.domain.moving import Checked, Flow
from roundtrip.domain.types import ZERO_ADDRESS
from roundtrip.venues.base import Contracts

from .words import as_address, as_bytes

MOST_FLOWS = 1000
"""Of the tokens that had a crowd those with most money."""

# Each pool is looked up once, not once a trade.
_TOLD = """
WITH seen AS MATERIALIZED (
    SELECT pool_id, trader_id, buys, eth_wei, quote_raw, micro_usd FROM facts.trade
    WHERE at_s > $1 AND at_s <= $2
), place AS MATERIALIZED (
    SELECT pool.id, pool.token_id, pool.kind, pool.at_s, quote.address = ANY($3::bytea[]) AS is_eth
    FROM (SELECT DISTINCT pool_id FROM seen) AS traded
    JOIN facts.pool AS pool ON pool.id = traded.pool_id
    JOIN facts.address AS quote ON quote.id = pool.quote_id
), told AS MATERIALIZED (
    SELECT place.token_id, place.kind, place.at_s, seen.trader_id, seen.buys, seen.micro_usd,
        coalesce(seen.eth_wei, seen.quote_raw) AS wei
    FROM seen JOIN place ON place.id = seen.pool_id WHERE place.is_eth OR seen.eth_wei IS NOT NULL
)"""

_FLOWS = f"""
{_TOLD}, flow AS (
    SELECT token_id, min(at_s) AS opened_s,
        coalesce(sum(wei) FILTER (WHERE buys), 0) AS in_wei,
        coalesce(sum(wei) FILTER (WHERE NOT buys), 0) AS out_wei,
        CASE WHEN count(*) FILTER (WHERE buys) = count(micro_usd) FILTER (WHERE buys)
             THEN sum(micro_usd) FILTER (WHERE buys) END AS in_micro_usd,
        count(*) FILTER (WHERE buys) AS buys, count(*) FILTER (WHERE NOT buys) AS sells,
        count(DISTINCT trader_id) FILTER (WHERE buys) AS buyers,
        count(DISTINCT trader_id) FILTER (WHERE NOT buys) AS sellers
    FROM told GROUP BY token_id
), most AS MATERIALIZED (
    SELECT * FROM flow WHERE in_wei > out_wei AND buyers >= $4 ORDER BY in_wei - out_wei DESC LIMIT $5
), venue AS (
    SELECT DISTINCT ON (token_id) token_id, kind
    FROM (SELECT token_id, kind, sum(wei) AS wei FROM told WHERE buys GROUP BY token_id, kind) AS by_kind
    ORDER BY token_id, wei DESC, kind
)
SELECT most.token_id, token.address, launch.at_s AS launched_s, opened_s, venue.kind,
    in_wei::text, out_wei::text, in_micro_usd::text, buys, sells, buyers, sellers,
    newest.verdict_code, newest.verdict_level, newest.checked_at
FROM most JOIN venue USING (token_id)
JOIN facts.address AS token ON token.id = most.token_id
LEFT JOIN facts.launch AS launch ON launch.token_id = most.token_id AND launch.generation = 2
LEFT JOIN LATERAL (
    SELECT verdict_code, verdict_level, checked_at FROM facts.evidence
    WHERE evidence.token = token.address ORDER BY evidence.id DESC LIMIT 1
) AS newest ON true
"""  # noqa: S608

_FUNDERS = f"""
{_TOLD}, bought AS (
    SELECT DISTINCT token_id, trader_id FROM told WHERE buys AND token_id = ANY($4::int[])
)
SELECT bought.token_id, count(DISTINCT coalesce(origin.funder_id, bought.trader_id)) AS funders
FROM bought LEFT JOIN facts.origin AS origin ON origin.wallet_id = bought.trader_id
GROUP BY bought.token_id
"""  # noqa: S608

Window = tuple[int, int]
"""After the first second, up to and with the second, since 1970."""


async def flows(
    connection: asyncpg.Connection, window: Window, contracts: Contracts, least_buyers: int
) -> list[Flow]:
    """Tokens into which more came than went out, by at least so many wallets; in no order."""
    rows = await connection.fetch(_FLOWS, *window, _in_eth(contracts), least_buyers, MOST_FLOWS)
    return [_flow(row) for row in rows]


async def funders(
    connection: asyncpg.Connection, window: Window, contracts: Contracts, token_ids: Collection[int]
) -> dict[int, int]:
    """Of how many different funders the buyers of these tokens are. Who has none that is known is his own."""
    rows = await connection.fetch(_FUNDERS, *window, _in_eth(contracts), list(token_ids))
    return {row["token_id"]: row["funders"] for row in rows}


def _flow(row: asyncpg.Record) -> Flow:
    usd, code = row["in_micro_usd"], row["verdict_code"]
    return Flow(
        row["token_id"],
        as_address(row["address"]),
        row["launched_s"],
        row["opened_s"],
        row["kind"],
        int(row["in_wei"]),
        int(row["out_wei"]),
        None if usd is None else int(usd),
        row["buys"],
        row["sells"],
        row["buyers"],
        row["sellers"],
        None if code is None else Checked(code, row["verdict_level"], row["checked_at"].timestamp()),
    )


def _in_eth(contracts: Contracts) -> list[bytes]:
    return [as_bytes(ZERO_ADDRESS), as_bytes(contracts.weth)]
