"""The deep round: the owner's functions called with hostile values, each before a sell of its own, and the
sells of wallets that hold the token already."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import msgspec

from roundtrip.chain.owner import owner_plans, owner_setters
from roundtrip.chain.owner.owner_plans import Actor, By, OwnerProbeSell, PlannedTry
from roundtrip.chain.owner.selectors import UnreadableCode
from roundtrip.chain.rpc.client import CodeFault, Meter, RpcError
from roundtrip.chain.simulate import legs, token_facts
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.check.evidence import Evidence, Missing, OwnerCall, OwnerCalls, Probe, RefusedCall
from roundtrip.domain.check.owner_calls import lost_bps
from roundtrip.domain.check.venue_code import takes_sells
from roundtrip.domain.check.verdict import judge
from roundtrip.venues.base import Contracts

from . import holder_sells
from .buy_round import BuyRoundResult
from .session import CheckSession


class _CodeReading:
    """Reads the functions of contracts, two at a time, in its own threads: a contract can make this slow."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(2, "reading")
        self._waiting = 0

    def full(self) -> bool:
        """Whether ``_MOST_WAITING`` readings wait already."""
        return self._waiting >= _MOST_WAITING

    async def find(self, *codes: bytes) -> owner_setters.OwnerSetters:
        """Like ``owner_setters.find``, in a thread."""
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, owner_setters.find, *codes)
        finally:
            self._waiting -= 1


_MOST_WAITING = 8
_READING = _CodeReading()


@dataclass(frozen=True, slots=True)
class DeepRoundInputs:
    """The reads beside the sell round. ``implementation_code``: of a proxy's implementation, empty where the
    token is no proxy. ``holders``: None where no holder is known."""

    implementation_code: bytes | Missing
    holders: holder_sells.HolderWallets | Missing | None


async def read_deep_inputs(bought: BuyRoundResult, meter: Meter) -> DeepRoundInputs:
    """Sends one batch, or none. Missing where the node fails."""
    run, implementation = bought.run, bought.data.implementation
    reads = holder_sells.reads(bought)
    if isinstance(implementation, str):
        reads = {_IMPLEMENTATION: token_facts.code_call(implementation, run.head.block), **reads}
    no_code = implementation if isinstance(implementation, Missing) else b""
    answers: dict[str, msgspec.Raw | RpcError] = {}
    try:
        if reads:
            batch = await run.means.node.batch(list(reads.values()), meter)
            answers = dict(zip(reads, batch, strict=True))
    except NodeFault as fault:
        gap = Missing("token" if isinstance(fault, CodeFault) else "node", fault.message)
        is_known = _IMPLEMENTATION not in reads
        return DeepRoundInputs(no_code if is_known else gap, gap if bought.indexed.holders else None)
    code = token_facts.read_code(answers[_IMPLEMENTATION]) if _IMPLEMENTATION in answers else no_code
    return DeepRoundInputs(code, holder_sells.read(bought, answers))


_IMPLEMENTATION = "implementation"


async def run_deep_round(
    bought: BuyRoundResult, evidence: Evidence, inputs: DeepRoundInputs, meter: Meter
) -> Evidence:
    """The evidence with the sells after each owner's call and the holders' sells; unchanged where there is
    nothing to try. Sends one batch."""
    run = replace(bought.run, meter=meter)
    judgement = judge(evidence, run.means.policy)
    best = judgement.best
    if judgement.missing is not None or best is None:
        return evidence
    if not takes_sells(judgement.readings[best], run.means.policy):
        return evidence
    sell = _completed_sell(bought, evidence, best)
    calls = await _plan_owner_calls(bought, evidence, best, inputs.implementation_code, sell)
    holders = holder_sells.plan_holder_sells(bought, evidence, best, sell, inputs.holders)
    plans: dict[DeepPlanName, Plan] = {}
    if isinstance(calls, OwnerCallPlan):
        plans |= calls.plans()
    if isinstance(holders, holder_sells.HolderSellPlan):
        plans |= holders.plans()
    results = await _send(run, sell, plans)
    return replace(
        evidence,
        owner_calls=calls.read(results) if isinstance(calls, OwnerCallPlan) else calls,
        holder_sells=holders.read(results) if isinstance(holders, holder_sells.HolderSellPlan) else holders,
    )


DeepPlanName = tuple[str, int]
"""The purpose of a plan of the deep round, and its number among those."""


async def _send(
    run: CheckSession, sell: OwnerProbeSell | Missing, plans: Mapping[DeepPlanName, Plan]
) -> dict[DeepPlanName, Results | Missing]:
    if not plans or isinstance(sell, Missing):
        return {}
    try:
        _, results = await run.ask({}, {name: (sell.place, plan) for name, plan in plans.items()})
    except CodeFault as fault:
        return dict.fromkeys(plans, Missing("token", fault.message))
    except NodeFault as fault:
        return dict.fromkeys(plans, Missing("node", fault.message))
    # A request lost because a contract's answer is too large says nothing about a call.
    return {
        name: Missing("token", result.reason or "") if isinstance(result, RefusedCall) else result
        for name, result in results.items()
    }


