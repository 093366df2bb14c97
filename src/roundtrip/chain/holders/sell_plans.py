"""Plans and reads sells of real holders: their balances are read, then each sells in place of the check's own
wallet. Pure.

No wallet is given tokens. Eth is given only to a holder with too little for gas."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

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

NO_BALANCE = Missing("token", "the token does not return its holders' balances")


@dataclass(frozen=True, slots=True)
class PinnedHolder:
    """A holder at the pinned block: ``wei`` of eth, and the token balance that is reported after each delay
    of the policy. None: not reported."""

    address: Address
    wei: int | None
    later_raw: tuple[int | None, ...]

    def at(self, delay_s: int, policy: Policy) -> int | None:
        """The balance ``delay_s`` seconds after the buy, which must be a delay of the policy."""
        return self.later_raw[_delays_s(policy).index(delay_s)]


_NOTHING = SellStart(0, 0, 0)


@dataclass(frozen=True, slots=True)
class PlannedSell:
    """One holder's sell. ``start``: the balance at that time, split into what is sold and kept;
    ``start_later``: the same a day later. No ``plan``: the balance is not known."""

    holder: Address
    start: SellStart = _NOTHING
    start_later: SellStart = _NOTHING
    plan: Plan | None = None

    def held_raw(self) -> int | None:
        """The balance, if it is known."""
        return None if self.plan is None else self.start.held_raw + self.start.prior_raw


def _delays_s(policy: Policy) -> tuple[int, ...]:
    return policy.later_s, policy.hour_s, policy.day_s


def balance_plan(setting: Setting, environment: Environment, holders: tuple[Address, ...]) -> Plan:
    """Reads each holder's balance at the times of a check's sells: tokens that rebase change it."""
    policy, reader, blocks, elapsed_s = setting.policy, environment.reader, [], -_BUY_S
    for number, delay_s in enumerate(_delays_s(policy)):
        steps = []
        for index, holder in enumerate(holders):
            if number == 0:
                eth = Call(setting.contracts.multicall3, abi.call(GET_ETH_BALANCE, holder))
                steps.append(SimulatedStep(f"eth-{index}", reader, eth, policy.read_gas_limit))
            tokens = Call(setting.token, abi.call(erc20.BALANCE_OF, holder))
            steps.append(SimulatedStep(f"held-{number}-{index}", reader, tokens, policy.read_gas_limit))
        balances = ((reader, WEI_PER_ETH),) if number == 0 else ()
        blocks.append(PlannedBlock(delay_s - elapsed_s, tuple(steps), balances))
        elapsed_s = delay_s
    return Plan(environment, tuple(blocks))


_BUY_S = 1
"""The buy is in the next block, one second later; the sell waits from there."""


def read_balances(results: Results, holders: tuple[Address, ...], policy: Policy) -> tuple[PinnedHolder, ...]:
    """Reads the results of ``balance_plan``."""

    def word(label: str) -> int | None:
        return abi.uint_at(results[label].data, 0) if results[label].ok else None

    delays = range(len(_delays_s(policy)))
    return tuple(
        PinnedHolder(holder, word(f"eth-{index}"), tuple(word(f"held-{number}-{index}") for number in delays))
        for index, holder in enumerate(holders)
    )


def plan_sells(
    sell: OwnerProbeSell, holders: Iterable[PinnedHolder], drawn: Sequence[Address]
) -> tuple[PlannedSell, ...]:
    """The sells of the first ``most_holders`` of ``drawn`` with a significant balance, or one that is not
    known. So who trades dust, or sent its tokens away, fills no place."""
    policy = sell.setting.policy
    own_raw = planned_sell_raw(sell.probe, sellable(sell.bought, sell.probe, policy))
    able = {holder.address: holder for holder in holders if _holds_enough(holder, sell, own_raw)}
    planned = []
    for address in [address for address in drawn if address in able][: policy.most_holders]:
        holder = able[address]
        held_raw, later_raw = holder.at(sell.probe.delay_s, policy), holder.at(policy.day_s, policy)
        if held_raw is None or later_raw is None:
            planned.append(PlannedSell(address))
            continue
        start, start_later = _sell_start(held_raw, own_raw), _sell_start(later_raw, own_raw)
        planned.append(PlannedSell(address, start, start_later, _sell_plan(sell, holder, start, start_later)))
    return tuple(planned)


def _holds_enough(holder: PinnedHolder, sell: OwnerProbeSell, own_raw: int) -> bool:
    """Whether it holds at least a hundredth of what the check's own wallet sells, or it is not known."""
    policy = sell.setting.policy
    held_raw, later_raw = holder.at(sell.probe.delay_s, policy), holder.at(policy.day_s, policy)
    if held_raw is None or later_raw is None:
        return True
    return held_raw > 0 and held_raw * BPS >= own_raw * policy.sliver_bps


