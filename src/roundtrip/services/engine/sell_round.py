"""The sell round: on every venue that bought the main wallet sells alone after each delay, and the crowd
sells in company."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from roundtrip.chain.rpc.client import CodeFault, Meter
from roundtrip.chain.simulate import outcomes
from roundtrip.chain.simulate.request import GAS_POOL_SPENT, Plan, join_plans, results_of
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import AnyLaunch, CrowdWallet, Missing, Probe, RefusedCall, VenueEvidence
from roundtrip.domain.check.venue_code import tie_order
from roundtrip.services.support.cancel_on_error import start_early

from .buy_round import BuyRoundResult
from .crowd import CrowdPart, most_parts, pool_gas
from .crowd_sells import CrowdSells, choose_sellers, crowd_plan, give_gas, limits_gas, measure_sellers
from .main_trips import OTHER_SIZES, beside_probes, probe_plan, pull_plan
from .sell_results import (
    CrowdOf,
    Crowds,
    DirectTransfer,
    PartSell,
    ProbeSell,
    Sell,
    Sellers,
    SellPlans,
    SellResults,
    SellRoundResult,
)
from .session import CheckSession, PlanResult, VenueTrial, bought_raw


async def run_sell_round(bought: BuyRoundResult, meter: Meter, *, whole: bool = False) -> SellRoundResult:
    """Sells on every venue that bought. ``whole``: all of the crowd on each of them, as on the
    ``most_crowded`` best; else few wallets on the others. Sends the main wallet's sells, and plans the crowd
    while the node runs them. Sends one more batch where a crowd used up the node's gas pool and is split; and
    one where a crowd had too little gas or too little to sell, the wallet that traded before used up the gas
    pool, or a simulation of several trades did not show all of them. Where the node fails, the results are
    Missing."""
    run, trials, launch = replace(bought.run, meter=meter), bought.venues_to_sell_on(), bought.data.launch
    ranked = _rank(run, trials)
    few = () if whole or run.crowd_seed is None else ranked[run.means.policy.most_crowded :]
    groups = _plan_sells(run, trials, ranked)
    own, others = Meter(), Meter()
    async with start_early(send_groups(replace(run, meter=own), trials, groups)) as selling:
        crowds = _choose_crowds(run, trials, launch, few)
        plans = _plan_crowds(run, trials, crowds)
        async with start_early(send_groups(replace(run, meter=others), trials, plans)) as crowding:
            results = await selling | await crowding
    meter.add(own, others)
    first = SellRoundResult(run, trials, crowds, results, few)
    venues = first.venues()
    crowds, split = _split_crowds(run, trials, launch, crowds, results)
    if split:
        results |= await send_groups(run, trials, _plan_crowds(run, trials, split))
    short = _crowds_that_got_less(run, trials, crowds, results)
    crowds |= short
    short |= _crowds_short_of_gas(run, trials, crowds, results)
    crowds |= short
    repeated: list[SellPlans] = [
        {sell: plan}
        for group in groups
        for sell, plan in group.items()
        if len(group) > 1 and (isinstance(results[sell], Missing) or _brought_less(venues, sell))
    ]
    repeated += [
        {sell: probe_plan(run, trials[sell.venue], sell.probe, saves_gas=True)}
        for sell, result in results.items()
        if isinstance(sell, ProbeSell) and sell.probe.seller == "traded before" and result == GAS_POOL_SPENT
    ]
    # A crowd of which no wallet has enough gas is sent no more: it counts as one that did not trade.
    repeated += _plan_crowds(run, trials, short)
    if repeated:
        results |= await send_groups(run, trials, repeated)
    is_read = not (split or short or repeated) and crowds.keys() == first.crowds.keys()
    return SellRoundResult(run, trials, crowds, results, few, venues if is_read else None)


def _brought_less(venues: Sequence[VenueEvidence], sell: Sell) -> bool:
    """True for a round trip that brought too little to sell after others in the same simulation: repeated
    alone, its buy brings what it brought in the buy round."""
    return isinstance(sell, ProbeSell) and any(
        cell.probe == sell.probe
        and isinstance(cell.outcome, Missing)
        and cell.outcome.why == outcomes.BROUGHT_LESS
        for cell in venues[sell.venue].cells
    )


def _choose_crowds(
    run: CheckSession, trials: list[VenueTrial], launch: AnyLaunch | Missing | None, few: Collection[int]
) -> Crowds:
    """The wallets that trade on each venue after a buy of the judged size; none where a curve is closing.
    ``few``: the venues on which only every ``few_step``-th trades, wallets of all sizes."""
    crowds: Crowds = {}
    for number, trial in enumerate(trials):
        size = trial.main_size()
        main = None if size is None else trial.completed_buy(size)
        if not trial.crowd_wallets or main is None or trial.is_closing():
            continue
        if not trial.crowd_parts:
            crowds[PartSell(number)] = GAS_POOL_SPENT
        step = run.means.policy.few_step if number in few else 1
        for part in CrowdPart(step=step).split(-(-trial.crowd_parts // step)):
            crowds[PartSell(number, part=part)] = choose_sellers(run, part.of(trial), launch, main)
        apart: tuple[tuple[CrowdOf, tuple[CrowdWallet, ...]], ...] = (
            ("recalled", trial.recalled_wallets),
            ("largest", trial.largest_wallets),
        )
        for of, wallets in apart:
            own = replace(trial, crowd_wallets=wallets, crowd=None)
            sells = choose_sellers(run, own, launch, main) if wallets else None
            if isinstance(sells, CrowdSells):
                crowds[PartSell(number, of)] = sells
    return crowds


def _rank(run: CheckSession, trials: list[VenueTrial]) -> list[int]:
    """The venues that bought: first the one that is likely to decide, then by what a buy brings."""
    selling = [number for number, trial in enumerate(trials) if trial.main_size() is not None]
    first = _find_likely_best(run, trials, selling)
    return sorted(selling, key=lambda number: (number != first, -bought_raw(trials[number])))


def _plan_sells(run: CheckSession, trials: list[VenueTrial], ranked: list[int]) -> list[SellPlans]:
    """The main wallet's trades, in groups: each group is one simulation, its trades one after the other. The
    best venues have a simulation for each of its sells, the others share them."""
    policy, groups = run.means.policy, list[SellPlans]()
    for number in sorted(ranked):
        trial, size = trials[number], trials[number].main_size()
        assert size is not None
        soon, hour, day = (
            ProbeSell(number, Probe(size, delay_s, BPS, 0))
            for delay_s in (policy.later_s, policy.hour_s, policy.day_s)
        )
        after_hour, after_day = (
            ProbeSell(number, Probe(size, delay_s, policy.most_bps, 0))
            for delay_s in (policy.hour_s, policy.day_s)
        )
        small, large = (
            [ProbeSell(number, Probe(other, policy.later_s, policy.most_bps, 0))]
            if trial.completed_buy(other)
            else []
            for other in OTHER_SIZES
        )
        place = ranked.index(number)
        if place < policy.most_alone[0]:
            beside = [[ProbeSell(number, probe)] for probe in beside_probes(policy, size)]
            shared = [[soon, *small, *large], [hour], [day], *beside]
        elif place < policy.most_alone[1]:
            shared = [[soon, *small, *large], [hour, after_day]]
        else:
            shared = [[soon, *small, *large, after_hour, after_day]]
        groups += [{sell: probe_plan(run, trial, sell.probe) for sell in sells} for sells in shared]
        if trial.place.venue.keeps_by_hook():
            groups.append({DirectTransfer(number): pull_plan(run, trial, size)})
            if trial.completed_buy("thousandth"):
                groups.append({DirectTransfer(number, "thousandth"): pull_plan(run, trial, "thousandth")})
    return groups


def _find_likely_best(run: CheckSession, trials: list[VenueTrial], selling: list[int]) -> int | None:
    """The venue that is likely to decide: where a buy brings most, less the larger of the pool's fee both
    ways and the price impact (as ``venue_code.rank_of``). Of those within 0.01 % of the best: first one
    without a rival hook, then in the order of ``best_venue``."""
    policy = run.means.policy
    venues = [VenueEvidence(trial.place.venue, trial.facts, trial.buys) for trial in trials]
    order, scores = tie_order(venues, run.setting.market), dict[int, int]()
    for number in selling:
        venue = trials[number].place.venue
        margin_bps = policy.rival_hook_margin_bps if venue.rival_hook() else 0
        # A fee that a hook sets is not known.
        fee_bps = 2 * venue.fee_pips * BPS // _PIPS if venue.fee_pips < _PIPS else 0
        lost_bps = max(fee_bps, _read_impact_bps(trials[number])) + margin_bps
        scores[number] = bought_raw(trials[number]) * (BPS - min(BPS, lost_bps))
    least = max(scores.values(), default=0) * (BPS - 1) // BPS
    near = [number for number in selling if scores[number] >= least]

    def key(number: int) -> tuple[bool, int]:
        return trials[number].place.venue.rival_hook(), order[number]

    return min(near, key=key, default=None)


def _read_impact_bps(trial: VenueTrial) -> int:
    """How much less the judged buy brings for its money than the smallest one; 0: not known."""
    size, small = trial.main_size(), trial.completed_buy("thousandth")
    main = None if size is None else trial.completed_buy(size)
    if main is None or small is None or not small.received_raw * main.paid_raw:
        return 0
    return max(0, BPS - BPS * main.received_raw * small.paid_raw // (small.received_raw * main.paid_raw))


_PIPS = 1_000_000
"""A pip is a millionth, the unit of a pool's fee."""


