"""Which of a pool's two currencies is the token, and which the quote."""

from collections.abc import Collection

from roundtrip.domain.base.types import ZERO_ADDRESS, Address

from .base import Contracts


def sides(
    low: Address, high: Address, quotes: Collection[Address], contracts: Contracts
) -> tuple[Address, Address, bool]:
    """The pool's token, its quote, and whether the quote is money. The quote is the first of eth, weth, usdg
    and ``quotes`` (what launches were made against). Where neither currency is one, ``low`` is the token."""
    ranks = {ZERO_ADDRESS: 0, contracts.weth: 1, contracts.usdg: 2}
    low_rank = ranks.get(low, 3 if low in quotes else 4)
    high_rank = ranks.get(high, 3 if high in quotes else 4)
    if low_rank == high_rank == 4:
        return low, high, False
    if {low_rank, high_rank} == {1, 2}:
        # Weth is priced in usdg.
        return contracts.weth, contracts.usdg, True
    return (high, low, True) if low_rank <= high_rank else (low, high, True)
