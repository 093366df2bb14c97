"""A book of pools, as logs would have filled it."""

import msgspec

from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.domain.base.venue import Venue
from unit.venues.network import BELOW, CONTRACTS

TOKEN = BELOW


def book(*venues: Venue, complete: bool = True) -> VenueIndex:
    """A book that has these venues of the token; complete when it has read the whole chain."""
    found = VenueIndex(CONTRACTS, None if complete else 1)
    found.calls(9)
    assert found.read(msgspec.Raw(b"[]"), 9)
    found.add(TOKEN, venues)
    return found
