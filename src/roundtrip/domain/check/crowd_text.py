"""The words for what the wallets of a crowd met, and for what other sells than the main wallet's met."""

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import (
    format_count,
    format_duration,
    format_eth,
    format_gas_price,
    format_percent,
)
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.router_codes import quote_reason

from .crowd_reading import Cause, CrowdFinding, CrowdReading
from .evidence import Missing, RefusedCall
from .refusals import REASON_WITHHELD, ROUTER_REASONS
from .sales import Sale
from .venue_code import enough, loses_more, parts, refuses_again, refuses_others
from .venue_reading import VenueReading

_AFTER: dict[Cause, str] = {
    "others": " after others have bought",
    "others sold": " after others have bought and sold",
}


_SELLS: dict[Cause, str] = {
    **_AFTER,
    "blocks": " some blocks after the buy",
    "approval": " after an unlimited approval",
    "code": " by a wallet with code (EIP-7702)",
    "together": " that differed in several ways from the usual one",
}


def trap_text(crowd: CrowdReading) -> str:
    """The sentence for a token that some wallets cannot sell; empty where the crowd shows no trap. Without
    its full stop and its reason. A crowd is compared with a wallet that traded alone and sold."""
    finding = crowd.trap()
    if finding is None:
        return ""
    if finding.cause == "blocks":
        return "It sells in the blocks right after the buy, and some blocks later not: not within a day"
    if finding.cause in _AFTER:
        after = _AFTER[finding.cause].replace("have", "had")
        return f"A wallet alone could sell it, but not{after}: not now, not within a day"
    others, left = "The first wallet, which traded alone, could", crowd.traded - _count_refused(crowd)
    if sold := min(crowd.sold, left):
        others = "The others could" if sold == left else f"{format_count(sold, 'other')} could"
    return f"{_count(crowd)} could buy it and not sell it: not now, not within a day. {others}"


def _count_refused(crowd: CrowdReading) -> int:
    """How many could not sell; one where only the isolation round met the refusal."""
    return max(1, crowd.refused)


def _count(crowd: CrowdReading, refused: bool = True) -> str:
    """``3 of 27 test wallets``. ``refused``: of those that could not sell; else of all that met something
    else."""
    number = _count_refused(crowd) if refused else crowd.differing
    return f"{number} of {format_count(crowd.traded, 'test wallet')}"


def trap_reason(crowd: CrowdReading) -> str:
    """`` The sell fails with "paused".`` with its leading space; empty where no reason is known."""
    finding = crowd.trap()
    why = "" if finding is None else _reason(finding.refusal)
    if not why:
        return ""
    return f" {why[0].upper()}{why[1:]}." if why == REASON_WITHHELD else f" The sell fails with {why}."


def victims_text(crowd: CrowdReading | None, loss_bps: int) -> str:
    """Who loses that much; empty where everybody does."""
    if crowd is None:
        return ""
    for finding in crowd.findings:
        if finding.loss_bps == loss_bps and not finding.refused and finding.cause in _AFTER:
            return _AFTER[finding.cause]
        if finding.loss_bps == loss_bps and not finding.refused and finding.cause in ("wallet", "company"):
            return f" from {_count(crowd, refused=False)}"
        if finding.loss_bps == loss_bps and not finding.refused and finding.cause == "time":
            return f", sold {format_duration(_sold_after_s(finding))} after the buy"
    return ""


def looked_text(crowd: CrowdReading, route: str) -> str:
    """The clause for how far the crowd looked, where all met what the main wallet met; empty where none
    sold, or not all. ``route``: as in ``differing_text``."""
    if crowd.differing or crowd.is_thin() or not crowd.sold:
        return ""
    drawn, idle = format_count(crowd.drawn, "test wallet"), crowd.drawn - crowd.traded
    together = f"{format_eth(crowd.traded_wei)} together"
    others = f", and {idle} could not trade" if idle else ""
    short = f", and {crowd.settled_short} could not through {route}: it takes no taxed token"
    return (
        f"{crowd.sold} of {drawn} sold it within a day, too ({together})"
        f"{short if crowd.settled_short else ''}{others}"
    )


def differing_text(crowd: CrowdReading, route: str) -> str:
    """The clause for what some wallets met, of a token that is no trap; empty where all met the same.
    ``route``: the name of the venue's second route."""
    by_cause: dict[Cause, CrowdFinding] = {}
    for finding in sorted(crowd.findings, key=_plainness):
        by_cause.setdefault(finding.cause, finding)
    if len(by_cause) > 1:
        # Said only where no other cause was found.
        by_cause.pop("not alone", None)
    clauses = [_clause(finding, crowd, route) for finding in by_cause.values()]
    if not clauses and crowd.differing:
        clauses = [f"{_count(crowd, refused=False)} met something else"]
    if crowd.is_thin():
        clauses.append(f"only {crowd.traded} of {format_count(crowd.drawn, 'test wallet')} could trade")
    return ", and ".join(clauses)


def _plainness(finding: CrowdFinding) -> tuple[int, int]:
    """Of findings with one cause the smallest size and the earliest time come first."""
    trade = finding.trade
    return trade.wallet.size_wei, trade.wallet.after_s + trade.late_s


