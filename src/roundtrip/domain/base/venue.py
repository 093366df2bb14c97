"""One place a token may trade: what kind of venue it is, in which money, under which hook, and its state.

``_raw`` is the quote's smallest unit.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .types import Address

VenueKind = Literal["launchpad_curve", "launchpad_pool", "amm_v3", "amm_v4"]


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """The state a venue stands in. ``exists`` False: the other fields are zero."""

    wire: ClassVar[str] = "PoolFacts"

    exists: bool
    sqrt_price_x96: int
    liquidity: int
    quote_reserve_raw: int


DYNAMIC_FEE_FLAG = 0x800000
"""A pool key with this fee has its hook set the fee (LPFeeLibrary, v4-core 1.0.2)."""

SWAP_PERMISSIONS = 0b11001100
"""The low bits of a hook's address that let it take part in swaps: before and after swap, and their
return deltas (Hooks.sol, v4-core 1.0.2)."""

Quote = Literal["eth", "weth", "usdg"] | Address
"""The money side of a venue: its short name, or the token's address where it has none."""


@dataclass(frozen=True, slots=True)
class Venue:
    """One place a token may trade. ``fee_pips`` are millionths of the input; ``quote_address`` is zero
    for eth itself. A pool that is a contract has ``pool``, one in a shared vault ``pool_id``."""

    wire: ClassVar[str] = "Venue"

    kind: VenueKind
    quote: Quote
    quote_address: Address
    pool: Address | None
    fee_pips: int
    tick_spacing: int = 0
    hook: Address | None = None
    pool_id: str | None = None

    def at(self) -> str | None:
        """The pool's or the curve's address, or the pool's id."""
        return self.pool or self.pool_id

    def dynamic_fee(self) -> bool:
        """True for a v4 pool whose fee its hook sets, swap by swap."""
        return self.kind == "amm_v4" and self.fee_pips == DYNAMIC_FEE_FLAG

    def rival_hook(self) -> bool:
        """True for a v4 pool with a hook that is not the launchpad's own."""
        return self.kind == "amm_v4" and self.hook is not None

    def hook_in_swaps(self) -> bool:
        """True where such a hook takes part in swaps."""
        return self.rival_hook() and int(self.hook or "0x0", 16) & SWAP_PERMISSIONS != 0

    def keeps_by_hook(self) -> bool:
        """True where the pool's keep is not told by its fee and has to be measured."""
        return self.dynamic_fee() or self.hook_in_swaps()
