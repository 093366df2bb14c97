"""One venue's evidence read into the few figures a verdict is made of. Losses are in bps."""

from dataclasses import dataclass
from typing import Literal

from .evidence import Bought, BuyOutcome, CellOutcome, Missing, Refused, Size, Sold, VenueEvidence
from .policy import Policy
from .types import BPS

PIPS = 1_000_000


@dataclass(frozen=True, slots=True)
class Sale:
    """A sell that went through. ``share_bps`` of what was bought left the wallet; ``whole``: all that
    the sell was asked for. ``loss_bps`` is against what that share had cost, rounded up; below zero
    is a gain."""

    loss_bps: int
    share_bps: int
    whole: bool


SellResult = Sale | Refused | Missing | None
"""None: not asked, because the venue did not buy at that size."""

Status = Literal["absent", "dry", "refused", "bought"]


@dataclass(frozen=True, slots=True)
class VenueReading:
    """What one venue showed. ``status`` Missing: it is not known whether it takes a buy.

    absent: no such pool. dry: a pool without liquidity that fills. refused: it will not sell us any.
    """

    status: Status | Missing
    keep_bps: int
    size: Size | None = None
    bought: Bought | None = None
    buy_refusal: Refused | None = None
    full: SellResult = None
    hour: SellResult = None
    day: SellResult = None
    half: SellResult = None
    sliver: SellResult = None
    handed_on: SellResult = None
    large: SellResult = None
    fees_bps: int | Missing | None = None
    impact_bps: int | Missing | None = None
    most_gas: int = 0

    def sells(self) -> tuple[SellResult, ...]:
        """Every probe that might show that what was bought can be sold within a day."""
        return (self.full, self.hour, self.day, self.half, self.sliver, self.handed_on)


