"""The index's facts about a token before its check: venues, holders, deployer."""

import asyncio

import asyncpg

from roundtrip.chain.blocks.venue_index import MOST_VENUES_A_TOKEN, VenueIndex
from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import DeployerRecord
from roundtrip.domain.check.proof_input import NOTHING, IndexInputs
from roundtrip.store.index import addresses, cursor, deployers
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.wallets import traders
from roundtrip.venues import amm_v3, amm_v4, launchpad_curve
from roundtrip.venues.base import Contracts, quote_name

from .candidates import KnownVenues


async def read_known_venues(
    book: VenueIndex | None, pool: asyncpg.Pool, contracts: Contracts, token: Address, patience_s: float
) -> KnownVenues:
    """The token's venues in this process's venue index. Once per token they are completed from the database
    with the pools from before this process started; where the database does not answer in time, they stay
    incomplete."""
    if book is not None and book.needs_history(token):
        await _complete_from_database(book, pool, contracts, token, patience_s)
    return known_venues(book, token)


def known_venues(book: VenueIndex | None, token: Address) -> KnownVenues:
    """The token's venues in the venue index now."""
    if book is None:
        return KnownVenues()
    return KnownVenues(book.venues_of(token), book.others(token), book.complete(token))


async def _complete_from_database(
    book: VenueIndex, pool: asyncpg.Pool, contracts: Contracts, token: Address, patience_s: float
) -> None:
    try:
        async with asyncio.timeout(patience_s), pool.acquire() as connection:
            synced = await cursor.cursor(connection)
            if synced is None:
                return
            pools = await cursor.pools_of(connection, token, MOST_VENUES_A_TOKEN + 1)
            others = await cursor.unpaid_places_of(connection, token, book.most_counted)
    except DATABASE_FAULTS:
        return
    venues = tuple(venue_of(known_pool, contracts) for known_pool in pools)
    book.add_history(token, venues, others, synced.block.number if synced.is_whole() else None)


async def read_index_facts(
    pool: asyncpg.Pool,
    contracts: Contracts,
    token: Address,
    seed: bytes,
    most_holders: int,
    patience_s: float,
) -> IndexInputs:
    """The token's deployer, the results of its launches, and at most ``most_holders`` wallets that hold the
    token, some of them drawn by ``seed`` (32 bytes). Empty where the token is not indexed. Where the database
    does not answer in time, ``unread`` is True, which differs from no holders."""
    try:
        async with asyncio.timeout(patience_s), pool.acquire() as connection:
            token_id = await addresses.id_of(connection, token)
            if token_id is None:
                return NOTHING
            launch = await deployers.own(connection, token_id)
            holders: tuple[Address, ...] = ()
            if most_holders:
                left_out = BURN_ADDRESSES | contracts.all_addresses() | {token}
                left_out |= {launch.deployer} if launch else set()
                holders = await traders.traders_holding(connection, token_id, left_out, seed, most_holders)
            if launch is None:
                return IndexInputs(holders)
            record = (await deployers.records(connection, [launch.deployer_id]))[launch.deployer_id]
    except DATABASE_FAULTS:
        return IndexInputs(unread=most_holders > 0)
    # What the deployer got other than by buying is unknown: it got at least what it sold.
    got_raw = max(launch.bought_raw, launch.sold_raw)
    deployer = DeployerRecord(record.launches, record.graduated, record.sold_own, got_raw, launch.sold_raw)
    return IndexInputs(holders, launch.deployer, deployer)


def venue_of(pool: PoolPlace, contracts: Contracts) -> Venue:
    """An indexed pool as a venue."""
    if pool.kind == launchpad_curve.KIND:
        return launchpad_curve.curve(pool.quote, Address(pool.at), contracts)
    if pool.kind == amm_v3.KIND:
        return amm_v3.pool(pool.token, pool.quote, pool.fee_pips, contracts)
    name = quote_name(pool.quote, contracts)
    fee, spacing = pool.fee_pips, pool.tick_spacing
    return amm_v4.pool(pool.kind, pool.token, name, pool.quote, fee, spacing, pool.hook)
