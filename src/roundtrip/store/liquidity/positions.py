"""Positions in a token's pools, and who holds them."""

from itertools import groupby
from typing import NamedTuple

from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef, Numeric
from roundtrip.domain.liquidity.positions import PoolPositions, Position, TokenPositions
from roundtrip.store.index.cursor import LAUNCH_PLACES
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch
from roundtrip.venues.base import Contracts

_MAX_LOOKED_AT = 4096
"""The oldest pools of a token, of which the most recent are chosen: anybody can open a pool."""

# $1 the token, $2 the most pools, $3 the most positions of a pool, $4 the managers, $5 the pools looked at
_POSITIONS = f"""
WITH {LAUNCH_PLACES}, found AS MATERIALIZED (
    SELECT id FROM first
    UNION
    -- BETWEEN, and in that order: otherwise the plan scans all pools by id.
    (SELECT id FROM facts.pool WHERE token_id BETWEEN (SELECT id FROM own) AND (SELECT id FROM own)
    ORDER BY token_id, id LIMIT $5)
), chosen AS MATERIALIZED (
    SELECT pool.*, state.tick, state.liquidity AS active, row_number() OVER (
        ORDER BY (pool.id IN (SELECT id FROM first)) DESC,
        greatest(pool.block_number, state.block_number) DESC, pool.id DESC) AS place
    FROM found JOIN facts.pool AS pool ON pool.id = found.id
    LEFT JOIN LATERAL (
        SELECT * FROM facts.pool_state WHERE pool_id = pool.id ORDER BY block_number DESC LIMIT 1
    ) AS state ON true
    WHERE pool.token_id = (SELECT id FROM own) AND pool.in_money_from IS NOT NULL
    ORDER BY place LIMIT $2
)
SELECT cursor.number, cursor.hash, cursor.at_s AS timestamp_s,
    chosen.at, chosen.kind, token.address AS token, quote.address AS quote, chosen.in_money_from,
    chosen.fee_pips, chosen.tick_spacing, hook.address AS hook, chosen.block_number, chosen.log_index,
    chosen.at_s, CASE WHEN chosen.id IS NOT NULL THEN '\\x'::bytea END AS tx_hash,
    chosen.tick, chosen.active::text AS active,
    coalesce(chosen.block_number >= cursor.positions_from
        AND chosen.in_money_from <= chosen.block_number, false) AS is_whole,
    position.positions, position.whole_liquidity::text AS whole_liquidity,
    owner.address AS owner, position.number::text AS number, position.tick_lower,
    position.tick_upper, position.liquidity::text AS liquidity,
    -- Not joined: the plan would read all addresses.
    (SELECT address FROM facts.address
        WHERE id = CASE WHEN owner.address = ANY($4::bytea[]) THEN moved.to_id ELSE owner.id END) AS holder,
    -- A minted NFT comes from the zero address.
    nullif((SELECT address FROM facts.address WHERE id = moved.from_id), $6) AS given_by
FROM facts.cursor AS cursor
LEFT JOIN chosen ON true
LEFT JOIN facts.address AS token ON token.id = chosen.token_id
LEFT JOIN facts.address AS quote ON quote.id = chosen.quote_id
LEFT JOIN facts.address AS hook ON hook.id = chosen.hook_id
LEFT JOIN LATERAL (
    SELECT lp.*, count(*) OVER () AS positions, sum(lp.liquidity) OVER () AS whole_liquidity,
        coalesce(lp.tick_lower <= chosen.tick AND chosen.tick < lp.tick_upper, false) AS is_active
    FROM facts.lp_position AS lp WHERE lp.pool_id = chosen.id AND lp.liquidity > 0
    ORDER BY is_active DESC, lp.liquidity DESC LIMIT $3
) AS position ON true
LEFT JOIN facts.address AS owner ON owner.id = position.owner_id
LEFT JOIN LATERAL (
    SELECT from_id, to_id FROM facts.lp_transfer
    WHERE manager_id = position.owner_id AND number = position.number
    ORDER BY manager_id DESC, number DESC, block_number DESC, log_index DESC LIMIT 1
) AS moved ON owner.address = ANY($4::bytea[])
ORDER BY chosen.place, position.is_active DESC, position.liquidity DESC, owner.address, position.number,
    position.tick_lower, position.tick_upper
"""  # noqa: S608


class _PositionRow(NamedTuple):
    block: BlockRef
    pool: PoolPlace | None
    tick: int | None
    active: Numeric | None
    is_whole: bool
    positions: int | None
    whole_liquidity: Numeric | None
    position: Position | None


async def read_positions(
    connection: Connection, contracts: Contracts, token: Address, most_pools: int, most_positions: int
) -> TokenPositions | None:
    """The positions in at most ``most_pools`` pools where ``token`` trades for money, curves among them: the
    launch's own places, then those that changed last; at most ``most_positions`` of each pool, the active
    ones first. A position manager holds nothing itself: without a transfer of its NFT the holder is not
    known. None: the index has no block."""
    managers = [as_bytes(contracts.v3_position_manager), as_bytes(contracts.v4_position_manager)]
    rows = await fetch(
        connection,
        _PositionRow,
        _POSITIONS,
        as_bytes(token),
        most_pools,
        most_positions,
        managers,
        _MAX_LOOKED_AT,
        as_bytes(ZERO_ADDRESS),
    )
    if not rows:
        return None
    groups = groupby(rows, lambda row: row.pool)
    pools = (_read_pool(pool, list(group)) for pool, group in groups if pool is not None)
    return TokenPositions(rows[0].block, tuple(pools))


def _read_pool(pool: PoolPlace, rows: list[_PositionRow]) -> PoolPositions:
    first = rows[0]
    positions = tuple(row.position for row in rows if row.position is not None)
    liquidity = sum(position.liquidity for position in positions)
    return PoolPositions(
        pool=pool,
        positions=positions,
        left_out=(first.positions or 0) - len(positions),
        left_out_liquidity=(first.whole_liquidity or 0) - liquidity,
        tick=first.tick,
        active_liquidity=first.active,
        is_whole=first.is_whole,
    )
