"""The sentence of a verdict, with the figure that decided it."""

from roundtrip.domain.base import names
from roundtrip.domain.base.errors import NO_ANSWER
from roundtrip.domain.base.figures import format_count, format_eth, format_loss, format_percent
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.router_codes import quote_reason
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import OtherPool, Venue

from .cross_exit import loses_much
from .crowd_text import (
    differing_text,
    larger_trade_text,
    looked_text,
    other_seller_text,
    trap_reason,
    trap_text,
    victims_text,
)
from .evidence import CodeSign, Curve, Evidence, LaunchRecord, Missing, RefusedCall, VenueEvidence
from .price import size_wei
from .refusals import NO_REASON, POOL_GOT_LESS, REASON_WITHHELD, ROUTER_REASONS, TRANSFER_REFUSED
from .sales import Sale
from .venue_code import (
    at_once_bps,
    beside_bps,
    bps_or_zero,
    enough,
    fee_like_bps,
    find_later_loss,
    is_lost_beside,
    is_lost_between_pools,
    parts,
    sells_at_some_hours_only,
    sells_by_second_route_only,
    sells_in_pieces_only,
    sells_nearly_all,
    stops_selling,
    takes_sells,
)
from .venue_reading import VenueReading, largest_rounded

NO_POOL = "No v3 or v4 pool trades this token."
NO_STANDARD_POOL = "No standard v3 or v4 pool trades this token."
_STANDARD_ONLY = "Only the standard pools were checked."

_NODE_FAULT_LENGTH = 240
"""The most characters that are shown of a fault of the node: its own words, and what helps."""
_OUT_OF_GAS = "out of gas"


def unproven(missing: Missing) -> str:
    """The sentences for verdict ``unproven``, with the reason. They say to ask again where that may help."""
    if missing.fault == "token":
        why = names.reason(missing.why).rstrip(".")
        # A fault of the token's answer may be a sentence of its own.
        cause = f"{'.' if why[:1].isupper() else ':'} {why}" if why else ""
        return f"The token prevented the check{cause}. This is not a pass."
    why = names.clean(missing.why, _NODE_FAULT_LENGTH).rstrip(".")
    if not why[:1].isupper():
        why = f"The node did not give all of the answer: {why}" if why else "The node gave no answer"
    elif not why.startswith(NO_ANSWER):
        # The sentence of a fault says itself what helps.
        return f"{why}. This is not a pass."
    return f"{why}. This is not a pass: ask again."


def sentence(
    code: str, index: int | None, evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy
) -> str:
    """The sentence for a proven verdict; where venues decided, also the pools that were left out."""
    if code == "no_contract":
        return "There is no contract at this address."
    if code == "not_a_token":
        return "The contract at this address does not answer like a token."
    if code == "quote_asset":
        return f"This is {evidence.role}, the money that tokens trade against: there is nothing to check."
    text = _venue_sentence(code, index, evidence, readings, policy)
    if evidence.facts.decimals is None:
        text = f"{text} It does not say how many decimals it has, so its amounts cannot be shown."
    if evidence.left_out:
        return f"{text} It has {format_count(evidence.left_out, 'more pool')} that the check left out."
    return text if evidence.candidates_complete else f"{text} {_STANDARD_ONLY}"


