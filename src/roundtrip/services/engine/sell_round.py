"""The sell round: on every venue that bought the main wallet sells alone after each delay, and the crowd
sells in company. The isolation round after it tries alone what deviated."""

from dataclasses import dataclass, replace

from roundtrip.chain.rpc.client import CodeFault, Meter
from roundtrip.chain.simulate import outcomes
from roundtrip.chain.simulate.code_signs import code_signs
from roundtrip.chain.simulate.crowd_plans import Member
from roundtrip.chain.simulate.request import GAS_POOL_SPENT, Plan, join_plans, results_of
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.cross_exit import cheapest_of
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    Crowd,
    DeployerRecord,
    Evidence,
    HookCarry,
    IsolatedTrade,
    LaunchRecord,
    Missing,
    Probe,
    RefusedCall,
    Size,
    VenueEvidence,
)
from roundtrip.domain.check.venue_code import enough, needs_pieces, takes_sells
from roundtrip.domain.check.venue_reading import VenueReading, main_sells, read_venue

from .buy_round import BuyRoundResult
from .crowd import WHOLE_CROWD, CrowdPart, most_parts, pool_gas
from .crowd_sells import (
    CrowdSells,
    Isolation,
    choose_recalled,
    choose_sellers,
    company_plan,
    company_sellers,
    crowd_plan,
    give_gas,
    isolation_plan,
    isolations,
    limits_gas,
    measure_sellers,
    read_company,
    read_crowd_sells,
    read_isolation,
)
from .main_trips import (
    OTHER_SIZES,
    amount_of_size,
    cross_plan,
    hand_over_plan,
    nearly_all_probes,
    part_probes,
    pieces_probe,
    probe_plan,
    pull_plan,
    read_cell,
    read_crossed,
)
from .session import CheckSession, PlanResult, VenueTrial, bought_raw

EVIDENCE_SCHEMA = 6


@dataclass(frozen=True, slots=True)
class _ProbeSell:
    """A probe of a venue: it sells a share of the bought amount after a delay."""

    venue: int
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
    cheapest: int


@dataclass(frozen=True, slots=True)
class _CrowdSell:
    """The buys and sells of a part of the crowd; with ``recalled`` those of the wallets of earlier checks."""

    venue: int
    recalled: bool = False
    part: CrowdPart = WHOLE_CROWD


@dataclass(frozen=True, slots=True)
class _CompanySell:
    """The crowd's buys, and sells of the wallets that met something else, by the number of their trade."""

    venue: int
    sellers: tuple[tuple[int, Member], ...]


@dataclass(frozen=True, slots=True)
class _Isolated:
    """One trade of the isolation round."""

    venue: int
    isolation: Isolation


_Sell = _ProbeSell | _HandOver | _Pull | _CrossSell | _CrowdSell | _CompanySell | _Isolated
"""One trade, or one crowd, of the sell round; ``venue``: the number of its venue."""
_Plans = dict[_Sell, Plan]
_SellResults = dict[_Sell, PlanResult]
_Crowds = dict[_CrowdSell, CrowdSells | Missing]
_Sellers = dict[_CrowdSell, CrowdSells]


async def run_sell_round(bought: BuyRoundResult, meter: Meter) -> Evidence:
    """Sells on every venue that bought, and returns the evidence of both rounds. One more batch, the
    isolation round, only where something deviates. Where the node fails, the cells are Missing."""
    run, data, candidates = replace(bought.run, meter=meter), bought.data, bought.candidates
    venues = await ask_sell_round(run, bought.venues_to_sell_on(), data.launch)
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
        code_signs=code_signs(data.code) if isinstance(data.code, bytes) else (),
        numbers=data.numbers,
        other_pools=candidates.other_pools,
    )


def _deployer_record(bought: BuyRoundResult) -> DeployerRecord | None:
    """The index's record, where it is of the wallet that the launchpad names as the deployer."""
    launch, indexed = bought.data.launch, bought.indexed
    is_same = isinstance(launch, LaunchRecord) and launch.deployer == indexed.deployer
    return indexed.record if is_same else None


