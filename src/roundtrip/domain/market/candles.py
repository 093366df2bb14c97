"""Candles of a token's price: which spans there are, how buckets of trades become candles, and how prices are
written. A price is an integer: base units of the quote for ``PRICE_ONE`` base units of the token."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from roundtrip.domain.base.types import BPS, Numeric, plain_decimal

PRICE_DECIMALS = 36
PRICE_ONE = 10**PRICE_DECIMALS
"""So a token of which 10**36 base units cost one of the quote has a price, too."""
MAX_CANDLES = 300
MIN_RAW = 1_000
"""A trade of fewer base units of either side sets no price: its rounding alone could move it by a
thousandth."""
CandleSpan = Literal["1m", "5m", "1h", "1d"]
SPANS: Mapping[CandleSpan, int] = MappingProxyType({"1m": 60, "5m": 300, "1h": 3_600, "1d": 86_400})
"""Seconds by name, the shortest first."""
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class TradeBucket:
    """What was traded from ``from_s`` on, for the length of a span. The prices are those at the ends of its
    blocks, since within a block a price can be moved and moved back at no risk; None: no trade set one.
    ``volume_raw``: in base units of the quote."""

    from_s: int
    open_raw: Numeric | None
    high_raw: Numeric | None
    low_raw: Numeric | None
    close_raw: Numeric | None
    volume_raw: Numeric
    buys: int
    sells: int


@dataclass(frozen=True, slots=True)
class Candle:
    """A bucket from the first price on. ``open_raw`` is the close of the candle before, the first one's its
    own; a bucket whose trades set no price is flat. ``volume_raw``: in base units of the quote."""

    from_s: int
    open_raw: int
    high_raw: int
    low_raw: int
    close_raw: int
    volume_raw: int
    buys: int
    sells: int


def choose_span(age_s: int) -> CandleSpan:
    """The shortest span that shows ``age_s`` seconds with ``MAX_CANDLES``; else the longest."""
    return next((name for name, span_s in SPANS.items() if age_s <= MAX_CANDLES * span_s), "1d")


def fold_candles(buckets: Iterable[TradeBucket]) -> list[Candle]:
    """The candles of buckets in the order of time; before the first price there is no candle, nor where there
    is no bucket."""
    candles: list[Candle] = []
    for bucket in buckets:
        before_raw = candles[-1].close_raw if candles else bucket.open_raw
        if before_raw is None:
            continue
        known = [before_raw, *(raw for raw in (bucket.high_raw, bucket.low_raw) if raw is not None)]
        close_raw = before_raw if bucket.close_raw is None else bucket.close_raw
        candles.append(
            Candle(
                bucket.from_s,
                before_raw,
                max(known),
                min(known),
                close_raw,
                bucket.volume_raw,
                bucket.buys,
                bucket.sells,
            )
        )
    return candles


def change_bps(before_raw: int | None, now_raw: int | None) -> int | None:
    """How much a price changed, in hundredths of a percent of the price before, toward zero. None: one of
    them is not known."""
    if not before_raw or now_raw is None:
        return None
    size_bps = abs(now_raw - before_raw) * BPS // before_raw
    return size_bps if now_raw >= before_raw else -size_bps


def format_price(price_raw: int, token_decimals: int, quote_decimals: int) -> str:
    """The price of one whole token in whole units of the quote: a plain decimal of six significant digits,
    cut."""
    decimals = PRICE_DECIMALS + quote_decimals - token_decimals
    if decimals < 0:
        price_raw, decimals = price_raw * 10**-decimals, 0
    unit: int = 10 ** max(0, len(str(price_raw)) - _DIGITS)
    return plain_decimal(price_raw // unit * unit, decimals)