def _venue_sentence(
    code: str, index: int | None, evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy
) -> str:
    if code == "no_pool":
        no_pool = NO_POOL if evidence.candidates_complete else NO_STANDARD_POOL
        return _between_venues_text(evidence, policy) or no_pool
    count = sum(reading.status != "absent" for reading in readings)
    pools = "Its only pool" if count == 1 else f"None of its {count} pools"
    if code == "empty_pool":
        if any(r.status == "dry" and _is_curve(v) for v, r in zip(evidence.venues, readings, strict=True)):
            return (
                "Its curve is almost sold out: the next small buy closes it. "
                "Then you cannot trade until its pool opens."
            )
        return f"{pools} has {'no ' if count == 1 else ''}liquidity to buy from."
    if code == "cannot_buy":
        refused = next(i for i, r in enumerate(readings) if r.status == "refused")
        why = buy_refusal_text(evidence.venues[refused], readings[refused])
        # A deep check sells for real holders only beside a sell of its own.
        held = "so we could not test whether a holder can sell it"
        return f"{pools} {'refuses' if count == 1 else 'accepts'} a buy of any size, {held}.{why}"
    if code == "unproven" and any(reading.status == "rounds" for reading in readings):
        return _rounded_text(evidence, readings, policy)
    if code == "unproven":
        others = other_pools_text(evidence.other_pools, evidence.pools_found - evidence.left_out)
        return f"{others} So no sell could be tested: this is not a pass."
    if index is None:
        return "You pay and get nothing: the token keeps what you buy."
    venue, reading = evidence.venues[index], readings[index]
    if code == "cannot_sell":
        text = _cannot_sell_text(venue, reading, policy)
        return f"{text.removesuffix('.')}{_handed_on_text(reading, policy)}."
    smaller = (
        "" if reading.size == "probe" or reading.closing else " Only a smaller buy than usual went through."
    )
    parts_of_text = (
        _cost_text(code, evidence, readings, index, policy),
        _not_now_text(code, evidence, venue, reading, policy),
        _later_text(code, reading),
        _snipe_text(evidence, venue),
        _trap_beside_text(code, evidence, readings, index, policy),
        larger_trade_text(reading, policy),
        other_seller_text(reading, policy),
        _gas_text(reading, policy),
    )
    return f"{''.join(parts_of_text)}.{smaller}"


def _not_now_text(
    code: str, evidence: Evidence, venue: VenueEvidence, reading: VenueReading, policy: Policy
) -> str:
    """How it sells where not enough of it sells at once; empty where it does, or the cost's text says it."""
    if code == "ok" or isinstance(reading.full, Missing) or enough(reading.full, policy):
        return ""
    return f". {_ok_text(evidence, venue, reading, policy)}"


def _later_text(code: str, reading: VenueReading) -> str:
    """What a later sell lost, where that is less than half of what sells of every size lose now: a toll or a
    tax that falls with time."""
    if code not in ("toll_pool", "high_fees", "heavy_fees"):
        return ""
    now_bps = min(_full_loss_bps(reading), bps_or_zero(reading.fees_bps))
    for when, later in (("an hour", reading.hour), ("a day", reading.day)):
        if isinstance(later, Sale) and later.whole and 2 * later.loss_bps < now_bps:
            return f"; a sell {when} after the buy {_loss_text(later.loss_bps)}"
    return ""


def _loss_text(loss_bps: int) -> str:
    """``lost 0.60 %``, or gained."""
    return f"{'lost' if loss_bps >= 0 else 'gained'} {format_percent(abs(loss_bps))}"


def _trap_beside_text(
    code: str, evidence: Evidence, readings: tuple[VenueReading, ...], index: int, policy: Policy
) -> str:
    """Names the venue on which a buy brings most, where it takes no sell or a sell loses much more; code
    thin_pool says the former itself."""
    reading = readings[index]
    is_told = is_lost_beside(reading, policy) or (code == "thin_pool" and is_lost_between_pools(reading))
    if reading.trap_beside is None or is_told:
        return ""
    venue, trap = evidence.venues[reading.trap_beside].venue, readings[reading.trap_beside]
    pool = venue.pool or venue.pool_id
    if takes_sells(trap, policy):
        lost_bps = parts(trap, policy).tax_bps
        if lost_bps < policy.warn_loss_bps and loses_much(trap, policy):
            may, kept = "loses" if beside_bps(reading) else "may lose", fee_like_bps(trap, policy)
            beside = f"; another pool, where a buy brings most, keeps {format_percent(kept)} of a round trip"
            return f"{beside}, and what it brings {may} much here, too: {pool}"
        takes = f"takes {format_percent(lost_bps)}" if lost_bps >= policy.warn_loss_bps else "may take more"
        return f"; the token {takes} of a round trip in another pool, where a buy brings most: {pool}"
    beside = f"; another pool, where a buy brings most, takes no sell: {pool}"
    large_bps = reading.cross_venue_large_loss_bps
    if large_bps is None or large_bps < policy.warn_loss_bps:
        return beside
    large = format_eth(policy.large_wei)
    return f"{beside}, and what {large} buys there loses {format_percent(large_bps)} here"


