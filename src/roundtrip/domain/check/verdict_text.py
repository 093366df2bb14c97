"""The short sentence of a verdict, with the deciding figure."""

from roundtrip.domain.base import names
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import Curve, Evidence, LaunchRecord, Missing, RefusedCall, VenueEvidence
from .venue_code import enough, fee_like_bps, parts
from .venue_reading import Sale, VenueReading

_STANDARD_ONLY = "Only the standard pools were looked at."

NO_REASON = "no reason given"

POOL_GOT_LESS = frozenset({"IIA"})
"""Revert reasons of a v3 pool that received less than was sent to it."""


def percent(bps: int) -> str:
    """Formats bps as a percentage: ``60`` is ``0.60 %``."""
    sign, bps = ("-" if bps < 0 else ""), abs(bps)
    return f"{sign}{bps // 100}.{bps % 100:02d} %"


def unproven(missing: Missing) -> str:
    """The sentence for code unproven, with the reason."""
    subject = (
        "The chain would not tell just now"
        if missing.fault == "node"
        else "The token keeps it from being told"
    )
    return f"{subject}: {names.reason(missing.why).rstrip('.')}. This is not a pass."


def sentence(
    code: str,
    index: int | None,
    evidence: Evidence,
    readings: tuple[VenueReading, ...],
    policy: Policy,
) -> str:
    """The sentence for a proven verdict; where venues decided, also the pools that were left out."""
    if code == "no_contract":
        return "There is no contract at this address."
    if code == "not_a_token":
        return "The contract at this address does not answer like a token."
    if code == "quote_asset":
        return f"This is {evidence.role}, the money side of a trade; there is nothing to prove."
    text = _venue_sentence(code, index, evidence, readings, policy)
    if evidence.left_out:
        return f"{text} It has {evidence.left_out} more pools, which were not looked at."
    return text if evidence.candidates_complete else f"{text} {_STANDARD_ONLY}"


def _venue_sentence(
    code: str,
    index: int | None,
    evidence: Evidence,
    readings: tuple[VenueReading, ...],
    policy: Policy,
) -> str:
    if code == "no_pool":
        return _closed_text(evidence, policy) or "No pool trades this token."
    count = sum(reading.status != "absent" for reading in readings)
    pools = "Its only pool" if count == 1 else f"None of its {count} pools"
    if code == "empty_pool":
        if any(r.status == "dry" and _is_curve(v) for v, r in zip(evidence.venues, readings, strict=True)):
            return "Its curve is all but sold out: it closes with the next small buy, until its pool opens."
        return f"{pools} holds {'no ' if count == 1 else ''}liquidity that fills a buy."
    if code == "cannot_buy":
        refused = next(i for i, r in enumerate(readings) if r.status == "refused")
        why = _in_quotes(buy_reason_text(evidence.venues[refused], readings[refused]))
        return f"{pools} {'refuses' if count == 1 else 'takes'} a buy at any size{why}."
    if index is None:
        return "You pay and get nothing: the token keeps what you buy."
    venue, reading = evidence.venues[index], readings[index]
    if code == "cannot_sell":
        return f"{_cannot_sell_text(venue, reading)}{handed_on(reading, policy)}"
    smaller = (
        "" if reading.size == "probe" or reading.closing else " A smaller buy than usual was all it took."
    )
    besides = (
        f"{_snipe_text(evidence, venue)}{_larger_trade_text(reading, policy)}{_gas_text(reading, policy)}"
    )
    return f"{_cost_text(code, evidence, venue, reading, policy)}{besides}.{smaller}"


def _is_curve(venue: VenueEvidence) -> bool:
    return venue.venue.is_curve


RESCUED = "The launchpad called this launch off and emptied its curve; there is nothing to trade it on."


