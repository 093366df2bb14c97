"""What could change a check's result: what was tried, what was not, and what may act later. Claims only what
was observed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_count, format_duration, format_percent
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.holder_sells import gaps, holder_sentence
from roundtrip.domain.check.holder_sells import judge_holder_sells as holders_found

from .account_rights import is_complete, rights_sentence
from .evidence import AccountRights, Curve, Evidence, HolderSells, LaunchRecord, Missing, OwnerCalls
from .owner_calls import change, lost_bps, owner_sentence
from .venue_code import takes_sells
from .verdict import Judgement, shown_index
from .verdict_text import snipe_left_s

Standing = Literal["can", "may", "not_known", "not_tried", "not_found"]
Topic = Literal["owner", "code", "pool", "liquidity", "launch", "holders", "time"]
WORST_FIRST: tuple[Standing, ...] = ("can", "may", "not_known", "not_tried", "not_found")
_NO_PROMISE = "That is no promise"


@dataclass(frozen=True, slots=True)
class Prospect:
    """One thing that could change, in a sentence. ``can``: it was tried and does. ``may``: an account or
    contract could do it. ``not_known``: a try or a search gave no complete result. ``not_tried``: this check
    did not look. ``not_found``: a search found nothing."""

    topic: Topic
    standing: Standing
    text: str


def prospects(evidence: Evidence, judgement: Judgement, policy: Policy) -> tuple[Prospect, ...]:
    """All prospects, the worst standing first; empty where there is no token."""
    if judgement.verdict.code in ("no_contract", "not_a_token", "quote_asset"):
        return ()
    index = shown_index(judgement)
    venue = None if index is None else evidence.venues[index].venue
    rows = [*_owner(evidence, policy), _code(evidence), *_launch(evidence)]
    rows += [*_pools(evidence, venue, judgement), *_holders(evidence, policy)]
    if index is not None:
        rows += _time(evidence, index)
    return tuple(sorted(rows, key=lambda prospect: WORST_FIRST.index(prospect.standing)))


def describe_deep_round(evidence: Evidence, judgement: Judgement, deep: bool, policy: Policy) -> str:
    """What the deep round tried, or why there is nothing for it to try. Empty: a plain check, and a deep one
    may find more."""
    if judgement.missing is not None:
        return "This deep check ended before its last round." if deep else ""
    best = judgement.best
    if best is None or not takes_sells(judgement.readings[best], policy):
        reason = "It cannot be sold"
        if best is None:
            none = "We trade in none of its pools" if evidence.other_pools else "There is no pool"
            reason = "It cannot be bought" if evidence.venues else none
        return f"{reason}, so neither the owner's functions nor sells of real holders can be tried."
    if not deep:
        return ""
    calls, held = evidence.owner_calls, evidence.holder_sells
    called = "could not call its owner's functions"
    if calls is None:
        called = "found no owner whose functions it could call"
    elif isinstance(calls, OwnerCalls):
        called = f"called {format_count(len(calls.tried), 'function')} of its owner"
    sold = "could not sell as real holders"
    if held is None:
        sold = "knows no real holder to sell as"
    elif isinstance(held, HolderSells):
        sold = f"sold as {format_count(len(held.tried), 'real holder')}"
    return f"This deep check {called} and {sold}."


def _acts(address: Address | Missing | None) -> bool:
    return isinstance(address, str) and address not in BURN_ADDRESSES


def _why(gap: Missing) -> str:
    return names.reason(gap.why).rstrip(".") or "the node gave no answer"


def _owner(evidence: Evidence, policy: Policy) -> Iterator[Prospect]:
    owner, calls = evidence.facts.owner, evidence.owner_calls
    if isinstance(owner, Missing):
        yield Prospect("owner", "not_known", f"We could not find out whether it has an owner: {_why(owner)}.")
    elif owner is None:
        text = f"It names no owner. {_NO_PROMISE}: a contract can obey an account that it does not name."
        yield Prospect("owner", "not_found", text)
    elif not _acts(owner):
        text = f"Its owner is a burn address, which cannot act. {_NO_PROMISE}: other accounts may have roles."
        yield Prospect("owner", "not_found", text)
    else:
        text = f"It has an owner, {owner}, who can call the functions that the token reserves for it."
        yield Prospect("owner", "may", text)
    if calls is not None:
        yield _owner_prospect(calls, policy)
    elif _acts(owner) or _acts(evidence.facts.proxy_admin):
        text = "This check did not try what that account can do: stop sells, set taxes, block wallets."
        yield Prospect("owner", "not_tried", text)
    if evidence.account_rights is not None and (sentence := rights_sentence(evidence, policy)):
        yield _rights_prospect(evidence.account_rights, sentence, policy)


def _rights_prospect(rights: AccountRights | Missing, sentence: str, policy: Policy) -> Prospect:
    """The result of other accounts' calls."""
    if not isinstance(rights, Missing) and change(rights, policy) is not None:
        return Prospect("owner", "can", sentence)
    if not is_complete(rights):
        return Prospect("owner", "not_known", sentence)
    return Prospect("owner", "not_found", f"{sentence} {_NO_PROMISE}: what was not tried may do harm.")


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
    return Prospect("owner", "not_found", f"{sentence} {_NO_PROMISE}: what was not tried may do harm.")