def _sell_start(held_raw: int, own_raw: int) -> SellStart:
    """What a holder sells, as much as the check's own wallet or all it has, and what it keeps."""
    amount_raw = min(held_raw, own_raw)
    return SellStart(0, amount_raw, 0, prior_raw=held_raw - amount_raw)


def _sell_plan(sell: OwnerProbeSell, holder: PinnedHolder, start: SellStart, start_later: SellStart) -> Plan:
    """The same buy by a fresh wallet, so that the pool is as in the check's own sell; then the holder sells
    in that wallet's place, and again a day later, which shows holders that only have to wait. The holder's
    old allowance is cleared first, as some tokens require it."""
    place, setting = sell.place, sell.setting
    env = cast(sell.environment, f"holder {holder.address}")
    probe_plan = trade_plan(place, setting, env, sell.probe, sell.amount_raw, sell.bought)
    seller = replace(probe_plan.environment, buyer=holder.address)

    def exit_blocks(delay_s: int, held_raw: int) -> tuple[PlannedBlock, ...]:
        probe = replace(_whole(sell.probe), delay_s=delay_s)
        return legs.exit_blocks(place, setting, seller, probe, held_raw, place, clear_first=True)

    sell_block, *rest = exit_blocks(sell.probe.delay_s, start.held_raw)
    until_day_s = setting.policy.day_s - sell.probe.delay_s
    if until_day_s > 0:
        rest += [_later(block) for block in exit_blocks(until_day_s, start_later.held_raw)]
    least_wei = gas_float(setting.policy, env)
    if holder.wei is None or holder.wei < 2 * least_wei:
        sell_block = structs.replace(
            sell_block, balances=(*sell_block.balances, (holder.address, 2 * least_wei))
        )
    return Plan(probe_plan.environment, (probe_plan.blocks[0], sell_block, *rest))


def _whole(probe: Probe) -> Probe:
    return replace(probe, share_bps=BPS)


_LATER = "later-"


def _later(block: PlannedBlock) -> PlannedBlock:
    steps = tuple(structs.replace(step, label=_LATER + step.label) for step in block.steps)
    return structs.replace(block, steps=steps)


def read_sell(
    planned: PlannedSell, sell: OwnerProbeSell, results: Results | Missing
) -> tuple[CellOutcome, CellOutcome | None]:
    """The outcome of a holder's sell and, if it is refused, the outcome a day later."""
    if planned.plan is None:
        return NO_BALANCE, None
    if isinstance(results, Missing):
        return results, None
    for label in ("fund", "allow-0", "buy"):
        step = results.get(label)
        if step is not None and not step.ok:
            fault = "node" if label == "fund" else "token"
            return Missing(fault, "the buy before a holder's sell failed"), None  # type: ignore[arg-type]
    first_results = {label: result for label, result in results.items() if not label.startswith(_LATER)}
    later_results = {
        label.removeprefix(_LATER): result for label, result in results.items() if label.startswith(_LATER)
    }
    first = _read_exit(planned, sell, first_results, planned.start)
    was_refused = bool(later_results) and isinstance(first, RefusedCall)
    return first, _read_exit(planned, sell, later_results, planned.start_later) if was_refused else None


def _read_exit(planned: PlannedSell, sell: OwnerProbeSell, results: Results, start: SellStart) -> CellOutcome:
    assert planned.plan is not None
    return outcomes.read_exit(results, sell.place, planned.plan.environment, _whole(sell.probe), start)
