"""Real holders' own sells: what they hold is looked at, then each stands in the place of the check's own
wallet. Plans and their readings. Pure.

Nobody is given tokens. Eth is given only to who has too little for gas.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from roundtrip.chain.owner.owner_plans import OwnerProbeSell
from roundtrip.chain.simulate import legs, outcomes
from roundtrip.chain.simulate.legs import (
    GET_ETH_BALANCE,
    Setting,
    cast,
    gas_float,
    planned_sell_raw,
    sellable,
)
from roundtrip.chain.simulate.outcomes import SellStart
from roundtrip.chain.simulate.probe_plans import trade_plan
from roundtrip.chain.simulate.request import Plan, PlannedBlock, Results, SimulatedStep
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address
from roundtrip.domain.check.evidence import CellOutcome, Environment, Missing, Probe, RefusedCall
from roundtrip.venues import abi, erc20
from roundtrip.venues.base import Call

NO_BALANCE = Missing("token", "the token does not tell what its holders hold")


@dataclass(frozen=True, slots=True)
class PinnedHolder:
    """A holder as he stands at the pinned block: ``wei`` of eth, and the tokens that he is told to hold after
    each delay of the policy. None: not told."""

    address: Address
    wei: int | None
    later_raw: tuple[int | None, ...]

    def at(self, delay_s: int, policy: Policy) -> int | None:
        """What he holds so long after the buy."""
        return self.later_raw[_delays_s(policy).index(delay_s)]


_NOTHING = SellStart(0, 0, 0)


@dataclass(frozen=True, slots=True)
class PlannedSell:
    """One holder's sell. ``had``: what he has then, and of that what he keeps; ``had_later``: the same a day
    on. No ``plan``: it is not known what he holds."""

    holder: Address
    had: SellStart = _NOTHING
    had_later: SellStart = _NOTHING
    plan: Plan | None = None

    def held_raw(self) -> int | None:
        """His balance, where it is known."""
        return None if self.plan is None else self.had.held_raw + self.had.prior_raw


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
                steps.append(SimulatedStep(f"eth-{who}", reader, eth, policy.read_gas_limit))
            tokens = Call(setting.token, abi.call(erc20.BALANCE_OF, holder))
            steps.append(SimulatedStep(f"held-{number}-{who}", reader, tokens, policy.read_gas_limit))
        balances = ((reader, WEI_PER_ETH),) if number == 0 else ()
        blocks.append(PlannedBlock(delay_s - passed_s, tuple(steps), balances))
        passed_s = delay_s
    return Plan(environment, tuple(blocks))


_BUY_S = 1
"""The buy that a sell waits after stands in the next block, a second on."""


def read_look(results: Results, holders: tuple[Address, ...], policy: Policy) -> tuple[PinnedHolder, ...]:
    """What ``look_plan`` came to."""

    def word(label: str) -> int | None:
        return abi.uint_at(results[label].data, 0) if results[label].ok else None

    delays = range(len(_delays_s(policy)))
    return tuple(
        PinnedHolder(holder, word(f"eth-{who}"), tuple(word(f"held-{number}-{who}") for number in delays))
        for who, holder in enumerate(holders)
    )


def plans(sell: OwnerProbeSell, holders: Iterable[PinnedHolder]) -> tuple[PlannedSell, ...]:
    """Of each who holds so much that what it brings tells something, at least a hundredth of what the check's
    own wallet sells."""
    policy = sell.setting.policy
    own_raw = planned_sell_raw(sell.probe, sellable(sell.bought, sell.probe, policy))
    found = []
    for holder in holders:
        held_raw, later_raw = holder.at(sell.probe.delay_s, policy), holder.at(policy.day_s, policy)
        if held_raw is None or later_raw is None:
            found.append(PlannedSell(holder.address))
        elif held_raw > 0 and held_raw * BPS >= own_raw * policy.sliver_bps:
            had, had_later = _had(held_raw, own_raw), _had(later_raw, own_raw)
            whole = _plan(sell, holder, had, had_later)
            found.append(PlannedSell(holder.address, had, had_later, whole))
    return tuple(found)


def _had(held_raw: int, own_raw: int) -> SellStart:
    """What a holder sells, as much as the check's own wallet or all he has, and what he keeps."""
    amount_raw = min(held_raw, own_raw)
    return SellStart(0, amount_raw, 0, prior_raw=held_raw - amount_raw)


def _plan(sell: OwnerProbeSell, holder: PinnedHolder, had: SellStart, had_later: SellStart) -> Plan:
    """The same buy by a fresh wallet, so that the pool is as the check's own sell finds it; then the holder
    sells in that wallet's place, and once more a day on, which tells who only has to wait. What he allowed
    long ago is taken back first, as some tokens want it."""
    place, setting = sell.place, sell.setting
    env = cast(sell.environment, f"holder {holder.address}")
    own = trade_plan(place, setting, env, sell.probe, sell.amount_raw, sell.bought)
    seller = replace(own.environment, buyer=holder.address)

    def way_out(delay_s: int, held_raw: int) -> tuple[PlannedBlock, ...]:
        probe = replace(_whole(sell.probe), delay_s=delay_s)
        return legs.exit_blocks(place, setting, seller, probe, held_raw, place, clear_first=True)

    then, *rest = way_out(sell.probe.delay_s, had.held_raw)
    left_s = setting.policy.day_s - sell.probe.delay_s
    if left_s > 0:
        rest += [_later(block) for block in way_out(left_s, had_later.held_raw)]
    least_wei = gas_float(setting.policy, env)
    if holder.wei is None or holder.wei < 2 * least_wei:
        then = replace(then, balances=(*then.balances, (holder.address, 2 * least_wei)))
    return Plan(own.environment, (own.blocks[0], then, *rest))


def _whole(probe: Probe) -> Probe:
    return replace(probe, share_bps=BPS)


_LATER = "later-"


def _later(block: PlannedBlock) -> PlannedBlock:
    steps = tuple(replace(step, label=_LATER + step.label) for step in block.steps)
    return replace(block, steps=steps)


def read(
    one: PlannedSell, sell: OwnerProbeSell, results: Results | Missing
) -> tuple[CellOutcome, CellOutcome | None]:
    """What a holder's sell came to, and where it did not go through, what it came to a day on."""
    if one.plan is None:
        return NO_BALANCE, None
    if isinstance(results, Missing):
        return results, None
    for label in ("fund", "allow-0", "buy"):
        step = results.get(label)
        if step is not None and not step.ok:
            fault = "node" if label == "fund" else "token"
            return Missing(fault, "the buy before a holder's sell was refused"), None  # type: ignore[arg-type]
    now = {label: told for label, told in results.items() if not label.startswith(_LATER)}
    then = {label.removeprefix(_LATER): told for label, told in results.items() if label.startswith(_LATER)}
    first = _read(one, sell, now, one.had)
    again = bool(then) and isinstance(first, RefusedCall)
    return first, _read(one, sell, then, one.had_later) if again else None


def _read(one: PlannedSell, sell: OwnerProbeSell, results: Results, had: SellStart) -> CellOutcome:
    assert one.plan is not None
    return outcomes.read_exit(results, sell.place, one.plan.environment, _whole(sell.probe), had)
