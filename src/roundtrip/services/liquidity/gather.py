"""Reads a token's positions at a block, finds out who can withdraw them, and what a buyer would have left.

One trip for the buy round of a check and, at once, the pools, the positions and their holders. Three for
positions that contracts hold. One for the sells after the withdrawal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.liquidity import position_reads
from roundtrip.chain.liquidity.position_reads import PoolRead, PoolToRead
from roundtrip.chain.rpc.client import CodeFault, Meter, RpcCall
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.base.venue import PoolFacts, Venue
from roundtrip.domain.check.price import quote_in_wei
from roundtrip.domain.liquidity.depth import (
    HeldBy,
    HeldPosition,
    PoolDepth,
    TokenDepth,
    Withdrawal,
    quote_along_raw,
)
from roundtrip.domain.liquidity.positions import PoolPositions, TokenPositions
from roundtrip.domain.liquidity.text import ExitAfterWithdrawal
from roundtrip.services.check.buy_round import BuyRoundResult
from roundtrip.services.check.index_facts import venue_of
from roundtrip.services.check.pipeline import start_check
from roundtrip.services.check.session import VenueTrial, bought_raw
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.venues.base import Contracts

from .exit_after import run_exit
from .locks import UNKNOWN, ContractPosition, Holder, LockResult, LockTrials, read_holder

MOST_POOLS = 4
MOST_POSITIONS = 200
"""Of one pool, that are read; the rest is counted."""
_MOST_HOLDERS = 64
"""Of all pools, that are read: those of the largest positions."""
NOT_INDEXED = "We do not know its positions: the index does not have its pools"


@dataclass(frozen=True, slots=True)
class LiquidityFindings:
    """What was found out at the block. ``exit_after``: of the largest party that can withdraw something;
    None: there is none."""

    head: ChainHead
    bought: BuyRoundResult
    depth: TokenDepth
    exit_after: ExitAfterWithdrawal | None


@dataclass(frozen=True, slots=True)
class _Reads:
    """The answers of the trip beside the buy round."""

    pools: Mapping[Venue, tuple[PoolToRead, PoolRead]]
    holders: Mapping[Address, Holder]


async def find_liquidity(
    ctx: Context, head: ChainHead, token: Address, indexed: TokenPositions | None, meter: Meter
) -> LiquidityFindings:
    """Everything at one block. ``indexed``: the positions that the index knows; None: there is no index.
    Raises NodeFault."""
    known = {} if indexed is None else {venue_of(pool.pool, ctx.contracts): pool for pool in indexed.pools}
    buying, reading = Meter(), Meter()
    bought, reads = await at_once(start_check(ctx, head, token, buying), _read(ctx, head, known, reading))
    meter.add(buying, reading)
    bought = replace(bought, run=replace(bought.run, meter=meter))
    return await judge_liquidity(bought, head, known, reads)


async def judge_liquidity(
    bought: BuyRoundResult, head: ChainHead, known: Mapping[Venue, PoolPositions], reads: _Reads
) -> LiquidityFindings:
    """The findings after the first trip. Raises NodeFault."""
    contracts = bought.run.means.contracts
    trials = sorted(
        (trial for trial in bought.data.venues if trial.exists()), key=lambda trial: -bought_raw(trial)
    )[:MOST_POOLS]
    depths = [_depth_of(trial, bought, known, reads, contracts) for trial in trials]
    depths, taken = await _try_locks(bought, depths, known, reads, contracts)
    unread = NOT_INDEXED if trials and not any(depth.positions or depth.is_curve for depth in depths) else ""
    depth = TokenDepth.of(depths, unread)
    parties = depth.free_parties()
    exit_after = await run_exit(bought, trials, parties[0], taken) if parties else None
    return LiquidityFindings(head, bought, depth, exit_after)


async def _read(ctx: Context, head: ChainHead, known: Mapping[Venue, PoolPositions], meter: Meter) -> _Reads:
    """Reads the pools, their positions and holders at the block, in one trip."""
    to_read = [
        PoolToRead(venue, pool.positions[:MOST_POSITIONS])
        for venue, pool in known.items()
        if not venue.is_curve
    ]
    every = sorted((one for pool in to_read for one in pool.positions), key=lambda one: -one.liquidity)
    keyless = BURN_ADDRESSES | ctx.contracts.all_addresses()
    holders = [one for one in dict.fromkeys(one.holder for one in every) if one and one not in keyless]
    calls: dict[str, RpcCall] = {}
    for holder in holders[:_MOST_HOLDERS]:
        calls |= position_reads.holder_calls(holder, head.block)
    pool_calls = [position_reads.pool_call(pool, ctx.contracts, head.block) for pool in to_read]
    if not pool_calls:
        return _Reads({}, {})
    pool_answers, holder_answers = await ctx.node.batches([pool_calls, list(calls.values())], meter)
    if isinstance(pool_answers, NodeFault):
        raise pool_answers
    pools = {
        pool.venue: (pool, position_reads.read_pool(answer, pool, ctx.contracts))
        for pool, answer in zip(to_read, pool_answers, strict=True)
    }
    if isinstance(holder_answers, NodeFault):
        # Code of one stranger may be too large to read with the others: then nothing is known of any.
        if not isinstance(holder_answers, CodeFault):
            raise holder_answers
        return _Reads(pools, {})
    answers = dict(zip(calls, holder_answers, strict=True))
    return _Reads(pools, {holder: read_holder(holder, answers) for holder in holders[:_MOST_HOLDERS]})


def _depth_of(
    trial: VenueTrial,
    bought: BuyRoundResult,
    known: Mapping[Venue, PoolPositions],
    reads: _Reads,
    contracts: Contracts,
) -> PoolDepth:
    """A venue's depth and its positions, before those in contracts are tried."""
    venue, token, market = trial.place.venue, bought.run.token, bought.run.setting.market
    facts = trial.facts if isinstance(trial.facts, PoolFacts) else PoolFacts(True, 0, 0, 0)
    if venue.is_curve:
        worth_wei = quote_in_wei(facts.quote_reserve_raw, venue.quote, market)
        return PoolDepth(venue, 0, worth_wei, is_curve=True)
    along_raw = quote_along_raw(facts.sqrt_price_x96, facts.liquidity, token < venue.quote_address)
    worth_wei = quote_in_wei(along_raw, venue.quote, market)
    pool, read = reads.pools.get(venue, (PoolToRead(venue, ()), PoolRead(None, ())))
    held = []
    for position, state in zip(pool.positions, read.positions, strict=True):
        if state is None or read.state is None or not state.liquidity:
            continue
        now = position._replace(
            liquidity=state.liquidity,
            holder=state.holder,
            given_by=position.given_by if state.holder == position.holder else None,
        )
        fees = state.fees
        if fees is not None and token > venue.quote_address:
            fees = fees[1], fees[0]
        held_by, withdrawal = _held_by(now.holder, state.approved, reads.holders, contracts)
        holder = reads.holders.get(now.holder) if now.holder else None
        is_contract = holder is not None and not holder.is_wallet()
        held.append(
            HeldPosition(
                now, now.is_active(read.state.tick), held_by, withdrawal, None, None, fees, is_contract
            )
        )
    held.sort(key=lambda one: (-one.active_liquidity(), -one.position.liquidity))
    indexed = known.get(venue)
    left_out = 0 if indexed is None else indexed.left_out
    return PoolDepth(venue, facts.liquidity, worth_wei, tuple(held), left_out)


