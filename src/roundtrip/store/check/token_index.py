"""All that the index knows of a token for a check: read at one moment, over one connection. Holders of a
token, by its trades; and those that could not sell in a check of the last day. Recalled wallets: simulated
wallets that met a refusal or a loss in such a check, stored as the seed and number that they are drawn
from."""

import asyncio
from collections.abc import Collection, Coroutine
from datetime import datetime
from typing import NamedTuple, TypeVar

import asyncpg

from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import Address, HexBytes
from roundtrip.domain.base.venue import MAX_OTHERS_COUNTED, MAX_VENUES_A_TOKEN, OtherPool, VenueKind
from roundtrip.domain.check.evidence import DeployerRecord
from roundtrip.domain.check.proof_input import NOTHING, IndexInputs, RecalledWallet, TokenIndex
from roundtrip.domain.market.profit import DUST
from roundtrip.store.index import cursor, deployers, tokens
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection, as_bytes, fetch, fetch_values

MAX_RECALLED = 64
"""Recalled wallets that a check reads, the newest first."""


async def read_recalled_wallets(
    connection: Connection, token: Address, since: datetime, limit: int = MAX_RECALLED
) -> list[RecalledWallet]:
    """The token's recalled wallets that were stored or renewed at ``since`` or later, the newest first."""
    return await fetch(
        connection,
        RecalledWallet,
        "SELECT at, seed, number::int AS number FROM facts.recalled_wallet WHERE token = $1 AND seen_at >= $2"
        " ORDER BY seen_at DESC, at, seed, number LIMIT $3",
        as_bytes(token),
        since,
        limit,
    )


async def keep_recalled_wallets(
    connection: Connection,
    token: Address,
    wallets: Collection[RecalledWallet],
    now: datetime,
    since: datetime,
    pruned_at_once: int = 64,
) -> None:
    """Inserts recalled wallets, or renews them. Deletes at most ``pruned_at_once``, of any token, that were
    last renewed before ``since``."""
    if not wallets:
        return
    await connection.executemany(
        "INSERT INTO facts.recalled_wallet (token, at, seed, number, seen_at) VALUES ($1, $2, $3, $4, $5)"
        " ON CONFLICT (token, at, seed, number)"
        " DO UPDATE SET seen_at = greatest(recalled_wallet.seen_at, excluded.seen_at)",
        # In one order, so that two checks of one token do not wait for each other.
        sorted((as_bytes(token), kept.at, as_bytes(kept.seed), kept.number, now) for kept in wallets),
    )
    await connection.execute(
        "DELETE FROM facts.recalled_wallet WHERE (token, at, seed, number) IN (SELECT token, at, seed, number"
        " FROM facts.recalled_wallet WHERE seen_at < $1 ORDER BY seen_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        since,
        pruned_at_once,
    )


MAX_CAUGHT = 4
"""Holders that could not sell in an earlier check, which a check asks again: a third of those that it tries,
so that they alone make no danger."""
LEAST_CAUGHT = 2
"""So many are a danger of the token, which every check of the next day looks for; one may be barred for a
good reason."""


async def keep_caught_holders(
    connection: Connection,
    token: Address,
    caught: Collection[Address],
    freed: Collection[Address],
    is_danger: bool,
    now: datetime,
    since: datetime,
    pruned_at_once: int = 64,
) -> None:
    """Renews the stored holders that still cannot sell, and deletes those that can. ``is_danger``: so many
    cannot that the token is a trap; then all of them are stored. Deletes at most ``pruned_at_once``, of any
    token, that were last renewed before ``since``."""
    own = as_bytes(token)
    # One check of a token at a time: two that find the opposite would wait for each other.
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", f"caught {token}")
    await connection.execute(
        "DELETE FROM facts.caught_holder WHERE token = $1 AND holder = ANY($2::bytea[])",
        own,
        [as_bytes(holder) for holder in freed],
    )
    await connection.execute(
        "UPDATE facts.caught_holder SET seen_at = greatest(seen_at, $3)"
        " WHERE token = $1 AND holder = ANY($2::bytea[])",
        own,
        [as_bytes(holder) for holder in caught],
        now,
    )
    if is_danger:
        await connection.executemany(
            "INSERT INTO facts.caught_holder (token, holder, seen_at) VALUES ($1, $2, $3)"
            " ON CONFLICT DO NOTHING",
            [(own, as_bytes(holder), now) for holder in caught],
        )
    await connection.execute(
        "DELETE FROM facts.caught_holder WHERE (token, holder) IN (SELECT token, holder"
        " FROM facts.caught_holder WHERE seen_at < $1 ORDER BY seen_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        since,
        pruned_at_once,
    )


