"""Which of a pool's two currencies is the token, and which its money."""

from collections.abc import Collection

from roundtrip.domain.base.types import ZERO_ADDRESS, Address

from .base import Contracts


def sides(
    low: Address, high: Address, quotes: Collection[Address], contracts: Contracts
) -> tuple[Address, Address, bool]:
    """Which of a pool's currencies is the token and which the quote, and whether that is money: eth before
    weth before usdg before what launches were made against. Where neither is, in their own order."""
    ranks = {ZERO_ADDRESS: 0, contracts.weth: 1, contracts.usdg: 2}
    low_rank = ranks.get(low, 3 if low in quotes else 4)
    high_rank = ranks.get(high, 3 if high in quotes else 4)
    if low_rank == high_rank == 4:
        return low, high, False
    if {low_rank, high_rank} == {1, 2}:
        # What weth is worth is told in usdg.
        return contracts.weth, contracts.usdg, True
    return (high, low, True) if low_rank <= high_rank else (low, high, True)
