"""Links between wallets: which sent another its first eth, and which bought the same token at once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base.types import BPS, Address, TxHash
from roundtrip.domain.wallets.linked import EXCHANGE_WALLETS, MIN_SHARED, WINDOW_BLOCKS, WINDOW_S
from roundtrip.store.index.tokens import ids_of
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_row

NEWEST_BUYS = 300
"""Buys of a wallet that are read for their tokens: a bot makes half a million."""
MAX_TOKENS = 100
LOOK_BACK_S = 30 * 86_400
"""Older trades say little about who is who today."""
_LOOK_BACKS_S = (3600, 6 * 3600, 36 * 3600, 9 * 86_400, LOOK_BACK_S)
"""How far back buys are read, in turn: all trades of that time are read to find the newest, and a bot has as
many in an hour as others in a month."""
MAX_BESIDE = 60
"""Wallets linked by trades alone that are read, those with the most telling tokens."""
TOKENS_SHOWN = 5
MAX_COUNTED = 2000
"""Tokens of a wallet are counted up to this: beyond it, their number makes no difference."""


class WalletFunding(NamedTuple):
    """The wallet that first sent a wallet eth, and when, in seconds since 1970."""

    wallet_id: int
    funder_id: int
    funded_s: int


@dataclass(frozen=True, slots=True)
class NewestBuy:
    """A wallet's newest buy of a token."""

    token_id: int
    at_s: int
    block_number: int
    log_index: int
    tx_hash: TxHash


@dataclass(frozen=True, slots=True)
class CoBoughtToken:
    """A token that another wallet bought at the same moment, by the nearest of its buys. ``others``: how many
    other wallets did, this one included."""

    token_id: int
    own_tx: TxHash
    other_tx: TxHash
    blocks_apart: int
    others: int


@dataclass(frozen=True, slots=True)
class LinkedPeer:
    """Another wallet: ``shared`` tokens, and the most telling of them. ``weight_bps``: the sum over all of
    them of 10,000 / ``CoBoughtToken.others``: a token that few wallets bought then tells more."""

    shared: int
    weight_bps: int
    tokens: tuple[CoBoughtToken, ...]


class FirstEth(NamedTuple):
    """The block in which a wallet was sent its first eth, and its time in seconds since 1970."""

    block_number: int
    at_s: int


async def funding(connection: Connection, wallet_id: int) -> WalletFunding | None:
    """The wallet's first eth, as of the blocks that were read; None: not known."""
    return await fetch_row(
        connection,
        WalletFunding,
        "SELECT wallet_id, funder_id, funded_s FROM facts.origin"
        " WHERE wallet_id = $1 AND funder_id IS NOT NULL",
        wallet_id,
    )


async def funded_by(connection: Connection, funder_id: int) -> list[WalletFunding]:
    """The wallets whose first eth ``funder_id`` sent; of an exchange's customers as many as identify it."""
    return await fetch(
        connection,
        WalletFunding,
        "SELECT wallet_id, funder_id, funded_s FROM facts.origin WHERE funder_id = $1 LIMIT $2",
        funder_id,
        EXCHANGE_WALLETS + 1,
    )


async def count_funded(connection: Connection, wallet_ids: Collection[int]) -> dict[int, int]:
    """How many wallets got their first eth from each of these; counted up to ``EXCHANGE_WALLETS`` + 1."""
    rows = await fetch(
        connection,
        tuple[int, int],
        "SELECT given.id, (SELECT count(*) FROM (SELECT FROM facts.origin WHERE funder_id = given.id"
        " LIMIT $2) AS counted) AS family FROM unnest($1::int[]) AS given (id)",
        list(wallet_ids),
        EXCHANGE_WALLETS + 1,
    )
    return dict(rows)


async def count_funded_by_address(connection: Connection, funders: Collection[Address]) -> dict[Address, int]:
    """``count_funded`` by addresses; 0 for an address that occurs in no fact."""
    ids = await ids_of(connection, funders)
    counted = await count_funded(connection, ids.values())
    return {funder: counted[ids[funder]] if funder in ids else 0 for funder in funders}


async def first_eth(connection: Connection, wallets: Collection[Address]) -> dict[Address, FirstEth]:
    """When each wallet was sent its first eth, as of the blocks that were read. A wallet is missing where the
    index saw no plain transfer to it."""
    rows = await fetch(
        connection,
        tuple[Address, FirstEth],
        "SELECT address.address, origin.funded_number AS block_number, origin.funded_s AS at_s"
        " FROM facts.address AS address JOIN facts.origin AS origin ON origin.wallet_id = address.id"
        " WHERE address.address = ANY($1::bytea[]) AND origin.funder_id IS NOT NULL",
        [as_bytes(wallet) for wallet in set(wallets)],
    )
    return dict(rows)


