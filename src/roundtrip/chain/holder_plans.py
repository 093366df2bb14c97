"""Real holders' own sells: what they hold is looked at, then each stands in the place of the check's own
wallet. Plans and their readings. Pure.

Nobody is given tokens. Eth is given only to who has too little for gas.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from roundtrip.domain.evidence import CellOutcome, Environment, Missing, Probe
from roundtrip.domain.policy import Policy
from roundtrip.domain.types import BPS, WEI_PER_ETH, Address
from roundtrip.venues import abi, erc20
from roundtrip.venues.base import Call

from . import legs, outcomes
from .legs import GET_ETH_BALANCE, Setting, cast, gas_float, planned, sellable
from .owner_plans import Sell
from .probes import trade_plan
from .simulate import Plan, PlannedBlock, Results, Step

NO_BALANCE = Missing("token", "the token does not tell what its holders hold")


@dataclass(frozen=True, slots=True)
class Holder:
    """A holder as he stands at the pinned block: ``wei`` of eth, and the tokens that he is told to hold after
    each delay of the policy. None: not told."""

    address: Address
    wei: int | None
    later_raw: tuple[int | None, ...]

    def at(self, probe: Probe, policy: Policy) -> int | None:
        """What he holds when this probe sells."""
        return self.later_raw[_delays_s(policy).index(probe.delay_s)]


@dataclass(frozen=True, slots=True)
class PlannedSell:
    """One holder's sell. ``held_raw`` None: it is not known what he holds, and there is no plan."""

    holder: Address
    held_raw: int | None
    amount_raw: int
    plan: Plan | None


def _delays_s(policy: Policy) -> tuple[int, ...]:
    return policy.later_s, policy.hour_s, policy.day_s


def look_plan(setting: Setting, environment: Environment, holders: tuple[Address, ...]) -> Plan:
    """What each of them holds when a check sells: tokens that rebase change it."""
    policy, reader, blocks, passed_s = setting.policy, environment.reader, [], -_BUY_S
    for number, delay_s in enumerate(_delays_s(policy)):
        steps = []
        for who, holder in enumerate(holders):
            if number == 0:
                eth = Call(setting.contracts.multicall3, abi.call(GET_ETH_BALANCE, holder))
                steps.append(Step(f"eth-{who}", reader, eth, policy.read_gas_limit))
            tokens = Call(setting.token, abi.call(erc20.BALANCE_OF, holder))
            steps.append(Step(f"held-{number}-{who}", reader, tokens, policy.read_gas_limit))
        balances = ((reader, WEI_PER_ETH),) if number == 0 else ()
        blocks.append(PlannedBlock(delay_s - passed_s, tuple(steps), balances))
        passed_s = delay_s
    return Plan(environment, tuple(blocks))


_BUY_S = 1
"""The buy that a sell waits after stands in the next block, a second on."""


def read_look(results: Results, holders: tuple[Address, ...], policy: Policy) -> tuple[Holder, ...]:
    """What ``look_plan`` came to."""

    def word(label: str) -> int | None:
        return abi.uint_at(results[label].data, 0) if results[label].ok else None

    delays = range(len(_delays_s(policy)))
    return tuple(
        Holder(holder, word(f"eth-{who}"), tuple(word(f"held-{number}-{who}") for number in delays))
        for who, holder in enumerate(holders)
    )


def plans(sell: Sell, holders: Iterable[Holder]) -> tuple[PlannedSell, ...]:
    """Of each who holds so much that what it brings tells something, at least a hundredth of what the check's
    own wallet sells."""
    policy = sell.setting.policy
    own_raw = planned(sell.probe, sellable(sell.bought, sell.probe, policy))
    found = []
    for holder in holders:
        held_raw = holder.at(sell.probe, policy)
        if held_raw is None:
            found.append(PlannedSell(holder.address, None, 0, None))
        elif held_raw > 0 and held_raw * BPS >= own_raw * policy.sliver_bps:
            amount_raw = min(held_raw, own_raw)
            found.append(PlannedSell(holder.address, held_raw, amount_raw, plan(sell, holder, amount_raw)))
    return tuple(found)


def plan(sell: Sell, holder: Holder, amount_raw: int) -> Plan:
    """The same buy by a fresh wallet, so that the pool is as the check's own sell finds it; then the holder
    sells in that wallet's place. What he allowed long ago is taken back first, as some tokens want it."""
    place, setting = sell.place, sell.setting
    env = cast(sell.environment, f"holder {holder.address}")
    own = trade_plan(place, setting, env, sell.probe, sell.amount_raw, sell.bought)
    seller = replace(own.environment, buyer=holder.address)
    whole = replace(sell.probe, share_bps=BPS)
    then, *rest = legs.exit_blocks(place, setting, seller, whole, amount_raw, place, clear_first=True)
    least_wei = gas_float(setting.policy, env)
    if holder.wei is None or holder.wei < least_wei:
        then = replace(then, balances=(*then.balances, (holder.address, least_wei)))
    return Plan(own.environment, (own.blocks[0], then, *rest))


def read(one: PlannedSell, sell: Sell, results: Results | Missing) -> CellOutcome:
    """What a holder's sell came to."""
    if one.held_raw is None or one.plan is None:
        return NO_BALANCE
    if isinstance(results, Missing):
        return results
    for label in ("fund", "allow-0", "buy"):
        step = results.get(label)
        if step is not None and not step.ok:
            fault = "node" if label == "fund" else "token"
            return Missing(fault, "the buy before a holder's sell was refused")  # type: ignore[arg-type]
    whole = replace(sell.probe, share_bps=BPS)
    had = outcomes.Had(0, one.amount_raw, 0, prior_raw=one.held_raw - one.amount_raw)
    return outcomes.read_exit(results, sell.place, one.plan.environment, whole, had)
