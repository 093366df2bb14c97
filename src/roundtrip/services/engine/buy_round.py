"""The buy round: the token's facts, the state of every candidate venue, and its buys, each alone on the
pinned block. One batch to the node; one more for each thing that only the node knows (rates of other quotes,
a new launch)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from roundtrip.chain.blocks import environments
from roundtrip.chain.rpc.client import CodeFault, Meter, RpcCall, RpcError, hex_bytes
from roundtrip.chain.simulate import legs, outcomes, probe_plans, token_facts
from roundtrip.chain.simulate.balance_slots import guess_calls, read_guesses
from roundtrip.chain.simulate.crowd_outcomes import CrowdBuys, MemberBuys, venue_amounts
from roundtrip.chain.simulate.legs import Setting, VenuePlace
from roundtrip.chain.simulate.request import GAS_POOL_SPENT, Plan, Results
from roundtrip.chain.simulate.token_facts import ProxyFacts
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import COMMON_MONEY, Venue
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    BuyOutcome,
    CompletedBuy,
    CrowdWallet,
    Curve,
    EnvironmentBuy,
    LaunchRecord,
    Missing,
    NumberSubstitution,
    RefusedCall,
    Size,
    TokenFacts,
)
from roundtrip.domain.check.proof_input import NOTHING, IndexInputs
from roundtrip.domain.check.refusals import POOL_GAVE_NOTHING
from roundtrip.domain.check.venue_reading import is_filled
from roundtrip.services.runtime.check_context import CheckContext
from roundtrip.services.support.cancel_on_error import at_once, start_early
from roundtrip.venues import BY_KIND
from roundtrip.venues.multicall import plan_reads, read_answers

from .candidates import Candidates, unseen_venues
from .crowd import (
    WHOLE_CROWD,
    CrowdPart,
    can_trade,
    crowd_blocks,
    crowd_parts,
    draw_crowd,
    draw_gaps,
    fit_attempts,
    fit_wallets,
    quote_crowd_buys,
    read_crowd_buys,
    recall_wallets,
    room_raw,
)
from .facts import SIDE_SIZES, ask_facts_in_parts, plan_facts, side_results
from .inputs import CheckInputs, Role, role_of
from .number_passing import PassedNumbers, control_copies, find_block_gaps, find_copies, strange_contracts
from .session import BlockGaps, CheckSession, PlanResult, Reads, VenueTrial, choose_venues

_SMALLER_SIZES: tuple[Size, ...] = ("tenth", "hundredth")
"""Tried where a venue does not fill the main buy."""


@dataclass(frozen=True, slots=True)
class BuyRoundData:
    """The data of the buy round. ``implementation``: the contract that ``code`` delegates to; None: it
    is no proxy, or the check is not deep. ``beacon``: the contract that names the implementation."""

    facts: TokenFacts
    launch: AnyLaunch | Missing | None
    venues: list[VenueTrial]
    block_gaps: BlockGaps
    code: bytes | Missing = b""
    implementation: Address | Missing | None = None
    beacon: Address | None = None
    numbers: NumberSubstitution | None = None


@dataclass(frozen=True, slots=True)
class BuyRoundResult:
    """A token after the buy round. ``new_venues``: venues from the launchpad that were not among the
    candidates. ``passed_over``: the number of places that were not tried in full."""

    run: CheckSession
    role: Role
    candidates: Candidates
    passed_over: int
    data: BuyRoundData
    new_venues: tuple[Venue, ...]
    indexed: IndexInputs = NOTHING

    def venues_to_sell_on(self) -> list[VenueTrial]:
        """The venues of the sell round."""
        return choose_venues(self.data.venues, self.run.means.policy)


class BuyTrial(NamedTuple):
    """One buy alone: its place and size."""

    place: VenuePlace
    size: Size


async def run_buy_round(means: CheckContext, inputs: CheckInputs, meter: Meter) -> BuyRoundResult:
    """Buys on every candidate. Raises NodeFault when the node gave no usable answer.

    A launch that is not among the candidates is found here, and costs one more batch.
    """
    role = role_of(inputs.token, means.contracts)
    run = CheckSession(
        means=means,
        head=inputs.head,
        token=inputs.token,
        setting=Setting(
            inputs.token,
            means.contracts,
            inputs.head.market,
            means.policy,
            crowd_gaps_s=draw_gaps(inputs.seed, means.policy) if inputs.crowd else (),
        ),
        environments=environments.draw(inputs.seed, inputs.head, means.policy),
        meter=meter,
        deep=inputs.deep,
        crowd_seed=inputs.seed if inputs.crowd else None,
        recalled=inputs.recalled,
    )
    run = replace(run, setting=replace(run.setting, policy=fit_attempts(run)))
    candidates = inputs.candidates.venues
    run = await _with_rates(run, candidates)
    listed = _places_of(candidates)
    if not inputs.candidates.complete:
        listed = await keep_existing(run, listed)
    places, passed_over = await choose_places(run, listed)
    data = await ask_buy_round(run, places)
    new = unseen_venues(means.contracts, run.token, data.launch, candidates) if role == "token" else ()
    if new:
        run = await _with_rates(run, new)
        data = await ask_buy_round(run, (*places, *_places_of(new)))
    run, data = await _with_given_money(run, data)
    run, data = await _with_numbers(run, data)
    return BuyRoundResult(run, role, inputs.candidates, passed_over, data, new, inputs.indexed)


def _places_of(venues: tuple[Venue, ...]) -> tuple[VenuePlace, ...]:
    return tuple(VenuePlace(venue, BY_KIND[venue.kind]) for venue in venues)


async def keep_existing(run: CheckSession, places: tuple[VenuePlace, ...]) -> tuple[VenuePlace, ...]:
    """The places without the standard pools that do not exist: one call asks for the price in each, where a
    buy of each would be a simulation. All of them where the node does not answer it."""
    pools = [place for place in places if not place.venue.is_curve]
    contracts = run.means.contracts
    calls = [place.file.fact_calls(place.venue, contracts) for place in pools]
    reads = plan_reads([first for first, *_ in calls], contracts)
    call = RpcCall("eth_call", [{"to": reads.to, "data": reads.data}, {"blockHash": run.head.block.hash}])
    try:
        (answer,) = await run.means.node.batch([call], run.meter)
        prices = read_answers(hex_bytes(answer), len(pools))
    except NodeFault:
        prices = None
    if prices is None:
        return places
    missing = {
        place
        for place, price, asked in zip(pools, prices, calls, strict=True)
        if not place.file.read_facts(place.venue, run.token, (price, *[None] * (len(asked) - 1))).exists
    }
    return tuple(place for place in places if place not in missing)


# --- quotes of the venues --------------------------------------------------------------------------


async def _with_rates(run: CheckSession, venues: tuple[Venue, ...]) -> CheckSession:
    """The session with the rates of these venues' quotes. Eth, weth and usdg need no batch."""
    others = {venue.quote_address for venue in venues if venue.quote not in COMMON_MONEY}
    if not others:
        return run
    known = {rate.asset for rate in run.setting.market.rates}
    market = await run.means.rates.join(run.setting.market, others | known, run.head.block, run.meter)
    return replace(run, setting=replace(run.setting, market=market))


