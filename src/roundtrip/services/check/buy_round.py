"""Trip 1: the token's facts, every candidate venue's state, and its buys, each alone on the pinned block."""

from dataclasses import dataclass, replace

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.chain.simulate import legs, outcomes, probe_plans
from roundtrip.chain.simulate import token_facts as facts
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.check.evidence import (
    AnyLaunch,
    BuyOutcome,
    CompletedBuy,
    Curve,
    EnvironmentBuy,
    LaunchRecord,
    Missing,
    PoolLaunch,
    RefusedCall,
    Size,
    TokenFacts,
)

from .session import BlockDependent, CheckSession, VenueTrial

_BUYS: tuple[tuple[Size, int], ...] = (
    ("probe", 0), ("probe", 1), ("tenth", 0), ("hundredth", 0), ("thousandth", 0), ("large", 0),
)  # fmt: skip
"""What is bought of every candidate: sizes and environments. Which of them trip 2 sells is seen then."""


@dataclass(frozen=True, slots=True)
class BuyRoundData:
    """What trip 1 told. ``implementation`` is asked for deep checks only: whose code runs behind ``code``."""

    facts: TokenFacts
    launch: AnyLaunch | Missing | None
    venues: list[VenueTrial]
    block_dependent: BlockDependent
    code: bytes | Missing = b""
    implementation: Address | Missing | None = None


async def ask_buy_round(run: CheckSession, places: tuple[VenuePlace, ...]) -> BuyRoundData:
    """Raises NodeFault when it gave nothing usable, or is of another chain."""
    reader, block, contracts = run.environments[0], run.head.block, run.means.contracts
    facts_plan = facts.facts_plan(run.token, places, contracts, reader, run.means.policy)
    pay_out_plan = probe_plans.pay_out_plan(places, run.setting, reader)
    curve = next((place for place in places if place.venue.is_curve), None)
    fixed = [
        RpcCall("eth_chainId", []),
        facts.code_call(run.token, block),
        facts.admin_call(run.token, block),
        run.request(facts_plan),
        run.request(pay_out_plan),
        *([] if curve is None else [facts.snipe_call(curve, reader, block)]),
        *([facts.implementation_call(run.token, block)] if run.deep else []),
    ]
    others = _strange_code(run, places)
    fixed += [facts.code_call(one, block) for one in others]
    buys = [(place, size, env) for place in places for size, env in _BUYS]
    plans = [_buy_plan(run, *buy) for buy in buys]
    asked = [(buy[0], plan) for buy, plan in zip(buys, plans, strict=True) if not isinstance(plan, Missing)]
    answers, bought = await run.ask(fixed, asked)
    _same_chain(answers[0], run.means.chain_id)
    told = run.results(facts_plan, answers[3])
    said = run.results(pay_out_plan, answers[4])
    launch = facts.read_launch(told, run.token, places, None if curve is None else answers[5], contracts)
    left = iter(bought)
    made: dict[VenuePlace, list[EnvironmentBuy]] = {place: [] for place in places}
    for (place, size, env), plan in zip(buys, plans, strict=True):
        results = plan if isinstance(plan, Missing) else next(left)
        made[place].append(EnvironmentBuy(size, env, _read_buy(run, place, size, env, results, launch)))
    venues = []
    for number, place in enumerate(places):
        pool = facts.read_pool_facts(told, number, place, run.token, contracts)
        absent = not isinstance(pool, Missing) and not pool.exists
        reason = None if absent else outcomes.read_told(said, f"pay-out-{number}")
        venues.append(VenueTrial(place, pool, () if absent else tuple(made[place]), reason))
    codes = dict(zip(others, answers[len(answers) - len(others) :], strict=True))
    counting = _counting({run.token: answers[1], **codes}, launch) if _numbers_stand(run) else {}
    code, at = facts.read_code(answers[1]), len(answers) - len(others) - 1
    behind = facts.read_implementation(code, answers[at]) if run.deep else None
    own = facts.read_token_facts(told, answers[1], answers[2])
    return BuyRoundData(own, launch, venues, counting, code, behind)


def _numbers_stand(run: CheckSession) -> bool:
    return not run.head.known_dialect().lets_numbers_pass()