def _code(evidence: Evidence) -> Prospect:
    admin = evidence.facts.proxy_admin
    if isinstance(admin, Missing):
        return Prospect(
            "code", "not_known", f"We could not find out whether its code can be replaced: {_why(admin)}."
        )
    if _acts(admin):
        text = f"A proxy admin, {admin}, can replace its code."
        return Prospect("code", "may", text)
    text = (
        f"We found no proxy admin that can replace the token's code (ERC-1967). {_NO_PROMISE}: other ways "
        "were not checked."
    )
    return Prospect("code", "not_found", text)


def _launch(evidence: Evidence) -> Iterator[Prospect]:
    launch = evidence.launch
    if isinstance(launch, Missing):
        yield Prospect(
            "launch", "not_known", f"We could not find out whether it is on a launchpad: {_why(launch)}."
        )
    if not isinstance(launch, LaunchRecord):
        return
    if launch.phase == "curve":
        text = (
            "When its curve is sold out, trading stops until its pool opens. "
            "The launchpad can cancel the launch."
        )
        yield Prospect("launch", "may", text)
    state = launch.curve_state
    if isinstance(state, Curve) and state.snipe_bps and not state.closed:
        left_s = snipe_left_s(state, evidence.block.timestamp_s)
        ends = "at an unknown time" if left_s is None else f"{left_s} s after this block"
        text = (
            f"The extra tax on the launch's first buyers, {format_percent(state.snipe_bps)} now, ends {ends}."
        )
        yield Prospect("launch", "may", text)


def _pools(evidence: Evidence, venue: Venue | None, judgement: Judgement) -> Iterator[Prospect]:
    if venue is None:
        if judgement.missing is not None:
            why = _why(judgement.missing)
            text = f"We could not find out whether a pool trades it: {why}."
            yield Prospect("pool", "not_known", text)
        elif evidence.candidates_complete:
            yield Prospect("pool", "may", "A pool can open at any time: check again then.")
    else:
        if venue.hook_in_swaps():
            acts = f"The pool's hook {venue.hook}, a stranger's contract, runs in every swap"
            yield Prospect("pool", "may", f"{acts}: it may behave differently in a later block.")
        if venue.dynamic_fee():
            yield Prospect("pool", "may", "The pool's fee is set for each swap: the next one may be higher.")
        place = "its curve" if venue.is_curve else "the pool"
        reason = "without it you cannot sell"
        text = f"This check did not look at who can take the money out of {place}: {reason}."
        yield Prospect("liquidity", "not_tried", text)
    if evidence.left_out:
        pools = format_count(evidence.left_out, "more pool")
        yield Prospect("pool", "not_tried", f"It has {pools} that the check left out.")
    if not evidence.candidates_complete:
        yield Prospect("pool", "not_tried", "Only the standard pools were checked: it may have others.")


def _holders(evidence: Evidence, policy: Policy) -> Iterator[Prospect]:
    held = evidence.holder_sells
    if held is None:
        if evidence.venues:
            text = "No real holder's sell was tried: the wallets of this check are new to the token."
            yield Prospect("holders", "not_tried", text)
        return
    sentence = holder_sentence(held, policy)
    if isinstance(held, Missing) or not held.tried or gaps(held):
        text = sentence or "No real holder's sell was tried."
        yield Prospect("holders", "not_known", text)
        return
    findings = holders_found(held, policy)
    harmed = findings.caught() + findings.waiting > 0 or findings.worst_bps >= policy.warn_loss_bps
    text = sentence if harmed else f"{sentence} {_NO_PROMISE} for the others."
    yield Prospect("holders", "can" if harmed else "not_found", text)


def _time(evidence: Evidence, index: int) -> Iterator[Prospect]:
    """The longest delay after which a sell was tried."""
    cells = evidence.venues[index].cells
    tried = [cell.probe for cell in cells if not isinstance(cell.outcome, Missing)]
    if not tried:
        return
    longest = format_duration(max(probe.delay_s for probe in tried))
    text = f"The check held it for at most {longest} before a sell. Later sells were not tried."
    yield Prospect("time", "not_tried", text)
