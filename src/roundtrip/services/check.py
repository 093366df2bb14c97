"""Can this token be bought and sold, and what does a round trip cost. Two trips to the node, cold."""

from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import msgspec
import structlog

from roundtrip.chain import facts, outcomes, probes
from roundtrip.chain.heads import Head
from roundtrip.chain.probes import Place, Setting
from roundtrip.chain.rpc import Meter, NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.chain.simulate import Plan, Results, build, read
from roundtrip.domain import canonical
from roundtrip.domain.errors import NodeFault, ServiceFull
from roundtrip.domain.evidence import (
    Bought,
    Buy,
    Cell,
    Environment,
    Evidence,
    Missing,
    PoolFacts,
    Probe,
    Refused,
    Size,
    TokenFacts,
    VenueEvidence,
)
from roundtrip.domain.policy import Policy
from roundtrip.domain.readings import main_size
from roundtrip.domain.types import BPS, Address
from roundtrip.domain.verdict import Judgement, judge
from roundtrip.store import evidence as evidence_store
from roundtrip.venues import VENUES
from roundtrip.venues.abi import keccak

from .check_answer import Check, CheckParams, at, present
from .context import Answered, Context

EVIDENCE_SCHEMA = 1
_KEEP_S = 5.0
log = structlog.get_logger(__name__)

_BUYS: tuple[tuple[Size, int], ...] = (
    ("probe", 0), ("probe", 1), ("tenth", 0), ("hundredth", 0), ("thousandth", 0), ("large", 0),
)  # fmt: skip
"""What trip 1 buys of every candidate: sizes and environments. Which of them trip 2 sells is seen then."""


async def check(ctx: Context, params: CheckParams) -> Answered[Check]:
    """The whole check, its evidence kept. Raises NodeFault when the chain gave nothing usable."""
    token = params.token()
    meter = Meter()
    evidence = await gather(ctx, token, meter)
    judgement = judge(evidence, ctx.policy)
    now_s = ctx.now_s()
    await _keep(ctx, evidence, judgement, now_s)
    node_fault = judgement.missing is not None and judgement.missing.fault == "node"
    return Answered(
        present(evidence, judgement, ctx.policy, now_s),
        ttl_ms=ctx.policy.node_fault_ttl_ms if node_fault else ctx.policy.answer_ttl_ms,
        counted=not node_fault,
        meter=meter,
    )


async def _keep(ctx: Context, evidence: Evidence, judgement: Judgement, now_s: float) -> None:
    kept = evidence_store.KeptEvidence(
        at(now_s),
        evidence.block.number,
        evidence.policy_version,
        judgement.verdict.code,
        judgement.verdict.level,
        canonical.dump(evidence),
    )
    try:
        async with ctx.pool.acquire(timeout=_KEEP_S) as connection, connection.transaction():
            await evidence_store.keep(connection, evidence.token, kept)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        log.warning("evidence could not be kept", error=repr(error))
        raise ServiceFull("busy", "The evidence of this check cannot be kept just now.", 5) from error


# --- gathering -------------------------------------------------------------------------------------


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
                return buy.outcome
        return None

    def there(self) -> bool:
        """True for a pool that is known to exist."""
        return not isinstance(self.facts, Missing) and self.facts.exists


def _best(venues: list[_Venue], most: int) -> list[_Venue]:
    """The venues that are judged: at most so many that bought, by what the buy of the probe brought (every
    venue is paid the same worth), and all that refused or are not known. A claim of liquidity counts for
    nothing."""
    there = [v for v in venues if not (isinstance(v.facts, PoolFacts) and not v.facts.exists)]
    buying = [v for v in there if _main_size(v) is not None]

    def brought(venue: _Venue) -> int:
        bought = venue.bought("probe")
        return bought.received_raw if bought is not None else 0

    kept = sorted(buying, key=brought, reverse=True)[:most]
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
    """Everything the verdict is read from. Raises NodeFault when trip 1 gave nothing usable."""
    head = ctx.heads.current()
    roles = {ctx.contracts.weth: "weth", ctx.contracts.usdg: "usdg"}
    role = roles.get(token, "token")
    run = _Run(
        ctx=ctx,
        head=head,
        token=token,
        setting=Setting(token, ctx.contracts, head.market, ctx.policy),
        environments=_environments(ctx.entropy(), head, ctx.policy),
        meter=meter,
    )
    places = _places(ctx, token) if role == "token" else ()
    token_facts, venues = await _first_trip(run, places)
    pools_found = sum(venue.there() for venue in venues)
    tried = await _second_trip(run, _best(venues, ctx.policy.most_venues))
    return Evidence(
        schema=EVIDENCE_SCHEMA,
        policy_version=ctx.policy.version,
        chain_id=ctx.chain_id,
        block=head.block,
        block_base_fee_wei=head.base_fee_wei,
        token=token,
        role=role,  # type: ignore[arg-type]
        facts=token_facts,
        market=head.market,
        environments=run.environments,
        venues=tried,
        pools_found=pools_found,
    )


