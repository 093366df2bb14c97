"""The isolation round: what deviated in the sell round is tried alone, with one difference at a time."""

from collections.abc import Sequence
from typing import NamedTuple

from roundtrip.chain.simulate.request import Plan
from roundtrip.domain.check.cross_exit import cheapest_of, is_tried_beside, loses_much, may_be_cheapest
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    Crowd,
    Evidence,
    Missing,
    RefusedCall,
    Size,
    VenueEvidence,
)
from roundtrip.domain.check.venue_code import best_venue, enough, needs_pieces, takes_sells, tie_order
from roundtrip.domain.check.venue_reading import VenueReading, main_sells, read_venue

from .buy_round import BuyRoundResult
from .crowd import fit_attempts_to
from .crowd_sells import CrowdSells, company_plan, company_sellers, isolation_plan, isolations
from .main_trips import (
    beside_probes,
    cross_plan,
    hand_over_plan,
    nearly_all_probes,
    other_way_probes,
    part_probes,
    pieces_probe,
    probe_plan,
    pull_plan,
)
from .sell_results import (
    CompanySell,
    CrossSell,
    CrowdOf,
    Crowds,
    DirectTransfer,
    HandOver,
    IsolatedSell,
    ProbeSell,
    Sell,
    SellPlans,
    SellRoundResult,
    read_evidence,
)
from .sell_round import find_sell_gas, send_groups
from .session import CheckSession, VenueTrial


class ReadEvidence(NamedTuple):
    """The evidence of all rounds. ``read``: its venues, each alone; None: not read yet."""

    evidence: Evidence
    read: tuple[VenueReading, ...] | None


async def run_isolation_round(bought: BuyRoundResult, sold: SellRoundResult) -> ReadEvidence:
    """Tries alone what deviated. Sends one batch where something did, or none."""
    venues, launch = sold.venues(), bought.data.launch
    readings = tuple(read_venue(venue, sold.run.means.policy, launch) for venue in venues)
    isolated = _plan_isolation(sold, venues, readings)
    if not isolated:
        return ReadEvidence(read_evidence(bought, venues), readings)
    results = await send_groups(sold.run, sold.trials, [{sell: plan} for sell, plan in isolated.items()])
    venues = _read_venues(sold.with_results(sold.results | results), launch)
    return ReadEvidence(read_evidence(bought, venues), None)


def _read_venues(sold: SellRoundResult, launch: AnyLaunch | Missing | None) -> tuple[VenueEvidence, ...]:
    """The evidence of the venues. Of the sells on another venue, it has those of what the cheapest brings."""
    venues, run = sold.venues(), sold.run
    readings = [read_venue(venue, run.means.policy, launch) for venue in venues]
    cheapest = cheapest_of(venues, readings, run.setting.market, run.means.policy)
    kept = {
        sell: result
        for sell, result in sold.results.items()
        if not isinstance(sell, CrossSell) or sell.cheapest == cheapest
    }
    return venues if len(kept) == len(sold.results) else sold.with_results(kept).venues()


