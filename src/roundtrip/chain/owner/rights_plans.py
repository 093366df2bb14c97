"""Plans that show which accounts may call which functions, and the reading of their results. Pure.

An account has a right where its call succeeds and the same call by a new wallet fails, or does something
else: then it uses another amount of gas.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest

from roundtrip.chain.simulate.legs import cast
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results, SimulatedStep
from roundtrip.domain.base.types import WEI_PER_ETH, Address
from roundtrip.domain.check.evidence import Environment
from roundtrip.venues.base import Call

from .named_accounts import GroupedAccounts
from .owner_plans import STAND_IN_CODE, Actor, OwnerProbeSell, OwnerTry, hostile_calls
from .owner_setters import Setter

MAX_ACCOUNTS = 6
"""Accounts that are tried as senders."""
MAX_FUNCTIONS = 32
_CALLS_A_BLOCK = 24
_CALL_GAS = 500_000
_GAS_APART = 4000
"""Less than a change of a slot costs; more than the differences between two senders that are both refused."""


@dataclass(frozen=True, slots=True)
class ChosenAccounts:
    """The accounts to try as senders, and how many more are named."""

    actors: tuple[Actor, ...]
    left_out: int


def choose(groups: GroupedAccounts, keyless: frozenset[Address]) -> ChosenAccounts:
    """At most ``MAX_ACCOUNTS`` accounts: the first of each group before any second, so that no group can
    displace another. None of ``keyless``, the addresses without a key."""
    actors: dict[Address, Actor] = {}
    columns = ([Actor(by, account) for account in accounts] for by, accounts in groups.items())
    for actor in chain.from_iterable(zip_longest(*columns)):
        if actor is not None and actor.address not in keyless:
            actors.setdefault(actor.address, actor)
    chosen = tuple(actors.values())[:MAX_ACCOUNTS]
    return ChosenAccounts(chosen, len(actors) - len(chosen))


def stranger(sell: OwnerProbeSell) -> Actor:
    """A new wallet, which has no rights of its own."""
    return Actor("anyone", cast(sell.environment, "stranger").buyer)


def order_functions(setters: tuple[Setter, ...]) -> tuple[Setter, ...]:
    """The functions to call, those that replace the code last: nothing works after them."""
    first = setters[:MAX_FUNCTIONS]
    return (*(s for s in first if not s.upgrades()), *(s for s in first if s.upgrades()))


def probe_plan(sell: OwnerProbeSell, actor: Actor, setters: tuple[Setter, ...]) -> Plan:
    """Each function called by an account with the first values of each manner, in order: a call that reverts
    changes nothing."""
    env, token = _environment(sell), sell.setting.token
    steps = [
        SimulatedStep(_label(setter, number), actor.address, Call(token, data), _CALL_GAS)
        for setter in setters
        for number, data in enumerate(_datas(setter, actor, env, sell))
    ]
    blocks = [
        PlannedBlock(1, tuple(steps[start : start + _CALLS_A_BLOCK]))
        for start in range(0, len(steps), _CALLS_A_BLOCK)
    ]
    money, codes = ((actor.address, 100 * WEI_PER_ETH),), ((env.receiver, STAND_IN_CODE),)
    first = PlannedBlock(1, blocks[0].steps if blocks else (), money, codes=codes)
    return Plan(env, (first, *blocks[1:]))


def _environment(sell: OwnerProbeSell) -> Environment:
    return cast(sell.environment, "rights")


def _datas(setter: Setter, actor: Actor, env: Environment, sell: OwnerProbeSell) -> Iterator[str]:
    for manner in setter.manners():
        yield hostile_calls(OwnerTry(setter, manner, actor), env, sell)[0].data


def _label(setter: Setter, number: int) -> str:
    return f"{setter.selector}-{number}"


def read_rights(
    setters: tuple[Setter, ...], results: Mapping[Actor, Results], unknown: Results
) -> dict[Setter, Actor | None]:
    """The functions that some account could call, and the first account with a right to it; None: the call of
    ``unknown``, the new wallet, does the same."""
    rights: dict[Setter, Actor | None] = {}
    for setter in setters:
        labels = [_label(setter, number) for number in range(len(setter.manners()))]
        actors = [
            actor
            for actor, result in results.items()
            if any(_differs(result, unknown, label) for label in labels)
        ]
        if actors:
            rights[setter] = actors[0]
        elif any(unknown[label].ok for label in labels):
            rights[setter] = None
    return rights


def _differs(result: Results, unknown: Results, label: str) -> bool:
    call, other = result[label], unknown[label]
    return call.ok and (not other.ok or abs(call.gas_used - other.gas_used) >= _GAS_APART)