def _places(ctx: Context, token: Address) -> tuple[Place, ...]:
    found = [Place(v, file) for file in VENUES for v in file.candidates(token, ctx.contracts)]
    return tuple(found)


def _environments(entropy: bytes, head: Head, policy: Policy) -> tuple[Environment, ...]:
    """Two wallets in two blocks that could be the next one: neither can be told from a real buyer."""

    def drawn(label: str) -> bytes:
        return keccak(entropy + label.encode())

    def wallet(label: str) -> Address:
        return Address("0x" + drawn(label)[12:].hex())

    def number(label: str, least: int, most: int) -> int:
        return least + int.from_bytes(drawn(label)[:8], "big") % (most - least + 1)

    def environment(which: int, tip_wei: int, **manners: Any) -> Environment:
        return Environment(
            buyer=wallet(f"buyer {which}"),
            receiver=wallet(f"receiver {which}"),
            reader=wallet(f"reader {which}"),
            nonce=number(f"nonce {which}", 1, 300),
            coinbase=head.coinbase,
            prev_randao="0x" + drawn(f"randao {which}").hex(),
            base_fee_wei=head.base_fee_wei,
            max_fee_wei=2 * head.base_fee_wei + tip_wei,
            tip_wei=tip_wei,
            **manners,
        )

    small_wei, large_wei = 5 * 10**16, 10**18
    careful = environment(0, 0, gas_float_wei=number("float 0", small_wei, 2 * small_wei))
    careless = environment(
        1,
        number("tip 1", 10**6, 2 * 10**9),
        gas_float_wei=number("float 1", large_wei, 20 * large_wei),
        size_bps=number("size 1", 6000, 9900),
        approves_all=True,
        approve_gas_limit=_APPROVE_GAS_AS_WALLETS_SEND_IT,
        late_s=number("late 1", 1, 14),
        sell_gas_ladder=(policy.buy_gas_limit,),
    )
    return careful, careless


_APPROVE_GAS_AS_WALLETS_SEND_IT = 90_000
"""Half as much again as an approval usually takes."""


async def _first_trip(run: _Run, places: tuple[Place, ...]) -> tuple[TokenFacts, list[_Venue]]:
    reader = run.environments[0]
    facts_plan = facts.facts_plan(run.token, places, run.ctx.contracts, reader, run.ctx.policy)
    pay_out_plan = probes.pay_out_plan(places, run.setting, reader)
    head = run.head
    fixed = [
        RpcCall("eth_chainId", []),
        facts.code_call(run.token, head.block),
        facts.admin_call(run.token, head.block),
        run.request(facts_plan),
        run.request(pay_out_plan),
    ]
    buys = [(place, size, env) for place in places for size, env in _BUYS]
    plans = [_buy_plan(run, *buy) for buy in buys]
    asked = [plan for plan in plans if not isinstance(plan, Missing)]
    answers = await run.ctx.node.batch([*fixed, *map(run.request, asked)], run.meter)
    _same_chain(answers[0], run.ctx.chain_id)
    fact_results = run.results(facts_plan, answers[3])
    token_facts = facts.read_token_facts(fact_results, answers[1], answers[2])
    told = run.results(pay_out_plan, answers[4])
    left = iter(answers[5:])
    tried: dict[tuple[int, Size, int], Buy] = {}
    for (place, size, env), plan in zip(buys, plans, strict=True):
        if isinstance(plan, Missing):
            outcome = Buy(size, env, plan)
        else:
            results = run.results(plan, next(left))
            amount = probes.size_raw(size, place, run.setting, run.environments[env])
            assert isinstance(amount, int)
            outcome = Buy(size, env, outcomes.read_buy(results, place, run.environments[env], amount))
        tried[places.index(place), size, env] = outcome
    venues = []
    for number, place in enumerate(places):
        pool = facts.read_pool_facts(fact_results, number, place, run.token, run.ctx.contracts)
        absent = not isinstance(pool, Missing) and not pool.exists
        kept = () if absent else tuple(tried[number, size, env] for size, env in _BUYS)
        said = None if absent else outcomes.read_told(told, f"pay-out-{number}")
        venues.append(_Venue(place, pool, kept, said))
    return token_facts, venues


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
    for (number, probe, _), result in zip(asked, results, strict=True):
        if probe is None:
            refusals[number] = outcomes.read_told(result, "pull")
        else:
            cells[number].append(_cell(run, venues[number], probe, result))
    return tuple(
        VenueEvidence(venue.place.venue, venue.facts, venue.buys, tuple(found), venue.told, refusal)
        for venue, found, refusal in zip(venues, cells, refusals, strict=True)
    )


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
