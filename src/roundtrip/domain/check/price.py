"""Prices and conversions in exact arithmetic, from pools' sqrtPriceX96."""

from fractions import Fraction

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address
from roundtrip.domain.base.venue import PoolFacts, Venue

from .evidence import Evidence, MarketRates, Missing, QuoteRate, Size, VenueEvidence

USDG_UNIT = 10**6
_Q192 = 2**192


def size_wei(size: Size, policy: Policy) -> int:
    """A size in wei."""
    divisors = {"probe": 1, "thousandth": policy.fee_divisor}
    divisors |= {"tenth": policy.smaller_divisors[0], "hundredth": policy.smaller_divisors[1]}
    return policy.large_wei if size == "large" else policy.probe_wei // divisors[size]


def usd_per_eth(market: MarketRates, policy: Policy) -> Fraction | None:
    """Dollars for one eth; None when unknown or when pool and feed are too far apart to trust either."""
    if isinstance(market.usdg_per_eth_raw, Missing) or market.usdg_per_eth_raw <= 0:
        return None
    pool = Fraction(market.usdg_per_eth_raw, USDG_UNIT)
    if market.feed_usd_e8 is not None:
        feed = Fraction(market.feed_usd_e8, 10**8)
        if feed <= 0 or abs(pool - feed) * BPS > feed * policy.price_disagreement_bps:
            return None
    return pool


def units_per_eth(quote: str, market: MarketRates) -> int | None:
    """Base units of a quote asset for one whole eth; None when that is not known."""
    if quote in ("eth", "weth"):
        return WEI_PER_ETH
    if quote == "usdg":
        usdg_raw = market.usdg_per_eth_raw
        return usdg_raw if isinstance(usdg_raw, int) and usdg_raw > 0 else None
    rate = rate_of(quote, market)
    return rate.units_per_eth_raw if rate is not None and rate.units_per_eth_raw > 0 else None


def rate_of(quote: str, market: MarketRates) -> QuoteRate | None:
    """The rate of a quote without a short name; None when it is not known."""
    return next((rate for rate in market.rates if rate.asset == quote), None)


def quote_decimals(quote: str, market: MarketRates) -> int | None:
    """Decimals of a quote asset; None when they are not known."""
    if quote in ("eth", "weth"):
        return 18
    if quote == "usdg":
        return 6
    rate = rate_of(quote, market)
    return None if rate is None else rate.decimals


def quote_in_wei(amount_raw: int, quote: str, market: MarketRates) -> int | None:
    """What ``amount_raw`` of a quote asset is worth in wei; None when that is not known."""
    units = units_per_eth(quote, market)
    return None if units is None else amount_raw * WEI_PER_ETH // units


def quote_raw(amount_wei: int, quote: str, market: MarketRates) -> int | None:
    """What ``amount_wei`` is worth in a quote asset's units; None when that is not known."""
    units = units_per_eth(quote, market)
    return None if units is None else amount_wei * units // WEI_PER_ETH


def pool_price(sqrt_price_x96: int, token_is_zero: bool) -> Fraction | None:
    """Base units of the quote for one base unit of the token: (sqrtPriceX96 / 2^96)^2, or its inverse."""
    if sqrt_price_x96 <= 0:
        return None
    one_for_zero = Fraction(sqrt_price_x96 * sqrt_price_x96, _Q192)
    return one_for_zero if token_is_zero else 1 / one_for_zero


def token_usd(venue: VenueEvidence, evidence: Evidence, policy: Policy) -> Fraction | None:
    """Dollars for one whole token at the venue's spot price; None when a part of it is unknown."""
    decimals = evidence.facts.decimals
    if not isinstance(decimals, int):
        return None
    raw = raw_usd(venue.venue, venue.facts, evidence.token, evidence.market, policy)
    return None if raw is None else raw * Fraction(10**decimals)


def raw_usd(
    venue: Venue, facts: PoolFacts | Missing, token: Address, market: MarketRates, policy: Policy
) -> Fraction | None:
    """Like ``token_usd``, for one base unit."""
    dollars = usd_per_eth(market, policy)
    if isinstance(facts, Missing) or facts.liquidity == 0 or dollars is None:
        return None
    spot, units = (
        pool_price(facts.sqrt_price_x96, token < venue.quote_address),
        units_per_eth(venue.quote, market),
    )
    if spot is None or units is None:
        return None
    return spot / USDG_UNIT if venue.quote == "usdg" else spot / units * dollars


def market_cap_usd(price: Fraction, evidence: Evidence) -> Fraction | None:
    """Dollars for the whole supply at ``price`` a token."""
    supply, decimals = evidence.facts.total_supply_raw, evidence.facts.decimals
    if not isinstance(supply, int) or not isinstance(decimals, int):
        return None
    return price * supply / Fraction(10**decimals)
