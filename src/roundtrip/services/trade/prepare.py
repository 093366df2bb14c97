"""Trades for the caller's own wallet, written and run once before it signs them. Three trips to the node.

Trip 1: the token's facts and venues, and what the wallet holds and has allowed. Trip 2: the check's sells,
beside a rehearsal of the trade on every venue. Trip 3: the final form, exactly as it is returned, and after a
buy the sell. This service holds no key and sends nothing.
"""

from decimal import ROUND_DOWN, Decimal, localcontext

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet.calls import PLENTY_WEI
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.services.check.index_facts import load_known_venues
from roundtrip.services.check.pipeline import start_check
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import refused_at_newest
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.services.support.money import ETH_DECIMALS, parse_amount

from . import trade_builder as desks
from .final_run import FinalRun, final_run
from .prepare_present import present
from .prepare_schema import PrepareBuyParams, PreparedTrade, PrepareSellParams, address
from .rehearsal import (
    NO_LIQUIDITY,
    all_dry,
    best_buy,
    best_sell,
    check_tradable,
    decimals_of,
    paid_with,
    rehearse,
    tradable,
)
from .trade_builder import DECIMALS, Pays, Side, TradeBuilder

VALID_S = 20 * 60
_MOST_DECIMALS = 36
"""As many as any token here may have; what it really has is seen when it has been asked."""


async def prepare_buy(ctx: Context, params: PrepareBuyParams) -> UseCaseAnswer[PreparedTrade]:
    """Raises CallerFault (bad_input, not_a_token, no_route, would_fail, too_small) and NodeFault."""
    return await refused_at_newest(ctx, lambda: _buy(ctx, params))


async def prepare_sell(ctx: Context, params: PrepareSellParams) -> UseCaseAnswer[PreparedTrade]:
    """Raises CallerFault (bad_input, no_route, nothing_to_sell, would_fail) and NodeFault."""
    return await refused_at_newest(ctx, lambda: _sell(ctx, params))


async def _buy(ctx: Context, params: PrepareBuyParams) -> UseCaseAnswer[PreparedTrade]:
    parse_amount(params.amount, ETH_DECIMALS, "eth")
    token, wallet, meter = address(params.token), address(params.sender), Meter()
    desk = await _at_desk(ctx, "buy", token, wallet, params.fund, meter)
    amounts = {which: _amount_raw(params.amount, which) for which in DECIMALS}
    venues = tradable(desk.opened)
    tried = await rehearse(desk, {venue: amounts[paid_with(venue)] for venue in venues}, meter)
    chosen = best_buy(desk, tried, amounts)
    if isinstance(chosen, CallerFault):
        raise chosen
    return _as_answered(desk, await final_run(desk, tried, chosen, params.slippage_bps, meter), meter)


async def _sell(ctx: Context, params: PrepareSellParams) -> UseCaseAnswer[PreparedTrade]:
    share = params.share()
    if share is None:
        parse_amount(params.amount or "", _MOST_DECIMALS, "the token")
    token, wallet, meter = address(params.token), address(params.sender), Meter()
    desk = await _at_desk(ctx, "sell", token, wallet, False, meter)
    amount_raw = _sold_raw(desk, params, share)
    tried = await rehearse(desk, dict.fromkeys(tradable(desk.opened), amount_raw), meter)
    chosen = best_sell(desk, tried)
    if isinstance(chosen, CallerFault):
        raise chosen
    return _as_answered(desk, await final_run(desk, tried, chosen, params.slippage_bps, meter), meter)


# --- trip 1 ----------------------------------------------------------------------------------------


async def _at_desk(
    ctx: Context, side: Side, token: Address, wallet: Address, fund: bool, meter: Meter
) -> TradeBuilder:
    head = ctx.heads.current()
    asset = token if side == "sell" else ctx.contracts.usdg
    await load_known_venues(ctx.heads.book, ctx.pool, ctx.contracts, token)
    known = ctx.heads.book.venues_of(token) if ctx.heads.book is not None else ()
    pairs = desks.pairs_of(asset, known, ctx.contracts)
    asking, beside = Meter(), Meter()
    calls = desks.holdings_calls(wallet, asset, pairs, head, ctx.contracts)
    found, answers = await at_once(start_check(ctx, head, token, asking), ctx.node.batch(calls, beside))
    meter.add(asking, beside)
    check_tradable(side, found)
    return TradeBuilder(
        ctx=ctx,
        head=head,
        wallet=wallet,
        side=side,
        opened=found,
        holdings=desks.read_holdings(answers, pairs, ctx.chain_id),
        # The chain's clock decides, where it is ahead of ours.
        deadline_s=max(int(ctx.now_s()), head.block.timestamp_s) + VALID_S,
        decimals=decimals_of(found),
        fund=fund,
    )


# --- amounts ---------------------------------------------------------------------------------------


def _amount_raw(text: str, which: Pays) -> int | CallerFault:
    try:
        raw = parse_amount(text, DECIMALS[which], which)
    except CallerFault as fault:
        return fault
    most_raw = PLENTY_WEI if which == "eth" else PLENTY_WEI // _LEAST_WEI_A_UNIT
    return raw if raw <= most_raw else CallerFault("would_fail", f"No wallet holds that much {which}.")


_LEAST_WEI_A_UNIT = 10**6
"""A unit of usdg is worth more wei than this while an eth is below a million dollars."""


def _sold_raw(desk: TradeBuilder, params: PrepareSellParams, share: Decimal | None) -> int:
    """Base units to sell. Raises CallerFault."""
    held_raw = desk.holdings.asset_raw
    if held_raw == 0 and all_dry(desk.opened):
        raise CallerFault("no_route", NO_LIQUIDITY)
    if held_raw == 0:
        raise CallerFault("nothing_to_sell", "The wallet holds none of this token.")
    if share is None:
        return parse_amount(params.amount or "", desk.decimals, "this token")
    with localcontext() as context:
        context.prec, context.rounding = 120, ROUND_DOWN
        part_raw = int(Decimal(held_raw) * share / 100)
    if part_raw == 0:
        raise CallerFault(
            "nothing_to_sell", "That share of what the wallet holds is less than its least unit."
        )
    return min(held_raw, part_raw)


# --- the answer ------------------------------------------------------------------------------------


def _as_answered(desk: TradeBuilder, final: FinalRun, meter: Meter) -> UseCaseAnswer[PreparedTrade]:
    answer = present(desk, final)
    by_node = answer.verdict.code == "unproven" and final.lost_by_node()
    return UseCaseAnswer(answer, counted=not by_node, meter=meter)
