"""Trades of a token, one by one, and what else tells whether who made one is a plain wallet."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import asyncpg

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.base.venue import VenueKind
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection


@dataclass(frozen=True, slots=True)
class IndexedTrade:
    """A trade of a token as the index has it, alone in its transaction. ``pool``: where, with its kind, its
    quote, its hook and when it was opened. ``kept_raw``: what a curve kept beside what it paid."""

    wallet_id: int
    wallet: Address
    buys: bool
    block_number: int
    log_index: int
    at_s: int
    tx_hash: TxHash
    token_raw: int
    quote_raw: int
    kept_raw: int | None
    worth_wei: int | None
    pool_id: int
    at: str
    kind: VenueKind
    quote: Address
    hook: Address | None
    opened_number: int


_TRADED = """
SELECT trade.trader_id, wallet.address AS wallet, trade.buys, trade.block_number, trade.log_index, trade.at_s,
    trade.tx_hash, trade.token_raw::text, trade.quote_raw::text, trade.kept_raw::text,
    coalesce(trade.eth_wei, CASE WHEN quote.address = ANY($8::bytea[]) THEN trade.quote_raw END)::text
        AS worth_wei,
    pool.id AS pool_id, pool.at, pool.kind, quote.address AS quote, hook.address AS hook,
    pool.block_number AS opened_number
FROM facts.pool AS pool
JOIN facts.trade AS trade ON trade.pool_id = pool.id AND trade.at_s BETWEEN $3 AND $4
JOIN facts.address AS wallet ON wallet.id = trade.trader_id
JOIN facts.address AS quote ON quote.id = pool.quote_id
LEFT JOIN facts.address AS hook ON hook.id = pool.hook_id
WHERE pool.token_id = $1 AND trade.block_number > $2
    AND trade.token_raw BETWEEN $5::numeric AND $6::numeric
    AND trade.buys = ANY($9::boolean[]) AND ($10::bytea IS NULL OR trade.tx_hash = $10)
ORDER BY trade.block_number {order}, trade.log_index {order} LIMIT $7
"""
_FIRST, _LAST = _TRADED.format(order="ASC"), _TRADED.format(order="DESC")


async def read_trades(
    connection: Connection,
    token_id: int,
    after_number: int,
    span_s: tuple[int, int],
    raw: tuple[int, int],
    sides: Sequence[bool],
    in_eth: Sequence[Address],
    most: int,
    tx_hash: TxHash | None = None,
) -> list[IndexedTrade]:
    """Trades of a token after a block, from the one second up to the other, of so much of it at least and at
    most, in their order: of more than ``most`` the first half of those and the last. ``in_eth``: the quotes
    that are eth. Sides: True is a buy."""
    found: dict[tuple[int, int], IndexedTrade] = {}
    for statement in (_FIRST, _LAST):
        rows = await connection.fetch(
            statement, token_id, after_number, *span_s, raw[0], raw[1], most // 2,
            [as_bytes(one) for one in in_eth], list(sides), None if tx_hash is None else as_bytes(tx_hash),
        )  # fmt: skip
        found.update(((row["block_number"], row["log_index"]), _read_trade(row)) for row in rows)
    return [found[spot] for spot in sorted(found)]


def _read_trade(row: asyncpg.Record) -> IndexedTrade:
    return IndexedTrade(
        row["trader_id"], as_address(row["wallet"]), row["buys"], row["block_number"], row["log_index"],
        row["at_s"], TxHash(as_text(row["tx_hash"])), int(row["token_raw"]), int(row["quote_raw"]),
        None if row["kept_raw"] is None else int(row["kept_raw"]),
        None if row["worth_wei"] is None else int(row["worth_wei"]),
        row["pool_id"], as_text(row["at"]), row["kind"], as_address(row["quote"]),
        None if row["hook"] is None else as_address(row["hook"]), row["opened_number"],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class EarlierTrades:
    """What a wallet traded of a token before one of its trades: ``first_number``: of its first buy of which
    the row is kept; None: there is none. ``older_raw``: bought less sold before the rows that are kept."""

    bought_raw: int
    sold_raw: int
    first_number: int | None
    older_raw: int

    def had_raw(self) -> int:
        """What it had left of what it bought in the market."""
        return self.older_raw + self.bought_raw - self.sold_raw


async def own_before(connection: Connection, token_id: int, trade: IndexedTrade) -> EarlierTrades:
    """Of the trade's wallet, up to just before the trade."""
    spot = (trade.at_s, trade.block_number, trade.log_index)
    return await own_until(connection, token_id, trade.wallet_id, spot)


