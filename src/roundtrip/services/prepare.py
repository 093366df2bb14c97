"""Trades for the caller's own wallet, written and run once before it signs them. Three trips to the node.

Trip 1: the token's facts and venues, and what the wallet holds and has allowed. Trip 2: the check's sells,
beside a rehearsal of the trade on every venue. Trip 3: the final form, exactly as it is returned, and after a
buy the sell. This service holds no key and sends nothing.
"""

from dataclasses import replace
from decimal import ROUND_DOWN, Decimal, localcontext

from roundtrip.chain import wallet_calls
from roundtrip.chain.rpc import Meter
from roundtrip.chain.simulate import build, read
from roundtrip.chain.wallet_calls import PLENTY_WEI
from roundtrip.domain.errors import CallerFault, NodeFault
from roundtrip.domain.evidence import Launch, Missing, Refused
from roundtrip.domain.price import quote_in_wei
from roundtrip.domain.trade import ExitFinding, Moved, find_exit
from roundtrip.domain.types import BPS, Address
from roundtrip.venues.base import Call, Terms

from . import desk as desks
from .at_once import at_once
from .context import Answered, Context
from .desk import DECIMALS, Desk, Pays, Rehearsed, Side, Written, pays, write
from .gather import Opened, opened
from .indexed import inform
from .money import ETH_DECIMALS, parse_amount
from .prepare_answer import PrepareBuyParams, PreparedTrade, PrepareSellParams, address
from .prepare_present import Final, present
from .rehearsal import NO_LIQUIDITY, Rehearsals, all_dry, best_buy, best_sell, paid_with, rehearse, tradable
from .sell_back import Brought, SoldBack, brought, sold_back

VALID_S = 20 * 60
_MOST_DECIMALS = 36
"""As many as any token here may have; what it really has is seen when it has been asked."""


async def prepare_buy(ctx: Context, params: PrepareBuyParams) -> Answered[PreparedTrade]:
    """Raises CallerFault (bad_input, not_a_token, no_route, would_fail, too_small) and NodeFault."""
    parse_amount(params.amount, ETH_DECIMALS, "eth")
    token, wallet, meter = address(params.token), address(params.sender), Meter()
    desk = await _at_desk(ctx, "buy", token, wallet, params.fund, meter)
    amounts = {which: _amount_raw(params.amount, which) for which in DECIMALS}
    venues = tradable(desk.opened)
    tried = await rehearse(desk, {venue: amounts[paid_with(venue)] for venue in venues}, meter)
    chosen = best_buy(desk, tried, amounts)
    if isinstance(chosen, CallerFault):
        raise chosen
    return await _finished(desk, tried, chosen, params.slippage_bps, meter)


async def prepare_sell(ctx: Context, params: PrepareSellParams) -> Answered[PreparedTrade]:
    """Raises CallerFault (bad_input, no_route, nothing_to_sell, would_fail) and NodeFault."""
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
    return await _finished(desk, tried, chosen, params.slippage_bps, meter)


# --- trip 1 ----------------------------------------------------------------------------------------


async def _at_desk(
    ctx: Context, side: Side, token: Address, wallet: Address, fund: bool, meter: Meter
) -> Desk:
    head = ctx.heads.current()
    asset = token if side == "sell" else ctx.contracts.usdg
    await inform(ctx.heads.book, ctx.pool, ctx.contracts, token)
    known = ctx.heads.book.known(token) if ctx.heads.book is not None else ()
    pairs = desks.pairs_of(asset, known, ctx.contracts)
    asking, beside = Meter(), Meter()
    calls = desks.holdings_calls(wallet, asset, pairs, head, ctx.contracts)
    found, answers = await at_once(opened(ctx, head, token, asking), ctx.node.batch(calls, beside))
    meter.add(asking, beside)
    decimals = found.first.facts.decimals
    _check_tradable(side, found)
    if isinstance(decimals, Missing):
        raise NodeFault(decimals.why)
    return Desk(
        ctx=ctx,
        head=head,
        wallet=wallet,
        side=side,
        opened=found,
        holdings=desks.read_holdings(answers, pairs, ctx.chain_id),
        # The chain's clock decides, where it is ahead of ours.
        deadline_s=max(int(ctx.now_s()), head.block.timestamp_s) + VALID_S,
        decimals=decimals or 0,
        fund=fund,
    )


def _check_tradable(side: Side, token: Opened) -> None:
    """Raises CallerFault where there is no token, or no money that trades are written in."""
    facts, launch = token.first.facts, token.first.launch
    no_token = facts.code_bytes == 0 or facts.balance_answers is False or facts.total_supply_raw is None
    if no_token:
        code = "not_a_token" if side == "buy" else "no_route"
        raise CallerFault(code, "There is no token at this address.")
    if token.role != "token":
        raise CallerFault("no_route", f"This is {token.role}, the money side of a trade.")
    if tradable(token):
        return
    there = [tried.place.venue for tried in token.first.venues if tried.there()]
    if there and all(pays(venue) is None for venue in there):
        raise CallerFault("no_route", "It trades only against money that trades are not written in here.")
    if isinstance(launch, Launch) and launch.closed():
        raise CallerFault("no_route", "Its curve is closed and its pool has not opened: nobody can trade it.")
    raise CallerFault("no_route", "No pool trades this token.")


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


def _sold_raw(desk: Desk, params: PrepareSellParams, share: Decimal | None) -> int:
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


# --- trip 3 ----------------------------------------------------------------------------------------


