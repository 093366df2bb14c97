"""Positions and the state of pools, as changes of liquidity and swaps make them."""

from collections.abc import Iterable

from roundtrip.domain.base.events import ActiveDepth
from roundtrip.domain.base.types import BlockRef, HexBytes
from roundtrip.store.server.rows import Connection, fetch

from .cursor import BLOCKS_KEPT, Ids

# $1 the block and $2 the time from which on the changes count, $3 1 to add them, -1 to take them away
_FOLD = """
MERGE INTO facts.lp_position AS position USING (
    SELECT pool_id, owner_id, number, tick_lower, tick_upper, sum(liquidity_delta) * $3::int AS delta
    FROM facts.liquidity WHERE at_s >= $2 AND block_number >= $1
        AND block_number >= (SELECT positions_from FROM facts.cursor)
    GROUP BY pool_id, owner_id, number, tick_lower, tick_upper HAVING sum(liquidity_delta) <> 0
) AS change ON position.pool_id = change.pool_id AND position.owner_id = change.owner_id
    AND position.number = change.number AND position.tick_lower = change.tick_lower
    AND position.tick_upper = change.tick_upper
WHEN MATCHED AND position.liquidity + change.delta = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET liquidity = position.liquidity + change.delta
WHEN NOT MATCHED THEN INSERT VALUES (change.pool_id, change.owner_id, change.number, change.tick_lower,
    change.tick_upper, change.delta)
"""


async def fold_positions(connection: Connection, number: int, at_s: int) -> None:
    """Adds the stored changes of liquidity from block ``number`` on, whose time is ``at_s``, to their
    positions."""
    await connection.execute(_FOLD, number, at_s, 1)


async def newest_states(connection: Connection, pools: Iterable[str], ids: Ids) -> dict[str, ActiveDepth]:
    """The state of those of the pools of which it is known. ``ids`` has the pools' numbers."""
    rows = await fetch(
        connection,
        tuple[HexBytes, ActiveDepth],
        "SELECT pool.at, state.tick, state.liquidity FROM unnest($1::int[]) AS given (id) JOIN facts.pool AS "
        "pool ON pool.id = given.id CROSS JOIN LATERAL ( SELECT tick, liquidity FROM facts.pool_state WHERE "
        "pool_id = given.id ORDER BY block_number DESC LIMIT 1) AS state WHERE state.tick IS NOT NULL",
        [ids.pools[at] for at in pools],
    )
    return dict(rows)


async def forget_states(connection: Connection, first_number: int, last_number: int) -> None:
    """After the blocks from ``first_number`` to ``last_number`` were written: deletes the states that a newer
    one replaces even where a fork removes every block that is kept to find one."""
    await connection.execute(
        # One row a pool: joined with every newer state, a busy pool's states would be read once for each.
        "WITH newest AS MATERIALIZED (SELECT pool_id, max(block_number) AS number FROM facts.pool_state "
        "WHERE block_number >= $1 AND block_number <= $2 GROUP BY pool_id) DELETE FROM facts.pool_state AS "
        "state USING newest WHERE state.pool_id = newest.pool_id AND state.block_number < newest.number",
        first_number - BLOCKS_KEPT,
        last_number - BLOCKS_KEPT,
    )


async def take_away(connection: Connection, to: BlockRef) -> None:
    """Takes the changes of liquidity above block ``to`` off their positions, and deletes the later states of
    pools. The changes and the blocks themselves are still stored."""
    if to.number < 0:
        # As a whole: positions also contain changes that are no longer stored.
        await connection.execute("DELETE FROM facts.lp_position")
        await connection.execute("UPDATE facts.cursor SET positions_from = NULL")
    else:
        await connection.execute(_FOLD, to.number + 1, to.timestamp_s, -1)
        await connection.execute(
            "UPDATE facts.cursor SET positions_from = $1 WHERE positions_from > $1", to.number + 1
        )
    # Where the next block is not kept, the states after this one may have been deleted: what is left is old.
    await connection.execute(
        "DELETE FROM facts.pool_state WHERE block_number > $1"
        " OR NOT EXISTS (SELECT FROM facts.block WHERE number = $1 + 1)",
        to.number,
    )
