"""What facts tell of a token that was flagged. Addresses are the index's numbers."""

from dataclasses import dataclass

import asyncpg

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.base.venue import is_curve
from roundtrip.domain.market.signals import NARROW_TICKS
from roundtrip.store.boards.reference_pools import in_eth, most_used
from roundtrip.store.boards.signals import MOST_CHANGES
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch.happening_moves import WHOLE_WITHIN_S
from roundtrip.venues.base import Contracts

MOST_TRADERS = 500
"""Of all that traded a token since it was flagged those with most money."""
MOST_TRADES = 1000
"""So many trades of a day are looked through for one that counts: with more of them it is alive."""
_DAY_S = 86_400


async def is_counted(connection: Connection, token_id: int) -> bool:
    """Whether it counts: older than a day, with a crowd of buyers (``store/boards/winners.py``)."""
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM facts.fair_token WHERE token_id = $1)", token_id
    )
    return found


# Shuffled first and then looked at one by one, until there are enough: a subquery that gives a value is not
# made a join.
_DRAWN = """
SELECT shuffled.token_id, shuffled.address FROM (
    SELECT fair.token_id, address.address, md5($1::bytea || address.address) AS place
    FROM facts.fair_token AS fair JOIN facts.address AS address ON address.id = fair.token_id
    ORDER BY place OFFSET 0
) AS shuffled WHERE (
    SELECT true FROM facts.pool AS pool CROSS JOIN LATERAL (
        SELECT FROM facts.trade AS trade WHERE trade.pool_id = pool.id AND trade.at_s > $2 LIMIT 1
    ) AS traded WHERE pool.token_id = shuffled.token_id LIMIT 1
) ORDER BY shuffled.place LIMIT $3
"""


async def draw_tokens(
    connection: Connection, seed: bytes, newest_s: int, most: int
) -> list[tuple[int, Address]]:
    """Tokens that count and were traded within a day, by chance: of ``seed``, 32 bytes."""
    rows = await connection.fetch(_DRAWN, seed, newest_s - _DAY_S, most)
    return [(row["token_id"], as_address(row["address"])) for row in rows]


async def deployer_of(connection: Connection, token_id: int) -> tuple[int | None, int]:
    """Who launched it, None where nobody knows, and what he holds by his trades of it, in base units."""
    row = await connection.fetchrow(
        "SELECT launch.deployer_id, greatest(own.bought_raw - own.sold_raw, 0)::text AS held_raw"
        " FROM facts.launch AS launch LEFT JOIN facts.position AS own"
        " ON own.wallet_id = launch.deployer_id AND own.token_id = launch.token_id"
        " WHERE launch.token_id = $1",
        token_id,
    )
    return (None, 0) if row is None else (row["deployer_id"], int(row["held_raw"] or 0))


async def traded_by(connection: Connection, token_id: int, from_s: int) -> set[int] | None:
    """Who traded it after that second; None: so much was traded that not all was looked at."""
    rows = await connection.fetch(
        "SELECT trade.trader_id FROM facts.pool AS pool JOIN facts.trade AS trade"
        " ON trade.pool_id = pool.id AND trade.at_s > $2 WHERE pool.token_id = $1 LIMIT $3",
        token_id,
        from_s,
        MOST_TRADES,
    )
    return None if len(rows) == MOST_TRADES else {row["trader_id"] for row in rows}


@dataclass(frozen=True, slots=True)
class Trader:
    """What a wallet paid for a token and got for it, in wei, as far as that is known."""

    wallet_id: int
    bought_wei: int
    sold_wei: int


_SINCE = """
SELECT trade.trader_id, coalesce(sum(told.wei) FILTER (WHERE trade.buys), 0)::text AS bought_wei,
    coalesce(sum(told.wei) FILTER (WHERE NOT trade.buys), 0)::text AS sold_wei
FROM facts.pool AS pool JOIN facts.trade AS trade ON trade.pool_id = pool.id AND trade.at_s >= $2
CROSS JOIN LATERAL (SELECT coalesce(
    trade.eth_wei, CASE WHEN pool.quote_id = ANY($4::int[]) THEN trade.quote_raw END
) AS wei) AS told
WHERE pool.token_id = $1 AND trade.block_number > $3
GROUP BY trade.trader_id ORDER BY sum(told.wei) DESC NULLS LAST LIMIT $5
"""


async def traders_since(
    connection: Connection, token_id: int, at_s: int, number: int, contracts: Contracts
) -> list[Trader]:
    """Who traded it after block ``number``, which was of that second."""
    rows = await connection.fetch(
        _SINCE, token_id, at_s, number, await in_eth(connection, contracts), MOST_TRADERS
    )
    return [Trader(row["trader_id"], int(row["bought_wei"]), int(row["sold_wei"])) for row in rows]