def _held_by(
    holder: Address | None, approved: Address | None, holders: Mapping[Address, Holder], contracts: Contracts
) -> tuple[HeldBy, Withdrawal | None]:
    """What keeps a position, as far as its holder alone shows."""
    if holder is None:
        return "unknown", None
    if holder in BURN_ADDRESSES:
        return "burned", None
    if approved is not None and approved not in contracts.all_addresses():
        return "free", Withdrawal(approved)
    if holder in contracts.all_addresses():
        return "launchpad", None
    known = holders.get(holder)
    if known is not None and known.is_wallet():
        return "free", Withdrawal(holder)
    return "unknown", None


async def _try_locks(
    bought: BuyRoundResult,
    depths: Sequence[PoolDepth],
    known: Mapping[Venue, PoolPositions],
    reads: _Reads,
    contracts: Contracts,
) -> tuple[list[PoolDepth], dict[tuple[Venue, HeldPosition], LockResult]]:
    """Tries the positions that contracts hold; those in range first, the largest first."""
    wanted: list[tuple[PoolDepth, HeldPosition]] = [
        (depth, held) for depth in depths for held in depth.positions if _is_in_contract(held, reads)
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
            reads.holders[held.position.holder],
            held.position.given_by,
        )
        for depth, held in wanted
        if held.position.holder is not None
    ]
    found = await LockTrials(bought.run, contracts, accounts).find(tried)
    results = {
        (depth.venue, held.position): result for (depth, held), result in zip(wanted, found, strict=True)
    }
    taken: dict[tuple[Venue, HeldPosition], LockResult] = {}
    judged = []
    for depth in depths:
        held_now = []
        for held in depth.positions:
            result = results.get((depth.venue, held.position), UNKNOWN)
            if _is_in_contract(held, reads):
                held = result.apply(held)
                taken[depth.venue, held] = result
            held_now.append(held)
        judged.append(replace(depth, positions=tuple(held_now)))
    return judged, taken


def _is_in_contract(held: HeldPosition, reads: _Reads) -> bool:
    return held.held_by == "unknown" and held.is_contract and held.position.holder in reads.holders


def token_accounts(bought: BuyRoundResult) -> tuple[Address, ...]:
    """The accounts of the token that may have a right over its liquidity: its deployer and its owner."""
    launch = bought.data.launch
    deployers = (bought.indexed.deployer, getattr(launch, "deployer", None))
    owners = (bought.data.facts.owner, bought.data.facts.proxy_admin)
    accounts = [one for one in (*deployers, *owners) if isinstance(one, str) and one not in BURN_ADDRESSES]
    return tuple(dict.fromkeys(Address(one) for one in accounts))
