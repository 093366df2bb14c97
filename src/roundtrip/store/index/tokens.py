"""Tokens' own metadata: symbol, name, decimals and supply, as their contracts return them. Interned
addresses: each address that a fact refers to has a number, its id in facts.address."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from roundtrip.domain.base import names
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, Numeric
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_optional, fetch_row, fetch_values
from roundtrip.venues.base import Contracts


@dataclass(frozen=True, slots=True)
class Label:
    """A token and its own metadata; None where it was not read or the contract returns none. The texts are
    a stranger's, unchanged. ``supply_raw``: the total supply in base units."""

    address: Address
    symbol: str | None
    name: str | None
    decimals: int | None
    supply_raw: Numeric | None


async def labels(connection: Connection, token_ids: Collection[int]) -> dict[int, Label]:
    """The labels of these tokens, by interned address."""
    rows = await fetch(
        connection,
        tuple[int, Label],
        "SELECT address.id, address.address, token.symbol, token.name, token.decimals,"
        " token.supply_raw::text AS supply_raw FROM facts.address AS address"
        " LEFT JOIN facts.token AS token ON token.token = address.address WHERE address.id = ANY($1::int[])",
        list(set(token_ids)),
    )
    return dict(rows)


async def labels_of(connection: Connection, tokens: Collection[Address]) -> dict[Address, Label]:
    """The labels of these tokens, by address. An address need not be interned."""
    rows = await fetch(
        connection,
        Label,
        "SELECT given.token AS address, token.symbol, token.name, token.decimals,"
        " token.supply_raw::text AS supply_raw FROM unnest($1::bytea[]) AS given (token)"
        " LEFT JOIN facts.token AS token ON token.token = given.token",
        [as_bytes(token) for token in set(tokens)],
    )
    return {label.address: label for label in rows}


async def strangers_with(connection: Connection, symbol_key: str, most: int = 3) -> list[Address]:
    """At most ``most`` tokens with this symbol (normalised by ``names.symbol_key``), by any creator."""
    return await fetch_values(
        connection,
        Address,
        "SELECT token FROM facts.token WHERE symbol_key = $1 ORDER BY token LIMIT $2",
        symbol_key,
        most,
    )


async def read_among(connection: Connection, tokens: Iterable[Address]) -> set[Address]:
    """Those of the tokens whose metadata was read already."""
    tokens_read = await fetch_values(
        connection,
        Address,
        "SELECT token FROM facts.token WHERE token = ANY($1::bytea[])",
        [as_bytes(token) for token in tokens],
    )
    return set(tokens_read)


async def keep(
    connection: Connection,
    token: Address,
    symbol: str | None,
    name: str | None,
    decimals: int | None,
    supply_raw: int | None,
    read_number: int,
) -> None:
    """Stores the metadata read at block ``read_number``, unless a newer read is stored, and the symbol's
    search key. The texts must not contain NUL."""
    await connection.execute(
        "INSERT INTO facts.token AS token (token, symbol, name, decimals, supply_raw, read_number, "
        "symbol_key) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (token) DO UPDATE SET symbol = "
        "excluded.symbol, name = excluded.name, decimals = excluded.decimals, supply_raw = "
        "excluded.supply_raw, read_number = excluded.read_number, symbol_key = excluded.symbol_key WHERE "
        "token.read_number <= excluded.read_number",
        as_bytes(token),
        symbol,
        name,
        decimals,
        supply_raw,
        read_number,
        None if symbol is None else names.symbol_key(symbol),
    )
    # Read first: the UPDATE names no table that the sync may have locked before facts.launch.
    kept = await fetch_row(
        connection,
        tuple[int, str | None],
        "SELECT address.id, token.symbol_key FROM facts.token AS token"
        " JOIN facts.address AS address ON address.address = token.token WHERE token.token = $1",
        as_bytes(token),
    )
    if kept is not None:
        await connection.execute("UPDATE facts.launch SET symbol_key = $2 WHERE token_id = $1", *kept)


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
