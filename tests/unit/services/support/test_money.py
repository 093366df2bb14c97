"""Amounts as people write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, plain_decimal
from roundtrip.services.support.money import AssetAmount, amount, is_money, parse_amount, symbol_of
from unit.venues.network import CONTRACTS

OTHER = Address("0x" + "77" * 20)


@pytest.mark.parametrize(
    ("text", "decimals", "raw"),
    [
        ("0.1", 18, 10**17), ("1", 18, 10**18), ("1", 0, 1), ("0.000001", 6, 1),
        ("1.500000000", 6, 1_500_000),
        ("007", 2, 700), ("1.10", 1, 11), ("9" * 40, 18, int("9" * 40) * 10**18), ("1.0", 0, 1),
        ("0." + "0" * 17 + "1", 18, 1), ("0.3", 1, 3),
    ],
)  # fmt: skip
def test_plain_numbers_are_read(text: str, decimals: int, raw: int) -> None:
    assert parse_amount(text, decimals, "eth") == raw


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "-1", "+1", "1e18", "1E2", "1.", ".5", ".", " 1", "1 ", "1\n", "\t1", "1,5", "1_000", "0x10",
        "inf", "nan", "1.2.3", "\u0661", "\uff11", "1\u00a0", "\u00b2", "1/2", "9" * 41, "1." + "1" * 41,
        "1\x00", "all", "--1", "1.-5",
    ],
)  # fmt: skip
def test_what_is_no_plain_number_is_refused(text: str) -> None:
    with pytest.raises(CallerFault) as fault:
        parse_amount(text, 18, "eth")
    assert fault.value.code == "bad_input"


@pytest.mark.parametrize("text", ["0", "0.0", "000", "0." + "0" * 40])
def test_nothing_is_no_amount(text: str) -> None:
    with pytest.raises(CallerFault, match="zero") as fault:
        parse_amount(text, 18, "eth")
    assert fault.value.code == "bad_input"


@pytest.mark.parametrize(("text", "decimals"), [("0.0000001", 6), ("1.5", 0), ("0." + "0" * 18 + "1", 18)])
def test_more_decimals_than_there_are_is_refused_and_not_rounded(text: str, decimals: int) -> None:
    with pytest.raises(CallerFault, match=f"at most the {decimals} decimals? of usdg"):
        parse_amount(text, decimals, "usdg")


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(decimals=st.integers(0, 40), raw=st.integers(1, 10**40 - 1))
def test_what_is_shown_is_read_back(decimals: int, raw: int) -> None:
    assert parse_amount(plain_decimal(raw, decimals), decimals, "it") == raw


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(text=st.text(max_size=12), decimals=st.integers(0, 20))
def test_any_text_is_read_or_refused(text: str, decimals: int) -> None:
    try:
        raw = parse_amount(text, decimals, "it")
    except CallerFault:
        return
    assert raw > 0
    assert set(text) <= set("0123456789.")


@pytest.mark.parametrize("asset", [ZERO_ADDRESS, CONTRACTS.weth, CONTRACTS.usdg])
def test_money_is_shown_by_its_short_name_whatever_it_says_of_itself(asset: Address) -> None:
    names = {ZERO_ADDRESS: ("eth", "ETH", 18), CONTRACTS.weth: ("weth", "WETH", 18)}
    name, symbol, places = names.get(asset, ("usdg", "USDG", 6))
    shown = amount(5, asset, 3, "FAKE", CONTRACTS)
    assert shown == AssetAmount(plain_decimal(5, places), "5", name, symbol)
    assert is_money(asset, CONTRACTS)


def test_a_token_is_shown_by_its_address() -> None:
    assert amount(1234, OTHER, 3, "ODD", CONTRACTS) == AssetAmount("1.234", "1234", OTHER, "ODD")
    assert amount(1234, OTHER, None, None, CONTRACTS) == AssetAmount("1234", "1234", OTHER, None)
    assert not is_money(OTHER, CONTRACTS)


def test_a_symbol_is_cleaned() -> None:
    def encode_symbol(text: str) -> bytes:
        data = text.encode()
        return (32).to_bytes(32, "big") + len(data).to_bytes(32, "big") + data.ljust(96, b"\0")

    assert symbol_of(encode_symbol("A\u202eB\u200b")) == "AB"
    assert symbol_of(encode_symbol("x" * 80)) == "x" * 32
    assert symbol_of(encode_symbol("\u200b")) is None
    assert symbol_of(b"") is None
    assert symbol_of(None) is None
