"""Evidence of one token, in two trips to the node."""

from dataclasses import dataclass, replace

import msgspec

from roundtrip.chain import facts, outcomes, probes
from roundtrip.chain.heads import Head
from roundtrip.chain.probes import Place, Setting
from roundtrip.chain.rpc import Meter, NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.chain.simulate import Plan, Results, build, read
from roundtrip.chain.storage import guess_calls, read_guesses
from roundtrip.domain.errors import NodeFault
from roundtrip.domain.evidence import (
    Bought,
    Buy,
    BuyOutcome,
    Carried,
    Cell,
    Curve,
    Environment,
    Evidence,
    Launch,
    Missing,
    PoolFacts,
    Probe,
    Refused,
    Size,
    TokenFacts,
    Venue,
    VenueEvidence,
)
from roundtrip.domain.readings import main_size
from roundtrip.domain.types import BPS, Address
from roundtrip.venues import BY_KIND

from . import environments
from .candidates import COMMON_MONEY, Candidates, candidates, unseen
from .context import Context

EVIDENCE_SCHEMA = 2

_BUYS: tuple[tuple[Size, int], ...] = (
    ("probe", 0), ("probe", 1), ("tenth", 0), ("hundredth", 0), ("thousandth", 0), ("large", 0),
)  # fmt: skip
"""What trip 1 buys of every candidate: sizes and environments. Which of them trip 2 sells is seen then."""


@dataclass(frozen=True, slots=True)
class _Venue:
    """A venue on its way through the two trips."""

    place: Place
    facts: PoolFacts | Missing
    buys: tuple[Buy, ...]
    told: Refused | Missing | None

    def bought(self, size: Size, environment: int = 0) -> Bought | None:
        for buy in self.buys:
            if (buy.size, buy.environment) == (size, environment) and isinstance(buy.outcome, Bought):
                return None if buy.outcome.closes else buy.outcome
        return None

    def unfunded(self) -> bool:
        """True for a pool that is there and whose money could not be had in the judged size."""
        outcome = next((buy.outcome for buy in self.buys if buy.size == "probe"), None)
        return self.there() and isinstance(outcome, Missing) and outcome.why == outcomes.NO_ROUTE

    def there(self) -> bool:
        """True for a pool that is known to exist."""
        return not isinstance(self.facts, Missing) and self.facts.exists


