"""The sell round: sells on every venue that bought, after each delay, whole and in part, by the buyer and by
a receiver."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from roundtrip.chain.rpc.client import CodeFault, Meter
from roundtrip.chain.simulate import legs, outcomes, probe_plans
from roundtrip.chain.simulate.request import Plan
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    CellOutcome,
    CompletedBuy,
    DeployerRecord,
    Environment,
    Evidence,
    HookCarry,
    LaunchRecord,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    Size,
    VenueEvidence,
)

from .buy_round import BuyRoundResult
from .pieces import pieces_probe, venues_to_ask
from .session import CheckSession, PlanResult, VenueTrial, bought_raw

EVIDENCE_SCHEMA = 4


@dataclass(frozen=True, slots=True)
class _ProbeSell:
    """A probe, the ``number``-th of its venue: it sells a share of the bought amount after a delay."""

    venue: int
    number: int
    probe: Probe


@dataclass(frozen=True, slots=True)
class _HandOver:
    """A transfer of the bought amount to another wallet, to measure how much arrives."""

    venue: int


@dataclass(frozen=True, slots=True)
class _Pull:
    """A direct transfer into the venue, to read the revert reason that routers hide, and to measure a hook's
    fee (``HookCarry``). ``size`` "thousandth": only for the latter, where a larger sell is refused."""

    venue: int
    size: Size | None = None


@dataclass(frozen=True, slots=True)
class _CrossSell:
    """A buy on the cheapest venue, sold on this one."""

    venue: int


_Sell = _ProbeSell | _HandOver | _Pull | _CrossSell
"""One simulation of the sell round; ``venue``: the number of its venue."""


async def run_sell_round(bought: BuyRoundResult, meter: Meter) -> Evidence:
    """Sells on every venue that bought, and returns the evidence of both rounds. Where a venue refuses every
    single sale, one more batch sells in pieces. Where the node fails, the cells are Missing."""
    run, data, candidates = replace(bought.run, meter=meter), bought.data, bought.candidates
    trials = bought.venues_to_sell_on()
    venues = await _ask_pieces(run, trials, await ask_sell_round(run, trials), data.launch)
    existing = sum(venue.exists() for venue in data.venues)
    return Evidence(
        schema=EVIDENCE_SCHEMA,
        policy_version=run.means.policy.version,
        chain_id=run.means.chain_id,
        block=run.head.block,
        block_base_fee_wei=run.head.base_fee_wei,
        token=run.token,
        role=bought.role,
        facts=data.facts,
        market=run.setting.market,
        environments=run.environments,
        venues=venues,
        candidates_complete=candidates.complete,
        pools_found=existing + candidates.others + candidates.left_out + bought.passed_over,
        left_out=candidates.left_out,
        launch=data.launch,
        given=tuple(slot.asset for slot in run.setting.slots),
        deployer=_deployer_record(bought),
    )


def _deployer_record(bought: BuyRoundResult) -> DeployerRecord | None:
    """The index's record, where it is of the wallet that the launchpad names as the deployer."""
    launch, indexed = bought.data.launch, bought.indexed
    is_same = isinstance(launch, LaunchRecord) and launch.deployer == indexed.deployer
    return indexed.record if is_same else None


async def ask_sell_round(run: CheckSession, venues: list[VenueTrial]) -> tuple[VenueEvidence, ...]:
    """Sends one batch, with an independent simulation for each probe."""
    plans = dict(_plan_sells(run, venues))
    results = await _send(run, venues, plans)
    return tuple(_read_venue(run, venues, number, results) for number in range(len(venues)))


async def _ask_pieces(
    run: CheckSession,
    trials: list[VenueTrial],
    venues: tuple[VenueEvidence, ...],
    launch: AnyLaunch | Missing | None,
) -> tuple[VenueEvidence, ...]:
    """The venues, with the sells in pieces where they can change the verdict. Sends one batch, or none."""
    policy = run.means.policy
    sells: dict[int, _ProbeSell] = {}
    for number in venues_to_ask(venues, policy, launch):
        size = trials[number].main_size()
        assert size is not None
        sells[number] = _ProbeSell(number, len(venues[number].cells), pieces_probe(policy, size))
    plans: dict[_Sell, Plan] = {s: _sell_plan(run, trials[n], s.probe) for n, s in sells.items()}
    results = await _send(run, trials, plans)
    found = list(venues)
    for number, sell in sells.items():
        cell = _cell(run, trials[number], sell.probe, results[sell], None)
        found[number] = replace(venues[number], cells=(*venues[number].cells, cell))
    return tuple(found)


def _plan_sells(run: CheckSession, venues: list[VenueTrial]) -> Iterator[tuple[_Sell, Plan]]:
    cheapest = _cheapest(venues)
    for number, venue in enumerate(venues):
        size = venue.main_size()
        if size is None:
            continue
        yield _HandOver(number), _hand_over_plan(run, venue, size)
        for nth, probe in enumerate(_probes(run, venue, size)):
            yield _ProbeSell(number, nth, probe), _sell_plan(run, venue, probe)
        yield _Pull(number), _pull_plan(run, venue, size)
        if venue.place.venue.keeps_by_hook() and venue.completed_buy("thousandth"):
            yield _Pull(number, "thousandth"), _pull_plan(run, venue, "thousandth")
        if cheapest is not None and venue is not cheapest:
            yield _CrossSell(number), _cross_plan(run, cheapest, venue)