def _clause(finding: CrowdFinding, crowd: CrowdReading, route: str) -> str:
    wallet = finding.trade.wallet
    why = _in_brackets(finding.refusal)
    met = f"loses {format_percent(finding.loss_bps)}" if finding.loss_bps > 0 else "sells only in part"
    met = f"is refused{why}" if finding.refused else met
    if finding.cause == "size":
        sold = f"; the largest that sold cost {format_eth(crowd.largest_wei)}" if crowd.largest_wei else ""
        return f"a sell of what {format_eth(wallet.size_wei + wallet.again_wei)} buys {met}{sold}"
    if finding.cause == "time":
        return f"a sell {format_duration(_sold_after_s(finding))} after the buy {met}"
    if finding.cause == "share":
        return f"a sell of {format_percent(wallet.share_bps)} of it {met}"
    if finding.cause == "pieces":
        return f"a sale in ten pieces over a day {met}"
    if finding.cause == "route":
        return f"a sell through {route} {met}"
    if finding.cause == "tip":
        return f"a sell with a tip of {format_gas_price(wallet.tip_wei)} {met}"
    if finding.cause == "not alone":
        what = "could not sell" if finding.refused else "got less"
        count = _count(crowd, finding.refused)
        alone = (
            "alone, and with equal times between its pieces, it" if wallet.way == "pieces" else "alone they"
        )
        return f"{count} {what}{why} while others traded, and {alone} did not meet that"
    if finding.cause in _SELLS:
        return f"a sell{_SELLS[finding.cause]} {met}"
    return f"a sell by {_count(crowd, finding.refused)} {met}"


def _sold_after_s(finding: CrowdFinding) -> int:
    return finding.trade.wallet.after_s + finding.trade.late_s


def _in_brackets(refusal: RefusedCall | None) -> str:
    why = _reason(refusal)
    return f" ({why})" if why else ""


def _reason(refusal: RefusedCall | None) -> str:
    """The cleaned reason in quotes; empty where none is known."""
    reason = "" if refusal is None else names.reason(refusal.reason or "")
    if reason in ROUTER_REASONS:
        return REASON_WITHHELD
    return quote_reason(reason) if reason else ""


# --- other sells ------------------------------------------------------------------------------------


def larger_trade_text(reading: VenueReading, policy: Policy) -> str:
    """The result at ten times the size, where it differs."""
    if not all(enough(sell, policy) for sell in (reading.full, reading.hour, reading.day)):
        # It was tried at one of these moments: the time may be the reason, not the size.
        return ""
    if isinstance(reading.half, RefusedCall):
        # Not all of the large buy is sold: that may be the reason.
        return ""
    larger = format_eth(policy.large_wei)
    if isinstance(reading.large, RefusedCall):
        return f"; what {larger} buys cannot be sold{_largest_text(reading, policy)}"
    if isinstance(reading.large, Missing):
        return f"; we could not find out whether what {larger} buys can be sold"
    worst = max(policy.warn_loss_bps, parts(reading, policy).worst_bps + 1)
    if isinstance(reading.large, Sale) and reading.large.loss_bps >= worst:
        return f"; a round trip of {larger} loses {format_percent(reading.large.loss_bps)}"
    return ""


def other_seller_text(reading: VenueReading, policy: Policy) -> str:
    """What other sells (``venue_code.code_of``) met where the buyer's own went through; empty where the
    same."""
    if not enough(reading.full, policy):
        return ""
    much, receiver = f"a sell with a gas limit of {policy.buy_gas_limit:,}", "a wallet that you send it to"
    again = "a wallet that traded it before"
    clauses = []
    if isinstance(reading.much_gas, RefusedCall):
        clauses.append(f"; {much} is refused")
    # It sells half of what it got.
    if refuses_others(reading) and not isinstance(reading.half, RefusedCall):
        clauses.append(f"; {receiver} cannot sell it at once")
    # It sells a day later than the main wallet does last: where that fails, having traded is not why.
    if refuses_again(reading, policy) and enough(reading.day, policy):
        clauses.append(f"; {again} cannot sell it, not even after an hour")
    beside = ((much, reading.much_gas), ("a sell with little gas", reading.little_gas))
    for who, sell in (*beside, (receiver, reading.handed_on), (again, reading.traded_before)):
        if isinstance(sell, Missing):
            clauses.append(f"; we could not find out what {who} meets")
        elif isinstance(sell, Sale) and loses_more(sell, reading, policy):
            clauses.append(f"; {who} loses {format_percent(sell.loss_bps)}")
    return "".join(clauses)


def _largest_text(reading: VenueReading, policy: Policy) -> str:
    """The largest size that the crowd sold, where that of ``large_wei`` was refused; empty where the clause
    about the crowd names it."""
    crowd = reading.crowd
    if crowd is None or any(finding.cause == "size" for finding in crowd.findings):
        return ""
    is_between = policy.probe_wei < crowd.largest_wei < policy.large_wei
    return f", and what {format_eth(crowd.largest_wei)} buys can" if is_between else ""
