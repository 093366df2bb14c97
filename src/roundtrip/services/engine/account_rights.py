"""Accounts other than the owner that may have rights over a token: read beside the sell round, tried in a
trip, and what they can call is called with hostile values in the deep round."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec

from roundtrip.chain.owner import named_accounts, owner_plans, rights_plans
from roundtrip.chain.owner.named_accounts import EventAccounts, GroupedAccounts
from roundtrip.chain.owner.owner_plans import Actor, OwnerProbeSell, OwnerTry
from roundtrip.chain.owner.owner_setters import Setter
from roundtrip.chain.owner.rights_plans import ChosenAccounts
from roundtrip.chain.rpc.client import Answer, RpcCall, RpcError
from roundtrip.chain.simulate import token_facts
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results, SimulatedStep
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BURN_ADDRESSES, WEI_PER_ETH, Address
from roundtrip.domain.check.evidence import (
    AccountRights,
    Evidence,
    LaunchRecord,
    Missing,
    PoolLaunch,
    RightsGap,
)
from roundtrip.venues import abi
from roundtrip.venues.base import Call

from .buy_round import BuyRoundResult
from .hostile_calls import READING, DeepPlanName, PlannedCalls, control_of
from .session import TOO_MUCH

MAX_CONTRACTS = 3
"""Contracts that the token names, whose own owners are tried."""
_MAX_BESIDE_OWNER = 8
"""Hostile calls where the token has an owner who can act, whose own calls come on top."""
_MAX_HOLDERS = 2
"""Holders that are tried as accounts."""
_SLOTS, _OWNER = "slots", "0x8da5cb5b"
"""The name of the storage read, and the selector of owner()."""


# --- beside the sell round -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AccountInputs:
    """The accounts in the token's storage (None: not read) and in its events."""

    storage: tuple[Address, ...] | None
    events: EventAccounts


def is_due(bought: BuyRoundResult) -> bool:
    """Whether it is a token, and it is known who its owner is or that it has none."""
    facts = bought.data.facts
    is_token = bought.role == "token" and facts.balance_answers is True
    return is_token and not isinstance(facts.owner, Missing)


def is_ownerless(bought: BuyRoundResult) -> bool:
    """Whether it is a token without an owner who can act."""
    owner = bought.data.facts.owner
    return is_due(bought) and (owner is None or owner in _keyless(bought))


def _keyless(bought: BuyRoundResult) -> frozenset[Address]:
    """Addresses that cannot act on their own: burn addresses, the token, its venues, the network's
    contracts."""
    venues = [trial.place.venue for trial in bought.data.venues]
    parties: set[object] = {bought.run.token, bought.data.implementation}
    parties |= {address for venue in venues for address in (venue.pool, venue.hook, venue.quote_address)}
    if isinstance(bought.data.launch, LaunchRecord):
        parties.add(bought.data.launch.curve)
    known = BURN_ADDRESSES | bought.run.means.contracts.all_addresses()
    return known | {Address(party) for party in parties if isinstance(party, str)}


def reads(bought: BuyRoundResult) -> dict[str, RpcCall]:
    """The read of the token's storage; empty where nothing is due."""
    return {_SLOTS: bought.run.request(_slots_plan(bought))} if is_due(bought) else {}


def log_calls(bought: BuyRoundResult) -> list[list[RpcCall]]:
    """The reads of the token's events, in two batches; empty where nothing is due."""
    if not is_due(bought):
        return []
    calls = named_accounts.log_calls(bought.run.token, _code(bought), bought.run.head.block)
    return [list(calls.recent), list(calls.whole)]


