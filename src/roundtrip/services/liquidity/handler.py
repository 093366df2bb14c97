"""Answers who can withdraw a token's liquidity, and what a buyer would then have left.

Reads a token's positions at a block, and finds out who can withdraw them.

One trip for the buy round of a check and, at once, the pools, the positions and their holders. Three for
positions that contracts hold. One for the sells after the withdrawal.

Tags from the token's holders, for the accounts that hold its liquidity or can withdraw it.

The answer about a token's liquidity."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import structlog

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.errors import CallerFault, NodeFault, ReadFailed, ServiceFull
from roundtrip.domain.base.types import BPS, BURN_ADDRESSES, Address
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.liquidity.depth import HeldBy, HeldPosition, PoolDepth, TokenDepth, TokenPositions
from roundtrip.domain.liquidity.text import ExitAfterWithdrawal, Tag, describe
from roundtrip.domain.liquidity.unlocks import Unlock
from roundtrip.domain.market.moving import LeavingLiquidity
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import Check, CheckParams
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.candidates import venue_of
from roundtrip.services.engine.token_check import start_check
from roundtrip.services.holders.collect import gather_holders
from roundtrip.services.holders.findings import AccountTags, HolderRecord, tag_accounts
from roundtrip.services.liquidity.findings import (
    LIQUIDITY_UNREAD,
    LiquidityFindings,
    Tags,
    add_sentence,
    judge_liquidity,
    list_tags,
)
from roundtrip.services.liquidity.position_reader import MAX_POOLS, MAX_POSITIONS, KnownPool, PositionReader
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import head_of_index
from roundtrip.services.support.answer_fields import AnswerText, Reverts, at, read_address, says
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.index_reader import when
from roundtrip.services.support.money import AssetAmount, amount, symbol_of
from roundtrip.store.boards.moving import put_leaving
from roundtrip.store.index import origins
from roundtrip.store.liquidity.positions import put_unlocks, read_positions
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.venues.base import Contracts
from roundtrip.venues.positions import is_nft


async def find_liquidity(
    ctx: Context, head: ChainHead, token: Address, indexed: TokenPositions | None, meter: Meter
) -> LiquidityFindings:
    """Everything at one block. ``indexed``: the positions that the index knows; None: there is no index.
    Raises NodeFault."""
    pools = () if indexed is None else indexed.pools
    known = {venue_of(pool.pool, ctx.contracts): KnownPool(pool.positions, pool.left_out) for pool in pools}
    buying, reading = Meter(), Meter()
    reader = PositionReader(ctx.node, ctx.contracts, head.block, reading)
    bought, _ = await at_once(start_check(ctx, head, token, buying), reader.read(known))
    meter.add(buying, reading)
    reader.meter = meter
    return await judge_liquidity(bought, reader)


HOLDERS_S = 3.0
"""How long an answer waits for the holders: who can withdraw matters more than the tags."""
_MAX_TRACED = 16
log = structlog.get_logger(__name__)


def holders_to_tag(indexed: TokenPositions | None, contracts: Contracts) -> tuple[Address, ...]:
    """Who holds the positions that the index knows, the most important first, except burn addresses and the
    launchpad's contracts."""
    pools = () if indexed is None else indexed.pools
    return accounts_to_tag((held.holder for pool in pools for held in pool.positions), contracts)


def accounts_to_tag(accounts: Iterable[Address | None], contracts: Contracts) -> tuple[Address, ...]:
    """The accounts, each once, except burn addresses and the launchpad's contracts."""
    skipped = BURN_ADDRESSES | contracts.launchpad_addresses()
    return tuple(one for one in dict.fromkeys(accounts) if one is not None and one not in skipped)


