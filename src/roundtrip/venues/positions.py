"""Positions in v3 and v4 pools: how to read one, what it has earned, and how its holder withdraws it.

A position is an NFT of the exchange's position manager, or belongs to a contract that the pool knows itself.
"""

from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import TRAITS, Venue
from roundtrip.domain.liquidity.depth import Position

from . import abi, amm_v3, amm_v4
from .base import Call, Contracts

OWNER_OF, GET_APPROVED = "0x6352211e", "0x081812fc"
TRANSFER_FROM = "0x23b872dd"
V3_POSITIONS = "0x99fbab88"
"""NonfungiblePositionManager.positions(uint256): 12 words; the liquidity is the eighth."""
V3_POOL_POSITIONS = "0x514ea4bf"
"""UniswapV3Pool.positions(bytes32): liquidity, two fee growths, two amounts owed."""
V3_TICKS = "0xf30dba93"
"""ticks(int24): the growth of fees outside of a tick is in the third and fourth word."""
V3_GROWTH0, V3_GROWTH1 = "0xf3058399", "0x46141319"
DECREASE_LIQUIDITY, COLLECT = "0x0c49ccbe", "0xfc6f7865"
V4_POSITION_INFO, V4_GROWTH_INSIDE = "0xdacf1d2f", "0x53e9c1fb"
"""getPositionInfo(bytes32,address,int24,int24,bytes32) and getFeeGrowthInside(bytes32,int24,int24) of the
state view."""
MODIFY_LIQUIDITIES = "0xdd46508f"
"""PositionManager.modifyLiquidities(bytes,uint256)."""
_DECREASE, _TAKE_PAIR = "01", "11"
"""Actions of the v4 position manager (Actions.sol, v4-periphery 1.0.3)."""
_Q128, _UNSIGNED = 2**128, 2**256
_MAX_UINT128 = 2**128 - 1


class PoolState(NamedTuple):
    """A pool at a block. ``growth``: of fees for one unit of liquidity, in v3 only."""

    sqrt_price_x96: int
    tick: int
    liquidity: int
    growth: tuple[int, int] = (0, 0)


NO_STATE = PoolState(0, 0, 0)
"""For readings in which fees do not matter."""


@dataclass(frozen=True, slots=True)
class PositionState:
    """A position at a block. ``holder`` None: not known. ``approved``: who may move its NFT beside the
    holder. ``fees``: unclaimed, of the pool's two currencies in order; None: not known."""

    liquidity: int
    holder: Address | None
    approved: Address | None
    fees: tuple[int, int] | None


def manager_of(venue: Venue, contracts: Contracts) -> Address:
    """The exchange's position manager for a pool."""
    return contracts.v3_position_manager if TRAITS[venue.kind].is_contract else contracts.v4_position_manager


def is_nft(position: Position, venue: Venue, contracts: Contracts) -> bool:
    """Whether the position is an NFT of the exchange's position manager."""
    return position.owner == manager_of(venue, contracts) and position.number != 0


def state_calls(venue: Venue, contracts: Contracts) -> tuple[Call, ...]:
    """The calls that read a pool, in the order that ``read_state`` takes their answers."""
    if venue.pool is not None:
        selectors = (amm_v3.SLOT0, amm_v3.LIQUIDITY, V3_GROWTH0, V3_GROWTH1)
        return tuple(Call(venue.pool, selector) for selector in selectors)
    pool_id = (venue.pool_id or "0x")[2:]
    return tuple(
        Call(contracts.v4_state_view, head + pool_id) for head in (amm_v4.GET_SLOT0, amm_v4.GET_LIQUIDITY)
    )


def read_state(answers: tuple[bytes | None, ...]) -> PoolState | None:
    """The pool's state; None: one of the calls failed."""
    slot0, liquidity, *growths = (answer or b"" for answer in answers)
    price, tick, active = abi.uint_at(slot0, 0, 160), abi.int_at(slot0, 1, 24), abi.uint_at(liquidity, 0, 128)
    growth = [abi.uint_at(answer, 0) for answer in growths]
    if price is None or tick is None or active is None or None in growth:
        return None
    low, high = (word or 0 for word in growth or (0, 0))
    return PoolState(price, tick, active, (low, high))


def position_calls(position: Position, venue: Venue, contracts: Contracts) -> tuple[Call, ...]:
    """The calls that read a position, in the order that ``read_position`` takes their answers: its liquidity,
    two that tell the growth of its fees, and its holder where it is an NFT."""
    lower, upper = position.tick_lower, position.tick_upper
    nft = is_nft(position, venue, contracts)
    held: tuple[Call, ...] = ()
    if nft:
        held = tuple(
            Call(position.owner, abi.call(head, position.number)) for head in (OWNER_OF, GET_APPROVED)
        )
    if venue.pool is not None:
        packed = bytes.fromhex(position.owner[2:] + abi.word(lower)[-6:] + abi.word(upper)[-6:])
        own = Call(venue.pool, V3_POOL_POSITIONS + abi.keccak(packed).hex())
        if nft:
            own = Call(position.owner, abi.call(V3_POSITIONS, position.number))
        return (own, *(Call(venue.pool, abi.call(V3_TICKS, tick)) for tick in (lower, upper)), *held)
    view, pool_id = contracts.v4_state_view, venue.pool_id or "0x"
    info = abi.call(V4_POSITION_INFO, pool_id, position.owner, lower, upper, position.number)
    return (Call(view, info), Call(view, abi.call(V4_GROWTH_INSIDE, pool_id, lower, upper)), *held)


