"""Removals of liquidity, as people are told of them."""

from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, HexBytes

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
