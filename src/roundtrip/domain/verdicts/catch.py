"""The catch of a token that sells: what a verdict's code ok does not say."""

from typing import Literal

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.check.cost import cost_of
from roundtrip.domain.check.evidence import Evidence, RefusedCall
from roundtrip.domain.check.sales import Sale, SellResult
from roundtrip.domain.check.venue_code import enough, sells_in_pieces_only
from roundtrip.domain.check.venue_reading import VenueReading
from roundtrip.domain.check.verdict import Judgement

Catch = Literal["hour", "day", "later", "parts", "tax", "loss", "curve"]
"""hour, day: it sells at once, and no longer then. later: it sells only later. parts: it does not sell all at
once. tax, loss: it takes ``MARKED_LOSS_BPS`` or more. curve: a buy of the usual size would
sell its curve out."""
MARKED_LOSS_BPS = 500
"""A tax or a loss from here on is never shown as good, though the verdict allows more."""


def find_catch(evidence: Evidence, judgement: Judgement, policy: Policy) -> Catch | None:
    """The worst catch of a token with the code ok; None: none was found, or it has another code."""
    if judgement.verdict.code != "ok" or judgement.best is None:
        return None
    reading = judgement.readings[judgement.best]
    return _find_limit(reading, policy) or _find_price(evidence, judgement.best, reading)


def _find_limit(reading: VenueReading, policy: Policy) -> Catch | None:
    if enough(reading.full, policy):
        if _fails(reading.hour, policy):
            return "hour"
        return "day" if _fails(reading.day, policy) else None
    if enough(reading.half, policy) or sells_in_pieces_only(reading, policy):
        return "parts"
    return "later" if enough(reading.hour, policy) or enough(reading.day, policy) else None


def _fails(sell: SellResult, policy: Policy) -> bool:
    """True for a sell that was tried and did not sell enough. A missing result is no refusal."""
    return isinstance(sell, RefusedCall) or (isinstance(sell, Sale) and not enough(sell, policy))


def _find_price(evidence: Evidence, number: int, reading: VenueReading) -> Catch | None:
    cost = cost_of(evidence, number, reading)
    taxes = () if cost is None else (cost.tax_bps, cost.buy_tax_bps, cost.sell_tax_bps)
    if max([tax for tax in taxes if tax is not None], default=0) >= MARKED_LOSS_BPS:
        return "tax"
    losses = [sell.loss_bps for sell in (reading.full, reading.hour, reading.day) if isinstance(sell, Sale)]
    if max(losses, default=0) >= MARKED_LOSS_BPS:
        return "loss"
    return "curve" if reading.closing else None