async def own_until(
    connection: Connection, token_id: int, wallet_id: int, spot: tuple[int, int, int]
) -> EarlierTrades:
    """Of a wallet, up to before a second, block and place in it."""
    row = await connection.fetchrow(
        "SELECT coalesce(sum(own.token_raw) FILTER (WHERE own.buys), 0)::text AS bought,"
        " coalesce(sum(own.token_raw) FILTER (WHERE NOT own.buys), 0)::text AS sold,"
        " min(own.block_number) FILTER (WHERE own.buys) AS first,"
        " (SELECT (base.bought_raw - base.sold_raw)::text FROM facts.position_base AS base"
        "  WHERE base.wallet_id = $2 AND base.token_id = $1) AS older"
        " FROM facts.trade AS own JOIN facts.pool AS pool ON pool.id = own.pool_id AND pool.token_id = $1"
        " WHERE own.trader_id = $2 AND own.at_s <= $3"
        " AND (own.block_number, own.log_index) < ($4, $5)",
        token_id,
        wallet_id,
        *spot,
    )
    return EarlierTrades(int(row["bought"]), int(row["sold"]), row["first"], int(row["older"] or 0))


async def is_place_of(connection: Connection, token_id: int, at: str) -> bool:
    """Whether a contract is a curve or pool of the token."""
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM facts.pool WHERE at = $1 AND token_id = $2)", as_bytes(at), token_id
    )
    return found


async def is_alone(connection: Connection, token_id: int, trade: IndexedTrade) -> bool:
    """Whether its transaction traded the token once."""
    found: int = await connection.fetchval(
        "SELECT count(*) FROM facts.trade AS one JOIN facts.pool AS pool ON pool.id = one.pool_id"
        " AND pool.token_id = $1 WHERE one.at_s = $2 AND one.block_number = $3 AND one.tx_hash = $4",
        token_id,
        trade.at_s,
        trade.block_number,
        as_bytes(trade.tx_hash),
    )
    return found == 1


async def trade_before(connection: Connection, trade: IndexedTrade, since_s: int) -> TxHash | None:
    """The transaction of the pool's last trade before that one, not older than ``since_s``; None: none."""
    found: bytes | None = await connection.fetchval(
        "SELECT tx_hash FROM facts.trade WHERE pool_id = $1 AND at_s BETWEEN $2 AND $3"
        " AND (block_number, log_index) < ($4, $5) ORDER BY at_s DESC, block_number DESC, log_index DESC"
        " LIMIT 1",
        trade.pool_id,
        since_s,
        trade.at_s,
        trade.block_number,
        trade.log_index,
    )
    return None if found is None else TxHash(as_text(found))


async def behind(connection: Connection, token_id: int, others: Collection[Address], most: int) -> set[int]:
    """The numbers of who is behind a token: who launched it, or sent that, who put liquidity into its pools,
    and those of the ``others`` that stand in a fact. ``most``: so many who put liquidity in, the first."""
    rows = await connection.fetch(
        "SELECT deployer_id AS id FROM facts.launch WHERE token_id = $1"
        " UNION SELECT sender_id FROM facts.launch WHERE token_id = $1"
        " UNION SELECT id FROM facts.address WHERE address = ANY($2::bytea[])"
        " UNION SELECT sender_id FROM (SELECT change.sender_id FROM facts.pool AS pool"
        "  JOIN facts.liquidity AS change ON change.pool_id = pool.id"
        "  WHERE pool.token_id = $1 AND change.liquidity_delta > 0"
        "  ORDER BY change.at_s, change.block_number, change.log_index LIMIT $3) AS filled",
        token_id,
        [as_bytes(one) for one in others],
        most,
    )
    return {row["id"] for row in rows}


async def filled_after(connection: Connection, trade: IndexedTrade, number: int, from_s: int) -> bool:
    """Whether liquidity came to the trade's pool after block ``number`` and before the trade."""
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM facts.liquidity WHERE pool_id = $1 AND liquidity_delta > 0"
        " AND at_s BETWEEN $2 AND $3 AND block_number > $4 AND block_number <= $5)",
        trade.pool_id,
        from_s,
        trade.at_s,
        number,
        trade.block_number,
    )
    return found
