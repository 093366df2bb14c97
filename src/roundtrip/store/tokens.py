"""What tokens say of themselves."""

from collections.abc import Iterable
from decimal import Decimal

import asyncpg

from roundtrip.domain.types import Address

from .words import as_address, as_bytes


async def read_among(connection: asyncpg.Connection, given: Iterable[Address]) -> set[Address]:
    """Which of these somebody has read already."""
    rows = await connection.fetch(
        "SELECT token FROM facts.token WHERE token = ANY($1::bytea[])", [as_bytes(token) for token in given]
    )
    return {as_address(row["token"]) for row in rows}


async def keep(
    connection: asyncpg.Connection,
    token: Address,
    symbol: str | None,
    name: str | None,
    decimals: int | None,
    supply_raw: int | None,
    read_number: int,
) -> None:
    """Writes what was read at block ``read_number``, over what was read before it. Texts without NUL."""
    await connection.execute(
        "INSERT INTO facts.token AS token (token, symbol, name, decimals, supply_raw, read_number)"
        " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (token) DO UPDATE SET symbol = excluded.symbol,"
        " name = excluded.name, decimals = excluded.decimals, supply_raw = excluded.supply_raw,"
        " read_number = excluded.read_number WHERE token.read_number <= excluded.read_number",
        as_bytes(token),
        symbol,
        name,
        decimals,
        None if supply_raw is None else Decimal(supply_raw),
        read_number,
    )
