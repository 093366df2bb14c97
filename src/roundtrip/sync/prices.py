"""What money was worth as blocks went by: told by the pools where it is traded for usdg."""

from roundtrip.domain.base.events import PoolPlace, Price, Priced, Swapped
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.market.price_history import (
    MOST_MICRO_USD,
    capped_usdg,
    usdg_in_range,
    usdg_per_unit,
    worth_wei,
)
from roundtrip.venues import amm_v3
from roundtrip.venues.base import Contracts

from .fold_context import FoldContext

QUOTE_FEE_PIPS = 500
"""Of the pools with usdg that tell what launches' other quotes are worth: there is one of each, and nobody
can put another in its place."""


class PriceFold:
    """Keeps ``known.prices`` and writes each change into ``changed``.

    One v3 pool with usdg tells what a thing is worth: of weth, which stands for eth, the one that the network
    names, else the first where money lay; of what launches were made against the one with the usual fee. To
    believe the deepest would be to believe whoever lends himself any depth for a moment, in his own pool.
    """

    def __init__(
        self,
        known: FoldContext,
        contracts: Contracts,
        changed: dict[tuple[Address, int], Price],
        eth_usd_pool: Address | None = None,
    ) -> None:
        self._known = known
        self._eth_usd_pool = eth_usd_pool
        self._contracts = contracts
        self._changed = changed
        self._settled = dict(known.prices)

    def settle(self) -> None:
        """A block begins: what things are worth in it is what they were worth at the end of the one before.
        Within a block, and so within one transaction, anybody can bend a price for nothing."""
        self._settled = dict(self._known.prices)

    def worth(self, quote: Address, quote_raw: int) -> tuple[int | None, int | None]:
        """So much of a quote in wei of eth and in millionths of a dollar; None where that is not known."""
        eth = self._of(self._contracts.weth)
        if quote in (ZERO_ADDRESS, self._contracts.weth):
            told = None if eth is None else capped_usdg(quote_raw, eth.usdg_raw)
            return quote_raw, told
        if quote == self._contracts.usdg:
            micro_usd = min(quote_raw, MOST_MICRO_USD)
        else:
            own = self._of(quote)
            if own is None:
                return None, None
            micro_usd = capped_usdg(quote_raw, own.usdg_raw)
        return None if eth is None else worth_wei(micro_usd, eth.usdg_raw), micro_usd

    def note_price_set(self, event: Priced, pool: PoolPlace, at: BlockRef) -> None:
        """A pool was given a price. It tells nothing until somebody puts money there."""
        if self._tells(pool) and pool.token not in self._known.prices:
            self._put(pool, event.sqrt_price_x96, 0, at)

    def note_deposit(self, pool: PoolPlace, usdg_raw: int, at: BlockRef) -> None:
        """Money came into a pool: the first where nobody has swapped yet makes its price one."""
        before = self._known.prices.get(pool.token)
        if before is not None and before.at == pool.at and not before.depth_raw and usdg_raw > 0:
            self._note(before._replace(block_number=at.number, at_s=at.timestamp_s, depth_raw=usdg_raw))

    def note_swap(self, event: Swapped, pool: PoolPlace, at: BlockRef) -> None:
        """Somebody swapped in a pool."""
        if not self._tells(pool):
            return
        before = self._known.prices.get(pool.token)
        if before is None or before.at == pool.at or not before.depth_raw:
            depth_raw = usdg_in_range(event.sqrt_price_x96, event.liquidity, pool.token > pool.quote)
            self._put(pool, event.sqrt_price_x96, depth_raw, at)

    def _of(self, quote: Address) -> Price | None:
        found = self._settled.get(quote)
        return found if found is not None and found.depth_raw and found.usdg_raw else None

    def _tells(self, pool: PoolPlace) -> bool:
        contracts = self._contracts
        if pool.kind != amm_v3.KIND or pool.quote != contracts.usdg:
            return False
        if pool.token == contracts.weth:
            return self._eth_usd_pool in (None, pool.at)
        return pool.fee_pips == QUOTE_FEE_PIPS and pool.token in self._known.quotes

    def _put(self, pool: PoolPlace, sqrt_price_x96: int, depth_raw: int, at: BlockRef) -> None:
        usdg_raw = usdg_per_unit(sqrt_price_x96, pool.token < pool.quote)
        self._note(Price(pool.token, at.number, at.timestamp_s, pool.at, usdg_raw, depth_raw))

    def _note(self, price: Price) -> None:
        self._known.prices[price.quote] = price
        self._changed[price.quote, price.block_number] = price
