"""Addresses and plain decimal numbers."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, parse_address, plain_decimal

QUICK = settings(max_examples=100, deadline=None)


@QUICK
@given(st.integers(0, 2**160 - 1))
def test_an_address_is_read_in_any_case_and_kept_in_lower_case(number: int) -> None:
    plain = f"0x{number:040x}"
    assert parse_address("0x" + plain[2:].upper()) == plain
    assert parse_address(plain) == plain


@pytest.mark.parametrize(
    "text",
    ["", "0x", "0x" + "1" * 39, "0x" + "1" * 41, "1" * 40, "0X" + "1" * 40, "0x" + "g" * 40,
     "0x" + "1" * 40 + "\n", " 0x" + "1" * 40, "0x" + "１" * 40],
)  # fmt: skip
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="40 hex digits"):
        parse_address(text)


@QUICK
@given(st.text(max_size=50))
def test_arbitrary_text_is_an_address_or_a_value_error(text: str) -> None:
    try:
        assert re.fullmatch("0x[0-9a-f]{40}", parse_address(text))
    except ValueError:
        assert not re.fullmatch("0x[0-9a-fA-F]{40}", text)


def test_zero_and_dead_are_where_tokens_are_burned() -> None:
    assert parse_address(ZERO_ADDRESS) in BURN_ADDRESSES
    assert parse_address("0x000000000000000000000000000000000000dEaD") in BURN_ADDRESSES
    assert len(BURN_ADDRESSES) == 2


@QUICK
@given(st.integers(-(2**256), 2**256), st.integers(0, 255))
def test_a_plain_decimal_loses_nothing(raw: int, decimals: int) -> None:
    text = plain_decimal(raw, decimals)
    assert re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?", text)
    whole, _, fraction = text.partition(".")
    assert int(whole + fraction.ljust(decimals, "0")) == raw


@pytest.mark.parametrize(
    ("raw", "decimals", "text"),
    [(0, 18, "0"), (1, 18, "0.000000000000000001"), (10**18, 18, "1"), (15 * 10**17, 18, "1.5"),
     (-5, 1, "-0.5"), (42, 0, "42"), (100, 0, "100"), (2**256 - 1, 0, str(2**256 - 1))],
)  # fmt: skip
def test_plain_decimals_have_no_exponent_and_no_trailing_zeros(raw: int, decimals: int, text: str) -> None:
    assert plain_decimal(raw, decimals) == text


def test_decimals_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="below zero"):
        plain_decimal(1, -1)
