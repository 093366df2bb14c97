"""A sell that succeeded, read from its balances: the share that was sold and the loss, in bps."""

from collections.abc import Container
from dataclasses import dataclass, field

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import CellOutcome, Missing, RefusedCall, Sold


@dataclass(frozen=True, slots=True)
class Sale:
    """A sell that succeeded. ``share_bps``: the share of the bought amount that was sold, at most the
    requested one; ``whole``: all that was requested. ``loss_bps``: against the cost of the sold tokens,
    rounded up; below zero is a gain. ``sold_raw``: the amount of that share; 0: not known."""

    loss_bps: int
    share_bps: int
    whole: bool
    sold_raw: int = field(default=0, compare=False)


SellResult = Sale | RefusedCall | Missing | None
"""None: not tried, because there was no buy of that size."""


def loss_bps(paid_raw: int, back_raw: int) -> int:
    """The loss of ``paid_raw`` when ``back_raw`` comes back, rounded up. ``paid_raw`` must be above zero."""
    return -((back_raw - paid_raw) * BPS // paid_raw)


def sold_after_buy(outcome: CellOutcome, steps: Container[str]) -> Sold | Missing | None:
    """The sell after a buy that succeeded before. None: it was refused at one of ``steps``, or brought
    nothing. Missing where an earlier step was refused."""
    if isinstance(outcome, RefusedCall):
        return None if outcome.step in steps else Missing("token", "a buy that had worked before was refused")
    return None if isinstance(outcome, Sold) and outcome.back_raw <= 0 else outcome


def sell_result(outcome: CellOutcome, policy: Policy) -> SellResult:
    """The sell of a probe or of a wallet of the crowd."""
    if not isinstance(outcome, Sold):
        return outcome
    if outcome.sold_raw <= 0 or outcome.held_raw <= 0:
        return RefusedCall("sell", "the sell succeeded but moved no tokens", outcome.sell_gas)
    # The tax on a transfer to the seller is part of the cost of the tokens that could be sold.
    had_raw = outcome.held_raw if outcome.arrived_raw is None else outcome.arrived_raw
    cost_raw = max(1, outcome.paid_raw * outcome.sold_raw // max(1, had_raw))
    slack_raw = outcome.planned_raw * policy.whole_tolerance_bps // BPS
    # Tokens taken beyond the requested amount were not sold: they are part of the loss.
    share_raw = min(outcome.sold_raw, outcome.planned_raw)
    return Sale(
        loss_bps=loss_bps(cost_raw, outcome.back_raw),
        share_bps=min(BPS, -(-share_raw * BPS // outcome.held_raw)),
        whole=outcome.sold_raw >= outcome.planned_raw - slack_raw,
        sold_raw=share_raw,
    )
