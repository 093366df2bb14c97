"""Positions and closings, and the trades that they are folded from."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import NamedTuple

import asyncpg

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import ZERO_ADDRESS, TxHash
from roundtrip.domain.market.profit import ProfitRound, ValuedFill, WalletPosition
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection
from roundtrip.venues.base import Contracts

_COLUMNS = ", ".join(WalletPosition._fields)
_TEXTS = ", ".join(f"{name}::text" for name in WalletPosition._fields)
_FROM_BASE = (
    f"INSERT INTO facts.position (wallet_id, token_id, {_COLUMNS})"  # noqa: S608
    f" SELECT wallet_id, token_id, {_COLUMNS} FROM facts.position_base"
)
_PLAIN = frozenset(
    {"buys", "sells", "unpriced", "closed", "round_unpriced", "round_number", "first_s", "last_s"}
)

TRADES_AT_ONCE = 2000
"""Read and folded at once. A bot makes millions of one token: they are never all in memory."""
IN_ORDER_S = 120.0
"""How long the database may take for some of them; before the first it puts all of them in order."""


class PositionKey(NamedTuple):
    """Whose position in what, as interned addresses."""

    wallet_id: int
    token_id: int


class PositionFill(NamedTuple):
    """Whose trade of what."""

    key: PositionKey
    fill: ValuedFill


class PositionClosing(NamedTuple):
    """Whose closing of what."""

    key: PositionKey
    closing: ProfitRound


async def positions(
    connection: Connection, keys: Iterable[PositionKey], table: str = "position"
) -> dict[PositionKey, WalletPosition]:
    """Of these keys, as far as there are any. ``table``: position, or position_base."""
    given = list(keys)
    if not given:
        return {}
    rows = await connection.fetch(
        f"SELECT wallet_id, token_id, {_TEXTS} FROM facts.{table}"  # noqa: S608
        " JOIN unnest($1::int[], $2::int[]) AS given (wallet, token)"
        " ON wallet_id = given.wallet AND token_id = given.token",
        [key.wallet_id for key in given],
        [key.token_id for key in given],
    )
    return {PositionKey(row[0], row[1]): _position(row) for row in rows}


def _position(row: asyncpg.Record) -> WalletPosition:
    return WalletPosition(*(None if value is None else int(value) for value in tuple(row)[2:]))  # type: ignore[arg-type]


async def put_positions(
    connection: Connection, found: Mapping[PositionKey, WalletPosition], table: str = "position"
) -> None:
    """Writes these as they stand now."""
    if not found:
        return
    columns = zip(*found.values(), strict=True)
    values = [
        list(column) if name in _PLAIN else [None if value is None else str(value) for value in column]
        for name, column in zip(WalletPosition._fields, columns, strict=True)
    ]
    given = ", ".join(
        f"${n}::int[]" if name in _PLAIN else f"${n}::text[]"
        for n, name in enumerate(WalletPosition._fields, 3)
    )
    chosen = ", ".join(name if name in _PLAIN else f"{name}::numeric" for name in WalletPosition._fields)
    updated = ", ".join(f"{name} = excluded.{name}" for name in WalletPosition._fields)
    await connection.execute(
        f"INSERT INTO facts.{table} (wallet_id, token_id, {_COLUMNS})"  # noqa: S608
        f" SELECT wallet_id, token_id, {chosen} FROM unnest($1::int[], $2::int[], {given})"
        f" AS given (wallet_id, token_id, {_COLUMNS})"
        f" ON CONFLICT (wallet_id, token_id) DO UPDATE SET {updated}",
        [key.wallet_id for key in found],
        [key.token_id for key in found],
        *values,
    )


async def reset_wallets(connection: Connection, first: int, end: int, from_s: int) -> None:
    """Puts the positions of the wallets from ``first`` to before ``end`` back to where trades are gone, and
    takes away what they closed from ``from_s`` on."""
    await connection.execute(
        "DELETE FROM facts.position WHERE wallet_id >= $1 AND wallet_id < $2", first, end
    )
    await connection.execute(f"{_FROM_BASE} WHERE wallet_id >= $1 AND wallet_id < $2", first, end)
    await connection.execute(
        "DELETE FROM facts.closing WHERE wallet_id >= $1 AND wallet_id < $2 AND at_s >= $3",
        first,
        end,
        from_s,
    )


async def reset_positions(connection: Connection, keys: Sequence[PositionKey]) -> None:
    """Puts these back to where trades are gone: where none are, there is no position."""
    given = [key.wallet_id for key in keys], [key.token_id for key in keys]
    some = "unnest($1::int[], $2::int[]) AS given (wallet, token)"
    of_them = "wallet_id = given.wallet AND token_id = given.token"
    await connection.execute(f"DELETE FROM facts.position USING {some} WHERE {of_them}", *given)  # noqa: S608
    await connection.execute(f"{_FROM_BASE} JOIN {some} ON {of_them}", *given)


async def count_of_wallets(connection: Connection, first: int, end: int) -> int:
    """How many positions the wallets from ``first`` to before ``end`` have."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM facts.position WHERE wallet_id >= $1 AND wallet_id < $2", first, end
    )
    return count


