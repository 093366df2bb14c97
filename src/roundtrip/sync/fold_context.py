"""What a fold has to know of the blocks before: bounded memories of what the database holds."""

from dataclasses import dataclass, field

from roundtrip.domain.base.events import PoolPlace, Price
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.venues.base import Contracts

MOST_REMEMBERED = 50_000
"""Of each sort. Past it all of them are forgotten, and learned again as they are met."""


@dataclass(slots=True)
class FoldContext:
    """``pools``: by where they are; None: there is no such pool. ``launched``: whether a launchpad launched
    the token. ``quotes``: what launches were made against. ``prices``: the newest of each quote. ``met`` and
    ``funded``: wallets that have an origin already, and those of which it is decided who funded them.

    True of the database at its cursor: whoever fails to write what was folded clears it.
    """

    quotes: set[Address] = field(default_factory=set)
    prices: dict[Address, Price] = field(default_factory=dict)
    pools: dict[str, PoolPlace | None] = field(default_factory=dict)
    launched: dict[Address, bool] = field(default_factory=dict)
    met: set[Address] = field(default_factory=set)
    funded: set[Address] = field(default_factory=set)

    def trim(self) -> None:
        """Keeps it bounded."""
        for memory in (self.pools, self.launched, self.met, self.funded):
            if len(memory) > MOST_REMEMBERED:
                memory.clear()


def money(contracts: Contracts) -> frozenset[Address]:
    """What is money on any network, before any launch."""
    return frozenset({ZERO_ADDRESS, contracts.weth, contracts.usdg})
