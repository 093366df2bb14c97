"""What buying and selling straight back loses at eight sizes, on the venue that a user would take: each size
by a simulation of its own on the newest block, by a wallet that nobody else trades beside.

No verdict: the sells of a check also come an hour and a day later, and in company."""

from collections.abc import Mapping
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


class SizeCurve(msgspec.Struct, frozen=True, rename="camel"):
    """``points``: from the smallest size on; empty: no venue takes a buy. ``largest_eth``: about the largest
    size up to which every one loses less than ``MARKED_LOSS_BPS``, the impact included, by a straight line
    between the two sizes around it. None: the smallest loses more already, or it is beyond the largest
    (``is_deeper``)."""

    block: int
    points: list[SizePoint]
    largest_eth: str | None
    is_deeper: bool


_Sized = tuple[CheckSession, VenueTrial]
"""A size on the venue: the session whose policy spends it, and what its buy came to."""


async def size_curve(ctx: Context, params: TokenParams) -> UseCaseAnswer[SizeCurve]:
    """Buys and sells at every size: the buy round, and one request more for the buys and one for the sells.
    Raises NodeFault when the node gave no usable answer."""
    meter = Meter()
    bought = await start_check(ctx, ctx.heads.current(), params.token(), meter)
    best = next((venue for venue in bought.venues_to_sell_on() if venue.main_size() == "probe"), None)
    block = bought.run.head.block.number
    if best is None:
        return UseCaseAnswer(SizeCurve(block, [], None, False), TTL_MS, meter=meter)
    trials = await _buy_each(bought, best)
    points = await _sell_each(bought.run, trials, best.completed_buy("thousandth"), ctx.policy)
    largest_eth, is_deeper = find_largest(points)
    return UseCaseAnswer(SizeCurve(block, points, largest_eth, is_deeper), TTL_MS, meter=meter, block=block)


async def _buy_each(bought: BuyRoundResult, best: VenueTrial) -> dict[int, _Sized]:
    place, environment = best.place, bought.run.environments[0]
    runs, plans = dict[int, CheckSession](), dict[int, tuple[legs.VenuePlace, Plan]]()
    amounts: dict[int, int] = {}
    for wei in SIZES_WEI:
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


def find_largest(points: list[SizePoint]) -> tuple[str | None, bool]:
    """About the largest size that loses less than the mark, and whether it is beyond the largest tried."""
    before: tuple[int, int] | None = None
    for point, wei in zip(points, SIZES_WEI, strict=True):
        lost_bps = point.lost_bps() if point.came == "sells" else None
        if lost_bps is None or lost_bps >= MARKED_LOSS_BPS:
            if before is None:
                return None, False
            size, size_lost_bps = before
            if lost_bps is not None and lost_bps > size_lost_bps:
                size += (wei - size) * (MARKED_LOSS_BPS - size_lost_bps) // (lost_bps - size_lost_bps)
            return _round_down(size), False
        before = wei, lost_bps
    return None, before is not None


def _round_down(wei: int) -> str:
    """The size in eth with two significant digits, cut."""
    unit = 10 ** max(0, len(str(wei)) - 2)
    return format_amount(wei // unit * unit, 18)
