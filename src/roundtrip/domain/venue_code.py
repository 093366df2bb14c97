"""What trading on one venue costs, as a code and a level, and how venues are ranked."""

from dataclasses import dataclass
from typing import Literal

from .evidence import Missing
from .policy import Policy
from .readings import Sale, SellResult, VenueReading

Level = Literal["ok", "warn", "danger", "unknown"]
Rank = tuple[int, int]


def enough(result: SellResult, policy: Policy) -> bool:
    """True for a sell of at least the share that makes a token one that can be sold."""
    return isinstance(result, Sale) and result.share_bps >= policy.sellable_share_bps


def takes_sells(reading: VenueReading, policy: Policy) -> bool:
    """True when some probe sold enough within a day, and not only in one of two blocks like any other."""
    return reading.fickle is not True and any(enough(sell, policy) for sell in reading.sells())


def fee_like_bps(reading: VenueReading, policy: Policy) -> int:
    """The largest loss that is not price impact: of the small round trip, of a launch's first tax and of the
    sells that count.

    Those are all of it at once, after an hour and after a day; where not enough of it sells at once, half
    of it, and where that does not either, all of it from another wallet.
    """
    counting: list[SellResult] = [reading.full, reading.hour, reading.day]
    if not enough(reading.full, policy):
        counting.append(next((s for s in (reading.half, reading.handed_on) if enough(s, policy)), None))
    losses = [s.loss_bps for s in counting if isinstance(s, Sale) and enough(s, policy)]
    return max([_known(reading.fees_bps), _known(reading.first_tax_bps), *losses])


def _known(figure: int | Missing | None) -> int:
    return figure if isinstance(figure, int) else 0


@dataclass(frozen=True, slots=True)
class Parts:
    """Where a round trip's loss comes from: the pool's own keep, price impact, and the token's taxes."""

    worst_bps: int
    keep_bps: int
    impact_bps: int
    tax_bps: int

    def largest(self) -> str:
        """The code that the largest part names, before the line for danger."""
        named = {"toll_pool": self.keep_bps, "thin_pool": self.impact_bps, "high_fees": self.tax_bps}
        return max(named, key=lambda code: named[code])


def kept(reading: VenueReading) -> int:
    """What the pool keeps, as far as it is known."""
    return _known(reading.keep_bps)


def split(fee_like: int, impact_bps: int, keep_bps: int) -> Parts:
    """Losses told apart: of what is no price impact, the pool keeps its share and taxes are the rest."""
    return Parts(max(fee_like, impact_bps), keep_bps, impact_bps, max(0, fee_like - keep_bps))


def parts(reading: VenueReading, policy: Policy) -> Parts:
    """The worst loss of a venue that takes the sell, and its parts."""
    impact = reading.impact_bps if isinstance(reading.impact_bps, int) else 0
    return split(fee_like_bps(reading, policy), impact, kept(reading))


def code_of(reading: VenueReading, policy: Policy) -> tuple[str, Level]:
    """Code and level of a venue that takes the sell. Level ok needs all of it sold, at once and later."""
    code, level = code_of_parts(parts(reading, policy), policy)
    later = (reading.full, reading.hour, reading.day)
    steady = reading.refused_elsewhere is None and all(isinstance(s, Sale) and s.whole for s in later)
    if code == "ok" and not steady:
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


def rank(reading: VenueReading, policy: Policy) -> Rank:
    """Smaller is better: all of it sold at once, then most of it, then only a part or only later; within
    each by loss."""
    if isinstance(reading.full, Sale) and enough(reading.full, policy):
        return ranked(0 if reading.full.whole else 1, reading.full.loss_bps, reading, policy)
    return ranked(2, fee_like_bps(reading, policy), reading, policy)


def ranked(group: int, loss_bps: int, reading: VenueReading, policy: Policy) -> Rank:
    """The rank of a loss, in half bps. A hook that is not the launchpad's wins only by more than a margin:
    at exactly the margin the other venue does."""
    if reading.rival_hook:
        return group, 2 * (loss_bps + policy.rival_hook_margin_bps) + 1
    return group, 2 * loss_bps
