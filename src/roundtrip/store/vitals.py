"""What was counted on the chain lately, and since when the index has it."""

from dataclasses import dataclass

import asyncpg

from .chain import Cursor

AVERAGED_BLOCKS = 1000
"""The newest so many tell how long a block takes: a block's time is in whole seconds."""


@dataclass(frozen=True, slots=True)
class Pace:
    """So many blocks after another one in so many seconds."""

    blocks: int
    seconds: int


async def pace(connection: asyncpg.Connection, stands: Cursor) -> Pace:
    """Of the newest blocks; of none where fewer than two are known."""
    row = await connection.fetchrow(
        "SELECT max(number) - min(number) AS blocks, max(at_s) - min(at_s) AS seconds FROM facts.block"
        " WHERE number >= $1",
        stands.block.number - AVERAGED_BLOCKS,
    )
    return Pace(row["blocks"] or 0, row["seconds"] or 0)


async def followed_from_s(connection: asyncpg.Connection, stands: Cursor) -> int:
    """A time from which on every block was read in full: that of the oldest that is remembered, at most a
    thousand blocks after the first one."""
    found: int | None = await connection.fetchval(
        "SELECT at_s FROM facts.block WHERE number >= $1 ORDER BY number LIMIT 1", stands.start_number
    )
    return stands.block.timestamp_s if found is None else found


async def launches(connection: asyncpg.Connection, after_s: int, to_s: int) -> int:
    """How many tokens came onto the chain through a launchpad after the first second."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM facts.launch WHERE at_s > $1 AND at_s <= $2", after_s, to_s
    )
    return count


async def graduations(connection: asyncpg.Connection, after_s: int, to_s: int) -> int:
    """How many curves became a pool."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM facts.launch_step WHERE at_s > $1 AND at_s <= $2 AND step = 'pooled'",
        after_s,
        to_s,
    )
    return count


async def trades(connection: asyncpg.Connection, after_s: int, to_s: int) -> int:
    """How many buys and sells of tokens for money."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM facts.trade WHERE at_s > $1 AND at_s <= $2", after_s, to_s
    )
    return count
