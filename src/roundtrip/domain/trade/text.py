"""The text of a simulated or prepared trade: what it lets others take, then what it comes to."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_loss, format_percent
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.router_codes import find_meaning, quote_reason
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.crowd_text import trap_text
from roundtrip.domain.check.evidence import Missing, RefusedCall, VenueEvidence
from roundtrip.domain.check.refusals import (
    NO_REASON,
    POOL_GOT_LESS,
    PULL_REASONS,
    REASON_WITHHELD,
    ROUTER_REASONS,
    TOO_LITTLE,
    TOO_MUCH,
)
from roundtrip.domain.check.sales import Sale, SellResult
from roundtrip.domain.check.venue_code import (
    enough,
    sells_at_some_hours_only,
    sells_by_second_route_only,
    sells_in_pieces_only,
    sells_nearly_all,
    stops_selling,
)
from roundtrip.domain.check.venue_reading import VenueReading
from roundtrip.domain.check.verdict_text import (
    later_text,
    nearly_all_of,
    pieces_text,
    sell_refusal_clause,
    sell_refusal_text,
    short_arrival_text,
    stop_refusal,
    stops_text,
    unproven,
)

from .judge import Allowance, ExitFinding, RunResult, TradeOutcome

_NAMED_IMPACT_BPS = 10
_NO_NAMES: Mapping[Address, str] = MappingProxyType({})

_HOOKS_CAUSE_TOO = frozenset({"WrappedError"})
"""Router reasons that a pool's hook can cause, too: they say nothing about the token."""


def sentence(
    outcome: TradeOutcome,
    ran: RunResult,
    short: str | None,
    policy: Policy,
    tokens: int = 1,
    leaving: str | None = None,
    spenders: Mapping[Address, str] = _NO_NAMES,
) -> str:
    """The sentence for the result of the calls. ``short``: why the wallet cannot pay for them; None: it can.
    ``tokens``: how many different tokens they bring. ``leaving``: the amounts that leave, in words, where
    nothing comes back; None: not known. ``spenders``: names of known spenders, by address."""
    if outcome.code == "tx_reverts":
        return short or _reverts(ran)
    if outcome.code == "unproven":
        return unproven(outcome.missing or Missing("node", ""))
    if outcome.code == "nothing_received":
        leaves = "something leaves the wallet" if leaving is None else f"the wallet gives {leaving}"
        return f"It goes through, but {leaves} and nothing comes back."
    finding = outcome.decided
    if finding is None:
        return _without_token(outcome, ran, spenders)
    return _with_token(outcome.code, finding, policy, tokens)


_SELLS_NOW = "you can sell "
"""The start of ``stops_text``, which says "but not" itself."""


def _with_token(code: str, finding: ExitFinding, policy: Policy, tokens: int) -> str:
    sell_text, size, why = _sell_text(code, finding, policy), "", ""
    if code == "cannot_sell" and finding.venue is not None and finding.reading is not None:
        why = "" if _pool_got_less(finding.reading) else sell_refusal_text(finding.venue, finding.reading)
    elif finding.impact_bps() < policy.warn_loss_bps:
        size = impact(finding.impact_bps(), "buy")
    else:
        less = format_percent(finding.impact_bps())
        sell_text = f"this size gets {less} fewer tokens for its money than a small one; {sell_text}"
    if tokens > 1:
        decides = f"Of the {tokens} tokens that it brings, {finding.exit.token} decides"
        return f"It goes through. {decides}: {sell_text}{size}.{why}"
    # A small loss, too: "but" a loss of 40 %.
    is_small = max(finding.impact_bps(), finding.loss_bps or 0) < policy.warn_loss_bps
    joins_with_and = (
        finding.exit.free or (finding.sells_all() and is_small) or sell_text.startswith(_SELLS_NOW)
    )
    return f"It goes through, {'and' if joins_with_and else 'but'} {sell_text}{size}.{why}"


