"""Figures as sentences show them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base import figures


@pytest.mark.parametrize(
    ("bps", "text"), [(60, "0.60 %"), (-60, "-0.60 %"), (10_000, "100.00 %"), (1_234_567, "12,345.67 %")]
)
def test_percent(bps: int, text: str) -> None:
    assert figures.format_percent(bps) == text


@pytest.mark.parametrize(
    ("raw", "decimals", "text"),
    [
        (0, 18, "0"),
        (10**17, 18, "0.1"),
        (123_456_789, 6, "123.4"),
        (12_345_678, 0, "12,340,000"),
        (1_527_000, 3, "1,527"),
        (-199_999, 5, "-1.999"),
        (123_456, 18, "0.0000000000001234"),
    ],
)
def test_amount(raw: int, decimals: int, text: str) -> None:
    assert figures.format_amount(raw, decimals) == text


@given(st.integers(0, 2**256 - 1), st.integers(0, 255))
def test_amount_never_shows_more_than_there_is(raw: int, decimals: int) -> None:
    shown = Decimal(figures.format_amount(raw, decimals).replace(",", ""))
    exact = Decimal(raw).scaleb(-decimals)
    assert shown <= exact < shown + max(shown.copy_abs() / 1000, Decimal(1).scaleb(-decimals))


@pytest.mark.parametrize(
    ("wei", "text"), [(0, "0 eth"), (7, "7 wei"), (-7_000, "-7,000 wei"), (10**9, "0.000000001 eth")]
)
def test_eth(wei: int, text: str) -> None:
    assert figures.format_eth(wei) == text


@pytest.mark.parametrize(("wei", "text"), [(7, "7 wei"), (10**7, "0.01 gwei"), (1_500_000_000, "1.5 gwei")])
def test_gas_price(wei: int, text: str) -> None:
    assert figures.format_gas_price(wei) == text


@pytest.mark.parametrize(
    ("count", "noun", "plural", "text"),
    [
        (1, "wallet", None, "1 wallet"),
        (0, "wallet", None, "0 wallets"),
        (1234, "entry", "entries", "1,234 entries"),
    ],
)
def test_count(count: int, noun: str, plural: str | None, text: str) -> None:
    assert figures.format_count(count, noun, plural) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 seconds"), (1, "1 second"), (119, "1 minute"), (7200, "2 hours"), (86_400 * 3, "3 days")],
)
def test_duration(seconds: int, text: str) -> None:
    assert figures.format_duration(seconds) == text
