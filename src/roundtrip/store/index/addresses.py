"""Interned addresses, looked up by whoever reads."""

from collections.abc import Collection

from roundtrip.domain.base.types import Address
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection


async def id_of(connection: Connection, address: Address) -> int | None:
    """Its number; None: it stands in no fact."""
    found: int | None = await connection.fetchval(
        "SELECT id FROM facts.address WHERE address = $1", as_bytes(address)
    )
    return found


async def ids_of(connection: Connection, addresses: Collection[Address]) -> dict[Address, int]:
    """Numbers of those that stand in a fact."""
    rows = await connection.fetch(
        "SELECT id, address FROM facts.address WHERE address = ANY($1::bytea[])",
        [as_bytes(address) for address in addresses],
    )
    return {as_address(row["address"]): row["id"] for row in rows}


async def addresses_of(connection: Connection, ids: Collection[int]) -> dict[int, Address]:
    """The addresses with these numbers."""
    rows = await connection.fetch(
        "SELECT id, address FROM facts.address WHERE id = ANY($1::int[])", list(set(ids))
    )
    return {row["id"]: as_address(row["address"]) for row in rows}
