"""The deep round: calls with hostile values by the owner and by other accounts, each before a sell of its
own, and the sells of wallets that hold the token already."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from roundtrip.chain.owner import owner_plans
from roundtrip.chain.owner.owner_plans import Actor, OwnerProbeSell
from roundtrip.chain.rpc.client import CodeFault, Meter
from roundtrip.chain.simulate import legs, token_facts
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.check.evidence import Caller, Evidence, Missing, OwnerCalls, Probe, RefusedCall
from roundtrip.domain.check.owner_calls import lost_bps
from roundtrip.domain.check.venue_code import takes_sells
from roundtrip.domain.check.verdict import judge
from roundtrip.services.runtime.check_steps import NoteStep
from roundtrip.venues.base import Contracts

from . import account_rights, holder_sells
from .account_rights import AccountInputs, RightsPlan
from .buy_round import BuyRoundResult
from .hostile_calls import READING, DeepPlanName, PlannedCalls, control_of
from .session import CheckSession


@dataclass(frozen=True, slots=True)
class DeepRoundInputs:
    """The reads beside the sell round. ``implementation_code``: of a proxy's implementation, empty where the
    token is no proxy. ``holders``: None where no holder is known. ``accounts``: None where other accounts
    than the owner are not tried."""

    implementation_code: bytes | Missing
    holders: holder_sells.HolderWallets | Missing | None
    accounts: AccountInputs | Missing | None


async def read_deep_inputs(bought: BuyRoundResult, meter: Meter) -> DeepRoundInputs | None:
    """Sends one trip, or none; the token's logs in batches of their own, as a token can fill the answer.
    Missing where the node fails; None where the check is not deep."""
    run, implementation = bought.run, bought.data.implementation
    if not run.deep:
        return None
    reads = holder_sells.reads(bought) | account_rights.reads(bought)
    if isinstance(implementation, str):
        reads = {_IMPLEMENTATION: token_facts.code_call(implementation, run.head.block), **reads}
    no_code = implementation if isinstance(implementation, Missing) else b""
    groups = [list(reads.values()), *account_rights.log_calls(bought)]
    batch, *logs = await run.means.node.batches(groups, meter) if reads else [[]]
    if isinstance(batch, NodeFault):
        gap = Missing("token" if isinstance(batch, CodeFault) else "node", batch.message)
        is_known = _IMPLEMENTATION not in reads
        return DeepRoundInputs(
            no_code if is_known else gap,
            gap if bought.indexed.holders else None,
            gap if account_rights.is_due(bought) else None,
        )
    answers = dict(zip(reads, batch, strict=True))
    code = token_facts.read_code(answers[_IMPLEMENTATION]) if _IMPLEMENTATION in answers else no_code
    accounts = account_rights.read(bought, answers, logs)
    return DeepRoundInputs(code, holder_sells.read(bought, answers), accounts)


_IMPLEMENTATION = "implementation"


async def run_deep_round(
    bought: BuyRoundResult, evidence: Evidence, inputs: DeepRoundInputs, meter: Meter, note_step: NoteStep
) -> Evidence:
    """The evidence with the sells after each call of an owner or of another account, and the holders' sells.
    Sends one batch, and one before it where accounts other than an owner are tried."""
    run = replace(bought.run, meter=meter)
    judgement = judge(evidence, run.means.policy)
    best = judgement.best
    if best is None or not takes_sells(judgement.readings[best], run.means.policy):
        no_sell = Missing("token", "no sell of it succeeded")
        return replace(evidence, account_rights=no_sell if account_rights.is_ownerless(bought) else None)
    if judgement.missing is not None:
        return evidence
    sell = _completed_sell(bought, evidence, best)
    calls = await _plan_owner_calls(bought, evidence, best, inputs.implementation_code, sell)
    holders = holder_sells.plan_holder_sells(bought, evidence, best, sell, inputs.holders)
    codes = (bought.data.code, inputs.implementation_code)
    accounts = await account_rights.plan(
        replace(bought, run=run), evidence, best, sell, codes, inputs.accounts
    )
    plans: dict[DeepPlanName, Plan] = {}
    by_test: dict[str, Mapping[DeepPlanName, Plan]] = {}
    if isinstance(calls, OwnerCallPlan):
        by_test["Owner test"] = calls.calls.plans()
    if isinstance(accounts, RightsPlan):
        by_test["Test of other accounts"] = accounts.calls.plans()
    if isinstance(holders, holder_sells.HolderSellPlan):
        by_test["Holders"] = holders.plans()
    for test, planned in by_test.items():
        plans |= planned
        note_step(f"{test}: {format_count(len(planned), 'simulation')} sent")
    results = await _send(run, sell, plans)
    for test, planned in by_test.items():
        known = sum(1 for name in planned if not isinstance(results.get(name), Missing | None))
        note_step(f"{test}: {known} of {len(planned)} answered")
    return replace(
        evidence,
        owner_calls=calls.read(results) if isinstance(calls, OwnerCallPlan) else calls,
        holder_sells=holders.read(results) if isinstance(holders, holder_sells.HolderSellPlan) else holders,
        account_rights=accounts.read(results) if isinstance(accounts, RightsPlan) else accounts,
    )


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
    """Simulations of an owner's calls. ``left_out``: the number of functions not tried."""

    best: int
    calls: PlannedCalls
    left_out: int

    def read(self, results: Mapping[DeepPlanName, Results | Missing]) -> OwnerCalls | Missing:
        """Reads the sell after each call. Missing where the control failed: then nothing can be compared."""
        read = self.calls.read(results)
        return read if isinstance(read, Missing) else OwnerCalls(self.best, *read, self.left_out)


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
    functions = await READING.find(code, implementation_code)
    if isinstance(functions, Missing):
        return functions
    if not functions.setters:
        return OwnerCalls(best, control_of(evidence, best, sell), (), functions.unread)
    attempts = owner_plans.tries(functions.setters, actors.owner, actors.upgrader, policy.most_owner_calls)
    calls = PlannedCalls.of("owner call", sell, actors.owner, attempts)
    tried = {attempt.setter for attempt in attempts}
    return OwnerCallPlan(best, calls, len(functions.setters) - len(tried) + functions.unread)


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

    def actor(by: Caller, address: Address | Missing | None) -> Actor | None:
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
