"""What an owner could change, read from trying it: which call would stop the sell, or make it dear."""

from collections.abc import Collection
from dataclasses import dataclass

from roundtrip.domain.base import names
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import CellOutcome, Missing, OwnerCall, OwnerCalls, Sold
from .venue_reading import loss_bps, sold_after_buy

_AFTER_THE_CALL = ("approve", "transfer", "sell")


@dataclass(frozen=True, slots=True)
class OwnerCallEffect:
    """What a call of the owner's does to the sell after it. ``loss_bps`` None: it stops it."""

    call: OwnerCall
    loss_bps: int | None


def lost_bps(outcome: CellOutcome) -> int | Missing | None:
    """What is lost of what was to be sold; None where it does not sell. What a wallet is told it holds
    afterwards does not count: an owner may have given it more."""
    sold = sold_after_buy(outcome, _AFTER_THE_CALL)
    if not isinstance(sold, Sold):
        return sold
    cost_raw = max(1, sold.paid_raw * sold.planned_raw // max(1, sold.held_raw))
    return loss_bps(cost_raw, sold.back_raw)


def change(known: OwnerCalls, policy: Policy) -> OwnerCallEffect | None:
    """The first that stops the sell; where none does, the one after which most is lost. None: nothing that
    was tried does harm, as far as is known."""
    before = lost_bps(known.control)
    if not isinstance(before, int):
        return None
    worst: OwnerCallEffect | None = None
    for call in known.tried:
        if call.outcome is None:
            continue
        lost = lost_bps(call.outcome)
        if lost is None:
            return OwnerCallEffect(call, None)
        if isinstance(lost, Missing) or lost - before < policy.warn_loss_bps:
            continue
        if worst is None or lost > (worst.loss_bps or 0):
            worst = OwnerCallEffect(call, lost)
    return worst


def node_kept_back(known: OwnerCalls | Missing | None) -> bool:
    """True where asking again may tell more."""
    if not isinstance(known, OwnerCalls):
        return isinstance(known, Missing) and known.fault == "node"
    outcomes = (known.control, *(call.outcome for call in known.tried))
    return any(isinstance(outcome, Missing) and outcome.fault == "node" for outcome in outcomes)


def owner_sentence(known: OwnerCalls | Missing | None, policy: Policy) -> str:
    """One sentence, or two where not all was found out; empty where it was not asked."""
    if known is None:
        return ""
    gap = known if isinstance(known, Missing) else _control_gap(known)
    if gap is not None:
        return f"What its owner could change was not found out: {names.reason(gap.why).rstrip('.')}."
    assert isinstance(known, OwnerCalls)
    effect = change(known, policy)
    if effect is None:
        return _nothing(known)
    call = effect.call
    if effect.loss_bps is None:
        return f"Its {call.by} could stop selling with {call.function}."
    percent = f"{min(BPS, effect.loss_bps) // 100}.{min(BPS, effect.loss_bps) % 100:02d} %"
    return f"Its {call.by} could raise the loss to {percent} with {call.function}."


def _control_gap(known: OwnerCalls) -> Missing | None:
    """Where the trade does not come to what the check's own did, what follows a call proves nothing."""
    before = lost_bps(known.control)
    if isinstance(before, Missing):
        return before
    return (
        Missing("token", "the same sell without a call of his did not go through") if before is None else None
    )


def _nothing(known: OwnerCalls) -> str:
    """No call did harm. What could not be found out is told apart: it is no part of that."""
    functions = {call.function for call in known.tried}
    calls = [(call.function, lost_bps(call.outcome)) for call in known.tried if call.outcome is not None]
    unknown = {function for function, lost in calls if isinstance(lost, Missing)}
    accepted = {function for function, _ in calls}
    called, refused = accepted - unknown, functions - accepted
    parts = []
    if called:
        is_single = len(called) == 1
        which = "The one function" if is_single else f"None of {_count_text(called)}"
        parts.append(f"{which} called as its owner {'did not stop' if is_single else 'stopped'} the sell")
    if unknown:
        parts.append(f"what {_count_text(unknown)} would do was not found out")
    if refused:
        parts.append(f"{_count_text(refused)} took none of the values tried")
    if known.left_out:
        parts.append(f"{_functions(known.left_out)} {'was' if known.left_out == 1 else 'were'} not tried")
    if not parts:
        return "No function of its owner's was found to try."
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _count_text(which: Collection[str]) -> str:
    return _functions(len(which))


def _functions(count: int) -> str:
    return f"{count} function{'' if count == 1 else 's'}"
