"""How a token treats its holders, read from simulated sells of real holders' tokens: a trap may spare
wallets that it has never seen.

Each holder sells in place of the check's own wallet, in the same block, after the same buy, in the same pool:
fees, taxes and price impact are the same for both. A lower result per token is a loss of that holder.
"""

from dataclasses import dataclass

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_count, format_percent
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, Address

from .evidence import CellOutcome, HolderSell, HolderSells, Missing, Sold
from .sales import loss_bps, sold_after_buy

_STEPS_AFTER_BUY = ("approve", "sell")


@dataclass(frozen=True, slots=True)
class HolderSellFindings:
    """``known``: holders with a result. ``refused`` of them cannot sell within a day, ``robbed`` lose at
    least the danger line, ``waiting`` can sell only after a day. ``worst_bps``: the largest loss of a holder
    that can sell."""

    known: int
    refused: int
    robbed: int
    waiting: int
    worst_bps: int

    def caught(self) -> int:
        """How many fare far worse than a fresh wallet."""
        return self.refused + self.robbed


def lost_bps(control: Sold, outcome: CellOutcome) -> int | Missing | None:
    """A holder's loss against what the check's own wallet got for as many tokens; None where the holder
    cannot sell. Below zero: the holder got more, as a smaller sell does."""
    sold = sold_after_buy(outcome, _STEPS_AFTER_BUY)
    if not isinstance(sold, Sold):
        return sold
    fair_raw = control.back_raw * sold.planned_raw // max(1, control.planned_raw)
    return loss_bps(max(1, fair_raw), sold.back_raw)


def judge_holder_sells(sells: HolderSells, policy: Policy) -> HolderSellFindings:
    """Counts the results of the holders that were tried."""
    lost = [loss for loss in _losses(sells) if not isinstance(loss, Missing)]
    sold = [loss for loss in lost if loss is not None]
    robbed = [loss for loss in sold if loss >= policy.danger_loss_bps]
    waiting = sum(
        sell.later is not None and isinstance(_loss_of(sells.control, sell), int) for sell in sells.tried
    )
    return HolderSellFindings(len(lost), len(lost) - len(sold), len(robbed), waiting, max(sold, default=0))


def find_caught(sells: HolderSells, policy: Policy) -> tuple[frozenset[Address], frozenset[Address]]:
    """The holders that fare far worse than a fresh wallet, and those that do not; one whose result is not
    known is neither."""
    losses = {
        sell.holder: loss
        for sell, loss in zip(sells.tried, _losses(sells), strict=True)
        if not isinstance(loss, Missing)
    }
    caught = {holder for holder, loss in losses.items() if loss is None or loss >= policy.danger_loss_bps}
    return frozenset(caught), frozenset(losses.keys() - caught)


def traps(sells: HolderSells | Missing | None, policy: Policy) -> frozenset[bool]:
    """Whether enough holders are caught, for every value of the missing results: from none of the holders
    without a result to all of them."""
    if sells is None:
        return frozenset({False})
    if isinstance(sells, Missing):
        return frozenset({False, True})
    findings = judge_holder_sells(sells, policy)
    tried = len(sells.tried)
    return frozenset(
        caught >= policy.least_caught and caught * BPS >= tried * policy.caught_share_bps
        for caught in range(findings.caught(), findings.caught() + tried - findings.known + 1)
    )


def gaps(sells: HolderSells | Missing | None) -> list[Missing]:
    """The missing results."""
    if isinstance(sells, Missing):
        return [sells]
    return [] if sells is None else [loss for loss in _losses(sells) if isinstance(loss, Missing)]


def _hold_too_little(sells: HolderSells, policy: Policy) -> bool:
    """Whether so few of many known holders hold enough to be tried that they say nothing. That is no warning:
    anybody can send on what he bought, from many wallets."""
    return sells.known >= policy.most_holders and len(sells.tried) < policy.least_caught


def warns(sells: HolderSells | Missing | None, policy: Policy) -> bool:
    """Whether a holder is caught, loses at least the warning line, or has no result, which is no pass."""
    if not isinstance(sells, HolderSells):
        return False
    findings = judge_holder_sells(sells, policy)
    return (
        bool(gaps(sells))
        or findings.caught() + findings.waiting > 0
        or findings.worst_bps >= policy.warn_loss_bps
    )


def holder_sentence(sells: HolderSells | Missing | None, policy: Policy) -> str:
    """One sentence, or two; empty where no holder is known."""
    if isinstance(sells, Missing):
        return (
            f"We could not find out whether real holders can sell it: {names.reason(sells.why).rstrip('.')}."
        )
    if sells is None:
        return ""
    few = _too_few_sentence(sells) if _hold_too_little(sells, policy) else ""
    if not sells.tried:
        return few
    findings, unknown = judge_holder_sells(sells, policy), len(gaps(sells))
    if findings.known == 0:
        return f"{few} We could not find out whether {_holders_text(unknown)} can sell it.".strip()
    parts = _parts(findings, policy) or [f"{_holders_text(findings.known)} can sell it as a new wallet can"]
    if unknown:
        parts.append(f"we could not find out about {unknown} more")
    return f"{few} {'; '.join(parts)}.".strip()


def _too_few_sentence(sells: HolderSells) -> str:
    least = "none holds" if not sells.tried else f"only {len(sells.tried)} holds"
    return f"Of {format_count(sells.known, 'wallet')} that bought more than they sold, {least} enough to try."


def _parts(findings: HolderSellFindings, policy: Policy) -> list[str]:
    """How some of them fare; empty where all fare like a fresh wallet."""
    of = f"{findings.caught()} of {_holders_text(findings.known)}"
    less = f"up to {format_percent(min(BPS, findings.worst_bps))} less than a new wallet"
    parts = []
    if findings.refused and findings.robbed:
        parts.append(f"{of} cannot sell it or get {less}")
    elif findings.refused:
        parts.append(f"{of} cannot sell it, though a new wallet can")
    elif findings.robbed:
        parts.append(f"{of} get{'s' if findings.robbed == 1 else ''} {less}")
    if findings.waiting:
        subject = "more" if parts else f"of {_holders_text(findings.known)}"
        parts.append(f"{findings.waiting} {subject} can sell it only after a day")
    if not findings.robbed and findings.worst_bps >= policy.warn_loss_bps:
        parts.append(f"others get {less}" if parts else f"Some of {_holders_text(findings.known)} get {less}")
    return parts


def _holders_text(count: int) -> str:
    return format_count(count, "real holder")


def _losses(sells: HolderSells) -> list[int | Missing | None]:
    return [_loss_of(sells.control, sell) for sell in sells.tried]


def _loss_of(control: Sold, sell: HolderSell) -> int | Missing | None:
    """A holder's loss at once, or after a day where the first sell did not go through."""
    at_once = lost_bps(control, sell.outcome)
    return at_once if sell.later is None else lost_bps(control, sell.later)