def _closed_text(evidence: Evidence, policy: Policy) -> str | None:
    """The text for a launch between its curve and its pool, which is no trap; None for others."""
    launch = evidence.launch
    if not isinstance(launch, LaunchRecord) or not launch.is_between_venues():
        return None
    if launch.phase == "rescued":
        return RESCUED
    since_s = evidence.block.timestamp_s - launch.swept_at_s if launch.swept_at_s else 0
    is_long = since_s > policy.closed_long_s
    until = (
        f" for {since_s // 3600} h {since_s % 3600 // 60} min now"
        if is_long
        else "; until it does nobody can trade"
    )
    return f"Its curve is sold out and its pool has not opened{until}."


def _snipe_text(evidence: Evidence, venue: VenueEvidence) -> str:
    """The text on the snipe tax, and when it ends."""
    launch = evidence.launch
    state = launch.curve_state if isinstance(launch, LaunchRecord) and _is_curve(venue) else None
    if not isinstance(state, Curve) or state.snipe_bps == 0:
        return ""
    remaining_s = snipe_left_s(state, evidence.block.timestamp_s)
    ends = "" if remaining_s is None else f" and ends in {remaining_s} s"
    return f"; the tax on a launch's first buyers is {percent(state.snipe_bps)} now{ends}"


def snipe_left_s(state: Curve, now_s: int) -> int | None:
    """Seconds until the snipe tax of a curve ends; None when the curve does not state it."""
    return None if state.snipe_seconds is None else max(0, state.launched_at_s + state.snipe_seconds - now_s)


def _cannot_sell_text(venue: VenueEvidence, reading: VenueReading) -> str:
    if reading.inconsistent is True:
        why = _in_quotes(sell_reason_text(venue, reading))
        return f"It sold in one simulated block and not in another just like it{why}."
    sold = max((s.share_bps for s in reading.sells() if isinstance(s, Sale)), default=0)
    if sold:
        return f"It can be bought, and within a day no more than {percent(sold)} of it can be sold."
    if isinstance(reading.full, RefusedCall) and reading.full.reason in POOL_GOT_LESS:
        return (
            "It can be bought and not sold: the token takes a cut of every sell, "
            "and this kind of pool refuses to be paid short."
        )
    why = _in_quotes(sell_reason_text(venue, reading))
    return f"It can be bought and not sold, at once or within a day{why}."


def handed_on(reading: VenueReading, policy: Policy) -> str:
    """A sentence where another wallet can sell what the buyer cannot; else empty."""
    sells = reading.inconsistent is not True and enough(reading.handed_on, policy)
    return " Another wallet that the buyer hands it on to can sell it." if sells else ""


def buy_reason_text(venue: VenueEvidence, reading: VenueReading) -> str | None:
    """The cleaned reason of the refused buy: the token's before the router's. None: it was not refused."""
    if reading.status == "bought" or reading.buy_refusal is None:
        return None
    transfer = venue.told_on_buy
    refusal = transfer if isinstance(transfer, RefusedCall) and transfer.reason else reading.buy_refusal
    return names.reason(refusal.reason or "") or NO_REASON


def sell_reason_text(venue: VenueEvidence, reading: VenueReading) -> str | None:
    """The cleaned reason of the refused full sell: the token's before the router's. None: it was not
    refused."""
    if not isinstance(reading.full, RefusedCall):
        return None
    transfer = venue.told_on_sell
    refusal = transfer if isinstance(transfer, RefusedCall) and transfer.reason else reading.full
    return names.reason(refusal.reason or "") or NO_REASON


def _in_quotes(reason: str | None) -> str:
    """`` ("reason")``, or empty when there is none."""
    return f' ("{reason}")' if reason and reason != NO_REASON else ""


