"""Who can withdraw how much of a token's active depth. Pure.

A position counts by its share of the liquidity in range at the pool's price; a pool counts by the worth of
the quote along its curve (``quote_along_raw``). Shares are rounded down, so that no party has more than it
has.

Also here: positions as the index folds them, and contracts whose code is known to keep what they are given
until a time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import BPS, Address, BlockRef, Numeric
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check import ticks


class Position(NamedTuple):
    """Liquidity of one owner between two ticks of a pool. ``owner``: whom the pool knows: a wallet, a
    contract, or a position manager. ``number``: the NFT of the position manager, or the salt of another
    owner in a v4 pool; 0: none. ``holder``: who holds the NFT, or the owner where there is none; None: not
    known."""

    owner: Address
    number: Numeric
    tick_lower: int
    tick_upper: int
    liquidity: Numeric
    holder: Address | None
    given_by: Address | None = None
    """Who sent the NFT to its holder; None: nobody did, or it is not known."""

    def is_active(self, tick: int) -> bool:
        """Whether the position is part of the pool's depth at this tick."""
        return self.tick_lower <= tick < self.tick_upper

    def amounts(self, sqrt_price_x96: int) -> tuple[int, int]:
        """What it holds of the pool's two currencies at a price, in base units; nothing where its ticks are
        those of no pool."""
        try:
            low, high = ticks.amounts(sqrt_price_x96, self.tick_lower, self.tick_upper, -self.liquidity)
        except ValueError:
            return 0, 0
        return abs(low), abs(high)


@dataclass(frozen=True, slots=True)
class PoolPositions:
    """A pool and the positions in it: active ones first, then the most liquidity first. ``left_out``: how
    many more there are, and ``left_out_liquidity``: of them together, which may lie at any ticks. ``tick``,
    ``active_liquidity``: the pool's state as the index knows it; None: not known. ``is_whole``: the index has
    every change of liquidity since the pool was opened; else positions may be missing, or have more."""

    pool: PoolPlace
    positions: tuple[Position, ...]
    left_out: int
    left_out_liquidity: int
    tick: int | None
    active_liquidity: int | None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class TokenPositions:
    """The pools of a token whose quote is money, at the index's block."""

    block: BlockRef
    pools: tuple[PoolPositions, ...]


HeldBy = Literal["free", "locked", "contract", "burned", "launchpad", "unknown"]
"""What keeps a position. ``free``: somebody can withdraw it now. ``locked``: nobody can before a time, by a
contract whose code is known. ``contract``: nobody that was tried can now, by a contract whose code is not
known. ``unknown``: it could not be found out."""
HELD_BY: tuple[HeldBy, ...] = ("free", "locked", "contract", "burned", "launchpad", "unknown")
_Q96 = 2**96


class Withdrawal(NamedTuple):
    """Who can withdraw a position now. ``function``: of the contract that holds it, or in words how; empty:
    the wallet holds it, or is approved for it."""

    wallet: Address
    function: str = ""


class Lock(NamedTuple):
    """When somebody can withdraw a position. ``is_exact``: a simulated withdrawal is refused a second before
    and succeeds then; else it is refused up to then, and the time is not known."""

    at_s: int
    is_exact: bool
    wallet: Address | None


@dataclass(frozen=True, slots=True)
class HeldPosition:
    """A position as it was read at the block. ``is_active``: in range at the pool's price. ``fees_raw``:
    unclaimed, of the token and of the quote; None: not known. ``locker``: the name of a known contract."""

    position: Position
    is_active: bool
    held_by: HeldBy
    withdrawal: Withdrawal | None = None
    lock: Lock | None = None
    locker: str | None = None
    fees_raw: tuple[int, int] | None = None
    is_contract: bool = False
    money_wei: int = 0
    """The worth of the quote that it holds after the check's buy in its pool, in range or not."""

    def active_liquidity(self) -> int:
        """Its part of the pool's liquidity in range."""
        return self.position.liquidity if self.is_active else 0


