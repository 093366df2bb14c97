"""The trips of the main wallet on one venue, planned and read. A trip is a buy and its sell: of all and of
parts, later and in pieces, by the buyer and by a receiver."""

from dataclasses import replace

from roundtrip.chain.simulate import legs, outcomes, probe_plans
from roundtrip.chain.simulate.request import Plan
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import (
    CellOutcome,
    CompletedBuy,
    Environment,
    Probe,
    ProbeCell,
    RefusedCall,
    Size,
    VenueEvidence,
)
from roundtrip.domain.check.venue_code import enough, stops_selling
from roundtrip.domain.check.venue_reading import VenueReading

from .crowd import fits_small_pieces
from .session import CheckSession, PlanResult, VenueTrial


def pieces_probe(policy: Policy, size: Size) -> Probe:
    """The buyer sells all that it bought, in equal sales over a day."""
    return Probe(size, policy.day_s, BPS, 0, "pieces")


def other_way_probes(run: CheckSession, size: Size, venue: Venue) -> list[Probe]:
    """The probes that are tried where no single sale sells enough."""
    policy = run.means.policy
    whole = pieces_probe(policy, size)
    probes = [whole, replace(whole, seller="any hour")]
    if venue.traits.second_route:
        probes.append(Probe(size, policy.later_s, BPS, 0, "second route"))
    return [*probes, replace(whole, seller="small pieces")] if fits_small_pieces(run) else probes


def beside_probes(policy: Policy, size: Size) -> list[Probe]:
    """The probes that show whether a sell depends on who sells, with how much gas, or on what the wallet did
    before; only the best venues get them."""
    return [
        Probe(size, policy.later_s, BPS, 0, "much gas"),
        Probe(size, policy.later_s, BPS, 0, "little gas"),
        Probe(size, policy.later_s, policy.half_bps, 0, "receiver"),
        Probe(size, policy.hour_s, policy.half_bps, 0, "traded before"),
    ]


_LITTLE_GAS_PERCENT = (70, 85, 100, 120, 150)
"""The gas limits of a sell with little gas, as shares of what the buy used: a sell uses about as much."""


def standard_probes(policy: Policy, size: Size) -> list[Probe]:
    """The probes of every buy: soon and later, whole and in part, by the buyer and by a receiver."""
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


def part_probes(policy: Policy, size: Size) -> list[Probe]:
    """The standard probes that sell a part, or that a receiver sells."""
    return [
        probe
        for probe in standard_probes(policy, size)
        if probe.environment == 0 and (probe.share_bps != BPS or probe.seller == "receiver")
    ]


def nearly_all_probes(policy: Policy, size: Size, venue: VenueEvidence, reading: VenueReading) -> list[Probe]:
    """A probe of nearly all for each wallet and moment where the sell of all was refused. None where enough
    sells soon, and an hour or a day later, too."""
    if enough(reading.full, policy) and not stops_selling(reading, policy):
        return []
    return [
        replace(cell.probe, share_bps=BPS, seller="nearly all")
        for cell in venue.cells
        if (cell.probe.size, cell.probe.seller) == (size, "buyer")
        and cell.probe.share_bps >= policy.most_bps
        and isinstance(cell.outcome, RefusedCall)
        and cell.outcome.step == "sell"
    ]


OTHER_SIZES: tuple[Size, ...] = ("thousandth", "large")
"""The sizes beside the main one that also make a trip."""


def buy_of_probe(venue: VenueTrial, probe: Probe) -> CompletedBuy:
    """The buy of the probe's environment; of the first environment where that one bought nothing of this
    size."""
    bought = venue.completed_buy(probe.size, probe.environment) or venue.completed_buy(probe.size)
    main = venue.completed_buy("probe")
    assert bought is not None
    # The approvals of the small and the large buy were not measured.
    return bought if main is None else replace(bought, approve_gas=max(bought.approve_gas, main.approve_gas))


def probe_trader(run: CheckSession, venue: VenueTrial, probe: Probe) -> Environment:
    """The probe's environment; with the size and the delay of the first one where it bought nothing of this
    size."""
    environment = run.environments[probe.environment]
    if venue.completed_buy(probe.size, probe.environment) is None:
        return replace(environment, size_bps=BPS, late_s=0)
    return environment


def amount_of_size(run: CheckSession, venue: VenueTrial, size: Size, environment: Environment) -> int:
    """What a buy of this size pays, in base units of the venue's quote."""
    amount = legs.size_raw(size, venue.place, run.setting, environment)
    assert isinstance(amount, int)
    return amount


