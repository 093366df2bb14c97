"""Where all of it is also sold in pieces: in equal sales over a day, where no single sale sells enough.

A cap on one sale is no trap. Where a venue refuses every single sale, one more simulation tells them apart.
"""

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import AnyLaunch, Missing, Probe, Size, VenueEvidence
from roundtrip.domain.check.venue_code import group_of, needs_pieces
from roundtrip.domain.check.venue_reading import VenueReading, read_venue


def pieces_probe(policy: Policy, size: Size) -> Probe:
    """All that was bought, by the buyer, in equal sales over a day."""
    return Probe(size, policy.day_s, BPS, 0, "pieces")


def venues_to_ask(
    venues: tuple[VenueEvidence, ...], policy: Policy, launch: AnyLaunch | Missing | None = None
) -> list[int]:
    """The numbers of the venues where pieces can change the verdict.

    Pieces rank behind every venue that sells most of it at once. Beside such a venue only those of the
    cheapest one matter: whether the tokens bought there have an exit there.
    """
    readings = [read_venue(venue, policy, launch) for venue in venues]
    refusing = [number for number, reading in enumerate(readings) if needs_pieces(reading, policy)]
    if not any(_surely_sells_at_once(reading, policy) for reading in readings):
        return refusing
    bought = [number for number, reading in enumerate(readings) if reading.status == "bought"]
    cheapest = max(bought, key=lambda number: readings[number].brought_raw)
    return [number for number in refusing if number == cheapest]


def _surely_sells_at_once(reading: VenueReading, policy: Policy) -> bool:
    is_consistent = reading.status == "bought" and reading.inconsistent is False
    return is_consistent and group_of(reading, policy) < 2
