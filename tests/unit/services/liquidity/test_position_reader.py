"""Which positions of a pool are read where there are too many."""

from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.depth import Position
from roundtrip.services.liquidity.position_reader import in_range_first
from roundtrip.venues.positions import NO_STATE
from unit.venues.network import address

OWNER: Address = address(0x51)
WIDE, NARROW, SMALL = (
    Position(OWNER, 0, lower, upper, liquidity, OWNER)
    for lower, upper, liquidity in ((60, 120, 9_000), (-60, 60, 500), (-120, 60, 20))
)


def test_large_positions_out_of_range_displace_none_in_range() -> None:
    assert in_range_first((WIDE, NARROW, SMALL), NO_STATE._replace(tick=0)) == (NARROW, SMALL, WIDE)
    assert in_range_first((WIDE, NARROW, SMALL), None) == (WIDE, NARROW, SMALL)
