"""Positions in a token's pools, and who holds them; removals of active liquidity; and unlock times of
liquidity, as they were read last. Each function uses the caller's connection and does not end the
transaction."""

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import NamedTuple

from roundtrip.domain.base.events import PoolPlace, Spot
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef, HexBytes, Numeric
from roundtrip.domain.liquidity.depth import PoolPositions, Position, TokenPositions
from roundtrip.domain.liquidity.unlocks import (
    LARGE_BPS,
    LARGE_BY_DEPLOYER_BPS,
    ComingUnlock,
    Removal,
    Unlock,
    share_bps,
)
from roundtrip.store.index.cursor import LAUNCH_PLACES
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_optional, fetch_values
from roundtrip.venues.base import Contracts

_MAX_LOOKED_AT = 4096
"""How many of a token's oldest pools are read, to choose those that changed last: anybody can open a pool."""

# $1 the token, $2 the most pools, $3 the most positions of a pool, $4 the managers, $5 the pools looked at,
# $6 the zero address
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


_LAST_S = 2**31 - 1
"""A later unlock is stored with this time, in 2038: alerts have times of four bytes."""


async def put_unlocks(
    connection: Connection,
    token: Address,
    unlocks: Sequence[Unlock],
    read_number: int,
    untried: Collection[tuple[Address, int]] = (),
) -> None:
    """Replaces the token's unlocks by these, which were read at block ``read_number``; does nothing where
    those that are kept were read at a later block. ``untried``: positions by manager and number whose lock
    was not found out; what is stored of them stays."""
    # One reading at a time, so that an older one finds what a newer one wrote.
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"unlocks {token}")
    own = as_bytes(token)
    newest = "SELECT max(read_number) FROM facts.unlock WHERE token = $1"
    if (await fetch_optional(connection, int, newest, own) or 0) > read_number:
        return
    await connection.execute(
        "DELETE FROM facts.unlock WHERE token = $1 AND NOT EXISTS (SELECT FROM"
        " unnest($2::bytea[], $3::numeric[]) AS untried (manager, number)"
        " WHERE untried.manager = unlock.manager AND untried.number = unlock.number)",
        own,
        [as_bytes(manager) for manager, _ in untried],
        [number for _, number in untried],
    )
    await connection.executemany(
        "INSERT INTO facts.unlock (token, manager, number, holder, at_s, share_bps, read_number)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
        [
            (own, as_bytes(unlock.manager), unlock.number, as_bytes(unlock.holder),
             min(unlock.at_s, _LAST_S), unlock.share_bps, read_number)
            for unlock in unlocks
        ],
    )  # fmt: skip


_COMING = """
SELECT unlock.token, unlock.holder, unlock.at_s,
    CASE WHEN NOT bool_or(unlock.share_bps IS NULL) THEN least(sum(unlock.share_bps), 10000)::int END
        AS share_bps,
    count(*)::int AS positions
FROM facts.unlock AS unlock WHERE unlock.at_s > $1 AND unlock.at_s <= $2 {of}
GROUP BY unlock.token, unlock.holder, unlock.at_s
ORDER BY unlock.at_s, unlock.token, unlock.holder LIMIT $3
"""
_WATCHED = """
    SELECT rule.account_id, rule.token FROM accounts.rule AS rule
    WHERE rule.ended_at IS NULL AND NOT rule.paused AND rule.token IS NOT NULL
    UNION SELECT rule.account_id, rule.who_address FROM accounts.rule AS rule
    WHERE rule.ended_at IS NULL AND NOT rule.paused AND rule.who IN ('deployer', 'creator')
    UNION SELECT follow.account_id, token.address FROM accounts.follow AS follow
    JOIN facts.address AS deployer ON deployer.address = follow.wallet
    JOIN facts.launch AS launch ON launch.deployer_id = deployer.id
    JOIN facts.address AS token ON token.id = launch.token_id
    WHERE follow.ended_at IS NULL
"""
"""What accounts watch: tokens that their rules name, and launches of wallets that they follow."""
_OF_AN_ACCOUNT = f"""
    AND unlock.token IN (SELECT address FROM facts.address WHERE id = ANY($5::int[])
        UNION SELECT token FROM ({_WATCHED}) AS watched WHERE watched.account_id = $4)
"""  # noqa: S608


async def read_coming(connection: Connection, after_s: int, to_s: int, limit: int) -> list[ComingUnlock]:
    """The next ``limit`` unlocks after ``after_s`` up to ``to_s``, seconds since 1970, the earliest first."""
    return await fetch(connection, ComingUnlock, _COMING.format(of=""), after_s, to_s, limit)


async def read_coming_of(
    connection: Connection, account_id: int, held: Collection[int], after_s: int, to_s: int, limit: int
) -> list[ComingUnlock]:
    """Those of ``read_coming`` of the tokens that an account watches: those of ``held``, by their numbers,
    those that its rules name, and launches of wallets that it follows."""
    statement = _COMING.format(of=_OF_AN_ACCOUNT)
    return await fetch(connection, ComingUnlock, statement, after_s, to_s, limit, account_id, list(held))


async def read_watchers(connection: Connection, tokens: Collection[Address]) -> dict[Address, set[int]]:
    """The accounts whose rules name each of these tokens, or that follow its deployer; a token without any is
    missing."""
    rows = await fetch(
        connection,
        tuple[Address, int],
        f"SELECT token, account_id FROM ({_WATCHED}) AS watched WHERE token = ANY($1::bytea[])",  # noqa: S608
        [as_bytes(token) for token in tokens],
    )
    watchers: dict[Address, set[int]] = {}
    for token, account_id in rows:
        watchers.setdefault(token, set()).add(account_id)
    return watchers


async def read_watched(connection: Connection, limit: int) -> list[Address]:
    """At most ``limit`` tokens that rules name or that followed wallets launched."""
    return await fetch_values(
        connection,
        Address,
        f"SELECT DISTINCT token FROM ({_WATCHED}) AS watched ORDER BY token LIMIT $1",  # noqa: S608
        limit,
    )


async def read_first_unlock(connection: Connection, token: Address, after_s: int) -> int | None:
    """The time of the token's first unlock after ``after_s``, seconds since 1970; None: there is none."""
    statement = "SELECT min(at_s) FROM facts.unlock WHERE token = $1 AND at_s > $2"
    return await fetch_optional(connection, int, statement, as_bytes(token), after_s)


async def read_alerted(connection: Connection, after_s: int) -> set[tuple[int, Address, Address, int]]:
    """The accounts that were alerted of unlocks after ``after_s``: account, token, holder and time."""
    rows = await fetch(
        connection,
        tuple[int, Address, Address, int],
        "SELECT account_id, token, wallet, at_s FROM accounts.alert WHERE kind = 'unlock' AND at_s > $1",
        after_s,
    )
    return set(rows)
