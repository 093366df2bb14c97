"""Looks how flags stand: by facts, and by one trip to the node for all that have to be priced."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.balance_slots import BalanceSlot, Layout
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.check.evidence import RefusedCall
from roundtrip.domain.community import flag_calls
from roundtrip.domain.community.flag_calls import FlaggedToken, FlagReading, TradedSinceFlag, next_state
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import reading
from roundtrip.services.valuation.holdings import HoldingToSell, SellValue
from roundtrip.services.valuation.spot_quote import PRICES, TokenPricing
from roundtrip.store.boards import moving, reference_pools
from roundtrip.store.community import flag_facts
from roundtrip.store.community import flags as store
from roundtrip.store.community.flag_facts import RemovedLiquidity
from roundtrip.store.community.flags import FlagProof, FlagReview, WaitingFlag
from roundtrip.store.index.addresses import id_of, ids_of
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.server.rows import Connection

from .flag_token import others

MOST_LOOKED = 200
MOST_PRICED = 40
"""So many flags a run, and so many of them by a sell: a fair trip for the node. The others come first the
next time."""


@dataclass(frozen=True, slots=True)
class FlagRun:
    """What a run came to, and up to which second of the chain."""

    flags: tuple[FlagReview, ...]
    newest_s: int


async def look(ctx: Context, prices: TokenPricing = PRICES) -> FlagRun:
    """How flags stand that wait, those that nobody looked at for longest first. Nothing is written. Raises
    ServiceFull."""
    async with reading(ctx) as (connection, stands):
        waiting = await store.waiting(connection, MOST_LOOKED)
        looked = [await _by_facts(connection, flag, stands) for flag in waiting]
    to_price = [one for one in looked if one.to_price]
    dropped = {one.flag.id for one in to_price[MOST_PRICED:]}
    readings = await _readings(ctx, [one.flag for one in to_price[:MOST_PRICED]], prices)
    async with reading(ctx) as (connection, stands):
        found = [
            await _by_price(ctx, connection, one, readings[one.flag.id]) if one.flag.id in readings else one
            for one in looked
            if one.flag.id not in dropped
        ]
    newest_s = stands.block.timestamp_s
    return FlagRun(tuple(_review_at_end(one, newest_s) for one in found), newest_s)


@dataclass(frozen=True, slots=True)
class _FlagProgress:
    """A flag on its way: what happened to it, if anything did."""

    flag: WaitingFlag
    to_price: bool = False
    answered_s: int | None = None
    event: flag_calls.Event | None = None
    seen: FlagReading | None = None
    proof: FlagProof | None = None


def _review_at_end(one: _FlagProgress, newest_s: int) -> FlagReview:
    """With what its time makes of it where nothing else did."""
    flag = one.flag
    known = [at_s for at_s in (flag.week.answered_s, one.answered_s) if at_s is not None]
    week = flag_calls.FlagWeek(flag.week.at_s, flag.week.ends_s, max(known, default=None))
    event = one.event
    if event in (None, "fell", "fits") and (ended := week.end(newest_s)) is not None:
        event = ended
    state = flag.state if event is None else next_state(flag.state, event)
    seen = one.seen if state == "seen" else None
    proof = one.proof if state == "proved" else None
    return FlagReview(flag.id, flag.state, state, week.answered_s, seen, proof)


# --- by facts --------------------------------------------------------------------------------------


async def _by_facts(connection: Connection, flag: WaitingFlag, stands: Cursor) -> _FlagProgress:
    """As far as facts tell. Where the index begins after the flag they tell nothing."""
    newest_s, ends_s = stands.block.timestamp_s, flag.week.ends_s
    token_id = await id_of(connection, flag.token)
    if token_id is None or stands.start_number > flag.block_number + 1:
        return _FlagProgress(flag)
    if flag.kind == "drains":
        return await _drains(connection, flag, token_id, newest_s)
    assert flag.basis.pool is not None
    at = await reference_pools.current_place(connection, token_id, flag.basis.pool)
    if at is None:
        return _FlagProgress(flag)
    flag = replace(flag, basis=replace(flag.basis, pool=at))
    if flag.kind == "runs":
        return _FlagProgress(flag, to_price=newest_s <= ends_s)
    if newest_s - flag_calls.SETTLED_S > ends_s:
        return _FlagProgress(flag)
    since_s = flag_calls.quiet_since_s(flag.week, newest_s)
    if since_s is None:
        return _FlagProgress(flag, answered_s=min(newest_s, ends_s))
    traders = await flag_facts.traded_by(connection, token_id, since_s)
    deployer_id, _ = await flag_facts.deployer_of(connection, token_id)
    if traders is None or await others(connection, traders, deployer_id):
        return _FlagProgress(flag, answered_s=min(newest_s, ends_s))
    return _FlagProgress(flag, to_price=True)


async def _drains(connection: Connection, flag: WaitingFlag, token_id: int, newest_s: int) -> _FlagProgress:
    settled_s, basis, week = flag.week.settled_s(newest_s), flag.basis, flag.week
    by = None if flag.by is None else (await ids_of(connection, [flag.by])).get(flag.by)
    gone: list[RemovedLiquidity] = []
    if basis.pool is not None:
        since = await flag_facts.liquidity_gone(
            connection, basis.pool, week.at_s, flag.block_number, settled_s
        )
        strangers = await others(connection, [one.wallet_id for one in since], by)
        gone = [one for one in since if one.wallet_id in strangers]
    sold = None
    if basis.deployer_raw is not None:
        sold = await flag_facts.deployer_sold(connection, token_id, week.at_s, flag.block_number, settled_s)
        if sold is not None and not await others(connection, [sold.wallet_id], by):
            sold = None
    left = FlaggedToken(
        basis.liquidity,
        (sum(one.settled for one in gone), sum(one.now for one in gone)),
        basis.deployer_raw,
        (0, 0) if sold is None else (sold.settled, sold.now),
    )
    drained = flag_calls.drain_cause(left)
    if drained is None:
        return _FlagProgress(flag, answered_s=min(newest_s, week.ends_s))
    assert drained == "liquidity" or sold is not None
    largest = (
        max(gone, key=lambda one: one.largest) if drained == "liquidity" else cast(RemovedLiquidity, sold)
    )
    proof = FlagProof(drained, largest.block_number, largest.at_s, largest.tx_hash)
    return _FlagProgress(flag, answered_s=min(newest_s, week.ends_s), event="proved", proof=proof)


# --- by price --------------------------------------------------------------------------------------


async def _readings(
    ctx: Context, flags: Sequence[WaitingFlag], prices: TokenPricing
) -> dict[int, FlagReading]:
    """What the flags' tokens sell for now, all in one trip; who is not there could not be found out."""
    if not flags:
        return {}
    with contextlib.suppress(RoundtripError):
        head = ctx.heads.current()
        holdings = [_holding(flag) for flag in flags]
        found = await prices.worth(ctx, head, holdings, Meter())
        at = head.block
        return {
            flag.id: FlagReading(
                at.number, at.timestamp_s, valued.wei if isinstance(valued, SellValue) else 0
            )
            for flag, valued in zip(flags, found, strict=True)
            if isinstance(valued, SellValue | RefusedCall)
        }
    return {}


