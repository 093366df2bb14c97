"""What could change a check's result: what was tried, what was not, and what may act later. Claims only what
was observed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base import names
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.base.venue import Venue

from .evidence import Curve, Evidence, LaunchRecord, Missing, OwnerCalls
from .holder_sells import gaps, holder_sentence
from .holder_sells import judge_holder_sells as holders_found
from .owner_calls import change, lost_bps, owner_sentence
from .verdict import Judgement, shown_index
from .verdict_text import percent, snipe_left_s

Standing = Literal["can", "may", "not_known", "not_tried", "not_found"]
WORST_FIRST: tuple[Standing, ...] = ("can", "may", "not_known", "not_tried", "not_found")
_NO_PROMISE = "which is no promise"


@dataclass(frozen=True, slots=True)
class Prospect:
    """One thing that could change, in a sentence. ``can``: it was tried and does. ``may``: an account or
    contract could do it. ``not_found``: a search found nothing."""

    topic: Literal["owner", "code", "pool", "liquidity", "launch", "holders", "time"]
    standing: Standing
    text: str


def prospects(evidence: Evidence, judgement: Judgement, policy: Policy) -> tuple[Prospect, ...]:
    """All prospects, the worst standing first; empty where there is no token."""
    if judgement.verdict.code in ("no_contract", "not_a_token", "quote_asset"):
        return ()
    index = shown_index(judgement)
    venue = None if index is None else evidence.venues[index].venue
    rows = [*_owner(evidence, policy), _code(evidence), *_launch(evidence)]
    rows += [*_pools(evidence, venue), *_holders(evidence, policy)]
    if index is not None:
        rows += _time(evidence, index)
    return tuple(sorted(rows, key=lambda prospect: WORST_FIRST.index(prospect.standing)))


def _acts(address: Address | Missing | None) -> bool:
    return isinstance(address, str) and address not in BURN_ADDRESSES


def _why(gap: Missing) -> str:
    return names.reason(gap.why).rstrip(".") or "it was not told"


def _owner(evidence: Evidence, policy: Policy) -> Iterator[Prospect]:
    owner, calls = evidence.facts.owner, evidence.owner_calls
    if isinstance(owner, Missing):
        yield Prospect("owner", "not_known", f"Whether it has an owner was not found out: {_why(owner)}.")
    elif owner is None:
        text = f"It names no owner, {_NO_PROMISE}: a contract may obey somebody whom it does not name."
        yield Prospect("owner", "not_found", text)
    elif not _acts(owner):
        text = f"Its owner is a burn address, as whom nobody acts, {_NO_PROMISE}: it may know other roles."
        yield Prospect("owner", "not_found", text)
    else:
        text = f"It has an owner, {owner}, who may call what the token keeps for its owner."
        yield Prospect("owner", "may", text)
    if calls is not None:
        yield _owner_prospect(calls, policy)
    elif _acts(owner) or _acts(evidence.facts.proxy_admin):
        text = "What that allows was not tried in this check: to stop sells, to set taxes, to bar wallets."
        yield Prospect("owner", "not_tried", text)


def _owner_prospect(calls: OwnerCalls | Missing, policy: Policy) -> Prospect:
    """The result of the owner's calls."""
    sentence = owner_sentence(calls, policy)
    if isinstance(calls, Missing) or not isinstance(lost_bps(calls.control), int):
        return Prospect("owner", "not_known", sentence)
    if change(calls, policy) is not None:
        return Prospect("owner", "can", sentence)
    has_unknown = any(
        call.outcome is not None and isinstance(lost_bps(call.outcome), Missing) for call in calls.tried
    )
    if has_unknown or calls.left_out:
        return Prospect("owner", "not_known", sentence)
    return Prospect(
        "owner", "not_found", f"{sentence.rstrip('.')}, {_NO_PROMISE}: what was not tried may do harm."
    )


