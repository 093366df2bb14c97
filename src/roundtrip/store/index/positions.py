"""Positions and closings, and the trades they are folded from."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import NamedTuple

import asyncpg

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import TxHash
from roundtrip.domain.market.profit import ProfitRound, ValuedFill, WalletPosition
from roundtrip.store.index.tokens import eth_quotes
from roundtrip.store.server.rows import Connection, array_of, fetch, fetch_value, read
from roundtrip.venues.base import Contracts

_COLUMNS = ", ".join(WalletPosition._fields)
_FROM_BASE = (
    f"INSERT INTO facts.position (wallet_id, token_id, {_COLUMNS})"  # noqa: S608
    f" SELECT wallet_id, token_id, {_COLUMNS} FROM facts.position_base"
)
_PLAIN = frozenset(
    {"buys", "sells", "unpriced", "closed", "round_unpriced", "round_number", "first_s", "last_s"}
)
"""Columns of type int; the other columns are numeric."""
_READ = ", ".join(name if name in _PLAIN else f"{name}::text" for name in WalletPosition._fields)

TRADES_AT_ONCE = 2000
"""How many trades are read and folded in one batch. A bot makes millions in one token, so they are never all
in memory."""
IN_ORDER_S = 120.0
"""How long the database may take for a batch; before the first one it sorts all trades."""


class PositionKey(NamedTuple):
    """A wallet and a token, as interned addresses."""

    wallet_id: int
    token_id: int


PositionFill = tuple[PositionKey, ValuedFill]
PositionClosing = tuple[PositionKey, ProfitRound]


class _FillRow(NamedTuple):
    trader_id: int
    token_id: int
    at_s: int
    block_number: int
    log_index: int
    buys: bool
    token_raw: str
    eth_wei: str | None
    micro_usd: int | None


async def positions(
    connection: Connection, keys: Iterable[PositionKey], table: str = "position"
) -> dict[PositionKey, WalletPosition]:
    """The stored positions of these keys. ``table``: position, or position_base."""
    keys = list(keys)
    if not keys:
        return {}
    rows = await fetch(
        connection,
        tuple[PositionKey, WalletPosition],
        f"SELECT wallet_id, token_id, {_READ} FROM facts.{table}"  # noqa: S608
        " JOIN unnest($1::int[], $2::int[]) AS given (wallet, token)"
        " ON wallet_id = given.wallet AND token_id = given.token",
        [key.wallet_id for key in keys],
        [key.token_id for key in keys],
    )
    return dict(rows)


async def put_positions(
    connection: Connection, by_key: Mapping[PositionKey, WalletPosition], table: str = "position"
) -> None:
    """Inserts or replaces these positions."""
    if not by_key:
        return
    parameters = ", ".join(
        f"${n}::text::{'int' if name in _PLAIN else 'numeric'}[]"
        for n, name in enumerate(WalletPosition._fields, 3)
    )
    updated = ", ".join(f"{name} = excluded.{name}" for name in WalletPosition._fields)
    await connection.execute(
        f"INSERT INTO facts.{table} (wallet_id, token_id, {_COLUMNS})"  # noqa: S608
        f" SELECT * FROM unnest($1::text::int[], $2::text::int[], {parameters})"
        f" ON CONFLICT (wallet_id, token_id) DO UPDATE SET {updated}",
        *map(array_of, zip(*by_key, strict=True)),
        *map(array_of, zip(*by_key.values(), strict=True)),
    )


async def reset_wallets(connection: Connection, first: int, end: int, from_s: int) -> None:
    """Resets the positions of the wallets from ``first`` to before ``end`` to those folded from deleted
    trades, and deletes their closings from ``from_s`` on."""
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
    """Resets these positions to those folded from deleted trades. A key without deleted trades has no
    position then."""
    ids = [key.wallet_id for key in keys], [key.token_id for key in keys]
    given = "unnest($1::int[], $2::int[]) AS given (wallet, token)"
    matches = "wallet_id = given.wallet AND token_id = given.token"
    await connection.execute(f"DELETE FROM facts.position USING {given} WHERE {matches}", *ids)  # noqa: S608
    await connection.execute(f"{_FROM_BASE} JOIN {given} ON {matches}", *ids)


async def count_of_wallets(connection: Connection, first: int, end: int) -> int:
    """How many positions the wallets from ``first`` to before ``end`` have."""
    return await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM facts.position WHERE wallet_id >= $1 AND wallet_id < $2",
        first,
        end,
    )


async def put_closings(connection: Connection, closings: Sequence[PositionClosing]) -> None:
    """Inserts closed rounds."""
    if not closings:
        return
    await connection.execute(
        "INSERT INTO facts.closing (block_number, log_index, at_s, wallet_id, token_id, spent_wei, got_wei)"
        " SELECT block, log, at_s, wallet, token, spent::numeric, got::numeric FROM unnest($1::int[],"
        " $2::int[], $3::int[], $4::int[], $5::int[], $6::text[], $7::text[])"
        " AS given (block, log, at_s, wallet, token, spent, got)",
        [closing.spot.block_number for _, closing in closings],
        [closing.spot.log_index for _, closing in closings],
        [closing.spot.at_s for _, closing in closings],
        [key.wallet_id for key, _ in closings],
        [key.token_id for key, _ in closings],
        [str(closing.spent_wei) for _, closing in closings],
        [str(closing.got_wei) for _, closing in closings],
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
    """The stored trades of these keys, in batches: key after key, and those of a key in the order of the
    chain. Needs an open transaction; the caller may run other statements between batches."""
    keys = list(keys)
    return _fills_in_batches(
        connection,
        f"{_FILLS} JOIN unnest($2::int[], $3::int[]) AS given (wallet, token)"
        f" ON trade.trader_id = given.wallet AND pool.token_id = given.token {_IN_ORDER}",
        eth_quotes(contracts),
        [key.wallet_id for key in keys],
        [key.token_id for key in keys],
    )


def fills_of_wallets(
    connection: Connection, first: int, end: int, contracts: Contracts, time: tuple[int, int] = (0, 2**31 - 1)
) -> AsyncIterator[list[PositionFill]]:
    """The trades of the wallets from ``first`` to before ``end`` in ``time``, a half-open range of seconds
    since 1970, in batches as ``fills_of``."""
    return _fills_in_batches(
        connection,
        f"{_FILLS} WHERE trade.trader_id >= $2 AND trade.trader_id < $3"
        f" AND trade.at_s >= $4 AND trade.at_s < $5 {_IN_ORDER}",
        eth_quotes(contracts),
        first,
        end,
        *time,
    )


async def _fills_in_batches(
    connection: Connection, statement: str, *args: object
) -> AsyncIterator[list[PositionFill]]:
    batch: list[asyncpg.Record] = []
    # The cursor closes at its end. Until then no day's partition can be dropped.
    async for record in connection.cursor(statement, *args, prefetch=TRADES_AT_ONCE, timeout=IN_ORDER_S):
        batch.append(record)
        if len(batch) == TRADES_AT_ONCE:
            yield [_read_fill(row) for row in read(batch, _FillRow)]
            batch = []
    if batch:
        yield [_read_fill(row) for row in read(batch, _FillRow)]


def _read_fill(row: _FillRow) -> PositionFill:
    spot = Spot(row.block_number, row.log_index, row.at_s, TxHash(""))
    eth_wei = None if row.eth_wei is None else int(row.eth_wei)
    fill = ValuedFill(spot, row.buys, int(row.token_raw), eth_wei, row.micro_usd)
    return PositionKey(row.trader_id, row.token_id), fill


async def keys_after(connection: Connection, number: int, at_s: int) -> list[PositionKey]:
    """The positions traded after block ``number``, which was made at ``at_s``."""
    return await fetch(
        connection,
        PositionKey,
        "SELECT DISTINCT trade.trader_id AS wallet_id, pool.token_id FROM facts.trade AS trade JOIN "
        "facts.pool AS pool ON pool.id = trade.pool_id WHERE trade.at_s >= $1 AND trade.block_number > $2",
        at_s,
        number,
    )
