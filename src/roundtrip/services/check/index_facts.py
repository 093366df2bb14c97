"""What the index knows of a token before it is checked: its places, told to the book that checks look into,
who holds it, and who launched it."""

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

_PATIENCE_S = 0.5


async def load_known_venues(
    book: VenueIndex | None, pool: asyncpg.Pool, contracts: Contracts, token: Address
) -> None:
    """Tells the book of the places from before it began, once a token. What follows it hears of itself. Where
    the database cannot be asked the book stays as it is: not whole."""
    if book is None or not book.needs_history(token):
        return
    try:
        async with asyncio.timeout(_PATIENCE_S), pool.acquire() as connection:
            stands = await cursor.cursor(connection)
            if stands is None:
                return
            found = await cursor.pools_of(connection, token, MOST_VENUES_A_TOKEN + 1)
            others = await cursor.unpaid_places_of(connection, token, book.most_counted)
    except DATABASE_FAULTS:
        return
    venues = tuple(venue_of(found_pool, contracts) for found_pool in found)
    book.add_history(token, venues, others, stands.block.number if stands.is_whole() else None)


async def read_index_facts(
    pool: asyncpg.Pool, contracts: Contracts, token: Address, seed: bytes, most_holders: int
) -> IndexInputs:
    """Who launched it and how that wallet's launches went, and at most so many wallets that hold it; nothing
    where there is no index. Where the database does not answer in time, the holders are unread: nobody was
    asked is no answer then. ``seed``: 32 bytes, by which some are drawn."""
    try:
        async with asyncio.timeout(_PATIENCE_S), pool.acquire() as connection:
            token_id = await addresses.id_of(connection, token)
            if token_id is None:
                return NOTHING
            own = await deployers.own(connection, token_id)
            found: tuple[Address, ...] = ()
            if most_holders:
                without = (
                    BURN_ADDRESSES | contracts.all_addresses() | {token, *([own.deployer] if own else [])}
                )
                found = await traders.traders_holding(connection, token_id, without, seed, most_holders)
            if own is None:
                return IndexInputs(found)
            record = (await deployers.records(connection, [own.deployer_id]))[own.deployer_id]
    except DATABASE_FAULTS:
        return IndexInputs(unread=most_holders > 0)
    # What he got otherwise than by buying is not known: at least what he sold.
    got_raw = max(own.bought_raw, own.sold_raw)
    told = DeployerRecord(record.launches, record.graduated, record.sold_own, got_raw, own.sold_raw)
    return IndexInputs(found, own.deployer, told)


def venue_of(pool: PoolPlace, contracts: Contracts) -> Venue:
    """The place as checks know it."""
    if pool.kind == launchpad_curve.KIND:
        return launchpad_curve.curve(pool.quote, Address(pool.at), contracts)
    if pool.kind == amm_v3.KIND:
        return amm_v3.pool(pool.token, pool.quote, pool.fee_pips, contracts)
    name = quote_name(pool.quote, contracts)
    fee, spacing = pool.fee_pips, pool.tick_spacing
    return amm_v4.pool(pool.kind, pool.token, name, pool.quote, fee, spacing, pool.hook)