def _lost_beside_text(
    evidence: Evidence, readings: tuple[VenueReading, ...], index: int, policy: Policy
) -> str:
    """What is lost in the pool where a buy brings most, where selling in this one loses much, too."""
    reading, crossed = readings[index], evidence.venues[index].crossed
    assert reading.trap_beside is not None
    beside = evidence.venues[reading.trap_beside].venue
    lost_bps = fee_like_bps(readings[reading.trap_beside], policy)
    takes = "The token takes" if reading.tax_beside_bps else "The pool keeps"
    if isinstance(crossed, RefusedCall):
        here = "does not sell in any other"
    elif beside_bps(reading) < lost_bps:
        here = f"loses {format_percent(beside_bps(reading))} in another"
    else:
        here = "loses no less in another"
    where = f"{takes} {format_percent(lost_bps)} of a round trip where a buy brings most"
    return f"{where}, and what you buy there {here}: {beside.pool or beside.pool_id}"


def is_between_venues(evidence: Evidence) -> bool:
    """True for a launch between its curve and its pool, or called off."""
    return isinstance(evidence.launch, LaunchRecord) and evidence.launch.is_between_venues()


def other_pools_text(pools: tuple[OtherPool, ...], count: int) -> str:
    """The pools of a token that has none against money, in a sentence. ``count``: of all of them."""
    if count == 1:
        return f"Its only pool is against a token that we do not trade through: {_other_pool(pools[0])}."
    against = "against tokens that we do not trade through"
    named = " and ".join(filter(None, (", ".join(map(_other_pool, pools[:-1])), _other_pool(pools[-1]))))
    such = "" if count == len(pools) else "such as "
    return f"Its {count:,} pools are {against}: {such}{named}."


def _other_pool(pool: OtherPool) -> str:
    return f"{pool.at} against {pool.against}"


def _rounded_text(evidence: Evidence, readings: tuple[VenueReading, ...], policy: Policy) -> str:
    """The text for a token of which one base unit costs more than a check pays."""
    rounding = (v for v, r in zip(evidence.venues, readings, strict=True) if r.status == "rounds")
    is_large = any(largest_rounded(venue) == "large" for venue in rounding)
    paid = format_eth(policy.large_wei if is_large else policy.probe_wei)
    buys = f"{paid} buys less than one unit of this token: the pool rounds it to zero, and you get nothing"
    return f"{buys}. So no sell could be tested: this is not a pass."


def _is_curve(venue: VenueEvidence) -> bool:
    return venue.venue.is_curve


RESCUED = "The launchpad cancelled this launch and emptied its curve: you cannot trade it."


def _between_venues_text(evidence: Evidence, policy: Policy) -> str | None:
    """The text for a launch between its curve and its pool, which is no trap; None for others."""
    launch = evidence.launch
    if not isinstance(launch, LaunchRecord) or not is_between_venues(evidence):
        return None
    if launch.phase == "rescued":
        return RESCUED
    since_s = evidence.block.timestamp_s - launch.swept_at_s if launch.swept_at_s else 0
    is_long = since_s > policy.closed_long_s
    since = f" for {since_s // 3600} h {since_s % 3600 // 60} min" if is_long else ""
    return f"Its curve is sold out and its pool has not opened{since}. You cannot trade it until then."


def _snipe_text(evidence: Evidence, venue: VenueEvidence) -> str:
    """The text on the snipe tax, and when it ends."""
    launch = evidence.launch
    state = launch.curve_state if isinstance(launch, LaunchRecord) and _is_curve(venue) else None
    if not isinstance(state, Curve) or state.snipe_bps == 0:
        return ""
    remaining_s = snipe_left_s(state, evidence.block.timestamp_s)
    ends = "" if remaining_s is None else f", ends in {remaining_s} s"
    return f"; an extra tax on first buyers, now {format_percent(state.snipe_bps)}{ends}"


def snipe_left_s(state: Curve, now_s: int) -> int | None:
    """Seconds until the snipe tax of a curve ends; None when the curve does not state it."""
    return None if state.snipe_seconds is None else max(0, state.launched_at_s + state.snipe_seconds - now_s)