# --- owner calls -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OwnerCallPlan:
    """Simulations of an owner's calls, the control first. ``left_out``: the number of functions not tried."""

    best: int
    sell: OwnerProbeSell
    planned: tuple[PlannedTry, ...]
    left_out: int

    def plans(self) -> dict[DeepPlanName, Plan]:
        """The simulations by name."""
        return {("owner call", number): attempt.plan for number, attempt in enumerate(self.planned)}

    def read(self, results: Mapping[DeepPlanName, Results | Missing]) -> OwnerCalls | Missing:
        """Reads the sell after each call. Missing where the control failed: then nothing can be compared."""
        control, *attempts = [results["owner call", number] for number in range(len(self.planned))]
        if isinstance(control, Missing):
            return control
        calls = [
            _read_call(planned, self.sell, result)
            for planned, result in zip(self.planned[1:], attempts, strict=True)
        ]
        outcome = owner_plans.read_control(self.planned[0], self.sell, control)
        return OwnerCalls(self.best, outcome, tuple(calls), self.left_out)


async def _plan_owner_calls(
    bought: BuyRoundResult,
    evidence: Evidence,
    best: int,
    implementation_code: bytes | Missing,
    sell: OwnerProbeSell | Missing,
) -> OwnerCallPlan | OwnerCalls | Missing | None:
    """Plans the simulations; or returns the result where none is needed: None without an owner, OwnerCalls
    without a function to call, Missing where a read failed."""
    policy = bought.run.means.policy
    actors = actors_of(evidence, best, bought.run.means.contracts)
    if not isinstance(actors, OwnerActors):
        return actors
    code = bought.data.code
    for gap in (code, implementation_code, sell):
        if isinstance(gap, Missing):
            return gap
    assert isinstance(code, bytes)
    assert isinstance(implementation_code, bytes)
    assert isinstance(sell, OwnerProbeSell)
    if _READING.full():
        return Missing("node", "this service is reading too many contracts at once")
    try:
        functions = await _READING.find(code, implementation_code)
    except UnreadableCode:
        return Missing("token", "its functions could not be read")
    if not functions.setters:
        control = next(cell.outcome for cell in evidence.venues[best].cells if cell.probe == sell.probe)
        return OwnerCalls(best, control, (), functions.unread)
    attempts = owner_plans.tries(functions.setters, actors.owner, actors.upgrader, policy.most_owner_calls)
    planned = tuple(owner_plans.plan(sell, actors.owner, attempt) for attempt in (None, *attempts))
    tried = {attempt.setter for attempt in attempts}
    return OwnerCallPlan(best, sell, planned, len(functions.setters) - len(tried) + functions.unread)


@dataclass(frozen=True, slots=True)
class OwnerActors:
    """The accounts that call the owner's functions and that replace the code."""

    owner: Actor
    upgrader: Actor


def actors_of(evidence: Evidence, best: int, contracts: Contracts) -> OwnerActors | Missing | None:
    """The actors of a token. None: it has no owner, or only one without a key: the token, its pool, the
    network's own contracts. Missing where the owner or the proxy admin could not be read."""
    facts, venue = evidence.facts, evidence.venues[best].venue
    gap = next((fact for fact in (facts.owner, facts.proxy_admin) if isinstance(fact, Missing)), None)
    if gap is not None:
        return gap
    keyless = BURN_ADDRESSES | contracts.all_addresses() | {evidence.token, venue.pool, venue.hook}

    def actor(by: By, address: Address | Missing | None) -> Actor | None:
        return Actor(by, address) if isinstance(address, str) and address not in keyless else None

    by_owner, by_admin = actor("owner", facts.owner), actor("proxy admin", facts.proxy_admin)
    owner, upgrader = by_owner or by_admin, by_admin or by_owner
    return None if owner is None or upgrader is None else OwnerActors(owner, upgrader)


def _completed_sell(bought: BuyRoundResult, evidence: Evidence, best: int) -> OwnerProbeSell | Missing:
    """The sell that is repeated after each call: the buyer's first one that succeeded."""
    run, venue = bought.run, bought.venues_to_sell_on()[best]
    size, env = venue.main_size(), run.environments[0]
    buy = None if size is None else venue.completed_buy(size)
    sold = [
        cell.probe
        for cell in evidence.venues[best].cells
        if _is_by_buyer(cell.probe) and cell.probe.size == size and isinstance(lost_bps(cell.outcome), int)
    ]
    if buy is None or size is None or not sold:
        return Missing("token", "it does not sell from the wallet that bought it")
    amount_raw = legs.size_raw(size, venue.place, run.setting, env)
    if isinstance(amount_raw, Missing):
        return amount_raw
    return OwnerProbeSell(venue.place, run.setting, env, sold[0], amount_raw, buy)


def _is_by_buyer(probe: Probe) -> bool:
    return probe.environment == 0 and probe.seller == "buyer"


def _read_call(planned: PlannedTry, sell: OwnerProbeSell, result: Results | Missing) -> OwnerCall:
    if not isinstance(result, Missing):
        return owner_plans.read(planned, sell, result)
    attempt = planned.attempt
    assert attempt is not None
    buyer = planned.plan.environment.buyer
    return OwnerCall(attempt.setter.name, "", attempt.actor.by, attempt.actor.address, buyer, (), result)
