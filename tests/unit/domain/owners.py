"""Calls of an owner, for tests."""

from typing import Literal

from roundtrip.domain.check.evidence import CellOutcome, OwnerCall
from unit.domain.builders import OWNER, POOL


def call(
    outcome: CellOutcome | None, function: str = "f()", by: Literal["owner", "proxy admin"] = "owner"
) -> OwnerCall:
    """One that was taken, with what the sell came to; None: it was refused."""
    return OwnerCall(function, "", by, OWNER, POOL, () if outcome is None else ("0x26121ff0",), outcome)