async def _send(
    run: CheckSession, venues: list[VenueTrial], plans: dict[_Sell, Plan]
) -> dict[_Sell, PlanResult]:
    if not plans:
        return {}
    try:
        return await run.ask_later({sell: (venues[sell.venue].place, plan) for sell, plan in plans.items()})
    except CodeFault as fault:
        return dict.fromkeys(plans, Missing("token", fault.message))
    except NodeFault as fault:
        return dict.fromkeys(plans, Missing("node", fault.message))


def _read_venue(
    run: CheckSession, venues: list[VenueTrial], number: int, results: dict[_Sell, PlanResult]
) -> VenueEvidence:
    venue = venues[number]
    evidence = VenueEvidence(venue.place.venue, venue.facts, venue.buys, (), venue.transfer_refusal)
    pulled = results.get(_Pull(number))
    if pulled is None:
        return evidence
    handed = results[_HandOver(number)]
    arrived_raw = None if isinstance(handed, RefusedCall) else outcomes.read_handed(handed)
    cells = tuple(
        _cell(run, venue, sell.probe, result, arrived_raw)
        for sell, result in results.items()
        if isinstance(sell, _ProbeSell) and sell.venue == number
    )
    carried = _read_carried(venue, pulled)
    small = results.get(_Pull(number, "thousandth"))
    if small is not None and isinstance(carried, RefusedCall):
        carried = _read_carried(venue, small, "thousandth")
    crossed = results.get(_CrossSell(number))
    return replace(
        evidence,
        cells=cells,
        told_on_sell=pulled if isinstance(pulled, RefusedCall) else outcomes.read_told(pulled, "pull"),
        carried=carried,
        crossed=evidence.crossed if crossed is None else _read_crossed(run, venues, venue, crossed),
    )


def _read_carried(
    venue: VenueTrial, result: PlanResult, size: Size | None = None
) -> HookCarry | RefusedCall | Missing | None:
    """The measured hook fee; None: the venue's hook keeps nothing of a swap."""
    if not venue.place.venue.keeps_by_hook():
        return None
    if isinstance(result, RefusedCall):
        return result
    size = size or venue.main_size()
    bought = venue.completed_buy(size) if size is not None else None
    return outcomes.read_carried(result, 0 if bought is None else max(1, bought.received_raw))


# --- bought on one venue, sold on another ----------------------------------------------------------


def _cheapest(venues: list[VenueTrial]) -> VenueTrial | None:
    """The venue where a buy brings most; None where nothing was bought."""
    buying = [venue for venue in venues if venue.main_size() is not None]
    return max(buying, key=bought_raw, default=None)


def _whole(run: CheckSession, size: Size) -> Probe:
    return Probe(size, run.means.policy.later_s, BPS, 0)


def _cross_plan(run: CheckSession, cheapest: VenueTrial, venue: VenueTrial) -> Plan:
    """Plans a buy on the cheapest venue and its sell on this one."""
    size = cheapest.main_size()
    assert size is not None
    env, probe = run.environments[0], _whole(run, size)
    amount, bought = _amount_raw(run, cheapest, size, env), _buy_of_probe(cheapest, probe)
    return probe_plans.sell_plan(cheapest.place, run.setting, env, probe, amount, bought, venue.place)


def _read_crossed(
    run: CheckSession, venues: list[VenueTrial], venue: VenueTrial, result: PlanResult
) -> CellOutcome:
    cheapest = _cheapest(venues)
    assert cheapest is not None
    size = cheapest.main_size()
    assert size is not None
    if isinstance(result, RefusedCall):
        return replace(result, step="sell")
    env, probe, policy = run.environments[0], _whole(run, size), run.means.policy
    bought = _buy_of_probe(cheapest, probe)
    return outcomes.read_sell(result, cheapest.place, env, probe, bought, policy, venue.place)


# --- the probes ------------------------------------------------------------------------------------


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


def _probes(run: CheckSession, venue: VenueTrial, size: Size) -> list[Probe]:
    policy = run.means.policy
    other_sizes = [
        Probe(other, policy.later_s, BPS, 0) for other in _OTHER_SIZES if venue.completed_buy(other)
    ]
    return standard_probes(policy, size) + other_sizes


_OTHER_SIZES: tuple[Size, ...] = ("thousandth", "large")


def _buy_of_probe(venue: VenueTrial, probe: Probe) -> CompletedBuy:
    """The buy of the probe's environment; of the first environment where that one bought nothing of this
    size."""
    bought = venue.completed_buy(probe.size, probe.environment) or venue.completed_buy(probe.size)
    assert bought is not None
    return bought


def _trader(run: CheckSession, venue: VenueTrial, probe: Probe) -> Environment:
    """The probe's environment; with the size of the first one where it bought nothing of this size."""
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


def _hand_over_plan(run: CheckSession, venue: VenueTrial, size: Size) -> Plan:
    bought = venue.completed_buy(size)
    assert bought is not None
    env = run.environments[0]
    amount = _amount_raw(run, venue, size, env)
    return probe_plans.handed_plan(venue.place, run.setting, env, size, amount, bought)


def _cell(
    run: CheckSession,
    venue: VenueTrial,
    probe: Probe,
    result: PlanResult,
    arrived_raw: int | None,
) -> ProbeCell:
    if isinstance(result, RefusedCall):
        return ProbeCell(probe, replace(result, step="sell"))
    env, bought = _trader(run, venue, probe), _buy_of_probe(venue, probe)
    outcome = outcomes.read_sell(
        result, venue.place, env, probe, bought, run.means.policy, handed_raw=arrived_raw
    )
    return ProbeCell(probe, outcome)
