"""Single trades of a token, and facts that show whether a trade's wallet is an ordinary one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from roundtrip.domain.base.types import Address, HexBytes, Numeric, TxHash
from roundtrip.domain.base.venue import VenueKind
from roundtrip.store.server.rows import (
    Connection,
    as_bytes,
    fetch,
    fetch_one,
    fetch_optional,
    fetch_value,
    fetch_values,
)


@dataclass(frozen=True, slots=True)
class IndexedTrade:
    """A trade of a token as the index has it. ``kept_raw``: what the launchpad kept, on a curve only.
    ``worth_wei`` None: unknown. ``pool_id``, ``at``, ``kind``, ``quote``, ``hook``: of its pool; ``at``: the
    address, or the id of a v4 pool; ``opened_number``: the block in which it was opened."""

    wallet_id: int
    wallet: Address
    buys: bool
    block_number: int
    log_index: int
    at_s: int
    tx_hash: TxHash
    token_raw: Numeric
    quote_raw: Numeric
    kept_raw: Numeric | None
    worth_wei: Numeric | None
    pool_id: int
    at: HexBytes
    kind: VenueKind
    quote: Address
    hook: Address | None
    opened_number: int


_TRADED = """
SELECT trade.trader_id AS wallet_id, wallet.address AS wallet, trade.buys, trade.block_number,
    trade.log_index, trade.at_s, trade.tx_hash, trade.token_raw::text, trade.quote_raw::text,
    trade.kept_raw::text, coalesce(
        trade.eth_wei, CASE WHEN quote.address = ANY($8::bytea[]) THEN trade.quote_raw END
    )::text AS worth_wei,
    pool.id AS pool_id, pool.at, pool.kind, quote.address AS quote, hook.address AS hook,
    pool.block_number AS opened_number
FROM facts.pool AS pool
JOIN facts.trade AS trade ON trade.pool_id = pool.id AND trade.at_s BETWEEN $3 AND $4
JOIN facts.address AS wallet ON wallet.id = trade.trader_id
JOIN facts.address AS quote ON quote.id = pool.quote_id
LEFT JOIN facts.address AS hook ON hook.id = pool.hook_id
WHERE pool.token_id = $1 AND trade.block_number > $2
    AND trade.token_raw BETWEEN $5::numeric AND $6::numeric
    AND trade.buys = ANY($9::boolean[])
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
    limit: int,
) -> list[IndexedTrade]:
    """Trades of a token after block ``after_number``, in their order. ``span_s``: first and last second;
    ``raw``: least and most base units of the token; ``sides``: True for buys; ``in_eth``: the quotes that
    are eth. Of more than ``limit`` trades the first half of that number and the last half."""
    trades: dict[tuple[int, int], IndexedTrade] = {}
    for statement in (_FIRST, _LAST):
        rows = await fetch(
            connection, IndexedTrade,
            statement, token_id, after_number, *span_s, raw[0], raw[1], limit // 2,
            [as_bytes(quote) for quote in in_eth], list(sides),
        )  # fmt: skip
        trades.update(((row.block_number, row.log_index), row) for row in rows)
    return [trades[spot] for spot in sorted(trades)]


@dataclass(frozen=True, slots=True)
class EarlierTrades:
    """A wallet's trades of a token before a spot. ``first_number``: the block of its first buy among stored
    rows; None: there is none. ``older_raw``: bought less sold before the stored rows."""

    bought_raw: Numeric
    sold_raw: Numeric
    first_number: int | None
    older_raw: Numeric

    def had_raw(self) -> int:
        """What the wallet still held of what it bought in the market."""
        return self.older_raw + self.bought_raw - self.sold_raw


async def own_before(connection: Connection, token_id: int, trade: IndexedTrade) -> EarlierTrades:
    """The trades of the token by the trade's wallet before the trade."""
    spot = (trade.at_s, trade.block_number, trade.log_index)
    return await own_until(connection, token_id, trade.wallet_id, spot)