async def _with_given_money(run: CheckSession, data: BuyRoundData) -> tuple[CheckSession, BuyRoundData]:
    """Where no real swap brought a venue's quote: finds the storage slot of the quote's balances, and buys
    again with balances set. Each such quote costs a batch, and the buys cost one more."""
    unfunded = {venue.place.venue.quote_address for venue in data.venues if _is_unfunded(venue)}
    if not unfunded:
        return run, data
    wallet, slots = run.environments[0].reader, []
    for asset in sorted(unfunded):
        try:
            answers = await run.means.node.batch(guess_calls(asset, wallet, run.head.block), run.meter)
        except NodeFault:
            continue
        slots.append(read_guesses(asset, answers))
    known_slots = tuple(slot for slot in slots if slot is not None)
    if not known_slots:
        return run, data
    run = replace(run, setting=replace(run.setting, slots=known_slots))
    return run, await ask_buy_round(run, tuple(venue.place for venue in data.venues))


def _is_unfunded(venue: VenueTrial) -> bool:
    """True for an existing pool where no swap brought its quote for the main buy."""
    outcome = next((buy.outcome for buy in venue.buys if buy.size == "probe"), None)
    return venue.exists() and isinstance(outcome, Missing) and outcome.why == outcomes.NO_ROUTE