def _without_token(outcome: TradeOutcome, ran: RunResult, spenders: Mapping[Address, str]) -> str:
    if outcome.lost_bps is not None:
        worth = format_percent(outcome.lost_bps)
        return f"It goes through, but what comes back is worth {worth} less than what it spends."
    if outcome.unpriced:
        return "It goes through; what it spends has no known price, so we do not know what it loses."
    if not ran.moved and ran.lowered:
        lowered = (_lowered_text(left, _name_spender(left.spender, spenders)) for left in ran.lowered)
        return f"It goes through. {' '.join(lowered)}"
    if not ran.moved and not ran.allowances:
        return "It goes through and changes no balance and no allowance of the wallet that we read."
    return "It goes through."


def _lowered_text(left: Allowance, spender: str) -> str:
    if left.raw == 0:
        return f"{spender} may no longer take your {left.token}."
    if left.takes_all():
        return f"{spender} may still take all you hold of {left.token}."
    return f"{spender} may take less of your {left.token} than before, but still some."


def _name_spender(spender: Address, spenders: Mapping[Address, str]) -> str:
    """``Permit2 (0x…)``; of a spender who is not known, the address alone."""
    return f"{spenders[spender]} ({spender})" if spender in spenders else spender


def warnings_text(ran: RunResult, spenders: Mapping[Address, str]) -> str:
    """The warnings before the result: NFTs that leave, allowances without a limit or to an unknown spender,
    and calls to addresses without code. Where nothing moves and no call fails, every allowance. ``spenders``:
    names of known spenders, by address."""
    sentences = [f"Items of the collection {collection} leave the wallet." for collection in ran.items]
    for allowance in ran.allowances:
        spender, token = _name_spender(allowance.spender, spenders), allowance.token
        if allowance.via in ("all", "operator"):
            sentences.append(f"It lets {spender} take everything you hold of the collection {token}.")
        elif allowance.via == "item":
            sentences.append(f"It lets {spender} take an item of the collection {token} from you.")
        elif allowance.is_unlimited():
            sentences.append(f"It lets {spender} take all you hold of {token}, now and later.")
        else:
            much = f"all you hold of {token}" if allowance.takes_all() else f"some of your {token}"
            if allowance.spender not in spenders:
                sentences.append(f"It lets {spender}, an address that we do not know, take {much}.")
            elif not ran.moved and not ran.has_reverted():
                sentences.append(f"It lets {spender} take {much}.")
    sentences += [f"There is no contract at {target}; the data does nothing." for target in ran.without_code]
    sentences += [
        f"We could not find out whether there is a contract at {target}; if not, the data does nothing."
        for target in ran.code_unread
    ]
    return " ".join(sentences)


def describe_reason(given: str | None) -> str:
    """Why a call failed, cleaned. A router's own error for a refused transfer is replaced by a sentence.
    ``given``: the decoded revert reason."""
    text = names.reason(given or "")
    if text in ROUTER_REASONS:
        return NO_REASON if text in _HOOKS_CAUSE_TOO else REASON_WITHHELD
    return text or NO_REASON


def is_withheld(given: str | None) -> bool:
    """Whether the router's error hides why the token refused the transfer."""
    return describe_reason(given) == REASON_WITHHELD


def failure_clause(given: str | None) -> str:
    """Why something fails, for the end of a sentence: `` with "paused"``, and the like where the call gave no
    reason of its own. ``given``: the reason as decoded. Only for a trade that this service wrote: its wallet
    has the balance and the approvals that it needs."""
    text = describe_reason(given)
    if text == NO_REASON:
        return "; it gives no reason"
    return f": {REASON_WITHHELD}" if text == REASON_WITHHELD else f" with {quote_reason(text)}"


