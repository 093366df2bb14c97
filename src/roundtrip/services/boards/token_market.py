"""What a row of a board shows of a token's market: its price, cap and liquidity."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from roundtrip.domain.base.types import WEI_PER_ETH, ZERO_ADDRESS, Address
from roundtrip.domain.market.price_history import worth_wei
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import eth
from roundtrip.store.boards.market_figures import MarketDepth
from roundtrip.store.index import prices
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.prices import PastPrices
from roundtrip.store.index.tokens import Label
from roundtrip.store.server.rows import Connection

_PRICE_UNIT = 10**36
"""Stored prices are in wei for so many base units of the token."""
_MICRO = 10**6


class MarketRow(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A token's market; None: not known. Prices are of the place where most of the money goes in.
    ``liquidity``: what lies there of the money."""

    price_eth: float | None = None
    price_usd: float | None = None
    cap_usd: float | None = None
    liquidity_eth: float | None = None
    liquidity_usd: float | None = None


@dataclass(frozen=True, slots=True)
class PricedMoney:
    """What money is worth at the start of block ``number``."""

    past: PastPrices
    number: int

    def usd(self, quote: Address, raw: int) -> float | None:
        """The worth in dollars; None: not known."""
        micro_usd = self.past.worth(quote, raw, self.number)
        return None if micro_usd is None else micro_usd / _MICRO

    def eth_usd(self) -> float | None:
        """A whole eth in dollars; None: not known."""
        return self.usd(ZERO_ADDRESS, WEI_PER_ETH)

    def wei(self, quote: Address, raw: int) -> int | None:
        """The worth in eth; None: not known."""
        if quote in (ZERO_ADDRESS, self.past.weth):
            return raw
        micro_usd = self.past.worth(quote, raw, self.number)
        eth_micro_usd = self.past.worth(ZERO_ADDRESS, WEI_PER_ETH, self.number)
        return worth_wei(micro_usd, eth_micro_usd) if micro_usd is not None and eth_micro_usd else None

    def market(self, price: int | None, depth: MarketDepth | None, label: Label) -> Mapping[str, Any]:
        """The fields of a ``MarketRow``."""
        price_eth, eth_usd = _price_eth(price, label), self.eth_usd()
        cap_wei = (
            None if price is None or label.supply_raw is None else price * label.supply_raw // _PRICE_UNIT
        )
        raw = None if depth is None else depth.quote_raw
        liquidity_wei = None if depth is None or raw is None else self.wei(depth.quote, raw)
        return {
            "price_eth": price_eth,
            "price_usd": None if price_eth is None or eth_usd is None else price_eth * eth_usd,
            "cap_usd": None if cap_wei is None else self.usd(ZERO_ADDRESS, cap_wei),
            "liquidity_eth": None if liquidity_wei is None else eth(liquidity_wei),
            "liquidity_usd": None if depth is None or raw is None else self.usd(depth.quote, raw),
        }


async def read_money(
    ctx: Context, connection: Connection, cursor: Cursor, depths: Collection[MarketDepth]
) -> PricedMoney:
    """The worth of eth, and of the money that lies in ``depths``, now."""
    # Prices are those at the start of a block: this one starts after the index's newest.
    number = cursor.block.number + 1
    quotes = {ZERO_ADDRESS, *(depth.quote for depth in depths)}
    blocks = {number: cursor.block.timestamp_s}
    return PricedMoney(await prices.past_prices(connection, ctx.contracts, quotes, blocks), number)


def _price_eth(price: int | None, label: Label) -> float | None:
    """The price of a whole token in eth; None: the price or the token's decimals are not known."""
    if price is None or label.decimals is None:
        return None
    return float(price) * 10.0**label.decimals / _PRICE_UNIT / WEI_PER_ETH
