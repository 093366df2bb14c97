"""Answers who can withdraw a token's liquidity, and what a buyer would then have left."""

from collections.abc import Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import structlog

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.liquidity.depth import HeldPosition, PoolDepth, TokenDepth, TokenPositions
from roundtrip.domain.liquidity.text import ExitAfterWithdrawal, describe
from roundtrip.domain.liquidity.unlocks import Unlock
from roundtrip.domain.market.exposure import LeavingLiquidity
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import head_of_index
from roundtrip.services.support.answer_fields import TokenParams, at
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.check_answer import Check
from roundtrip.services.support.index_reader import when
from roundtrip.services.support.money import amount, symbol_of
from roundtrip.store.boards.moving import put_leaving
from roundtrip.store.index import origins
from roundtrip.store.liquidity.positions import put_unlocks, read_positions
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.venues.positions import is_nft

from .findings import LiquidityFindings
from .gather import find_liquidity
from .holder_tags import accounts_to_tag, holders_to_tag, join_tags, read_holders
from .position_reader import MAX_POOLS, MAX_POSITIONS
from .schema import (
    ExitAfterLeaving,
    FeesOf,
    Liquidity,
    LiquidityHolder,
    LiquidityPosition,
    LiquidityTotals,
    LiquidityVenue,
    UnlockOf,
)
from .sentence import UNREAD, Tags, add_sentence, tag_accounts

_READ_S = 5.0
_MAX_TAGGED = 100
"""Accounts whose funders are looked up."""
log = structlog.get_logger(__name__)


async def read_liquidity(ctx: Context, params: TokenParams) -> UseCaseAnswer[Liquidity]:
    """Who can withdraw the liquidity. Raises NodeFault, and ServiceFull (busy) where the index does not
    answer."""
    token, meter, of_holders = params.token(), Meter(), Meter()
    head, _ = await head_of_index(ctx)
    indexed = await _read_indexed(ctx, token)
    found, record = await at_once(
        _find_at_newest(ctx, head, token, indexed, meter),
        read_holders(ctx, token, holders_to_tag(indexed, ctx.contracts), of_holders),
    )
    meter.add(of_holders)
    await _keep_unlocks(ctx, found)
    await _keep_leaving(ctx, token, found)
    own_tags = await _read_tags(ctx, found)
    tags, tags_complete = join_tags(own_tags, record, accounts_to_tag(_accounts(found), ctx.contracts))
    answer = present_liquidity(found, tags, ctx, tags_complete)
    return UseCaseAnswer(
        answer,
        ctx.policy.answer_ttl_ms,
        meter=meter,
        block=found.head.block.number,
        is_absence=not found.depth.pools,
    )


async def check_with_liquidity(
    ctx: Context, token: Address, deep_check: Coroutine[Any, Any, UseCaseAnswer[Check]]
) -> UseCaseAnswer[Check]:
    """A deep check of the token that also says in a sentence who can withdraw the liquidity. The sentence is
    part of neither the verdict's code and level nor the evidence. Raises like ``deep_check``."""
    meter = Meter()
    checked, sentence = await at_once(deep_check, _read_sentence(ctx, token, meter))
    if checked.meter is not None:
        checked.meter.add(meter)
    answer: Check = checked.answer
    return replace(checked, answer=add_sentence(answer, sentence))


async def _read_sentence(ctx: Context, token: Address, meter: Meter) -> str:
    """The sentence that matters most; one that says so where nothing could be found out."""
    try:
        found, tags = await _find(ctx, token, meter)
    except (NodeFault, ServiceFull) as error:
        log.info("liquidity could not be read", error=repr(error))
        return UNREAD
    return describe(found.depth, found.exit_after, tags)[0]


