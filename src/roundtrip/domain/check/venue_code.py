"""What trading on one venue costs, as a code and a level, and how venues are ranked."""

from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import Missing, RefusedCall
from .venue_reading import Sale, SellResult, VenueReading

Level = Literal["ok", "warn", "danger", "unknown"]
Rank = tuple[int, int, bool]


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
    of it.
    """
    counting: list[SellResult] = [reading.full, reading.hour, reading.day]
    if not enough(reading.full, policy):
        counting.append(reading.half)
    losses = [s.loss_bps for s in counting if isinstance(s, Sale) and enough(s, policy)]
    return max([_bps_or_zero(reading.fees_bps), _bps_or_zero(reading.first_tax_bps), *losses])


def _bps_or_zero(figure: int | Missing | None) -> int:
    return figure if isinstance(figure, int) else 0


@dataclass(frozen=True, slots=True)
class LossParts:
    """Where a round trip's loss comes from: the pool's own keep, price impact, and the token's taxes."""

    worst_bps: int
    keep_bps: int
    impact_bps: int
    tax_bps: int

    def largest(self) -> str:
        """The code that the largest part names, before the line for danger."""
        named = {"toll_pool": self.keep_bps, "thin_pool": self.impact_bps, "high_fees": self.tax_bps}
        return max(named, key=lambda code: named[code])


def pool_fee_of(reading: VenueReading) -> int:
    """What the pool keeps, as far as it is known."""
    return _bps_or_zero(reading.keep_bps)


def split(fee_like: int, impact_bps: int, keep_bps: int) -> LossParts:
    """Losses told apart: of what is no price impact, the pool keeps its share and taxes are the rest."""
    return LossParts(max(fee_like, impact_bps), keep_bps, impact_bps, max(0, fee_like - keep_bps))


def parts(reading: VenueReading, policy: Policy) -> LossParts:
    """The worst loss of a venue that takes the sell, and its parts. A bad way out counts as price impact."""
    impact = max(_bps_or_zero(reading.impact_bps), _bps_or_zero(reading.exit_bps))
    return split(fee_like_bps(reading, policy), impact, pool_fee_of(reading))


def code_of(reading: VenueReading, policy: Policy) -> tuple[str, Level]:
    """Code and level of a venue that takes the sell. Level ok needs a buy of the usual size, and all of it
    sold, at once and later, and of ten times that size too."""
    code, level = code_of_parts(parts(reading, policy), policy)
    # What could not be found out of them is no pass either.
    beside = (reading.half, reading.sliver, reading.large)
    shaky = any(isinstance(sell, RefusedCall | Missing) for sell in beside) or reading.size != "probe"
    shaky = shaky or reading.refused_elsewhere is not None or reading.closing
    if code == "ok" and (shaky or group_of(reading, policy) != 0):
        return code, "warn"
    return code, level


def code_of_parts(parts: LossParts, policy: Policy) -> tuple[str, Level]:
    """Code and level by the losses alone."""
    if parts.worst_bps >= policy.warn_loss_bps:
        code = parts.largest()
        danger = parts.worst_bps >= policy.danger_loss_bps
        if code == "high_fees" and danger:
            code = "heavy_fees"
        return code, "danger" if danger else "warn"
    if parts.keep_bps >= policy.toll_warn_bps:
        return "toll_pool", "warn"
    return "ok", "ok"


def group_of(reading: VenueReading, policy: Policy) -> int:
    """0: all of it sold, at once, after an hour and after a day. 1: most of it at once. 2: only a part, or
    only later."""
    if not enough(reading.full, policy):
        return 2
    later = (reading.full, reading.hour, reading.day)
    return 0 if all(isinstance(sell, Sale) and sell.whole for sell in later) else 1


def rank(reading: VenueReading, policy: Policy) -> Rank:
    """Smaller is better: first what sells in whole and lasts, then by how much is had in the end."""
    return rank_of(group_of(reading, policy), parts(reading, policy).worst_bps, reading, policy)


def rank_of(group: int, worst_bps: int, reading: VenueReading, policy: Policy) -> Rank:
    """The rank of a venue that loses ``worst_bps``: what it brings times what is left of it.

    By the loss alone a pool at an absurd price would win: what is bought there at a thousandfold sells back
    there for nearly all of it. A hook that is not the launchpad's wins only by more than a margin.
    """
    margin = policy.rival_hook_margin_bps if reading.rival_hook else 0
    return group, -reading.brought_raw * (BPS - worst_bps - margin), reading.rival_hook
