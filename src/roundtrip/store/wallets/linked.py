"""Who stands beside a wallet: who got the first eth from whom, and who bought the same in the same moment."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import asyncpg

from roundtrip.domain.base.types import BPS, Address, TxHash
from roundtrip.domain.wallets.linked import EXCHANGE_WALLETS, LEAST_SHARED, WINDOW_BLOCKS, WINDOW_S
from roundtrip.store.index.addresses import ids_of
from roundtrip.store.server.hex import as_address, as_bytes, as_text
from roundtrip.store.server.rows import Connection

NEWEST_BUYS = 300
"""So many of a wallet's buys are looked at for the tokens in them: a bot makes half a million."""
MOST_TOKENS = 100
LOOK_BACK_S = 30 * 86_400
"""Older trades say little of who is who today."""
_LOOK_BACKS_S = (3600, 6 * 3600, 36 * 3600, 9 * 86_400, LOOK_BACK_S)
"""How far back they are looked for, in turn: the trades of all that time are read to find the newest, and a
bot has as many in an hour as others in a month."""
MOST_BESIDE = 60
"""So many wallets that only trades link are weighed, those with the most telling tokens."""
TOKENS_SHOWN = 5
MOST_COUNTED = 2000
"""Who traded more tokens than this traded everything: it does not matter how many more."""


@dataclass(frozen=True, slots=True)
class WalletFunding:
    """Who first sent the wallet eth, and when, in seconds since 1970."""

    wallet_id: int
    funder_id: int
    funded_s: int


@dataclass(frozen=True, slots=True)
class NewestBuy:
    """The newest of a wallet's buys of a token."""

    token_id: int
    at_s: int
    block_number: int
    log_index: int
    tx_hash: TxHash


@dataclass(frozen=True, slots=True)
class CoBoughtToken:
    """A token that another wallet bought in the same moment, by the nearest of its buys then. ``others``: so
    many other wallets did in all, this one among them."""

    token_id: int
    own_tx: TxHash
    other_tx: TxHash
    blocks_apart: int
    others: int


@dataclass(frozen=True, slots=True)
class LinkedPeer:
    """Another wallet: ``shared`` tokens, what they weigh together, and the most telling of them."""

    shared: int
    weight_bps: int
    tokens: tuple[CoBoughtToken, ...]


async def funding(connection: Connection, wallet_id: int) -> WalletFunding | None:
    """Who first sent it eth, as blocks passed; None: nobody that is known."""
    row = await connection.fetchrow(
        "SELECT wallet_id, funder_id, funded_s FROM facts.origin"
        " WHERE wallet_id = $1 AND funder_id IS NOT NULL",
        wallet_id,
    )
    return None if row is None else WalletFunding(*row)


async def funded_by(connection: Connection, funder_id: int) -> list[WalletFunding]:
    """Whom it first sent eth; of an exchange's customers as many as tell that it is one."""
    rows = await connection.fetch(
        "SELECT wallet_id, funder_id, funded_s FROM facts.origin WHERE funder_id = $1 LIMIT $2",
        funder_id,
        EXCHANGE_WALLETS + 1,
    )
    return [WalletFunding(*row) for row in rows]


async def families(connection: Connection, wallet_ids: Collection[int]) -> dict[int, int]:
    """How many wallets each of these first sent eth; counted no further than one past an exchange's."""
    rows = await connection.fetch(
        "SELECT given.id, (SELECT count(*) FROM (SELECT FROM facts.origin WHERE funder_id = given.id"
        " LIMIT $2) AS counted) AS family FROM unnest($1::int[]) AS given (id)",
        list(wallet_ids),
        EXCHANGE_WALLETS + 1,
    )
    return {row["id"]: row["family"] for row in rows}


async def families_of(connection: Connection, funders: Collection[Address]) -> dict[Address, int]:
    """The same by addresses; 0 of one that stands in no fact."""
    ids = await ids_of(connection, funders)
    counted = await families(connection, ids.values())
    return {funder: counted[ids[funder]] if funder in ids else 0 for funder in funders}


async def funded_numbers(connection: Connection, wallets: Collection[Address]) -> dict[Address, int]:
    """In which block each was sent its first eth, as blocks passed; who is not among them was sent none in a
    plain transfer that the index saw."""
    rows = await connection.fetch(
        "SELECT address.address, origin.funded_number FROM facts.address AS address"
        " JOIN facts.origin AS origin ON origin.wallet_id = address.id"
        " WHERE address.address = ANY($1::bytea[]) AND origin.funder_id IS NOT NULL",
        [as_bytes(wallet) for wallet in set(wallets)],
    )
    return {as_address(row["address"]): row["funded_number"] for row in rows}


async def tokens_traded(connection: Connection, wallet_ids: Collection[int]) -> dict[int, int]:
    """How many tokens each of these ever traded; counted up to ``MOST_COUNTED``."""
    rows = await connection.fetch(
        "SELECT given.id, (SELECT count(*) FROM (SELECT FROM facts.position WHERE wallet_id = given.id"
        " LIMIT $2) AS counted) AS tokens FROM unnest($1::int[]) AS given (id)",
        list(wallet_ids),
        MOST_COUNTED,
    )
    return {row["id"]: row["tokens"] for row in rows}


