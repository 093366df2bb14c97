"""What came of an owner's calls, as evidence has it."""

from roundtrip.domain.check.evidence import CellOutcome, OwnerCall, OwnerCalls
from unit.domain.builders import sold


def known(*tried: OwnerCall, control: CellOutcome | None = None, left_out: int = 0) -> OwnerCalls:
    return OwnerCalls(0, control or sold(), tried, left_out)