@dataclass(frozen=True, slots=True)
class PoolDepth:
    """A venue at the block. ``liquidity``: in range; 0 on a curve, whose depth is the launchpad's.
    ``worth_wei``: of the quote along its curve; None: not known. ``left_out``: positions that were not
    read."""

    venue: Venue
    liquidity: int
    worth_wei: int | None
    positions: tuple[HeldPosition, ...] = ()
    left_out: int = 0
    is_curve: bool = False

    def share_bps(self, held: HeldPosition) -> int:
        """A position's share of the active depth."""
        return held.active_liquidity() * BPS // self.liquidity if self.liquidity else 0

    def worth_of(self, held: HeldPosition) -> int:
        """A position's part of ``worth_wei``."""
        return (self.worth_wei or 0) * held.active_liquidity() // self.liquidity if self.liquidity else 0


@dataclass(frozen=True, slots=True)
class Party:
    """A wallet and what it can withdraw now: the share of all depth, and the positions by pool.
    ``money_bps``: the share of the quote in all known positions; it tells more where positions are narrow."""

    wallet: Address
    share_bps: int
    positions: tuple[tuple[PoolDepth, HeldPosition], ...]
    money_bps: int = 0

    def largest_bps(self) -> int:
        """The larger one of the two shares."""
        return max(self.share_bps, self.money_bps)


