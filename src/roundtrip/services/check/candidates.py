"""The candidate venues of a check."""

from dataclasses import dataclass

from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import OtherPool, Venue
from roundtrip.domain.check.evidence import AnyLaunch, LaunchRecord, Missing, PoolLaunch
from roundtrip.venues import VENUES, amm_v3, launchpad_curve, launchpad_pool
from roundtrip.venues.base import Contracts


@dataclass(frozen=True, slots=True)
class KnownVenues:
    """The venues known before the node is asked. ``others``: the number of pools with a quote
    that is not money; ``other_pools``: some of them. ``complete``: no pool is unknown."""

    venues: tuple[Venue, ...] = ()
    others: int = 0
    complete: bool = False
    other_pools: tuple[OtherPool, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """``venues``: those that a check tries. ``others``: further known pools that are not tried, because
    anybody can make a pool against a token of their own; ``other_pools``: some of them. ``left_out``: venues
    beyond the bound. ``complete``: no pool is unknown."""

    venues: tuple[Venue, ...]
    others: int
    left_out: int
    complete: bool
    other_pools: tuple[OtherPool, ...] = ()


def list_candidates(known: KnownVenues, contracts: Contracts, token: Address, most: int) -> Candidates:
    """Every known venue: the oldest ``most`` with rival hooks and as many without, after the standard ones
    while a venue may be unknown."""
    hooked = [venue for venue in known.venues if venue.rival_hook()]
    plain = [venue for venue in known.venues if not venue.rival_hook()]
    left_out = {*hooked[most:], *plain[most:]}
    standard = () if known.complete else standard_venues(contracts, token)
    listed = (venue for venue in known.venues if venue not in left_out and venue not in standard)
    return Candidates((*standard, *listed), known.others, len(left_out), known.complete, known.other_pools)


def standard_venues(contracts: Contracts, token: Address) -> tuple[Venue, ...]:
    """The pools where most tokens trade, whether or not they exist."""
    return tuple(venue for file in VENUES for venue in file.candidates(token, contracts))


def unseen_venues(
    contracts: Contracts, token: Address, launch: AnyLaunch | Missing | None, known: tuple[Venue, ...]
) -> tuple[Venue, ...]:
    """The launchpad's venue of the token, unless it is among the candidates."""
    venue = _of_launch(contracts, token, launch)
    return () if venue is None or venue in known else (venue,)


def _of_launch(contracts: Contracts, token: Address, launch: AnyLaunch | Missing | None) -> Venue | None:
    if isinstance(launch, PoolLaunch):
        return amm_v3.pool(token, launch.quote_address, launch.pool_fee_pips, contracts)
    if not isinstance(launch, LaunchRecord):
        return None
    if launch.phase == "curve":
        return launchpad_curve.curve(launch.quote_address, launch.curve, contracts)
    if launch.phase == "pooled":
        fee, spacing = launch.pool_fee_pips, launch.tick_spacing
        return launchpad_pool.pool(token, launch.quote_address, fee, spacing, contracts)
    return None
