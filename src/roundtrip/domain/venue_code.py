"""What trading on one venue costs, as a code and a level, and how venues are ranked."""

from typing import Literal

from .policy import Policy
from .readings import Parts, Sale, VenueReading, parts, sells_whole_and_later

Level = Literal["ok", "warn", "danger", "unknown"]


def code_of(reading: VenueReading, policy: Policy) -> tuple[str, Level]:
    """Code and level of a venue that takes the sell."""
    code, level = code_of_parts(parts(reading), policy)
    if code == "ok" and not sells_whole_and_later(reading):
        return code, "warn"
    return code, level


def code_of_parts(found: Parts, policy: Policy) -> tuple[str, Level]:
    """Code and level by the losses alone."""
    if found.worst_bps >= policy.warn_loss_bps:
        code = found.largest()
        danger = found.worst_bps >= policy.danger_loss_bps
        if code == "high_fees" and danger:
            code = "heavy_fees"
        return code, "danger" if danger else "warn"
    if found.keep_bps >= policy.toll_warn_bps:
        return "toll_pool", "warn"
    return "ok", "ok"


def rank(reading: VenueReading) -> tuple[int, int]:
    """Smaller is better: all of it sold at once, then most of it, then only a part or only later; within
    each, by the loss in bps."""
    if isinstance(reading.full, Sale):
        return (0 if reading.full.whole else 1), reading.full.loss_bps
    return 2, min(s.loss_bps for s in reading.sells() if isinstance(s, Sale))
