"""The newest launch, for pages that show an example. Runs on the caller's connection and ends no
transaction."""

from roundtrip.domain.base.types import Address
from roundtrip.store.server.rows import Connection, fetch_optional


async def newest_launch(connection: Connection) -> Address | None:
    """The token that a launchpad launched last; None: no launch is known."""
    return await fetch_optional(
        connection,
        Address,
        "SELECT address.address FROM facts.launch AS launch"
        " JOIN facts.address AS address ON address.id = launch.token_id"
        " ORDER BY launch.block_number DESC LIMIT 1",
    )
