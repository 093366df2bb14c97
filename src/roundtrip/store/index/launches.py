"""Launches, as pages name them. Each function takes the caller's connection and ends no transaction."""

from roundtrip.domain.base.types import Address
from roundtrip.store.server.hex import as_address
from roundtrip.store.server.rows import Connection


async def newest_launch(connection: Connection) -> Address | None:
    """The token that a launchpad launched last; None: none is known."""
    found = await connection.fetchval(
        "SELECT address.address FROM facts.launch AS launch"
        " JOIN facts.address AS address ON address.id = launch.token_id"
        " ORDER BY launch.block_number DESC LIMIT 1"
    )
    return None if found is None else as_address(found)