async def _keep_unlocks(ctx: Context, found: LiquidityFindings) -> None:
    """Stores when locked positions can be withdrawn, for the calendar and for alerts. Of a position whose
    contract could not be tried, what an earlier reading found stays; where the database does not answer, only
    the next reading stores them. Anybody can lock dust, so a small part is no event."""
    token = found.bought.run.token
    untried = {
        (one.position.owner, one.position.number)
        for one in _positions(found)
        if one.is_contract and one.held_by == "unknown"
    }
    unlocks = [
        Unlock(token, held.position.owner, held.position.number, held.lock.wallet, held.lock.at_s, bps)
        for pool in found.depth.pools
        for held in pool.positions
        if held.lock is not None and held.lock.is_exact and held.lock.wallet is not None
        for bps in (pool.share_bps(held),)
        if found.depth.is_out_of_range() or found.depth.part_bps(pool, held) >= _LEAST_UNLOCK_BPS
    ]
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection, connection.transaction():
            await put_unlocks(connection, token, unlocks, found.head.block.number, untried)
    except DATABASE_FAULTS as error:
        log.warning("unlocks could not be stored", error=repr(error))


_LEAST_UNLOCK_BPS = 100
"""Of the worth of all pools, or of the money in all positions."""


async def _keep_leaving(ctx: Context, token: Address, found: LiquidityFindings) -> None:
    """Stores what liquidity can leave, for boards. Where the database does not answer, only the next reading
    stores it."""
    at = datetime.fromtimestamp(ctx.now_s(), UTC)
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            await put_leaving(connection, token, _leaving_of(found.depth), at)
    except DATABASE_FAULTS as error:
        log.warning("what can leave could not be stored", error=repr(error))


def _leaving_of(depth: TokenDepth) -> LeavingLiquidity | None:
    """Of each kind of holder the larger share: of the liquidity in range, or of the money in all positions.
    None: no pool was found, no share is known, or what was not read may be most of it."""
    if depth.unread or not depth.pools:
        return None
    shares = {held_by: max(bps, depth.money_bps.get(held_by, 0)) for held_by, bps in depth.totals_bps.items()}
    if not any(shares.values()):
        return None
    unproven_bps = min(BPS, shares["contract"] + shares["unknown"])
    return LeavingLiquidity(shares["free"], unproven_bps)


async def _find(ctx: Context, token: Address, meter: Meter) -> tuple[LiquidityFindings, Tags]:
    head, _ = await head_of_index(ctx)
    found = await _find_at_newest(ctx, head, token, await _read_indexed(ctx, token), meter)
    return found, await _read_tags(ctx, found)


async def _find_at_newest(
    ctx: Context, head: ChainHead, token: Address, indexed: TokenPositions | None, meter: Meter
) -> LiquidityFindings:
    """The findings at the head; where there is no pool, at the node's newest block. Raises NodeFault."""
    found = await find_liquidity(ctx, head, token, indexed, meter)
    if found.depth.pools or (newest := await ctx.heads.refresh()).block == head.block:
        return found
    return await find_liquidity(ctx, newest, token, indexed, meter)


async def _read_indexed(ctx: Context, token: Address) -> TokenPositions | None:
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            return await read_positions(connection, ctx.contracts, token, MAX_POOLS, MAX_POSITIONS)
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "The index of positions is unavailable; retry in 5 s.", 5) from error


def _positions(found: LiquidityFindings) -> list[HeldPosition]:
    return [held for pool in found.depth.pools for held in pool.positions]


# --- who they are -----------------------------------------------------------------------------------


async def _read_tags(ctx: Context, found: LiquidityFindings) -> Tags:
    """What is known of the accounts that hold or can withdraw something, as to the token."""
    listed = _accounts(found)[:_MAX_TAGGED]
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            known = await origins.origins_of(connection, tuple(listed)) if listed else {}
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "The index of wallets is unavailable; retry in 5 s.", 5) from error
    funders = {wallet: origin.funder for wallet, origin in known.items()}
    return tag_accounts(listed, funders, found.bought)


def _accounts(found: LiquidityFindings) -> list[Address]:
    """Who can withdraw something, then who holds something."""
    held = _positions(found)
    accounts = [one.withdrawal.wallet for one in held if one.withdrawal is not None]
    accounts += [one.position.holder for one in held if one.position.holder is not None]
    return list(dict.fromkeys(accounts))


# --- the answer -------------------------------------------------------------------------------------