async def ask_sell_round(
    run: CheckSession, trials: list[VenueTrial], launch: AnyLaunch | Missing | None
) -> tuple[VenueEvidence, ...]:
    """Sends one batch, and the isolation round where something deviates. One more batch between them where a
    crowd had too little gas or too little to sell, or a simulation of several trades did not show all of
    them."""
    crowds = _choose_crowds(run, trials, launch)
    groups = _plan_sells(run, trials, crowds)
    results = await _send_groups(run, trials, groups)
    venues = [_read_venue(run, trials, number, results, crowds) for number in range(len(trials))]
    crowds, split = _split_crowds(run, trials, launch, crowds, results)
    if split:
        results |= await _send_groups(run, trials, _plan_crowds(run, trials, split))
    short = _crowds_that_got_less(run, trials, crowds, results)
    crowds |= short
    short |= _crowds_short_of_gas(run, trials, crowds, results)
    crowds |= short
    repeated: list[_Plans] = [
        {sell: plan}
        for group in groups
        for sell, plan in group.items()
        if len(group) > 1 and (isinstance(results[sell], Missing) or _brought_less(venues, sell))
    ]
    repeated += _plan_crowds(run, trials, short)
    # A crowd of which no wallet has enough gas is sent no more: it counts as one that did not trade.
    if repeated or short or split:
        results |= await _send_groups(run, trials, repeated)
        venues = [_read_venue(run, trials, number, results, crowds) for number in range(len(trials))]
    return await _run_isolation_round(run, trials, venues, crowds, launch, results)


async def _run_isolation_round(
    run: CheckSession,
    trials: list[VenueTrial],
    venues: list[VenueEvidence],
    crowds: _Crowds,
    launch: AnyLaunch | Missing | None,
    results: _SellResults,
) -> tuple[VenueEvidence, ...]:
    """Tries alone what deviated in company. Sends one batch, or none."""
    isolated = _plan_isolation(run, trials, venues, crowds, launch)
    if not isolated:
        return tuple(venues)
    results |= await _send_groups(run, trials, [{sell: plan} for sell, plan in isolated.items()])
    return tuple(_read_venue(run, trials, number, results, crowds) for number in range(len(trials)))


def _brought_less(venues: list[VenueEvidence], sell: _Sell) -> bool:
    """True for a round trip that others before it kept from selling: alone its buy brings what is known."""
    return isinstance(sell, _ProbeSell) and any(
        cell.probe == sell.probe
        and isinstance(cell.outcome, Missing)
        and cell.outcome.why == outcomes.BROUGHT_LESS
        for cell in venues[sell.venue].cells
    )


def _choose_crowds(
    run: CheckSession, trials: list[VenueTrial], launch: AnyLaunch | Missing | None
) -> _Crowds:
    """The wallets that trade on each venue. None where the main wallet bought less than usual, because the
    crowd buys after a buy of the usual size."""
    crowds: _Crowds = {}
    for number, trial in enumerate(trials):
        main = trial.completed_buy("probe")
        if trial.crowd_wallets and main is not None and trial.main_size() == "probe":
            if not trial.crowd_parts:
                crowds[_CrowdSell(number)] = GAS_POOL_SPENT
            for part in WHOLE_CROWD.split(trial.crowd_parts):
                crowds[_CrowdSell(number, part=part)] = choose_sellers(run, part.of(trial), launch, main)
            recalled = choose_recalled(run, trial, launch, main) if trial.recalled_wallets else None
            if isinstance(recalled, CrowdSells):
                crowds[_CrowdSell(number, recalled=True)] = recalled
    return crowds


def _plan_sells(run: CheckSession, trials: list[VenueTrial], crowds: _Crowds) -> list[_Plans]:
    """The trades of the first batch, in groups: each group is one simulation, its trades one after the other.
    The best venues have a simulation for each of the main wallet's sells, the others share them."""
    policy, groups = run.means.policy, list[_Plans]()
    selling = [number for number, trial in enumerate(trials) if trial.main_size() is not None]
    ranked = sorted(selling, key=lambda number: -bought_raw(trials[number]))
    for number in selling:
        trial, size = trials[number], trials[number].main_size()
        assert size is not None
        soon, hour, day = (
            _ProbeSell(number, Probe(size, delay_s, BPS, 0))
            for delay_s in (policy.later_s, policy.hour_s, policy.day_s)
        )
        after_hour, after_day = (
            _ProbeSell(number, Probe(size, delay_s, policy.most_bps, 0))
            for delay_s in (policy.hour_s, policy.day_s)
        )
        small, large = (
            [_ProbeSell(number, Probe(other, policy.later_s, policy.most_bps, 0))]
            if trial.completed_buy(other)
            else []
            for other in OTHER_SIZES
        )
        place = ranked.index(number)
        if place < policy.most_alone[0]:
            shared = [[soon, *small], [hour, *large], [day]]
        elif place < policy.most_alone[1]:
            shared = [[soon, *small], [hour, after_day, *large]]
        else:
            shared = [[soon, *small, after_hour, after_day, *large]]
        groups += [{sell: probe_plan(run, trial, sell.probe) for sell in sells} for sells in shared]
        if trial.place.venue.keeps_by_hook():
            groups.append({_Pull(number): pull_plan(run, trial, size)})
            if trial.completed_buy("thousandth"):
                groups.append({_Pull(number, "thousandth"): pull_plan(run, trial, "thousandth")})
    for sell, crowd in crowds.items():
        if isinstance(crowd, CrowdSells) and crowd.members:
            groups.append({sell: _crowd_plan(run, trials[sell.venue], crowd)})
    return groups