async def read_caught_holders(connection: Connection, token: Address, since: datetime) -> list[Address]:
    """Holders that could not sell in a check at ``since`` or later, and not since that they can: at most
    ``MAX_CAUGHT``, the newest first."""
    return await fetch_values(
        connection,
        Address,
        "SELECT holder FROM facts.caught_holder WHERE token = $1 AND seen_at >= $2"
        " ORDER BY seen_at DESC, md5(holder) LIMIT $3",
        as_bytes(token),
        since,
        MAX_CAUGHT,
    )


MAX_LOOKED_AT = 2000
"""Traders of a token that are read: this many with the highest ids, which were met last, and as many from a
random id on. A token with a million traders is not read completely."""

_ALL = "FROM facts.position WHERE (token_id, wallet_id) >= ($1, 0) AND (token_id, wallet_id) < ($1 + 1, 0)"
"""All positions of a token. The row comparison leaves the planner no choice but the index of the two columns
in their order, whatever it estimates."""

_COLUMNS = "wallet_id, bought_raw, sold_raw, cost_wei, round_unpriced, last_s"
_SOME = f"""
WITH ends AS (
    SELECT (SELECT wallet_id {_ALL} ORDER BY token_id, wallet_id LIMIT 1) AS low,
        (SELECT wallet_id {_ALL} ORDER BY token_id DESC, wallet_id DESC LIMIT 1) AS high
), looked_at AS (
    (SELECT {_COLUMNS} {_ALL} ORDER BY token_id DESC, wallet_id DESC LIMIT $2)
    UNION
    (SELECT {_COLUMNS} {_ALL}
        AND (token_id, wallet_id) >= ($1, (SELECT low + ((high - low) * $3::float8)::int FROM ends))
        ORDER BY token_id, wallet_id LIMIT $2)
), holding AS MATERIALIZED (
    SELECT wallet_id, address, bought_raw - sold_raw AS left_raw, last_s
    FROM looked_at JOIN facts.address ON address.id = wallet_id
    WHERE (bought_raw - sold_raw) * $4 > bought_raw AND NOT address = ANY($5::bytea[])
        AND (cost_wei >= $8 OR round_unpriced > 0)
), largest AS (
    SELECT wallet_id, address FROM holding ORDER BY left_raw DESC, wallet_id LIMIT $6
), latest AS (
    SELECT wallet_id, address FROM holding WHERE wallet_id NOT IN (SELECT wallet_id FROM largest)
    ORDER BY last_s DESC, wallet_id LIMIT $6
), others AS (
    SELECT wallet_id, address FROM holding WHERE wallet_id NOT IN (SELECT wallet_id FROM largest)
        AND wallet_id NOT IN (SELECT wallet_id FROM latest)
    ORDER BY md5($7::bytea || address), wallet_id LIMIT $6
)
SELECT address FROM largest UNION ALL SELECT address FROM latest UNION ALL SELECT address FROM others
"""  # noqa: S608


async def traders_holding(
    connection: Connection,
    token_id: int,
    without: Collection[Address],
    seed: bytes,
    limit: int,
    least_wei: int = 0,
    max_read: int = MAX_LOOKED_AT,
) -> tuple[Address, ...]:
    """At most ``limit`` wallets that still hold more than a DUST-th of what they bought of a token, none of
    ``without``: first those that hold most, then those that traded last, then some drawn with ``seed`` (32
    bytes), a third of ``limit`` each. Who paid less than ``least_wei`` is left out, unless the price is
    unknown. At most twice ``max_read`` traders are read: those with the highest ids, and those from a random
    id on. Transfers other than trades are not considered."""
    addresses = await fetch_values(
        connection,
        Address,
        _SOME,
        token_id,
        max_read,
        int.from_bytes(seed[:4], "big") / 2**32,
        DUST,
        [as_bytes(wallet) for wallet in without],
        limit // 3,
        seed,
        least_wei,
    )
    return tuple(addresses)


T = TypeVar("T")


class HolderDraw(NamedTuple):
    """Which holders are read: at most ``limit`` wallets, none of ``without``, drawn with ``seed`` (32 bytes)
    of those that paid ``least_wei`` or more. ``only_caught``: only where ``LEAST_CAUGHT`` holders or more
    could not sell lately."""

    limit: int
    seed: bytes
    without: Collection[Address]
    least_wei: int = 0
    only_caught: bool = False


