"""Trip 2: for every venue that bought, one simulation a probe, none conditional on another."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from roundtrip.chain.rpc.client import CodeFault
from roundtrip.chain.simulate import legs, outcomes, probe_plans
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import (
    CellOutcome,
    CompletedBuy,
    Environment,
    HookCarry,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    Size,
    VenueEvidence,
)
from roundtrip.domain.check.venue_reading import brought_raw, pool_keep_bps

from .session import CheckSession, VenueTrial


def choose_venues(venues: list[VenueTrial], policy: Policy) -> list[VenueTrial]:
    """The venues that are judged: at most so many that bought, by what the buy brought (every venue is paid
    the same worth), and all that refused or are not known. A claim of liquidity counts for nothing.

    Pools that keep a toll by their own fee come last. Half of the places are kept for pools without a
    stranger's hook. Otherwise a few cheap pools that nobody can sell on would crowd the fair one out.
    """
    there = [v for v in venues if not (isinstance(v.facts, PoolFacts) and not v.facts.exists)]
    buying = [v for v in there if v.main_size() is not None]

    def order(venue: VenueTrial) -> tuple[bool, int]:
        tried = venue.place.venue
        toll = not tried.keeps_by_hook() and pool_keep_bps(tried.fee_pips) >= policy.toll_warn_bps
        return toll, -buy_brought(venue)

    ordered, most = sorted(buying, key=order), policy.most_venues
    hooked = [v for v in ordered if v.place.venue.rival_hook()]
    plain = [v for v in ordered if not v.place.venue.rival_hook()]
    kept = plain[: max(most - len(hooked), most // 2)]
    kept += hooked[: most - len(kept)]
    return [v for v in there if v in kept or v not in buying]


def buy_brought(venue: VenueTrial) -> int:
    """Base units of the token that the buy it is judged by brought."""
    return brought_raw(VenueEvidence(venue.place.venue, venue.facts, venue.buys))


@dataclass(frozen=True, slots=True)
class _SellRequest:
    """One simulation: which venue's, and the probe. Neither a probe nor ``crossed``: the token's own word,
    and what is carried past the pool; ``small`` of that only, at a thousandth, for where more is refused.
    """

    number: int
    plan: Plan
    probe: Probe | None = None
    crossed: bool = False
    small: bool = False
    handed: bool = False


async def ask_sell_round(run: CheckSession, venues: list[VenueTrial]) -> tuple[VenueEvidence, ...]:
    """A node that answered trip 1 and fails here has answered in part: its cells are Missing."""
    asked = list(_sell_requests(run, venues))
    reached: dict[int, int | None] = {}
    found = [VenueEvidence(venue.place.venue, venue.facts, venue.buys, (), venue.told) for venue in venues]
    for one, results in zip(asked, await _ask(run, venues, asked), strict=True):
        venue, known = venues[one.number], found[one.number]
        if one.handed:
            reached[one.number] = None if isinstance(results, RefusedCall) else outcomes.read_handed(results)
        elif one.probe is not None:
            cell = _cell(run, venue, one.probe, results, reached.get(one.number))
            known = replace(known, cells=(*known.cells, cell))
        elif one.crossed:
            known = replace(known, crossed=_read_crossed(run, venues, venue, results))
        elif one.small:
            if isinstance(known.carried, RefusedCall):
                known = replace(known, carried=_read_carried(venue, results, "thousandth"))
        else:
            told = results if isinstance(results, RefusedCall) else outcomes.read_told(results, "pull")
            known = replace(known, told_on_sell=told, carried=_read_carried(venue, results))
        found[one.number] = known
    return tuple(found)


def _sell_requests(run: CheckSession, venues: list[VenueTrial]) -> Iterator[_SellRequest]:
    cheapest = _cheapest(venues)
    for number, venue in enumerate(venues):
        size = venue.main_size()
        if size is None:
            continue
        yield _SellRequest(number, _handed_plan(run, venue, size), handed=True)
        for probe in _probes(run, venue, size):
            yield _SellRequest(number, _sell_plan(run, venue, probe), probe)
        yield _SellRequest(number, _pull_plan(run, venue, size))
        if venue.place.venue.keeps_by_hook() and venue.completed_buy("thousandth"):
            yield _SellRequest(number, _pull_plan(run, venue, "thousandth"), small=True)
        if cheapest is not None and venue is not cheapest:
            yield _SellRequest(number, _cross_plan(run, cheapest, venue), crossed=True)


async def _ask(
    run: CheckSession, venues: list[VenueTrial], asked: list[_SellRequest]
) -> list[Results | Missing | RefusedCall]:
    if not asked:
        return []
    try:
        return await run.ask_later([(venues[one.number].place, one.plan) for one in asked])
    except CodeFault as fault:
        return [Missing("token", fault.message)] * len(asked)
    except NodeFault as fault:
        return [Missing("node", fault.message)] * len(asked)


def _read_carried(
    venue: VenueTrial, results: Results | Missing | RefusedCall, at: Size | None = None
) -> HookCarry | RefusedCall | Missing | None:
    if not venue.place.venue.keeps_by_hook():
        return None
    if isinstance(results, RefusedCall):
        return results
    size = at or venue.main_size()
    bought = venue.completed_buy(size) if size is not None else None
    return outcomes.read_carried(results, 0 if bought is None else max(1, bought.received_raw))


# --- the way out ------------------------------------------------------------------------------------


def _cheapest(venues: list[VenueTrial]) -> VenueTrial | None:
    """Where a buy brings most; None where nothing was bought."""
    buying = [venue for venue in venues if venue.main_size() is not None]
    return max(buying, key=buy_brought, default=None)


def _whole(run: CheckSession, size: Size) -> Probe:
    return Probe(size, run.means.policy.later_s, BPS, 0)


def _cross_plan(run: CheckSession, cheapest: VenueTrial, venue: VenueTrial) -> Plan:
    """Bought where it is cheapest, sold on this venue."""
    size = cheapest.main_size()
    assert size is not None
    env, probe = run.environments[0], _whole(run, size)
    amount, bought = _amount_raw(run, cheapest, size, env), _buy_of_probe(cheapest, probe)
    return probe_plans.sell_plan(cheapest.place, run.setting, env, probe, amount, bought, venue.place)


def _read_crossed(
    run: CheckSession, venues: list[VenueTrial], venue: VenueTrial, results: Results | Missing | RefusedCall
) -> CellOutcome:
    cheapest = _cheapest(venues)
    assert cheapest is not None
    size = cheapest.main_size()
    assert size is not None
    if isinstance(results, RefusedCall):
        return replace(results, step="sell")
    env, probe, policy = run.environments[0], _whole(run, size), run.means.policy
    bought = _buy_of_probe(cheapest, probe)
    return outcomes.read_sell(results, cheapest.place, env, probe, bought, policy, venue.place)


# --- the probes -------------------------------------------------------------------------------------


def standard_probes(policy: Policy, size: Size) -> list[Probe]:
    """What is tried of everything that was bought: now and later, whole and in part, by others too."""
    return [
        Probe(size, policy.later_s, BPS, 0),
        Probe(size, policy.later_s, BPS, 1),
        Probe(size, policy.hour_s, BPS, 0),
        Probe(size, policy.hour_s, BPS, 1),
        Probe(size, policy.day_s, BPS, 0),
        Probe(size, policy.day_s, BPS, 1),
        Probe(size, policy.later_s, policy.half_bps, 0),
        Probe(size, policy.later_s, policy.sliver_bps, 0),
        Probe(size, policy.later_s, BPS, 0, "receiver"),
        Probe(size, policy.later_s, policy.half_bps, 0, "receiver"),
    ]


def _probes(run: CheckSession, venue: VenueTrial, size: Size) -> list[Probe]:
    policy = run.means.policy
    besides = [Probe(other, policy.later_s, BPS, 0) for other in _OTHERS if venue.completed_buy(other)]
    return standard_probes(policy, size) + besides


_OTHERS: tuple[Size, ...] = ("thousandth", "large")


def _buy_of_probe(venue: VenueTrial, probe: Probe) -> CompletedBuy:
    """What this probe's own environment bought; where only the other one was tried, what that did."""
    bought = venue.completed_buy(probe.size, probe.environment) or venue.completed_buy(probe.size)
    assert bought is not None
    return bought


