"""What tokens say of themselves."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal

import asyncpg

from roundtrip.domain.base import names
from roundtrip.domain.base.types import Address
from roundtrip.store.server.hex import as_address, as_bytes
from roundtrip.store.server.rows import Connection


@dataclass(frozen=True, slots=True)
class Label:
    """A token and what it says of itself, None where that was not read or it says nothing; the texts as a
    stranger wrote them. ``supply_raw``: of all there are, in base units."""

    address: Address
    symbol: str | None
    name: str | None
    decimals: int | None
    supply_raw: int | None


async def labels(connection: Connection, token_ids: Collection[int]) -> dict[int, Label]:
    """Of these tokens, by their interned addresses."""
    rows = await connection.fetch(
        "SELECT address.id, address.address, token.symbol, token.name, token.decimals,"
        " token.supply_raw::text AS supply_raw FROM facts.address AS address"
        " LEFT JOIN facts.token AS token ON token.token = address.address WHERE address.id = ANY($1::int[])",
        list(set(token_ids)),
    )
    return {row["id"]: _label(row) for row in rows}


async def labels_of(connection: Connection, given: Collection[Address]) -> dict[Address, Label]:
    """The same by their addresses, whether or not they stand in a fact."""
    rows = await connection.fetch(
        "SELECT given.token AS address, token.symbol, token.name, token.decimals,"
        " token.supply_raw::text AS supply_raw FROM unnest($1::bytea[]) AS given (token)"
        " LEFT JOIN facts.token AS token ON token.token = given.token",
        [as_bytes(token) for token in set(given)],
    )
    return {as_address(row["address"]): _label(row) for row in rows}


def _label(row: asyncpg.Record) -> Label:
    supply = row["supply_raw"]
    return Label(
        as_address(row["address"]),
        row["symbol"],
        row["name"],
        row["decimals"],
        None if supply is None else int(supply),
    )


async def strangers_with(connection: Connection, symbol_key: str, most: int = 3) -> list[Address]:
    """Some tokens that say this symbol of themselves, whoever made them."""
    rows = await connection.fetch(
        "SELECT token FROM facts.token WHERE symbol_key = $1 ORDER BY token LIMIT $2", symbol_key, most
    )
    return [as_address(row["token"]) for row in rows]


async def read_among(connection: Connection, given: Iterable[Address]) -> set[Address]:
    """Which of these somebody has read already."""
    rows = await connection.fetch(
        "SELECT token FROM facts.token WHERE token = ANY($1::bytea[])", [as_bytes(token) for token in given]
    )
    return {as_address(row["token"]) for row in rows}


async def keep(
    connection: Connection,
    token: Address,
    symbol: str | None,
    name: str | None,
    decimals: int | None,
    supply_raw: int | None,
    read_number: int,
) -> None:
    """Writes what was read at block ``read_number``, over what was read before it, and the symbol as it is
    looked for. Texts without NUL."""
    await connection.execute(
        "INSERT INTO facts.token AS token (token, symbol, name, decimals, supply_raw, read_number,"
        " symbol_key)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (token) DO UPDATE SET symbol = excluded.symbol,"
        " name = excluded.name, decimals = excluded.decimals, supply_raw = excluded.supply_raw,"
        " read_number = excluded.read_number, symbol_key = excluded.symbol_key"
        " WHERE token.read_number <= excluded.read_number",
        as_bytes(token),
        symbol,
        name,
        decimals,
        None if supply_raw is None else Decimal(supply_raw),
        read_number,
        None if symbol is None else names.symbol_key(symbol),
    )
    await connection.execute(
        "UPDATE facts.launch AS launch SET symbol_key = token.symbol_key"
        " FROM facts.token AS token JOIN facts.address AS address ON address.address = token.token"
        " WHERE token.token = $1 AND launch.token_id = address.id",
        as_bytes(token),
    )
