"""Reviews waiting flags: by facts (rows of the index), and by one batch to the node for all that must be
priced."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.balance_slots import BalanceSlot, Layout
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.check.evidence import RefusedCall
from roundtrip.domain.community import flag_calls
from roundtrip.domain.community.flag_calls import FlaggedToken, FlagReading, TradedSinceFlag
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import reading
from roundtrip.services.valuation.holdings import PRICES, HoldingToSell, SellValue, TokenPricing
from roundtrip.store.boards import moving, reference_pools
from roundtrip.store.community import flag_facts
from roundtrip.store.community import flags as store
from roundtrip.store.community.flag_facts import RemovedLiquidity
from roundtrip.store.community.flags import FlagProof, FlagReview, WaitingFlag
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import id_of, ids_of
from roundtrip.store.server.rows import Connection

from .flag_token import without_kin

MAX_LOOKED = 200
MAX_PRICED = 40
"""The most flags that one run reviews, and the most of them that it prices: by simulated sells, in one node
batch. The others come first in the next run."""


async def review_flags(ctx: Context, prices: TokenPricing = PRICES) -> tuple[tuple[FlagReview, ...], int]:
    """Reviews waiting flags, those that were not reviewed for longest first; returns the reviews, and the
    time of the chain that they reach. Writes nothing. Raises ServiceFull."""
    async with reading(ctx) as (connection, indexed):
        waiting = await store.waiting(connection, MAX_LOOKED)
        by_facts = [await _apply_facts(connection, flag, indexed) for flag in waiting]
    to_price = [progress for progress in by_facts if progress.to_price]
    postponed = {progress.flag.id for progress in to_price[MAX_PRICED:]}
    prices_now = await _read_prices(ctx, [progress.flag for progress in to_price[:MAX_PRICED]], prices)
    async with reading(ctx) as (connection, indexed):
        reviewed = [
            await _apply_price(ctx, connection, progress, prices_now[progress.flag.id])
            if progress.flag.id in prices_now
            else progress
            for progress in by_facts
            if progress.flag.id not in postponed
        ]
    newest_s = indexed.block.timestamp_s
    return tuple(_finish_review(progress, newest_s) for progress in reviewed), newest_s


@dataclass(frozen=True, slots=True)
class _FlagProgress:
    """A flag under review, and its event, if there is one. ``to_price``: facts leave it open, so a sell must
    show it. ``answered_s``: the latest time of the chain for which facts or a price gave an answer."""

    flag: WaitingFlag
    to_price: bool = False
    answered_s: int | None = None
    event: flag_calls.Event | None = None
    seen: FlagReading | None = None
    proof: FlagProof | None = None


def _finish_review(progress: _FlagProgress, newest_s: int) -> FlagReview:
    """The flag's review; the end of its week decides unless it was proved or held."""
    flag = progress.flag
    answers_s = [at_s for at_s in (flag.week.answered_s, progress.answered_s) if at_s is not None]
    week = flag_calls.FlagWeek(flag.week.at_s, flag.week.ends_s, max(answers_s, default=None))
    event = progress.event
    if event in (None, "fell", "fits") and (end_event := week.end(newest_s)) is not None:
        event = end_event
    state = flag.state if event is None else flag_calls.next_state(flag.state, event)
    seen = progress.seen if state == "seen" else None
    proof = progress.proof if state == "proved" else None
    return FlagReview(flag.id, flag.state, state, week.answered_s, seen, proof)


# --- by facts --------------------------------------------------------------------------------------


async def _apply_facts(connection: Connection, flag: WaitingFlag, indexed: Cursor) -> _FlagProgress:
    """What facts show of a flag: nothing if the index begins after it, or its pool is no longer known. Only a
    drain is decided by them; else they tell whether a sell has to show it."""
    newest_s, ends_s = indexed.block.timestamp_s, flag.week.ends_s
    token_id = await id_of(connection, flag.token)
    if token_id is None or indexed.start_number > flag.block_number + 1:
        return _FlagProgress(flag)
    if flag.kind == "drains":
        return await _measure_drain(connection, flag, token_id, newest_s)
    assert flag.basis.pool is not None
    pool = await reference_pools.current_place(connection, token_id, flag.basis.pool)
    if pool is None:
        return _FlagProgress(flag)
    flag = replace(flag, basis=replace(flag.basis, pool=pool))
    if flag.kind == "runs":
        return _FlagProgress(flag, to_price=newest_s <= ends_s)
    # From here on it is a "dead" flag.
    if newest_s - flag_calls.SETTLED_S > ends_s:
        return _FlagProgress(flag)
    since_s = flag_calls.quiet_since_s(flag.week, newest_s)
    if since_s is None:
        return _FlagProgress(flag, answered_s=min(newest_s, ends_s))
    traders = await flag_facts.traded_by(connection, token_id, since_s)
    deployer_id, _ = await flag_facts.deployer_of(connection, token_id)
    if traders is None or await without_kin(connection, traders, deployer_id):
        return _FlagProgress(flag, answered_s=min(newest_s, ends_s))
    return _FlagProgress(flag, to_price=True)