def _best(venues: list[_Venue], most: int) -> list[_Venue]:
    """The venues that are judged: at most so many that bought, by what the buy of the probe brought (every
    venue is paid the same worth), and all that refused or are not known. A claim of liquidity counts for
    nothing.

    Half of the places are kept for pools without a stranger's hook: otherwise a few cheap pools whose hooks
    refuse sells would crowd the fair one out.
    """
    there = [v for v in venues if not (isinstance(v.facts, PoolFacts) and not v.facts.exists)]
    buying = [v for v in there if _main_size(v) is not None]

    def brought(venue: _Venue) -> int:
        bought = venue.bought("probe")
        return bought.received_raw if bought is not None else 0

    ordered = sorted(buying, key=brought, reverse=True)
    hooked = [v for v in ordered if v.place.venue.rival_hook()]
    plain = [v for v in ordered if not v.place.venue.rival_hook()]
    kept = plain[: max(most - len(hooked), most // 2)]
    kept += hooked[: most - len(kept)]
    return [v for v in there if v in kept or v not in buying]


@dataclass(frozen=True, slots=True)
class _Run:
    """One check under way."""

    ctx: Context
    head: Head
    token: Address
    setting: Setting
    environments: tuple[Environment, ...]
    meter: Meter

    def request(self, plan: Plan) -> RpcCall:
        return build(plan, self.head.block, self.ctx.dialect)

    def results(self, plan: Plan, answer: msgspec.Raw | RpcError) -> Results | Missing:
        return read(plan, answer, self.head.block, self.ctx.dialect)


async def gather(ctx: Context, token: Address, meter: Meter) -> Evidence:
    """Everything the verdict is read from. Raises NodeFault when trip 1 gave nothing usable.

    A launch that the book has not seen is learned of in trip 1 only, and costs a third trip.
    """
    head = ctx.heads.current()
    roles = {ctx.contracts.weth: "weth", ctx.contracts.usdg: "usdg"}
    role = roles.get(token, "token")
    run = _Run(
        ctx=ctx,
        head=head,
        token=token,
        setting=Setting(token, ctx.contracts, head.market, ctx.policy),
        environments=environments.draw(ctx.entropy(), head, ctx.policy),
        meter=meter,
    )
    known = candidates(ctx.heads.book, ctx.contracts, token) if role == "token" else Candidates((), 0, True)
    run = await _with_rates(run, known.venues)
    first = await _first_trip(run, _places(known.venues))
    new = unseen(ctx.contracts, token, first.launch, known.venues) if role == "token" else ()
    if new:
        if ctx.heads.book is not None:
            ctx.heads.book.add(token, new)
        run = await _with_rates(run, new)
        first = await _first_trip(run, _places((*known.venues, *new)))
    run, first = await _with_given(run, first)
    tried = await _second_trip(run, _best(first.venues, ctx.policy.most_venues))
    return Evidence(
        schema=EVIDENCE_SCHEMA,
        policy_version=ctx.policy.version,
        chain_id=ctx.chain_id,
        block=head.block,
        block_base_fee_wei=head.base_fee_wei,
        token=token,
        role=role,  # type: ignore[arg-type]
        facts=first.facts,
        market=run.setting.market,
        environments=run.environments,
        venues=tried,
        candidates_complete=known.complete,
        pools_found=sum(venue.there() for venue in first.venues) + known.others,
        launch=first.launch,
        given=tuple(slot.asset for slot in run.setting.slots),
    )


def _places(venues: tuple[Venue, ...]) -> tuple[Place, ...]:
    return tuple(Place(venue, BY_KIND[venue.kind]) for venue in venues)


async def _with_rates(run: _Run, venues: tuple[Venue, ...]) -> _Run:
    """The run with the rates of what these venues are paid in. No trip for eth, weth and usdg."""
    others = {v.quote_address for v in venues if v.quote not in COMMON_MONEY}
    if not others:
        return run
    known = {rate.asset for rate in run.setting.market.rates}
    market = await run.ctx.rates.join(run.setting.market, others | known, run.head.block, run.meter)
    return replace(run, setting=replace(run.setting, market=market))


@dataclass(frozen=True, slots=True)
class _First:
    """What trip 1 told."""

    facts: TokenFacts
    launch: Launch | Missing | None
    venues: list[_Venue]


async def _with_given(run: _Run, first: _First) -> tuple[_Run, _First]:
    """Where no real swap brought the money of a venue, what was looked for: where that money keeps its
    balances, and trip 1 once more with it given. Two trips more, and only then."""
    short = {
        v.place.venue.quote_address for v in first.venues if v.place.venue.quote_address and v.unfunded()
    }
    if not short:
        return run, first
    wallet, slots = run.environments[0].reader, []
    for asset in sorted(short):
        try:
            answers = await run.ctx.node.batch(guess_calls(asset, wallet, run.head.block), run.meter)
        except NodeFault:
            continue
        slots.append(read_guesses(asset, answers))
    found = tuple(slot for slot in slots if slot is not None)
    if not found:
        return run, first
    run = replace(run, setting=replace(run.setting, slots=found))
    return run, await _first_trip(run, tuple(venue.place for venue in first.venues))


async def _first_trip(run: _Run, places: tuple[Place, ...]) -> _First:
    reader, block, contracts = run.environments[0], run.head.block, run.ctx.contracts
    facts_plan = facts.facts_plan(run.token, places, contracts, reader, run.ctx.policy)
    pay_out_plan = probes.pay_out_plan(places, run.setting, reader)
    curve = next((place for place in places if place.venue.kind == "launchpad_curve"), None)
    fixed = [
        RpcCall("eth_chainId", []),
        facts.code_call(run.token, block),
        facts.admin_call(run.token, block),
        run.request(facts_plan),
        run.request(pay_out_plan),
        *([] if curve is None else [facts.snipe_call(curve, reader, block)]),
    ]
    buys = [(place, size, env) for place in places for size, env in _BUYS]
    plans = [_buy_plan(run, *buy) for buy in buys]
    asked = [plan for plan in plans if not isinstance(plan, Missing)]
    answers = await run.ctx.node.batch([*fixed, *map(run.request, asked)], run.meter)
    _same_chain(answers[0], run.ctx.chain_id)
    told = run.results(facts_plan, answers[3])
    said = run.results(pay_out_plan, answers[4])
    launch = facts.read_launch(told, run.token, places, None if curve is None else answers[5], contracts)
    left = iter(answers[len(fixed) :])
    outcomes_of: dict[Place, list[Buy]] = {place: [] for place in places}
    for (place, size, env), plan in zip(buys, plans, strict=True):
        if isinstance(plan, Missing):
            outcomes_of[place].append(Buy(size, env, plan))
        else:
            outcome = _read_buy(run, place, size, env, run.results(plan, next(left)), launch)
            outcomes_of[place].append(Buy(size, env, outcome))
    venues = []
    for number, place in enumerate(places):
        pool = facts.read_pool_facts(told, number, place, run.token, contracts)
        absent = not isinstance(pool, Missing) and not pool.exists
        kept = () if absent else tuple(outcomes_of[place])
        venues.append(
            _Venue(place, pool, kept, None if absent else outcomes.read_told(said, f"pay-out-{number}"))
        )
    return _First(facts.read_token_facts(told, answers[1], answers[2]), launch, venues)


def _read_buy(
    run: _Run, place: Place, size: Size, env: int, results: Results | Missing, launch: Launch | Missing | None
) -> BuyOutcome:
    amount = probes.size_raw(size, place, run.setting, run.environments[env])
    assert isinstance(amount, int)
    outcome = outcomes.read_buy(results, place, run.environments[env], amount)
    state = launch.curve_state if isinstance(launch, Launch) else None
    if (
        place.venue.kind != "launchpad_curve"
        or not isinstance(outcome, Bought)
        or not isinstance(state, Curve)
    ):
        return outcome
    return replace(outcome, closes=outcome.received_raw >= state.token_raw - state.reserved_raw)


def _buy_plan(run: _Run, place: Place, size: Size, env: int) -> Plan | Missing:
    amount = probes.size_raw(size, place, run.setting, run.environments[env])
    if isinstance(amount, Missing):
        return amount
    return probes.buy_plan(place, run.setting, run.environments[env], size, amount)


def _same_chain(answer: msgspec.Raw | RpcError, chain_id: int) -> None:
    if isinstance(answer, RpcError) or bytes(answer) != f'"{hex(chain_id)}"'.encode():
        raise NodeFault(f"it does not answer for chain {chain_id}")


async def _second_trip(run: _Run, venues: list[_Venue]) -> tuple[VenueEvidence, ...]:
    """Every probe of every venue that bought, in one batch, none conditional on another."""
    asked: list[tuple[int, Probe | None, Plan]] = []
    for number, venue in enumerate(venues):
        size = _main_size(venue)
        if size is None:
            continue
        asked += [(number, probe, _sell_plan(run, venue, probe)) for probe in _probes(run, venue, size)]
        asked.append((number, None, _pull_plan(run, venue, size)))
    results = await _ask(run, [plan for _, _, plan in asked]) if asked else []
    cells: list[list[Cell]] = [[] for _ in venues]
    refusals: list[Refused | Missing | None] = [None] * len(venues)
    carried: list[Carried | Refused | Missing | None] = [None] * len(venues)
    for (number, probe, _), result in zip(asked, results, strict=True):
        venue = venues[number]
        if probe is None:
            refusals[number] = outcomes.read_told(result, "pull")
            carried[number] = outcomes.read_carried(result, _moved(venue), venue.place.venue.keeps_by_hook())
        else:
            cells[number].append(_cell(run, venue, probe, result))
    return tuple(
        VenueEvidence(v.place.venue, v.facts, v.buys, tuple(cells[n]), v.told, refusals[n], carried[n])
        for n, v in enumerate(venues)
    )


def _moved(venue: _Venue) -> int:
    """What is carried past the pool: all that the judged size bought."""
    size = _main_size(venue)
    bought = venue.bought(size) if size is not None else None
    return 0 if bought is None else max(1, bought.received_raw)


async def _ask(run: _Run, plans: list[Plan]) -> list[Results | Missing]:
    """Trip 2. A node that answered trip 1 and fails here has answered in part: its cells are Missing."""
    try:
        answers = await run.ctx.node.batch([run.request(plan) for plan in plans], run.meter)
    except NodeAnswerTooLarge as fault:
        return [Missing("token", fault.message)] * len(plans)
    except NodeFault as fault:
        return [Missing("node", fault.message)] * len(plans)
    return [run.results(plan, answer) for plan, answer in zip(plans, answers, strict=True)]


def _main_size(venue: _Venue) -> Size | None:
    size = main_size(VenueEvidence(venue.place.venue, venue.facts, venue.buys))
    return size if isinstance(size, str) else None


def _probes(run: _Run, venue: _Venue, size: Size) -> list[Probe]:
    policy = run.ctx.policy
    found = [
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
    others: tuple[Size, ...] = ("thousandth", "large")
    return found + [Probe(other, policy.later_s, BPS, 0) for other in others if venue.bought(other)]


def _bought(venue: _Venue, probe: Probe) -> Bought:
    """What this probe's own environment bought; where only the other one was tried, what that did."""
    bought = venue.bought(probe.size, probe.environment) or venue.bought(probe.size)
    assert bought is not None
    return bought


def _trader(run: _Run, venue: _Venue, probe: Probe) -> Environment:
    """The probe's environment; where its own size was not tried, it buys what the other one did."""
    environment = run.environments[probe.environment]
    if venue.bought(probe.size, probe.environment) is None:
        return replace(environment, size_bps=BPS, late_s=0)
    return environment


def _amount_raw(run: _Run, venue: _Venue, size: Size, environment: Environment) -> int:
    amount = probes.size_raw(size, venue.place, run.setting, environment)
    assert isinstance(amount, int)
    return amount


def _sell_plan(run: _Run, venue: _Venue, probe: Probe) -> Plan:
    env = _trader(run, venue, probe)
    amount = _amount_raw(run, venue, probe.size, env)
    return probes.sell_plan(venue.place, run.setting, env, probe, amount, _bought(venue, probe))


def _pull_plan(run: _Run, venue: _Venue, size: Size) -> Plan:
    bought = venue.bought(size)
    assert bought is not None
    env = run.environments[0]
    amount = _amount_raw(run, venue, size, env)
    return probes.pull_plan(venue.place, run.setting, env, size, amount, bought)


def _cell(run: _Run, venue: _Venue, probe: Probe, results: Results | Missing) -> Cell:
    env = _trader(run, venue, probe)
    bought = _bought(venue, probe)
    return Cell(probe, outcomes.read_sell(results, venue.place, env, probe, bought, run.ctx.policy))
