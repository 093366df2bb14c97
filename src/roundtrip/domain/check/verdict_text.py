"""The one short sentence of a verdict, with the figure that decided."""

from roundtrip.domain.base import names
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import Curve, Evidence, LaunchRecord, Missing, RefusedCall, VenueEvidence
from .venue_code import enough, fee_like_bps, parts
from .venue_reading import Sale, VenueReading

_STANDARD_ONLY = "Only the standard pools were looked at."

NO_REASON = "no reason given"

POOL_GOT_LESS = frozenset({"IIA"})
"""What a v3 pool says when less arrives than was sent to it."""


def percent(bps: int) -> str:
    """Bps as people write a percentage: ``60`` is ``0.60 %``."""
    sign, bps = ("-" if bps < 0 else ""), abs(bps)
    return f"{sign}{bps // 100}.{bps % 100:02d} %"


def unproven(missing: Missing) -> str:
    """Why nothing is proven; treat it as a no."""
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
    """The sentence for a proven verdict, and what was not looked at, where venues decided."""
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
        return f"{_cannot_sell(venue, reading)}{handed_on(reading, policy)}"
    smaller = (
        "" if reading.size == "probe" or reading.closing else " A smaller buy than usual was all it took."
    )
    besides = f"{_snipe(evidence, venue)}{_larger(reading, policy)}{_gas(reading, policy)}"
    return f"{_costs(code, evidence, venue, reading, policy)}{besides}.{smaller}"


def _is_curve(venue: VenueEvidence) -> bool:
    return venue.venue.is_curve


RESCUED = "The launchpad called this launch off and emptied its curve; there is nothing to trade it on."


def _closed_text(evidence: Evidence, policy: Policy) -> str | None:
    """Of a launch that no longer has its curve and not yet its pool: that is no trap."""
    launch = evidence.launch
    if not isinstance(launch, LaunchRecord) or not launch.is_between_venues():
        return None
    if launch.phase == "rescued":
        return RESCUED
    since_s = evidence.block.timestamp_s - launch.swept_at_s if launch.swept_at_s else 0
    long = since_s > policy.closed_long_s
    until = (
        f" for {since_s // 3600} h {since_s % 3600 // 60} min now"
        if long
        else "; until it does nobody can trade"
    )
    return f"Its curve is sold out and its pool has not opened{until}."


def _snipe(evidence: Evidence, venue: VenueEvidence) -> str:
    """The tax of a launch's first seconds, and when it ends."""
    launch = evidence.launch
    state = launch.curve_state if isinstance(launch, LaunchRecord) and _is_curve(venue) else None
    if not isinstance(state, Curve) or state.snipe_bps == 0:
        return ""
    left_s = snipe_left_s(state, evidence.block.timestamp_s)
    ends = "" if left_s is None else f" and ends in {left_s} s"
    return f"; the tax on a launch's first buyers is {percent(state.snipe_bps)} now{ends}"


def snipe_left_s(state: Curve, now_s: int) -> int | None:
    """Seconds until the snipe tax of a curve is over; None when the curve does not tell."""
    return None if state.snipe_seconds is None else max(0, state.launched_at_s + state.snipe_seconds - now_s)


def _cannot_sell(venue: VenueEvidence, reading: VenueReading) -> str:
    if reading.fickle is True:
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
    """What another wallet can do with what the buyer cannot sell: a sentence, or nothing."""
    sells = reading.fickle is not True and enough(reading.handed_on, policy)
    return " Another wallet that the buyer hands it on to can sell it." if sells else ""


def buy_reason_text(venue: VenueEvidence, reading: VenueReading) -> str | None:
    """Why the buy was refused, cleaned: the token's own word before the router's. None: it was not."""
    if reading.status == "bought" or reading.buy_refusal is None:
        return None
    transfer = venue.told_on_buy
    refusal = transfer if isinstance(transfer, RefusedCall) and transfer.reason else reading.buy_refusal
    return names.reason(refusal.reason or "") or NO_REASON


def sell_reason_text(venue: VenueEvidence, reading: VenueReading) -> str | None:
    """Why the full sell was refused, cleaned: the token's own word before the router's. None: it was not."""
    if not isinstance(reading.full, RefusedCall):
        return None
    transfer = venue.told_on_sell
    refusal = transfer if isinstance(transfer, RefusedCall) and transfer.reason else reading.full
    return names.reason(refusal.reason or "") or NO_REASON


def _in_quotes(reason: str | None) -> str:
    """`` ("reason")``, or nothing when there is none."""
    return f' ("{reason}")' if reason and reason != NO_REASON else ""


def _costs(code: str, evidence: Evidence, venue: VenueEvidence, reading: VenueReading, policy: Policy) -> str:
    """The deciding figure, without the full stop."""
    losses = parts(reading, policy)
    if code == "toll_pool":
        subject = "The pool's hook" if venue.venue.keeps_by_hook() else "The pool"
        return f"{subject} keeps {percent(losses.keep_bps)} of a round trip for itself"
    if code == "thin_pool" and _bps_or_zero(reading.exit_bps) > _bps_or_zero(reading.impact_bps):
        return (
            f"What is bought where it is cheapest does not sell there, and on its other pool "
            f"{percent(_bps_or_zero(reading.exit_bps))} of it is lost"
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
    return _holds(evidence, venue, reading, policy)


def _bps_or_zero(figure: object) -> int:
    return figure if isinstance(figure, int) else 0


def _holds(evidence: Evidence, venue: VenueEvidence, reading: VenueReading, policy: Policy) -> str:
    """For code ok: what was shown to hold, and what was not."""
    if isinstance(reading.full, Sale) and enough(reading.full, policy):
        return _holds_at_once(reading.full, reading)
    why = _in_quotes(sell_reason_text(venue, reading))
    if enough(reading.half, policy):
        return f"Not all of it sells at once{why}; up to {_supply_share(evidence, reading)} does"
    when = "an hour" if enough(reading.hour, policy) else "a day"
    return f"It does not sell at once{why}; it sells after {when}"


def _holds_at_once(full: Sale, reading: VenueReading) -> str:
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
    for words, part in (("half", reading.half), ("a hundredth", reading.sliver)):
        if isinstance(part, RefusedCall):
            return f"All of it sells for a loss of {loss}, and {words} of it does not"
        if isinstance(part, Missing):
            return f"All of it sells for a loss of {loss}; it is not known whether {words} of it does"
    return f"It was bought and sold straight back for a loss of {loss}"


def _supply_share(evidence: Evidence, reading: VenueReading) -> str:
    """Half of what was bought, as a share of the supply when that is known."""
    supply = evidence.facts.total_supply_raw
    if reading.bought is None or not isinstance(supply, int) or supply <= 0:
        return "half of it"
    return f"half of it ({percent(reading.bought.received_raw * BPS // (2 * supply))} of supply)"


def _larger(reading: VenueReading, policy: Policy) -> str:
    """What a trade of ten times the size meets, where that is something else."""
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


def _gas(reading: VenueReading, policy: Policy) -> str:
    if reading.most_gas <= policy.named_gas:
        return ""
    return f"; one leg burns {reading.most_gas:,} gas"
