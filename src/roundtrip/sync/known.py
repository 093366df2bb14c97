"""What a fold has to know of the blocks before: bounded memories of what the database holds."""

from dataclasses import dataclass, field

from roundtrip.domain.events import Pool, Price
from roundtrip.domain.types import ZERO_ADDRESS, Address
from roundtrip.venues.base import Contracts

MOST_REMEMBERED = 200_000
"""Of each sort. Past it all of them are forgotten, and learned again as they are met."""


@dataclass(slots=True)
class Known:
    """``pools``: by where they are; None: there is no such pool. ``launched``: whether a launchpad launched
    the token. ``quotes``: what launches were made against. ``prices``: the newest of each quote. ``met`` and
    ``funded``: wallets that have an origin and a funder already.

    True of the database at its cursor: whoever fails to write what was folded clears it.
    """

    quotes: set[Address] = field(default_factory=set)
    prices: dict[Address, Price] = field(default_factory=dict)
    pools: dict[str, Pool | None] = field(default_factory=dict)
    launched: dict[Address, bool] = field(default_factory=dict)
    met: set[Address] = field(default_factory=set)
    funded: set[Address] = field(default_factory=set)

    def trim(self) -> None:
        """Keeps it bounded."""
        for memory in (self.pools, self.launched, self.met, self.funded):
            if len(memory) > MOST_REMEMBERED:
                memory.clear()


def sides(
    low: Address, high: Address, quotes: set[Address], contracts: Contracts
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
