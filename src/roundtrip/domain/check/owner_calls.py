"""What an owner could change, by trial: which call would stop the sell or raise its loss."""

from collections.abc import Collection
from dataclasses import dataclass

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_count, format_percent
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import AccountRights, CellOutcome, Missing, OwnerCall, OwnerCalls, Sold
from .sales import loss_bps, sold_after_buy

_STEPS_AFTER_CALL = ("approve", "transfer", "sell")


@dataclass(frozen=True, slots=True)
class OwnerCallEffect:
    """The effect of an owner's call on the sell after it. ``loss_bps`` None: the sell fails."""

    call: OwnerCall
    loss_bps: int | None


def lost_bps(outcome: CellOutcome) -> int | Missing | None:
    """The loss of what was to be sold; None where it does not sell. The wallet's balance afterwards does not
    count: an owner may have added to it."""
    sold = sold_after_buy(outcome, _STEPS_AFTER_CALL)
    if not isinstance(sold, Sold):
        return sold
    cost_raw = max(1, sold.paid_raw * sold.planned_raw // max(1, sold.held_raw))
    return loss_bps(cost_raw, sold.back_raw)


def change(owner_calls: OwnerCalls | AccountRights, policy: Policy) -> OwnerCallEffect | None:
    """The first call that stops the sell; else the one with the largest loss. None: no tried call is known to
    do harm."""
    before = lost_bps(owner_calls.control)
    if not isinstance(before, int):
        return None
    worst: OwnerCallEffect | None = None
    for call in owner_calls.tried:
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


def node_kept_back(owner_calls: OwnerCalls | AccountRights | Missing | None) -> bool:
    """True where a node error hid a result, so that trying again may help."""
    if not isinstance(owner_calls, OwnerCalls | AccountRights):
        return isinstance(owner_calls, Missing) and owner_calls.fault == "node"
    outcomes = (owner_calls.control, *(call.outcome for call in owner_calls.tried))
    return any(isinstance(outcome, Missing) and outcome.fault == "node" for outcome in outcomes)


def owner_sentence(owner_calls: OwnerCalls | Missing | None, policy: Policy) -> str:
    """One sentence, or two where results are missing; empty where no call was tried."""
    if owner_calls is None:
        return ""
    gap = owner_calls if isinstance(owner_calls, Missing) else control_gap(owner_calls)
    if gap is not None:
        return f"We could not find out what its owner can change: {names.reason(gap.why).rstrip('.')}."
    assert isinstance(owner_calls, OwnerCalls)
    effect = change(owner_calls, policy)
    if effect is None:
        return _no_harm_text(owner_calls)
    return f"Its {effect.call.by} {harm_text(effect)}."


def harm_text(effect: OwnerCallEffect) -> str:
    """The predicate of a sentence about who makes the call: the harm, and the function."""
    function = _name(effect.call.function)
    if effect.call.target is not None:
        function = f"{function}, of {effect.call.target}"
    if effect.loss_bps is None:
        return f"can stop you from selling ({function})"
    return f"can raise your loss to {format_percent(min(BPS, effect.loss_bps))} ({function})"


def _name(function: str) -> str:
    """A function as sentences name it: its signature, or its selector where no name is known."""
    if function.startswith("0x"):
        return f"a function whose name is not known, {function.partition('(')[0]}"
    return f"function {function}"


def control_gap(owner_calls: OwnerCalls | AccountRights) -> Missing | None:
    """Why the sell without a call failed: then the sells after a call prove nothing. None: it succeeded."""
    before = lost_bps(owner_calls.control)
    if isinstance(before, Missing):
        return before
    return Missing("token", "the same sell failed without any call") if before is None else None


def _no_harm_text(owner_calls: OwnerCalls) -> str:
    """The text for no harmful call. Calls with missing results are named separately."""
    functions = {call.function for call in owner_calls.tried}
    calls = [
        (call.function, lost_bps(call.outcome)) for call in owner_calls.tried if call.outcome is not None
    ]
    unknown = {function for function, lost in calls if isinstance(lost, Missing)}
    accepted = {function for function, _ in calls}
    called, refused = accepted - unknown, functions - accepted
    parts = []
    if called:
        effect = "it did not stop the sell" if len(called) == 1 else "none stopped the sell"
        parts.append(f"we tried {_count_text(called)} of its {_senders_text(owner_calls)}: {effect}")
    if unknown:
        parts.append(f"we could not find out what {_count_text(unknown)} would do")
    if refused and parts:
        parts.append(f"{_count_text(refused)} refused all values that we tried")
    elif refused:
        parts.append(f"we could not tell what its {_senders_text(owner_calls)} can change")
    if left_out := owner_calls.left_out:
        parts.append(f"{_functions_text(left_out)} {'was' if left_out == 1 else 'were'} not tried")
    if not parts:
        return "Its owner has no function that we could test."
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _senders_text(owner_calls: OwnerCalls) -> str:
    senders = {call.by for call in owner_calls.tried}
    return senders.pop() if len(senders) == 1 else "owner"


def _count_text(which: Collection[str]) -> str:
    return _functions_text(len(which))


def _functions_text(count: int) -> str:
    return format_count(count, "function")
