"""What happened to launches since a moment, summed a wallet and token, each with its largest transaction."""

from dataclasses import dataclass

import asyncpg

from .words import as_text

MOST_DEEDS = 2_000
MOST_LEFT = 100
MOST_LAUNCHERS = 50
"""So many of each are looked at, the newest."""
MOST_CHANGES = 2_000
"""Of a pool with more changes of liquidity it is not told what share one of them was."""
LIQUIDITY_KEPT_S = 89 * 86_400
"""Of a pool that is older not every change is kept."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where on the chain it was seen."""

    tx_hash: str
    block_number: int
    log_index: int
    at_s: int


@dataclass(frozen=True, slots=True)
class DeedSum:
    """What a wallet sold, moved or burned of a token. ``other_id``: whom most of it went to in that
    transaction. ``eth_wei`` None: what some of it brought is not known."""

    what: str
    token_id: int
    wallet_id: int
    other_id: int | None
    token_raw: int
    eth_wei: int | None
    supply_raw: int | None
    evidence: Evidence


_DEEDS = """
WITH summed AS (
    SELECT what, token_id, wallet_id, sum(token_raw) AS token_raw,
        CASE WHEN NOT bool_or(eth_wei IS NULL) THEN sum(eth_wei) END AS eth_wei
    FROM facts.inside WHERE at_s > $1 GROUP BY what, token_id, wallet_id
), much AS MATERIALIZED (
    SELECT summed.*, token.supply_raw
    FROM summed
    JOIN facts.address AS address ON address.id = summed.token_id
    LEFT JOIN facts.token AS token ON token.token = address.address
    WHERE coalesce(token.supply_raw, 0) = 0 OR summed.token_raw * 10000 >= $2 * token.supply_raw
        OR summed.eth_wei >= $3::text::numeric
), per_tx AS (
    SELECT what, token_id, wallet_id, one.tx_hash, sum(one.token_raw) AS token_raw,
        max(one.block_number) AS block_number, max(one.log_index) AS log_index, max(one.at_s) AS at_s,
        (array_agg(one.other_id ORDER BY one.token_raw DESC, one.log_index))[1] AS other_id
    FROM facts.inside AS one JOIN much USING (what, token_id, wallet_id) WHERE one.at_s > $1
    GROUP BY what, token_id, wallet_id, one.tx_hash
), largest AS (
    SELECT DISTINCT ON (what, token_id, wallet_id) * FROM per_tx
    ORDER BY what, token_id, wallet_id, token_raw DESC, block_number, log_index
)
SELECT what, token_id, wallet_id, largest.other_id, largest.tx_hash, largest.block_number,
    largest.log_index, largest.at_s, much.token_raw::text AS token_raw, much.eth_wei::text AS eth_wei,
    much.supply_raw::text AS supply_raw
FROM much JOIN largest USING (what, token_id, wallet_id)
ORDER BY largest.block_number DESC, largest.log_index DESC LIMIT $4
"""


