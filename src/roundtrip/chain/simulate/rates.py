"""Prices of an eth in quotes other than eth, weth and usdg, and the route to them through v3 pools.

Read only when a checked token trades against such a quote, and cached for 30 s. A probe really buys its
quote on this route, so an old rate costs precision, never correctness.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

import msgspec

from roundtrip.chain.blocks.heads import QUOTED_WEI
from roundtrip.chain.rpc.client import REVERTED, Meter, RpcCall, RpcError, RpcNode, hex_bytes
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import WEI_PER_ETH, Address, BlockRef
from roundtrip.domain.check.evidence import MarketRates, QuoteHop, QuoteRate
from roundtrip.venues import abi, amm_v3, erc20
from roundtrip.venues.base import Contracts

_KEPT_S = 30.0
_MAX_DECIMALS = 36


class RateSource(Protocol):
    """A source of prices of other quotes."""

    async def join(
        self, market: MarketRates, assets: Iterable[Address], block: BlockRef, meter: Meter
    ) -> MarketRates:
        """The market with a rate for each of ``assets`` that has a route."""
        ...


@dataclass(frozen=True, slots=True)
class GivenRates:
    """Known rates; sends no request to a node."""

    rates: tuple[QuoteRate, ...]

    async def join(
        self, market: MarketRates, assets: Iterable[Address], block: BlockRef, meter: Meter
    ) -> MarketRates:
        """The market with the given rates of ``assets``, sorted by address like in ``Rates``."""
        requested = set(assets)
        rates = sorted((rate for rate in self.rates if rate.asset in requested), key=lambda rate: rate.asset)
        return replace(market, rates=tuple(rates))


@dataclass(slots=True)
class Rates:
    """Rates by asset, read on first use. ``clock`` counts seconds."""

    node: RpcNode
    contracts: Contracts
    clock: Callable[[], float] = time.monotonic
    _known: dict[Address, tuple[float, QuoteRate | None]] = field(default_factory=dict)

    async def join(
        self, market: MarketRates, assets: Iterable[Address], block: BlockRef, meter: Meter
    ) -> MarketRates:
        """The market with a rate for each of ``assets`` that has a route. At most one batch; if the node does
        not answer, the rates are left out."""
        requested = sorted(set(assets))
        now = self.clock()
        missing = [a for a in requested if a not in self._known or now - self._known[a][0] > _KEPT_S]
        if missing:
            calls = [call for asset in missing for call in rate_calls(asset, self.contracts, market, block)]
            try:
                answers = await self.node.batch(calls, meter)
            except NodeFault:
                return market
            calls_per_asset = len(calls) // len(missing)
            for number, asset in enumerate(missing):
                asset_answers = answers[number * calls_per_asset : (number + 1) * calls_per_asset]
                # What the node did not answer is asked again by the next check.
                if not any(
                    isinstance(answer, RpcError) and answer.code != REVERTED for answer in asset_answers
                ):
                    self._known[asset] = (now, read_rate(asset, asset_answers, self.contracts, market))
        rates = (self._known[asset][1] for asset in requested if asset in self._known)
        return replace(market, rates=tuple(rate for rate in rates if rate is not None))


def rate_calls(asset: Address, contracts: Contracts, market: MarketRates, block: BlockRef) -> list[RpcCall]:
    """Decimals, then for every standard pool against weth and usdg: its price, and a quote for an ordinary
    trade."""
    calls: list[tuple[Address, str]] = [(asset, erc20.DECIMALS)]
    for money in (contracts.weth, contracts.usdg):
        for fee in amm_v3.FEE_TIERS_PIPS:
            pool = amm_v3.pool_address(contracts.v3_factory, asset, money, fee)
            route = _route_to(money, contracts, market)
            paid_raw = QUOTED_WEI if route is None else route[0] * QUOTED_WEI // WEI_PER_ETH
            quote = amm_v3.plan_quote(contracts, money, asset, fee, paid_raw)
            calls += [(pool, amm_v3.SLOT0), (quote.to, quote.data)]
    pinned = {"blockHash": block.hash}
    return [RpcCall("eth_call", [{"to": to, "data": data}, pinned]) for to, data in calls]


def read_rate(
    asset: Address, answers: list[msgspec.Raw | RpcError], contracts: Contracts, market: MarketRates
) -> QuoteRate | None:
    """The rate of the pool that gives most for an ordinary trade; None where no pool does."""
    decimals = _uint(answers[0])
    best: tuple[int, int, tuple[QuoteHop, ...]] | None = None
    at = 1
    for money in (contracts.weth, contracts.usdg):
        for fee in amm_v3.FEE_TIERS_PIPS:
            price, received = _uint(answers[at]), _uint(answers[at + 1])
            at += 2
            route = _route_to(money, contracts, market)
            if not price or route is None:
                continue
            money_per_eth, hops = route
            units = _units(price, asset, money, money_per_eth)
            if units > 0 and received and (best is None or received > best[0]):
                best = (received, units, (*hops, QuoteHop(asset, fee)))
    if best is None or decimals is None or decimals > _MAX_DECIMALS:
        return None
    return QuoteRate(asset, best[1], best[2], decimals)


def _route_to(
    money: Address, contracts: Contracts, market: MarketRates
) -> tuple[int, tuple[QuoteHop, ...]] | None:
    """Units of weth or usdg for one eth, and the hops from weth to there."""
    if money == contracts.weth:
        return WEI_PER_ETH, ()
    usdg = market.usdg_per_eth_raw
    if not isinstance(usdg, int) or usdg <= 0 or market.pool_fee_pips is None:
        return None
    return usdg, (QuoteHop(contracts.usdg, market.pool_fee_pips),)


def _units(sqrt_price_x96: int, asset: Address, money: Address, money_per_eth: int) -> int:
    """Base units of the asset for ``money_per_eth`` of the money, at the pool's spot price."""
    square = sqrt_price_x96 * sqrt_price_x96
    return money_per_eth * square >> 192 if money < asset else (money_per_eth << 192) // square


def _uint(answer: msgspec.Raw | RpcError) -> int | None:
    try:
        return abi.uint_at(hex_bytes(answer), 0)
    except NodeFault:
        return None
