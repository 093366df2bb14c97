"""A place where a token may trade: its kind, its quote, its hook, and its state.

``_raw`` is the quote's smallest unit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal

from .types import Address, HexBytes

VenueKind = Literal["launchpad_curve", "launchpad_pool", "amm_v3", "amm_v4"]


@dataclass(frozen=True, slots=True)
class VenueTraits:
    """What all venues of a kind share, so that other code need not branch on the kind.

    ``label``: its name in a sentence. ``described``: its name at the first mention. ``preposition``: a trade
    is on a curve, but in a pool. ``is_launchpad``: the launchpad's own code; its fees are the launchpad's
    terms, not a toll. ``is_contract``: each venue emits its own logs; otherwise one contract holds all of the
    kind. ``takes_hooks``: the creator of a pool may attach a contract that acts in swaps. ``by_router``: a
    wallet sells through a router that it approves. ``second_route``: another usual way to sell there; empty:
    there is none.
    """

    label: str
    described: str
    preposition: Literal["in", "on"] = "in"
    is_curve: bool = False
    is_launchpad: bool = False
    is_contract: bool = False
    takes_hooks: bool = False
    by_router: bool = False
    second_route: str = ""


_SETTLED_LAST = "a router that settles the swap last"
TRAITS: Mapping[VenueKind, VenueTraits] = MappingProxyType(
    {
        "launchpad_curve": VenueTraits(
            "curve", "the launchpad curve", "on", is_curve=True, is_launchpad=True, is_contract=True
        ),
        "launchpad_pool": VenueTraits(
            "launchpad pool", "the launchpad pool", is_launchpad=True, second_route=_SETTLED_LAST
        ),
        "amm_v3": VenueTraits(
            "v3 pool",
            "a v3 pool",
            is_contract=True,
            by_router=True,
            second_route="Permit2 and the Universal Router",
        ),
        "amm_v4": VenueTraits("v4 pool", "a v4 pool", takes_hooks=True, second_route=_SETTLED_LAST),
    }
)
LAUNCHPAD_KINDS: frozenset[VenueKind] = frozenset(
    kind for kind, traits in TRAITS.items() if traits.is_launchpad
)
LAUNCHPAD_POOLS: frozenset[VenueKind] = LAUNCHPAD_KINDS - {
    kind for kind, traits in TRAITS.items() if traits.is_curve
}
FIRST_VENUE: Mapping[int, VenueKind] = MappingProxyType({1: "amm_v3", 2: "launchpad_curve"})
"""Where a launch trades first, by the launchpad's generation."""


def is_curve(kind: VenueKind | None) -> bool:
    """False for None, too: no venue."""
    return kind is not None and TRAITS[kind].is_curve


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """The state of a venue. ``exists`` False: the other fields are zero."""

    wire: ClassVar[str] = "PoolFacts"

    exists: bool
    sqrt_price_x96: int
    liquidity: int
    quote_reserve_raw: int


@dataclass(frozen=True, slots=True)
class OtherPool:
    """A pool of a token that no check trades in. ``at``: its address or id; ``against``: the other token in
    it, which is not money."""

    wire: ClassVar[str] = "OtherPool"

    at: HexBytes
    against: Address


MAX_OTHERS_NAMED = 3
"""Anybody can make pools against a token of their own: so many are named, and the rest are counted."""
MAX_OTHERS_COUNTED = 1000
MAX_VENUES_A_TOKEN = 256
"""The first ones are kept. A token with more is marked incomplete."""
COMMON_MONEY = ("eth", "weth", "usdg")

DYNAMIC_FEE_FLAG = 0x800000
"""A pool key with this fee has its hook set the fee (LPFeeLibrary, v4-core 1.0.2)."""

SWAP_PERMISSIONS = 0b11001100
"""The low bits of a hook's address that let it take part in swaps: before and after swap, and their
return deltas (Hooks.sol, v4-core 1.0.2)."""


def acts_in_swaps(kind: VenueKind, hook: Address | None) -> bool:
    """Whether a stranger's hook takes part in swaps: no log says what it kept."""
    return TRAITS[kind].takes_hooks and hook is not None and int(hook, 16) & SWAP_PERMISSIONS != 0


Quote = Literal["eth", "weth", "usdg"] | Address
"""The money side of a venue: its short name, or the token's address where it has none."""


@dataclass(frozen=True, slots=True)
class Venue:
    """A place where a token may trade. ``fee_pips`` are millionths of the input; ``quote_address`` is zero
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

    @property
    def traits(self) -> VenueTraits:
        """The traits of its kind."""
        return TRAITS[self.kind]

    @property
    def is_curve(self) -> bool:
        """True for a launchpad's curve."""
        return self.traits.is_curve

    def dynamic_fee(self) -> bool:
        """True where the pool's hook sets its fee for each swap."""
        return self.traits.takes_hooks and self.fee_pips == DYNAMIC_FEE_FLAG

    def rival_hook(self) -> bool:
        """True for a pool with a hook that is not the launchpad's own."""
        return self.traits.takes_hooks and self.hook is not None

    def hook_in_swaps(self) -> bool:
        """True where such a hook takes part in swaps."""
        return acts_in_swaps(self.kind, self.hook)

    def keeps_by_hook(self) -> bool:
        """True where the pool's fee does not say what it keeps, so that has to be measured."""
        return self.dynamic_fee() or self.hook_in_swaps()

    def is_paid_in_money(self, known: Iterable["Venue"]) -> bool:
        """Whether the quote is eth, weth, usdg, or what the launchpad launched the token against, by the
        token's ``known`` venues. Anyone can create any number of pools of a token against a token of their
        own."""
        if self.quote in COMMON_MONEY or self.is_curve:
            return True
        return any(venue.is_curve and venue.quote_address == self.quote_address for venue in known)