def _plan_crowds(
    run: CheckSession, trials: list[VenueTrial], crowds: Mapping[PartSell, CrowdSells | Missing]
) -> list[SellPlans]:
    return [
        {sell: crowd_plan(run, trials[sell.venue], sells)}
        for sell, sells in crowds.items()
        if isinstance(sells, CrowdSells) and sells.members
    ]


def _split_crowds(
    run: CheckSession,
    trials: list[VenueTrial],
    launch: AnyLaunch | Missing | None,
    crowds: Crowds,
    results: SellResults,
) -> tuple[Crowds, Sellers]:
    """The crowds, where parts that fit by their gas limits replace each that used up the node's gas pool; and
    these parts alone."""
    kept, again = dict(crowds), Sellers()
    for sell, sells in crowds.items():
        trial, main = trials[sell.venue], trials[sell.venue].completed_buy("probe")
        if isinstance(sells, Missing) or main is None or results.get(sell) != GAS_POOL_SPENT:
            continue
        if sell.of != "crowd":
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
    run: CheckSession, trials: list[VenueTrial], crowds: Crowds, results: SellResults
) -> Sellers:
    """The crowds again, each wallet with what its buys brought, where a sell failed because a wallet held
    less than planned."""
    again = {}
    for sell, sells in crowds.items():
        trial, result = trials[sell.venue], results.get(sell)
        size = trial.main_size()
        main = None if size is None else trial.completed_buy(size)
        if isinstance(sells, Missing) or main is None or not isinstance(result, dict):
            continue
        measured = measure_sellers(run, trial, sells, main, result)
        if measured is not None:
            again[sell] = measured
    return again


