"""Finds out who can withdraw a token's positions, and what a buyer would have left. Needs a node, and no
database. Buys, lets a party withdraw all that it can, and sells what was bought: in one simulated trip.
The sentence about liquidity in a deep check, and who the accounts in it are. Needs no database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as replace_fields

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.liquidity.lock_plans import UPGRADE
from roundtrip.chain.simulate import legs, outcomes, probe_plans
from roundtrip.chain.simulate.legs import VenuePlace, cast
from roundtrip.chain.simulate.request import Plan, PlannedBlock, SimulatedStep
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BPS, BURN_ADDRESSES, WEI_PER_ETH, Address
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.domain.check.evidence import CellOutcome, Missing, Probe, RefusedCall, Sold
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.domain.check.verdict_text import other_pools_text
from roundtrip.domain.liquidity.depth import (
    HeldBy,
    HeldPosition,
    Party,
    PoolDepth,
    TokenDepth,
    Withdrawal,
    quote_along_raw,
)
from roundtrip.domain.liquidity.text import ExitAfterWithdrawal, Tag, describe
from roundtrip.services.check.schema import Check
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.session import PlanResult, VenueTrial, bought_raw
from roundtrip.services.liquidity.locks import UNKNOWN, ContractPosition, Holder, LockResult, LockTrials
from roundtrip.services.liquidity.position_reader import MAX_POOLS, UNREAD, PositionReader
from roundtrip.venues import positions
from roundtrip.venues.base import Contracts

_MAX_WITHDRAWN = 24
"""Positions that a party withdraws, the largest first."""
_MAX_SOLD_ON = 3
_WITHDRAW_GAS = 600_000
_MONEY_WEI = 100 * WEI_PER_ETH

Taken = Mapping[tuple[Venue, HeldPosition], LockResult]


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
    """How many positions are withdrawn in every simulation: the last call of each succeeds."""
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
    """The loss in bps; the reason of a sell that is refused, None where it gave none."""
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


NOT_KNOWN = "We do not know the positions in its pools"
POOLS_UNREAD = "We could not read all of its pools"


@dataclass(frozen=True, slots=True)
class LiquidityFindings:
    """What was found out at the block. ``exit_after``: of the largest party that can withdraw something;
    None: there is none."""

    head: ChainHead
    bought: BuyRoundResult
    depth: TokenDepth
    exit_after: ExitAfterWithdrawal | None

    def has_all_pools(self) -> bool:
        """Whether every pool was read. One that could not be, or that is against other money, may be the
        largest."""
        return not (_has_unread_pool(self.bought) or self.bought.candidates.others)


async def judge_liquidity(bought: BuyRoundResult, reader: PositionReader) -> LiquidityFindings:
    """The findings after a buy round, with what the reader has read already. Raises NodeFault."""
    trials = sorted(
        (trial for trial in bought.data.venues if trial.exists()), key=lambda trial: -bought_raw(trial)
    )[:MAX_POOLS]
    await reader.complete([trial.place.venue for trial in trials if not trial.place.venue.is_curve])
    bought = replace(bought, run=replace(bought.run, meter=reader.meter))
    depths = [_depth_of(trial, bought, reader) for trial in trials]
    depths, taken = await _try_locks(bought, depths, reader.holders)
    depth = TokenDepth.of(depths, _describe_unread(bought, depths), describe_absence(bought))
    parties = depth.free_parties()
    exit_after = await run_exit(bought, trials, parties[0], taken) if parties else None
    return LiquidityFindings(bought.run.head, bought, depth, exit_after)


def _describe_unread(bought: BuyRoundResult, depths: Sequence[PoolDepth]) -> str:
    """Why positions are not known; empty: they are."""
    if depths and not any(depth.positions or depth.is_curve for depth in depths):
        return NOT_KNOWN
    return POOLS_UNREAD if _has_unread_pool(bought) else ""


def _has_unread_pool(bought: BuyRoundResult) -> bool:
    return any(isinstance(one.facts, Missing) for one in bought.data.venues)


def describe_absence(bought: BuyRoundResult) -> str:
    """Why no pool was found, in a sentence; empty: the token trades in none. What could not be read is no
    absence."""
    facts = bought.data.facts
    if bought.role != "token":
        return f"This is {bought.role}, the money that tokens trade against: we do not look up its liquidity."
    if facts.code_bytes == 0:
        return "There is no contract at this address."
    if facts.balance_answers is False or facts.total_supply_raw is None:
        return "The contract at this address does not answer like a token."
    read = (facts.code_bytes, facts.balance_answers, facts.total_supply_raw, bought.data.launch)
    if any(isinstance(one, Missing) for one in (*read, *(trial.facts for trial in bought.data.venues))):
        return "We could not find out in which pools it trades: this is no pass."
    others = bought.candidates
    if others.other_pools:
        return f"{other_pools_text(others.other_pools, others.others)} We did not read its liquidity."
    if not bought.candidates.complete:
        return "It trades in no pool of the standard kinds. We do not know whether it has others: no pass."
    return ""


def _depth_of(trial: VenueTrial, bought: BuyRoundResult, reader: PositionReader) -> PoolDepth:
    """A venue's depth and its positions, before those in contracts are tried."""
    venue, token, market = trial.place.venue, bought.run.token, bought.run.setting.market
    facts = trial.facts if isinstance(trial.facts, PoolFacts) else PoolFacts(True, 0, 0, 0)
    if venue.is_curve:
        worth_wei = quote_in_wei(facts.quote_reserve_raw, venue.quote, market)
        return PoolDepth(venue, 0, worth_wei, is_curve=True)
    along_raw = quote_along_raw(facts.sqrt_price_x96, facts.liquidity, token < venue.quote_address)
    worth_wei = quote_in_wei(along_raw, venue.quote, market)
    pool = reader.pools.get(venue, UNREAD)
    held = []
    for position, state in zip(pool.positions, pool.read.positions, strict=True):
        if state is None or pool.read.state is None or not state.liquidity:
            continue
        given_by = position.given_by if state.holder == position.holder else None
        now = position._replace(liquidity=state.liquidity, holder=state.holder, given_by=given_by)
        fees = state.fees
        if fees is not None and token > venue.quote_address:
            fees = fees[1], fees[0]
        held_by, withdrawal = judge_holder(
            now.holder, state.approved, reader.holders, bought.run.means.contracts
        )
        holder = reader.holders.get(now.holder) if now.holder else None
        is_contract = holder is not None and not holder.is_wallet()
        is_active = now.is_active(pool.read.state.tick)
        quote_raw = now.amounts(pool.read.state.sqrt_price_x96)[token < venue.quote_address]
        money_wei = quote_in_wei(quote_raw, venue.quote, market) or 0
        held.append(
            HeldPosition(now, is_active, held_by, withdrawal, None, None, fees, is_contract, money_wei)
        )
    held.sort(key=lambda one: (-one.active_liquidity(), -one.position.liquidity))
    return PoolDepth(venue, facts.liquidity, worth_wei, tuple(held), pool.left_out)