def read_position(
    position: Position,
    venue: Venue,
    contracts: Contracts,
    state: PoolState,
    answers: tuple[bytes | None, ...],
) -> PositionState | None:
    """The position's state; None: its liquidity could not be read, or the NFT is of another pool."""
    nft = is_nft(position, venue, contracts)
    own, *rest = answers
    is_v3 = venue.pool is not None
    if is_v3 and nft and _place_of(own or b"", contracts) != (venue.pool, *position[2:4]):
        # One who mints in two pools at once can make the logs name the NFT of the other pool.
        return None
    # The manager's own record of a v3 NFT has seven words before the liquidity.
    first = 7 if is_v3 and nft else 0
    liquidity = abi.uint_at(own or b"", first, 128)
    if liquidity is None:
        return None
    last = [abi.uint_at(own or b"", first + n) for n in (1, 2)]
    owed = [abi.uint_at(own or b"", first + n, 128) for n in (3, 4)] if is_v3 else [0, 0]
    if is_v3:
        growth = _growth_inside(position, state, rest[0] or b"", rest[1] or b"")
    else:
        growth = tuple(abi.uint_at(rest[0] or b"", n) for n in (0, 1))
    fees = None
    if None not in (*growth, *last, *owed):
        # Growths are counters that wrap, as in the pool.
        sums = [
            liquidity * ((now - (before or 0)) % _UNSIGNED) // _Q128 + (paid or 0)
            for now, before, paid in zip(growth, last, owed, strict=True)
            if now is not None
        ]
        fees = sums[0], sums[1]
    if position.owner != manager_of(venue, contracts):
        return PositionState(liquidity, position.owner, None, fees)
    if not nft:
        return PositionState(liquidity, None, None, fees)
    holder, approved = (abi.address_at(answer or b"", 0) for answer in rest[-2:])
    return PositionState(liquidity, holder, None if approved == ZERO_ADDRESS else approved, fees)


def _place_of(record: bytes, contracts: Contracts) -> tuple[Address, int, int] | None:
    """The pool and the ticks of a v3 NFT, by the manager's record of it; None: not read."""
    low, high, fee_pips = abi.address_at(record, 2), abi.address_at(record, 3), abi.uint_at(record, 4, 24)
    lower, upper = abi.int_at(record, 5, 24), abi.int_at(record, 6, 24)
    if low is None or high is None or fee_pips is None or lower is None or upper is None:
        return None
    return amm_v3.pool_address(contracts.v3_factory, low, high, fee_pips), lower, upper


def _growth_inside(
    position: Position, state: PoolState, lower: bytes, upper: bytes
) -> tuple[int | None, ...]:
    """The growth of fees between two ticks of a v3 pool (Tick.getFeeGrowthInside, v3-core 1.0.1)."""
    inside: list[int | None] = []
    for n in (0, 1):
        below, above = abi.uint_at(lower, 2 + n), abi.uint_at(upper, 2 + n)
        if below is None or above is None:
            return None, None
        if state.tick < position.tick_lower:
            below = state.growth[n] - below
        if state.tick >= position.tick_upper:
            above = state.growth[n] - above
        inside.append((state.growth[n] - below - above) % _UNSIGNED)
    return tuple(inside)


def plan_withdraw(
    position: Position, liquidity: int, venue: Venue, token: Address, contracts: Contracts, to: Address
) -> tuple[Call, ...]:
    """The calls by which the holder of an NFT takes out all of its liquidity and its fees."""
    deadline_s = amm_v4.FAR_DEADLINE_S
    if venue.pool is not None:
        decrease = abi.call(DECREASE_LIQUIDITY, position.number, liquidity, 0, 0, deadline_s)
        collect = abi.call(COLLECT, position.number, to, _MAX_UINT128, _MAX_UINT128)
        return Call(position.owner, decrease), Call(position.owner, collect)
    low, high = sorted((token, venue.quote_address))
    head = amm_v4.encode(position.number, liquidity, 0, 0, 5 * abi.WORD, 0)
    plan = amm_v4.encode_actions((_DECREASE, head), (_TAKE_PAIR, amm_v4.encode(low, high, to)))
    tail = abi.bytes_tail("0x" + plan)
    return (Call(position.owner, MODIFY_LIQUIDITIES + amm_v4.encode(2 * abi.WORD, deadline_s) + tail),)


def plan_take(position: Position, holder: Address, to: Address) -> Call:
    """The call that moves an NFT from its holder, for an account that may."""
    return Call(position.owner, abi.call(TRANSFER_FROM, holder, to, position.number))