def _cost_text(
    code: str, evidence: Evidence, venue: VenueEvidence, reading: VenueReading, policy: Policy
) -> str:
    """The deciding figure, without the full stop."""
    losses = parts(reading, policy)
    if code == "toll_pool":
        subject = "The pool's hook" if venue.venue.keeps_by_hook() else "The pool"
        return f"{subject} keeps {percent(losses.pool_fee_bps)} of a round trip for itself"
    if code == "thin_pool" and _bps_or_zero(reading.cross_venue_loss_bps) > _bps_or_zero(reading.impact_bps):
        return (
            f"What is bought where it is cheapest does not sell there, and on its other pool "
            f"{percent(_bps_or_zero(reading.cross_venue_loss_bps))} of it is lost"
        )
    if code == "thin_pool":
        impact = percent(losses.impact_bps)
        return f"The pool is thin: a buy of this size gets {impact} fewer tokens than a small one"
    if code in ("high_fees", "heavy_fees"):
        worst = fee_like_bps(reading, policy)
        small = max(_bps_or_zero(reading.fees_bps), _bps_or_zero(reading.first_tax_bps))
        for when, later in (("in an hour", reading.hour), ("in a day", reading.day)):
            at_once = reading.full.loss_bps if isinstance(reading.full, Sale) else 0
            if isinstance(later, Sale) and later.loss_bps == worst > max(at_once, small):
                return f"Sold {when}, fees and taxes take {percent(worst)} of a round trip"
        return f"Fees and taxes take {percent(worst)} of a round trip"
    return _ok_text(evidence, venue, reading, policy)


def _bps_or_zero(figure: object) -> int:
    return figure if isinstance(figure, int) else 0


def _ok_text(evidence: Evidence, venue: VenueEvidence, reading: VenueReading, policy: Policy) -> str:
    """For code ok: which sells succeeded, and which did not."""
    if isinstance(reading.full, Sale) and enough(reading.full, policy):
        return _sells_at_once_text(reading.full, reading)
    why = _in_quotes(sell_reason_text(venue, reading))
    if enough(reading.half, policy):
        return f"Not all of it sells at once{why}; up to {_supply_share(evidence, reading)} does"
    when = "an hour" if enough(reading.hour, policy) else "a day"
    return f"It does not sell at once{why}; it sells after {when}"


def _sells_at_once_text(full: Sale, reading: VenueReading) -> str:
    loss = percent(full.loss_bps)
    if reading.refused_elsewhere is not None:
        why = _in_quotes(names.reason(reading.refused_elsewhere.reason or ""))
        return f"One wallet bought and sold it for a loss of {loss}; another was refused the buy{why}"
    if reading.closing:
        usual = "A buy of the usual size would sell its curve out"
        return f"{usual}; a smaller one sold straight back for a loss of {loss}"
    if not full.whole:
        return f"It was bought and {percent(full.share_bps)} of it sold straight back, no more"
    for when, later in (("in an hour", reading.hour), ("in a day", reading.day)):
        if not (isinstance(later, Sale) and later.whole):
            return f"It sells at once for a loss of {loss}, and no longer {when}"
    for part_text, part in (("half", reading.half), ("a hundredth", reading.sliver)):
        if isinstance(part, RefusedCall):
            return f"All of it sells for a loss of {loss}, and {part_text} of it does not"
        if isinstance(part, Missing):
            return f"All of it sells for a loss of {loss}; it is not known whether {part_text} of it does"
    return f"It was bought and sold straight back for a loss of {loss}"


def _supply_share(evidence: Evidence, reading: VenueReading) -> str:
    """Half of the bought amount, as a share of the supply where known."""
    supply = evidence.facts.total_supply_raw
    if reading.bought is None or not isinstance(supply, int) or supply <= 0:
        return "half of it"
    return f"half of it ({percent(reading.bought.received_raw * BPS // (2 * supply))} of supply)"


def _larger_trade_text(reading: VenueReading, policy: Policy) -> str:
    """The result at ten times the size, where it differs."""
    if not enough(reading.full, policy):
        return ""
    if isinstance(reading.large, RefusedCall):
        return "; 1 eth of it does not sell"
    if isinstance(reading.large, Missing):
        return "; it is not known whether 1 eth of it sells"
    worst = max(policy.warn_loss_bps, parts(reading, policy).worst_bps + 1)
    if isinstance(reading.large, Sale) and reading.large.loss_bps >= worst:
        return f"; 1 eth of it loses {percent(reading.large.loss_bps)}"
    return ""


def _gas_text(reading: VenueReading, policy: Policy) -> str:
    if reading.most_gas <= policy.named_gas:
        return ""
    return f"; one leg burns {reading.most_gas:,} gas"