def present_liquidity(found: LiquidityFindings, tags: Tags, ctx: Context, tags_complete: bool) -> Liquidity:
    """The answer."""
    depth, bought = found.depth, found.bought
    has_any = not depth.is_out_of_range() or any(depth.totals_bps.values())
    return Liquidity(
        text=" ".join(describe(depth, found.exit_after, tags)),
        address=bought.run.token,
        chain_id=ctx.chain_id,
        block=found.head.block.number,
        checked_at=at(ctx.now_s()),
        totals=_present_totals(depth) if has_any else None,
        if_it_left=None if found.exit_after is None else _present_exit(found.exit_after, tags),
        venues=[present_venue(pool, depth, bought, tags) for pool in depth.pools],
        pools_complete=found.has_all_pools(),
        tags_complete=tags_complete,
    )


def _present_totals(depth: TokenDepth) -> LiquidityTotals:
    return LiquidityTotals(**{f"{held_by}_bps": bps for held_by, bps in depth.totals_bps.items()})


def _present_exit(exit_after: ExitAfterWithdrawal, tags: Tags) -> ExitAfterLeaving:
    return ExitAfterLeaving(
        by=_present_holder(exit_after.party.wallet, tags),
        share_bps=exit_after.party.share_bps,
        now_loss_bps=exit_after.now_bps,
        loss_bps=exit_after.loss_bps,
        known=not exit_after.missing,
        reverts=exit_after.reason or None,
    )


def _present_holder(account: Address, tags: Tags) -> LiquidityHolder:
    return LiquidityHolder(account, list(tags.get(account, ())))


def present_venue(pool: PoolDepth, depth: TokenDepth, bought: BuyRoundResult, tags: Tags) -> LiquidityVenue:
    """A venue of the answer."""
    whole_wei = sum(one.worth_wei or 0 for one in depth.pools)
    known = sum(held.active_liquidity() for held in pool.positions)
    share_bps = None if pool.worth_wei is None or not whole_wei else pool.worth_wei * BPS // whole_wei
    return LiquidityVenue(
        kind=pool.venue.kind,
        at=pool.venue.at(),
        quote=pool.venue.quote,
        share_bps=share_bps,
        liquidity=str(pool.liquidity),
        known_bps=min(BPS, known * BPS // pool.liquidity) if pool.liquidity else 0,
        positions=[_present_position(pool, held, bought, tags) for held in pool.positions],
        left_out=pool.left_out,
    )


def _present_position(
    pool: PoolDepth, held: HeldPosition, bought: BuyRoundResult, tags: Tags
) -> LiquidityPosition:
    position, contracts = held.position, bought.run.means.contracts
    withdrawal, lock = held.withdrawal, held.lock
    nft = is_nft(position, pool.venue, contracts)
    return LiquidityPosition(
        manager=position.owner,
        number=str(position.number) if nft else None,
        tick_lower=position.tick_lower,
        tick_upper=position.tick_upper,
        in_range=held.is_active,
        liquidity=str(position.liquidity),
        share_bps=pool.share_bps(held),
        holder=None if position.holder is None else _present_holder(position.holder, tags),
        held_by=held.held_by,
        locker=held.locker,
        withdrawn_by=None if withdrawal is None else _present_holder(withdrawal.wallet, tags),
        withdrawn_through=(withdrawal.function or None) if withdrawal is not None else None,
        unlock=None if lock is None else UnlockOf(when(lock.at_s), lock.is_exact, lock.wallet),
        fees=_present_fees(held, pool, bought),
    )


def _present_fees(held: HeldPosition, pool: PoolDepth, bought: BuyRoundResult) -> FeesOf | None:
    if held.fees_raw is None:
        return None
    token_raw, quote_raw = held.fees_raw
    facts, market, contracts = bought.data.facts, bought.run.setting.market, bought.run.means.contracts
    decimals = facts.decimals if isinstance(facts.decimals, int) else None
    said = facts.symbol_data
    symbol = symbol_of(bytes.fromhex(said[2:])) if isinstance(said, str) else None
    quote_decimals = next((r.decimals for r in market.rates if r.asset == pool.venue.quote_address), None)
    return FeesOf(
        amount(token_raw, bought.run.token, decimals, symbol, contracts),
        amount(quote_raw, pool.venue.quote_address, quote_decimals, None, contracts),
    )