def read(
    bought: BuyRoundResult,
    answers: Mapping[str, msgspec.Raw | RpcError],
    logs: list[list[Answer] | NodeFault],
) -> AccountInputs | None:
    """Reads the answers to ``reads`` and ``log_calls``. None where nothing is due."""
    if not logs:
        return None
    recent, whole = logs
    events = named_accounts.find_in_logs(recent, whole, bought.run.head.block)
    if isinstance(bought.data.implementation, str):
        # The constants that name its own events are in the other contract's code.
        events = replace(events, whole=False)
    slots = bought.run.results(_slots_plan(bought), answers[_SLOTS])
    storage = None
    if not isinstance(slots, Missing):
        storage = named_accounts.find_in_storage(slots[f"slots-{bought.run.token}"])
    return AccountInputs(storage, events)


def _slots_plan(bought: BuyRoundResult) -> Plan:
    return named_accounts.slots_plan(bought.run.environments[0], (bought.run.token,), _code(bought))


def _code(bought: BuyRoundResult) -> bytes:
    return bought.data.code if isinstance(bought.data.code, bytes) else b""


# --- who may call what -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Search:
    """What is tried in one trip. ``contracts``: addresses that may be contracts."""

    setters: tuple[Setter, ...]
    chosen: ChosenAccounts
    contracts: tuple[Address, ...]
    unread: tuple[RightsGap, ...]


@dataclass(frozen=True, slots=True)
class _Contract:
    """A contract that the token names. ``actors``: who may decide in it."""

    address: Address
    code: bytes
    actors: tuple[Actor, ...]


@dataclass(frozen=True, slots=True)
class _SearchResult:
    """``rights``: the functions that can be called, and who has a right to call them; None: anybody."""

    accounts: int
    rights: dict[Setter, Actor | None]
    contracts: tuple[_Contract, ...]
    unread: tuple[RightsGap, ...]


@dataclass(frozen=True, slots=True)
class RightsPlan:
    """Simulations of hostile calls by accounts other than an owner. ``rights``: without their results."""

    calls: PlannedCalls
    rights: AccountRights

    def read(self, results: Mapping[DeepPlanName, Results | Missing]) -> AccountRights | Missing:
        """Reads the sell after each call. Missing where the control failed."""
        read = self.calls.read(results)
        return read if isinstance(read, Missing) else replace(self.rights, control=read[0], tried=read[1])


