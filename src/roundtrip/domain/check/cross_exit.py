"""Whether tokens bought on the cheapest venue can be sold on any venue.

A token whose cheapest pool refuses sells may have another pool that takes back only what was bought in it, at
any price, out of the buyer's own money. That is no exit. So where the cheapest venue refuses the sell, tokens
bought there are sold on the other venues, and the loss counts as theirs. Where it takes the sell and much is
lost there, the tokens are sold on the others, too: where that loses much as well, the smaller of both losses
counts as theirs. Otherwise their losses stay, and if the token takes much there, the verdict says so.

What other wallets meet, and sells with more and less gas, are tried where a buy brings most. On any other
venue they are unknown unless they were tried there, too: so a second pool hides nothing.
"""

from collections.abc import Sequence
from dataclasses import replace

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import CellOutcome, Evidence, MarketRates, Missing, Sold, VenueEvidence
from .price import quote_in_wei
from .sales import loss_bps
from .venue_code import fee_like_bps, parts, takes_sells, tie_order
from .venue_reading import VenueReading

_UNSURE = Missing("node", "it is unknown whether it sells on the cheapest pool")
_UNTRIED = Missing("node", "what other wallets meet was tried in another pool only")


def with_exits(
    evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy
) -> tuple[VenueReading, ...]:
    """The readings, each with the loss of selling on its venue what was bought on the cheapest, and with what
    was tried on another venue only."""
    return _with_untried(_with_losses(evidence, readings, policy))


def _with_untried(readings: tuple[VenueReading, ...]) -> tuple[VenueReading, ...]:
    """The readings, where sells beside the main wallet's are Missing if they were tried elsewhere only."""
    if not any(map(is_tried_beside, readings)):
        return readings
    return tuple(
        reading
        if is_tried_beside(reading) or reading.status != "bought"
        else replace(
            reading,
            much_gas=_UNTRIED,
            little_gas=_UNTRIED,
            traded_before=_UNTRIED,
            handed_on=reading.handed_on or _UNTRIED,
        )
        for reading in readings
    )


def is_tried_beside(reading: VenueReading) -> bool:
    """Whether sells beside the main wallet's were tried on the venue."""
    return reading.much_gas is not None


def _with_losses(
    evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy
) -> tuple[VenueReading, ...]:
    """The readings, each with the loss of selling on its venue what was bought on the cheapest."""
    cheapest = cheapest_of(evidence.venues, readings, evidence.market, policy)
    if cheapest is None:
        return readings
    sells = _sells(readings[cheapest], policy)
    if sells is True:
        return tuple(
            reading if number == cheapest else _beside_seller(evidence, readings, cheapest, number, policy)
            for number, reading in enumerate(readings)
        )
    judged = list(readings)
    for number, reading in enumerate(readings):
        if number != cheapest and reading.status == "bought":
            venue = evidence.venues[number]
            lost = _loss_bps(evidence, cheapest, number, venue.crossed, policy)
            large = _loss_bps(evidence, cheapest, number, venue.crossed_large, policy)
            cross_venue_loss_bps = lost if sells is False or lost == 0 else _UNSURE
            judged[number] = replace(
                reading,
                cross_venue_loss_bps=cross_venue_loss_bps,
                cross_venue_large_loss_bps=large if isinstance(large, int) and venue.crossed_large else None,
                trap_beside=cheapest if sells is False else None,
            )
    return tuple(judged)


def cheapest_of(
    venues: Sequence[VenueEvidence], readings: Sequence[VenueReading], market: MarketRates, policy: Policy
) -> int | None:
    """The number of the venue where a buy brings most; None: nothing was bought.

    Amounts within 0.01 % are equal, since a router may choose either: of these one that refuses sells comes
    first, then one of which it is not known, then one where the token takes so much that it is warned of, or
    the pool does, then the larger amount, and last the fixed order of equal ones.
    """
    order = tie_order(venues, market)

    def key(number: int) -> tuple[int, int, int]:
        sells = _sells(readings[number], policy)
        losses = parts(readings[number], policy).tax_bps, fee_like_bps(readings[number], policy)
        cheap = sum(loss_bps < policy.warn_loss_bps for loss_bps in losses)
        worst_first = 0 if sells is False else 2 + cheap if sells is True else 1
        return worst_first, -readings[number].brought_raw, order[number]

    return min(_equally_cheap(readings), key=key, default=None)