# --- the batch -------------------------------------------------------------------------------------


async def ask_buy_round(run: CheckSession, places: tuple[VenuePlace, ...]) -> BuyRoundData:
    """Sends one batch: facts and buys. One more each where the facts used up the node's gas pool, where the
    proxy slots are not known, and where other buys are necessary. Raises NodeFault when no answer is usable,
    or the node is of another chain."""
    facts_plan = plan_facts(run, places)
    trials = [BuyTrial(place, "probe") for place in places]
    trials += [trial for place in places if place.venue.rival_hook() for trial in _side_trials(place)]
    plans = {trial: _buy_plan(run, trial) for trial in trials}
    sendable = {trial: (trial.place, plan) for trial, plan in plans.items() if isinstance(plan, Plan)}
    async with start_early(run.ask(_reads(run, places, facts_plan), sendable)) as asking:
        crowds = _draw_crowds(run, places)
        answers, sent = await asking
    results = {trial: plan for trial, plan in plans.items() if isinstance(plan, Missing)} | sent

    facts = side_buys = run.results(facts_plan, answers["facts"])
    if facts == GAS_POOL_SPENT:
        facts = await ask_facts_in_parts(run, places)
    _check_chain(facts, run.means.chain_id)
    launch = token_facts.read_launch(facts, run.token, places, answers.get("snipe tax"), run.means.contracts)
    venues = []
    for number, place in enumerate(places):
        pool = token_facts.read_pool_facts(facts, number, place, run.token, run.means.contracts)
        if not isinstance(pool, Missing) and not pool.exists:
            venues.append(VenueTrial(place, pool, (), None))
            continue
        main = BuyTrial(place, "probe")
        outcomes_of = {main: _read_buy(run, main, results[main], launch)}
        for trial in _side_trials(place):
            result = results[trial] if trial in results else side_results(side_buys, number, trial.size)
            outcomes_of[trial] = _read_buy(run, trial, result, launch)
        refusal = outcomes.read_told(facts, f"pay-out-{number}")
        given_raw, bought = _given_raw(run, place, results[main]), outcomes_of[main]
        room = room_raw(run, place, pool, launch, bought)
        drawn = crowds[place]
        wallets, largest = (fit_wallets(run, place, part, room) for part in (drawn[:-1], drawn[-1:]))
        venues.append(
            VenueTrial(
                place,
                pool,
                _buys(outcomes_of),
                refusal,
                given_raw,
                wallets,
                crowd_parts=crowd_parts(run, bought, wallets) if isinstance(bought, CompletedBuy) else 1,
                recalled_wallets=recall_wallets(run, place, room),
                largest_wallets=largest,
            )
        )
    code = token_facts.read_simulated_code(facts)
    proxy = await _read_proxy(run, answers["proxy"], code)
    return BuyRoundData(
        facts=token_facts.read_token_facts(facts, code, proxy),
        launch=launch,
        venues=await _with_more_buys(run, venues, launch),
        block_gaps=find_block_gaps(run, places, code, answers, launch),
        code=code,
        implementation=token_facts.implementation_of(code, proxy) if run.deep else None,
        beacon=None if isinstance(proxy, Missing) else proxy.beacon,
    )


def _draw_crowds(
    run: CheckSession, places: tuple[VenuePlace, ...]
) -> dict[VenuePlace, tuple[CrowdWallet, ...]]:
    """The crowd of each place; nobody where no crowd trades."""
    seed, policy = run.crowd_seed, run.means.policy
    return {place: () if seed is None else draw_crowd(seed, place, run.head, policy) for place in places}


