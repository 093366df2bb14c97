"""The launchpad's bonding curve in integers: x * y = k over a phantom quote reserve.

Source: the launchpad's published formulas, tested against golden vectors of public logs. Each fee is rounded
down on its own; amounts are base units, shares hundredths of a percent.
"""

from dataclasses import dataclass

from roundtrip.domain.base.types import BPS

from .evidence import CompletedBuy, Curve

MAX_TAKEN_BPS = 9900
"""A buyer keeps at least one percent, whatever the snipe tax."""


@dataclass(frozen=True, slots=True)
class CurveBuy:
    """The result of a buy: ``spent_raw`` of the offer (the rest is refunded), and the tokens."""

    spent_raw: int
    tokens_raw: int


def _net(curve: Curve, quote_in_raw: int, snipe_bps: int) -> int:
    shares = (curve.fee_bps, curve.creator_tax_bps, snipe_bps)
    return quote_in_raw - sum(quote_in_raw * share // BPS for share in shares)


def buy(curve: Curve, quote_in_raw: int, snipe_bps: int) -> CurveBuy:
    """The buy of ``quote_in_raw``; the end of the sale caps it and refunds the rest."""
    snipe_bps = max(0, min(snipe_bps, MAX_TAKEN_BPS - curve.fee_bps - curve.creator_tax_bps))
    net = _net(curve, quote_in_raw, snipe_bps)
    tokens = net * curve.token_raw // (curve.quote_raw + net)
    sellable = curve.token_raw - curve.reserved_raw
    if tokens <= sellable:
        return CurveBuy(quote_in_raw, tokens)
    net = -(-curve.quote_raw * sellable // curve.reserved_raw)
    kept_bps = BPS - curve.fee_bps - curve.creator_tax_bps - snipe_bps
    return CurveBuy(min(quote_in_raw, -(-net * BPS // kept_bps)), sellable)


def after_buy(curve: Curve, bought: CurveBuy, snipe_bps: int) -> tuple[int, int]:
    """Quote (with its phantom part) and tokens in the curve after ``bought``."""
    snipe_bps = max(0, min(snipe_bps, MAX_TAKEN_BPS - curve.fee_bps - curve.creator_tax_bps))
    return curve.quote_raw + _net(curve, bought.spent_raw, snipe_bps), curve.token_raw - bought.tokens_raw


def sell(curve: Curve, quote_raw: int, token_raw: int, tokens_in_raw: int) -> int:
    """The quote that a curve with ``quote_raw`` and ``token_raw`` pays for ``tokens_in_raw``."""
    gross = tokens_in_raw * quote_raw // (token_raw + tokens_in_raw)
    return gross - gross * curve.fee_bps // BPS - gross * curve.creator_tax_bps // BPS


def fill_bps(curve: Curve, threshold_raw: int) -> int:
    """How full the curve is: the real quote as a share of the graduation threshold, at most all of it."""
    return raised_bps(curve.real_quote_raw, threshold_raw)


def raised_bps(raised_raw: int, threshold_raw: int) -> int:
    """Like ``fill_bps``, from the raised amount alone."""
    return min(BPS, raised_raw * BPS // threshold_raw) if threshold_raw > 0 else BPS


def round_trip_loss_bps(curve: Curve, bought: CompletedBuy) -> int | None:
    """The loss of selling all of ``bought`` straight back by the formula, rounded up; None unless the formula
    gives exactly that buy, or while the snipe tax applies, which differs from block to block."""
    if curve.snipe_bps or bought.closes:
        return None
    computed = buy(curve, bought.offered_raw, 0)
    if computed != CurveBuy(bought.paid_raw, bought.received_raw) or computed.spent_raw <= 0:
        return None
    back = sell(curve, *after_buy(curve, computed, 0), computed.tokens_raw)
    return -((back - computed.spent_raw) * BPS // computed.spent_raw)
