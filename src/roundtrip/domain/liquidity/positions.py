"""Positions in pools, as the index folds them."""

from dataclasses import dataclass
from typing import NamedTuple

from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import Address, BlockRef, Numeric
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
    """The pools of a token at the index's block, in which the quote is money."""

    block: BlockRef
    pools: tuple[PoolPositions, ...]