def _plan_crowds(run: CheckSession, trials: list[VenueTrial], crowds: _Sellers) -> list[_Plans]:
    trading = ((sell, sells) for sell, sells in crowds.items() if sells.members)
    return [{sell: _crowd_plan(run, trials[sell.venue], sells)} for sell, sells in trading]


def _crowd_plan(run: CheckSession, trial: VenueTrial, sells: CrowdSells) -> Plan:
    amount_raw, main = amount_of_size(run, trial, "probe", run.environments[0]), trial.completed_buy("probe")
    assert main is not None
    return crowd_plan(run, trial.place, amount_raw, main, sells)


def _split_crowds(
    run: CheckSession,
    trials: list[VenueTrial],
    launch: AnyLaunch | Missing | None,
    crowds: _Crowds,
    results: _SellResults,
) -> tuple[_Crowds, _Sellers]:
    """The crowds, each that used up the node's gas pool in parts that fit by their limits; and the parts."""
    kept, again = dict(crowds), _Sellers()
    for sell, sells in crowds.items():
        trial, main = trials[sell.venue], trials[sell.venue].completed_buy("probe")
        if isinstance(sells, Missing) or main is None or results.get(sell) != GAS_POOL_SPENT or sell.recalled:
            continue
        room = pool_gas(run) - main.gas * 3 // 2
        parts = max(2, 1 + limits_gas(run, sells, main) // max(1, room))
        if sell.part.step * parts > most_parts(run, trial.crowd_wallets):
            continue
        del kept[sell]
        for part in sell.part.split(parts):
            chosen = choose_sellers(run, part.of(trial), launch, main)
            kept[replace(sell, part=part)] = chosen
            if isinstance(chosen, CrowdSells):
                again[replace(sell, part=part)] = chosen
    return kept, again


def _crowds_that_got_less(
    run: CheckSession, trials: list[VenueTrial], crowds: _Crowds, results: _SellResults
) -> _Sellers:
    """The crowds again, each wallet with what its buys brought, where the venue gave less than its formula
    says."""
    again = {}
    for sell, sells in crowds.items():
        trial, result = trials[sell.venue], results.get(sell)
        main = trial.completed_buy("probe")
        if isinstance(sells, Missing) or main is None or not isinstance(result, dict):
            continue
        measured = measure_sellers(run, trial, sells, main, result)
        if measured is not None:
            again[sell] = measured
    return again


def _crowds_short_of_gas(
    run: CheckSession, trials: list[VenueTrial], crowds: _Crowds, results: _SellResults
) -> _Sellers:
    """The crowds again, fewer of them and each with as much gas for a sell as the main wallet took, where
    some sell failed that had less. A crowd may be left with no wallet: then it counts as one that did not
    trade."""
    again = {}
    for crowd, sells in crowds.items():
        result = results.get(crowd)
        if isinstance(sells, Missing) or result is None or isinstance(result, Missing | RefusedCall):
            continue
        limits = [
            _limit_taken(run, trials[crowd.venue], tried)
            for sell, tried in results.items()
            if isinstance(sell, _ProbeSell) and sell.venue == crowd.venue and sell.probe.size == "probe"
        ]
        needed = max(limits, default=0)
        is_short = any(
            member.sell_gas < needed and not result[f"m{member.number}-sell-0"].ok for member in sells.members
        )
        if is_short:
            again[crowd] = give_gas(run, sells, needed)
    return again


def _limit_taken(run: CheckSession, trial: VenueTrial, result: PlanResult) -> int:
    """The gas limit under which a sell of all of it succeeded; 0: under none, or under the lowest."""
    if isinstance(result, Missing | RefusedCall):
        return 0
    ladder = run.environments[0].sell_gas_ladder or run.means.policy.sell_gas_ladder
    if trial.place.venue.rival_hook():
        ladder = tuple(dict.fromkeys(min(limit, run.means.policy.hook_gas_limit) for limit in ladder))
    taken = (n for n in range(len(ladder)) if f"sell-{n}" in result and result[f"sell-{n}"].ok)
    first = next(taken, 0)
    return ladder[first] if first else 0


def _plan_isolation(
    run: CheckSession,
    trials: list[VenueTrial],
    venues: list[VenueEvidence],
    crowds: _Crowds,
    launch: AnyLaunch | Missing | None,
) -> _Plans:
    """The trades that explain what deviated: smaller sells and sells by others where the main wallet could
    not sell all at once, and the wallets of the crowd that met something else. Empty: nothing deviated."""
    policy, plans = run.means.policy, dict[_Sell, Plan]()
    readings = [read_venue(venue, policy, launch) for venue in venues]
    for number, (trial, venue, reading) in enumerate(zip(trials, venues, readings, strict=True)):
        size = trial.main_size()
        if size is None:
            continue
        if not enough(reading.full, policy):
            plans[_HandOver(number)] = hand_over_plan(run, trial, size)
            plans[_Pull(number)] = pull_plan(run, trial, size)
            for probe in part_probes(policy, size):
                plans[_ProbeSell(number, probe)] = probe_plan(run, trial, probe)
        for probe in nearly_all_probes(policy, size, venue, reading):
            plans[_ProbeSell(number, probe)] = probe_plan(run, trial, probe)
        if needs_pieces(reading, policy):
            plans |= _pieces(run, trial, number, size)
            if trial.place.venue.traits.second_route:
                probe = Probe(size, policy.later_s, BPS, 0, "second route")
                plans[_ProbeSell(number, probe)] = probe_plan(run, trial, probe)
        main = trial.completed_buy(size)
        parts = _parts(crowds, number)
        if isinstance(venue.crowd, Crowd) and parts and main is not None:
            main_met = main_sells(reading)
            asked = isolations(run, venue.crowd, parts, main_met, main, _parts(crowds, number, recalled=True))
            for sells in parts:
                if sellers := company_sellers(run, venue.crowd, sells, main_met):
                    amount_raw = amount_of_size(run, trial, "probe", run.environments[0])
                    plans[_CompanySell(number, tuple(sellers.items()))] = company_plan(
                        run, trial.place, amount_raw, main, sells, sellers
                    )
            for isolation in asked:
                plans[_Isolated(number, isolation)] = (
                    isolation_plan(run, trial.place, isolation)
                    if isolation.attempts
                    else probe_plan(run, trial, pieces_probe(policy, size))
                )
    return plans | _cross_plans(run, trials, venues, readings)


def _parts(crowds: _Crowds, number: int, recalled: bool = False) -> list[CrowdSells]:
    """The parts of a venue's crowd that trade."""
    return [
        sells
        for sell, sells in crowds.items()
        if (sell.venue, sell.recalled) == (number, recalled) and isinstance(sells, CrowdSells)
    ]


def _pieces(run: CheckSession, trial: VenueTrial, number: int, size: Size) -> _Plans:
    probe = pieces_probe(run.means.policy, size)
    return {_ProbeSell(number, probe): probe_plan(run, trial, probe)}


def _cross_plans(
    run: CheckSession, trials: list[VenueTrial], venues: list[VenueEvidence], readings: list[VenueReading]
) -> _Plans:
    """Sells on every other venue of what the cheapest one brings, where that may not take it back."""
    cheapest = cheapest_of(venues, readings, run.setting.market, run.means.policy)
    if cheapest is None:
        return {}
    reading = readings[cheapest]
    differs = reading.crowd is not None and reading.crowd.differing > 0
    if takes_sells(reading, run.means.policy) and reading.inconsistent is False and not differs:
        return {}
    return {
        _CrossSell(number, cheapest): cross_plan(run, trials[cheapest], trial)
        for number, trial in enumerate(trials)
        if number != cheapest and trial.main_size() is not None
    }


async def _send_groups(run: CheckSession, venues: list[VenueTrial], groups: list[_Plans]) -> _SellResults:
    """The results of each trade, sent as one simulation a group."""
    sent = {
        number: (
            venues[next(iter(group)).venue].place,
            next(iter(group.values())) if len(group) == 1 else _join(group),
        )
        for number, group in enumerate(groups)
    }
    answers: dict[int, PlanResult] = {}
    if sent:
        try:
            answers = await run.ask_later(sent)
        except CodeFault as fault:
            answers = dict.fromkeys(sent, Missing("token", fault.message))
        except NodeFault as fault:
            answers = dict.fromkeys(sent, Missing("node", fault.message))
    results: _SellResults = {}
    for number, group in enumerate(groups):
        answer = answers[number]
        for nth, sell in enumerate(group):
            is_joined = len(group) > 1 and not isinstance(answer, Missing | RefusedCall)
            results[sell] = results_of(answer, str(nth)) if is_joined else answer  # type: ignore[arg-type]
    return results


def _join(group: _Plans) -> Plan:
    return join_plans({str(nth): plan for nth, plan in enumerate(group.values())})


def _read_venue(
    run: CheckSession, venues: list[VenueTrial], number: int, results: _SellResults, crowds: _Crowds
) -> VenueEvidence:
    venue = venues[number]
    evidence = VenueEvidence(venue.place.venue, venue.facts, venue.buys, (), venue.transfer_refusal)
    if venue.main_size() is None:
        return evidence
    handed = results.get(_HandOver(number))
    arrived_raw = None if handed is None or isinstance(handed, RefusedCall) else outcomes.read_handed(handed)
    cells = tuple(
        read_cell(run, venue, sell.probe, result, arrived_raw)
        for sell, result in results.items()
        if isinstance(sell, _ProbeSell) and sell.venue == number
    )
    pulled = results.get(_Pull(number))
    carried = None if pulled is None else _read_carried(venue, pulled)
    small = results.get(_Pull(number, "thousandth"))
    if small is not None and isinstance(carried, RefusedCall):
        carried = _read_carried(venue, small, "thousandth")
    crossed = next(
        (
            read_crossed(run, venues[sell.cheapest], venue, result)
            for sell, result in results.items()
            if isinstance(sell, _CrossSell) and sell.venue == number
        ),
        None,
    )
    is_pulled = pulled is not None and not isinstance(pulled, RefusedCall)
    return replace(
        evidence,
        cells=cells,
        told_on_sell=outcomes.read_told(pulled, "pull") if is_pulled else pulled,  # type: ignore[arg-type]
        carried=carried,
        crossed=crossed,
        crowd=_read_crowd(run, venue, number, results, crowds),
        short_raw=_read_short(venue, handed, pulled),
    )


def _read_crowd(
    run: CheckSession, venue: VenueTrial, number: int, results: _SellResults, crowds: _Crowds
) -> Crowd | Missing | None:
    # Of equals the first are isolated: those that earlier checks have met.
    own = sorted((sell for sell in crowds if sell.venue == number), key=lambda sell: not sell.recalled)
    if all(sell.recalled for sell in own):
        return Crowd((), len(venue.crowd_wallets)) if venue.crowd_wallets else None
    crowd = Crowd((), 0)
    for crowd_sell in own:
        part = _read_trades(run, venue, crowd_sell, results, crowds)
        if isinstance(part, Missing):
            return part
        left_out = crowd.left_out + (0 if crowd_sell.recalled else part.left_out)
        crowd = replace(crowd, trades=crowd.trades + part.trades, left_out=left_out)
    isolated = [
        _read_isolated(run, venue, sell.isolation, result)
        for sell, result in results.items()
        if isinstance(sell, _Isolated) and sell.venue == number
    ]
    for sell, result in results.items():
        if isinstance(sell, _CompanySell) and sell.venue == number:
            isolated += read_company(run, venue.place, dict(sell.sellers), result)
    return replace(crowd, isolated=tuple(isolated))


def _read_trades(
    run: CheckSession, venue: VenueTrial, sell: _CrowdSell, results: _SellResults, crowds: _Crowds
) -> Crowd | Missing:
    """What a part of the crowd met."""
    sells = crowds[sell]
    if isinstance(sells, Missing):
        return sells
    if not sells.members:
        return Crowd(sells.refused, sells.left_out)
    return read_crowd_sells(run, venue.place, sells, results[sell])


def _read_isolated(
    run: CheckSession, venue: VenueTrial, isolation: Isolation, result: PlanResult
) -> IsolatedTrade:
    if isolation.attempts:
        return read_isolation(run, venue.place, isolation, result)
    size = venue.main_size()
    assert size is not None
    outcome = read_cell(run, venue, pieces_probe(run.means.policy, size), result, None).outcome
    return IsolatedTrade(isolation.of, isolation.difference, outcome)


def _read_short(venue: VenueTrial, handed: PlanResult | None, pulled: PlanResult | None) -> int | None:
    size = venue.main_size()
    bought = venue.completed_buy(size) if size is not None else None
    if bought is None or not isinstance(handed, dict) or not isinstance(pulled, dict):
        return None
    return outcomes.read_short(handed, pulled, max(1, bought.received_raw))


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