def _strange_code(run: CheckSession, places: tuple[VenuePlace, ...]) -> tuple[Address, ...]:
    """Beside the token, whose code takes part in its trades and is nobody's we know: hooks, and money that is
    not eth, weth or usdg. Only asked where it matters whether they count blocks."""
    if not _numbers_stand(run):
        return ()
    parties = (one for place in places for one in (place.venue.hook, place.venue.quote_address))
    known = (*run.means.contracts.all_addresses(), ZERO_ADDRESS, run.token)
    return tuple(dict.fromkeys(one for one in parties if one is not None and one not in known))


def _counting(
    codes: dict[Address, msgspec.Raw | RpcError], launch: AnyLaunch | Missing | None
) -> dict[Address, Missing]:
    """Which of these contracts may count blocks. What a launchpad launched is its own code, which counts none
    before a sell, and it says itself what it launches against."""
    trusted: set[Address] = set()
    if isinstance(launch, LaunchRecord | PoolLaunch):
        trusted = {next(iter(codes)), launch.quote_address}
    gaps = {one: facts.block_count(answer) for one, answer in codes.items() if one not in trusted}
    return {one: gap for one, gap in gaps.items() if gap is not None}


async def choose_places(
    run: CheckSession, places: tuple[VenuePlace, ...]
) -> tuple[tuple[VenuePlace, ...], int]:
    """The places that are tried in full, and how many were passed over. Where there are too many of them it
    takes a trip of its own: one buy on each, and those on which it brings most are kept.

    What anybody says of a pool, its liquidity or its price, counts for nothing: pools cost nothing to make.
    """
    policy = run.means.policy
    plain = [place for place in places if not place.venue.rival_hook()]
    hooked = [place for place in places if place.venue.rival_hook()]
    crowded = [
        sort for sort, most in ((plain, policy.most_tried), (hooked, policy.most_hooked)) if len(sort) > most
    ]
    if not crowded:
        return places, 0
    brought = await _brought(run, [place for sort in crowded for place in sort])
    kept: set[VenuePlace] = set()
    for sort, most in ((plain, policy.most_tried), (hooked, policy.most_hooked)):
        ordered = sorted(sort, key=lambda place: brought.get(place, 0), reverse=True)
        # One that refuses is enough to know that there are such.
        giving = [place for place in ordered if brought.get(place, 1) > 0] if sort in crowded else ordered
        kept |= set((giving or ordered[:1])[:most])
    return tuple(place for place in places if place in kept), len(places) - len(kept)


async def _brought(run: CheckSession, places: list[VenuePlace]) -> dict[VenuePlace, int]:
    """What one buy brings on each; more than anything where that could not be found out."""
    plans = [(place, _buy_plan(run, place, "probe", 0)) for place in places]
    asked = [(place, plan) for place, plan in plans if not isinstance(plan, Missing)]
    _, found = await run.ask([], asked)
    brought = dict.fromkeys(places, _NOT_KNOWN)
    for (place, _), results in zip(asked, found, strict=True):
        outcome = _read_buy(run, place, "probe", 0, results, None)
        if not isinstance(outcome, Missing):
            brought[place] = outcome.received_raw if isinstance(outcome, CompletedBuy) else 0
    return brought


_NOT_KNOWN = 2**256


def _buy_plan(run: CheckSession, place: VenuePlace, size: Size, env: int) -> Plan | Missing:
    amount = legs.size_raw(size, place, run.setting, run.environments[env])
    if isinstance(amount, Missing):
        return amount
    return probe_plans.buy_plan(place, run.setting, run.environments[env], size, amount)


def _read_buy(
    run: CheckSession,
    place: VenuePlace,
    size: Size,
    env: int,
    results: Results | Missing | RefusedCall,
    launch: AnyLaunch | Missing | None,
) -> BuyOutcome:
    if isinstance(results, Missing | RefusedCall):
        return results
    amount = legs.size_raw(size, place, run.setting, run.environments[env])
    assert isinstance(amount, int)
    outcome = outcomes.read_buy(results, place, run.environments[env], amount)
    state = launch.curve_state if isinstance(launch, LaunchRecord) else None
    on_curve = place.venue.is_curve
    if not on_curve or not isinstance(outcome, CompletedBuy) or not isinstance(state, Curve):
        return outcome
    return replace(outcome, closes=outcome.received_raw >= state.token_raw - state.reserved_raw)


def _same_chain(answer: msgspec.Raw | RpcError, chain_id: int) -> None:
    if isinstance(answer, RpcError) or bytes(answer) != f'"{hex(chain_id)}"'.encode():
        raise NodeFault(f"it does not answer for chain {chain_id}")
