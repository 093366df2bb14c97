"""All that the index knows of a token for a check: read at one moment, over one connection."""

import asyncio
from collections.abc import Collection, Coroutine
from datetime import datetime
from typing import NamedTuple, TypeVar

import asyncpg

from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import Address, HexBytes
from roundtrip.domain.base.venue import MAX_OTHERS_COUNTED, MAX_VENUES_A_TOKEN, OtherPool, VenueKind
from roundtrip.domain.check.evidence import DeployerRecord
from roundtrip.domain.check.proof_input import NOTHING, IndexInputs, TokenIndex
from roundtrip.store.index import addresses, cursor, deployers
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.server.hex import as_bytes
from roundtrip.store.server.rows import Connection, fetch
from roundtrip.store.wallets import traders

from . import recalled_wallets

T = TypeVar("T")


class HolderDraw(NamedTuple):
    """Which holders are read: at most ``limit`` wallets, none of ``without``, drawn with ``seed`` (32
    bytes)."""

    limit: int
    seed: bytes
    without: Collection[Address]


async def read_token_index(
    pool: asyncpg.Pool, token: Address, patience_s: float, since: datetime, holders: HolderDraw | None = None
) -> TokenIndex | None:
    """One snapshot of the index. ``since``: wallets recalled before that are not read. ``holders`` None: no
    holder is read. Returns None where the database is unavailable or takes longer than ``patience_s``."""
    try:
        return await _run_within(patience_s, _read(pool, token, since, holders))
    except DATABASE_FAULTS:
        return None


class IndexedPlace(NamedTuple):
    """The token that trades at a place for money. ``kind`` None: the place is the token's own address."""

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


async def _read(
    pool: asyncpg.Pool, token: Address, since: datetime, holders: HolderDraw | None
) -> TokenIndex:
    async with (
        pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        synced = await cursor.cursor(connection)
        token_id = await addresses.id_of(connection, token)
        pools: list[PoolPlace] = []
        others: list[OtherPool] = []
        facts = NOTHING
        if token_id is not None and synced is not None:
            pools = await cursor.pools_of(connection, token_id, MAX_VENUES_A_TOKEN + 1)
            others = await cursor.unpaid_places_of(connection, token_id, MAX_OTHERS_COUNTED)
        if token_id is not None:
            facts = await _read_facts(connection, token, token_id, holders)
        recalled = await recalled_wallets.read(connection, token, since)
        return TokenIndex(
            0 if synced is None else synced.block.number,
            synced.block.number if synced is not None and synced.is_whole() else None,
            tuple(pools),
            tuple(others),
            facts,
            tuple(recalled),
        )


async def _read_facts(
    connection: Connection, token: Address, token_id: int, draw: HolderDraw | None
) -> IndexInputs:
    """The token's deployer, the results of its launches, and the drawn holders."""
    launch = await deployers.own(connection, token_id)
    holders: tuple[Address, ...] = ()
    if draw is not None:
        without = {*draw.without, token} if launch is None else {*draw.without, token, launch.deployer}
        holders = await traders.traders_holding(connection, token_id, without, draw.seed, draw.limit)
    if launch is None:
        return IndexInputs(holders)
    record = (await deployers.records(connection, [launch.deployer_id]))[launch.deployer_id]
    # What the deployer got other than by buying is unknown: it got at least what it sold.
    got_raw = max(launch.bought_raw, launch.sold_raw)
    deployer = DeployerRecord(record.launches, record.graduated, record.sold_own, got_raw, launch.sold_raw)
    return IndexInputs(holders, launch.deployer, deployer)


_abandoned = set[asyncio.Task[object]]()


async def _run_within(patience_s: float, work: Coroutine[object, object, T]) -> T:
    """The result of ``work``. Raises TimeoutError. Cancelled work may wait for the server once more, to roll
    back: nobody waits for that."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=patience_s)
    finally:
        if not task.done():
            task.cancel()
            _abandoned.add(task)
            task.add_done_callback(_forget)
    if not done:
        raise TimeoutError
    return task.result()


def _forget(task: asyncio.Task[object]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()