async def own_until(
    connection: Connection, token_id: int, wallet_id: int, spot: tuple[int, int, int]
) -> EarlierTrades:
    """Trades of a wallet before ``spot``: second, block and log index."""
    return await fetch_one(
        connection,
        EarlierTrades,
        "WITH base AS MATERIALIZED (SELECT (bought_raw - sold_raw)::text AS older_raw  FROM "
        "facts.position_base WHERE wallet_id = $2 AND token_id = $1), own AS MATERIALIZED ( SELECT "
        "coalesce(sum(own.token_raw) FILTER (WHERE own.buys), 0)::text AS bought_raw, "
        "coalesce(sum(own.token_raw) FILTER (WHERE NOT own.buys), 0)::text AS sold_raw, "
        "min(own.block_number) FILTER (WHERE own.buys) AS first_number FROM facts.trade AS own JOIN "
        "facts.pool AS pool ON pool.id = own.pool_id AND pool.token_id = $1 WHERE own.trader_id = $2 AND "
        "own.at_s <= $3 AND (own.block_number, own.log_index) < ($4, $5)) SELECT own.*, "
        "coalesce(base.older_raw, '0') AS older_raw FROM own LEFT JOIN base ON true",
        token_id,
        wallet_id,
        *spot,
    )


async def is_alone(connection: Connection, token_id: int, trade: IndexedTrade) -> bool:
    """Whether the trade's transaction traded the token only once."""
    count = await fetch_value(
        connection,
        int,
        "SELECT count(*) FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id"
        " AND pool.token_id = $1 WHERE trade.at_s = $2 AND trade.block_number = $3 AND trade.tx_hash = $4",
        token_id,
        trade.at_s,
        trade.block_number,
        as_bytes(trade.tx_hash),
    )
    return count == 1


async def trade_before(connection: Connection, trade: IndexedTrade, since_s: int) -> TxHash | None:
    """The transaction of the pool's last trade before ``trade``, not older than ``since_s``; None: there is
    none."""
    return await fetch_optional(
        connection,
        TxHash,
        "SELECT tx_hash FROM facts.trade WHERE pool_id = $1 AND at_s BETWEEN $2 AND $3 AND (block_number, "
        "log_index) < ($4, $5) ORDER BY at_s DESC, block_number DESC, log_index DESC LIMIT 1",
        trade.pool_id,
        since_s,
        trade.at_s,
        trade.block_number,
        trade.log_index,
    )


async def behind(connection: Connection, token_id: int, others: Collection[Address], limit: int) -> set[int]:
    """Address ids of a token's insiders: its deployer, the sender of the launch, the first ``limit`` senders
    of liquidity to its pools, and those of ``others`` that the index has."""
    return set(
        await fetch_values(
            connection,
            int,
            "SELECT deployer_id AS id FROM facts.launch WHERE token_id = $1 UNION SELECT sender_id FROM "
            "facts.launch WHERE token_id = $1 UNION SELECT id FROM facts.address WHERE address = "
            "ANY($2::bytea[]) UNION SELECT sender_id FROM (SELECT change.sender_id FROM facts.pool AS pool  "
            "JOIN facts.liquidity AS change ON change.pool_id = pool.id  WHERE pool.token_id = $1 AND "
            "change.liquidity_delta > 0  ORDER BY change.at_s, change.block_number, change.log_index LIMIT "
            "$3) AS filled",
            token_id,
            [as_bytes(address) for address in others],
            limit,
        )
    )


async def filled_after(connection: Connection, trade: IndexedTrade, number: int, from_s: int) -> bool:
    """Whether liquidity was added to the trade's pool after block ``number`` and up to the trade's block."""
    return await fetch_value(
        connection,
        bool,
        "SELECT EXISTS (SELECT FROM facts.liquidity WHERE pool_id = $1 AND liquidity_delta > 0"
        " AND at_s BETWEEN $2 AND $3 AND block_number > $4 AND block_number <= $5)",
        trade.pool_id,
        from_s,
        trade.at_s,
        number,
        trade.block_number,
    )