_BUYS = """
SELECT trade.at_s, trade.block_number, trade.log_index, pool.token_id, trade.tx_hash
FROM (
    SELECT * FROM facts.trade WHERE trader_id = $1 AND buys AND at_s >= $2
    ORDER BY at_s DESC, block_number DESC, log_index DESC LIMIT $3
) AS trade
JOIN facts.pool AS pool ON pool.id = trade.pool_id
ORDER BY trade.at_s DESC, trade.block_number DESC, trade.log_index DESC
"""


async def newest_buys(connection: Connection, wallet_id: int, now_s: int) -> list[NewestBuy]:
    """Of up to ``MOST_TOKENS`` tokens the newest buy each, of the last ``LOOK_BACK_S`` before ``now_s`` and
    of the newest ``NEWEST_BUYS``; the newest first."""
    rows: list[asyncpg.Record] = []
    for back_s in _LOOK_BACKS_S:
        rows = await connection.fetch(_BUYS, wallet_id, now_s - back_s, NEWEST_BUYS)
        if len(rows) == NEWEST_BUYS:
            break
    found: dict[int, NewestBuy] = {}
    for at_s, block_number, log_index, token_id, tx_hash in rows:
        if token_id not in found:
            buy = NewestBuy(token_id, at_s, block_number, log_index, TxHash(as_text(tx_hash)))
            found[token_id] = buy
    return list(found.values())[:MOST_TOKENS]


_BESIDE = f"""
WITH own AS (
    SELECT * FROM unnest($2::int[], $3::bigint[], $4::int[]) WITH ORDINALITY
    AS own (token_id, at_s, block_number, nth)
), seen AS MATERIALIZED (
    -- By its time, which is the key: of a token's pools there can be any number of trades, and of pools, too.
    SELECT own.nth, own.token_id, own.block_number AS own_number, trade.trader_id, trade.block_number,
        trade.log_index, trade.tx_hash, trade.pool_id
    FROM own JOIN facts.trade AS trade
        ON trade.at_s BETWEEN own.at_s - {WINDOW_S} AND own.at_s + {WINDOW_S}
        AND trade.block_number BETWEEN own.block_number - {WINDOW_BLOCKS}
            AND own.block_number + {WINDOW_BLOCKS}
    WHERE trade.buys AND trade.trader_id <> $1
), near AS MATERIALIZED (
    SELECT seen.nth, seen.token_id, seen.trader_id, min(abs(seen.block_number - own_number)) AS apart,
        (array_agg(seen.tx_hash ORDER BY abs(seen.block_number - own_number),
            seen.block_number, seen.log_index))[1] AS tx_hash
    FROM seen CROSS JOIN LATERAL (
        SELECT pool.token_id FROM facts.pool AS pool WHERE pool.id = seen.pool_id OFFSET 0
    ) AS place
    WHERE place.token_id = seen.token_id
    GROUP BY seen.nth, seen.token_id, seen.trader_id
), weighed AS (
    SELECT *, count(*) OVER (PARTITION BY nth) AS others FROM near
), beside AS (
    SELECT trader_id, count(*) AS shared, sum({BPS} / others)::bigint AS weight_bps FROM weighed
    GROUP BY trader_id
), chosen AS (
    SELECT * FROM beside WHERE trader_id = ANY($5::int[])
    UNION
    (SELECT * FROM beside WHERE shared >= {LEAST_SHARED}
    ORDER BY weight_bps DESC, trader_id LIMIT {MOST_BESIDE})
)
SELECT * FROM (
    SELECT chosen.trader_id, chosen.shared, chosen.weight_bps, weighed.nth, weighed.token_id,
        weighed.tx_hash, weighed.apart, weighed.others,
        row_number() OVER (PARTITION BY chosen.trader_id
            ORDER BY weighed.others, weighed.apart, weighed.nth) AS place
    FROM chosen JOIN weighed USING (trader_id)
) AS shown WHERE place <= {TOKENS_SHOWN} ORDER BY trader_id, place
"""  # noqa: S608


async def beside(
    connection: Connection, wallet_id: int, buys: Sequence[NewestBuy], kin: Collection[int]
) -> dict[int, LinkedPeer]:
    """Who else bought the same within ``WINDOW_BLOCKS`` of these buys: of ``kin`` everybody, of all others
    those with at least ``LEAST_SHARED`` tokens, and of them the ``MOST_BESIDE`` whose tokens weigh most."""
    rows = await connection.fetch(
        _BESIDE,
        wallet_id,
        [buy.token_id for buy in buys],
        [buy.at_s for buy in buys],
        [buy.block_number for buy in buys],
        list(kin),
    )
    found: dict[int, LinkedPeer] = {}
    for row in rows:
        own = buys[row["nth"] - 1]
        token = CoBoughtToken(
            row["token_id"], own.tx_hash, TxHash(as_text(row["tx_hash"])), row["apart"], row["others"]
        )
        before = found.get(row["trader_id"])
        tokens = (*before.tokens, token) if before else (token,)
        found[row["trader_id"]] = LinkedPeer(row["shared"], row["weight_bps"], tokens)
    return found
