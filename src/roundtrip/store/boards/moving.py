"""For the board of moving tokens: money that goes into tokens and out of them in a span of the chain's time;
what tokens' buyers are exposed to, as it was read last; and the newest checks. Each function uses the
caller's connection and does not end the transaction.

A trade counts by its worth in eth at its time, or by what was paid where that was eth or weth. Trades
whose worth is not known do not count."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from roundtrip.domain.base.types import Address, Numeric
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.market.exposure import NEVER_READ, LeavingLiquidity, TokenExposure
from roundtrip.domain.market.fairness import FAIRNESS, Fairness, WalletOrigin, WalletOrigins
from roundtrip.domain.market.moving import CAUGHT_FOR_S, TRAP, CheckedLevel, MoneyFlow, TokenChecks
from roundtrip.store.index.tokens import eth_quotes
from roundtrip.store.server.rows import Connection, as_bytes, fetch
from roundtrip.venues.base import Contracts

KEPT_FOR = timedelta(days=1)
"""How long a reading of exposure is kept."""


async def put_insiders(connection: Connection, token: Address, bps: int | None, at: datetime) -> None:
    """Stores the insiders' share as of ``at``, unless a newer reading is stored. ``bps`` None: it could not
    be found out."""
    await connection.execute(
        "INSERT INTO facts.exposure AS exposure (token, insiders_bps, insiders_at) VALUES ($1, $2, $3)"
        " ON CONFLICT (token) DO UPDATE SET insiders_bps = excluded.insiders_bps,"
        " insiders_at = excluded.insiders_at"
        " WHERE exposure.insiders_at IS NULL OR exposure.insiders_at <= excluded.insiders_at",
        as_bytes(token),
        bps,
        at,
    )


async def put_leaving(
    connection: Connection, token: Address, leaving: LeavingLiquidity | None, at: datetime
) -> None:
    """Stores what liquidity can leave as of ``at``, unless a newer reading is stored. ``leaving`` None: it
    could not be found out."""
    await connection.execute(
        "INSERT INTO facts.exposure AS exposure (token, free_bps, unproven_bps, liquidity_at)"
        " VALUES ($1, $2, $3, $4) ON CONFLICT (token) DO UPDATE SET free_bps = excluded.free_bps,"
        " unproven_bps = excluded.unproven_bps, liquidity_at = excluded.liquidity_at"
        " WHERE exposure.liquidity_at IS NULL OR exposure.liquidity_at <= excluded.liquidity_at",
        as_bytes(token),
        None if leaving is None else leaving.free_bps,
        None if leaving is None else leaving.unproven_bps,
        at,
    )


async def read_exposures(connection: Connection, tokens: Collection[Address]) -> dict[Address, TokenExposure]:
    """The last reading of each of these tokens; ``NEVER_READ`` where there is none."""
    rows = await fetch(
        connection,
        tuple[Address, TokenExposure],
        "SELECT token, insiders_bps, extract(epoch FROM insiders_at)::float8 AS insiders_at_s, free_bps,"
        " unproven_bps, extract(epoch FROM liquidity_at)::float8 AS liquidity_at_s FROM facts.exposure"
        " WHERE token = ANY($1::bytea[])",
        [as_bytes(token) for token in set(tokens)],
    )
    known = dict(rows)
    return {token: known.get(token, NEVER_READ) for token in tokens}


async def forget(connection: Connection, before: datetime) -> None:
    """Deletes readings before ``before``."""
    await connection.execute(
        "DELETE FROM facts.exposure WHERE greatest(insiders_at, liquidity_at) < $1", before
    )


_COLUMNS = (
    "one.verdict_code AS code, one.verdict_level AS level, extract(epoch FROM one.checked_at)::float8 AS "
    "at_s, one.loss_bps, extract(epoch FROM one.ends_at)::float8 AS ends_s"
)
_CHECKS = f"""
SELECT given.token, found.* FROM unnest($1::bytea[]) AS given (token)
CROSS JOIN LATERAL (
    (SELECT 'newest' AS which, {_COLUMNS} FROM facts.evidence AS one
        WHERE one.token = given.token ORDER BY one.id DESC LIMIT 1)
    UNION ALL
    (SELECT 'deep', {_COLUMNS} FROM facts.evidence AS one
        WHERE one.token = given.token AND one.deep ORDER BY one.id DESC LIMIT 1)
    UNION ALL
    (SELECT 'decided', {_COLUMNS} FROM facts.evidence AS one
        WHERE one.token = given.token AND one.deep AND one.holders > 0 AND one.verdict_level <> 'unknown'
        ORDER BY one.id DESC LIMIT 1)
    UNION ALL
    (SELECT 'tested', {_COLUMNS} FROM facts.evidence AS one
        WHERE one.token = given.token AND one.deep AND one.holders > 0
            AND one.verdict_level IN ('ok', 'danger')
            AND EXISTS (SELECT FROM facts.caught_holder AS caught WHERE caught.token = given.token)
        ORDER BY one.id DESC LIMIT 1)
) AS found
"""  # noqa: S608


class NewestCheck(NamedTuple):
    """A check. ``asked``: a user requested it."""

    token: Address
    block_number: int
    asked: bool
    id: int


async def read_checks(connection: Connection, tokens: Collection[Address]) -> dict[Address, TokenChecks]:
    """The newest checks of each of the tokens."""
    checks = dict(
        await fetch(
            connection,
            tuple[tuple[Address, str], CheckedLevel],
            _CHECKS,
            [as_bytes(token) for token in set(tokens)],
        )
    )

    def find_decided(token: Address) -> CheckedLevel | None:
        # A warning lifts no trap while the holders that were caught cannot sell.
        tested, newest = checks.get((token, "tested")), checks.get((token, "decided"))
        if tested is None or newest is None or newest.at_s - tested.at_s > CAUGHT_FOR_S:
            return newest
        return tested if tested.code == TRAP else newest

    return {
        token: TokenChecks(checks.get((token, "newest")), find_decided(token), checks.get((token, "deep")))
        for token in tokens
    }


async def read_shown_checks(
    connection: Connection, tokens: Collection[Address]
) -> dict[Address, TokenChecks]:
    """``read_checks``, with what buyers of each token are exposed to."""
    checks = await read_checks(connection, tokens)
    exposed = await read_exposures(connection, tokens)
    return {token: replace(its, exposure=exposed[token]) for token, its in checks.items()}


async def read_newest(connection: Connection, limit: int, before: int | None = None) -> list[NewestCheck]:
    """The newest ``limit`` checks, the newest first. ``before``: of those before this one, which are their
    tokens' newest checks."""
    return await fetch(
        connection,
        NewestCheck,
        "SELECT token, block_number, asked, id FROM facts.evidence AS one"
        " WHERE $2::bigint IS NULL OR (id < $2 AND NOT EXISTS (SELECT FROM facts.evidence AS later"
        " WHERE later.token = one.token AND later.id >= $2))"
        " ORDER BY id DESC LIMIT $1",
        limit,
        before,
    )


