"""The places (pools or curves) where a token is traded, and which of them one person alone could not have
made: those that are ``is_common``."""

from collections.abc import Collection
from dataclasses import dataclass

from roundtrip.domain.base.types import ZERO_ADDRESS, HexBytes
from roundtrip.domain.base.venue import VenueKind
from roundtrip.store.index.tokens import ids_of
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_optional, fetch_value, fetch_values
from roundtrip.venues.base import Contracts
from roundtrip.venues.launchpad_pool import KIND as LAUNCHED_INTO
from roundtrip.venues.launchpad_pool import USUAL_FEE_PIPS, USUAL_TICK_SPACING

from .signals import turnovers

_DAY_S = 86_400
_MAX_OWN = 4
"""How many of a token's pools of the kind that launches graduate into are compared."""


@dataclass(frozen=True, slots=True)
class PoolUse:
    """A pool or curve, and when it was opened. ``at``: its address, or the id of a v4 pool."""

    pool_id: int
    at: HexBytes
    kind: VenueKind
    block_number: int
    at_s: int


async def most_used(
    connection: Connection, token_id: int, newest_s: int, contracts: Contracts
) -> PoolUse | None:
    """The place where the token was traded most within a day; None: it was not traded."""
    return (await most_used_of(connection, [token_id], newest_s, contracts)).get(token_id)


async def most_used_of(
    connection: Connection, token_ids: Collection[int], newest_s: int, contracts: Contracts
) -> dict[int, PoolUse]:
    """The same by token, for those that were traded."""
    # In addition to its oldest pools: before a launch graduates, anyone can open any number of those.
    own = await fetch(connection, tuple[int, int], _OWN, list(token_ids), *_USUAL, _MAX_OWN)
    pools = own + [(token_id, -1) for token_id in token_ids]
    traded = await turnovers(connection, pools, newest_s, await in_eth(connection, contracts))
    used = {
        token_id: max((one.wei, one.trades, pool_id) for pool_id, one in its.items() if one.trades)[-1]
        for token_id, its in traded.items()
        if any(one.trades for one in its.values())
    }
    found = await fetch(
        connection,
        PoolUse,
        "SELECT id AS pool_id, at, kind, block_number, at_s FROM facts.pool WHERE id = ANY($1::int[])",
        list(used.values()),
    )
    by_id = {pool.pool_id: pool for pool in found}
    return {token_id: by_id[pool_id] for token_id, pool_id in used.items()}


async def in_eth(connection: Connection, contracts: Contracts) -> list[int]:
    """The numbers of the quotes that are eth."""
    return list((await ids_of(connection, (ZERO_ADDRESS, contracts.weth))).values())


# A launch has one pool with the launchpad's hook, its quote and the usual key, no matter who opened it.
_GRADUATED = f"""
FROM facts.launch AS launch JOIN facts.pool AS pool ON pool.token_id = launch.token_id
    AND pool.quote_id = launch.quote_id AND pool.kind = '{LAUNCHED_INTO}'
    AND pool.fee_pips = $2 AND pool.tick_spacing = $3
WHERE launch.token_id = ANY($1::int[]) AND EXISTS (
    SELECT FROM facts.launch_step AS step WHERE step.token_id = launch.token_id AND step.step = 'pooled'
)
"""
_USUAL = USUAL_FEE_PIPS, USUAL_TICK_SPACING
_OWN = f"""
SELECT given.token_id, own.id FROM unnest($1::int[]) AS given (token_id) CROSS JOIN LATERAL (
    SELECT id FROM facts.pool WHERE pool.token_id = given.token_id AND kind = '{LAUNCHED_INTO}'
    ORDER BY id LIMIT $4
) AS own UNION SELECT launch.token_id, pool.id {_GRADUATED}
"""  # noqa: S608


async def own_pools(connection: Connection, token_id: int) -> list[int]:
    """The numbers of the curve or pool that the token was launched on, and of the pool that its curve became.
    Empty: no launchpad launched it."""
    return await fetch_values(
        connection,
        int,
        "SELECT pool.id FROM facts.launch JOIN facts.pool AS pool ON pool.at = launch.at"  # noqa: S608
        f" WHERE launch.token_id = ANY($1::int[]) UNION SELECT pool.id {_GRADUATED}",
        [token_id],
        *_USUAL,
    )


async def is_own(connection: Connection, token_id: int, at: str) -> bool:
    """Whether ``at`` is the curve or pool that the token was launched on, or the pool that its curve
    became."""
    return await fetch_value(
        connection,
        bool,
        "SELECT EXISTS (SELECT FROM facts.launch WHERE token_id = ANY($1::int[]) AND at = $4)"  # noqa: S608
        f" OR EXISTS (SELECT {_GRADUATED} AND pool.at = $4)",
        [token_id],
        *_USUAL,
        as_bytes(at),
    )


async def is_common(
    connection: Connection, token_id: int, at: str | None, at_s: int, newest_s: int, contracts: Contracts
) -> bool:
    """Whether a place is the launch's own, or is a day old at ``at_s`` and the one where the token was traded
    most that day. ``newest_s``: of the index's last block."""
    if at is None:
        return False
    if await is_own(connection, token_id, at):
        return True
    pool = await most_used(connection, token_id, newest_s, contracts)
    return pool is not None and pool.at == at.lower() and pool.at_s <= at_s - _DAY_S


async def common(connection: Connection, token_id: int, newest_s: int, contracts: Contracts) -> str | None:
    """The place where the token was traded most within a day, if ``is_common``; otherwise None."""
    pool = await most_used(connection, token_id, newest_s, contracts)
    if pool is None:
        return None
    is_old = pool.at_s <= newest_s - _DAY_S
    return pool.at if is_old or await is_own(connection, token_id, pool.at) else None


async def current_place(connection: Connection, token_id: int, at: str) -> str | None:
    """The place that ``at`` is now: for a curve that became a pool, that pool; None: not known which."""
    has_become = await fetch_value(
        connection,
        bool,
        "SELECT EXISTS (SELECT FROM facts.launch AS launch JOIN facts.launch_step AS step ON step.token_id = "
        "launch.token_id AND step.step = 'pooled' WHERE launch.token_id = $1 AND launch.at = $2)",
        token_id,
        as_bytes(at),
    )
    if not has_become:
        return at
    return await fetch_optional(connection, HexBytes, f"SELECT pool.at {_GRADUATED}", [token_id], *_USUAL)
