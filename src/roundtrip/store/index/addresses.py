"""Interned addresses, for readers."""

from collections.abc import Collection

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch, fetch_optional
from roundtrip.venues.base import Contracts


async def id_of(connection: Connection, address: Address) -> int | None:
    """The address's number; None: no fact refers to it."""
    return await fetch_optional(
        connection, int, "SELECT id FROM facts.address WHERE address = $1", as_bytes(address)
    )


async def ids_of(connection: Connection, addresses: Collection[Address]) -> dict[Address, int]:
    """The numbers of those that a fact refers to."""
    rows = await fetch(
        connection,
        tuple[Address, int],
        "SELECT address, id FROM facts.address WHERE address = ANY($1::bytea[])",
        [as_bytes(address) for address in addresses],
    )
    return dict(rows)


async def addresses_of(connection: Connection, ids: Collection[int]) -> dict[int, Address]:
    """The addresses with these numbers."""
    rows = await fetch(
        connection,
        tuple[int, Address],
        "SELECT id, address FROM facts.address WHERE id = ANY($1::int[])",
        list(set(ids)),
    )
    return dict(rows)


def eth_quotes(contracts: Contracts) -> list[bytes]:
    """The quotes that are eth: eth itself and weth."""
    return [as_bytes(ZERO_ADDRESS), as_bytes(contracts.weth)]