MAX_FLOWS = 1000
"""Tokens that ``flows`` returns, those with the most money."""

# Each pool is looked up once, not once per trade. LIMIT 1 keeps that a look-up by the key: a join would read
# all pools for a few thousand.
_FLOWS = """
WITH seen AS MATERIALIZED (
    SELECT pool_id, trader_id, buys, eth_wei, quote_raw, micro_usd FROM facts.trade
    WHERE at_s > $1 AND at_s <= $2
), place AS MATERIALIZED (
    SELECT pool.id, pool.token_id, pool.kind, pool.at_s, quote.address = ANY($3::bytea[]) AS is_eth
    FROM (SELECT DISTINCT pool_id FROM seen) AS traded
    CROSS JOIN LATERAL (SELECT * FROM facts.pool AS one WHERE one.id = traded.pool_id LIMIT 1) AS pool
    JOIN facts.address AS quote ON quote.id = pool.quote_id
), told AS MATERIALIZED (
    SELECT seen.pool_id, place.token_id, seen.trader_id, seen.buys, seen.micro_usd,
        coalesce(seen.eth_wei, seen.quote_raw) AS wei
    FROM seen JOIN place ON place.id = seen.pool_id WHERE place.is_eth OR seen.eth_wei IS NOT NULL
), by_pool AS (
    SELECT pool_id, count(*) FILTER (WHERE buys) AS buys, count(*) FILTER (WHERE NOT buys) AS sells,
        coalesce(sum(wei) FILTER (WHERE buys), 0) AS in_wei,
        coalesce(sum(wei) FILTER (WHERE NOT buys), 0) AS out_wei,
        count(micro_usd) FILTER (WHERE buys) AS in_usd, sum(micro_usd) FILTER (WHERE buys) AS in_micro_usd
    FROM told GROUP BY pool_id
), by_kind AS MATERIALIZED (
    SELECT place.token_id, place.kind, min(place.at_s) AS opened_s, sum(buys) AS buys, sum(sells) AS sells,
        sum(in_wei) AS in_wei, sum(out_wei) AS out_wei, sum(in_usd) AS in_usd,
        sum(in_micro_usd) AS in_micro_usd,
        (array_agg(by_pool.pool_id ORDER BY in_wei DESC, by_pool.pool_id))[1] AS pool_id
    FROM by_pool JOIN place ON place.id = by_pool.pool_id GROUP BY place.token_id, place.kind
), flow AS (
    SELECT token_id, min(opened_s) AS opened_s, sum(in_wei) AS in_wei, sum(out_wei) AS out_wei,
        CASE WHEN sum(buys) = sum(in_usd) THEN sum(in_micro_usd) END AS in_micro_usd,
        sum(buys)::int AS buys, sum(sells)::int AS sells,
        (array_agg(kind ORDER BY in_wei DESC, kind))[1] AS kind,
        (array_agg(pool_id ORDER BY in_wei DESC, kind))[1] AS pool_id
    FROM by_kind GROUP BY token_id
), wallets AS (
    SELECT token_id, array_agg(trader_id) FILTER (WHERE buys) AS buyers,
        count(*) FILTER (WHERE NOT buys) AS sellers, count(DISTINCT trader_id) AS makers
    FROM (SELECT DISTINCT token_id, trader_id, buys FROM told) AS who GROUP BY token_id
), most AS MATERIALIZED (
    SELECT * FROM flow JOIN wallets USING (token_id) WHERE in_wei > out_wei AND cardinality(buyers) >= $4
    ORDER BY in_wei - out_wei DESC LIMIT $5
)
SELECT most.token_id, token.address, launch.at_s AS launched_s, opened_s, kind,
    in_wei::text, out_wei::text, in_micro_usd::text, buys, sells, buyers, sellers, pool_id, makers
FROM most JOIN facts.address AS token ON token.id = most.token_id
LEFT JOIN facts.launch AS launch ON launch.token_id = most.token_id AND launch.generation = 2
"""