async def read_holders(
    ctx: Context, token: Address, accounts: Sequence[Address], meter: Meter, most_s: float = HOLDERS_S
) -> HolderRecord | None:
    """What is known of the token's holders, and of the first ``accounts``. None: there are no accounts, or it
    could not be read in ``most_s``; the book keeps what was folded until then."""
    if not accounts:
        return None
    try:
        async with asyncio.timeout(most_s):
            return await gather_holders(ctx, token, meter, accounts[:_MAX_TRACED])
    except (TimeoutError, NodeFault, ReadFailed, ServiceFull, CallerFault) as error:
        log.info("holders could not be read for the liquidity's tags", error=repr(error))
        return None


def join_tags(own: Tags, record: HolderRecord | None, accounts: Sequence[Address]) -> tuple[Tags, bool]:
    """The liquidity's ``own`` tags, then those of the holders, each once; and whether all are known."""
    if not accounts:
        return own, True
    found = AccountTags({}, is_complete=False) if record is None else tag_accounts(record, accounts)
    joined = {
        account: tuple(dict.fromkeys((*own.get(account, ()), *found.tags.get(account, ()))))
        for account in (*own, *found.tags)
    }
    return joined, found.is_complete


class LiquidityParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which token."""

    address: Annotated[
        str,
        msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$", description="The token's address, 0x and 40 hex digits."),
    ]

    def token(self) -> Address:
        """The address, lower-cased. Raises CallerFault (bad_address)."""
        return read_address(self.address)


ShareBps = Annotated[int, says("Share of the token's liquidity in range, in hundredths of a percent.")]


class LiquidityTotals(msgspec.Struct, frozen=True, rename="camel"):
    """Who has how much of the liquidity in range, over all venues of the answer, by its worth; rounded
    down."""

    free_bps: Annotated[int, says("Somebody can withdraw it now.")]
    locked_bps: Annotated[
        int, says("A contract of known code keeps it: a simulated withdrawal is refused now.")
    ]
    contract_bps: Annotated[
        int,
        says(
            "A contract of unknown code holds it, and nobody that was tried can withdraw it now. "
            "Not a pass: code can hide a way out."
        ),
    ]
    burned_bps: Annotated[int, says("A burn address holds it.")]
    launchpad_bps: Annotated[int, says("The launchpad's curve or its locker holds it for ever.")]
    unknown_bps: Annotated[int, says("It could not be found out who can withdraw it: not a pass.")]


class LiquidityHolder(msgspec.Struct, frozen=True, rename="camel"):
    """An account that holds or can withdraw liquidity."""

    address: Annotated[str, says("Its address.")]
    tags: Annotated[
        list[Tag],
        says(
            "What is known of it as to the token. owner, funded_by_owner: the token's owner. The "
            "others are those of token_holders. Empty: nothing is known; see tagsComplete."
        ),
    ]


class UnlockOf(msgspec.Struct, frozen=True, rename="camel"):
    """When somebody can withdraw a position."""

    at: Annotated[datetime, says("The time. exact false: not before it.")]
    exact: Annotated[
        bool, says("A simulated withdrawal is refused a second before and succeeds at the time.")
    ]
    by: Annotated[str | None, says("Who can withdraw it then. null: not known.")]


class FeesOf(msgspec.Struct, frozen=True):
    """Fees that a position has earned and nobody has claimed."""

    token: Annotated[AssetAmount, says("Of the token.")]
    quote: Annotated[AssetAmount, says("Of what the pool trades it for.")]


class LiquidityPosition(msgspec.Struct, frozen=True, rename="camel"):
    """A position in a pool."""

    manager: Annotated[str, says("Whom the pool knows as its owner: a position manager, or a contract.")]
    number: Annotated[str | None, says("The manager's number of its NFT. null: it is none.")]
    tick_lower: Annotated[int, says("The lower end of its range.")]
    tick_upper: Annotated[int, says("The upper end of its range.")]
    in_range: Annotated[bool, says("Whether it trades at the pool's price; else it has no active depth.")]
    liquidity: Annotated[str, says("Its liquidity, in the pool's units.")]
    share_bps: Annotated[int, says("Share of the pool's liquidity in range, in hundredths of a percent.")]
    holder: Annotated[LiquidityHolder | None, says("Who holds it. null: not known.")]
    held_by: Annotated[
        HeldBy,
        says(
            "free: somebody can withdraw it now. locked: a contract of known code keeps it. "
            "contract: a contract of unknown code has it, and nobody that was tried can withdraw it now. "
            "burned: a burn address has it. launchpad: the launchpad keeps it. unknown: not found out."
        ),
    ]
    locker: Annotated[str | None, says("The name of a known contract. null: it is none.")]
    withdrawn_by: Annotated[
        LiquidityHolder | None, says("Who can withdraw it now. null: nobody that is known.")
    ]
    withdrawn_through: Annotated[
        str | None, says("The contract's function by which. null: by the holder itself, or by none.")
    ]
    unlock: Annotated[UnlockOf | None, says("When it can be withdrawn. null: not known.")]
    fees: Annotated[FeesOf | None, says("Fees not claimed yet. null: not known.")]


class LiquidityVenue(msgspec.Struct, frozen=True, rename="camel"):
    """A pool or a curve, and who holds its liquidity."""

    kind: Annotated[VenueKind, says("What kind of venue it is.")]
    at: Annotated[str | None, says("The pool's or curve's address, or the pool's id. null: it has neither.")]
    quote: Annotated[str, says("What it trades for: eth, weth, usdg, or a token.")]
    share_bps: Annotated[
        int | None,
        says(
            "Its share of the liquidity of all venues here, in hundredths of a percent. null: "
            "the worth of its quote is not known."
        ),
    ]
    liquidity: Annotated[str, says("Liquidity in range, in the pool's units; 0 on a curve.")]
    known_bps: Annotated[
        int,
        says(
            "Share of the liquidity in range that the positions here account for, in hundredths of a percent."
        ),
    ]
    positions: Annotated[
        list[LiquidityPosition], says("The largest in range first. Empty: a curve, or none is known.")
    ]
    left_out: Annotated[int, says("Smaller positions that were not read.")]


class ExitAfterLeaving(msgspec.Struct, frozen=True, rename="camel"):
    """What a buyer gets back after the largest party has withdrawn all that it can now, simulated."""

    by: Annotated[LiquidityHolder, says("Who withdraws.")]
    share_bps: ShareBps
    now_loss_bps: Annotated[
        int | None,
        says(
            "Loss of the round trip without the withdrawal, in hundredths of a percent. null: no "
            "sell succeeds, or it is not known."
        ),
    ]
    loss_bps: Annotated[
        int | None,
        says(
            "Loss after it, where the sell brings most, in hundredths of a percent. null: no "
            "sell succeeds, or it is not known (known false)."
        ),
    ]
    known: Annotated[bool, says("Whether the simulation gave a result.")]
    reverts: Reverts


class Liquidity(msgspec.Struct, frozen=True, rename="camel"):
    """Who can withdraw a token's liquidity."""

    text: AnswerText
    address: Annotated[str, says("The token's address.")]
    chain_id: Annotated[int, says("Id of the chain; Robinhood Chain is 4663.")]
    block: Annotated[int, says("The block at which everything was read and simulated.")]
    checked_at: Annotated[datetime, says("When.")]
    totals: Annotated[LiquidityTotals | None, says("null: there is no liquidity in range.")]
    if_it_left: Annotated[
        ExitAfterLeaving | None, says("null: nobody is known who can withdraw any now, in or out of range.")
    ]
    venues: Annotated[
        list[LiquidityVenue], says("The venue that gives most for 0.1 eth first, four at most. Empty: none.")
    ]
    pools_complete: Annotated[
        bool,
        says(
            "Whether all of the token's pools were read. false: what holds for these need not "
            "hold for the others."
        ),
    ]
    tags_complete: Annotated[
        bool,
        says(
            "Whether all tags of the holders are known. false: an account may have tags that are "
            "missing here; deployer, owner and whom they funded were looked up."
        ),
    ]


