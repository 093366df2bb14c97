"""Stub."""

from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.positions import TokenPositions
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts


async def read_positions(
    connection: Connection, contracts: Contracts, token: Address, most_pools: int, most_positions: int
) -> TokenPositions | None:
    """Nothing."""
    return None