async def read_token_index(
    pool: asyncpg.Pool, token: Address, patience_s: float, since: datetime, holders: HolderDraw | None = None
) -> TokenIndex | None:
    """One snapshot of the index. ``since``: wallets recalled, and checks made, before that do not count.
    ``holders`` None: no holder is read. Returns None where the database is unavailable or takes longer than
    ``patience_s``."""
    try:
        return await _run_within(patience_s, _read_snapshot(pool, token, since, holders))
    except DATABASE_FAULTS:
        return None


class IndexedPlace(NamedTuple):
    """The token that trades for money at a pool or curve. ``kind`` None: the address was the token's own."""

    token: Address
    kind: VenueKind | None


_PLACES = """
SELECT pool.at, token.address AS token, pool.kind FROM facts.pool AS pool
JOIN facts.address AS token ON token.id = pool.token_id
WHERE pool.at = ANY($1::bytea[]) AND pool.in_money_from IS NOT NULL
UNION ALL
SELECT token.address, token.address, NULL FROM facts.address AS token
WHERE token.address = ANY($1::bytea[])
    AND EXISTS (SELECT FROM facts.pool WHERE token_id = token.id AND in_money_from IS NOT NULL)
"""


async def read_places(
    pool: asyncpg.Pool, places: Collection[str], patience_s: float
) -> dict[str, IndexedPlace]:
    """The indexed ones of these addresses and pool ids: pools, curves and tokens. Empty where the database is
    unavailable or takes longer than ``patience_s``."""
    try:
        rows = await _run_within(patience_s, _fetch_places(pool, [as_bytes(place) for place in places]))
    except DATABASE_FAULTS:
        return {}
    return {str(at): place for at, place in rows}


async def _fetch_places(pool: asyncpg.Pool, places: list[bytes]) -> list[tuple[HexBytes, IndexedPlace]]:
    async with pool.acquire() as connection:
        return await fetch(connection, tuple[HexBytes, IndexedPlace], _PLACES, places)


async def _read_snapshot(
    pool: asyncpg.Pool, token: Address, since: datetime, holders: HolderDraw | None
) -> TokenIndex:
    async with (
        pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        synced = await cursor.cursor(connection)
        token_id = await tokens.id_of(connection, token)
        pools: list[PoolPlace] = []
        others: list[OtherPool] = []
        facts = NOTHING
        if token_id is not None and synced is not None:
            pools = await cursor.pools_of(connection, token_id, MAX_VENUES_A_TOKEN + 1)
            others = await cursor.pools_no_check_trades(connection, token_id, MAX_OTHERS_COUNTED)
        caught = await read_caught_holders(connection, token, since)
        if holders is not None and holders.only_caught and len(caught) < LEAST_CAUGHT:
            holders = None
        if token_id is not None:
            facts = await _read_facts(connection, token, token_id, holders)
        recalled = await read_recalled_wallets(connection, token, since)
        return TokenIndex(
            0 if synced is None else synced.block.number,
            synced.block.number if synced is not None and synced.is_whole() else None,
            tuple(pools),
            tuple(others),
            facts,
            tuple(recalled),
            tuple(caught),
        )


async def _read_facts(
    connection: Connection, token: Address, token_id: int, draw: HolderDraw | None
) -> IndexInputs:
    """The token's deployer, the results of its launches, and the drawn holders."""
    launch = await deployers.own(connection, token_id)
    holders: tuple[Address, ...] = ()
    if draw is not None:
        without = {*draw.without, token} if launch is None else {*draw.without, token, launch.deployer}
        holders = await traders_holding(connection, token_id, without, draw.seed, draw.limit, draw.least_wei)
    if launch is None:
        return IndexInputs(holders)
    record = (await deployers.records(connection, [launch.deployer_id]))[launch.deployer_id]
    # What the deployer got other than by buying is unknown: it got at least what it sold.
    got_raw = max(launch.bought_raw, launch.sold_raw)
    deployer = DeployerRecord(record.launches, record.graduated, record.sold_own, got_raw, launch.sold_raw)
    return IndexInputs(holders, launch.deployer, deployer)


_abandoned = set[asyncio.Task[object]]()


async def _run_within(patience_s: float, work: Coroutine[object, object, T]) -> T:
    """The result of ``work``. Raises TimeoutError. Cancelled work may still roll back on the server; nothing
    waits for that."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=patience_s)
    finally:
        if not task.done():
            task.cancel()
            _abandoned.add(task)
            task.add_done_callback(_discard_abandoned)
    if not done:
        raise TimeoutError
    return task.result()


def _discard_abandoned(task: asyncio.Task[object]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()