def loss_bps(paid_raw: int, back_raw: int) -> int:
    """What is lost of ``paid_raw`` when ``back_raw`` comes back, rounded up. ``paid_raw`` above zero."""
    return -((back_raw - paid_raw) * BPS // paid_raw)


def pool_keep_bps(fee_pips: int) -> int:
    """What the pool's own fee keeps of a round trip, rounded up: 1 - (1 - fee)^2."""
    kept = PIPS * PIPS - (PIPS - fee_pips) ** 2
    return -(-kept * BPS // (PIPS * PIPS))


def read_venue(venue: VenueEvidence, policy: Policy) -> VenueReading:
    """The figures of one venue. Pieces that could not be found out stay Missing."""
    keep = pool_keep_bps(venue.venue.fee_pips)
    status, size = _status(venue)
    if status != "bought" or size is None:
        refusal = next((b.outcome for b in venue.buys if isinstance(b.outcome, Refused)), None)
        return VenueReading(status=status, keep_bps=keep, buy_refusal=refusal)

    def result(delay_s: int, share_bps: int, seller: str = "buyer", at: Size = size) -> SellResult:
        return _worst(
            [
                _sell_result(cell.outcome, policy)
                for cell in venue.cells
                if (cell.probe.size, cell.probe.delay_s, cell.probe.share_bps, cell.probe.seller)
                == (at, delay_s, share_bps, seller)
            ]
        )

    bought = _buy(venue, size)
    assert isinstance(bought, Bought)
    fees = result(policy.later_s, BPS, at="thousandth")
    return VenueReading(
        status="bought",
        keep_bps=keep,
        size=size,
        bought=bought,
        full=result(policy.later_s, BPS),
        hour=result(policy.hour_s, BPS),
        day=result(policy.day_s, BPS),
        half=result(policy.later_s, policy.half_bps),
        sliver=result(policy.later_s, policy.sliver_bps),
        handed_on=result(policy.later_s, BPS, seller="receiver"),
        large=result(policy.later_s, BPS, at="large"),
        fees_bps=fees.loss_bps if isinstance(fees, Sale) else fees if isinstance(fees, Missing) else None,
        impact_bps=_impact(bought, _buy(venue, "thousandth")),
        most_gas=_most_gas(venue, size),
    )


def buy_sizes(policy: Policy) -> tuple[tuple[Size, int], ...]:
    """The sizes a venue is bought at, largest acceptable first, with what divides the probe."""
    return (("probe", 1), ("tenth", policy.smaller_divisors[0]), ("hundredth", policy.smaller_divisors[1]))


def _buy(venue: VenueEvidence, size: Size, environment: int = 0) -> BuyOutcome | None:
    found = (b.outcome for b in venue.buys if b.size == size and b.environment == environment)
    return next(found, None)


def main_size(venue: VenueEvidence) -> Size | Missing | None:
    """The largest size, from the probe down, that the venue filled; Missing when a larger one is unknown."""
    for size in ("probe", "tenth", "hundredth"):
        outcome = _buy(venue, size)
        if isinstance(outcome, Missing):
            return outcome
        if isinstance(outcome, Bought) and filled(outcome):
            return size
    return None


def filled(buy: Bought) -> bool:
    """True when the pool took what was offered, not only a part, and gave tokens for it."""
    return buy.received_raw > 0 and buy.paid_raw * 100 >= buy.offered_raw * 99


def _status(venue: VenueEvidence) -> tuple[Status | Missing, Size | None]:
    size = main_size(venue)
    if isinstance(size, str):
        return "bought", size
    facts = venue.facts
    if not isinstance(facts, Missing) and not facts.exists:
        return "absent", None
    if size is not None:
        return size, None
    if isinstance(facts, Missing):
        return facts, None
    partly = any(isinstance(b.outcome, Bought) for b in venue.buys)
    dry = facts.sqrt_price_x96 == 0 or facts.liquidity == 0 or partly
    return ("dry" if dry else "refused"), None


def _sell_result(outcome: CellOutcome, policy: Policy) -> SellResult:
    if not isinstance(outcome, Sold):
        return outcome
    if outcome.sold_raw <= 0 or outcome.bought_raw <= 0:
        return Refused("sell", "the sell went through and moved nothing", outcome.sell_gas)
    cost_raw = max(1, outcome.paid_raw * outcome.sold_raw // outcome.bought_raw)
    slack_raw = outcome.planned_raw * policy.whole_tolerance_bps // BPS
    return Sale(
        loss_bps=loss_bps(cost_raw, outcome.back_raw),
        share_bps=min(BPS, -(-outcome.sold_raw * BPS // outcome.bought_raw)),
        whole=outcome.sold_raw >= outcome.planned_raw - slack_raw,
    )


def _worst(results: list[SellResult]) -> SellResult:
    """The worse of several environments: refused, then unknown, then the larger loss."""
    known = [r for r in results if r is not None]
    for kind in (Refused, Missing):
        for result in known:
            if isinstance(result, kind):
                return result
    sales = [r for r in known if isinstance(r, Sale)]
    return max(sales, key=lambda sale: (not sale.whole, sale.loss_bps), default=None)


def _impact(main: Bought, small: BuyOutcome | None) -> int | Missing | None:
    """How much less a unit paid buys at the judged size than at a thousandth of the probe."""
    if isinstance(small, Missing):
        return small
    if not isinstance(small, Bought) or small.received_raw == 0 or small.paid_raw == 0:
        return None
    best = small.received_raw * main.paid_raw
    got = main.received_raw * small.paid_raw
    return max(0, loss_bps(best, got))


def _most_gas(venue: VenueEvidence, size: Size) -> int:
    legs = [0]
    for cell in venue.cells:
        if cell.probe.size == size and isinstance(cell.outcome, Sold):
            legs += [cell.outcome.buy_gas, cell.outcome.sell_gas]
    return max(legs)


def takes_sells(reading: VenueReading, policy: Policy) -> bool:
    """True when some probe sold at least half of what was bought, within a day."""
    return any(isinstance(s, Sale) and s.share_bps >= policy.sellable_share_bps for s in reading.sells())


def sale_losses(reading: VenueReading) -> list[int]:
    """The losses that count: all of it at once, after an hour, after a day; else the best part sold."""
    losses = [s.loss_bps for s in (reading.full, reading.hour, reading.day) if isinstance(s, Sale)]
    if not isinstance(reading.full, Sale):
        losses += [s.loss_bps for s in (reading.half, reading.handed_on) if isinstance(s, Sale)][:1]
    return losses


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


def parts(reading: VenueReading) -> Parts:
    """The worst loss of a venue that takes the sell, and its parts."""
    impact = reading.impact_bps if isinstance(reading.impact_bps, int) else 0
    return split(fee_like_bps(reading), impact, reading.keep_bps)


def fee_like_bps(reading: VenueReading) -> int:
    """The largest loss that is not price impact: of the small round trip, and of every sell that counts."""
    fees = reading.fees_bps if isinstance(reading.fees_bps, int) else 0
    return max([fees, *sale_losses(reading)])


def split(fee_like: int, impact_bps: int, keep_bps: int) -> Parts:
    """Losses told apart: of what is no price impact, the pool keeps its share and taxes are the rest."""
    return Parts(max(fee_like, impact_bps), keep_bps, impact_bps, max(0, fee_like - keep_bps))


def sells_whole_and_later(reading: VenueReading) -> bool:
    """True when all of it sells in the later block, after an hour and after a day."""
    return all(isinstance(s, Sale) and s.whole for s in (reading.full, reading.hour, reading.day))
