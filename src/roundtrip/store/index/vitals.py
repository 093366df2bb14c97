"""Counts of recent activity on the chain, and since when the index covers it."""

from roundtrip.store.server.rows import Connection, fetch_optional, fetch_value, fetch_values

from .cursor import Cursor

AVERAGED_BLOCKS = 100
"""How many of the newest blocks the block time is averaged over: a block's time is in whole seconds."""


async def newest_times(connection: Connection, cursor: Cursor) -> list[int]:
    """The times of the newest blocks, in seconds since 1970, the oldest block first."""
    return await fetch_values(
        connection,
        int,
        "SELECT at_s FROM facts.block WHERE number >= $1 ORDER BY number",
        cursor.block.number - AVERAGED_BLOCKS,
    )


async def followed_from_s(connection: Connection, cursor: Cursor) -> int:
    """A time from which on every block was read in full: that of the oldest remembered block, at most a
    thousand blocks after the first one."""
    oldest_s = await fetch_optional(
        connection,
        int,
        "SELECT at_s FROM facts.block WHERE number >= $1 ORDER BY number LIMIT 1",
        cursor.start_number,
    )
    return cursor.block.timestamp_s if oldest_s is None else oldest_s


async def launches(connection: Connection, after_s: int, to_s: int) -> int:
    """Tokens launched through a launchpad after ``after_s``, up to ``to_s`` inclusive."""
    return await fetch_value(
        connection, int, "SELECT count(*) FROM facts.launch WHERE at_s > $1 AND at_s <= $2", after_s, to_s
    )


async def graduations(connection: Connection, after_s: int, to_s: int) -> int:
    """Curves that became a pool in that time."""
    return await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM facts.launch_step WHERE at_s > $1 AND at_s <= $2 AND step = 'pooled'",
        after_s,
        to_s,
    )


async def trades(connection: Connection, after_s: int, to_s: int) -> int:
    """Buys and sells of tokens for money in that time."""
    return await fetch_value(
        connection, int, "SELECT count(*) FROM facts.trade WHERE at_s > $1 AND at_s <= $2", after_s, to_s
    )
