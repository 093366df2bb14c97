"""What an eth is worth of money other than eth, weth and usdg, and the way there by v3 pools.

Asks only when a token that trades against such money is checked, and kept for half a minute: what is
paid in a probe is really bought on that way, so an old rate costs precision and proves nothing.
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
_MOST_DECIMALS = 36


class RateSource(Protocol):
    """Who tells what an eth is worth of other money."""

    async def join(
        self, market: MarketRates, assets: Iterable[Address], block: BlockRef, meter: Meter
    ) -> MarketRates:
        """The market with a rate for each of ``assets`` to which a way was found."""
        ...


@dataclass(frozen=True, slots=True)
class GivenRates:
    """Rates that are known beforehand. Nobody is asked."""

    rates: tuple[QuoteRate, ...]

    async def join(
        self, market: MarketRates, assets: Iterable[Address], block: BlockRef, meter: Meter
    ) -> MarketRates:
        """Those of them that are of ``assets``, in the order of addresses, as ``Rates`` has them."""
        wanted = set(assets)
        rates = sorted((rate for rate in self.rates if rate.asset in wanted), key=lambda rate: rate.asset)
        return replace(market, rates=tuple(rates))


@dataclass(slots=True)
class Rates:
    """Rates by asset, found when first asked for. ``clock`` counts seconds."""

    node: RpcNode
    contracts: Contracts
    clock: Callable[[], float] = time.monotonic
    _known: dict[Address, tuple[float, QuoteRate | None]] = field(default_factory=dict)

    async def join(
        self, market: MarketRates, assets: Iterable[Address], block: BlockRef, meter: Meter
    ) -> MarketRates:
        """The market with a rate for each of ``assets`` to which a way was found. One trip at most; a node
        that does not answer leaves the rates away."""
        wanted = sorted(set(assets))
        now = self.clock()
        missing = [a for a in wanted if a not in self._known or now - self._known[a][0] > _KEPT_S]
        if missing:
            calls = [call for asset in missing for call in rate_calls(asset, self.contracts, market, block)]
            try:
                answers = await self.node.batch(calls, meter)
            except NodeFault:
                return market
            each = len(calls) // len(missing)
            for number, asset in enumerate(missing):
                own_answers = answers[number * each : (number + 1) * each]
                # What the node did not answer is asked again by the next check.
                if not any(
                    isinstance(answer, RpcError) and answer.code != REVERTED for answer in own_answers
                ):
                    self._known[asset] = (now, read_rate(asset, own_answers, self.contracts, market))
        rates = (self._known[asset][1] for asset in wanted if asset in self._known)
        return replace(market, rates=tuple(rate for rate in rates if rate is not None))


def rate_calls(asset: Address, contracts: Contracts, market: MarketRates, block: BlockRef) -> list[RpcCall]:
    """Decimals, then of every standard pool against weth and against usdg its price and what it gives for an
    ordinary trade."""
    calls: list[tuple[Address, str]] = [(asset, erc20.DECIMALS)]
    for money in (contracts.weth, contracts.usdg):
        for fee in amm_v3.FEE_TIERS_PIPS:
            pool = amm_v3.pool_address(contracts.v3_factory, asset, money, fee)
            way = _way_to(money, contracts, market)
            paid_raw = QUOTED_WEI if way is None else way[0] * QUOTED_WEI // WEI_PER_ETH
            quote = amm_v3.plan_quote(contracts, money, asset, fee, paid_raw)
            calls += [(pool, amm_v3.SLOT0), (quote.to, quote.data)]
    pinned = {"blockHash": block.hash}
    return [RpcCall("eth_call", [{"to": to, "data": data}, pinned]) for to, data in calls]


def read_rate(
    asset: Address, answers: list[msgspec.Raw | RpcError], contracts: Contracts, market: MarketRates
) -> QuoteRate | None:
    """The rate of the pool that gives most for an ordinary trade; None where there is none to go through."""
    decimals = _uint(answers[0])
    best: tuple[int, int, tuple[QuoteHop, ...]] | None = None
    at = 1
    for money in (contracts.weth, contracts.usdg):
        for fee in amm_v3.FEE_TIERS_PIPS:
            price, received = _uint(answers[at]), _uint(answers[at + 1])
            at += 2
            way = _way_to(money, contracts, market)
            if not price or way is None:
                continue
            money_per_eth, hops = way
            units = _units(price, asset, money, money_per_eth)
            if units > 0 and received and (best is None or received > best[0]):
                best = (received, units, (*hops, QuoteHop(asset, fee)))
    if best is None or decimals is None or decimals > _MOST_DECIMALS:
        return None
    return QuoteRate(asset, best[1], best[2], decimals)


def _way_to(
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