async def _measure_drain(
    connection: Connection, flag: WaitingFlag, token_id: int, newest_s: int
) -> _FlagProgress:
    """Whether enough liquidity left since the flag, or its deployer sold enough. What the flag's own account
    and its kin did does not count."""
    settled_s, basis, week = flag.week.settled_s(newest_s), flag.basis, flag.week
    flagger_id = None if flag.by is None else (await ids_of(connection, [flag.by])).get(flag.by)
    removed: list[RemovedLiquidity] = []
    if basis.pool is not None:
        removals = await flag_facts.liquidity_gone(
            connection, basis.pool, week.at_s, flag.block_number, settled_s
        )
        counted_ids = await without_kin(connection, [removal.wallet_id for removal in removals], flagger_id)
        removed = [removal for removal in removals if removal.wallet_id in counted_ids]
    sold = None
    if basis.deployer_raw is not None:
        sold = await flag_facts.deployer_sold(connection, token_id, week.at_s, flag.block_number, settled_s)
        if sold is not None and not await without_kin(connection, [sold.wallet_id], flagger_id):
            sold = None
    flagged = FlaggedToken(
        basis.liquidity,
        (sum(removal.settled for removal in removed), sum(removal.now for removal in removed)),
        basis.deployer_raw,
        (0, 0) if sold is None else (sold.settled, sold.now),
    )
    cause = flag_calls.drain_cause(flagged)
    if cause is None:
        return _FlagProgress(flag, answered_s=min(newest_s, week.ends_s))
    assert cause == "liquidity" or sold is not None
    largest = (
        max(removed, key=lambda removal: removal.largest)
        if cause == "liquidity"
        else cast(RemovedLiquidity, sold)
    )
    proof = FlagProof(cause, largest.block_number, largest.at_s, largest.tx_hash)
    return _FlagProgress(flag, answered_s=min(newest_s, week.ends_s), event="proved", proof=proof)


# --- by price --------------------------------------------------------------------------------------


async def _read_prices(
    ctx: Context, flags: Sequence[WaitingFlag], prices: TokenPricing
) -> dict[int, FlagReading]:
    """What the flags' tokens sell for now, by flag id, in one node batch. A flag without an answer is left
    out."""
    if not flags:
        return {}
    with contextlib.suppress(RoundtripError):
        head = ctx.heads.current()
        holdings = [_holding(flag) for flag in flags]
        values = await prices.worth(ctx, head, holdings, Meter())
        block = head.block
        return {
            flag.id: FlagReading(
                block.number, block.timestamp_s, value.wei if isinstance(value, SellValue) else 0
            )
            for flag, value in zip(flags, values, strict=True)
            if isinstance(value, SellValue | RefusedCall)
        }
    return {}


def _holding(flag: WaitingFlag) -> HoldingToSell:
    basis = flag.basis
    assert basis.held_raw is not None
    assert basis.slot is not None
    layout, base = basis.slot
    slot = BalanceSlot(flag.token, cast(Layout, layout), base)
    return HoldingToSell(flag.token, basis.held_raw, slot=slot, at=basis.pool)


async def _apply_price(
    ctx: Context, connection: Connection, progress: _FlagProgress, price: FlagReading
) -> _FlagProgress:
    """What a price shows of a flag. A price that the flag's own account moved proves nothing."""
    flag, ends_s = progress.flag, progress.flag.week.ends_s
    if price.at_s > ends_s:
        return progress
    if flag.kind == "dead":
        event: flag_calls.Event | None = "proved" if flag_calls.is_dead(price) else None
    else:
        event = flag_calls.run_event(flag.state, flag.seen_s, price, ends_s)
    if event in ("proved", "held"):
        traded = await _read_trades(ctx, connection, flag)
        if flag.kind == "dead" and not traded.fallen_by_others():
            event = None
        if flag.kind == "runs" and not traded.risen_by_others():
            event = "fell"
    proof = FlagProof("price", price.block_number, price.at_s, None, price.pays_wei)
    return _FlagProgress(flag, answered_s=price.at_s, event=event, seen=price, proof=proof)


async def _read_trades(ctx: Context, connection: Connection, flag: WaitingFlag) -> TradedSinceFlag:
    """The trades since the flag, by the flag's account and by others. Of the others, the deployer and his
    kin (wallets that share money with him) do not count."""
    token_id = await id_of(connection, flag.token)
    assert token_id is not None
    traders = await flag_facts.traders_since(
        connection, token_id, flag.week.at_s, flag.block_number, ctx.contracts
    )
    deployer_id, _ = await flag_facts.deployer_of(connection, token_id)
    flagger_id = None if flag.by is None else (await ids_of(connection, [flag.by])).get(flag.by)
    wallet_ids = {trader.wallet_id for trader in traders}
    wallet_ids |= {wallet_id for wallet_id in (flagger_id, deployer_id) if wallet_id is not None}
    purses = await moving.read_origins(connection, wallet_ids)
    by_flagger = [t for t in traders if flagger_id is not None and purses.is_kin(t.wallet_id, flagger_id)]
    counted = [t for t in traders if t not in by_flagger and not purses.is_kin(t.wallet_id, deployer_id)]
    buyers = {purses.purse(trader.wallet_id, flag.week.at_s) for trader in counted if trader.bought_wei}
    return TradedSinceFlag(
        sum(trader.bought_wei for trader in by_flagger),
        sum(trader.sold_wei for trader in by_flagger),
        sum(trader.bought_wei for trader in counted),
        sum(trader.sold_wei for trader in counted),
        len(buyers),
    )