async def plan(
    bought: BuyRoundResult,
    evidence: Evidence,
    best: int,
    sell: OwnerProbeSell | Missing,
    codes: tuple[bytes | Missing, bytes | Missing],
    inputs: AccountInputs | Missing | None,
) -> RightsPlan | AccountRights | Missing | None:
    """Plans the hostile calls, or returns the result where none is needed: None where nothing is due, Missing
    where a read failed. ``codes``: of the token and of its implementation. Sends one trip where there
    is a function or a contract to try."""
    if inputs is None or isinstance(inputs, Missing):
        return inputs
    code, implementation = codes
    for gap in (code, implementation, sell):
        if isinstance(gap, Missing):
            return gap
    assert isinstance(code, bytes)
    assert isinstance(implementation, bytes)
    assert isinstance(sell, OwnerProbeSell)
    functions = await READING.find(code, implementation)
    if isinstance(functions, Missing):
        return functions
    search = _search(bought, functions.setters, (code, implementation), inputs)
    result = await _ask(bought, search, sell)
    if isinstance(result, Missing):
        return result
    most = bought.run.means.policy.most_owner_calls if is_ownerless(bought) else _MAX_BESIDE_OWNER
    # A contract that no transfer calls can only act as a sender; but a beacon names what transfers run.
    beacon = bought.data.beacon
    called = tuple(c for c in result.contracts if functions.calls_out or c.address == beacon)
    contract_tries, unread = await _contract_tries(called, most // 2)
    unknown = rights_plans.stranger(sell)
    token_tries = _token_tries(result, search.setters, unknown, most - len(contract_tries))
    gaps = dict.fromkeys((*search.unread, *result.unread, *unread))
    is_whole = beacon in {c.address for c in result.contracts} and "contracts" not in (
        *result.unread,
        *unread,
    )
    if not functions.calls_out and (beacon is None or is_whole):
        gaps.pop("contracts", None)
    elif not result.contracts:
        gaps["contracts"] = None
    skipped = len(functions.setters) - len(search.setters) + functions.unread
    rights = AccountRights(
        venue=best,
        control=control_of(evidence, best, sell),
        accounts=result.accounts,
        functions=len(search.setters),
        tried=(),
        accounts_left_out=search.chosen.left_out,
        left_out=skipped + len(result.rights.keys() - {attempt.setter for attempt in token_tries}),
        unread=tuple(gaps),
        beside_owner=not is_ownerless(bought),
    )
    tries = (*token_tries, *contract_tries)
    return RightsPlan(PlannedCalls.of("account call", sell, unknown, tries), rights) if tries else rights


def _search(
    bought: BuyRoundResult, setters: tuple[Setter, ...], codes: tuple[bytes, bytes], inputs: AccountInputs
) -> _Search:
    events, launch = inputs.events, bought.data.launch
    deployers = [bought.indexed.deployer] if bought.indexed.deployer else []
    if isinstance(launch, LaunchRecord | PoolLaunch):
        deployers.append(launch.deployer)
    in_storage = inputs.storage or ()
    in_code = tuple(account for code in codes for account in named_accounts.find_in_code(code))
    groups: GroupedAccounts = {
        "deployer": tuple(deployers),
        "role": events.roles,
        "storage": in_storage,
        "code": in_code,
        "supply": (*events.supply, *bought.indexed.holders[:_MAX_HOLDERS]),
        "event": events.others,
    }
    facts = bought.data.facts
    own = {address for address in (facts.owner, facts.proxy_admin) if isinstance(address, str)}
    left_out = _keyless(bought) | own
    # The beacon comes first: other slots cannot push it out, nor make it a party that is left out.
    beacon = bought.data.beacon
    first = () if beacon is None or beacon == bought.run.token else (beacon,)
    others = (account for account in (*in_storage, *in_code) if account not in left_out)
    contracts = tuple(dict.fromkeys((*first, *others)))
    unread: list[RightsGap] = []
    if not events.whole:
        unread.append("events")
    if inputs.storage is None:
        unread.append("storage")
    if len(contracts) > MAX_CONTRACTS:
        unread.append("contracts")
    chosen = rights_plans.choose(groups, left_out)
    return _Search(rights_plans.order_functions(setters), chosen, contracts[:MAX_CONTRACTS], tuple(unread))


async def _ask(bought: BuyRoundResult, search: _Search, sell: OwnerProbeSell) -> _SearchResult | Missing:
    """Calls each function as each account and as a new wallet, and reads the contracts. Sends one trip, or
    none where there is nothing to try."""
    run, unknown = bought.run, rights_plans.stranger(sell)
    actors = (unknown, *search.chosen.actors) if search.setters else ()
    plans = {actor: (sell.place, rights_plans.probe_plan(sell, actor, search.setters)) for actor in actors}
    look = _look_plan(run.environments[0].reader, sell, search.contracts)
    asked: dict[str, RpcCall] = {
        address: token_facts.code_call(address, run.head.block) for address in search.contracts
    }
    if search.contracts:
        asked[_SLOTS] = run.request(look)
    if not asked and not plans:
        return _SearchResult(len(search.chosen.actors), {}, (), ())
    try:
        answers, results = await run.ask(asked, plans)
    except NodeFault as fault:
        return Missing("node", fault.message)
    contracts, gaps = _read_contracts(bought, search, look, answers)
    others = results.get(unknown)
    known = {actor: result for actor, result in results.items() if isinstance(result, dict)}
    if not search.setters:
        return _SearchResult(len(search.chosen.actors), {}, contracts, gaps)
    if isinstance(others, Missing):
        return others
    if not isinstance(others, dict):
        return Missing("token", TOO_MUCH)
    del known[unknown]
    if len(known) < len(search.chosen.actors):
        gaps = (*gaps, "calls")
    has_code = {contract.address for contract in contracts}
    by_actor = {
        replace(actor, by="contract") if actor.address in has_code else actor: result
        for actor, result in known.items()
    }
    rights = rights_plans.read_rights(search.setters, by_actor, others)
    return _SearchResult(len(known), rights, contracts, gaps)


def _look_plan(reader: Address, sell: OwnerProbeSell, contracts: tuple[Address, ...]) -> Plan:
    """Reads the owner of each contract, and then its slots."""
    limit = sell.setting.policy.read_gas_limit
    steps = tuple(
        SimulatedStep(f"owner-{address}", reader, Call(address, _OWNER), limit) for address in contracts
    )
    slots = named_accounts.slots_plan(sell.environment, contracts)
    owners = PlannedBlock(1, steps, ((reader, WEI_PER_ETH),))
    return Plan(sell.environment, (owners, *slots.blocks))


def _read_contracts(
    bought: BuyRoundResult, search: _Search, look: Plan, answers: Mapping[str, msgspec.Raw | RpcError]
) -> tuple[tuple[_Contract, ...], tuple[RightsGap, ...]]:
    """The addresses with code, and who may decide in each: its owner, else accounts in its storage."""
    if not search.contracts:
        return (), ()
    results = bought.run.results(look, answers[_SLOTS])
    contracts, is_whole, keyless = [], True, _keyless(bought)
    for address in search.contracts:
        code = token_facts.read_code(answers[address])
        if isinstance(code, Missing) or isinstance(results, Missing):
            is_whole = False
            continue
        if not code:
            continue
        owner, slots = results[f"owner-{address}"], results[f"slots-{address}"]
        # What decides behind a proxy is in another contract.
        is_whole &= not named_accounts.is_proxy(slots)
        owned_by = abi.address_at(owner.data, 0) if owner.ok else None
        if owned_by is not None and owned_by not in keyless:
            actors = [Actor("contract owner", owned_by)]
        else:
            named = (*(named_accounts.find_in_storage(slots) or ()), *named_accounts.find_in_code(code))
            actors = [Actor("contract account", account) for account in named if account not in keyless]
        contracts.append(_Contract(address, code, tuple(actors[:_MAX_CONTRACT_ACCOUNTS])))
    return tuple(contracts), () if is_whole else ("contracts",)


_MAX_CONTRACT_ACCOUNTS = 2


def _token_tries(
    result: _SearchResult, setters: tuple[Setter, ...], unknown: Actor, most: int
) -> tuple[OwnerTry, ...]:
    """The hostile calls of the token's functions: those that an account has a right to, those that anybody
    may call, and then all others by the first account with a right: a call in the search may have taken its
    rights before it came to them."""
    entitled = [setter for setter, actor in result.rights.items() if actor is not None]
    order = dict.fromkeys((*entitled, *result.rights))
    first = result.rights[entitled[0]] if entitled else None
    if first is not None:
        order |= dict.fromkeys(setters)
    actors = {setter: result.rights.get(setter, first) or unknown for setter in order}
    attempts = owner_plans.tries(tuple(order), unknown, unknown, most)
    return tuple(replace(attempt, actor=actors[attempt.setter]) for attempt in attempts)


async def _contract_tries(
    contracts: tuple[_Contract, ...], most: int
) -> tuple[tuple[OwnerTry, ...], tuple[RightsGap, ...]]:
    """At most ``most`` hostile calls of the functions of contracts that the token names."""
    tries: list[OwnerTry] = []
    is_whole = True
    for contract in contracts:
        functions = await READING.find(contract.code, b"")
        if isinstance(functions, Missing):
            is_whole = False
            continue
        is_whole &= not functions.unread and bool(contract.actors or not functions.setters)
        for actor in contract.actors:
            share = most // len(contracts) // len(contract.actors)
            attempts = owner_plans.tries(functions.setters, actor, actor, share)
            is_whole &= len({attempt.setter for attempt in attempts}) == len(functions.setters)
            tries += [replace(attempt, target=contract.address) for attempt in attempts]
    return tuple(tries), () if is_whole else ("contracts",)