def _code(evidence: Evidence) -> Prospect:
    admin = evidence.facts.proxy_admin
    if isinstance(admin, Missing):
        return Prospect(
            "code", "not_known", f"Whether its code can be exchanged was not found out: {_why(admin)}."
        )
    if _acts(admin):
        text = f"A proxy admin, {admin}, may put other code in its place."
        return Prospect("code", "may", text)
    text = (
        f"No proxy admin who could act was found where proxies keep theirs (ERC-1967), {_NO_PROMISE}: "
        "other ways to exchange code were not looked for."
    )
    return Prospect("code", "not_found", text)


def _launch(evidence: Evidence) -> Iterator[Prospect]:
    launch = evidence.launch
    if isinstance(launch, Missing):
        yield Prospect(
            "launch", "not_known", f"Whether a launchpad has it was not found out: {_why(launch)}."
        )
    if not isinstance(launch, LaunchRecord):
        return
    if launch.phase == "curve":
        text = (
            "When its curve is sold out nobody can trade until the pool opens; the launchpad can call it off."
        )
        yield Prospect("launch", "may", text)
    state = launch.curve_state
    if isinstance(state, Curve) and state.snipe_bps and not state.closed:
        left_s = snipe_left_s(state, evidence.block.timestamp_s)
        ends = "when is not told" if left_s is None else f"{left_s} s after this block"
        text = f"The tax on a launch's first buyers, {percent(state.snipe_bps)} in this block, ends: {ends}."
        yield Prospect("launch", "may", text)


def _pools(evidence: Evidence, venue: Venue | None) -> Iterator[Prospect]:
    if venue is None:
        if evidence.candidates_complete:
            yield Prospect("pool", "may", "A pool can be opened at any time. Then it is another check.")
    else:
        if venue.hook_in_swaps():
            acts = f"The pool's hook {venue.hook}, a stranger's contract, acts in every swap"
            yield Prospect("pool", "may", f"{acts}: in a later block it may act otherwise.")
        if venue.dynamic_fee():
            yield Prospect("pool", "may", "The pool's fee is set swap by swap: the next may be another one.")
        place = "its curve" if venue.is_curve else "the pool"
        reason = "without it there is nothing to sell for"
        text = f"Who can take out what lies in {place} was not looked at: {reason}."
        yield Prospect("liquidity", "not_tried", text)
    if evidence.left_out:
        subject = "1 more pool is" if evidence.left_out == 1 else f"{evidence.left_out} more pools are"
        yield Prospect("pool", "not_tried", f"{subject} known and not looked at.")
    if not evidence.candidates_complete:
        yield Prospect("pool", "not_tried", "Only the standard pools were looked at: it may have others.")


def _holders(evidence: Evidence, policy: Policy) -> Iterator[Prospect]:
    held = evidence.holder_sells
    if held is None:
        if evidence.venues:
            text = "No real holder's sell was tried: the wallets of a check are new to the token."
            yield Prospect("holders", "not_tried", text)
        return
    sentence = holder_sentence(held, policy)
    if isinstance(held, Missing) or not held.tried or gaps(held):
        text = sentence or "No real holder's sell was tried."
        yield Prospect("holders", "not_known", text)
        return
    findings = holders_found(held, policy)
    harmed = findings.caught() + findings.waiting > 0 or findings.worst_bps >= policy.warn_loss_bps
    text = sentence if harmed else f"{sentence.rstrip('.')}, {_NO_PROMISE} for the others."
    yield Prospect("holders", "can" if harmed else "not_found", text)


def _time(evidence: Evidence, index: int) -> Iterator[Prospect]:
    """The longest delay after which a sell was tried."""
    cells = evidence.venues[index].cells
    tried = [cell.probe for cell in cells if not isinstance(cell.outcome, Missing)]
    if not tried:
        return
    longest = _lasting(max(probe.delay_s for probe in tried))
    text = f"The longest that it was held before a sell was tried is {longest}. Later was not tried."
    yield Prospect("time", "not_tried", text)


def _lasting(seconds: int) -> str:
    for unit_s, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit_s:
            count = seconds // unit_s
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} s"