def snipe_tax_left_s(evidence: Evidence) -> int | None:
    """Seconds after the evidence's block until the snipe tax in it ends, which changes the verdict; 0 where
    its curve does not state the end. None: there is no such tax in it."""
    launch = evidence.launch
    curve = launch.curve_state if isinstance(launch, LaunchRecord) else None
    if not isinstance(curve, Curve) or curve.snipe_bps == 0:
        return None
    return snipe_left_s(curve, evidence.block.timestamp_s) or 0


def _cannot_sell_text(venue: VenueEvidence, reading: VenueReading, policy: Policy) -> str:
    if reading.crowd is not None and (trap := trap_text(reading.crowd)):
        return f"{trap}.{trap_reason(reading.crowd)}"
    refusal = sell_refusal_text(venue, reading)
    if reading.inconsistent is True:
        return f"The same sell worked in one simulated block and failed in another.{refusal}"
    if stops_selling(reading, policy):
        return f"Y{stops_text(reading, 'it')[1:]}.{_as_sentence(stop_refusal(reading))}"
    sold = max((s.share_bps for s in reading.sells() if isinstance(s, Sale)), default=0)
    if sold:
        return f"You can buy it, but within a day this check could sell at most {format_percent(sold)} of it."
    if isinstance(reading.full, RefusedCall) and reading.full.reason in POOL_GOT_LESS:
        return f"You can buy it but not sell it: {short_arrival_text(venue)}."
    return f"You can buy it but not sell it: not now, not within a day.{refusal}"


_MAX_ROUNDING_UNITS = 10
"""Up to this many base units may be missing by rounding; more is a cut that the token takes."""


def short_arrival_text(venue: VenueEvidence) -> str:
    """Why a v3 pool refuses every sell of a token that arrives short."""
    rejects = "its pool rejects a sell that arrives short"
    if venue.short_raw is None or venue.short_raw > _MAX_ROUNDING_UNITS:
        return f"the token takes a cut of every sell, and {rejects}"
    return f"it arrives {format_count(max(1, venue.short_raw), 'base unit')} short, and {rejects}"


def stops_text(reading: VenueReading, what: str) -> str:
    """The text for a token that sells at once, but not after an hour or a day. ``what``: the sold thing in
    words: ``it``, or what a trade buys."""
    soon = reading.full if isinstance(reading.full, Sale) else reading.nearly
    assert isinstance(soon, Sale)
    laters = (reading.hour, reading.day, reading.nearly_hour, reading.nearly_day)
    left = max((sell.share_bps for sell in laters if isinstance(sell, Sale)), default=0)
    most = f"more than {format_percent(left)} of it " if left else ""
    part = what if soon is reading.full else nearly_all_of(soon, what)
    return f"you can sell {part} now for {format_loss(soon.loss_bps)}, but not {most}after an hour or a day"


def stop_refusal(reading: VenueReading) -> str:
    """Why it no longer sells, from the revert reason: ``the sell fails with "closed"``; empty where no reason
    is known."""
    # The sells of nearly all come first: all of it may be refused for another reason.
    laters = (reading.nearly_hour, reading.nearly_day, reading.hour, reading.day)
    refused = next((sell for sell in laters if isinstance(sell, RefusedCall)), None)
    reason = "" if refused is None else names.reason(refused.reason or "")
    if reason in ROUTER_REASONS:
        return REASON_WITHHELD
    return f"the sell fails with {quote_reason(reason)}" if reason else ""


def _handed_on_text(reading: VenueReading, policy: Policy) -> str:
    """The end of a sentence where another wallet can sell what the buyer cannot; else empty."""
    sells = reading.inconsistent is not True and enough(reading.handed_on, policy)
    if stops_selling(reading, policy):
        return ""
    return "; a wallet that you send it to can sell it" if sells else ""


def buy_reason_text(venue: VenueEvidence, reading: VenueReading) -> str | None:
    """The cleaned reason of the refused buy: the token's before the router's. None: it was not refused."""
    if reading.status == "bought" or reading.buy_refusal is None:
        return None
    return _reason_text(venue, venue.told_on_buy, reading.buy_refusal)


def sell_reason_text(venue: VenueEvidence, reading: VenueReading) -> str | None:
    """The cleaned reason of the refused full sell: the token's before the router's. None: it was not
    refused."""
    if not isinstance(reading.full, RefusedCall):
        return None
    return _reason_text(venue, venue.told_on_sell, reading.full)


