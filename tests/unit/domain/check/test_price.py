"""Prices in exact fractions; no price where two sources disagree."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import price
from unit.domain.builders import ABSENT, LIQUID, MARKET, NODE, TOKEN, TOKEN_FACTS, evidence, venue

QUICK = settings(max_examples=100, deadline=None)
HIGH, LOW = Address("0x" + "ff" * 20), Address("0x" + "00" * 19 + "01")


@QUICK
@given(st.integers(1, 2**160), st.booleans())
def test_a_pool_price_is_the_square_of_its_root(root: int, token_is_zero: bool) -> None:
    quote_for_token = (Fraction(root) / Fraction(2**96)) ** 2
    expected = quote_for_token if token_is_zero else 1 / quote_for_token
    assert price.pool_price(root, token_is_zero) == expected


@QUICK
@given(st.integers(1, 2**160))
def test_the_two_sides_of_a_pool_are_inverse(root: int) -> None:
    one, other = price.pool_price(root, True), price.pool_price(root, False)
    assert one is not None
    assert other is not None
    assert one * other == 1


@pytest.mark.parametrize("root", [0, -1])
def test_a_pool_without_a_price_has_none(root: int) -> None:
    assert price.pool_price(root, True) is None


@pytest.mark.parametrize(
    ("pool_usd", "feed_usd", "known"),
    [(3090, 3000, True), (2910, 3000, True), (3000, 3000, True), (3091, 3000, False), (2909, 3000, False),
     (3000, 0, False), (3000, -1, False)],
)  # fmt: skip
def test_dollars_are_known_while_pool_and_feed_are_within_three_percent(
    pool_usd: int, feed_usd: int, known: bool
) -> None:
    market = replace(MARKET, usdg_per_eth_raw=pool_usd * 10**6, feed_usd_e8=feed_usd * 10**8)
    assert price.usd_per_eth(market, POLICY) == (pool_usd if known else None)


@pytest.mark.parametrize("step", [-1, 1])
def test_one_unit_beyond_three_percent_is_unknown(step: int) -> None:
    edge = 3000 * 10**6 * (100 + 3 * step) // 100
    at, over = (
        replace(MARKET, usdg_per_eth_raw=raw, feed_usd_e8=3000 * 10**8) for raw in (edge, edge + step)
    )
    assert price.usd_per_eth(at, POLICY) == Fraction(edge, 10**6)
    assert price.usd_per_eth(over, POLICY) is None


def test_dollars_without_a_feed_are_the_pools() -> None:
    assert price.usd_per_eth(MARKET, POLICY) == 3000


@pytest.mark.parametrize("raw", [0, -1, NODE])
def test_dollars_are_unknown_without_a_pool_price(raw: int) -> None:
    assert price.usd_per_eth(replace(MARKET, usdg_per_eth_raw=raw), POLICY) is None


@QUICK
@given(st.integers(0, 10**30), st.sampled_from(["eth", "weth"]))
def test_eth_and_weth_are_worth_themselves(amount: int, quote: str) -> None:
    assert price.quote_in_wei(amount, quote, MARKET) == amount
    assert price.quote_raw(amount, quote, MARKET) == amount


def test_usdg_is_worth_what_the_market_says() -> None:
    assert price.quote_in_wei(3_000 * 10**6, "usdg", MARKET) == 10**18
    assert price.quote_raw(10**17, "usdg", MARKET) == 300 * 10**6


def test_worth_is_rounded_down() -> None:
    market = replace(MARKET, usdg_per_eth_raw=7)
    assert price.quote_in_wei(1, "usdg", market) == 10**18 // 7
    assert price.quote_raw(10**18 - 1, "usdg", market) == 6


@pytest.mark.parametrize("raw", [NODE, 0])
def test_usdg_without_a_market_is_worth_an_unknown_amount(raw: int) -> None:
    assert price.quote_in_wei(10, "usdg", replace(MARKET, usdg_per_eth_raw=raw)) is None


def test_another_quote_is_worth_an_unknown_amount() -> None:
    assert price.quote_in_wei(10, TOKEN, MARKET) is None
    assert price.quote_raw(10, TOKEN, MARKET) is None
    assert price.quote_raw(10, "usdg", replace(MARKET, usdg_per_eth_raw=NODE)) is None


@pytest.mark.parametrize(("quote_address", "expected"), [(HIGH, Fraction(4)), (LOW, Fraction(1, 4))])
def test_a_token_price_follows_the_order_of_the_pair(quote_address: Address, expected: Fraction) -> None:
    found = venue(facts=replace(LIQUID, sqrt_price_x96=2 * 2**96))
    found = replace(found, venue=replace(found.venue, quote_address=quote_address))
    assert price.token_usd(found, evidence(found), POLICY) == expected * 3000


def test_a_token_against_usdg_is_priced_in_usdg() -> None:
    found = venue(quote="usdg", facts=replace(LIQUID, sqrt_price_x96=2**96))
    facts = replace(TOKEN_FACTS, decimals=6)
    assert price.token_usd(found, evidence(found, facts=facts), POLICY) == 1


def test_a_token_has_no_price_where_a_part_is_unknown() -> None:
    whole = evidence(venue())
    for facts in (NODE, ABSENT, replace(LIQUID, liquidity=0), replace(LIQUID, sqrt_price_x96=0)):
        assert price.token_usd(venue(facts=facts), whole, POLICY) is None
    for decimals in (None, NODE):
        unknown = evidence(venue(), facts=replace(TOKEN_FACTS, decimals=decimals))
        assert price.token_usd(venue(), unknown, POLICY) is None
    no_market = evidence(venue(), market=replace(MARKET, usdg_per_eth_raw=NODE))
    assert price.token_usd(venue(), no_market, POLICY) is None
    apart = evidence(venue(), market=replace(MARKET, feed_usd_e8=1))
    assert price.token_usd(venue(), apart, POLICY) is None


def test_the_market_cap_is_the_price_of_every_token() -> None:
    assert price.market_cap_usd(Fraction(1, 2), evidence()) == Fraction(10**9, 2)
    for change in ({"decimals": None}, {"decimals": NODE}, {"total_supply_raw": NODE}):
        facts = replace(TOKEN_FACTS, **change)
        assert price.market_cap_usd(Fraction(1), evidence(facts=facts)) is None