@dataclass(frozen=True, slots=True)
class TokenDepth:
    """The depth of a token's venues, the venue of the check first. ``unread``: why positions are not known;
    empty: they are. ``absence``: the sentence that says why there are no pools; empty: it trades in none.
    ``money_bps``: like the totals, of the quote that known positions hold, in range or not. Where none of it
    is in range, a position counts with all its liquidity, since the next trade may reach it."""

    pools: tuple[PoolDepth, ...]
    unread: str = ""
    totals_bps: dict[HeldBy, int] = field(default_factory=dict)
    absence: str = ""
    money_bps: dict[HeldBy, int] = field(default_factory=dict)

    @classmethod
    def of(cls, pools: Iterable[PoolDepth], unread: str = "", absence: str = "") -> "TokenDepth":
        """The depth with its totals. Pools of which the worth is not known count in none of them."""
        pools = tuple(pools)
        return cls(pools, unread, _totals_bps(pools), absence, _money_bps(pools))

    def is_out_of_range(self) -> bool:
        """True where the price of none of the pools is within a position."""
        return _are_out_of_range(self.pools)

    def part_bps(self, pool: PoolDepth, held: HeldPosition) -> int:
        """A position's share of the worth of all pools, or of the quote in all known positions, whichever is
        larger; of its own pool where that pool's worth is not known."""
        if pool.worth_wei is None:
            return pool.share_bps(held)
        whole_wei = max(1, sum(other.worth_wei or 0 for other in self.pools))
        money_bps = held.money_wei * BPS // max(1, _whole_money_wei(self.pools))
        return max(pool.worth_of(held) * BPS // whole_wei, money_bps)

    def free_parties(self) -> tuple[Party, ...]:
        """Wallets that can withdraw something now that is active or holds money, the largest first, with all
        that they can withdraw; where nothing is in range, anything."""
        held: dict[Address, list[tuple[PoolDepth, HeldPosition]]] = {}
        for pool in self.pools:
            for position in pool.positions:
                if position.withdrawal is not None:
                    held.setdefault(position.withdrawal.wallet, []).append((pool, position))
        money_wei, is_idle = max(1, _whole_money_wei(self.pools)), self.is_out_of_range()
        parties = [
            Party(
                wallet,
                self._share_bps(positions),
                tuple(positions),
                sum(position.money_wei for _, position in positions) * BPS // money_wei,
            )
            for wallet, positions in held.items()
            if is_idle or any(position.active_liquidity() or position.money_wei for _, position in positions)
        ]
        return tuple(sorted(parties, key=lambda party: (-party.largest_bps(), party.wallet)))

    def _share_bps(self, positions: Iterable[tuple[PoolDepth, HeldPosition]]) -> int:
        if self.is_out_of_range():
            whole = sum(held.position.liquidity for pool in self.pools for held in pool.positions)
            return sum(held.position.liquidity for _, held in positions) * BPS // max(1, whole)
        whole_wei = sum(pool.worth_wei or 0 for pool in self.pools)
        return sum(pool.worth_of(held) for pool, held in positions) * BPS // max(1, whole_wei)


def _are_out_of_range(pools: Iterable[PoolDepth]) -> bool:
    return not any(pool.worth_wei or pool.liquidity for pool in pools)


def _idle_totals_bps(pools: tuple[PoolDepth, ...]) -> dict[HeldBy, int]:
    """The totals where nothing is in range, by the liquidity of the known positions. What is kept counts
    as unknown: no liquidity in range tells whether positions are missing."""
    parts: dict[HeldBy, int] = dict.fromkeys(HELD_BY, 0)
    for held in (held for pool in pools for held in pool.positions):
        is_kept = held.held_by in ("burned", "locked", "launchpad")
        parts["unknown" if is_kept else held.held_by] += held.position.liquidity
    whole = sum(parts.values())
    if not whole and any(pool.is_curve for pool in pools):
        return parts | {"launchpad": BPS}
    return {status: part * BPS // max(1, whole) for status, part in parts.items()}


def _totals_bps(pools: tuple[PoolDepth, ...]) -> dict[HeldBy, int]:
    """The shares of the active depth by what keeps them; where nothing is in range, ``_idle_totals_bps``."""
    if _are_out_of_range(pools):
        return _idle_totals_bps(pools)
    whole_wei = sum(pool.worth_wei or 0 for pool in pools)
    parts_wei: dict[HeldBy, int] = dict.fromkeys(HELD_BY, 0)
    for pool in pools:
        if pool.is_curve:
            parts_wei["launchpad"] += pool.worth_wei or 0
            continue
        known = dict.fromkeys(HELD_BY, 0)
        for held in pool.positions:
            known[held.held_by] += held.active_liquidity()
        # What no position accounts for is in the hands of somebody who is not known.
        known["unknown"] += max(0, pool.liquidity - sum(known.values()))
        for status, liquidity in known.items():
            parts_wei[status] += (pool.worth_wei or 0) * liquidity // max(1, pool.liquidity)
    return {status: part * BPS // whole_wei if whole_wei else 0 for status, part in parts_wei.items()}


def _whole_money_wei(pools: tuple[PoolDepth, ...]) -> int:
    return sum(
        sum(held.money_wei for held in pool.positions) + ((pool.worth_wei or 0) if pool.is_curve else 0)
        for pool in pools
    )


def _money_bps(pools: tuple[PoolDepth, ...]) -> dict[HeldBy, int]:
    parts_wei: dict[HeldBy, int] = dict.fromkeys(HELD_BY, 0)
    for held in (held for pool in pools for held in pool.positions):
        parts_wei[held.held_by] += held.money_wei
    whole_wei = max(1, _whole_money_wei(pools))
    return {held_by: part * BPS // whole_wei for held_by, part in parts_wei.items()}


def quote_along_raw(sqrt_price_x96: int, liquidity: int, token_is_zero: bool) -> int:
    """The quote along the pool's curve at its price, in base units: liquidity times the square root of the
    price, or divided by it (Uniswap v3 whitepaper, 6.2)."""
    if sqrt_price_x96 <= 0:
        return 0
    if token_is_zero:
        return liquidity * sqrt_price_x96 // _Q96
    return liquidity * _Q96 // sqrt_price_x96


class KnownLocker(NamedTuple):
    """``end_view``: tells when the lock of an NFT ends, by its manager and number, in word ``end_word`` of
    its answer."""

    name: str
    end_view: str
    end_word: int


KNOWN_CODES: Mapping[str, KnownLocker] = MappingProxyType(
    {
        "0xd8328b9b9f2409dd2b4906da8765f22ce16c95fc1fe3c8a476f9c828df8b0ab5": KnownLocker(
            "time lock", "unlockTime(address,uint256)", 0
        ),
        "0x99cd4d83d9d939087fc68957500b1ec04a39260b5f785de0d51f7c089b984b2e": KnownLocker(
            "vault lock", "locks(address,uint256)", 5
        ),
    }
)
"""By keccak256 of the runtime code. Each was read whole: no function of it lets anybody take a position
before its time. That holds whatever its storage was: whoever makes a contract can fill that before its code
is there. Whom position managers let act for the contract is read separately. These two are ``time_lock.vy``
and ``vault_lock.vy`` of this project's ``contracts/liquidity``."""
