"""The facts that consecutive blocks add to the database."""

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
from roundtrip.domain.base.types import Address, BlockRef


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
