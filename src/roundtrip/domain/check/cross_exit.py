"""Whether what is bought where it is cheapest can be sold somewhere at all.

A token whose cheapest pool refuses sells may have another pool that takes back what was bought in itself, at
any price, out of the buyer's own money. That is no way out. So where the cheapest venue does not take the
sell, what was bought there is sold on the others, and what is lost so counts as theirs.
"""

from dataclasses import replace

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import CellOutcome, Evidence, Missing, Sold
from .price import quote_in_wei
from .venue_code import takes_sells
from .venue_reading import VenueReading, loss_bps

_UNSURE = Missing("node", "whether it sells where it is cheapest is not known")


def with_exits(
    evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy
) -> tuple[VenueReading, ...]:
    """The readings, each with what is lost on the way out by its venue."""
    bought = [number for number, reading in enumerate(readings) if reading.status == "bought"]
    if len(bought) < 2:
        return readings
    cheapest = max(bought, key=lambda number: readings[number].brought_raw)
    sells = _sells(readings[cheapest], policy)
    if sells is True:
        return readings
    judged = list(readings)
    for number in bought:
        if number != cheapest:
            lost = _loss_bps(evidence, cheapest, number, policy)
            exit_bps = lost if sells is False or lost == 0 else _UNSURE
            judged[number] = replace(readings[number], exit_bps=exit_bps)
    return tuple(judged)


def _sells(reading: VenueReading, policy: Policy) -> bool | Missing:
    """Whether a venue takes the sell, so far as no missing piece could tell otherwise."""
    unknown = next(
        (piece for piece in (reading.fickle, *reading.sells()) if isinstance(piece, Missing)), None
    )
    if reading.fickle is True:
        return False
    if takes_sells(reading, policy):
        return True if reading.fickle is False else _UNSURE
    return False if unknown is None else unknown


def _loss_bps(evidence: Evidence, cheapest: int, number: int, policy: Policy) -> int | Missing:
    outcome: CellOutcome | None = evidence.venues[number].crossed
    if isinstance(outcome, Missing):
        return outcome
    if not isinstance(outcome, Sold):
        # The buy itself was refused this time: nothing was shown of a way out, nor against one.
        return BPS if outcome is not None and outcome.step not in ("fund", "buy", "arrive") else 0
    paid, back = (evidence.venues[index].venue.quote for index in (cheapest, number))
    paid_wei = quote_in_wei(outcome.paid_raw, paid, evidence.market)
    back_wei = quote_in_wei(outcome.back_raw, back, evidence.market)
    if paid_wei is None or back_wei is None or paid_wei <= 0:
        return _UNSURE
    sold_bps = outcome.sold_raw * BPS // max(1, outcome.held_raw)
    return BPS if sold_bps < policy.sellable_share_bps else max(0, loss_bps(paid_wei, back_wei))