async def tokens_traded(connection: Connection, wallet_ids: Collection[int]) -> dict[int, int]:
    """How many tokens each of these has ever traded; counted up to ``MAX_COUNTED``."""
    rows = await fetch(
        connection,
        tuple[int, int],
        "SELECT given.id, (SELECT count(*) FROM facts.positions_of(given.id, $2::int)) AS tokens"
        " FROM unnest($1::int[]) AS given (id)",
        list(wallet_ids),
        MAX_COUNTED,
    )
    return dict(rows)


_BUYS = """
SELECT pool.token_id, trade.at_s, trade.block_number, trade.log_index, trade.tx_hash
FROM (
    SELECT * FROM facts.trade WHERE trader_id = $1 AND buys AND at_s >= $2
    ORDER BY at_s DESC, block_number DESC, log_index DESC LIMIT $3
) AS trade
JOIN facts.pool AS pool ON pool.id = trade.pool_id
ORDER BY trade.at_s DESC, trade.block_number DESC, trade.log_index DESC
"""


async def newest_buys(connection: Connection, wallet_id: int, now_s: int) -> list[NewestBuy]:
    """The newest buy of each of up to ``MAX_TOKENS`` tokens, among the newest ``NEWEST_BUYS`` buys of the
    last ``LOOK_BACK_S`` before ``now_s``; the newest first."""
    rows: list[NewestBuy] = []
    for back_s in _LOOK_BACKS_S:
        rows = await fetch(connection, NewestBuy, _BUYS, wallet_id, now_s - back_s, NEWEST_BUYS)
        if len(rows) == NEWEST_BUYS:
            break
    buys: dict[int, NewestBuy] = {}
    for buy in rows:
        buys.setdefault(buy.token_id, buy)
    return list(buys.values())[:MAX_TOKENS]


_BESIDE = f"""
WITH own AS (
    SELECT * FROM unnest($2::int[], $3::bigint[], $4::int[]) WITH ORDINALITY
    AS own (token_id, at_s, block_number, nth)
), seen AS MATERIALIZED (
    -- By time, which is the key: a token can have any number of pools and trades.
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
    (SELECT * FROM beside WHERE shared >= {MIN_SHARED}
    ORDER BY weight_bps DESC, trader_id LIMIT {MAX_BESIDE})
)
SELECT trader_id, shared, weight_bps, nth, token_id, tx_hash, apart, others FROM (
    SELECT chosen.trader_id, chosen.shared, chosen.weight_bps, weighed.nth, weighed.token_id,
        weighed.tx_hash, weighed.apart, weighed.others,
        row_number() OVER (PARTITION BY chosen.trader_id
            ORDER BY weighed.others, weighed.apart, weighed.nth) AS place
    FROM chosen JOIN weighed USING (trader_id)
) AS shown WHERE place <= {TOKENS_SHOWN} ORDER BY trader_id, place
"""  # noqa: S608


class _LinkedPeerRow(NamedTuple):
    trader_id: int
    shared: int
    weight_bps: int
    nth: int
    token_id: int
    tx_hash: TxHash
    apart: int
    others: int


async def find_co_buyers(
    connection: Connection, wallet_id: int, buys: Sequence[NewestBuy], kin: Collection[int]
) -> dict[int, LinkedPeer]:
    """The wallets that bought the same tokens within ``WINDOW_BLOCKS`` of these buys: all of ``kin``
    (wallets that first eth links to it), and of the others with at least ``MIN_SHARED`` tokens the
    ``MAX_BESIDE`` whose tokens weigh most."""
    rows = await fetch(
        connection,
        _LinkedPeerRow,
        _BESIDE,
        wallet_id,
        [buy.token_id for buy in buys],
        [buy.at_s for buy in buys],
        [buy.block_number for buy in buys],
        list(kin),
    )
    peers: dict[int, LinkedPeer] = {}
    for row in rows:
        own_buy = buys[row.nth - 1]
        token = CoBoughtToken(row.token_id, own_buy.tx_hash, row.tx_hash, row.apart, row.others)
        known = peers.get(row.trader_id)
        tokens = (*known.tokens, token) if known else (token,)
        peers[row.trader_id] = LinkedPeer(row.shared, row.weight_bps, tokens)
    return peers
