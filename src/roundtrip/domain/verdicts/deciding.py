"""The figure that decided a verdict's code. Every door that shows a figure beside the code shows this one: a
round trip of 0.60 % beside "High fees" would contradict it."""

from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base.figures import format_percent, format_sold_loss
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.crowd_text import victims_text
from roundtrip.domain.check.sales import Sale
from roundtrip.domain.check.venue_code import (
    at_once_bps,
    beside_bps,
    fee_like_bps,
    find_later_loss,
    is_lost_beside,
    parts,
)
from roundtrip.domain.check.venue_reading import VenueReading
from roundtrip.domain.check.verdict import Judgement

ROUND_TRIP = "A round trip costs"
_FEES = ("high_fees", "heavy_fees")
Kind = Literal["round_trip", "later", "others", "fees", "pool", "impact"]


@dataclass(frozen=True, slots=True)
class DecidingFigure:
    """``bps``: a loss. ``text``: a sentence with it, without the full stop. ``short``: its end, from the
    figure on. ``kind``: of which loss. ``round_trip``: of a round trip of the usual size, sold at once;
    ``later``: sold after an hour or a day; ``others``: of wallets of the crowd; ``fees``: what fees and taxes
    take; ``pool``: what the pool keeps; ``impact``: of the price, or between two pools."""

    kind: Kind
    bps: int
    text: str
    short: str

    def replaces_tax(self) -> bool:
        """True where neither a round trip's own loss nor the taxes show it: then it stands in place of the
        tax."""
        return self.kind in ("later", "others", "fees")


def deciding_figure(judgement: Judgement, policy: Policy) -> DecidingFigure | None:
    """The figure that decided the code; None: no figure did, or it was not measured."""
    if judgement.best is None:
        return None
    code, reading = judgement.verdict.code, judgement.readings[judgement.best]
    if is_lost_beside(reading, policy):
        takes = "The token takes" if reading.tax_beside_bps else "The pool keeps"
        return _figure("pool", beside_bps(reading), takes, " where a buy brings most")
    if code in _FEES:
        return _of_fees(reading, policy)
    losses = parts(reading, policy)
    if code == "toll_pool":
        return _figure("pool", losses.pool_fee_bps, "The pool keeps", " of a round trip")
    if code == "thin_pool" and losses.impact_bps == reading.impact_bps:
        return _figure("impact", losses.impact_bps, "You get", " fewer tokens than in a small buy")
    if code == "thin_pool":
        return _figure("impact", losses.impact_bps, "Selling it on the other pool loses")
    return _of_round_trip(reading.full) if code == "ok" and isinstance(reading.full, Sale) else None


def explains(code: str, loss_bps: int, policy: Policy) -> bool:
    """Whether the loss of a round trip may stand beside the code, where only the loss is stored. One below
    the line of the code did not decide it: another figure did."""
    line_bps = {"toll_pool": policy.toll_warn_bps, "heavy_fees": policy.danger_loss_bps}
    return code == "ok" or loss_bps >= line_bps.get(code, policy.warn_loss_bps)


def _of_fees(reading: VenueReading, policy: Policy) -> DecidingFigure:
    """The largest of what fees and taxes take, and who loses that."""
    worst_bps, full = fee_like_bps(reading, policy), reading.full
    if isinstance(full, Sale) and full.loss_bps == worst_bps:
        return _of_round_trip(full)
    if when := find_later_loss(reading, worst_bps):
        return _figure("later", worst_bps, ROUND_TRIP, f" after {when}")
    if worst_bps > at_once_bps(reading) and (victims := victims_text(reading.crowd, worst_bps)):
        return _figure("others", worst_bps, ROUND_TRIP, victims)
    return _figure("fees", worst_bps, "Fees and taxes take")


def _of_round_trip(full: Sale) -> DecidingFigure:
    short = format_sold_loss(full.loss_bps, BPS if full.whole else full.share_bps)
    return DecidingFigure("round_trip", full.loss_bps, f"{ROUND_TRIP} {short}", short)


def _figure(kind: Kind, bps: int, before: str, after: str = "") -> DecidingFigure:
    short = f"{format_percent(bps)}{after}"
    return DecidingFigure(kind, bps, f"{before} {short}", short)