def may_be_cheapest(readings: Sequence[VenueReading], policy: Policy) -> list[int]:
    """The venues, of those where a buy brings equally most, that take no sell as far as is known: each may be
    the cheapest one when smaller sells were tried, too."""
    return [number for number in _equally_cheap(readings) if _sells(readings[number], policy) is not True]


def _equally_cheap(readings: Sequence[VenueReading]) -> list[int]:
    bought = {
        number: reading.brought_raw for number, reading in enumerate(readings) if reading.status == "bought"
    }
    equal_raw = max(bought.values(), default=0) * (BPS - 1)
    return [number for number, raw in bought.items() if raw * BPS >= equal_raw]


def _sells(reading: VenueReading, policy: Policy) -> bool | Missing:
    """Whether a venue takes the sell; Missing where a missing piece could change that."""
    unknown = next(
        (piece for piece in (reading.inconsistent, *reading.sells()) if isinstance(piece, Missing)), None
    )
    if reading.inconsistent is True:
        return False
    if takes_sells(reading, policy):
        return True if reading.inconsistent is False else _UNSURE
    return False if unknown is None else unknown


def _may_lose_more(cheapest: VenueReading, other: VenueReading, policy: Policy) -> bool:
    """Whether the token takes at least ``warn_loss_bps`` of a round trip on the cheapest venue, and much more
    than on the other; True also where that is not known. What the venue itself keeps does not count: any
    stranger can open a pool with a toll."""
    lost_bps = parts(cheapest, policy).tax_bps
    figures = (*cheapest.whole_sells(), *cheapest.nearly_sells(), cheapest.fees_bps, cheapest.first_tax_bps)
    return any(isinstance(figure, Missing) for figure in figures) or (
        lost_bps >= policy.warn_loss_bps and lost_bps > parts(other, policy).tax_bps + policy.crowd_margin_bps
    )


def loses_much(reading: VenueReading, policy: Policy) -> bool:
    """Whether at least ``warn_loss_bps`` of a round trip are lost on the venue, to the token or to the
    pool."""
    return fee_like_bps(reading, policy) >= policy.warn_loss_bps


def _beside_seller(
    evidence: Evidence, readings: Sequence[VenueReading], cheapest: int, number: int, policy: Policy
) -> VenueReading:
    """The reading of venue ``number`` beside a cheapest venue that takes the sell. Where much is lost there,
    and what was bought there loses much here, too, the smaller of both losses counts: buyers there cannot
    escape it by selling here."""
    own, reading = readings[cheapest], readings[number]
    if reading.status == "bought" and loses_much(own, policy):
        lost = _loss_bps(evidence, cheapest, number, evidence.venues[number].crossed, policy)
        if isinstance(lost, Missing):
            return replace(reading, trap_beside=cheapest)
        if lost >= policy.warn_loss_bps:
            counted_bps, losses = min(lost, fee_like_bps(own, policy)), parts(own, policy)
            if losses.tax_bps >= losses.pool_fee_bps:
                return replace(reading, trap_beside=cheapest, tax_beside_bps=counted_bps)
            return replace(reading, trap_beside=cheapest, toll_beside_bps=counted_bps)
    return replace(reading, trap_beside=cheapest) if _may_lose_more(own, reading, policy) else reading


def _loss_bps(
    evidence: Evidence, cheapest: int, number: int, outcome: CellOutcome | None, policy: Policy
) -> int | Missing:
    """The loss of what was bought on venue ``cheapest`` and sold on venue ``number``, valued in eth."""
    if isinstance(outcome, Missing):
        return outcome
    if not isinstance(outcome, Sold):
        # The buy was refused this time: that proves nothing for or against an exit.
        return BPS if outcome is not None and outcome.step not in ("fund", "buy", "arrive") else 0
    paid, back = (evidence.venues[index].venue.quote for index in (cheapest, number))
    paid_wei = quote_in_wei(outcome.paid_raw, paid, evidence.market)
    back_wei = quote_in_wei(outcome.back_raw, back, evidence.market)
    if paid_wei is None or back_wei is None or paid_wei <= 0:
        return _UNSURE
    sold_bps = outcome.sold_raw * BPS // max(1, outcome.held_raw)
    return BPS if sold_bps < policy.sellable_share_bps else max(0, loss_bps(paid_wei, back_wei))
