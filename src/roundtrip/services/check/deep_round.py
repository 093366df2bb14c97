"""What a plain check does not meet: the owner's functions called with hostile values, each before a sell of
its own, and the sells of those who hold it already."""

import asyncio
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
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.venues.base import Contracts

from . import holder_sells
from .pipeline import BuyRoundResult, run_sell_round, start_check
from .session import CheckSession


class _CodeReading:
    """Contracts being read, two at a time, in threads that nothing else needs: reading can be made slow."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(2, "reading")
        self._waiting = 0

    def full(self) -> bool:
        """Whether a few wait already."""
        return self._waiting >= _MOST_WAITING

    async def find(self, *codes: bytes) -> owner_setters.OwnerSetters:
        """As ``setters.find``."""
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, owner_setters.find, *codes)
        finally:
            self._waiting -= 1


_MOST_WAITING = 8
_READING = _CodeReading()


async def gather_deep(ctx: Context, token: Address, meter: Meter) -> Evidence:
    """A check's evidence, what its owner could change, and what holders meet: one trip more. Raises
    NodeFault as ``gather``."""
    return await finish_check(await start_check(ctx, ctx.heads.current(), token, meter, deep=True), meter)


async def finish_check(first: BuyRoundResult, meter: Meter) -> Evidence:
    """What comes after trip 1, of a deep check or a plain one."""
    if not first.run.deep:
        return await run_sell_round(first, meter)
    meters = [Meter(), Meter()]
    evidence, beside = await at_once(run_sell_round(first, meters[0]), _beside(first, meters[1]))
    meter.add(*meters)
    return await ask_deep_round(replace(first, run=replace(first.run, meter=meter)), evidence, beside)


@dataclass(frozen=True, slots=True)
class DeepRoundInputs:
    """What is asked beside trip 2. ``behind``: the code of a proxy's implementation, empty where there is
    none. ``looked``: the holders that are known; None: none is."""

    implementation_code: bytes | Missing
    holders: holder_sells.HolderWallets | Missing | None


async def _beside(first: BuyRoundResult, meter: Meter) -> DeepRoundInputs:
    run, behind = first.run, first.data.implementation
    codes = [token_facts.code_call(behind, run.head.block)] if isinstance(behind, str) else []
    looking = holder_sells.calls(first)
    answers: list[msgspec.Raw | RpcError] = []
    try:
        if codes or looking:
            answers = await run.means.node.batch([*codes, *looking], meter)
    except NodeFault as fault:
        gap = Missing("token" if isinstance(fault, CodeFault) else "node", fault.message)
        return DeepRoundInputs(gap if codes else _code(behind), gap if looking else None)
    code = token_facts.read_code(answers[0]) if codes else _code(behind)
    return DeepRoundInputs(code, holder_sells.read(first, answers[len(codes) :]))


def _code(behind: Address | Missing | None) -> bytes | Missing:
    return behind if isinstance(behind, Missing) else b""


async def ask_deep_round(first: BuyRoundResult, evidence: Evidence, beside: DeepRoundInputs) -> Evidence:
    """The evidence with what became of the sell after each call, and of holders' sells; as it was where there
    is nothing to ask. All of it goes in one trip."""
    policy = first.run.means.policy
    judged = judge(evidence, policy)
    best = judged.best
    if judged.missing is not None or best is None or not takes_sells(judged.readings[best], policy):
        return evidence
    sell = _sell(first, evidence, best)
    calls = await _calls(first, evidence, best, beside.implementation_code, sell)
    asked = holder_sells.plan_holder_sells(first, evidence, best, sell, beside.holders)
    plans = [one.plan for one in calls.planned] if isinstance(calls, Calls) else []
    own = len(plans)
    if isinstance(asked, holder_sells.HolderSellPlan):
        plans += [one.plan for one in asked.planned if one.plan is not None]
    told = await _ask_plans(first.run, sell, plans)
    return replace(
        evidence,
        owner_calls=calls.read_results(told[:own]) if isinstance(calls, Calls) else calls,
        holder_sells=asked.read_results(told[own:])
        if isinstance(asked, holder_sells.HolderSellPlan)
        else asked,
    )


async def _ask_plans(
    run: CheckSession, sell: OwnerProbeSell | Missing, plans: list[Plan]
) -> list[Results | Missing]:
    if not plans or isinstance(sell, Missing):
        return []
    try:
        _, told = await run.ask([], [(sell.place, plan) for plan in plans])
    except CodeFault as fault:
        return [Missing("token", fault.message)] * len(plans)
    except NodeFault as fault:
        return [Missing("node", fault.message)] * len(plans)
    return [_own_results(one) for one in told]


def _own_results(results: Results | Missing | RefusedCall) -> Results | Missing:
    """A request that was lost because somebody answers with too much says nothing of a call."""
    return Missing("token", results.reason or "") if isinstance(results, RefusedCall) else results


# --- what its owner could change --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Calls:
    """Simulations of what an owner may call, the control first. ``left_out`` functions are not tried."""

    best: int
    sell: OwnerProbeSell
    planned: tuple[PlannedTry, ...]
    left_out: int

    def read_results(self, results: list[Results | Missing]) -> OwnerCalls | Missing:
        """What came of them, in their order."""
        control, *rest = results
        if isinstance(control, Missing):
            return control
        tried = [_call(one, self.sell, told) for one, told in zip(self.planned[1:], rest, strict=True)]
        met = owner_plans.read_control(self.planned[0], self.sell, control)
        return OwnerCalls(self.best, met, tuple(tried), self.left_out)


async def _calls(
    first: BuyRoundResult,
    evidence: Evidence,
    best: int,
    behind: bytes | Missing,
    sell: OwnerProbeSell | Missing,
) -> Calls | OwnerCalls | Missing | None:
    """What is to be simulated, or what is known without: that there is nothing to call, or that it cannot be
    found out."""
    policy = first.run.means.policy
    actors = actors_of(evidence, best, first.run.means.contracts)
    if not isinstance(actors, OwnerActors):
        return actors
    code = first.data.code
    for gap in (code, behind, sell):
        if isinstance(gap, Missing):
            return gap
    assert isinstance(code, bytes)
    assert isinstance(behind, bytes)
    assert isinstance(sell, OwnerProbeSell)
    if _READING.full():
        return Missing("node", "too many contracts are being read")
    try:
        found = await _READING.find(code, behind)
    except UnreadableCode:
        return Missing("token", "its functions could not be read")
    if not found.setters:
        control = next(cell.outcome for cell in evidence.venues[best].cells if cell.probe == sell.probe)
        return OwnerCalls(best, control, (), found.unread)
    attempts = owner_plans.tries(found.setters, actors.owner, actors.upgrader, policy.most_owner_calls)
    planned = tuple(owner_plans.plan(sell, actors.owner, one) for one in (None, *attempts))
    left_out = len(found.setters) - len({one.setter for one in attempts}) + found.unread
    return Calls(best, sell, planned, left_out)


@dataclass(frozen=True, slots=True)
class OwnerActors:
    """Who calls what an owner may, and who puts other code in its place."""

    owner: Actor
    upgrader: Actor


def actors_of(evidence: Evidence, best: int, contracts: Contracts) -> OwnerActors | Missing | None:
    """None: there is no owner, or it is one that nobody can act as: the token, its pool, the network's own
    contracts. Missing where one of the two could not be read: nothing could be said of what they can do."""
    told, venue = evidence.facts, evidence.venues[best].venue
    gap = next((one for one in (told.owner, told.proxy_admin) if isinstance(one, Missing)), None)
    if gap is not None:
        return gap
    nobody = BURN_ADDRESSES | contracts.all_addresses() | {evidence.token, venue.pool, venue.hook}

    def actor(by: By, one: Address | Missing | None) -> Actor | None:
        return Actor(by, one) if isinstance(one, str) and one not in nobody else None

    by_owner, by_admin = actor("owner", told.owner), actor("proxy admin", told.proxy_admin)
    owner, upgrader = by_owner or by_admin, by_admin or by_owner
    return None if owner is None or upgrader is None else OwnerActors(owner, upgrader)


def _sell(first: BuyRoundResult, evidence: Evidence, best: int) -> OwnerProbeSell | Missing:
    """The check's own sell that is made again: the first that went through, from the wallet that bought."""
    run, tried = first.run, first.venues_to_sell_on()[best]
    size, env = tried.main_size(), run.environments[0]
    bought = None if size is None else tried.completed_buy(size)
    went = [
        cell.probe
        for cell in evidence.venues[best].cells
        if _own(cell.probe) and cell.probe.size == size and isinstance(lost_bps(cell.outcome), int)
    ]
    if bought is None or size is None or not went:
        return Missing("token", "it does not sell from the wallet that bought it")
    amount = legs.size_raw(size, tried.place, run.setting, env)
    if isinstance(amount, Missing):
        return amount
    return OwnerProbeSell(tried.place, run.setting, env, went[0], amount, bought)


def _own(probe: Probe) -> bool:
    return probe.environment == 0 and probe.seller == "buyer"


def _call(planned: PlannedTry, sell: OwnerProbeSell, results: Results | Missing) -> OwnerCall:
    if not isinstance(results, Missing):
        return owner_plans.read(planned, sell, results)
    attempt = planned.attempt
    assert attempt is not None
    buyer = planned.plan.environment.buyer
    return OwnerCall(attempt.setter.name, "", attempt.actor.by, attempt.actor.address, buyer, (), results)