def below_minimum(needed_bps: int | None, most_bps: int) -> str:
    """Why a trade fails that ran with its own minimum. ``needed_bps``: the slippage with which it goes
    through; None: not known. ``most_bps``: the largest that is accepted."""
    why = "Run once more, the trade brings less than its own minimum."
    if needed_bps is None:
        return f"{why} More slippage may let it through."
    needed = f"{format_percent(needed_bps)} (slippageBps {needed_bps})"
    if needed_bps > most_bps:
        return f"{why} It would need a slippage of {needed}; the largest is {format_percent(most_bps)}."
    return f"{why} With a slippage of {needed} it would go through."


def lowered_minimum(lowered_bps: int) -> str:
    """Why the minimum of a sell is lower than the result of its rehearsal suggests; empty where it is not."""
    if lowered_bps <= 0:
        return ""
    lowered = format_percent(lowered_bps)
    return (
        f"Run once more, the swap pays {lowered} less than the rehearsal brought (a hook or the token may "
        "take more of some sells): the minimum is that much lower."
    )


def by_second_route(route: str) -> str:
    """The sentence for a sell that the usual router of its pool refuses. ``route``: the other one's name."""
    return f"The usual router is refused: this sell goes through {route}."


def _reverts(ran: RunResult) -> str:
    number = next(n for n, call in enumerate(ran.calls) if not call.ok)
    which = "It" if len(ran.calls) == 1 else f"Call {number + 1} of {len(ran.calls)}"
    failed = ran.calls[number]
    if failed.token_reason is not None:
        smaller = _smaller_amount_text(failed.token_reason)
        return f'{which} would fail: the token says "{failed.token_reason}".{smaller}'
    reason = names.reason(failed.reason or "")
    if reason in _LIMIT_CLAUSES:
        return f"{which} would fail{_LIMIT_CLAUSES[reason]}."
    if reason in PULL_REASONS:
        # The caller wrote the call: balance or approval may be missing, too.
        return f"{which} would fail: {find_meaning(reason)}."
    return f"{which} would fail{failure_clause(failed.reason)}.{_smaller_amount_text(reason)}"


_LIMIT_WORDS = re.compile("max|limit|exceed", re.IGNORECASE)


def _smaller_amount_text(reason: str) -> str:
    """The advice where a revert reason names a limit; else empty. No smaller amount was tried."""
    return " A smaller amount may go through." if _LIMIT_WORDS.search(reason) else ""


_LIMIT_CLAUSES = {
    **dict.fromkeys(
        TOO_LITTLE, ": the swap brings less than its own minimum. More slippage may let it through"
    ),
    **dict.fromkeys(TOO_MUCH, ": the swap costs more than its own maximum. More slippage may let it through"),
}
"""How the sentence goes on where a call failed at its own minimum or maximum, by router error."""


def _sell_text(code: str, finding: ExitFinding, policy: Policy) -> str:
    """The result of selling what the trade brings, without the full stop."""
    if code == "no_route":
        if finding.venue is None:
            return "we found no pool that buys what it brings"
        return "what it spends has no known price, so we do not know what selling back loses"
    assert finding.venue is not None
    assert finding.reading is not None
    if code == "cannot_sell":
        return _cannot_sell_text(finding.venue, finding.reading, policy)
    clause = sell_refusal_clause(finding.venue, finding.reading)
    return f"{_sell_cost_text(finding, finding.reading, clause, policy)}{_curve_sold_out_text(finding)}"


def _cannot_sell_text(venue: VenueEvidence, reading: VenueReading, policy: Policy) -> str:
    trap = trap_text(reading.crowd) if reading.crowd is not None else ""
    if trap:
        return trap[0].lower() + trap[1:]
    if reading.inconsistent is True:  # Missing proves nothing.
        return "the same sell worked in one simulated block and failed in another"
    if stops_selling(reading, policy):
        refusal = stop_refusal(reading)
        stops = stops_text(reading, "what it buys")
        return f"{stops}{f' ({refusal})' if refusal else ''}"
    handed_on = "; a wallet that you send it to can sell it" if enough(reading.handed_on, policy) else ""
    sold_bps = max((sell.share_bps for sell in reading.sells() if isinstance(sell, Sale)), default=0)
    if sold_bps:
        most = format_percent(sold_bps)
        return f"this check could sell at most {most} of what it buys within a day{handed_on}"
    if _pool_got_less(reading):
        return f"you cannot sell what it buys: {short_arrival_text(venue)}{handed_on}"
    return f"you cannot sell what it buys: not now, not within a day{handed_on}"