async def _read_proxy(
    run: CheckSession, answer: msgspec.Raw | RpcError, code: bytes | Missing
) -> ProxyFacts | Missing:
    """What the token's proxy slots name. Where the node did not run the program that reads them, one batch
    more reads them alone."""
    proxy = token_facts.read_proxy(answer, run.token, code)
    if isinstance(proxy, ProxyFacts):
        return proxy
    try:
        slots = await run.means.node.batch(token_facts.slot_calls(run.token, run.head.block), run.meter)
    except NodeFault:
        return proxy
    return token_facts.read_slots(slots, run.token, code)


def _given_raw(run: CheckSession, place: VenuePlace, result: PlanResult) -> int:
    """What the venue gave for the main buy, by its own logs; 0: they do not say, or it was refused."""
    if isinstance(result, Missing | RefusedCall) or not result["buy"].ok:
        return 0
    amounts = venue_amounts(result["buy"], place, run.setting)
    return 0 if amounts is None else amounts.token_raw


def _side_trials(place: VenuePlace) -> list[BuyTrial]:
    return [BuyTrial(place, size) for size in SIDE_SIZES]


def _buys(outcomes_of: Mapping[BuyTrial, BuyOutcome]) -> tuple[EnvironmentBuy, ...]:
    return tuple(EnvironmentBuy(trial.size, 0, outcome) for trial, outcome in outcomes_of.items())


def _reads(run: CheckSession, places: tuple[VenuePlace, ...], facts_plan: Plan) -> Reads:
    """The reads beside the buys, by name; the code of other contracts by their address."""
    block = run.head.block
    curve = next((place for place in places if place.venue.is_curve), None)
    reads = {"proxy": token_facts.proxy_call(run.token, block), "facts": run.request(facts_plan)}
    if curve is not None:
        reads["snipe tax"] = token_facts.snipe_call(curve, run.environments[0], block)
    return reads | {
        contract: token_facts.code_call(contract, block) for contract in strange_contracts(run, places)
    }


def _check_chain(facts: Results | Missing, chain_id: int) -> None:
    """Raises NodeFault where the simulation is of another chain. Without facts a check proves nothing."""
    if not isinstance(facts, Missing) and token_facts.read_chain_id(facts) != chain_id:
        raise NodeFault(f"the node does not answer for chain {chain_id}")


# --- more buys ---------------------------------------------------------------------------------------


async def _with_more_buys(
    run: CheckSession, venues: list[VenueTrial], launch: AnyLaunch | Missing | None
) -> list[VenueTrial]:
    """The venues with the buys that the first batch makes necessary, each in a simulation of its own. Sends
    one batch, or none."""
    policy = run.means.policy
    trials = [trial for venue in venues if venue.exists() for trial in _more_buys(venue, policy)]
    plans: dict[_CrowdBuy | BuyTrial, Plan | Missing] = {trial: _buy_plan(run, trial) for trial in trials}
    measured = [venue for venue in venues if _is_to_measure(run, venue, launch)]
    for venue in measured:
        parts = WHOLE_CROWD.split(venue.crowd_parts)
        plans |= {_CrowdBuy(venue.place, part): _crowd_buy_plan(run, part.of(venue)) for part in parts}
    sendable = {name: (name.place, plan) for name, plan in plans.items() if isinstance(plan, Plan)}
    if not sendable:
        return venues
    try:
        _, results = await run.ask({}, sendable)
    except NodeFault as fault:
        gap = Missing("token" if isinstance(fault, CodeFault) else "node", fault.message)
        results = dict.fromkeys(sendable, gap)
    more = []
    for venue in venues:
        found = {
            trial.size: _read_buy(run, trial, results[trial], launch)
            for trial in trials
            if trial.place == venue.place and trial in results
        }
        by_size = {buy.size: buy.outcome for buy in venue.buys} | found
        buys = tuple(EnvironmentBuy(size, 0, outcome) for size, outcome in by_size.items())
        crowd_results = {
            name.part: result
            for name, result in results.items()
            if isinstance(name, _CrowdBuy) and name.place == venue.place
        }
        crowd = _read_crowd(run, venue, crowd_results) if crowd_results else None
        more.append(replace(venue, buys=buys, crowd=crowd))
    return more


