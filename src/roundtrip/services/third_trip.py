"""What could change it: the owner's functions called with hostile values, each before a sell of its own."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from roundtrip.chain import facts, legs, owner_plans, setters
from roundtrip.chain.functions import Unreadable
from roundtrip.chain.owner_plans import Actor, By, Planned, Sell
from roundtrip.chain.rpc import Meter, NodeAnswerTooLarge
from roundtrip.chain.simulate import Results
from roundtrip.domain.errors import NodeFault
from roundtrip.domain.evidence import Evidence, Missing, OwnerCall, OwnerCalls, Probe, Refused
from roundtrip.domain.owner_calls import lost_bps
from roundtrip.domain.types import BURN_ADDRESSES, Address
from roundtrip.domain.venue_code import takes_sells
from roundtrip.domain.verdict import judge
from roundtrip.venues.base import Contracts

from .at_once import at_once
from .context import Context
from .gather import Opened, closed, opened
from .run import Run


class _Reading:
    """Contracts being read, two at a time, in threads that nothing else needs: reading can be made slow."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(2, "reading")
        self._waiting = 0

    def full(self) -> bool:
        """Whether a few wait already."""
        return self._waiting >= _MOST_WAITING

    async def find(self, *codes: bytes) -> setters.Found:
        """As ``setters.find``."""
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, setters.find, *codes)
        finally:
            self._waiting -= 1


_MOST_WAITING = 8
_READING = _Reading()


async def gather_deep(ctx: Context, token: Address, meter: Meter) -> Evidence:
    """A check's evidence, and what its owner could change: one trip more. Raises NodeFault as ``gather``."""
    return await finished(await opened(ctx, ctx.heads.current(), token, meter, deep=True), meter)


async def finished(first: Opened, meter: Meter) -> Evidence:
    """What comes after trip 1, of a deep check or a plain one."""
    if not first.run.deep:
        return await closed(first, meter)
    meters = [Meter(), Meter()]
    evidence, behind = await at_once(closed(first, meters[0]), _code_behind(first, meters[1]))
    meter.add(*meters)
    return await third_trip(replace(first, run=replace(first.run, meter=meter)), evidence, behind)


async def _code_behind(first: Opened, meter: Meter) -> bytes | Missing:
    """The code of a proxy's implementation, asked beside trip 2; empty where there is none."""
    run, behind = first.run, first.first.implementation
    if not isinstance(behind, str):
        return behind or b""
    try:
        (answer,) = await run.ctx.node.batch([facts.code_call(behind, run.head.block)], meter)
    except NodeFault as fault:
        return Missing("node", fault.message)
    return facts.read_code(answer)


async def third_trip(first: Opened, evidence: Evidence, behind: bytes | Missing) -> Evidence:
    """The evidence with what became of the sell after each call; as it was where there is nothing to ask."""
    policy = first.run.ctx.policy
    judged = judge(evidence, policy)
    best = judged.best
    if judged.missing is not None or best is None or not takes_sells(judged.readings[best], policy):
        return evidence
    return replace(evidence, owner_calls=await _asked(first, evidence, best, behind))


async def _asked(
    first: Opened, evidence: Evidence, best: int, behind: bytes | Missing
) -> OwnerCalls | Missing | None:
    actors = actors_of(evidence, best, first.run.ctx.contracts)
    if not isinstance(actors, Actors):
        return actors
    code = first.first.code
    if isinstance(code, Missing):
        return code
    if isinstance(behind, Missing):
        return behind
    sell = _sell(first, evidence, best)
    if isinstance(sell, Missing):
        return sell
    if _READING.full():
        return Missing("node", "too many contracts are being read")
    try:
        found = await _READING.find(code, behind)
    except Unreadable:
        return Missing("token", "its functions could not be read")
    if not found.setters:
        control = next(cell.outcome for cell in evidence.venues[best].cells if cell.probe == sell.probe)
        return OwnerCalls(best, control, (), found.unread)
    return await _tried(first.run, best, sell, found, actors)


@dataclass(frozen=True, slots=True)
class Actors:
    """Who calls what an owner may, and who puts other code in its place."""

    owner: Actor
    upgrader: Actor


def actors_of(evidence: Evidence, best: int, contracts: Contracts) -> Actors | Missing | None:
    """None: there is no owner, or it is one that nobody can act as: the token, its pool, the network's own
    contracts. Missing where one of the two could not be read: nothing could be said of what they can do."""
    told, venue = evidence.facts, evidence.venues[best].venue
    gap = next((one for one in (told.owner, told.proxy_admin) if isinstance(one, Missing)), None)
    if gap is not None:
        return gap
    nobody = BURN_ADDRESSES | contracts.known() | {evidence.token, venue.pool, venue.hook}

    def actor(by: By, one: Address | Missing | None) -> Actor | None:
        return Actor(by, one) if isinstance(one, str) and one not in nobody else None

    by_owner, by_admin = actor("owner", told.owner), actor("proxy admin", told.proxy_admin)
    owner, upgrader = by_owner or by_admin, by_admin or by_owner
    return None if owner is None or upgrader is None else Actors(owner, upgrader)


def _sell(first: Opened, evidence: Evidence, best: int) -> Sell | Missing:
    """The check's own sell that is made again: the first that went through, from the wallet that bought."""
    run, tried = first.run, first.judged()[best]
    size, env = tried.main_size(), run.environments[0]
    bought = None if size is None else tried.bought(size)
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
    return Sell(tried.place, run.setting, env, went[0], amount, bought)


def _own(probe: Probe) -> bool:
    return probe.environment == 0 and probe.seller == "buyer"


async def _tried(
    run: Run, best: int, sell: Sell, found: setters.Found, actors: Actors
) -> OwnerCalls | Missing:
    attempts = owner_plans.tries(
        found.setters, actors.owner, actors.upgrader, run.ctx.policy.most_owner_calls
    )
    planned = [owner_plans.plan(sell, actors.owner, one) for one in (None, *attempts)]
    try:
        _, told = await run.ask([], [(sell.place, one.plan) for one in planned])
    except NodeAnswerTooLarge as fault:
        return Missing("token", fault.message)
    except NodeFault as fault:
        return Missing("node", fault.message)
    control, *rest = (_known(one) for one in told)
    calls = [_call(one, sell, results) for one, results in zip(planned[1:], rest, strict=True)]
    left_out = len(found.setters) - len({one.setter for one in attempts}) + found.unread
    if isinstance(control, Missing):
        return control
    return OwnerCalls(best, owner_plans.read_control(planned[0], sell, control), tuple(calls), left_out)


def _known(results: Results | Missing | Refused) -> Results | Missing:
    """A request that was lost because somebody answers with too much says nothing of a call."""
    return Missing("token", results.reason or "") if isinstance(results, Refused) else results


def _call(planned: Planned, sell: Sell, results: Results | Missing) -> OwnerCall:
    if not isinstance(results, Missing):
        return owner_plans.read(planned, sell, results)
    attempt = planned.attempt
    assert attempt is not None
    buyer = planned.plan.environment.buyer
    return OwnerCall(attempt.setter.name, "", attempt.actor.by, attempt.actor.address, buyer, (), results)
