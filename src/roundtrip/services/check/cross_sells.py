"""Sells on one venue of what was bought on another: the cheapest, where a buy brings most."""

from dataclasses import replace

from roundtrip.chain.simulate import outcomes, probe_plans
from roundtrip.chain.simulate.request import Plan
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import CellOutcome, Probe, RefusedCall, Size

from .main_trips import amount_of_size, buy_of_probe
from .session import CheckSession, PlanResult, VenueTrial, bought_raw


def cheapest_of(venues: list[VenueTrial]) -> VenueTrial | None:
    """The venue where a buy brings most; None where nothing was bought."""
    buying = [venue for venue in venues if venue.main_size() is not None]
    return max(buying, key=bought_raw, default=None)


def _whole(run: CheckSession, size: Size) -> Probe:
    return Probe(size, run.means.policy.later_s, BPS, 0)


def cross_plan(run: CheckSession, cheapest: VenueTrial, venue: VenueTrial) -> Plan:
    """Plans a buy on the cheapest venue and its sell on this one."""
    size = cheapest.main_size()
    assert size is not None
    env, probe = run.environments[0], _whole(run, size)
    amount, bought = amount_of_size(run, cheapest, size, env), buy_of_probe(cheapest, probe)
    return probe_plans.sell_plan(cheapest.place, run.setting, env, probe, amount, bought, venue.place)


def read_crossed(
    run: CheckSession, venues: list[VenueTrial], venue: VenueTrial, result: PlanResult
) -> CellOutcome:
    """The outcome of ``cross_plan``, paid in the venue's own quote."""
    cheapest = cheapest_of(venues)
    assert cheapest is not None
    size = cheapest.main_size()
    assert size is not None
    if isinstance(result, RefusedCall):
        return replace(result, step="sell")
    env, probe, policy = run.environments[0], _whole(run, size), run.means.policy
    bought = buy_of_probe(cheapest, probe)
    return outcomes.read_sell(result, cheapest.place, env, probe, bought, policy, venue.place)
