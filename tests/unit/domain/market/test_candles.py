"""Candles out of buckets, and how prices are written."""

import pytest

from roundtrip.domain.market.candles import (
    PRICE_ONE,
    SPANS,
    Candle,
    TradeBucket,
    change_bps,
    choose_span,
    fold_candles,
    format_price,
)


def bucket(from_s: int, *prices: int | None) -> TradeBucket:
    """``prices``: open, high, low and close."""
    first, high, low, last = prices
    return TradeBucket(from_s, first, high, low, last, volume_raw=7, buys=1, sells=2)


def candle(from_s: int, *prices: int) -> Candle:
    first, high, low, last = prices
    return Candle(from_s, first, high, low, last, volume_raw=7, buys=1, sells=2)


def test_a_candle_opens_where_the_one_before_closed() -> None:
    buckets = [bucket(0, 10, 14, 9, 12), bucket(60, 20, 25, 18, 24), bucket(180, 5, 6, 5, 6)]
    assert fold_candles(buckets) == [
        candle(0, 10, 14, 9, 12),
        candle(60, 12, 25, 12, 24),
        candle(180, 24, 24, 5, 6),
    ]


def test_trades_that_set_no_price_make_no_first_candle_and_later_a_flat_one() -> None:
    dust = (None, None, None, None)
    assert fold_candles([bucket(0, *dust)]) == []
    assert fold_candles([bucket(0, *dust), bucket(60, 3, 4, 2, 4), bucket(120, *dust)]) == [
        candle(60, 3, 4, 2, 4),
        candle(120, 4, 4, 4, 4),
    ]


@pytest.mark.parametrize(
    ("age_s", "span"),
    [
        (0, "1m"),
        (300 * 60, "1m"),
        (300 * 60 + 1, "5m"),
        (300 * 300 + 1, "1h"),
        (300 * 3_600 + 1, "1d"),
        (10**9, "1d"),
    ],
)
def test_the_shortest_span_that_shows_the_tokens_whole_life_is_chosen(age_s: int, span: str) -> None:
    assert choose_span(age_s) == span
    assert list(SPANS.values()) == sorted(SPANS.values())


@pytest.mark.parametrize(
    ("before", "now", "bps"),
    [(100, 150, 5_000), (150, 100, -3_333), (100, 100, 0), (None, 5, None), (5, None, None), (0, 5, None)],
)
def test_a_change_is_of_the_price_before(before: int | None, now: int | None, bps: int | None) -> None:
    assert change_bps(before, now) == bps


@pytest.mark.parametrize(
    ("price_raw", "token_decimals", "quote_decimals", "shown"),
    [
        # One wei for a billion base units: 10^-9 eth for a token.
        (PRICE_ONE // 10**9, 18, 18, "0.000000001"),
        # One dollar for a token of 18 decimals, in money of six.
        (PRICE_ONE * 10**6 // 10**18, 18, 6, "1"),
        (PRICE_ONE * 1_234_567, 18, 18, "1234560"),
        # One wei for the one base unit of a token of 60 decimals.
        (PRICE_ONE, 60, 18, "1" + "0" * 42),
        (0, 18, 18, "0"),
    ],
)
def test_a_price_is_of_whole_units_and_cut_to_six_digits(
    price_raw: int, token_decimals: int, quote_decimals: int, shown: str
) -> None:
    assert format_price(price_raw, token_decimals, quote_decimals) == shown
