"""What reading consecutive blocks takes and gives: the facts that they add to the database, and what is known
from earlier blocks, in bounded caches of the database."""

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
    """Facts in the order of the chain. ``parent_hash``: of the block before the first. ``steps``: what became
    of launches. ``new_quotes``: quotes of launches seen for the first time, each with its block; they count
    as money from that block on. ``reoriented``: earlier pools that hold one of them, with it now as the
    quote. ``met``: the first appearances of wallets; ``funded``: the first eth of wallets."""

    parent_hash: str
    blocks: list[BlockRef] = field(default_factory=list)
    pools: list[PoolPlace] = field(default_factory=list)
    launches: list[LaunchEvent] = field(default_factory=list)
    steps: list[LaunchStep] = field(default_factory=list)
    new_quotes: list[tuple[Address, int]] = field(default_factory=list)
    reoriented: list[PoolPlace] = field(default_factory=list)
    trades: list[TradeEvent] = field(default_factory=list)
    buybacks: list[Buyback] = field(default_factory=list)
    liquidity: list[LiquidityChange] = field(default_factory=list)
    position_transfers: list[PositionTransfer] = field(default_factory=list)
    states: dict[tuple[str, int], ActiveDepth | None] = field(default_factory=dict)
    """Tick and active liquidity at the end of a block, by pool and block number; None: no longer known."""
    transfers: list[Transfer] = field(default_factory=list)
    prices: dict[tuple[Address, int], Price] = field(default_factory=dict)
    """By quote and block number: one price of each quote per block."""
    met: list[WalletMet] = field(default_factory=list)
    funded: list[WalletFunded] = field(default_factory=list)

    def rows(self) -> int:
        """The number of pools, launches, their steps, trades, liquidity changes and transfers: the batch's
        size."""
        launched = len(self.pools) + len(self.launches) + len(self.steps)
        return launched + len(self.trades) + len(self.liquidity) + len(self.transfers)


MAX_REMEMBERED = 50_000
"""Per cache. When one holds more, it is cleared and filled again as needed."""


@dataclass(slots=True)
class FoldContext:
    """What is known from earlier blocks. ``quotes``: quotes of launches, which count as money. ``prices``:
    the newest of each quote. ``pools``: by address or v4 pool id; None: there is no such pool. ``states``:
    tick and active liquidity of these pools; missing or None: not known. ``launched``: whether a launchpad
    launched the token. ``met``: wallets that have an origin row; ``funded``: wallets whose funder is decided.

    It matches the database up to the newest stored block: the writer discards it when a write fails.
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