class _CrowdBuy(NamedTuple):
    """The measured buys of a part of the crowd."""

    place: VenuePlace
    part: CrowdPart


def _read_crowd(
    run: CheckSession, venue: VenueTrial, results: Mapping[CrowdPart, PlanResult]
) -> CrowdBuys | Missing:
    wallets = venue.crowd_wallets
    buys: dict[CrowdWallet, MemberBuys | RefusedCall | Missing] = {}
    for part, result in results.items():
        if isinstance(result, Missing):
            return result
        if isinstance(result, RefusedCall):
            return Missing("token", result.reason or "")
        measured = read_crowd_buys(run, part.of(venue), result)
        buys |= zip(measured.wallets, measured.buys, strict=True)
    return CrowdBuys(wallets, tuple(buys[wallet] for wallet in wallets))


def _is_to_measure(run: CheckSession, venue: VenueTrial, launch: AnyLaunch | Missing | None) -> bool:
    """True where a crowd is to trade, and the venue's formula does not say what its buys bring."""
    if not venue.crowd_wallets or venue.main_size() != "probe" or not can_trade(run, venue):
        return False
    return quote_crowd_buys(run, venue, launch, ()) is None


def _crowd_buy_plan(run: CheckSession, venue: VenueTrial) -> Plan | Missing:
    """The main wallet's buy, and the crowd's after it."""
    env = probe_plans.main_wallet(run.environments[0])
    amount_raw = legs.size_raw("probe", venue.place, run.setting, env)
    if isinstance(amount_raw, Missing):
        return amount_raw
    blocks = crowd_blocks(run, venue.place, venue.crowd_wallets)
    return probe_plans.buy_plan(venue.place, run.setting, env, "probe", amount_raw, blocks)


def _more_buys(venue: VenueTrial, policy: Policy) -> Iterator[BuyTrial]:
    """Smaller buys where the main one was not filled, and side buys that ran out of gas, or were not run
    because their simulation did."""
    by_size = {buy.size: buy.outcome for buy in venue.buys}
    main = by_size.get("probe")
    if not isinstance(main, CompletedBuy) or not is_filled(main):
        yield from (BuyTrial(venue.place, size) for size in _SMALLER_SIZES)
    main_gas = main.gas if isinstance(main, CompletedBuy) else 0
    for size in SIDE_SIZES:
        outcome = by_size.get(size)
        is_starved = isinstance(outcome, RefusedCall) and _is_starved(max(outcome.gas, main_gas), policy)
        if is_starved or outcome == GAS_POOL_SPENT:
            yield BuyTrial(venue.place, size)


def _is_starved(gas: int, policy: Policy) -> bool:
    """True where a side buy that needs this much gas had too little. Its revert reason does not say so: where
    the token runs out of gas inside a pool's call, the pool has some left and reverts with its own reason."""
    return 4 * gas >= 3 * policy.side_buy_gas_limit


# --- contracts that may read the block number ------------------------------------------------------


async def _with_numbers(run: CheckSession, data: BuyRoundData) -> tuple[CheckSession, BuyRoundData]:
    """The session in which block numbers pass on the venues where a trade may read them. It buys again with
    passing numbers, because what is held later may depend on them. Where copies let them pass, these are
    compared with the originals at the same time."""
    if not data.block_gaps:
        return run, data
    dialect, trials = run.head.known_dialect(), choose_venues(data.venues, run.means.policy)
    if dialect.lets_numbers_pass():
        found = PassedNumbers(data.block_gaps)
    else:
        found = await find_copies(run, trials, data.block_gaps, data.launch, data.code)
    gaps = {} if dialect.lets_numbers_pass() else found.gaps
    counting = found.venues() & {trial.place.venue for trial in trials}
    run = replace(run, counting=counting, block_gaps=gaps)
    if not counting or not (found.copies or dialect.own_numbers):
        return run, data
    controlling, buying = Meter(), Meter()
    buyer = replace(run, meter=buying, copies=found.copies)
    passed, again = await at_once(
        control_copies(replace(run, meter=controlling), found),
        ask_buy_round(buyer, tuple(venue.place for venue in data.venues)),
    )
    run.meter.add(controlling, buying)
    if found.copies is not None:
        run = replace(run, block_gaps=passed.gaps, copies=passed.copies)
        if passed.copies is None:
            return run, data
    # The facts stay: what is read beside the copies has the copied code.
    return run, replace(data, venues=again.venues, numbers=passed.evidence)


