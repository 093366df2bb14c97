"""A check up to its evidence: its inputs, with what the index knows, and its rounds."""

import asyncio
from dataclasses import replace

import asyncpg

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.blocks.venue_index import MOST_VENUES_A_TOKEN, VenueIndex
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import DeployerRecord, Evidence
from roundtrip.domain.check.proof_input import NOTHING, IndexInputs
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import addresses, cursor, deployers
from roundtrip.store.server.errors import DATABASE_FAULTS
from roundtrip.store.wallets import traders
from roundtrip.venues import amm_v3, amm_v4, launchpad_curve
from roundtrip.venues.base import Contracts, quote_name

from .buy_round import BuyRoundResult, CheckInputs, role_of, run_buy_round
from .candidates import Candidates, KnownVenues, list_candidates
from .deep_round import run_later_rounds
from .recalled import read_recalled


async def gather_evidence(ctx: Context, token: Address, meter: Meter, *, deep: bool = False) -> Evidence:
    """Runs a check at the followed head, up to its evidence. Raises NodeFault when the buy round has no
    usable answer."""
    bought = await start_check(ctx, ctx.heads.current(), token, meter, deep, crowd=True)
    return await run_later_rounds(bought, meter)


async def start_check(
    ctx: Context, head: ChainHead, token: Address, meter: Meter, deep: bool = False, *, crowd: bool = False
) -> BuyRoundResult:
    """Prepares the inputs and runs the buy round. ``crowd``: for a verdict; prices need no crowd. Raises like
    ``gather_evidence``."""
    inputs = replace(await prepare_inputs(ctx, head, token, deep), crowd=crowd)
    bought = await run_buy_round(ctx.means(), inputs, meter)
    remember_launch(ctx, bought)
    return bought


async def prepare_inputs(ctx: Context, head: ChainHead, token: Address, deep: bool = False) -> CheckInputs:
    """The inputs of a new check, with a new seed. Money has no candidates."""
    seed = ctx.entropy()
    if role_of(token, ctx.contracts) != "token":
        return CheckInputs(head, token, seed, Candidates((), 0, 0, True), deep)
    known = await read_known_venues(
        ctx.heads.venue_index, ctx.pool, ctx.contracts, token, ctx.index_patience_s
    )
    candidates = list_candidates(known, ctx.contracts, token, ctx.policy.most_scouted)
    most_holders = ctx.policy.most_holders if deep else 0
    indexed = await read_index_facts(ctx.pool, ctx.contracts, token, seed, most_holders, ctx.index_patience_s)
    recalled = await read_recalled(ctx.pool, token, ctx.now_s(), ctx.policy, ctx.index_patience_s)
    return CheckInputs(head, token, seed, candidates, deep, indexed, recalled=recalled)


def remember_launch(ctx: Context, bought: BuyRoundResult) -> None:
    """Adds the launchpad's venues to the venue index, for later checks."""
    if bought.new_venues and ctx.heads.venue_index is not None:
        ctx.heads.venue_index.add(bought.run.token, bought.new_venues)


# --- what the index knows of the token ---------------------------------------------------------------


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
    others = book.others(token)
    return KnownVenues(book.venues_of(token), others, book.complete(token), book.other_pools(token))


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
