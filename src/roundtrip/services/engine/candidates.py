"""The candidate venues of a check."""

from dataclasses import dataclass
from itertools import islice

from roundtrip.chain.blocks.venue_index import ListedVenues
from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import (
    MAX_OTHERS_COUNTED,
    MAX_OTHERS_NAMED,
    MAX_VENUES_A_TOKEN,
    OtherPool,
    Venue,
)
from roundtrip.domain.check.evidence import AnyLaunch, LaunchRecord, Missing, PoolLaunch
from roundtrip.domain.check.proof_input import TokenIndex
from roundtrip.venues import VENUES, amm_v3, amm_v4, launchpad_curve, launchpad_pool
from roundtrip.venues.base import Contracts, quote_name


@dataclass(frozen=True, slots=True)
class KnownVenues:
    """The venues known before the node is asked. ``others``: the number of pools with a quote
    that is not money; ``other_pools``: some of them. ``complete``: no pool is unknown."""

    venues: tuple[Venue, ...] = ()
    others: int = 0
    complete: bool = False
    other_pools: tuple[OtherPool, ...] = ()


def join_venues(listed: ListedVenues, index: TokenIndex | None, contracts: Contracts) -> KnownVenues:
    """A token's venues by the logs of this process and by the index, oldest first."""
    others = dict(listed.others)
    venues = list(listed.venues)
    is_complete = listed.complete_from == 0
    if index is not None and not is_complete:
        indexed = [venue_of(pool, contracts) for pool in index.pools]
        venues = []
        for venue in (*indexed, *listed.venues):
            if not venue.is_paid_in_money(venues):
                if len(others) < MAX_OTHERS_COUNTED:
                    others[venue.at() or ""] = venue.quote_address
            elif venue not in venues:
                venues.append(venue)
        others |= {pool.at: pool.against for pool in index.others}
        if listed.complete_from is not None and index.whole_to is not None:
            # Together they leave no block out.
            is_complete = index.whole_to >= listed.complete_from - 1 and len(venues) <= MAX_VENUES_A_TOKEN
    named = tuple(OtherPool(at, against) for at, against in islice(others.items(), MAX_OTHERS_NAMED))
    return KnownVenues(tuple(venues[:MAX_VENUES_A_TOKEN]), len(others), is_complete, named)


@dataclass(frozen=True, slots=True)
class Candidates:
    """``venues``: those that a check tries. ``others``: how many further known pools are not tried, because
    anybody can make a pool against a token of their own; ``other_pools``: some of them. ``left_out``: how
    many venues are beyond the bound. ``complete``: no pool is unknown."""

    venues: tuple[Venue, ...]
    others: int
    left_out: int
    complete: bool
    other_pools: tuple[OtherPool, ...] = ()


def list_candidates(known: KnownVenues, contracts: Contracts, token: Address, most: int) -> Candidates:
    """The oldest ``most`` known venues with rival hooks and as many without. The standard ones come first,
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


def venue_of(pool: PoolPlace, contracts: Contracts) -> Venue:
    """An indexed pool as a venue."""
    if pool.kind == launchpad_curve.KIND:
        return launchpad_curve.curve(pool.quote, Address(pool.at), contracts)
    if pool.kind == amm_v3.KIND:
        return amm_v3.pool(pool.token, pool.quote, pool.fee_pips, contracts)
    name = quote_name(pool.quote, contracts)
    fee, spacing = pool.fee_pips, pool.tick_spacing
    return amm_v4.pool(pool.kind, pool.token, name, pool.quote, fee, spacing, pool.hook)