def _reason_text(venue: VenueEvidence, direct: RefusedCall | Missing | None, routed: RefusedCall) -> str:
    """``direct``: the refusal of the transfer alone, without the router."""
    refusal = direct if isinstance(direct, RefusedCall) and direct.reason else routed
    reason = names.reason(refusal.reason or "")
    if reason in ROUTER_REASONS:
        if isinstance(direct, RefusedCall):
            return TRANSFER_REFUSED
        # A stranger's hook can revert inside the same wrapper.
        return NO_REASON if venue.venue.hook_in_swaps() else REASON_WITHHELD
    return reason or NO_REASON


def buy_refusal_text(venue: VenueEvidence, reading: VenueReading) -> str:
    """`` The token says "paused".`` with its leading space; empty where no reason is known."""
    return _as_sentence(_refusal("buy", buy_reason_text(venue, reading), venue.told_on_buy))


def sell_refusal_text(venue: VenueEvidence, reading: VenueReading) -> str:
    """The same for the refused full sell."""
    return _as_sentence(_refusal("sell", sell_reason_text(venue, reading), venue.told_on_sell))


def sell_refusal_clause(venue: VenueEvidence, reading: VenueReading) -> str:
    """The same in brackets, for the middle of a sentence: `` (the token says "paused")``."""
    refusal = _refusal("sell", sell_reason_text(venue, reading), venue.told_on_sell)
    is_short = isinstance(reading.full, RefusedCall) and reading.full.reason in POOL_GOT_LESS
    if is_short and venue.short_raw is not None and 0 < venue.short_raw <= _MAX_ROUNDING_UNITS:
        refusal = f"it arrives {format_count(venue.short_raw, 'base unit')} short, which the pool rejects"
    return f" ({refusal})" if refusal else ""


def _refusal(side: str, reason: str | None, direct: RefusedCall | Missing | None) -> str:
    """``direct``: as in ``_reason_text``. A reason that came only through the router can be a hook's."""
    if reason is None or reason == NO_REASON:
        return ""
    if reason in (TRANSFER_REFUSED, REASON_WITHHELD):
        return reason
    if isinstance(direct, RefusedCall) and direct.reason and reason != _OUT_OF_GAS:
        return f'the token says "{reason}"'
    return f"the {side} fails with {quote_reason(reason)}"


def _as_sentence(refusal: str) -> str:
    return f" {refusal[0].upper()}{refusal[1:]}." if refusal else ""


def _cost_text(
    code: str, evidence: Evidence, readings: tuple[VenueReading, ...], index: int, policy: Policy
) -> str:
    """The deciding figure, without the full stop."""
    venue, reading = evidence.venues[index], readings[index]
    losses = parts(reading, policy)
    if is_lost_beside(reading, policy) and reading.trap_beside is not None:
        return _lost_beside_text(evidence, readings, index, policy)
    if code == "toll_pool":
        subject = "The pool's hook" if venue.venue.keeps_by_hook() else "The pool"
        return f"{subject} keeps {format_percent(losses.pool_fee_bps)} of a round trip for itself"
    if code == "thin_pool" and is_lost_between_pools(reading):
        lost_bps = bps_or_zero(reading.cross_venue_loss_bps)
        other = f"selling it on the other loses {format_percent(lost_bps)}"
        if lost_bps >= BPS:
            other = "what you buy there does not sell on the other either"
        return f"The cheapest pool to buy it on accepts no sell; {other}"
    if code == "thin_pool":
        impact = format_percent(losses.impact_bps)
        paid = format_eth(size_wei(reading.size or "probe", policy))
        return f"The pool is thin: {paid} buys {impact} fewer tokens for its money than a small buy"
    if code in ("high_fees", "heavy_fees"):
        worst = fee_like_bps(reading, policy)
        when = find_later_loss(reading, worst)
        if when is not None and any(isinstance(sell, Sale) for sell in (reading.full, reading.nearly)):
            left = format_percent(max(0, BPS - worst))
            return f"It loses value while you hold it: after {when} you get {left} of your money back"
        victims = victims_text(reading.crowd, worst) if worst > at_once_bps(reading) else ""
        return f"Fees and taxes take {format_percent(worst)} of a round trip{victims}"
    return _ok_text(evidence, venue, reading, policy)


