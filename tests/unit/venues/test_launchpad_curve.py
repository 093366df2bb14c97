"""Bonding curves: plans taken apart with eth_abi, and a curve's state from what it answers."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from eth_abi.abi import decode, encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import Curve
from roundtrip.venues import launchpad_curve
from roundtrip.venues.base import Call
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address

CURVE = address(0xC0FFEE)
BUYER, SELLER = address(0xB0), address(0x5E)
AMOUNT = 123_456_789_012_345_678_901
OTHER = address(0x77 << 80)
"""Money without a short name, above BELOW and below ABOVE."""

ETH, DOLLARS, STRANGE = (
    launchpad_curve.curve(quote, CURVE, CONTRACTS) for quote in (ZERO_ADDRESS, CONTRACTS.usdg, OTHER)
)
WETH = launchpad_curve.curve(CONTRACTS.weth, CURVE, CONTRACTS)
NOT_ETH = pytest.mark.parametrize("venue", [DOLLARS, STRANGE, WETH], ids=["usdg", "other", "weth"])
NOWHERE = PoolFacts(False, 0, 0, 0)


def arguments(call: Call, signature: str) -> tuple[Any, ...]:
    """The arguments of a call of ``signature``; re-encoding them must give every byte back."""
    raw = bytes.fromhex(call.data[2:])
    assert raw[:4] == keccak(text=signature)[:4]
    kinds = signature.split("(")[1][:-1].split(",")
    values: tuple[Any, ...] = decode(kinds, raw[4:])
    assert encode(kinds, values) == raw[4:]
    return values


# --- plans -----------------------------------------------------------------------------------------


def test_a_curve_is_named_by_its_money() -> None:
    assert [v.quote for v in (ETH, WETH, DOLLARS, STRANGE)] == ["eth", "weth", "usdg", OTHER]
    assert {(v.kind, v.pool, v.fee_pips, v.hook, v.pool_id) for v in (ETH, WETH, DOLLARS, STRANGE)} == {
        ("launchpad_curve", CURVE, 0, None, None)
    }


def test_a_buy_for_eth_sends_it_along() -> None:
    (buy,) = launchpad_curve.plan_buy(ETH, BELOW, CONTRACTS, AMOUNT, BUYER)
    assert (buy.to, buy.value_wei) == (CURVE, AMOUNT)
    assert arguments(buy, "buy(uint256,uint256,address)") == (AMOUNT, 0, BUYER)


@NOT_ETH
def test_a_buy_for_other_money_allows_the_curve_exactly_that(venue: Any) -> None:
    approve, buy = launchpad_curve.plan_buy(venue, BELOW, CONTRACTS, AMOUNT, BUYER)
    assert (approve.to, approve.value_wei) == (venue.quote_address, 0)
    assert arguments(approve, "approve(address,uint256)") == (CURVE, AMOUNT)
    assert (buy.to, buy.value_wei) == (CURVE, 0)
    assert arguments(buy, "buy(uint256,uint256,address)") == (AMOUNT, 0, BUYER)


@pytest.mark.parametrize("venue", [ETH, DOLLARS, STRANGE])
@pytest.mark.parametrize(("approve_raw", "allowed"), [(None, AMOUNT), (2**256 - 1, 2**256 - 1), (0, 0)])
def test_a_sell_pays_the_seller_what_it_is_paid_in(venue: Any, approve_raw: int | None, allowed: int) -> None:
    approve, sell = launchpad_curve.plan_sell(venue, BELOW, CONTRACTS, AMOUNT, SELLER, approve_raw)
    assert (approve.to, sell.to) == (BELOW, CURVE)
    assert (approve.value_wei, sell.value_wei) == (0, 0)
    assert arguments(approve, "approve(address,uint256)") == (CURVE, allowed)
    assert arguments(sell, "sell(uint256,uint256,address)") == (AMOUNT, 0, SELLER)


def test_the_moves_behind_a_trade_are_the_curves_own() -> None:
    payer, paid = launchpad_curve.plan_pay_out(ETH, BELOW, CONTRACTS, BUYER)
    puller, pull = launchpad_curve.plan_pull(ETH, BELOW, CONTRACTS, 9, SELLER)
    assert payer == puller == CURVE
    assert paid.to == pull.to == BELOW
    assert arguments(paid, "transfer(address,uint256)") == (BUYER, 1)
    assert arguments(pull, "transferFrom(address,address,uint256)") == (SELLER, CURVE, 9)


def test_no_strangers_dust_lies_in_a_curve() -> None:
    assert launchpad_curve.plan_sweep(CONTRACTS, BUYER) is None


def test_the_snipe_tax_is_asked_for_the_wallet_itself() -> None:
    call = launchpad_curve.snipe_call(ETH, BUYER)
    assert call.to == CURVE
    assert arguments(call, "currentSnipeTaxBps(address)") == (BUYER,)


# --- its state -------------------------------------------------------------------------------------

VIEWS = (
    "getReserves", "realQuoteReserve", "reservedTokens", "feeBps", "creatorTaxBps", "readyToGraduate",
    "graduated", "launchedAt", "snipeTaxSeconds",
)  # fmt: skip
QUOTE, TOKENS = 3_680_000_000_000_000_000, 456_521_739_130_434_782_608_695_652
STATE = Curve(QUOTE, TOKENS, 2 * 10**18, 10**26, 100, 250, False, 4200, 1_760_000_000, 30)


def curve_answers(**changes: bytes | int | None) -> tuple[bytes | None, ...]:
    """What a curve answers to each of its views."""
    answer: dict[str, bytes | int | None] = {
        "getReserves": encode(["uint256", "uint256"], [QUOTE, TOKENS]),
        "realQuoteReserve": 2 * 10**18,
        "reservedTokens": 10**26,
        "feeBps": 100,
        "creatorTaxBps": 250,
        "readyToGraduate": 0,
        "graduated": 0,
        "launchedAt": 1_760_000_000,
        "snipeTaxSeconds": 30,
    }
    answer.update(changes)
    answers = (answer[view] for view in VIEWS)
    return tuple(encode(["uint256"], [one]) if isinstance(one, int) else one for one in answers)


def reserves(quote: int, tokens: int) -> bytes:
    return encode(["uint256", "uint256"], [quote, tokens])


def test_a_curve_is_asked_for_each_view_that_is_read() -> None:
    expected = tuple(Call(CURVE, "0x" + keccak(text=f"{view}()")[:4].hex()) for view in VIEWS)
    assert launchpad_curve.fact_calls(ETH, CONTRACTS) == expected


def test_a_curves_state_is_read_view_by_view() -> None:
    assert launchpad_curve.read_curve(curve_answers(), 4200) == STATE


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"readyToGraduate": 1}, {"closed": True}),
        ({"graduated": 1}, {"closed": True}),
        ({"readyToGraduate": None}, {}),
        ({"getReserves": reserves(0, TOKENS)}, {"closed": True, "quote_raw": 0}),
        ({"getReserves": reserves(QUOTE, 0)}, {"closed": True, "token_raw": 0}),
        ({"realQuoteReserve": None}, {"real_quote_raw": 0}),
        ({"reservedTokens": b""}, {"reserved_raw": 0}),
        ({"launchedAt": None}, {"launched_at_s": 0}),
        ({"snipeTaxSeconds": None}, {"snipe_seconds": None}),
        ({"snipeTaxSeconds": 0}, {"snipe_seconds": 0}),
    ],
)
def test_a_curve_of_another_make_or_another_day(
    changes: dict[str, bytes | int | None], expected: dict[str, Any]
) -> None:
    assert launchpad_curve.read_curve(curve_answers(**changes), 4200) == replace(STATE, **expected)


@pytest.mark.parametrize("view", ["getReserves", "feeBps", "creatorTaxBps", "graduated"])
@pytest.mark.parametrize("answer", [None, b"", bytes(31)], ids=["reverted", "nothing", "short"])
def test_what_does_not_answer_like_a_curve_is_none(view: str, answer: bytes | None) -> None:
    assert launchpad_curve.read_curve(curve_answers(**{view: answer}), 0) is None
    assert launchpad_curve.read_facts(ETH, BELOW, curve_answers(**{view: answer})) == NOWHERE


def test_reserves_of_one_word_are_no_reserves() -> None:
    for size in range(64):
        assert (
            launchpad_curve.read_curve(curve_answers(getReserves=reserves(QUOTE, TOKENS)[:size]), 0) is None
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"readyToGraduate": 1},
        {"graduated": 1},
        {"getReserves": reserves(0, TOKENS)},
        {"getReserves": reserves(QUOTE, 0)},
        {"getReserves": reserves(0, 0)},
    ],
)
def test_a_closed_curve_is_no_place_to_trade(changes: dict[str, bytes | int | None]) -> None:
    assert launchpad_curve.read_facts(ETH, BELOW, curve_answers(**changes)) == NOWHERE


# --- its price -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "quote", "token_is_low"),
    [(BELOW, ZERO_ADDRESS, False), (ABOVE, OTHER, False), (BELOW, OTHER, True), (ABOVE, ABOVE, True)],
    ids=["eth is below all", "quote below", "quote above", "quote above, high"],
)
def test_the_price_points_as_in_a_pool_of_the_two(token: Address, quote: Address, token_is_low: bool) -> None:
    if quote == token:
        token = Address("0xaa" + token[4:])
    assert (token < quote) is token_is_low
    facts = launchpad_curve.read_facts(launchpad_curve.curve(quote, CURVE, CONTRACTS), token, curve_answers())
    assert (facts.exists, facts.quote_reserve_raw) == (True, 2 * 10**18)
    exact = Fraction(QUOTE, TOKENS) if token_is_low else Fraction(TOKENS, QUOTE)
    root = facts.sqrt_price_x96
    assert Fraction(root**2, 2**192) <= exact < Fraction((root + 1) ** 2, 2**192)
    assert facts.liquidity**2 <= QUOTE * TOKENS < (facts.liquidity + 1) ** 2


@given(st.integers(1, 2**160), st.integers(1, 2**160), st.booleans())
def test_whatever_lies_in_a_curve_has_a_price(quote: int, tokens: int, above: bool) -> None:
    answers = curve_answers(getReserves=reserves(quote, tokens))
    facts = launchpad_curve.read_facts(STRANGE, ABOVE if above else BELOW, answers)
    one_for_zero = Fraction(tokens, quote) if above else Fraction(quote, tokens)
    root = facts.sqrt_price_x96
    assert Fraction(root**2, 2**192) <= one_for_zero < Fraction((root + 1) ** 2, 2**192)


@given(st.lists(st.none() | st.binary(max_size=70), min_size=9, max_size=9))
def test_no_answers_at_all_make_it_raise(answers: list[bytes | None]) -> None:
    found = launchpad_curve.read_curve(tuple(answers), 0)
    facts = launchpad_curve.read_facts(ETH, BELOW, tuple(answers))
    assert facts.exists is (found is not None and not found.closed)