def judge_holder(
    holder: Address | None, approved: Address | None, holders: Mapping[Address, Holder], contracts: Contracts
) -> tuple[HeldBy, Withdrawal | None]:
    """What keeps a position, as far as its holder alone shows. ``approved``: who may move it, too."""
    if holder is None:
        return "unknown", None
    if holder in BURN_ADDRESSES:
        return "burned", None
    known = holders.get(holder)
    if known is not None and known.is_wallet():
        return "free", Withdrawal(holder)
    if approved is not None:
        return "free", Withdrawal(approved)
    # Not the exchange's contracts: Multicall3 makes any call for anybody, also with what it holds.
    if holder in contracts.launchpad_addresses():
        return "launchpad", None
    return "unknown", None


async def _try_locks(
    bought: BuyRoundResult, depths: Sequence[PoolDepth], holders: Mapping[Address, Holder]
) -> tuple[list[PoolDepth], dict[tuple[Venue, HeldPosition], LockResult]]:
    """Tries the positions that contracts hold; those in range first, the largest first."""
    wanted: list[tuple[PoolDepth, HeldPosition]] = [
        (depth, held) for depth in depths for held in depth.positions if _is_in_contract(held, holders)
    ]
    wanted.sort(key=lambda one: (-one[0].worth_of(one[1]), -one[1].position.liquidity))
    if not wanted:
        return list(depths), {}
    accounts = token_accounts(bought)
    tried = [
        ContractPosition(
            depth.venue,
            held.position,
            held.position.liquidity,
            holders[held.position.holder],
            held.position.given_by,
        )
        for depth, held in wanted
        if held.position.holder is not None
    ]
    found = await LockTrials(bought.run, bought.run.means.contracts, accounts).find(tried)
    results = {
        (depth.venue, held.position): result for (depth, held), result in zip(wanted, found, strict=True)
    }
    taken: dict[tuple[Venue, HeldPosition], LockResult] = {}
    judged = []
    for depth in depths:
        held_now = []
        for held in depth.positions:
            result = results.get((depth.venue, held.position), UNKNOWN)
            if _is_in_contract(held, holders):
                held = result.apply(held)
                taken[depth.venue, held] = result
            held_now.append(held)
        judged.append(replace(depth, positions=tuple(held_now)))
    return judged, taken