# $1 wallets, $2 most_funded
_ORIGINS = """
WITH own AS MATERIALIZED (
    SELECT wallet_id, first_s, funder_id, funded_s FROM facts.origin WHERE wallet_id = ANY($1::int[])
), giver AS MATERIALIZED (
    SELECT funder_id FROM own WHERE funder_id IS NOT NULL GROUP BY funder_id
), known AS (
    SELECT giver.funder_id, origin.first_s, origin.funder_id AS his, origin.funded_s,
        (SELECT count(*) FROM (
            SELECT FROM facts.origin AS paid WHERE paid.funder_id = giver.funder_id LIMIT $2::int + 1
        ) AS few) AS paid
    FROM giver LEFT JOIN facts.origin AS origin ON origin.wallet_id = giver.funder_id
)
SELECT wallet_id, first_s, funder_id, funded_s, NULL::bigint AS paid FROM own
UNION ALL SELECT funder_id, first_s, his, funded_s, paid FROM known
"""

Window = tuple[int, int]
"""Seconds since 1970: after the first, up to the second, which is included."""


class _MoneyFlowRow(NamedTuple):
    token_id: int
    address: Address
    launched_s: int | None
    opened_s: int
    kind: VenueKind
    in_wei: Numeric
    out_wei: Numeric
    in_micro_usd: Numeric | None
    buys: int
    sells: int
    buyers: tuple[int, ...]
    sellers: int
    pool_id: int
    makers: int


class _WalletOriginRow(NamedTuple):
    wallet_id: int
    first_s: int | None
    funder_id: int | None
    funded_s: int | None
    paid: int | None


async def flows(
    connection: Connection, window: Window, contracts: Contracts, least_buyers: int, limit: int = MAX_FLOWS
) -> list[MoneyFlow]:
    """Tokens with more money in than out, bought by at least ``least_buyers`` wallets, in no order.
    ``limit``: at most so many, those with the most money."""
    rows = await fetch(connection, _MoneyFlowRow, _FLOWS, *window, eth_quotes(contracts), least_buyers, limit)
    checks = await read_checks(connection, [row.address for row in rows])
    return [
        MoneyFlow(*row[:-2], its.checked, its.deep, its.decided, *row[-2:])
        for row, its in ((row, checks[row.address]) for row in rows)
    ]


async def read_origins(
    connection: Connection, wallet_ids: Collection[int], fairness: Fairness = FAIRNESS
) -> WalletOrigins[int]:
    """The origins of these wallets and of their funders. A funder's wallets are counted no further than is
    needed to identify an exchange."""
    rows = await fetch(connection, _WalletOriginRow, _ORIGINS, list(wallet_ids), fairness.most_funded)
    origins: dict[int, WalletOrigin[int]] = {}
    funded: dict[int, int] = {}
    for row in rows:
        if row.first_s is not None:
            origins[row.wallet_id] = WalletOrigin(row.first_s, row.funder_id, row.funded_s)
        if row.paid is not None:
            funded[row.wallet_id] = row.paid
    return WalletOrigins(origins, funded, fairness)
