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
        return any(
            missing is not None and missing.fault == "node" for missing in (self.judgement.missing, exit_gap)
        )


async def final_run(
    desk: TradeBuilder, rehearsals: Rehearsals, rehearsed: RehearsedTrade, slippage_bps: int, meter: Meter
) -> FinalRun:
    """The final form of what was rehearsed as ``one``, run once more exactly as it would be sent. Raises
    CallerFault (would_fail, too_small) and NodeFault."""
    least_raw = rehearsed.put_out_raw * (BPS - slippage_bps) // BPS
    min_raw = least_raw * rehearsed.came_raw // rehearsed.put_out_raw
    if min_raw == 0:
        raise CallerFault(*_TOO_SMALL[desk.side])
    place, terms = rehearsed.written.place, TradeTerms(least_raw, desk.deadline_s)
    # What the venue does not take is not sent: near its end a curve is paid what is left of it.
    taxed, amount_raw = rehearsed.put_out_raw != rehearsed.came_raw, rehearsed.taken_raw(desk.side)
    final = write(desk, place, amount_raw, terms, rehearsed.written.clear_first, taxed)
    bought = (
        [brought(desk.opened, rehearsed.moved, _sure(rehearsed, amount_raw))] if desk.side == "buy" else []
    )
    ran, gas_limits, sell_backs = await _run(desk, rehearsed, final, bought, meter)
    if ran.came_raw * BPS > rehearsed.came_raw * (BPS + slippage_bps):
        # The minimum was taken from the first run: now it would protect too little.
        raise NodeFault("it told of the same trade twice, and not the same")
    if ran.came_raw < min_raw:
        raise CallerFault("would_fail", "Run a second time it brings less than its own minimum.")
    paid_wei = quote_in_wei(ran.spent_raw, place.venue.quote, desk.opened.run.setting.market)
    exits = [
        judge_exit(sell_back.exit(paid_wei, rehearsals.evidence), desk.ctx.policy) for sell_back in sell_backs
    ]
    if exits and _is_dust(exits[0]):
        raise CallerFault("too_small", "That little cannot be sold again: it would bring nothing.")
    return FinalRun(
        done=ran,
        min_raw=min_raw,
        gas_limits=gas_limits,
        slippage_bps=slippage_bps,
        cut=amount_raw < rehearsed.written.amount_raw,
        exit=exits[0] if exits else None,
        impact_bps=rehearsals.impact_bps(rehearsed),
        evidence=rehearsals.evidence,
        judgement=rehearsals.judgement,
    )


async def _run(
    desk: TradeBuilder,
    rehearsed: RehearsedTrade,
    final: WrittenTrade,
    bought: list[BroughtToken],
    meter: Meter,
) -> tuple[RehearsedTrade, tuple[int, ...], list[SellBackResult]]:
    """The final form under each gas limit in turn, and the sells after it: the first that goes through, its
    limits, and what came of the sells. Raises CallerFault and NodeFault."""
    variants = [
        desks.wallet_calls_of(desk, final, limits, rehearsed.ran)
        for limits in _limits(desk, rehearsed, final)
    ]
    plans = [
        desks.before_plan(desk, final, variants[0]),
        *(desks.run_plan(desk, final, variant) for variant in variants),
    ]
    running, selling = Meter(), Meter()
    # The calls are our own: each venue has as much as a caller's request has in all.
    gas = desk.ctx.policy.most_venues * desk.ctx.policy.trade_gas_budget
    requests = [build(plan, desk.head.block, desk.head.known_dialect()) for plan in plans]
    answers, sell_backs = await at_once(
        desk.ctx.node.batch(requests, running), sold_back(variants[0], bought, selling, gas)
    )
    meter.add(running, selling)
    before, *run_results = (
        read(plan, results, desk.head.block, desk.head.known_dialect())
        for plan, results in zip(plans, answers, strict=True)
    )
    runs = [
        desks.read_rehearsal(desk, final, variant, calls.together(before, results))
        for variant, results in zip(variants, run_results, strict=True)
    ]
    ran = next((run for run in runs if isinstance(run, RehearsedTrade)), runs[0])
    if isinstance(ran, Missing):
        raise NodeFault(ran.why)
    if isinstance(ran, CallerFault):
        raise ran
    variant = next(variant for variant, run in zip(variants, runs, strict=True) if run is ran)
    if bought and variant is not variants[0]:
        # With the usual gas it does not go through: what it buys is sold again as it is sent.
        sell_backs = await sold_back(variant, bought, meter, gas)
    return ran, variant.gas_limits, sell_backs


_TOO_SMALL = {
    "buy": ("too_small", "That little buys less than the token's least unit."),
    "sell": ("would_fail", "That little brings less than the least unit of what is paid."),
}


def _is_dust(finding: ExitFinding) -> bool:
    """True where a curve pays nothing for what was bought."""
    outcome = finding.reading.full if finding.reading is not None else None
    return (
        finding.code == "cannot_sell" and isinstance(outcome, RefusedCall) and outcome.reason == "ZeroAmount"
    )


def _sure(rehearsed: RehearsedTrade, amount_raw: int) -> BalanceChange:
    """What is there to be sold for sure: where less is spent than was rehearsed a rounding may be missing."""
    cut_raw = rehearsed.moved.raw // 10**6 if amount_raw < rehearsed.written.amount_raw else 0
    return replace(rehearsed.moved, raw=rehearsed.moved.raw - cut_raw)


def _limits(desk: TradeBuilder, rehearsed: RehearsedTrade, final: WrittenTrade) -> list[tuple[int, ...]]:
    """Half as much again as each step takes: as it did when it was rehearsed, but for the bytes in which its
    final form differs. Then more, where more is to be left."""
    most, policy = desk.ctx.policy.buy_gas_limit, desk.ctx.policy
    used = [
        (desks.kind_of(call), outcome.gas_used - _calldata_gas(call))
        for call, outcome in zip(rehearsed.written.calls, rehearsed.ran.calls, strict=True)
    ]

    def usual(call: Call) -> int:
        matching = [gas for kind, gas in used if kind == desks.kind_of(call)]
        assert matching, "every final step was rehearsed"
        gas = (matching[0] + _calldata_gas(call)) * 3 // 2 + desk.head.known_dialect().layer_one_gas(
            call.data
        )
        return min(most, gas)

    least = tuple(usual(call) for call in final.calls)
    higher = [limit for limit in policy.sell_gas_ladder if limit > max(least)]
    return [least, *((*least[:-1], limit) for limit in higher)]


def _calldata_gas(call: Call) -> int:
    """What a transaction pays for its calldata: 4 gas for a zero byte, 16 for another one (EIP-2028)."""
    body = bytes.fromhex(call.data[2:])
    return 16 * len(body) - 12 * body.count(0)
