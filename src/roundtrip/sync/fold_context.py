"""What a fold needs from earlier blocks: bounded caches of the database."""

from dataclasses import dataclass, field

from roundtrip.domain.base.events import ActiveDepth, PoolPlace, Price
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.venues.base import Contracts

MAX_REMEMBERED = 50_000
"""Per cache. When one holds more, it is cleared and filled again as needed."""


@dataclass(slots=True)
class FoldContext:
    """``pools``: by place; None: there is no such pool. ``launched``: whether a launchpad launched the token.
    ``states``: of those pools, tick and active liquidity; missing or None: not known. ``quotes``: the quotes
    of launches. ``prices``: the newest of each quote. ``met``: wallets that have an
    origin row; ``funded``: wallets whose funder is decided.

    Matches the database at its cursor: the writer discards it when a write fails.
    """

    quotes: set[Address] = field(default_factory=set)
    prices: dict[Address, Price] = field(default_factory=dict)
    pools: dict[str, PoolPlace | None] = field(default_factory=dict)
    states: dict[str, ActiveDepth | None] = field(default_factory=dict)
    launched: dict[Address, bool] = field(default_factory=dict)
    met: set[Address] = field(default_factory=set)
    funded: set[Address] = field(default_factory=set)

    def trim(self) -> None:
        """Clears each cache that has grown too large."""
        if len(self.pools) > MAX_REMEMBERED:
            # A state is read with its pool.
            self.states.clear()
        for cache in (self.pools, self.launched, self.met, self.funded):
            if len(cache) > MAX_REMEMBERED:
                cache.clear()


def money(contracts: Contracts) -> frozenset[Address]:
    """The quotes that count as money on any network, before any launch."""
    return frozenset({ZERO_ADDRESS, contracts.weth, contracts.usdg})
