"""Removals of active liquidity. Each function uses the caller's connection and does not end the
transaction."""

from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, HexBytes, Numeric
from roundtrip.domain.liquidity.removals import LARGE_BPS, LARGE_BY_DEPLOYER_BPS, Removal, share_bps
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch

GONE = """
WITH ranged AS (
    SELECT change.pool_id, change.sender_id, change.tx_hash, change.block_number, min(change.at_s) AS at_s,
        min(change.log_index) FILTER (WHERE change.liquidity_delta < 0) AS log_index,
        min(change.log_index) FILTER (WHERE change.active_raw > 0) AS active_log,
        (array_agg(change.active_raw ORDER BY change.log_index) FILTER (WHERE change.active_raw > 0))[1]
            AS active_raw,
        bool_or(change.active_raw IS NULL) AS is_unknown,
        -sum(change.liquidity_delta) AS part_raw, sum(change.quote_raw) AS quote_raw,
        bool_or(change.quote_raw IS NULL) AS has_no_quote
    FROM facts.liquidity AS change WHERE {where}
    GROUP BY change.pool_id, change.sender_id, change.tx_hash, change.block_number,
        change.tick_lower, change.tick_upper
    HAVING bool_or(change.active_raw IS DISTINCT FROM 0)
), gone AS (
    SELECT pool_id, sender_id, tx_hash, block_number, min(at_s) AS at_s, min(log_index) AS log_index,
        sum(part_raw) AS part_raw,
        CASE WHEN NOT bool_or(has_no_quote) THEN greatest(-sum(quote_raw), 0) END AS quote_raw,
        CASE WHEN NOT bool_or(is_unknown)
            THEN (array_agg(active_raw ORDER BY active_log))[1] END AS active_raw
    FROM ranged GROUP BY pool_id, sender_id, tx_hash, block_number HAVING sum(part_raw) > 0
)
"""
"""What wallets took out of pools, net of what they put in, within one transaction: of the ranges that were
active when one of the changes was made. What was put into a range before a swap made it active counts too.
``active_raw``: the pool's active liquidity before the first of the changes; NULL: not known."""

_LARGE = (
    GONE
    + f"""
SELECT gone.block_number, gone.log_index, gone.at_s, gone.tx_hash, token.address AS token, pool.at AS pool,
    wallet.address AS wallet, launch.token_id IS NOT NULL AS by_deployer,
    gone.part_raw::text, gone.active_raw::text
FROM gone JOIN facts.pool AS pool ON pool.id = gone.pool_id
JOIN facts.address AS token ON token.id = pool.token_id
JOIN facts.address AS wallet ON wallet.id = gone.sender_id
LEFT JOIN facts.launch AS launch ON launch.token_id = pool.token_id AND launch.deployer_id = gone.sender_id
WHERE pool.in_money_from IS NOT NULL AND gone.part_raw * 10000 > gone.active_raw
    * CASE WHEN launch.token_id IS NULL THEN {LARGE_BPS} ELSE {LARGE_BY_DEPLOYER_BPS} END
"""  # noqa: S608
)


class _RemovalRow(NamedTuple):
    spot: Spot
    token: Address
    pool: HexBytes
    wallet: Address
    by_deployer: bool
    part_raw: Numeric
    active_raw: Numeric


async def read_removals(connection: Connection, token: Address, after_s: int, limit: int) -> list[Removal]:
    """The newest ``limit`` large removals from the token's money pools after ``after_s``, seconds since 1970,
    the newest first."""
    where = (
        "change.at_s > $1::int AND change.pool_id = ANY(ARRAY(SELECT pool.id FROM facts.pool AS pool"
        " JOIN facts.address AS token ON token.id = pool.token_id"
        " WHERE token.address = $2::bytea AND pool.in_money_from IS NOT NULL))"
    )
    rows = await fetch(
        connection,
        _RemovalRow,
        _LARGE.format(where=where) + " ORDER BY gone.block_number DESC, gone.log_index DESC LIMIT $3",
        after_s,
        as_bytes(token),
        limit,
    )
    return [Removal(*row[:5], share_bps(*row[5:])) for row in rows]


async def read_removals_between(
    connection: Connection, from_s: int, to_s: int, after_number: int, to_number: int
) -> list[Removal]:
    """Every large removal from a money pool in the blocks after ``after_number`` up to ``to_number``, whose
    times are from ``from_s`` to ``to_s``, seconds since 1970; in the chain's order."""
    where = (
        "change.at_s BETWEEN $1::int AND $2::int AND change.block_number > $3::int"
        " AND change.block_number <= $4::int"
    )
    rows = await fetch(
        connection,
        _RemovalRow,
        _LARGE.format(where=where) + " ORDER BY gone.block_number, gone.log_index",
        from_s,
        to_s,
        after_number,
        to_number,
    )
    return [Removal(*row[:5], share_bps(*row[5:])) for row in rows]
