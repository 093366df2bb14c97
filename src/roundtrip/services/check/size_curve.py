"""What buying and selling straight back loses at eight sizes, on the venue that a user would take: each size
by a simulation of its own on the newest block, by a wallet that nobody else trades beside.

No verdict: the sells of a check also come an hour and a day later, and in company."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.simulate import legs, outcomes, probe_plans
from roundtrip.chain.simulate.request import Plan
from roundtrip.domain.base.figures import format_amount
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import (
    BuyOutcome,
    CompletedBuy,
    EnvironmentBuy,
    Missing,
    Probe,
    RefusedCall,
)
from roundtrip.domain.check.sales import Sale, sell_result
from roundtrip.domain.verdicts.risks import MARKED_LOSS_BPS
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.main_trips import probe_plan, read_cell
from roundtrip.services.engine.session import CheckSession, PlanResult, VenueTrial
from roundtrip.services.engine.token_check import start_check
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import TokenParams

from .probe_grid import kept_bps

SIZES_WEI = tuple(thousandths * 10**15 for thousandths in (10, 30, 100, 300, 1_000, 2_000, 5_000, 10_000))
TTL_MS = 30_000
Came = Literal["sells", "part", "refused", "not_bought", "unknown"]
"""``not_bought``: the buy was refused, or would sell a curve out."""


class SizePoint(msgspec.Struct, frozen=True, rename="camel"):
    """One size. ``loss_bps``: of what was paid, if nobody else trades; ``impact_bps``: fewer tokens than a
    small buy gets for its money, which the sell gives back only if nobody sells before. Both None: it did not
    sell (``came``), or a small buy, which the impact is measured against, is not known."""

    eth: str
    came: Came
    loss_bps: int | None = None
    impact_bps: int | None = None

    def lost_bps(self) -> int | None:
        """What is lost if others sell first: the loss, of what the impact leaves."""
        if self.loss_bps is None:
            return None
        return BPS - (BPS - self.loss_bps) * (BPS - (self.impact_bps or 0)) // BPS

    def is_cheap(self) -> bool:
        """Whether it sells whole and loses less than the mark."""
        lost_bps = self.lost_bps() if self.came == "sells" else None
        return lost_bps is not None and lost_bps < MARKED_LOSS_BPS


class SizeCurve(msgspec.Struct, frozen=True, rename="camel"):
    """``points``: from the smallest size on; empty: no venue takes a buy. ``largest_eth``: the largest size
    simulated up to which every one loses less than ``MARKED_LOSS_BPS``, the impact included. None: the
    smallest loses more already, or it is beyond the largest (``is_deeper``)."""

    block: int
    points: list[SizePoint]
    largest_eth: str | None
    is_deeper: bool


_Sized = tuple[CheckSession, VenueTrial]
"""A size on the venue: the session whose policy spends it, and what its buy came to."""


async def size_curve(ctx: Context, params: TokenParams) -> UseCaseAnswer[SizeCurve]:
    """Buys and sells at every size: the buy round, and one request more for the buys and one for the sells;
    then as much again at sizes between the last that loses little and the next. Raises NodeFault when the
    node gave no usable answer."""
    meter = Meter()
    bought = await start_check(ctx, ctx.heads.current(), params.token(), meter)
    best = next((venue for venue in bought.venues_to_sell_on() if venue.main_size() == "probe"), None)
    block = bought.run.head.block.number
    if best is None:
        return UseCaseAnswer(SizeCurve(block, [], None, False), TTL_MS, meter=meter)
    points = await _try_sizes(bought, best, SIZES_WEI, ctx.policy)
    kept = count_cheap(points)
    is_deeper = kept == len(points)
    if kept == 0 or is_deeper:
        return UseCaseAnswer(SizeCurve(block, points, None, is_deeper), TTL_MS, meter=meter, block=block)
    between_wei = split_sizes(SIZES_WEI[kept - 1], SIZES_WEI[kept])
    finer = count_cheap(await _try_sizes(bought, best, between_wei, ctx.policy))
    largest_eth = format_amount((SIZES_WEI[kept - 1], *between_wei)[finer], 18)
    return UseCaseAnswer(SizeCurve(block, points, largest_eth, False), TTL_MS, meter=meter, block=block)


async def _try_sizes(
    bought: BuyRoundResult, best: VenueTrial, sizes_wei: Sequence[int], policy: Policy
) -> list[SizePoint]:
    trials = await _buy_each(bought, best, sizes_wei)
    return await _sell_each(bought.run, trials, best.completed_buy("thousandth"), policy)


async def _buy_each(bought: BuyRoundResult, best: VenueTrial, sizes_wei: Sequence[int]) -> dict[int, _Sized]:
    place, environment = best.place, bought.run.environments[0]
    runs, plans = dict[int, CheckSession](), dict[int, tuple[legs.VenuePlace, Plan]]()
    amounts: dict[int, int] = {}
    for wei in sizes_wei:
        policy = bought.run.setting.policy.at_size(wei)
        runs[wei] = replace(
            bought.run,
            means=replace(bought.run.means, policy=policy),
            setting=replace(bought.run.setting, policy=policy),
        )
        wallet = probe_plans.main_wallet(environment)
        amount_raw = legs.size_raw("probe", place, runs[wei].setting, wallet)
        if isinstance(amount_raw, int):
            amounts[wei] = amount_raw
            plan = probe_plans.buy_plan(place, runs[wei].setting, wallet, "probe", amount_raw)
            plans[wei] = (place, plan)
    _, results = await bought.run.ask({}, plans)
    outcomes_of = {
        wei: _read_buy(run, place, results.get(wei), amounts.get(wei)) for wei, run in runs.items()
    }
    return {
        wei: (run, VenueTrial(place, best.facts, (EnvironmentBuy("probe", 0, outcomes_of[wei]),), None))
        for wei, run in runs.items()
    }


def _read_buy(
    run: CheckSession, place: legs.VenuePlace, result: PlanResult | None, amount_raw: int | None
) -> BuyOutcome:
    if result is None or amount_raw is None:
        return Missing("node", "the price of eth in the money side is not known")
    if isinstance(result, Missing | RefusedCall):
        return result
    return outcomes.read_buy(result, place, run.environments[0], amount_raw)


async def _sell_each(
    run: CheckSession, trials: dict[int, _Sized], small: CompletedBuy | None, policy: Policy
) -> list[SizePoint]:
    probe = Probe("probe", policy.later_s, BPS, 0)
    plans = {
        wei: (venue.place, probe_plan(sized, venue, probe))
        for wei, (sized, venue) in trials.items()
        if venue.completed_buy("probe") is not None
    }
    results: Mapping[int, PlanResult] = await run.ask_later(plans) if plans else {}
    return [_read_point(wei, sized, probe, results.get(wei), small) for wei, sized in trials.items()]


def _read_point(
    wei: int, sized: _Sized, probe: Probe, result: PlanResult | None, small: CompletedBuy | None
) -> SizePoint:
    run, venue = sized
    eth, bought = format_amount(wei, 18), venue.completed_buy("probe")
    if bought is None:
        return SizePoint(eth, "unknown" if isinstance(venue.buys[0].outcome, Missing) else "not_bought")
    if result is None or small is None:
        return SizePoint(eth, "unknown")
    sold = sell_result(read_cell(run, venue, probe, result, None).outcome, run.means.policy)
    if not isinstance(sold, Sale):
        return SizePoint(eth, "refused" if isinstance(sold, RefusedCall) else "unknown")
    is_filled = bought.paid_raw * 100 >= bought.offered_raw * 98
    came: Came = "sells" if sold.whole and is_filled else "part"
    return SizePoint(eth, came, sold.loss_bps, max(0, BPS - kept_bps(bought, small)))


def count_cheap(points: Sequence[SizePoint]) -> int:
    """How many sizes from the smallest on sell whole and lose less than the mark."""
    costly = (n for n, point in enumerate(points) if not point.is_cheap())
    return next(costly, len(points))


def split_sizes(least_wei: int, most_wei: int) -> list[int]:
    """Seven sizes between the two at equal steps, cut to two significant digits; those that fall on an end or
    on each other are left out."""
    sizes_wei = {_cut(least_wei + (most_wei - least_wei) * n // 8) for n in range(1, 8)}
    return sorted(wei for wei in sizes_wei if least_wei < wei < most_wei)


def _cut(wei: int) -> int:
    unit: int = 10 ** max(0, len(str(wei)) - 2)
    return wei // unit * unit