async def put_closings(connection: Connection, closed: Sequence[PositionClosing]) -> None:
    """Rounds that ended."""
    if not closed:
        return
    await connection.execute(
        "INSERT INTO facts.closing (block_number, log_index, at_s, wallet_id, token_id, spent_wei, got_wei)"
        " SELECT block, log, at_s, wallet, token, spent::numeric, got::numeric FROM unnest($1::int[],"
        " $2::int[], $3::int[], $4::int[], $5::int[], $6::text[], $7::text[])"
        " AS given (block, log, at_s, wallet, token, spent, got)",
        [one.closing.spot.block_number for one in closed],
        [one.closing.spot.log_index for one in closed],
        [one.closing.spot.at_s for one in closed],
        [one.key.wallet_id for one in closed],
        [one.key.token_id for one in closed],
        [str(one.closing.spent_wei) for one in closed],
        [str(one.closing.got_wei) for one in closed],
    )


_FILLS = """
SELECT trade.trader_id, pool.token_id, trade.at_s, trade.block_number, trade.log_index, trade.buys,
    trade.token_raw::text, coalesce(
        trade.eth_wei, CASE WHEN quote.address = ANY($1::bytea[]) THEN trade.quote_raw END
    )::text AS eth_wei, trade.micro_usd
FROM facts.trade AS trade
JOIN facts.pool AS pool ON pool.id = trade.pool_id
JOIN facts.address AS quote ON quote.id = pool.quote_id
"""
_IN_ORDER = " ORDER BY trade.trader_id, pool.token_id, trade.block_number, trade.log_index"


def fills_of(
    connection: Connection, keys: Iterable[PositionKey], contracts: Contracts
) -> AsyncIterator[list[PositionFill]]:
    """The trades of these keys that are kept, some at a time: key after key, and those of a key in the order
    of the chain. In a transaction, in which others may be asked between them."""
    given = list(keys)
    return _fills_in_batches(
        connection,
        f"{_FILLS} JOIN unnest($2::int[], $3::int[]) AS given (wallet, token)"
        f" ON trade.trader_id = given.wallet AND pool.token_id = given.token {_IN_ORDER}",
        _in_eth(contracts),
        [key.wallet_id for key in given],
        [key.token_id for key in given],
    )


def fills_of_wallets(
    connection: Connection,
    first: int,
    end: int,
    contracts: Contracts,
    time: tuple[int, int] = (0, 2**31 - 1),
) -> AsyncIterator[list[PositionFill]]:
    """The same of the wallets from ``first`` to before ``end``, of that time (seconds, the last one not in
    it)."""
    return _fills_in_batches(
        connection,
        f"{_FILLS} WHERE trade.trader_id >= $2 AND trade.trader_id < $3"
        f" AND trade.at_s >= $4 AND trade.at_s < $5 {_IN_ORDER}",
        _in_eth(contracts),
        first,
        end,
        *time,
    )


async def _fills_in_batches(
    connection: Connection, statement: str, *given: object
) -> AsyncIterator[list[PositionFill]]:
    some: list[PositionFill] = []
    # Read to its end it is closed: until then no day could be dropped.
    async for row in connection.cursor(statement, *given, prefetch=TRADES_AT_ONCE, timeout=IN_ORDER_S):
        some.append(_trade(row))
        if len(some) == TRADES_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def _trade(row: asyncpg.Record) -> PositionFill:
    wallet, token, at_s, block, log, buys, token_raw, eth_wei, micro_usd = row
    wei = None if eth_wei is None else int(eth_wei)
    fill = ValuedFill(Spot(block, log, at_s, TxHash("")), buys, int(token_raw), wei, micro_usd)
    return PositionFill(PositionKey(wallet, token), fill)


def _in_eth(contracts: Contracts) -> list[bytes]:
    return [as_bytes(ZERO_ADDRESS), as_bytes(contracts.weth)]


async def keys_after(connection: Connection, number: int, at_s: int) -> list[PositionKey]:
    """Whoever traded what after a block, which was of that second."""
    rows = await connection.fetch(
        "SELECT DISTINCT trade.trader_id, pool.token_id FROM facts.trade AS trade"
        " JOIN facts.pool AS pool ON pool.id = trade.pool_id"
        " WHERE trade.at_s >= $1 AND trade.block_number > $2",
        at_s,
        number,
    )
    return [PositionKey(*row) for row in rows]
