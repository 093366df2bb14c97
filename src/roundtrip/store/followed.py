"""Which part of the chain is known."""

from typing import NamedTuple

import asyncpg


class Followed(NamedTuple):
    """``start_number``: the first block that was read. ``at_s``: the time of the last one, in seconds since
    1970: what is old is old by that clock."""

    start_number: int
    at_s: int


async def followed(connection: asyncpg.Connection) -> Followed | None:
    """None: nothing yet."""
    row = await connection.fetchrow("SELECT start_number, at_s FROM facts.cursor")
    return None if row is None else Followed(row["start_number"], row["at_s"])