def keeps_text(evidence: Evidence, venue: Venue, readings: tuple[VenueReading, ...], policy: Policy) -> str:
    """What the venue's pool or hook keeps, or fees and taxes take, of a round trip, as the verdict says it;
    empty where the check did not measure it, and below the share from which a tax is high."""
    index = next((n for n, tried in enumerate(evidence.venues) if tried.venue == venue), None)
    if index is None or readings[index].status != "bought":
        return ""
    losses = parts(readings[index], policy)
    if max(losses.pool_fee_bps, losses.tax_bps) < policy.high_creator_tax_bps:
        return ""
    code = "toll_pool" if losses.pool_fee_bps >= losses.tax_bps else "high_fees"
    return f"{_cost_text(code, evidence, readings, index, policy)}."


def _full_loss_bps(reading: VenueReading) -> int:
    return reading.full.loss_bps if isinstance(reading.full, Sale) else 0


def _ok_text(evidence: Evidence, venue: VenueEvidence, reading: VenueReading, policy: Policy) -> str:
    """For code ok: which sells succeeded, and which did not."""
    if isinstance(reading.full, Sale) and enough(reading.full, policy):
        return f"{_sells_at_once_text(reading.full, reading)}{_crowd_clause(venue, reading)}"
    why = sell_refusal_clause(venue, reading)
    if isinstance(reading.nearly, Sale) and sells_nearly_all(reading.nearly, policy):
        return _nearly_all_text(reading.nearly, reading, why, policy)
    if enough(reading.half, policy):
        share = _supply_share(evidence, reading)
        return f"{share[0].upper()}{share[1:]} sells at once, but not all of it{why}"
    if sells_in_pieces_only(reading, policy):
        return _sold_in_pieces_text(reading, why)
    if sells_at_some_hours_only(reading, policy) and isinstance(reading.any_hour, Sale):
        lost = format_loss(reading.any_hour.loss_bps)
        return f"It sells at some hours of the day only, and not now{why}; then for {lost}"
    if sells_by_second_route_only(reading, policy) and isinstance(reading.route, Sale):
        route, loss = venue.venue.traits.second_route, format_loss(reading.route.loss_bps)
        return f"The usual sell is refused{why}; a sell through {route} went through for {loss}"
    return f"You cannot sell it at once{why}; you can {later_text(reading, policy)}"


def later_text(reading: VenueReading, policy: Policy) -> str:
    """When what does not sell at once sells, and that it stops again."""
    hour, day = (
        any(enough(sell, policy) for sell in sells)
        for sells in ((reading.hour, reading.nearly_hour), (reading.day, reading.nearly_day))
    )
    if hour and not day and isinstance(reading.day, Sale | RefusedCall):
        return "after an hour, but not after a day"
    return "after an hour" if hour else "after a day"


def _nearly_all_text(nearly: Sale, reading: VenueReading, why: str, policy: Policy) -> str:
    """The largest part that sells at once, with its loss, and when it no longer does. ``why``: the reason why
    all of it does not, in brackets."""
    part = nearly_all_of(nearly, "it")
    text = f"{part[0].upper()}{part[1:]} sells at once for {format_loss(nearly.loss_bps)}"
    for when, sells in (
        ("an hour", (reading.hour, reading.nearly_hour)),
        ("a day", (reading.day, reading.nearly_day)),
    ):
        if not any(enough(sell, policy) for sell in sells):
            return f"{text}, but not after {when}"
    return f"{text}, but not all of it{why}"


def nearly_all_of(nearly: Sale, what: str) -> str:
    """``98 % of it``; where its share rounds up to all, ``all but a few base units of it``. ``what``: ``it``,
    or what a trade buys."""
    share = "all but a few base units" if nearly.share_bps >= BPS else f"{nearly.share_bps / 100:g} %"
    return f"{share} of {what}"


def _crowd_clause(venue: VenueEvidence, reading: VenueReading) -> str:
    """``; a sell ... is refused``, where wallets of the crowd got different results; else empty."""
    if reading.crowd is None:
        return ""
    route = venue.venue.traits.second_route
    clause = differing_text(reading.crowd, route) or looked_text(reading.crowd, route)
    return f"; {clause}" if clause else ""