def probe_plan(run: CheckSession, venue: VenueTrial, probe: Probe, saves_gas: bool = False) -> Plan:
    """The simulation of one trip. ``saves_gas``: with fewer attempts, where that probe has a plan of it."""
    env = probe_trader(run, venue, probe)
    amount = amount_of_size(run, venue, probe.size, env)
    bought = buy_of_probe(venue, probe)
    if probe.seller == "little gas":
        env = replace(env, sell_gas_ladder=tuple(bought.gas * part // 100 for part in _LITTLE_GAS_PERCENT))
    if probe.seller == "traded before":
        first = _first_trade(run, venue, probe, (amount, bought))
        return probe_plans.traded_before_plan(
            venue.place, run.setting, env, probe, first, (amount, bought), saves_gas
        )
    plan = probe_plans.measured_trip_plan if _is_measured(run, probe) else probe_plans.sell_plan
    return plan(venue.place, run.setting, env, probe, amount, bought)


def _first_trade(
    run: CheckSession, venue: VenueTrial, probe: Probe, main: tuple[int, CompletedBuy]
) -> tuple[Size, int, CompletedBuy]:
    """The size of the first trade of a wallet that traded before, what it pays, and what that brought: the
    smallest, or ``main`` where that brought nothing."""
    small = venue.completed_buy("thousandth")
    if small is None:
        return (probe.size, *main)
    return "thousandth", amount_of_size(run, venue, "thousandth", probe_trader(run, venue, probe)), small


def _is_measured(run: CheckSession, probe: Probe) -> bool:
    """True for a round trip after others in the same simulation."""
    return probe.share_bps == run.means.policy.most_bps or probe.seller == "traded before"


def pull_plan(run: CheckSession, venue: VenueTrial, size: Size) -> Plan:
    """A buy and a direct transfer of what it brought into the venue."""
    bought = venue.completed_buy(size)
    assert bought is not None
    env = run.environments[0]
    amount = amount_of_size(run, venue, size, env)
    return probe_plans.pull_plan(venue.place, run.setting, env, size, amount, bought)


def hand_over_plan(run: CheckSession, venue: VenueTrial, size: Size) -> Plan:
    """A buy and a transfer of what it brought to another wallet."""
    bought = venue.completed_buy(size)
    assert bought is not None
    env = run.environments[0]
    amount = amount_of_size(run, venue, size, env)
    return probe_plans.handed_plan(venue.place, run.setting, env, size, amount, bought)


def read_cell(
    run: CheckSession, venue: VenueTrial, probe: Probe, result: PlanResult, arrived_raw: int | None
) -> ProbeCell:
    """The outcome of one trip. ``arrived_raw``: what the hand-over brought to the other wallet."""
    if isinstance(result, RefusedCall):
        return ProbeCell(probe, replace(result, step="sell"))
    env, bought = probe_trader(run, venue, probe), buy_of_probe(venue, probe)
    if _is_measured(run, probe):
        if probe.seller == "traded before" and (gap := outcomes.find_gap_in_history(result)):
            return ProbeCell(probe, gap)
        amount_raw = amount_of_size(run, venue, probe.size, env)
        measured = outcomes.read_measured_trip(
            result, venue.place, env, probe, amount_raw, bought, run.means.policy
        )
        return ProbeCell(probe, measured)
    outcome = outcomes.read_sell(
        result, venue.place, env, probe, bought, run.means.policy, handed_raw=arrived_raw
    )
    return ProbeCell(probe, outcome)


# --- bought on one venue, sold on another ----------------------------------------------------------


def _whole(run: CheckSession, size: Size) -> Probe:
    return Probe(size, run.means.policy.later_s, BPS, 0)


def cross_plan(
    run: CheckSession, cheapest: VenueTrial, venue: VenueTrial, of_size: Size | None = None
) -> Plan:
    """Plans a buy on the cheapest venue and its sell on this one. ``of_size`` None: the judged one."""
    size = of_size or cheapest.main_size()
    assert size is not None
    env, probe = run.environments[0], _whole(run, size)
    amount, bought = amount_of_size(run, cheapest, size, env), buy_of_probe(cheapest, probe)
    return probe_plans.sell_plan(cheapest.place, run.setting, env, probe, amount, bought, venue.place)


def read_crossed(
    run: CheckSession, cheapest: VenueTrial, venue: VenueTrial, result: PlanResult, of_size: Size | None
) -> CellOutcome:
    """The outcome of ``cross_plan``, paid in the venue's own quote."""
    size = of_size or cheapest.main_size()
    assert size is not None
    if isinstance(result, RefusedCall):
        return replace(result, step="sell")
    env, probe, policy = run.environments[0], _whole(run, size), run.means.policy
    bought = buy_of_probe(cheapest, probe)
    return outcomes.read_sell(result, cheapest.place, env, probe, bought, policy, venue.place)
