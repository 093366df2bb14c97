"""The clauses for what sells beside the main wallet's met: a larger one, one with much or little gas, and
those of wallets with a history."""

from roundtrip.domain.base.figures import format_eth, format_percent
from roundtrip.domain.base.policy import Policy

from .evidence import Missing, RefusedCall
from .sales import Sale
from .venue_code import enough, loses_more, parts, refuses_again, refuses_others
from .venue_reading import VenueReading


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
    if refuses_again(reading):
        clauses.append(f"; {again} cannot sell it, not even after a day")
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
