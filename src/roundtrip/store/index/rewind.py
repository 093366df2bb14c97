"""Removal of the facts of blocks that were reorged out."""

from roundtrip.domain.base.types import BlockRef
from roundtrip.store.server.rows import Connection

from . import curves, liquidity

_BY_TIME = ("trade", "liquidity", "transfer")
"""Partitioned by time: the blocks of a fork are no older than the last common block."""
_BY_BLOCK = (
    "buyback", "inside", "fair_token", "closing", "price", "launch_step", "launch", "launch_quote",
    "lp_transfer", "failed_sell", "block",
)  # fmt: skip


async def take_away(connection: Connection, to: BlockRef, newest: int | None = None) -> None:
    """Deletes every fact above block ``to``, and records the reorg for readers of facts. The caller resets
    positions. ``newest``: the last block that is removed, if known."""
    await connection.execute(
        "INSERT INTO facts.rewound (to_number, to_s, from_number) VALUES ($1, $2, $3)",
        to.number,
        to.timestamp_s,
        newest,
    )
    # These need the trades, changes of liquidity and blocks that are deleted next.
    await curves.take_away(connection, to)
    await liquidity.take_away(connection, to)
    for table in _BY_TIME:
        await connection.execute(
            f"DELETE FROM facts.{table} WHERE at_s >= $1 AND block_number > $2",  # noqa: S608
            to.timestamp_s,
            to.number,
        )
    for table in _BY_BLOCK:
        column = "number" if table == "block" else "block_number"
        await connection.execute(f"DELETE FROM facts.{table} WHERE {column} > $1", to.number)  # noqa: S608
    await connection.execute(
        "DELETE FROM facts.winner WHERE span IN"
        " (SELECT span FROM facts.winners_counted WHERE block_number > $1)",
        to.number,
    )
    await connection.execute("DELETE FROM facts.winners_counted WHERE block_number > $1", to.number)
    await connection.execute("DELETE FROM facts.pool WHERE block_number > $1", to.number)
    await _turn_back(connection, to.number)
    await connection.execute("DELETE FROM facts.origin WHERE first_number > $1", to.number)
    await connection.execute(
        "UPDATE facts.origin SET funder_id = NULL, funded_number = NULL, funded_s = NULL"
        " WHERE funded_number > $1",
        to.number,
    )


async def _turn_back(connection: Connection, number: int) -> None:
    """Quotes that became money above ``number`` are not money again: the sides of their pools are ordered by
    address."""
    await connection.execute(
        "UPDATE facts.pool AS pool SET in_money_from = NULL, token_id = CASE WHEN token.address < "
        "quote.address THEN token.id ELSE quote.id END, quote_id = CASE WHEN token.address < quote.address "
        "THEN quote.id ELSE token.id END FROM facts.address AS token, facts.address AS quote WHERE "
        "pool.in_money_from > $1 AND token.id = pool.token_id AND quote.id = pool.quote_id",
        number,
    )
