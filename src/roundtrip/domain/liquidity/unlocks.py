"""When locked liquidity can be withdrawn, and which removals of liquidity are large."""

from datetime import UTC, datetime
from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.figures import format_amount, format_count
from roundtrip.domain.base.types import Address, HexBytes

ALERTED_BEFORE_S = 86_400
"""How long before an unlock accounts are alerted."""
CALENDAR_S = 30 * 86_400
"""How far ahead the calendar of unlocks reaches."""
_HOUR_S = 3_600
_PERCENT_DECIMALS = 2


class Unlock(NamedTuple):
    """A locked position. ``manager``: its owner as the pool knows it, a position manager or another contract.
    ``number``: its NFT there; 0: it has none. ``holder``: who can withdraw it from ``at_s`` on, seconds since
    1970. ``share_bps``: of the active liquidity of its pool, in hundredths of a percent; None: unknown."""

    token: Address
    manager: Address
    number: int
    holder: Address
    at_s: int
    share_bps: int | None


class ComingUnlock(NamedTuple):
    """The positions of a token that a holder can withdraw from one moment on. ``share_bps``: the sum of
    their shares, each of its own pool's active liquidity, at most all of it; None: one is unknown."""

    token: Address
    holder: Address
    at_s: int
    share_bps: int | None
    positions: int


def describe_unlock(unlock: ComingUnlock, now_s: int) -> str:
    """One sentence: when, how much of which token's liquidity, and by whom."""
    at = datetime.fromtimestamp(unlock.at_s, UTC)
    time_left = _format_time_left(unlock.at_s - now_s)
    what = f"locked liquidity of {unlock.token}"
    if unlock.share_bps:
        share = f"{format_amount(unlock.share_bps, _PERCENT_DECIMALS)} % of the active liquidity"
        pools = "a pool" if unlock.positions == 1 else f"the pools of {unlock.positions:,} locked positions"
        what = f"{share} of {pools} of {unlock.token}"
    return f"{time_left}, on {at.day} {at:%b %Y %H:%M} UTC, {what} can be withdrawn by {unlock.holder}."


def _format_time_left(left_s: int) -> str:
    """The time that is left: in minutes below an hour and in days from two of them on, both rounded down;
    else in hours, to the nearest."""
    if left_s < _HOUR_S:
        return f"In {format_count(max(left_s // 60, 1), 'minute')}"
    hours = (left_s + _HOUR_S // 2) // _HOUR_S
    if hours >= 48:
        return f"In {format_count(hours // 24, 'day')}"
    return "In a day" if hours == 24 else f"In {format_count(hours, 'hour')}"


LARGE_BPS, LARGE_BY_DEPLOYER_BPS = 1_000, 100
"""Shares of a pool's active liquidity; a removal above them is large."""
_WHOLE_BPS = 10_000


class Removal(NamedTuple):
    """A wallet took more active liquidity out of a pool, in one transaction, than it put in. ``pool``: a
    contract's address or a v4 pool's id. ``by_deployer``: a launchpad names the wallet as the token's
    deployer. ``share_bps``: of the pool's active liquidity just before, rounded down."""

    spot: Spot
    token: Address
    pool: HexBytes
    wallet: Address
    by_deployer: bool
    share_bps: int


def is_large(part_raw: int | None, active_raw: int | None, by_deployer: bool) -> bool:
    """Whether ``part_raw`` is a large share of ``active_raw``. None: unknown, which is not large."""
    if part_raw is None or active_raw is None:
        return False
    least_bps = LARGE_BY_DEPLOYER_BPS if by_deployer else LARGE_BPS
    return part_raw * _WHOLE_BPS > active_raw * least_bps


def share_bps(part_raw: int, active_raw: int) -> int:
    """The share in hundredths of a percent, rounded down; all of it where others added so much within the
    transaction that more was taken than the pool had before."""
    return min(part_raw, active_raw) * _WHOLE_BPS // active_raw