def _trader(run: CheckSession, venue: VenueTrial, probe: Probe) -> Environment:
    """The probe's environment; where its own size was not tried, it buys what the other one did."""
    environment = run.environments[probe.environment]
    if venue.completed_buy(probe.size, probe.environment) is None:
        return replace(environment, size_bps=BPS, late_s=0)
    return environment


def _amount_raw(run: CheckSession, venue: VenueTrial, size: Size, environment: Environment) -> int:
    amount = legs.size_raw(size, venue.place, run.setting, environment)
    assert isinstance(amount, int)
    return amount


def _sell_plan(run: CheckSession, venue: VenueTrial, probe: Probe) -> Plan:
    env = _trader(run, venue, probe)
    amount = _amount_raw(run, venue, probe.size, env)
    return probe_plans.sell_plan(venue.place, run.setting, env, probe, amount, _buy_of_probe(venue, probe))


def _pull_plan(run: CheckSession, venue: VenueTrial, size: Size) -> Plan:
    bought = venue.completed_buy(size)
    assert bought is not None
    env = run.environments[0]
    amount = _amount_raw(run, venue, size, env)
    return probe_plans.pull_plan(venue.place, run.setting, env, size, amount, bought)


def _handed_plan(run: CheckSession, venue: VenueTrial, size: Size) -> Plan:
    bought = venue.completed_buy(size)
    assert bought is not None
    env = run.environments[0]
    amount = _amount_raw(run, venue, size, env)
    return probe_plans.handed_plan(venue.place, run.setting, env, size, amount, bought)


def _cell(
    run: CheckSession,
    venue: VenueTrial,
    probe: Probe,
    results: Results | Missing | RefusedCall,
    reached_raw: int | None,
) -> ProbeCell:
    if isinstance(results, RefusedCall):
        return ProbeCell(probe, replace(results, step="sell"))
    env = _trader(run, venue, probe)
    bought = _buy_of_probe(venue, probe)
    read = outcomes.read_sell(
        results, venue.place, env, probe, bought, run.means.policy, handed_raw=reached_raw
    )
    return ProbeCell(probe, read)
