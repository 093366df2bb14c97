"""Buys, lets a party withdraw all that it can, and sells what was bought: in one simulated trip."""

from collections.abc import Mapping, Sequence

from roundtrip.chain.liquidity.lock_plans import UPGRADE
from roundtrip.chain.simulate import legs, outcomes, probe_plans
from roundtrip.chain.simulate.legs import VenuePlace, cast
from roundtrip.chain.simulate.request import Plan, PlannedBlock, SimulatedStep
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import CellOutcome, Missing, Probe, RefusedCall, Sold
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.domain.liquidity.depth import HeldPosition, Party
from roundtrip.domain.liquidity.text import ExitAfterWithdrawal
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.session import PlanResult, VenueTrial
from roundtrip.venues import positions

from .locks import LockResult

_MAX_WITHDRAWN = 24
"""Positions that a party withdraws, the largest first."""
_MAX_SOLD_ON = 3
"""Venues on which the sell is tried, those that give most first."""
_WITHDRAW_GAS = 600_000
_MONEY_WEI = 100 * WEI_PER_ETH
"""What each account that withdraws is given, for gas."""

Taken = Mapping[tuple[Venue, HeldPosition], LockResult]
"""What was found out of the positions in contracts."""


async def run_exit(
    bought: BuyRoundResult, trials: Sequence[VenueTrial], party: Party, taken: Taken
) -> ExitAfterWithdrawal:
    """The loss of a buyer of the venue that gives most, who sells where it brings most, after the party's
    withdrawal and without it. ``trials``: the venues, the one that gives most first."""
    best, run = trials[0], bought.run
    size = best.main_size()
    buy = None if size is None else best.completed_buy(size)
    if size is None or buy is None:
        return ExitAfterWithdrawal(party, None, None, missing="no buy succeeds")
    amount_raw = legs.size_raw(size, best.place, run.setting, run.environments[0])
    if isinstance(amount_raw, Missing):
        return ExitAfterWithdrawal(party, None, None, missing=amount_raw.why)
    probe = Probe(size, run.means.policy.later_s, BPS, 0)
    between = withdrawal_block(bought, party, taken)
    plans: dict[tuple[str, int], tuple[VenuePlace, Plan]] = {}
    places = [trial.place for trial in trials[:_MAX_SOLD_ON]]
    # "now": without the withdrawal. "left": after it.
    for n, out in enumerate(places):
        for name, block in (("now", None), ("left", between)):
            environment = cast(run.environments[0], f"{name} {n}")
            plan = probe_plans.trade_plan(
                best.place, run.setting, environment, probe, amount_raw, buy, out, between=block
            )
            plans[name, n] = out, plan
    try:
        _, results = await run.ask({}, plans)
    except NodeFault as fault:
        return ExitAfterWithdrawal(party, None, None, missing=fault.message)
    withdrawn = count_withdrawn(between, [results["left", n] for n in range(len(places))])
    if withdrawn < min(len(party.positions), _MAX_WITHDRAWN):
        # The loss would be that of a smaller withdrawal.
        is_refused = not withdrawn and not any(
            held.withdrawal.function for _, held in party.positions if held.withdrawal
        )
        missing = "not all of the withdrawal could be simulated"
        return ExitAfterWithdrawal(party, None, None, missing=missing, is_refused=is_refused)
    losses: dict[str, list[int | Missing | str | None]] = {"now": [], "left": []}
    for (name, n), (out, plan) in plans.items():
        result = results[name, n]
        outcome: CellOutcome = (
            result
            if isinstance(result, Missing | RefusedCall)
            else outcomes.read_sell(result, best.place, plan.environment, probe, buy, run.means.policy, out)
        )
        losses[name].append(_loss_of(outcome, best.place, out, bought))
    return _present(party, losses)


def count_withdrawn(between: PlannedBlock, results: Sequence[PlanResult]) -> int:
    """How many positions are withdrawn in every simulation: those whose last call succeeds in each."""
    last = {step.label.rpartition("-")[0]: step.label for step in between.steps}
    read = [result for result in results if isinstance(result, dict)]
    return sum(all(result[label].ok for result in read) for label in last.values())


def _present(party: Party, losses: Mapping[str, list[int | Missing | str | None]]) -> ExitAfterWithdrawal:
    least: dict[str, int | None] = {}
    for name, found in losses.items():
        known = [loss for loss in found if isinstance(loss, int)]
        gaps = [loss for loss in found if isinstance(loss, Missing)]
        if not known and gaps:
            return ExitAfterWithdrawal(party, None, None, missing=gaps[0].why)
        least[name] = min(known, default=None)
    reason = next((loss for loss in losses["left"] if isinstance(loss, str)), None)
    return ExitAfterWithdrawal(party, least["now"], least["left"], reason)


def _loss_of(
    outcome: CellOutcome, place: VenuePlace, out: VenuePlace, bought: BuyRoundResult
) -> int | Missing | str | None:
    """The loss in bps; of a refused sell the reason, empty where it gave none; Missing: not found out."""
    if isinstance(outcome, Missing):
        return outcome
    if not isinstance(outcome, Sold):
        return outcome.reason or ""
    market = bought.run.setting.market
    cost_raw = max(1, outcome.paid_raw * outcome.planned_raw // max(1, outcome.held_raw))
    cost_wei = quote_in_wei(cost_raw, place.venue.quote, market)
    back_wei = quote_in_wei(outcome.back_raw, out.venue.quote, market)
    if cost_wei is None or back_wei is None:
        return Missing("node", "the price of the money side is not known")
    return max(0, (cost_wei - back_wei) * BPS // max(1, cost_wei))


def withdrawal_block(bought: BuyRoundResult, party: Party, taken: Taken) -> PlannedBlock:
    """The block in which a party takes out what it can, the largest positions first."""
    contracts, token = bought.run.means.contracts, bought.run.token
    steps: list[SimulatedStep] = []
    money: dict[Address, int] = {party.wallet: _MONEY_WEI}
    codes: dict[Address, str] = {}
    largest = sorted(party.positions, key=lambda one: (-one[0].worth_of(one[1]), -one[1].money_wei))[
        :_MAX_WITHDRAWN
    ]
    for n, (pool, held) in enumerate(largest):
        position, sender = held.position, party.wallet
        withdrawal, result = held.withdrawal, taken.get((pool.venue, held))
        assert withdrawal is not None
        taken_calls = () if result is None or result.taken is None else result.taken.calls
        calls = [(by, call) for by, call in taken_calls]
        money |= {by: _MONEY_WEI for by, _ in calls}
        if withdrawal.function == UPGRADE and position.holder is not None:
            # New code can do anything as the contract: here nothing is in the way of its own calls.
            sender = position.holder
            codes[sender], money[sender] = "0x", _MONEY_WEI
        if positions.is_nft(position, pool.venue, contracts):
            own = positions.plan_withdraw(
                position, position.liquidity, pool.venue, token, contracts, party.wallet
            )
            calls += [(sender, call) for call in own]
        steps += [
            SimulatedStep(f"withdraw-{n}-{k}", by, call, _WITHDRAW_GAS) for k, (by, call) in enumerate(calls)
        ]
    return PlannedBlock(1, tuple(steps), tuple(money.items()), codes=tuple(codes.items()))