# --- liquidity and the deployer --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PoolLiquidity:
    """A pool, and the liquidity that each wallet has put into it and not taken out, by the width of its
    range."""

    at: str
    of_wallets: dict[int, int]


async def main_pool(
    connection: Connection, token_id: int, stands: Cursor, contracts: Contracts
) -> PoolLiquidity | None:
    """The pool where it was traded most within a day; None: there is none, it is younger than a day, or not
    every change of its liquidity is known. A curve has none that anybody could take."""
    newest_s = stands.block.timestamp_s
    most = await most_used(connection, token_id, newest_s, contracts)
    if most is None or is_curve(most.kind) or most.block_number < stands.start_number:
        return None
    if not newest_s - WHOLE_WITHIN_S < most.at_s <= newest_s - _DAY_S:
        return None
    rows = await connection.fetch(
        "SELECT sender_id, liquidity_delta * least(tick_upper - tick_lower, $2) AS weight"
        " FROM facts.liquidity WHERE pool_id = $1 LIMIT $3",
        most.pool_id,
        NARROW_TICKS,
        MOST_CHANGES + 1,
    )
    if len(rows) > MOST_CHANGES:
        return None
    found: dict[int, int] = {}
    for row in rows:
        found[row["sender_id"]] = found.get(row["sender_id"], 0) + int(row["weight"])
    return PoolLiquidity(most.at, found)


@dataclass(frozen=True, slots=True)
class RemovedLiquidity:
    """What a wallet took out, or the deployer sold, more than the other way since a flag was made, up to what
    is settled and up to now; and the largest settled transaction of it."""

    wallet_id: int
    settled: int
    now: int
    largest: int
    tx_hash: TxHash
    block_number: int
    at_s: int


# $1 which, $2 at_s, $3 number, $4 settled_s
_GONE = """
SELECT wallet_id, coalesce(sum(amount) FILTER (WHERE at_s <= $4), 0)::text AS settled,
    sum(amount)::text AS now,
    (array_agg(amount::text ORDER BY at_s <= $4 DESC, amount DESC, block_number, log_index))[1] AS largest,
    (array_agg(tx_hash ORDER BY at_s <= $4 DESC, amount DESC, block_number, log_index))[1] AS tx_hash,
    (array_agg(block_number ORDER BY at_s <= $4 DESC, amount DESC, block_number, log_index))[1]
        AS block_number,
    (array_agg(at_s ORDER BY at_s <= $4 DESC, amount DESC, block_number, log_index))[1] AS at_s
FROM ({changes}) AS change WHERE at_s >= $2 AND block_number > $3 GROUP BY wallet_id
"""
_LIQUIDITY = _GONE.format(
    changes="SELECT change.sender_id AS wallet_id, change.at_s, change.block_number, change.log_index,"
    " change.tx_hash, -change.liquidity_delta * least(change.tick_upper - change.tick_lower, $5) AS amount"
    " FROM facts.liquidity AS change WHERE change.at_s >= $2"
    " AND change.pool_id = (SELECT id FROM facts.pool WHERE at = $1)"
)
_SOLD = _GONE.format(
    changes="SELECT trade.trader_id AS wallet_id, trade.at_s, trade.block_number, trade.log_index,"
    " trade.tx_hash, CASE WHEN trade.buys THEN -trade.token_raw ELSE trade.token_raw END AS amount"
    " FROM facts.launch AS launch JOIN facts.trade AS trade"
    " ON trade.trader_id = launch.deployer_id AND trade.at_s >= $2"
    " JOIN facts.pool AS pool ON pool.id = trade.pool_id AND pool.token_id = launch.token_id"
    " WHERE launch.token_id = $1"
)


async def liquidity_gone(
    connection: Connection, pool: str, at_s: int, number: int, settled_s: int
) -> list[RemovedLiquidity]:
    """By the wallets that changed a pool's liquidity after block ``number``, which was of that second."""
    rows = await connection.fetch(_LIQUIDITY, as_bytes(pool), at_s, number, settled_s, NARROW_TICKS)
    return [_read_removed(row) for row in rows]


async def deployer_sold(
    connection: Connection, token_id: int, at_s: int, number: int, settled_s: int
) -> RemovedLiquidity | None:
    """The same of what the token's deployer sold of it; None: he traded none."""
    rows = await connection.fetch(_SOLD, token_id, at_s, number, settled_s)
    return _read_removed(rows[0]) if rows else None


def _read_removed(row: asyncpg.Record) -> RemovedLiquidity:
    return RemovedLiquidity(
        row["wallet_id"],
        int(row["settled"]),
        int(row["now"]),
        int(row["largest"]),
        TxHash(as_text(row["tx_hash"])),
        row["block_number"],
        row["at_s"],
    )