# --- which places are tried in full ----------------------------------------------------------------


async def choose_places(
    run: CheckSession, places: tuple[VenuePlace, ...]
) -> tuple[tuple[VenuePlace, ...], int]:
    """The places that are tried in full, and how many are passed over. Where there are too many, an extra
    batch buys once on each, and those that bring most are kept.

    A pool's own liquidity or price does not count: pools cost nothing to make.
    """
    policy = run.means.policy
    plain = [place for place in places if not place.venue.rival_hook()]
    hooked = [place for place in places if place.venue.rival_hook()]
    groups = ((plain, policy.most_tried), (hooked, policy.most_hooked))
    crowded = [group for group, limit in groups if len(group) > limit]
    if not crowded:
        return places, 0
    received = await _received_raw(run, [place for group in crowded for place in group])
    kept: set[VenuePlace] = set()
    for group, limit in groups:
        ranked = sorted(group, key=lambda place: received.get(place, 0), reverse=True)
        # One refusing place is enough to show that some refuse.
        giving = [place for place in ranked if received.get(place, 1) > 0] if group in crowded else ranked
        kept |= set((giving or ranked[:1])[:limit])
    return tuple(place for place in places if place in kept), len(places) - len(kept)


async def _received_raw(run: CheckSession, places: list[VenuePlace]) -> dict[VenuePlace, int]:
    """Base units that one buy brings on each place; larger than any amount where that is unknown."""
    plans = {trial: _buy_plan(run, trial) for trial in (BuyTrial(place, "probe") for place in places)}
    sendable = {trial: (trial.place, plan) for trial, plan in plans.items() if not isinstance(plan, Missing)}
    _, results = await run.ask({}, sendable)
    received = dict.fromkeys(places, _UNKNOWN_RAW)
    for trial, result in results.items():
        outcome = _read_buy(run, trial, result, None)
        if not isinstance(outcome, Missing):
            received[trial.place] = outcome.received_raw if isinstance(outcome, CompletedBuy) else 0
    return received


_UNKNOWN_RAW = 2**256


# --- one buy ---------------------------------------------------------------------------------------


def _buy_plan(run: CheckSession, trial: BuyTrial) -> Plan | Missing:
    place, size, env = trial.place, trial.size, probe_plans.main_wallet(run.environments[0])
    amount_raw = legs.size_raw(size, place, run.setting, env)
    if isinstance(amount_raw, Missing):
        return amount_raw
    return probe_plans.buy_plan(place, run.setting, env, size, amount_raw)


def _read_buy(
    run: CheckSession, trial: BuyTrial, result: PlanResult, launch: AnyLaunch | Missing | None
) -> BuyOutcome:
    if isinstance(result, Missing | RefusedCall):
        return result
    env = run.environments[0]
    amount_raw = legs.size_raw(trial.size, trial.place, run.setting, env)
    assert isinstance(amount_raw, int)
    outcome = outcomes.read_buy(result, trial.place, env, amount_raw)
    if isinstance(outcome, RefusedCall) and outcome.step == "arrive":
        amounts = venue_amounts(result["buy"], trial.place, run.setting)
        is_rounded = amounts is not None and amounts.token_raw == 0
        return replace(outcome, reason=POOL_GAVE_NOTHING) if is_rounded else outcome
    curve = launch.curve_state if isinstance(launch, LaunchRecord) else None
    if (
        not trial.place.venue.is_curve
        or not isinstance(outcome, CompletedBuy)
        or not isinstance(curve, Curve)
    ):
        return outcome
    # The small buy before the large one leaves a little less to buy: then the curve refunds a part.
    is_refunded = outcome.paid_raw * 100 < outcome.offered_raw * 99
    closes = is_refunded or outcome.received_raw >= curve.token_raw - curve.reserved_raw
    return replace(outcome, closes=closes)