_READ_S = 5.0
_MAX_TAGGED = 100


async def read_liquidity(ctx: Context, params: LiquidityParams) -> UseCaseAnswer[Liquidity]:
    """Who can withdraw the liquidity. Raises NodeFault, and ServiceFull (busy) where the index does not
    answer."""
    token, meter, of_holders = params.token(), Meter(), Meter()
    head, _ = await head_of_index(ctx)
    indexed = await _read_indexed(ctx, token)
    found, record = await at_once(
        find_liquidity(ctx, head, token, indexed, meter),
        read_holders(ctx, token, holders_to_tag(indexed, ctx.contracts), of_holders),
    )
    meter.add(of_holders)
    await _keep_unlocks(ctx, found)
    await _keep_leaving(ctx, token, found)
    own_tags = await _read_tags(ctx, found)
    tags, tags_complete = join_tags(own_tags, record, accounts_to_tag(_accounts(found), ctx.contracts))
    answer = present_liquidity(found, tags, ctx, tags_complete)
    return UseCaseAnswer(answer, ctx.policy.answer_ttl_ms, meter=meter, block=found.head.block.number)


async def check_with_liquidity(ctx: Context, params: CheckParams) -> UseCaseAnswer[Check]:
    """A check; a deep one also says in a sentence who can withdraw the liquidity. That is no part of its
    verdict, and of its evidence. Raises like ``check``."""
    if not params.asks_deep():
        return await check(ctx, params)
    meter, token = Meter(), params.token()
    checked, sentence = await at_once(check(ctx, params), _read_sentence(ctx, token, meter))
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
        return LIQUIDITY_UNREAD
    return describe(found.depth, found.exit_after, tags)[0]