def _crowds_short_of_gas(
    run: CheckSession, trials: list[VenueTrial], crowds: Crowds, results: SellResults
) -> Sellers:
    """The crowds again, fewer of them and each with as much gas for a sell as the main wallet took, where
    some sell failed that had less. A crowd may be left with no wallet: then it counts as one that did not
    trade."""
    again = {}
    for crowd, sells in crowds.items():
        result = results.get(crowd)
        if isinstance(sells, Missing) or result is None or isinstance(result, Missing | RefusedCall):
            continue
        needed = find_sell_gas(run, trials, crowd.venue, results)
        is_short = any(
            member.sell_gas < needed and not result[f"{member.label()}-sell-0"].ok for member in sells.members
        )
        if is_short:
            again[crowd] = give_gas(run, sells, needed)
    return again


def find_sell_gas(run: CheckSession, trials: Sequence[VenueTrial], number: int, results: SellResults) -> int:
    """The highest gas limit that the main wallet's sells on a venue needed; 0: the lowest was enough for all,
    or none succeeded."""
    size = trials[number].main_size()
    limits = (
        _limit_taken(run, trials[number], tried)
        for sell, tried in results.items()
        if isinstance(sell, ProbeSell)
        and sell.venue == number
        and (sell.probe.size, sell.probe.seller) == (size, "buyer")
    )
    return max(limits, default=0)


def _limit_taken(run: CheckSession, trial: VenueTrial, result: PlanResult) -> int:
    """The lowest limit of the sell's gas ladder under which it succeeded and that covers what it used; 0: it
    did not succeed, or the lowest is enough."""
    if isinstance(result, Missing | RefusedCall):
        return 0
    ladder = run.environments[0].sell_gas_ladder or run.means.policy.sell_gas_ladder
    if trial.place.venue.rival_hook():
        ladder = tuple(dict.fromkeys(min(limit, run.means.policy.hook_gas_limit) for limit in ladder))
    taken = [(n, sell) for n in range(len(ladder)) if (sell := result.get(f"sell-{n}")) and sell.ok]
    if not taken:
        return 0
    first, sell = taken[0]
    covering = next((n for n, limit in enumerate(ladder) if limit >= sell.gas_used), len(ladder) - 1)
    most = max(first, covering)
    return ladder[most] if most else 0


async def send_groups(run: CheckSession, venues: list[VenueTrial], groups: list[SellPlans]) -> SellResults:
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
    results: SellResults = {}
    for number, group in enumerate(groups):
        answer = answers[number]
        for nth, sell in enumerate(group):
            is_joined = len(group) > 1 and not isinstance(answer, Missing | RefusedCall)
            results[sell] = results_of(answer, str(nth)) if is_joined else answer  # type: ignore[arg-type]
    return results


def _join(group: SellPlans) -> Plan:
    return join_plans({str(nth): plan for nth, plan in enumerate(group.values())})
