"""The third batch of a trade: a run of its final form, and after a buy the sell straight back."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate.request import build, read
from roundtrip.chain.wallet import calls
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.domain.check.sales import loss_bps
from roundtrip.domain.check.verdict import Judgement
from roundtrip.domain.trade import text as trade_text
from roundtrip.domain.trade.judge import BalanceChange, ExitFinding, judge_exit
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.venues.base import Call, TradeTerms

from . import trade_builder
from .rehearsal import Rehearsals
from .sell_back import BroughtToken, SellBackResult, brought_token, sell_all, worth_wei
from .trade_builder import BUYS_NOTHING, BelowMinimum, RehearsedTrade, Side, TradeBuilder, WrittenTrade, write


@dataclass(frozen=True, slots=True)
class FinalRun:
    """The final form as it ran. ``min_raw``: the least that arrives; ``cut``: the venue takes only this part
    of the requested amount; ``gas_limits``: of each step; ``exit``: the sell-back of a buy; ``impact_bps``:
    the price impact of a sell, against a small one; ``lost_bps``: how much less what a sell brings is worth
    than what it spends, as a simulation of its steps says; None: not known. ``lowered_bps``: how far its
    minimum is below that of the rehearsal, because the run brought less."""

    done: RehearsedTrade
    min_raw: int
    gas_limits: tuple[int, ...]
    slippage_bps: int
    cut: bool
    exit: ExitFinding | None
    impact_bps: int | None
    lost_bps: int | None
    evidence: Evidence
    judgement: Judgement
    lowered_bps: int = 0

    def lost_by_node(self) -> bool:
        """True where a missing answer of the node left the verdict open."""
        exit_gap = self.exit.missing if self.exit is not None else None
        return any(
            missing is not None and missing.fault == "node" for missing in (self.judgement.missing, exit_gap)
        )


MAX_SLIPPAGE_BPS = 5000
"""The largest slippage that a caller may ask for."""


@dataclass(frozen=True, slots=True)
class FormRun:
    """One run of a final form. ``expected``: the trade whose output set its minimum."""

    expected: RehearsedTrade
    min_raw: int
    ran: RehearsedTrade | CallerFault
    gas_limits: tuple[int, ...]
    sell_backs: list[SellBackResult]

    def through(self) -> RehearsedTrade:
        """The run. Raises CallerFault where it failed."""
        if isinstance(self.ran, CallerFault):
            raise self.ran
        return self.ran

    def own_raw(self) -> int | None:
        """The run's own output; None where it is not known."""
        if isinstance(self.ran, RehearsedTrade):
            return self.ran.came_raw
        return self.ran.put_out_raw if isinstance(self.ran, BelowMinimum) else None

    def needed_bps(self, rehearsed: RehearsedTrade) -> int | None:
        """The slippage, against the rehearsal, that lets this run through; None where it is not known."""
        own_raw = self.own_raw()
        full_raw = rehearsed.came_raw if isinstance(self.ran, RehearsedTrade) else rehearsed.put_out_raw
        return None if own_raw is None else max(0, -((own_raw - full_raw) * BPS // full_raw))

    def lowered_bps(self, rehearsed: RehearsedTrade) -> int:
        """How far its minimum is below the rehearsal's, because the run that set it brought less."""
        return max(0, loss_bps(rehearsed.came_raw, self.expected.came_raw))

    def is_through(self) -> bool:
        """True where it brings its own minimum."""
        return isinstance(self.ran, RehearsedTrade) and self.ran.came_raw >= self.min_raw

    def brings_too_little(self) -> bool:
        """True where only its own minimum keeps it from going through."""
        return isinstance(self.ran, BelowMinimum | RehearsedTrade) and not self.is_through()

    def brings_too_much(self, slippage_bps: int) -> bool:
        """True where its minimum, which another run set, protects too little."""
        most_raw = self.expected.came_raw * (BPS + slippage_bps)
        return isinstance(self.ran, RehearsedTrade) and self.ran.came_raw * BPS > most_raw


async def final_run(
    builder: TradeBuilder, rehearsals: Rehearsals, rehearsed: RehearsedTrade, slippage_bps: int, meter: Meter
) -> FinalRun:
    """Writes the final form of ``rehearsed`` and runs it exactly as it would be sent. Raises CallerFault
    (would_fail, too_small) and NodeFault."""

    def run(expected: RehearsedTrade) -> Awaitable[FormRun]:
        return _run_form(builder, expected, slippage_bps, meter)

    form = await choose_form(run, rehearsed, builder.side, slippage_bps)
    ran, market = form.through(), builder.buy_round.run.setting.market
    paid_wei = quote_in_wei(ran.spent_raw, ran.written.place.venue.quote, market)
    exits = [
        judge_exit(sell_back.exit(paid_wei, rehearsals.evidence), builder.ctx.policy)
        for sell_back in form.sell_backs
    ]
    if exits and _is_dust(exits[0]):
        raise CallerFault("too_small", "What this amount buys brings nothing when it is sold: buy more.")
    # What reaches a seller beside the swap, or in one of two runs only, is not promised.
    came_raw = ran.came_raw if builder.side == "buy" else min(ran.came_raw, form.expected.came_raw)
    return FinalRun(
        done=replace(ran, came_raw=came_raw),
        min_raw=form.min_raw,
        gas_limits=form.gas_limits,
        slippage_bps=slippage_bps,
        cut=ran.written.amount_raw < rehearsed.written.amount_raw,
        exit=exits[0] if exits else None,
        impact_bps=rehearsals.impact_bps(ran),
        lost_bps=_lost_bps(builder, ran, came_raw) if builder.side == "sell" else None,
        evidence=rehearsals.evidence,
        judgement=rehearsals.judgement,
        lowered_bps=form.lowered_bps(rehearsed),
    )


def _lost_bps(builder: TradeBuilder, ran: RehearsedTrade, came_raw: int) -> int | None:
    quote, market = ran.written.place.venue.quote, builder.buy_round.run.setting.market
    spent_wei = worth_wei(builder.buy_round, ran.spent_raw)
    came_wei = quote_in_wei(came_raw, quote, market)
    return loss_bps(spent_wei, came_wei) if spent_wei and came_wei is not None else None


async def choose_form(
    run: Callable[[RehearsedTrade], Awaitable[FormRun]],
    rehearsed: RehearsedTrade,
    side: Side,
    slippage_bps: int,
) -> FormRun:
    """The form to write: with the minimum of the rehearsal or, for a sell that ``run`` shows to bring another
    amount, of that run. Raises CallerFault (would_fail) where that brings less than its minimum too, and
    NodeFault."""
    form = await run(rehearsed)
    needed_bps, own_raw = form.needed_bps(rehearsed), form.own_raw()
    deviates = form.brings_too_little() or form.brings_too_much(slippage_bps)
    if side == "sell" and deviates and own_raw:
        # Only once: a trade that brings another amount in each run would be repeated for ever.
        again = await run(replace(rehearsed, came_raw=own_raw, put_out_raw=own_raw))
        if again.is_through() or not form.is_through():
            form, needed_bps = again, max(needed_bps or 0, again.needed_bps(rehearsed) or 0) or None
    if form.brings_too_little():
        raise CallerFault("would_fail", trade_text.below_minimum(needed_bps, MAX_SLIPPAGE_BPS))
    if side == "buy" and form.brings_too_much(slippage_bps):
        # Its minimum would protect too little.
        raise NodeFault("it gave two different results for the same trade")
    return form


async def _run_form(
    builder: TradeBuilder, expected: RehearsedTrade, slippage_bps: int, meter: Meter
) -> FormRun:
    """Writes the form of ``expected`` with its minimum, and runs it. Raises CallerFault (too_small,
    would_fail) and NodeFault."""
    min_put_out_raw = expected.put_out_raw * (BPS - slippage_bps) // BPS
    min_raw = min_put_out_raw * expected.came_raw // expected.put_out_raw
    if min_raw == 0:
        raise CallerFault(*_TOO_SMALL[builder.side])
    place, terms = expected.written.place, TradeTerms(min_put_out_raw, builder.deadline_s)
    # Only what the venue takes is sent: near its end a curve takes only the rest of its sale.
    taxed, amount_raw = expected.put_out_raw != expected.came_raw, expected.taken_raw(builder.side)
    final = write(builder, place, amount_raw, terms, expected.written.clear_first, taxed)
    bought = (
        [brought_token(builder.buy_round, expected.moved, _surely_sellable(expected, amount_raw))]
        if builder.side == "buy"
        else []
    )
    ran, gas_limits, sell_backs = await _run(builder, expected, final, bought, meter)
    return FormRun(expected, min_raw, ran, gas_limits, sell_backs)


async def _run(
    builder: TradeBuilder,
    rehearsed: RehearsedTrade,
    final: WrittenTrade,
    bought: list[BroughtToken],
    meter: Meter,
) -> tuple[RehearsedTrade | CallerFault, tuple[int, ...], list[SellBackResult]]:
    """Runs the final form with each set of gas limits, and the sells after it. Returns the first run that
    succeeds, or the fault of the first, its limits, and the sells. Raises NodeFault."""
    variants = [
        trade_builder.wallet_calls_of(builder, final, limits, rehearsed.ran)
        for limits in _limits(builder, rehearsed, final)
    ]
    plans = [
        trade_builder.before_plan(builder, final, variants[0]),
        *(trade_builder.run_plan(builder, final, variant) for variant in variants),
    ]
    running, selling = Meter(), Meter()
    # This service wrote the calls, so each venue gets as much gas as a caller's whole request.
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
    variant = next(variant for variant, run in zip(variants, runs, strict=True) if run is ran)
    if bought and isinstance(ran, RehearsedTrade) and variant is not variants[0]:
        # With the usual gas it fails: repeat the sells with the calls as they are sent.
        sell_backs = await sell_all(variant, bought, meter, gas)
    return ran, variant.gas_limits, sell_backs


_TOO_SMALL = {
    "buy": ("too_small", BUYS_NOTHING),
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