async def _finished(
    desk: Desk, tried: Rehearsals, one: Rehearsed, slippage_bps: int, meter: Meter
) -> Answered[PreparedTrade]:
    """The final form, run once more exactly as it is returned."""
    least_raw = one.put_out_raw * (BPS - slippage_bps) // BPS
    min_raw = least_raw * one.came_raw // one.put_out_raw
    if min_raw == 0:
        raise CallerFault(*_TOO_SMALL[desk.side])
    place, terms = one.written.place, Terms(least_raw, desk.deadline_s)
    # What the venue does not take is not sent: near its end a curve is paid what is left of it.
    taxed, amount_raw = one.put_out_raw != one.came_raw, one.taken_raw(desk.side)
    final = write(desk, place, amount_raw, terms, one.written.clear_first, taxed)
    bought = [brought(desk.opened, one.moved, _sure(one, amount_raw))] if desk.side == "buy" else []
    done, gas_limits, sold = await _run(desk, one, final, bought, meter)
    if done.came_raw * BPS > one.came_raw * (BPS + slippage_bps):
        # The minimum was taken from the first run: now it would protect too little.
        raise NodeFault("it told of the same trade twice, and not the same")
    if done.came_raw < min_raw:
        raise CallerFault("would_fail", "Run a second time it brings less than its own minimum.")
    paid_wei = quote_in_wei(done.spent_raw, place.venue.quote, desk.opened.run.setting.market)
    exits = [find_exit(back.exit(paid_wei, tried.evidence), desk.ctx.policy) for back in sold]
    if exits and _is_dust(exits[0]):
        raise CallerFault("too_small", "That little cannot be sold again: it would bring nothing.")
    answer = present(
        desk,
        Final(
            done=done,
            min_raw=min_raw,
            gas_limits=gas_limits,
            slippage_bps=slippage_bps,
            cut=amount_raw < one.written.amount_raw,
            exit=exits[0] if exits else None,
            impact_bps=tried.impact_bps(one),
            evidence=tried.evidence,
            judgement=tried.judgement,
        ),
    )
    gaps = [tried.judgement.missing, *(one.missing for one in exits)]
    by_node = any(gap is not None and gap.fault == "node" for gap in gaps)
    return Answered(answer, counted=not (answer.verdict.code == "unproven" and by_node), meter=meter)


async def _run(
    desk: Desk, one: Rehearsed, final: Written, bought: list[Brought], meter: Meter
) -> tuple[Rehearsed, tuple[int, ...], list[SoldBack]]:
    """The final form under each gas limit in turn, and the sells after it: the first that goes through, its
    limits, and what came of the sells. Raises CallerFault and NodeFault."""
    owns = [desks.wallet_calls_of(desk, final, limits, one.ran) for limits in _limits(desk, one, final)]
    plans = [desks.before_plan(desk, final, owns[0]), *(desks.run_plan(desk, final, own) for own in owns)]
    running, selling = Meter(), Meter()
    asked = [build(plan, desk.head.block, desk.head.spoken()) for plan in plans]
    told, sold = await at_once(desk.ctx.node.batch(asked, running), sold_back(owns[0], bought, selling))
    meter.add(running, selling)
    before, *after = (
        read(plan, results, desk.head.block, desk.head.spoken())
        for plan, results in zip(plans, told, strict=True)
    )
    runs = [
        desks.read_rehearsal(desk, final, own, wallet_calls.together(before, results))
        for own, results in zip(owns, after, strict=True)
    ]
    done = next((run for run in runs if isinstance(run, Rehearsed)), runs[0])
    if isinstance(done, Missing):
        raise NodeFault(done.why)
    if isinstance(done, CallerFault):
        raise done
    own = next(own for own, run in zip(owns, runs, strict=True) if run is done)
    if bought and own is not owns[0]:
        # With the usual gas it does not go through: what it buys is sold again as it is sent.
        sold = await sold_back(own, bought, meter)
    return done, own.gas_limits, sold


_TOO_SMALL = {
    "buy": ("too_small", "That little buys less than the token's least unit."),
    "sell": ("would_fail", "That little brings less than the least unit of what is paid."),
}


def _is_dust(found: ExitFinding) -> bool:
    """True where a curve pays nothing for what was bought."""
    refused = found.reading.full if found.reading is not None else None
    return found.code == "cannot_sell" and isinstance(refused, Refused) and refused.reason == "ZeroAmount"


def _sure(one: Rehearsed, amount_raw: int) -> Moved:
    """What is there to be sold for sure: where less is spent than was rehearsed a rounding may be missing."""
    cut_raw = one.moved.raw // 10**6 if amount_raw < one.written.amount_raw else 0
    return replace(one.moved, raw=one.moved.raw - cut_raw)


def _limits(desk: Desk, one: Rehearsed, final: Written) -> list[tuple[int, ...]]:
    """Half as much again as each step takes: as it did when it was rehearsed, but for the bytes in which its
    final form differs. Then more, where more is to be left."""
    most, policy = desk.ctx.policy.buy_gas_limit, desk.ctx.policy
    took = [
        (desks.kind_of(call), came.gas_used - _calldata_gas(call))
        for call, came in zip(one.written.calls, one.ran.calls, strict=True)
    ]

    def usual(call: Call) -> int:
        found = [gas for kind, gas in took if kind == desks.kind_of(call)]
        assert found, "every final step was rehearsed"
        gas = (found[0] + _calldata_gas(call)) * 3 // 2 + desk.head.spoken().layer_one_gas(call.data)
        return min(most, gas)

    least = tuple(usual(call) for call in final.calls)
    more = [limit for limit in policy.sell_gas_ladder if limit > max(least)]
    return [least, *((*least[:-1], limit) for limit in more)]


def _calldata_gas(call: Call) -> int:
    """What a transaction pays for its calldata: 4 gas for a zero byte, 16 for another one (EIP-2028)."""
    body = bytes.fromhex(call.data[2:])
    return 16 * len(body) - 12 * body.count(0)
