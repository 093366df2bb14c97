"""What a token does to those who hold it, read from sells of real holders' own tokens: a trap may spare
wallets that it has never seen.

Each holder stood in the place of the check's own wallet, in the same block, after the same buy, in the same
pool: fees, taxes and price impact are the same for both. What he got less for as many tokens is done to him.
"""

from dataclasses import dataclass

from roundtrip.domain.base import names
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import CellOutcome, HolderSell, HolderSells, Missing, Sold
from .venue_reading import loss_bps, sold_after_buy
from .verdict_text import percent

_AFTER_THE_BUY = ("approve", "sell")


@dataclass(frozen=True, slots=True)
class HolderSellFindings:
    """Of ``told`` holders something is known: ``refused`` of them cannot sell within a day, ``robbed`` lose
    as much as is danger, ``waiting`` sell only when a day is over, and ``worst_bps`` is the most that anybody
    loses who can sell."""

    told: int
    refused: int
    robbed: int
    waiting: int
    worst_bps: int

    def caught(self) -> int:
        """So many are worse off than a fresh wallet, by far."""
        return self.refused + self.robbed


def lost_bps(control: Sold, outcome: CellOutcome) -> int | Missing | None:
    """What a holder loses of what the check's own wallet got for as many tokens; None where he cannot sell.
    Below zero: he got more, as who sells less of a pool at once does."""
    sold = sold_after_buy(outcome, _AFTER_THE_BUY)
    if not isinstance(sold, Sold):
        return sold
    fair_raw = control.back_raw * sold.planned_raw // max(1, control.planned_raw)
    return loss_bps(max(1, fair_raw), sold.back_raw)


def judge_holder_sells(known: HolderSells, policy: Policy) -> HolderSellFindings:
    """What is known of the holders that were tried."""
    lost = [loss for loss in _losses(known) if not isinstance(loss, Missing)]
    sold = [loss for loss in lost if loss is not None]
    robbed = [loss for loss in sold if loss >= policy.danger_loss_bps]
    waiting = sum(
        loss.later is not None and isinstance(_best(known.control, loss), int) for loss in known.tried
    )
    return HolderSellFindings(len(lost), len(lost) - len(sold), len(robbed), waiting, max(sold, default=0))


def traps(known: HolderSells | Missing | None, policy: Policy) -> frozenset[bool]:
    """Whether those who hold it are caught, by every value of what is missing: of none, of those that were
    tried and of whom nothing is known, or of all."""
    if known is None:
        return frozenset({False})
    if isinstance(known, Missing):
        return frozenset({False, True})
    sure = judge_holder_sells(known, policy)
    tried = len(known.tried)
    return frozenset(
        caught >= policy.least_caught and caught * BPS >= tried * policy.caught_share_bps
        for caught in range(sure.caught(), sure.caught() + tried - sure.told + 1)
    )


def gaps(known: HolderSells | Missing | None) -> list[Missing]:
    """What could not be found out."""
    if isinstance(known, Missing):
        return [known]
    return [] if known is None else [loss for loss in _losses(known) if isinstance(loss, Missing)]


def warns(known: HolderSells | Missing | None, policy: Policy) -> bool:
    """Whether some holder is caught, or loses what is worth a warning, or may be: of one of them it was not
    found out, which is no pass."""
    if not isinstance(known, HolderSells):
        return False
    sure = judge_holder_sells(known, policy)
    return bool(gaps(known)) or sure.caught() + sure.waiting > 0 or sure.worst_bps >= policy.warn_loss_bps


def holder_sentence(known: HolderSells | Missing | None, policy: Policy) -> str:
    """One sentence; empty where nobody was asked."""
    if isinstance(known, Missing):
        return f"Whether real holders can sell it was not found out: {names.reason(known.why).rstrip('.')}."
    if known is None or not known.tried:
        return ""
    sure, unknown = judge_holder_sells(known, policy), len(gaps(known))
    if sure.told == 0:
        return f"Whether {_holders(unknown)} can sell it was not found out."
    parts = _parts(sure, policy) or [f"{_holders(sure.told)} can sell it as a fresh wallet can"]
    if unknown:
        parts.append(f"of {unknown} more it was not found out")
    return f"{'; '.join(parts)}."


def _parts(sure: HolderSellFindings, policy: Policy) -> list[str]:
    """What some of them meet; nothing where all fare as a fresh wallet does."""
    of = f"{sure.caught()} of {_holders(sure.told)}"
    less = f"up to {percent(min(BPS, sure.worst_bps))} of what a fresh wallet gets"
    parts = []
    if sure.refused and sure.robbed:
        parts.append(f"{of} cannot sell it or lose {less}")
    elif sure.refused:
        parts.append(f"{of} cannot sell it, though a fresh wallet can")
    elif sure.robbed:
        parts.append(f"{of} lose{'s' if sure.robbed == 1 else ''} {less}")
    if sure.waiting:
        subject = "more" if parts else f"of {_holders(sure.told)}"
        parts.append(f"{sure.waiting} {subject} can sell it only in a day")
    if not sure.robbed and sure.worst_bps >= policy.warn_loss_bps:
        parts.append(f"others lose {less}" if parts else f"Of {_holders(sure.told)} some lose {less}")
    return parts


def _holders(count: int) -> str:
    return f"{count} real holder{'' if count == 1 else 's'}"


def _losses(known: HolderSells) -> list[int | Missing | None]:
    return [_best(known.control, sell) for sell in known.tried]


def _best(control: Sold, sell: HolderSell) -> int | Missing | None:
    """What a holder loses at once; a day on, where he has to wait so long."""
    now = lost_bps(control, sell.outcome)
    return now if sell.later is None else lost_bps(control, sell.later)