def _holding(flag: WaitingFlag) -> HoldingToSell:
    basis = flag.basis
    assert basis.held_raw is not None
    assert basis.slot is not None
    layout, base = basis.slot
    slot = BalanceSlot(flag.token, cast(Layout, layout), base)
    return HoldingToSell(flag.token, basis.held_raw, slot=slot, at=basis.pool)


async def _by_price(
    ctx: Context, connection: Connection, one: _FlagProgress, now: FlagReading
) -> _FlagProgress:
    """What a reading makes of a flag. A price that its own account made proves nothing."""
    flag, ends_s = one.flag, one.flag.week.ends_s
    if now.at_s > ends_s:
        return one
    if flag.kind == "dead":
        event: flag_calls.Event | None = "proved" if flag_calls.is_dead(now) else None
    else:
        event = flag_calls.run_event(flag.state, flag.seen_s, now, ends_s)
    if event in ("proved", "held"):
        moved = await _read_trades(ctx, connection, flag)
        if flag.kind == "dead" and not moved.fallen_by_others():
            event = None
        if flag.kind == "runs" and not moved.risen_by_others():
            event = "fell"
    proof = FlagProof("price", now.block_number, now.at_s, None, now.pays_wei)
    return _FlagProgress(flag, answered_s=now.at_s, event=event, seen=now, proof=proof)


async def _read_trades(ctx: Context, connection: Connection, flag: WaitingFlag) -> TradedSinceFlag:
    """Who traded it since it was flagged; the deployer and his kin do not count."""
    token_id = await id_of(connection, flag.token)
    assert token_id is not None
    traders = await flag_facts.traders_since(
        connection, token_id, flag.week.at_s, flag.block_number, ctx.contracts
    )
    deployer_id, _ = await flag_facts.deployer_of(connection, token_id)
    by = None if flag.by is None else (await ids_of(connection, [flag.by])).get(flag.by)
    known = {one.wallet_id for one in traders} | {one for one in (by, deployer_id) if one is not None}
    purses = await moving.purses_of(connection, known)
    own = [one for one in traders if by is not None and purses.is_kin(one.wallet_id, by)]
    counted = [one for one in traders if one not in own and not purses.is_kin(one.wallet_id, deployer_id)]
    buyers = {purses.purse(one.wallet_id, flag.week.at_s) for one in counted if one.bought_wei}
    return TradedSinceFlag(
        sum(one.bought_wei for one in own),
        sum(one.sold_wei for one in own),
        sum(one.bought_wei for one in counted),
        sum(one.sold_wei for one in counted),
        len(buyers),
    )
