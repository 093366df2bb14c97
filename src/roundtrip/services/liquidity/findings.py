"""Finds out who can withdraw a token's positions, and what a buyer would have left. Needs a node, and no
database."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.simulate.legs import size_raw
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.domain.check.buy_math import price_after_buy
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.domain.check.verdict_text import other_pools_text
from roundtrip.domain.liquidity.depth import (
    HeldBy,
    HeldPosition,
    PoolDepth,
    TokenDepth,
    Withdrawal,
    quote_along_raw,
)
from roundtrip.domain.liquidity.text import ExitAfterWithdrawal
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.session import VenueTrial, bought_raw
from roundtrip.venues.base import Contracts

from .exit_after import run_exit
from .locks import UNKNOWN, ContractPosition, Holder, LockResult, LockTrials
from .position_reader import MAX_POOLS, UNREAD, PositionReader, ReadPool

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
    """Why not all positions are known; empty: they are."""
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
        return "We could not find out in which pools it trades: this is not a pass."
    candidates = bought.candidates
    if candidates.other_pools:
        text = other_pools_text(candidates.other_pools, candidates.others)
        return f"{text} We did not read its liquidity."
    if not candidates.complete:
        return "It trades in no pool of the standard kinds. We do not know whether it has others: no pass."
    return ""


def _depth_of(trial: VenueTrial, bought: BuyRoundResult, reader: PositionReader) -> PoolDepth:
    """A venue's depth and its positions, before those in contracts are tried."""
    venue, token, market = trial.place.venue, bought.run.token, bought.run.setting.market
    unread = PoolFacts(exists=True, sqrt_price_x96=0, liquidity=0, quote_reserve_raw=0)
    facts = trial.facts if isinstance(trial.facts, PoolFacts) else unread
    # Currency 0 of a pool is the one with the lower address.
    token_is_zero = token < venue.quote_address
    if venue.is_curve:
        worth_wei = quote_in_wei(facts.quote_reserve_raw, venue.quote, market)
        return PoolDepth(venue, 0, worth_wei, is_curve=True)
    along_raw = quote_along_raw(facts.sqrt_price_x96, facts.liquidity, token_is_zero)
    worth_wei = quote_in_wei(along_raw, venue.quote, market)
    pool = reader.pools.get(venue, UNREAD)
    price_after = _price_after_buy(trial, bought, pool)
    held = []
    for position, state in zip(pool.positions, pool.read.positions, strict=True):
        if state is None or pool.read.state is None or not state.liquidity:
            continue
        given_by = position.given_by if state.holder == position.holder else None
        now = position._replace(liquidity=state.liquidity, holder=state.holder, given_by=given_by)
        fees = state.fees
        if fees is not None and not token_is_zero:
            fees = fees[1], fees[0]  # The token's first.
        held_by, withdrawal = judge_holder(
            now.holder, state.approved, reader.holders, bought.run.means.contracts
        )
        holder = reader.holders.get(now.holder) if now.holder else None
        is_contract = holder is not None and not holder.is_wallet()
        is_active = now.is_active(pool.read.state.tick)
        quote_raw = now.amounts(price_after)[1 if token_is_zero else 0]
        money_wei = quote_in_wei(quote_raw, venue.quote, market) or 0
        held.append(
            HeldPosition(now, is_active, held_by, withdrawal, None, None, fees, is_contract, money_wei)
        )
    held.sort(key=lambda one: (-one.active_liquidity(), -one.position.liquidity))
    return PoolDepth(venue, facts.liquidity, worth_wei, tuple(held), pool.left_out)


def _price_after_buy(trial: VenueTrial, bought: BuyRoundResult, pool: ReadPool) -> int:
    """The pool's price after the check's buy in it: the money that it leaves there counts as that of the
    positions which it reaches."""
    state, token, venue = pool.read.state, bought.run.token, trial.place.venue
    if state is None:
        return 0
    # The check's own buy.
    amount_raw = size_raw("probe", trial.place, bought.run.setting, bought.run.environments[0])
    if isinstance(amount_raw, Missing) or not state.sqrt_price_x96:
        return state.sqrt_price_x96
    nets: Counter[int] = Counter()
    for position, read in zip(pool.positions, pool.read.positions, strict=True):
        if read is not None:
            nets[position.tick_lower] += read.liquidity
            nets[position.tick_upper] -= read.liquidity
    facts = PoolFacts(
        exists=True, sqrt_price_x96=state.sqrt_price_x96, liquidity=state.liquidity, quote_reserve_raw=0
    )
    # Where the hook sets the fee, ``fee_pips`` is a flag; without a fee the price moves furthest.
    fee_pips = 0 if venue.dynamic_fee() else venue.fee_pips
    return price_after_buy(facts, fee_pips, token < venue.quote_address, amount_raw, nets)


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
    # Other contracts of the network keep nothing: Multicall3 makes any call for anybody, also with what it
    # holds.
    if holder in contracts.launchpad_addresses():
        return "launchpad", None
    return "unknown", None


async def _try_locks(
    bought: BuyRoundResult, depths: Sequence[PoolDepth], holders: Mapping[Address, Holder]
) -> tuple[list[PoolDepth], dict[tuple[Venue, HeldPosition], LockResult]]:
    """Tries the positions that contracts hold, those worth most first. Returns the pools with what was found
    out, and the results by venue and position as judged."""
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
