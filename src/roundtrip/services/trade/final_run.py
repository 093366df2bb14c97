"""The third batch of a trade: a run of its final form, and after a buy the sell straight back."""

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

from . import trade_builder
from .rehearsal import Rehearsals
from .sell_back import BroughtToken, SellBackResult, brought_token, sell_all
from .trade_builder import TOO_LITTLE, RehearsedTrade, TradeBuilder, WrittenTrade, write


@dataclass(frozen=True, slots=True)
class FinalRun:
    """The final form as it ran. ``min_raw``: the least that arrives; ``cut``: the venue takes only this part
    of the requested amount; ``gas_limits``: of each step; ``exit``: the sell-back of a buy; ``impact_bps``:
    the price impact of a sell, against a small one."""

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
        """True where a missing answer of the node left the verdict open."""
        exit_gap = self.exit.missing if self.exit is not None else None
        return any(
            missing is not None and missing.fault == "node" for missing in (self.judgement.missing, exit_gap)
        )


async def final_run(
    builder: TradeBuilder, rehearsals: Rehearsals, rehearsed: RehearsedTrade, slippage_bps: int, meter: Meter
) -> FinalRun:
    """Writes the final form of ``rehearsed`` and runs it exactly as it would be sent. Raises CallerFault
    (would_fail, too_small) and NodeFault."""
    min_put_out_raw = rehearsed.put_out_raw * (BPS - slippage_bps) // BPS
    min_raw = min_put_out_raw * rehearsed.came_raw // rehearsed.put_out_raw
    if min_raw == 0:
        raise CallerFault(*_TOO_SMALL[builder.side])
    place, terms = rehearsed.written.place, TradeTerms(min_put_out_raw, builder.deadline_s)
    # Only what the venue takes is sent: near its end a curve takes only the rest of its sale.
    taxed, amount_raw = rehearsed.put_out_raw != rehearsed.came_raw, rehearsed.taken_raw(builder.side)
    final = write(builder, place, amount_raw, terms, rehearsed.written.clear_first, taxed)
    bought = (
        [brought_token(builder.buy_round, rehearsed.moved, _surely_sellable(rehearsed, amount_raw))]
        if builder.side == "buy"
        else []
    )
    ran, gas_limits, sell_backs = await _run(builder, rehearsed, final, bought, meter)
    if ran.came_raw * BPS > rehearsed.came_raw * (BPS + slippage_bps):
        # The minimum comes from the first run: now it would protect too little.
        raise NodeFault("it gave two different results for the same trade")
    if ran.came_raw < min_raw:
        raise CallerFault("would_fail", "A second run of the same trade brings less than its own minimum.")
    paid_wei = quote_in_wei(ran.spent_raw, place.venue.quote, builder.buy_round.run.setting.market)
    exits = [
        judge_exit(sell_back.exit(paid_wei, rehearsals.evidence), builder.ctx.policy)
        for sell_back in sell_backs
    ]
    if exits and _is_dust(exits[0]):
        raise CallerFault("too_small", "What this amount buys brings nothing when it is sold: buy more.")
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
    builder: TradeBuilder,
    rehearsed: RehearsedTrade,
    final: WrittenTrade,
    bought: list[BroughtToken],
    meter: Meter,
) -> tuple[RehearsedTrade, tuple[int, ...], list[SellBackResult]]:
    """Runs the final form with each set of gas limits, and the sells after it. Returns the first run that
    succeeds, its limits, and the sells. Raises CallerFault and NodeFault."""
    variants = [
        trade_builder.wallet_calls_of(builder, final, limits, rehearsed.ran)
        for limits in _limits(builder, rehearsed, final)
    ]
    plans = [
        trade_builder.before_plan(builder, final, variants[0]),
        *(trade_builder.run_plan(builder, final, variant) for variant in variants),
    ]
    running, selling = Meter(), Meter()
    # The calls are written here: each venue gets as much gas as a whole request of a caller.
    gas = builder.ctx.policy.most_venues * builder.ctx.policy.trade_gas_budget
    requests = [build(plan, builder.head.block, builder.head.known_dialect()) for plan in plans]
    answers, sell_backs = await at_once(
        builder.ctx.node.batch(requests, running), sell_all(variants[0], bought, selling, gas)
    )
    meter.add(running, selling)
    before, *run_results = (
        read(plan, results, builder.head.block, builder.head.known_dialect())
        for plan, results in zip(plans, answers, strict=True)
    )
    runs = [
        trade_builder.read_rehearsal(builder, final, variant, calls.together(before, results))
        for variant, results in zip(variants, run_results, strict=True)
    ]
    ran = next((run for run in runs if isinstance(run, RehearsedTrade)), runs[0])
    if isinstance(ran, Missing):
        raise NodeFault(ran.why)
    if isinstance(ran, CallerFault):
        raise ran
    variant = next(variant for variant, run in zip(variants, runs, strict=True) if run is ran)
    if bought and variant is not variants[0]:
        # With the usual gas it fails: repeat the sells with the calls as they are sent.
        sell_backs = await sell_all(variant, bought, meter, gas)
    return ran, variant.gas_limits, sell_backs


_TOO_SMALL = {
    "buy": ("too_small", TOO_LITTLE),
    "sell": ("would_fail", "This amount brings less than the smallest unit of the money: sell more."),
}


def _is_dust(finding: ExitFinding) -> bool:
    """True where a curve pays nothing for what was bought."""
    outcome = finding.reading.full if finding.reading is not None else None
    return (
        finding.code == "cannot_sell" and isinstance(outcome, RefusedCall) and outcome.reason == "ZeroAmount"
    )


def _surely_sellable(rehearsed: RehearsedTrade, amount_raw: int) -> BalanceChange:
    """The amount that can surely be sold: where less is spent than rehearsed, rounding may reduce it."""
    cut_raw = rehearsed.moved.raw // 10**6 if amount_raw < rehearsed.written.amount_raw else 0
    return replace(rehearsed.moved, raw=rehearsed.moved.raw - cut_raw)


def _limits(builder: TradeBuilder, rehearsed: RehearsedTrade, final: WrittenTrade) -> list[tuple[int, ...]]:
    """Gas limits of the steps: 1.5 times the gas of the rehearsal, corrected for the calldata in which the
    final form differs. Then higher ones for the last step."""
    max_gas, policy = builder.ctx.policy.buy_gas_limit, builder.ctx.policy
    used = [
        (trade_builder.kind_of(call), outcome.gas_used - _calldata_gas(call))
        for call, outcome in zip(rehearsed.written.calls, rehearsed.ran.calls, strict=True)
    ]

    def usual_limit(call: Call) -> int:
        matching = [gas for kind, gas in used if kind == trade_builder.kind_of(call)]
        assert matching, "every final step was rehearsed"
        return min(max_gas, (matching[0] + _calldata_gas(call)) * 3 // 2)

    usual_limits = tuple(usual_limit(call) for call in final.calls)
    higher = [limit for limit in policy.sell_gas_ladder if limit > max(usual_limits)]
    return [usual_limits, *((*usual_limits[:-1], limit) for limit in higher)]


def _calldata_gas(call: Call) -> int:
    """The gas of a transaction's calldata: 4 per zero byte, 16 per other byte (EIP-2028)."""
    body = bytes.fromhex(call.data[2:])
    return 16 * len(body) - 12 * body.count(0)
