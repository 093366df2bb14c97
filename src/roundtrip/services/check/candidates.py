"""Where a token may trade: the venues that a check tries."""

from dataclasses import dataclass

from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import AnyLaunch, LaunchRecord, Missing, PoolLaunch
from roundtrip.venues import VENUES, amm_v3, launchpad_curve, launchpad_pool
from roundtrip.venues.base import Contracts


@dataclass(frozen=True, slots=True)
class Candidates:
    """``venues`` may be tried. ``others`` more are known and not tried: their money is nobody's money, and
    anybody can make a pool of a token against his own. ``left_out``: beyond the bound. ``complete``: no
    pool is unknown."""

    venues: tuple[Venue, ...]
    others: int
    left_out: int
    complete: bool


def list_candidates(book: VenueIndex | None, contracts: Contracts, token: Address, most: int) -> Candidates:
    """Every venue known to be, and while some may be unknown the standard ones beside them; at most ``most``
    with strangers' hooks and as many without, the oldest."""
    known = book.venues_of(token) if book is not None else ()
    complete = book is not None and book.complete(token)
    hooked = [venue for venue in known if venue.rival_hook()]
    left_out = {*hooked[most:], *[venue for venue in known if not venue.rival_hook()][most:]}
    paid = [venue for venue in known if venue not in left_out]
    usual = () if complete else standard_venues(contracts, token)
    tried = (*usual, *(venue for venue in paid if venue not in usual))
    others = book.others(token) if book is not None else 0
    return Candidates(tried, others, len(left_out), complete)


def standard_venues(contracts: Contracts, token: Address) -> tuple[Venue, ...]:
    """Where it may trade as most do, whether or not anybody has opened it."""
    return tuple(venue for file in VENUES for venue in file.candidates(token, contracts))


def unseen_venues(
    contracts: Contracts, token: Address, launch: AnyLaunch | Missing | None, known: tuple[Venue, ...]
) -> tuple[Venue, ...]:
    """Where the launchpad says that the token trades, unless that is among the candidates."""
    found = _of_launch(contracts, token, launch)
    return () if found is None or found in known else (found,)


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