def _is_in_contract(held: HeldPosition, holders: Mapping[Address, Holder]) -> bool:
    return held.held_by == "unknown" and held.is_contract and held.position.holder in holders


def token_accounts(bought: BuyRoundResult) -> tuple[Address, ...]:
    """The accounts of the token that may have a right over its liquidity: its deployer and its owner."""
    launch = bought.data.launch
    deployers = (bought.indexed.deployer, getattr(launch, "deployer", None))
    owners = (bought.data.facts.owner, bought.data.facts.proxy_admin)
    accounts = [one for one in (*deployers, *owners) if isinstance(one, str) and one not in BURN_ADDRESSES]
    return tuple(dict.fromkeys(Address(one) for one in accounts))


LIQUIDITY_UNREAD = "We could not read who can withdraw its liquidity."
Tags = Mapping[Address, tuple[Tag, ...]]


def add_sentence(answer: Check, sentence: str) -> Check:
    """The check with a sentence about its liquidity, where it has any."""
    if answer.verdict.code in _WITHOUT_LIQUIDITY:
        return answer
    verdict = replace_fields(answer.verdict, text=f"{answer.verdict.text} {sentence}")
    return replace_fields(answer, verdict=verdict)


_WITHOUT_LIQUIDITY = frozenset({"no_contract", "not_a_token", "quote_asset", "no_pool", "empty_pool"})


def describe_alone(found: LiquidityFindings) -> str:
    """The sentence that matters most, without an index."""
    accounts = [party.wallet for party in found.depth.free_parties()]
    return describe(found.depth, found.exit_after, list_tags(accounts, {}, found.bought))[0]


def list_tags(
    accounts: Iterable[Address], funders: Mapping[Address, Address | None], bought: BuyRoundResult
) -> Tags:
    """The tags of each account that has any. ``funders``: who first sent each of them eth, where known."""
    deployer, owner = bought.indexed.deployer, bought.data.facts.owner
    if deployer is None:
        deployer = getattr(bought.data.launch, "deployer", None)
    tags: dict[Address, tuple[Tag, ...]] = {}
    for account in accounts:
        funder = funders.get(account)
        checks: tuple[tuple[Tag, bool], ...] = (
            ("deployer", account == deployer),
            ("owner", account == owner),
            ("funded_by_deployer", funder is not None and funder == deployer),
            ("funded_by_owner", funder is not None and funder == owner and owner != deployer),
        )
        if found := tuple(tag for tag, holds in checks if holds):
            tags[account] = found
    return tags
