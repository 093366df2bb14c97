"""Figures as sentences show them."""

from decimal import Decimal
from fractions import Fraction

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


@pytest.mark.parametrize(
    ("has", "needs", "texts"),
    [
        (5, 6, ("5", "6")),
        (123_456, 123_457, ("123,456", "123,457")),
        (10**6, 12_345_678, ("1,000,000", "12,345,678")),
        (99_999, 100_001, ("99,999", "100,001")),
        (0, 10**30 + 1, ("0", f"about {10**30:,}")),
        (10**30, 10**30 + 1, (f"{10**30:,}", f"about {10**30 + 1:,}")),
        (1_234_567_890_123, 2_345_678_901_234, ("about 1,234,560,000,000", "about 2,345,670,000,000")),
    ],
)
def test_shortfall(has: int, needs: int, texts: tuple[str, str]) -> None:
    assert figures.format_shortfall(has, needs, 0) == texts


@given(has=st.integers(0, 2**256), lack=st.integers(1, 2**256), decimals=st.integers(0, 36))
def test_a_shortfall_overstates_nothing_and_says_what_is_not_exact(
    has: int, lack: int, decimals: int
) -> None:
    shown = figures.format_shortfall(has, has + lack, decimals)
    shown_raw = [Fraction(text.removeprefix("about ").replace(",", "")) * 10**decimals for text in shown]
    for text, figure, raw in zip(shown, shown_raw, (has, has + lack), strict=True):
        least = raw * Fraction(99_999, 100_000) if text.startswith("about ") else raw
        assert least <= figure <= raw
    assert shown_raw[0] < shown_raw[1]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (100_001, "100,001"),
        (123_456_789_012, "123,456,789,012"),
        (1_234_567_890_123, "about 1,234,560,000,000"),
    ],
)
def test_close(raw: int, text: str) -> None:
    assert figures.format_close(raw, 0) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (0, "0"),
        (-5, "-5"),
        (12_340_000, "12,340,000"),
        (12_345_000, "about 12,340,000"),
        (99_999, "about 99,990"),
    ],
)
def test_a_cut_amount_is_about_so_much(raw: int, text: str) -> None:
    assert figures.format_about(raw, 0) == text


def test_the_loss_of_a_part_names_the_part() -> None:
    assert figures.format_sold_loss(41, 6001) == "0.41 % for the 60.01 % of it that sold"
    assert figures.format_sold_loss(41, 10_000) == figures.format_sold_loss(41, None) == "0.41 %"
