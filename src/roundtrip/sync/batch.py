"""The facts that consecutive blocks add to the database. What a fold needs from earlier blocks: bounded
caches of the database."""

from dataclasses import dataclass, field

from roundtrip.domain.base.events import (
    ActiveDepth,
    Buyback,
    LaunchEvent,
    LaunchStep,
    LiquidityChange,
    PoolPlace,
    PositionTransfer,
    Price,
    TradeEvent,
    Transfer,
    WalletFunded,
    WalletMet,
)
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.venues.base import Contracts


@dataclass(slots=True)
class Batch:
    """Facts in the order of the chain. ``new_quotes``: quotes of launches, seen for the first time;
    ``turned``: earlier pools that hold one of these quotes, which now counts as money."""

    parent_hash: str
    blocks: list[BlockRef] = field(default_factory=list)
    pools: list[PoolPlace] = field(default_factory=list)
    launches: list[LaunchEvent] = field(default_factory=list)
    steps: list[LaunchStep] = field(default_factory=list)
    new_quotes: list[tuple[Address, int]] = field(default_factory=list)
    turned: list[PoolPlace] = field(default_factory=list)
    trades: list[TradeEvent] = field(default_factory=list)
    buybacks: list[Buyback] = field(default_factory=list)
    liquidity: list[LiquidityChange] = field(default_factory=list)
    position_transfers: list[PositionTransfer] = field(default_factory=list)
    states: dict[tuple[str, int], ActiveDepth | None] = field(default_factory=dict)
    """By pool and block number: at the end of the block; None: not known any longer."""
    transfers: list[Transfer] = field(default_factory=list)
    prices: dict[tuple[Address, int], Price] = field(default_factory=dict)
    """By quote and block number: one price of each quote per block."""
    met: list[WalletMet] = field(default_factory=list)
    funded: list[WalletFunded] = field(default_factory=list)

    def rows(self) -> int:
        """The number of facts in the batch."""
        launched = len(self.pools) + len(self.launches) + len(self.steps)
        return launched + len(self.trades) + len(self.liquidity) + len(self.transfers)


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
