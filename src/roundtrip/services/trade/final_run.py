"""Trip 3 of a trade: its final form, run once more, and after a buy the sell straight after it."""

from dataclasses import dataclass, replace

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.request import build, read
from roundtrip.chain.wallet import calls
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.domain.check.verdict import Judgement
from roundtrip.domain.trade.judge import BalanceChange, ExitFinding, judge_exit
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.venues.base import Call, TradeTerms

from . import trade_builder as desks
from .rehearsal import Rehearsals
from .sell_back import BroughtToken, SellBackResult, brought, sold_back
from .trade_builder import RehearsedTrade, TradeBuilder, WrittenTrade, write


@dataclass(frozen=True, slots=True)
class FinalRun:
    """The final form as it ran. ``min_raw``: the least that arrives; ``cut``: the venue takes no more than
    this of what was asked for; ``gas_limits``: what each step was sent with; ``exit``: what came of selling,
    after a buy; ``impact_bps``: of a sell, against a small one."""

    done: RehearsedTrade
    min_raw: int
    gas_limits: tuple[int, ...]
    slippage_bps: int
    cut: bool
    exit: ExitFinding | None
    impact_bps: int | None
    evidence: Evidence
    judgement: Judgement

    def lost_by_node(self) -> bool:
        """True where the node left something open that the answer stands on."""
        exit_gap = self.exit.missing if self.exit is not None else None
        return any(gap is not None and gap.fault == "node" for gap in (self.judgement.missing, exit_gap))


async def final_run(
    desk: TradeBuilder, tried: Rehearsals, one: RehearsedTrade, slippage_bps: int, meter: Meter
) -> FinalRun:
    """The final form of what was rehearsed as ``one``, run once more exactly as it would be sent. Raises
    CallerFault (would_fail, too_small) and NodeFault."""
    least_raw = one.put_out_raw * (BPS - slippage_bps) // BPS
    min_raw = least_raw * one.came_raw // one.put_out_raw
    if min_raw == 0:
        raise CallerFault(*_TOO_SMALL[desk.side])
    place, terms = one.written.place, TradeTerms(least_raw, desk.deadline_s)
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
    exits = [judge_exit(back.exit(paid_wei, tried.evidence), desk.ctx.policy) for back in sold]
    if exits and _is_dust(exits[0]):
        raise CallerFault("too_small", "That little cannot be sold again: it would bring nothing.")
    return FinalRun(
        done=done,
        min_raw=min_raw,
        gas_limits=gas_limits,
        slippage_bps=slippage_bps,
        cut=amount_raw < one.written.amount_raw,
        exit=exits[0] if exits else None,
        impact_bps=tried.impact_bps(one),
        evidence=tried.evidence,
        judgement=tried.judgement,
    )


async def _run(
    desk: TradeBuilder, one: RehearsedTrade, final: WrittenTrade, bought: list[BroughtToken], meter: Meter
) -> tuple[RehearsedTrade, tuple[int, ...], list[SellBackResult]]:
    """The final form under each gas limit in turn, and the sells after it: the first that goes through, its
    limits, and what came of the sells. Raises CallerFault and NodeFault."""
    owns = [desks.wallet_calls_of(desk, final, limits, one.ran) for limits in _limits(desk, one, final)]
    plans = [desks.before_plan(desk, final, owns[0]), *(desks.run_plan(desk, final, own) for own in owns)]
    running, selling = Meter(), Meter()
    # The calls are our own: each venue has as much as a caller's request has in all.
    gas = desk.ctx.policy.most_venues * desk.ctx.policy.trade_gas_budget
    asked = [build(plan, desk.head.block, desk.head.known_dialect()) for plan in plans]
    told, sold = await at_once(desk.ctx.node.batch(asked, running), sold_back(owns[0], bought, selling, gas))
    meter.add(running, selling)
    before, *after = (
        read(plan, results, desk.head.block, desk.head.known_dialect())
        for plan, results in zip(plans, told, strict=True)
    )
    runs = [
        desks.read_rehearsal(desk, final, own, calls.together(before, results))
        for own, results in zip(owns, after, strict=True)
    ]
    done = next((run for run in runs if isinstance(run, RehearsedTrade)), runs[0])
    if isinstance(done, Missing):
        raise NodeFault(done.why)
    if isinstance(done, CallerFault):
        raise done
    own = next(own for own, run in zip(owns, runs, strict=True) if run is done)
    if bought and own is not owns[0]:
        # With the usual gas it does not go through: what it buys is sold again as it is sent.
        sold = await sold_back(own, bought, meter, gas)
    return done, own.gas_limits, sold


_TOO_SMALL = {
    "buy": ("too_small", "That little buys less than the token's least unit."),
    "sell": ("would_fail", "That little brings less than the least unit of what is paid."),
}


def _is_dust(found: ExitFinding) -> bool:
    """True where a curve pays nothing for what was bought."""
    refused = found.reading.full if found.reading is not None else None
    return found.code == "cannot_sell" and isinstance(refused, RefusedCall) and refused.reason == "ZeroAmount"


def _sure(one: RehearsedTrade, amount_raw: int) -> BalanceChange:
    """What is there to be sold for sure: where less is spent than was rehearsed a rounding may be missing."""
    cut_raw = one.moved.raw // 10**6 if amount_raw < one.written.amount_raw else 0
    return replace(one.moved, raw=one.moved.raw - cut_raw)


def _limits(desk: TradeBuilder, one: RehearsedTrade, final: WrittenTrade) -> list[tuple[int, ...]]:
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
        gas = (found[0] + _calldata_gas(call)) * 3 // 2 + desk.head.known_dialect().layer_one_gas(call.data)
        return min(most, gas)

    least = tuple(usual(call) for call in final.calls)
    more = [limit for limit in policy.sell_gas_ladder if limit > max(least)]
    return [least, *((*least[:-1], limit) for limit in more)]


def _calldata_gas(call: Call) -> int:
    """What a transaction pays for its calldata: 4 gas for a zero byte, 16 for another one (EIP-2028)."""
    body = bytes.fromhex(call.data[2:])
    return 16 * len(body) - 12 * body.count(0)
