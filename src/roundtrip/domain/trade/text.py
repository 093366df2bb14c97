"""The sentence of a simulation or a trade, with the figure that decided. Allowances come first."""

from typing import Literal

from roundtrip.domain.base import names
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.check.venue_code import enough, sells_in_pieces_only
from roundtrip.domain.check.venue_reading import Sale, VenueReading
from roundtrip.domain.check.verdict_text import NO_REASON, percent, sell_reason_text, unproven

from .judge import Allowance, CallResult, ExitFinding, RunResult, TradeOutcome

_NAMED_IMPACT_BPS = 10


def sentence(
    outcome: TradeOutcome, ran: RunResult, short: str | None, policy: Policy, tokens: int = 1
) -> str:
    """The result of the calls. ``short``: why the wallet could not pay for them, if so; ``tokens``: how many
    they bring."""
    if outcome.code == "tx_reverts":
        return short or _reverts(ran)
    if outcome.code == "unproven":
        return unproven(outcome.missing or Missing("node", "it gave no answer"))
    if outcome.code == "nothing_received":
        return "It goes through; something leaves the wallet and nothing comes back."
    finding = outcome.decided
    if finding is None:
        return _without_token(outcome, ran)
    which = "" if tokens == 1 else f" of the {tokens} tokens that it brings {finding.exit.token} decides:"
    sell_text = _sell_text(outcome.code, finding, policy)
    if outcome.code == "cannot_sell" or finding.impact_bps() < policy.warn_loss_bps:
        size = "" if outcome.code == "cannot_sell" else impact(finding.impact_bps(), "buy")
        return f"It goes through;{which} {sell_text}{size}."
    less = percent(finding.impact_bps())
    return f"It goes through;{which} this size gets {less} less for its money than a small one; {sell_text}."


def _without_token(outcome: TradeOutcome, ran: RunResult) -> str:
    if outcome.lost_bps is not None:
        worth = percent(outcome.lost_bps)
        return f"It goes through; what comes back is worth {worth} less than what is spent."
    if outcome.unpriced:
        return "It goes through; what is spent has no known price, so what that loses is not known."
    if not ran.moved and not ran.allowances:
        return "It goes through; no balance and no allowance of the wallet that is looked at changes."
    return "It goes through."


def opening(
    allowances: tuple[Allowance, ...], known_spenders: frozenset[Address], items: tuple[Address, ...] = ()
) -> str:
    """Items of collections that leave, and allowances without a limit or to a spender with unknown code; the
    start of the text."""
    sentences = [f"Items of the collection {collection} leave the wallet." for collection in items]
    for allowance in allowances:
        spender, token = allowance.spender, allowance.token
        if allowance.via in ("all", "operator"):
            sentences.append(f"It lets {spender} take everything you hold of the collection {token}.")
        elif allowance.via == "item":
            sentences.append(f"It lets {spender} take an item of the collection {token} from you.")
        elif allowance.is_unlimited():
            sentences.append(f"It lets {spender} take all you have, and will have, of {token}.")
        elif spender not in known_spenders:
            sentences.append(f"It lets {spender}, whose code is not known here, take some of your {token}.")
    return " ".join(sentences)


def reason(call: CallResult) -> str:
    """Why a call failed, cleaned."""
    return names.reason(call.reason or "") or NO_REASON


def _reverts(ran: RunResult) -> str:
    number = next(n for n, call in enumerate(ran.calls) if not call.ok)
    cause = names.reason(ran.calls[number].reason or "")
    which = "It" if len(ran.calls) == 1 else f"Call {number + 1} of {len(ran.calls)}"
    return f'{which} would fail ("{cause}").' if cause else f"{which} would fail; no reason was given."


def _sell_text(code: str, finding: ExitFinding, policy: Policy) -> str:
    if code == "no_route":
        if finding.venue is None:
            return "no pool was found to sell what it buys on"
        return "what was spent for it has no known price, so what selling it loses is not known"
    assert finding.venue is not None
    assert finding.reading is not None
    why = sell_reason_text(finding.venue, finding.reading)
    quoted = f' ("{why}")' if why and why != NO_REASON else ""
    if code == "cannot_sell":
        if finding.reading.inconsistent is True:
            return f"what it buys sold in one block and not in another just like it{quoted}"
        via_other = "; another wallet that it is handed on to can sell it"
        addition = via_other if enough(finding.reading.handed_on, policy) else ""
        return f"what it buys cannot be sold, at once or within a day{quoted}{addition}"
    return f"{_sell_cost_text(finding, finding.reading, quoted, policy)}{_opening_text(finding)}"


def _sell_cost_text(finding: ExitFinding, reading: VenueReading, quoted: str, policy: Policy) -> str:
    if finding.exit.free:
        return "what it brings, for nothing, can be sold"
    lost = loss(finding.loss_bps or 0)
    if not enough(reading.full, policy):
        if enough(reading.half, policy):
            return f"what it buys does not sell whole at once{quoted}; half of it does, for {lost}"
        if sells_in_pieces_only(reading, policy):
            ten = f"ten sales of a tenth went through within a day, for {lost}"
            return f"what it buys does not sell in one sale{quoted}; {ten}"
        return f"what it buys does not sell at once{quoted}; it sells within a day, for {lost}"
    assert isinstance(reading.full, Sale)
    at_once = loss(reading.full.loss_bps)
    for when, later in (("in an hour", reading.hour), ("in a day", reading.day)):
        if not enough(later, policy):
            return f"sold straight back for {at_once}, and {when} it no longer sells"
    if not reading.full.whole:
        share = percent(reading.full.share_bps)
        return f"only {share} of what it buys sells straight back, for {lost} in all"
    for when, later in (("in an hour", reading.hour), ("in a day", reading.day)):
        if isinstance(later, Sale) and later.loss_bps == finding.loss_bps != reading.full.loss_bps:
            return f"sold straight back for {at_once}, and {when} for {lost}"
    return f"what it buys was sold straight back for {lost}"


def loss(bps: int) -> str:
    """``a loss of 0.60 %``, or a gain."""
    return f"a loss of {percent(bps)}" if bps >= 0 else f"a gain of {percent(-bps)}"


def _opening_text(finding: ExitFinding) -> str:
    if not finding.exit.through_opening:
        return ""
    return ", in the pool that opens now that its curve is sold out; until it opens nobody can sell"


def impact(bps: int, side: Literal["buy", "sell"]) -> str:
    """The cost of the trade's own size, as a sentence before the final full stop; empty where it is next to
    nothing."""
    if bps < _NAMED_IMPACT_BPS:
        return ""
    effect = "gets that much less for its money" if side == "buy" else "brings that much less for each token"
    return f". Price impact {percent(bps)}: this size {effect} than a small one"
