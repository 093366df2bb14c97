"""What was counted on the chain lately, and since when the index has it."""

from roundtrip.store.server.rows import Connection

from .cursor import Cursor

AVERAGED_BLOCKS = 100
"""The newest so many tell how long a block takes: a block's time is in whole seconds."""


async def newest_times(connection: Connection, stands: Cursor) -> list[int]:
    """When the newest blocks were made, the oldest of them first."""
    rows = await connection.fetch(
        "SELECT at_s FROM facts.block WHERE number >= $1 ORDER BY number",
        stands.block.number - AVERAGED_BLOCKS,
    )
    return [row["at_s"] for row in rows]


async def followed_from_s(connection: Connection, stands: Cursor) -> int:
    """A time from which on every block was read in full: that of the oldest that is remembered, at most a
    thousand blocks after the first one."""
    found: int | None = await connection.fetchval(
        "SELECT at_s FROM facts.block WHERE number >= $1 ORDER BY number LIMIT 1", stands.start_number
    )
    return stands.block.timestamp_s if found is None else found


async def launches(connection: Connection, after_s: int, to_s: int) -> int:
    """How many tokens came onto the chain through a launchpad after the first second."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM facts.launch WHERE at_s > $1 AND at_s <= $2", after_s, to_s
    )
    return count


async def graduations(connection: Connection, after_s: int, to_s: int) -> int:
    """How many curves became a pool."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM facts.launch_step WHERE at_s > $1 AND at_s <= $2 AND step = 'pooled'",
        after_s,
        to_s,
    )
    return count


async def trades(connection: Connection, after_s: int, to_s: int) -> int:
    """How many buys and sells of tokens for money."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM facts.trade WHERE at_s > $1 AND at_s <= $2", after_s, to_s
    )
    return count