async def _keep_unlocks(ctx: Context, found: LiquidityFindings) -> None:
    """Stores when locked positions can be withdrawn, for the calendar and for alerts. Where a contract could
    not be tried what an earlier reading found stays; where the database does not answer, the next one does
    it."""
    token = found.bought.run.token
    if any(one.is_contract and one.held_by == "unknown" for one in _positions(found)):
        return
    unlocks = [
        Unlock(token, held.position.owner, held.position.number, held.lock.wallet, held.lock.at_s, bps)
        for pool in found.depth.pools
        for held in pool.positions
        if held.lock is not None and held.lock.is_exact and held.lock.wallet is not None
        for bps in (pool.share_bps(held),)
    ]
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection, connection.transaction():
            await put_unlocks(connection, token, unlocks, found.head.block.number)
    except DATABASE_FAULTS as error:
        log.warning("unlocks could not be stored", error=repr(error))


async def _keep_leaving(ctx: Context, token: Address, found: LiquidityFindings) -> None:
    """Stores what liquidity can leave, for boards; where the database does not answer, the next reading does
    it."""
    at = datetime.fromtimestamp(ctx.now_s(), UTC)
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            await put_leaving(connection, token, _leaving_of(found.depth), at)
    except DATABASE_FAULTS as error:
        log.warning("what can leave could not be stored", error=repr(error))


def _leaving_of(depth: TokenDepth) -> LeavingLiquidity | None:
    """None: no pool was found, or what was not read may be most of it."""
    if depth.unread or not depth.pools:
        return None
    shares = {held_by: max(bps, depth.money_bps.get(held_by, 0)) for held_by, bps in depth.totals_bps.items()}
    if not any(shares.values()):
        return None
    unproven_bps = min(BPS, shares["contract"] + shares["unknown"])
    return LeavingLiquidity(shares["free"], unproven_bps)


async def _find(ctx: Context, token: Address, meter: Meter) -> tuple[LiquidityFindings, Tags]:
    head, _ = await head_of_index(ctx)
    found = await find_liquidity(ctx, head, token, await _read_indexed(ctx, token), meter)
    return found, await _read_tags(ctx, found)


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
    return list_tags(listed, funders, found.bought)


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
    has_any = any(pool.liquidity or pool.worth_wei for pool in depth.pools)
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
