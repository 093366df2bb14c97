"""What tokens say of themselves."""

from decimal import Decimal

import asyncpg

from roundtrip.domain.types import Address


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
        bytes.fromhex(token[2:]),
        symbol,
        name,
        decimals,
        None if supply_raw is None else Decimal(supply_raw),
        read_number,
    )