def _pool_got_less(reading: VenueReading) -> bool:
    return isinstance(reading.full, RefusedCall) and reading.full.reason in POOL_GOT_LESS


def _sell_cost_text(finding: ExitFinding, reading: VenueReading, clause: str, policy: Policy) -> str:
    if finding.exit.free:
        return "you can sell what it brings, for which it spends nothing"
    lost = format_loss(finding.loss_bps or 0)
    full = reading.full
    if not isinstance(full, Sale) or not enough(full, policy):
        return _later_or_part_text(reading, clause, lost, policy)
    at_once = format_loss(full.loss_bps)
    for when, later in _later_sells(reading):
        if isinstance(later, Missing):
            unknown = f"we could not find out whether it does after {when}"
            return f"what it buys sold straight back for {at_once}; {unknown}"
        if not enough(later, policy):
            return f"what it buys sold straight back for {at_once}, but it does not sell after {when}"
    if not full.whole:
        share = format_percent(full.share_bps)
        return f"only {share} of what it buys sold straight back, for {lost} in all"
    for when, later in _later_sells(reading):
        # The worst loss, which the finding has, is this later sell's.
        if isinstance(later, Sale) and later.loss_bps == finding.loss_bps != full.loss_bps:
            return f"what it buys sold straight back for {at_once}, and after {when} for {lost}"
    return f"what it buys sold straight back for {lost}"


def _later_sells(reading: VenueReading) -> tuple[tuple[str, SellResult], ...]:
    return ("an hour", reading.hour), ("a day", reading.day)


def _later_or_part_text(reading: VenueReading, clause: str, lost: str, policy: Policy) -> str:
    """Where not enough of it sells straight back, or that is not known."""
    is_unknown = isinstance(reading.full, Missing)
    if isinstance(reading.nearly, Sale) and sells_nearly_all(reading.nearly, policy):
        part = nearly_all_of(reading.nearly, "it")
        return f"not all of what it buys sells at once{clause}; {part} does, for {lost}"
    if enough(reading.half, policy):
        whole = "not all of what it buys sells at once"
        if is_unknown:
            whole = "we could not find out whether all of what it buys sells at once"
        return f"{whole}{clause}; half of it does, for {lost}"
    if isinstance(reading.pieces, Sale) and sells_in_pieces_only(reading, policy):
        return f"what it buys does not sell in one sale{clause}; {pieces_text(reading, reading.pieces, lost)}"
    if sells_at_some_hours_only(reading, policy):
        return f"what it buys sells at some hours of the day only, and not now{clause}; then for {lost}"
    if sells_by_second_route_only(reading, policy):
        return f"the usual sell of what it buys is refused{clause}; another route sells it, for {lost}"
    if not any(enough(later, policy) for _, later in _later_sells(reading)):
        return f"what it buys sold only in a small part{clause}"
    whole = "you cannot sell what it buys at once"
    if is_unknown:
        whole = "we could not find out whether you can sell what it buys at once"
    return f"{whole}{clause}; you can {later_text(reading, policy)}, for {lost}"


def _curve_sold_out_text(finding: ExitFinding) -> str:
    if not finding.exit.through_opening:
        return ""
    return ", in the pool that opens now that its curve is sold out; until it opens you cannot sell"


def impact(bps: int, side: Literal["buy", "sell"]) -> str:
    """The cost of the trade's own size, as a sentence before the final full stop; empty where it is next to
    nothing."""
    if bps < _NAMED_IMPACT_BPS:
        return ""
    effect = "gets that much less for its money" if side == "buy" else "brings that much less for each token"
    return f". The price impact is {format_percent(bps)}: this size {effect} than a small one"