def _sold_in_pieces_text(reading: VenueReading, why: str) -> str:
    """Which single sale failed, and what the small ones sold. ``why``: the reason, in brackets."""
    pieces = reading.pieces
    assert isinstance(pieces, Sale)
    single = [sell for sell in (reading.full, reading.half) if isinstance(sell, Sale)]
    if single:
        one_sale = f"One sale sells at most {format_percent(max(sell.share_bps for sell in single))} of it"
    else:
        part = "half" if isinstance(reading.half, RefusedCall) else "all"
        one_sale = f"A sale of {part} of it is refused{why}"
    return f"{one_sale}; {pieces_text(reading, pieces, format_loss(pieces.loss_bps))}"


def pieces_text(reading: VenueReading, pieces: Sale, lost: str) -> str:
    """The result of the ten or fifty sales. ``lost``: their loss or gain in words."""
    sales = "fifty sales of a fiftieth" if reading.in_fifty else "ten sales of a tenth"
    if pieces.share_bps >= BPS:
        return f"{sales} went through within a day for {lost}"
    return f"{sales} within a day sold {format_percent(pieces.share_bps)} of it for {lost}"


def _sells_at_once_text(full: Sale, reading: VenueReading) -> str:
    loss = format_loss(full.loss_bps)
    if reading.refused_elsewhere is not None:
        reason = names.reason(reading.refused_elsewhere.reason or "")
        refusal = REASON_WITHHELD if reason in ROUTER_REASONS else quote_reason(reason)
        why = f" ({refusal})" if reason else ""
        return f"One test wallet bought and sold it for {loss}; another could not buy it{why}"
    if reading.closing:
        usual = "A buy of the usual size would sell its curve out"
        return f"{usual}; a smaller one sold straight back for {loss}"
    if not full.whole:
        return f"Only {format_percent(full.share_bps)} of what was bought sold straight back"
    for when, later in (("an hour", reading.hour), ("a day", reading.day)):
        if not isinstance(later, Sale):
            return f"It sells now for {loss}, but not at all after {when}"
        if not later.whole:
            share = format_percent(later.share_bps)
            return f"It sells now for {loss}, but after {when} only {share} of it sells"
    for part_text, part in (("half", reading.half), ("a hundredth", reading.sliver)):
        if isinstance(part, RefusedCall):
            return f"All of it sells for {loss}, but {part_text} of it does not"
        if isinstance(part, Missing):
            return f"All of it sells for {loss}; we could not find out whether {part_text} of it does"
    return f"It was bought and sold straight back for {loss}"


def _supply_share(evidence: Evidence, reading: VenueReading) -> str:
    """Half of the bought amount, as a share of the supply where known."""
    supply = evidence.facts.total_supply_raw
    if reading.bought is None or not isinstance(supply, int) or supply <= 0:
        return "half of it"
    return f"half of it ({format_percent(reading.bought.received_raw * BPS // (2 * supply))} of supply)"


def _gas_text(reading: VenueReading, policy: Policy) -> str:
    if reading.most_gas <= policy.named_gas:
        return ""
    return f"; one step uses {reading.most_gas:,} gas"


_SIGN_NAMES: dict[CodeSign, str] = {
    "balance": "how much eth an account has",
    "gas_price": "the gas price",
    "code_hash": "the hash of an account's code",
    "block_hash": "the hash of a block",
    "origin": "which wallet sent the transaction",
}
_NOTHING_TRIED = frozenset({"no_contract", "not_a_token", "quote_asset", "no_pool", "empty_pool"})


def code_signs_sentence(code: str, signs: tuple[CodeSign, ...]) -> str:
    """The sentence on what the token's bytecode can look at in a transfer; empty where ``signs`` is empty or
    no trade was tried. ``code``: the verdict's."""
    if not signs or code in _NOTHING_TRIED:
        return ""
    *others, last = (name for sign, name in _SIGN_NAMES.items() if sign in signs)
    read = f"{', '.join(others)} and {last}" if others else last
    return f"In a transfer its code can look at {read}, so it can treat trades differently."