def _plan_isolation(
    sold: SellRoundResult, venues: Sequence[VenueEvidence], readings: Sequence[VenueReading]
) -> SellPlans:
    """The trades that explain what deviated: smaller sells and sells by others where the main wallet could
    not sell all at once, the wallets of the crowd that met something else, and what other wallets meet on the
    best venue where that was tried on another. Empty: nothing deviated."""
    run, trials, policy, plans = sold.run, sold.trials, sold.run.means.policy, dict[Sell, Plan]()
    best = best_venue(readings, tie_order(venues, run.setting.market), policy)
    for number, (trial, venue, reading) in enumerate(zip(trials, venues, readings, strict=True)):
        size = trial.main_size()
        if size is None:
            continue
        plans |= _plan_main(run, number, trial, venue, reading, number == best)
        main = trial.completed_buy(size)
        parts = _parts(sold.crowds, number, "crowd")
        if isinstance(venue.crowd, Crowd) and parts and main is not None:
            main_met, gas = main_sells(reading), find_sell_gas(run, trials, number, sold.results)
            apart = _parts(sold.crowds, number, "recalled", "largest")
            asked = isolations(run, venue.crowd, parts, main_met, (size, main), apart, gas)
            for sells in parts:
                if sellers := company_sellers(run, venue.crowd, sells, main_met, gas):
                    plans[CompanySell(number, tuple(sellers.items()))] = company_plan(
                        run, trial, sells, sellers
                    )
            for isolation in asked:
                plans[IsolatedSell(number, isolation)] = (
                    isolation_plan(run, trial.place, isolation)
                    if isolation.attempts
                    else probe_plan(run, trial, pieces_probe(policy, size))
                )
    return plans | _cross_plans(run, trials, venues, readings)


def _plan_main(
    run: CheckSession,
    number: int,
    trial: VenueTrial,
    venue: VenueEvidence,
    reading: VenueReading,
    is_best: bool,
) -> SellPlans:
    """The trades beside the crowd's on one venue: smaller sells and sells by others where the main wallet
    could not sell all at once; what other wallets meet on the best venue."""
    policy, size, plans = run.means.policy, trial.main_size(), dict[Sell, Plan]()
    assert size is not None
    main = trial.completed_buy(size)
    assert main is not None
    if not enough(reading.full, policy):
        plans[HandOver(number)] = hand_over_plan(run, trial, size)
        plans[DirectTransfer(number)] = pull_plan(run, trial, size)
        for probe in part_probes(policy, size):
            plans[ProbeSell(number, probe)] = probe_plan(run, trial, probe)
    elif is_best and not is_tried_beside(reading):
        for probe in beside_probes(policy, size):
            plans[ProbeSell(number, probe)] = probe_plan(run, trial, probe)
    refused_gas = (cell.outcome.gas for cell in venue.cells if isinstance(cell.outcome, RefusedCall))
    fitted = fit_attempts_to(run, main, max(refused_gas, default=0))
    for probe in nearly_all_probes(policy, size, venue, reading):
        plans[ProbeSell(number, probe)] = probe_plan(fitted, trial, probe)
    if needs_pieces(reading, policy):
        for probe in other_way_probes(run, size, trial.place.venue):
            plans[ProbeSell(number, probe)] = probe_plan(run, trial, probe)
    return plans


def _parts(crowds: Crowds, number: int, *of: CrowdOf) -> list[CrowdSells]:
    """The parts of a venue's crowd that trade."""
    return [
        sells
        for sell, sells in crowds.items()
        if sell.venue == number and sell.of in of and isinstance(sells, CrowdSells)
    ]


def _cross_plans(
    run: CheckSession,
    trials: list[VenueTrial],
    venues: Sequence[VenueEvidence],
    readings: Sequence[VenueReading],
) -> SellPlans:
    """Sells on every other venue of what the cheapest one brings, where that may not take it back; of each
    that may turn out to be the cheapest."""
    cheapest = cheapest_of(venues, readings, run.setting.market, run.means.policy)
    if cheapest is None:
        return {}
    reading, policy = readings[cheapest], run.means.policy
    differs = reading.crowd is not None and reading.crowd.differing > 0
    is_fair = (
        takes_sells(reading, policy) and reading.inconsistent is False and not loses_much(reading, policy)
    )
    if is_fair and not differs:
        return {}
    sizes: tuple[Size | None, ...] = (None, "large")
    return {
        CrossSell(number, first, size): cross_plan(run, trials[first], trial, size)
        for first in dict.fromkeys([cheapest, *may_be_cheapest(readings, policy)])
        for number, trial in enumerate(trials)
        if number != first and trial.main_size() is not None
        for size in sizes
        if size is None or trials[first].completed_buy(size)
    }