async def deeds(
    connection: asyncpg.Connection, after_s: int, least_bps: int, least_wei: int
) -> list[DeedSum]:
    """Those of which some may be much: of the supply, of eth, or nobody knows; the newest first."""
    rows = await connection.fetch(_DEEDS, after_s, least_bps, str(least_wei), MOST_DEEDS)
    return [
        DeedSum(
            row["what"],
            row["token_id"],
            row["wallet_id"],
            row["other_id"],
            int(row["token_raw"]),
            _maybe(row["eth_wei"]),
            _maybe(row["supply_raw"]),
            _evidence(row),
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Left:
    """What a wallet took out of a pool and did not put back. ``token_raw``, ``quote_raw`` None: the pool's
    logs do not tell. ``weight``, ``before``: of liquidity by the width of its range, what was taken and what
    lay there before; None: not known."""

    token_id: int
    quote_id: int
    wallet_id: int
    token_raw: int | None
    quote_raw: int | None
    weight: int
    before: int | None
    evidence: Evidence


_LEFT = """
WITH recent AS MATERIALIZED (
    SELECT change.pool_id, change.sender_id, change.block_number, change.log_index, change.at_s,
        change.tx_hash, change.token_raw, change.quote_raw,
        change.liquidity_delta * least(change.tick_upper - change.tick_lower, $2) AS weight
    FROM facts.liquidity AS change
    JOIN facts.pool AS pool ON pool.id = change.pool_id
    JOIN facts.launch AS launch ON launch.token_id = pool.token_id
    WHERE change.at_s > $1
), begun AS (
    SELECT pool_id, sender_id, min(block_number) AS first_number, min(at_s) AS first_s FROM (
        SELECT pool_id, sender_id, block_number, min(at_s) AS at_s FROM recent
        GROUP BY pool_id, sender_id, block_number HAVING sum(weight) < 0
    ) AS taking GROUP BY pool_id, sender_id
), gone AS (
    SELECT begun.pool_id, begun.sender_id, begun.first_number, begun.first_s, -sum(weight) AS weight,
        CASE WHEN NOT bool_or(token_raw IS NULL) THEN -sum(token_raw) END AS token_raw,
        CASE WHEN NOT bool_or(quote_raw IS NULL) THEN -sum(quote_raw) END AS quote_raw
    FROM begun JOIN recent USING (pool_id, sender_id) WHERE recent.block_number >= begun.first_number
    GROUP BY begun.pool_id, begun.sender_id, begun.first_number, begun.first_s HAVING sum(weight) < 0
    ORDER BY begun.first_number DESC LIMIT $5
)
SELECT pool.token_id, pool.quote_id, gone.sender_id AS wallet_id, gone.token_raw::text AS token_raw,
    gone.quote_raw::text AS quote_raw, gone.weight::text AS weight, largest.tx_hash, largest.block_number,
    largest.log_index, largest.at_s,
    CASE WHEN earlier.changes <= $6 AND pool.block_number >= $3 AND pool.at_s > $4
        THEN earlier.weight END::text AS before
FROM gone
JOIN facts.pool AS pool ON pool.id = gone.pool_id
JOIN LATERAL (
    SELECT * FROM recent WHERE recent.pool_id = gone.pool_id AND recent.sender_id = gone.sender_id
    AND recent.block_number >= gone.first_number AND recent.weight < 0
    ORDER BY recent.weight, recent.block_number, recent.log_index LIMIT 1
) AS largest ON true
JOIN LATERAL (
    SELECT count(*) AS changes, sum(weight) AS weight FROM (
        SELECT liquidity_delta * least(tick_upper - tick_lower, $2) AS weight
        FROM facts.liquidity AS change WHERE change.pool_id = gone.pool_id
        AND change.at_s >= pool.at_s AND change.at_s <= gone.first_s
        AND change.block_number < gone.first_number LIMIT $6 + 1
    ) AS some_changes
) AS earlier ON true
ORDER BY largest.block_number DESC, largest.log_index DESC
"""


async def liquidity_left(
    connection: asyncpg.Connection, after_s: int, now_s: int, start_number: int, most_ticks: int
) -> list[Left]:
    """What was taken out of launched tokens' pools since, the newest first: from where a wallet first took
    out more in a block than it put in. ``start_number``: the index's first block; of an older pool not every
    change is known. ``most_ticks``: wider ranges count no more."""
    kept_s = now_s - LIQUIDITY_KEPT_S
    given = after_s, most_ticks, start_number, kept_s, MOST_LEFT, MOST_CHANGES
    return [
        Left(
            row["token_id"],
            row["quote_id"],
            row["wallet_id"],
            _maybe(row["token_raw"]),
            _maybe(row["quote_raw"]),
            int(row["weight"]),
            _maybe(row["before"]),
            _evidence(row),
        )
        for row in await connection.fetch(_LEFT, *given)
    ]


@dataclass(frozen=True, slots=True)
class LaunchedAgain:
    """A wallet's newest launch, and how many it made since then."""

    token_id: int
    deployer_id: int
    launches: int
    evidence: Evidence


_LAUNCHERS = """
SELECT * FROM (
    SELECT DISTINCT ON (deployer_id) deployer_id, token_id, tx_hash, block_number, log_index, at_s,
        count(*) OVER (PARTITION BY deployer_id) AS launches
    FROM facts.launch WHERE at_s > $1 AND generation <> 1
    ORDER BY deployer_id, block_number DESC, log_index DESC
) AS newest ORDER BY block_number DESC, log_index DESC LIMIT $2
"""


async def launchers(connection: asyncpg.Connection, after_s: int) -> list[LaunchedAgain]:
    """Who launched since, the newest first. Launches into a pool have no record and are left out."""
    rows = await connection.fetch(_LAUNCHERS, after_s, MOST_LAUNCHERS)
    return [
        LaunchedAgain(row["token_id"], row["deployer_id"], row["launches"], _evidence(row)) for row in rows
    ]


def _maybe(text: str | None) -> int | None:
    return None if text is None else int(text)


def _evidence(row: asyncpg.Record) -> Evidence:
    return Evidence(as_text(row["tx_hash"]), row["block_number"], row["log_index"], row["at_s"])
