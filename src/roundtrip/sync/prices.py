"""Dollar prices of the quotes, block by block, from the pools that trade them for usdg."""

from roundtrip.domain.base.events import PoolPlace, Price, Priced, Swapped
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.market.price_history import (
    MAX_MICRO_USD,
    capped_usdg,
    usdg_in_range,
    usdg_per_unit,
    worth_wei,
)
from roundtrip.venues import amm_v3
from roundtrip.venues.base import Contracts

from .fold_context import FoldContext

QUOTE_FEE_PIPS = 500
"""Fee of the usdg pools that price the other quotes of launches: each quote can have only one such pool."""


class PriceFold:
    """Updates ``known.prices`` and records each change in ``changed``.

    One v3 pool with usdg prices each quote. Weth (and eth): the pool that the network names, else the first
    that held money. Quotes of launches: the pool with the usual fee. The deepest pool is not used, because
    anybody can borrow depth for a moment, for a pool of their own.
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
        self._at_block_start = dict(known.prices)

    def begin_block(self) -> None:
        """Fixes the prices for the next block to those at the end of the one before. Within a block, and so
        within one transaction, anybody can bend a price at no cost."""
        self._at_block_start = dict(self._known.prices)

    def worth(self, quote: Address, quote_raw: int) -> tuple[int | None, int | None]:
        """The worth of an amount of a quote in wei of eth and in millionths of a dollar; None: unknown."""
        eth = self._price_of(self._contracts.weth)
        if quote in (ZERO_ADDRESS, self._contracts.weth):
            micro_usd = None if eth is None else capped_usdg(quote_raw, eth.usdg_raw)
            return quote_raw, micro_usd
        if quote == self._contracts.usdg:
            micro_usd = min(quote_raw, MAX_MICRO_USD)
        else:
            price = self._price_of(quote)
            if price is None:
                return None, None
            micro_usd = capped_usdg(quote_raw, price.usdg_raw)
        return None if eth is None else worth_wei(micro_usd, eth.usdg_raw), micro_usd

    def note_price_set(self, event: Priced, pool: PoolPlace, at: BlockRef) -> None:
        """Notes a pool's initial price. It does not count until the pool holds money."""
        if self._sets_price(pool) and pool.token not in self._known.prices:
            self._record_pool_price(pool, event.sqrt_price_x96, 0, at)

    def note_deposit(self, pool: PoolPlace, usdg_raw: int, at: BlockRef) -> None:
        """Notes a deposit: the first into a pool without swaps makes its price count."""
        before = self._known.prices.get(pool.token)
        if before is not None and before.at == pool.at and not before.depth_raw and usdg_raw > 0:
            self._record(before._replace(block_number=at.number, at_s=at.timestamp_s, depth_raw=usdg_raw))

    def note_swap(self, event: Swapped, pool: PoolPlace, at: BlockRef) -> None:
        """Notes the price after a swap."""
        if not self._sets_price(pool):
            return
        before = self._known.prices.get(pool.token)
        if before is None or before.at == pool.at or not before.depth_raw:
            depth_raw = usdg_in_range(event.sqrt_price_x96, event.liquidity, pool.token > pool.quote)
            self._record_pool_price(pool, event.sqrt_price_x96, depth_raw, at)

    def _price_of(self, quote: Address) -> Price | None:
        price = self._at_block_start.get(quote)
        return price if price is not None and price.depth_raw and price.usdg_raw else None

    def _sets_price(self, pool: PoolPlace) -> bool:
        contracts = self._contracts
        if pool.kind != amm_v3.KIND or pool.quote != contracts.usdg:
            return False
        if pool.token == contracts.weth:
            return self._eth_usd_pool in (None, pool.at)
        return pool.fee_pips == QUOTE_FEE_PIPS and pool.token in self._known.quotes

    def _record_pool_price(self, pool: PoolPlace, sqrt_price_x96: int, depth_raw: int, at: BlockRef) -> None:
        usdg_raw = usdg_per_unit(sqrt_price_x96, pool.token < pool.quote)
        self._record(Price(pool.token, at.number, at.timestamp_s, pool.at, usdg_raw, depth_raw))

    def _record(self, price: Price) -> None:
        self._known.prices[price.quote] = price
        self._changed[price.quote, price.block_number] = price
