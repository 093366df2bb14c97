"""The bonding curve's numbers: those of public logs to the wei, and those of a second way to count."""

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.curve import (
    MAX_TAKEN_BPS,
    CurveBuy,
    after_buy,
    buy,
    fill_bps,
    round_trip_loss_bps,
    sell,
)
from roundtrip.domain.check.evidence import CompletedBuy, Curve
from unit.domain.launches import PHANTOM_RAW, STATE, SUPPLY_RAW, THRESHOLD_RAW, state

QUICK = settings(max_examples=300, deadline=None)
NVDA_PHANTOM_RAW, NVDA_THRESHOLD_RAW = 16_640_000_000_000_000_000, 41_600_000_000_000_000_000


@pytest.mark.parametrize(
    ("phantom_raw", "tax_bps", "in_raw", "fee_raw", "tax_raw", "tokens_raw"),
    [
        (NVDA_PHANTOM_RAW, 0, 352_696_917_677_647_859, 3_526_969_176_776_478, 0,
         20_552_501_950_319_369_479_600_566),
        (NVDA_PHANTOM_RAW, 0, 28_716_771_876_358_226, 287_167_718_763_582, 0,
         1_705_595_837_924_855_733_224_858),
        (PHANTOM_RAW, 100, 580_000_000_000_000_000, 5_800_000_000_000_000, 5_800_000_000_000_000,
         252_801_992_528_019_925_280_199_252),
    ],
)  # fmt: skip
def test_first_buys_of_public_logs_come_out_to_the_wei(
    phantom_raw: int, tax_bps: int, in_raw: int, fee_raw: int, tax_raw: int, tokens_raw: int
) -> None:
    curve = state(quote_raw=phantom_raw, creator_tax_bps=tax_bps)
    found = buy(curve, in_raw, 0)
    assert found == CurveBuy(in_raw, tokens_raw)
    quote_raw, left_raw = after_buy(curve, found, 0)
    assert quote_raw - phantom_raw == in_raw - fee_raw - tax_raw
    assert left_raw == SUPPLY_RAW - tokens_raw


def test_the_end_of_a_public_sale_is_where_the_formula_has_it() -> None:
    swept_quote_raw, swept_tokens_raw = 41_600_000_000_000_000_002, 285_714_285_714_285_714_285_714_285
    phantom, threshold = NVDA_PHANTOM_RAW, NVDA_THRESHOLD_RAW
    assert SUPPLY_RAW * phantom // (phantom + threshold) == swept_tokens_raw
    curve = state(quote_raw=phantom, reserved_raw=swept_tokens_raw)
    quote_raw, left_raw = after_buy(curve, buy(curve, 10**21, 0), 0)
    assert left_raw == swept_tokens_raw
    # Every buy rounds in the curve's favour; many buys left a few wei more than one does.
    assert 0 <= swept_quote_raw - (quote_raw - phantom) <= 2


# --- counted a second way -------------------------------------------------------------------------


def second_buy(curve: Curve, in_raw: int, snipe_bps: int) -> tuple[int, int]:
    """Spent and received: what the product of the reserves leaves, with exact fractions."""
    taken = curve.fee_bps + curve.creator_tax_bps
    snipe = min(snipe_bps, 9900 - taken)
    net = Fraction(in_raw)
    for share in (curve.fee_bps, curve.creator_tax_bps, snipe):
        net -= floor(Fraction(in_raw * share, 10_000))
    product = curve.quote_raw * curve.token_raw
    tokens = floor(curve.token_raw - product / (curve.quote_raw + net))
    if curve.token_raw - tokens >= curve.reserved_raw:
        return in_raw, tokens
    needed = ceil(Fraction(product, curve.reserved_raw) - curve.quote_raw)
    spent = ceil(needed / (1 - Fraction(taken + snipe, 10_000)))
    return min(in_raw, spent), curve.token_raw - curve.reserved_raw


def second_sell(curve: Curve, quote_raw: int, token_raw: int, in_raw: int) -> int:
    gross = floor(quote_raw - Fraction(quote_raw * token_raw, token_raw + in_raw))
    return gross - sum(
        floor(Fraction(gross * share, BPS)) for share in (curve.fee_bps, curve.creator_tax_bps)
    )


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    """A curve somewhere on its way, with any fees that the launchpad allows."""
    phantom = draw(st.integers(10**6, 10**22))
    supply = draw(st.integers(10**9, 10**30))
    reserved = draw(st.integers(1, supply))
    token = draw(st.integers(reserved, supply))
    return replace(
        STATE,
        quote_raw=ceil(Fraction(phantom * supply, token)),
        token_raw=token,
        reserved_raw=reserved,
        fee_bps=draw(st.integers(0, 500)),
        creator_tax_bps=draw(st.integers(0, 1000)),
    )


Amounts = st.integers(1, 10**23)
Snipes = st.sampled_from([0, 1, 19, 618, 8400, 9799, 9800, 9900, BPS, 10**6])


@QUICK
@given(curves(), Amounts, Snipes)
def test_a_buy_comes_out_as_counted_the_second_way(curve: Curve, in_raw: int, snipe: int) -> None:
    found = buy(curve, in_raw, snipe)
    assert (found.spent_raw, found.tokens_raw) == second_buy(curve, in_raw, snipe)


@QUICK
@given(curves(), Amounts)
def test_a_sell_comes_out_as_counted_the_second_way(curve: Curve, in_raw: int) -> None:
    found = sell(curve, curve.quote_raw, curve.token_raw, in_raw)
    assert found == second_sell(curve, curve.quote_raw, curve.token_raw, in_raw)


@QUICK
@given(curves(), Amounts, Snipes)
def test_buying_and_selling_straight_back_never_gains(curve: Curve, in_raw: int, snipe: int) -> None:
    found = buy(curve, in_raw, snipe)
    quote_raw, token_raw = after_buy(curve, found, snipe)
    assert sell(curve, quote_raw, token_raw, found.tokens_raw) <= found.spent_raw
    assert quote_raw * token_raw >= curve.quote_raw * curve.token_raw


# --- the end of the sale --------------------------------------------------------------------------


@QUICK
@given(curves(), Amounts, Snipes)
def test_a_buy_never_spends_more_than_offered_nor_takes_what_is_reserved(
    curve: Curve, in_raw: int, snipe: int
) -> None:
    found = buy(curve, in_raw, snipe)
    assert 0 <= found.spent_raw <= in_raw
    assert 0 <= found.tokens_raw <= curve.token_raw - curve.reserved_raw
    if found.spent_raw < in_raw:
        assert found.tokens_raw == curve.token_raw - curve.reserved_raw


def test_the_end_of_the_sale_cuts_a_buy_and_gives_the_rest_back() -> None:
    # 4.2 eth fill the curve; of every 100 paid 1 is the fee.
    whole = buy(STATE, 10**20, 0)
    assert whole.tokens_raw == SUPPLY_RAW - STATE.reserved_raw
    assert abs(whole.spent_raw - THRESHOLD_RAW * 100 // 99) <= 2
    assert buy(STATE, whole.spent_raw, 0) == whole
    assert buy(STATE, whole.spent_raw - 10**9, 0).tokens_raw < whole.tokens_raw


def test_a_curve_that_is_sold_out_takes_nothing_and_gives_nothing() -> None:
    assert buy(state(token_raw=STATE.reserved_raw), 10**18, 0) == CurveBuy(0, 0)


# --- the tax of the first seconds -----------------------------------------------------------------


@pytest.mark.parametrize("snipe", [9700, 9701, 9900, BPS, 10**6])
def test_a_buyer_keeps_a_hundredth_whatever_the_snipe_tax_says(snipe: int) -> None:
    curve = state(creator_tax_bps=100)
    found = buy(curve, 10**18, snipe)
    assert after_buy(curve, found, snipe)[0] - curve.quote_raw == 10**18 * (BPS - MAX_TAKEN_BPS) // BPS
    assert found == buy(curve, 10**18, MAX_TAKEN_BPS - 200)


def test_a_snipe_tax_below_the_clamp_is_taken_as_it_stands() -> None:
    found = buy(STATE, 10**18, 618)
    assert after_buy(STATE, found, 618)[0] - STATE.quote_raw == 10**18 * (BPS - 718) // BPS
    assert buy(STATE, 10**18, 619).tokens_raw < found.tokens_raw < buy(STATE, 10**18, 617).tokens_raw


def test_a_snipe_tax_below_zero_is_none() -> None:
    assert buy(STATE, 10**18, -5) == buy(STATE, 10**18, 0)


# --- how full it is -------------------------------------------------------------------------------


@QUICK
@given(st.integers(0, 10**30), st.integers(0, 10**30))
def test_a_curve_is_between_empty_and_full(real_raw: int, threshold_raw: int) -> None:
    assert 0 <= fill_bps(state(real_quote_raw=real_raw), threshold_raw) <= BPS


@pytest.mark.parametrize(
    ("real_raw", "fill"),
    [(0, 0), (THRESHOLD_RAW // 2, 5000), (THRESHOLD_RAW - 1, 9999), (THRESHOLD_RAW, BPS),
     (2 * THRESHOLD_RAW, BPS)],
)  # fmt: skip
def test_fill_is_real_quote_against_the_threshold(real_raw: int, fill: int) -> None:
    assert fill_bps(state(real_quote_raw=real_raw), THRESHOLD_RAW) == fill


def test_a_curve_without_a_threshold_is_full() -> None:
    assert fill_bps(STATE, 0) == BPS


# --- a round trip by the formula ------------------------------------------------------------------


def a_buy(curve: Curve, in_raw: int) -> CompletedBuy:
    result = buy(curve, in_raw, 0)
    return CompletedBuy(result.spent_raw, result.tokens_raw, in_raw, 0)


@QUICK
@given(curves(), Amounts)
def test_a_round_trip_by_the_formula_is_counted_the_same_the_second_way(curve: Curve, in_raw: int) -> None:
    found = a_buy(curve, in_raw)
    if found.paid_raw == 0:
        assert round_trip_loss_bps(curve, found) is None
        return
    quote, token = after_buy(curve, CurveBuy(found.paid_raw, found.received_raw), 0)
    back = second_sell(curve, quote, token, found.received_raw)
    assert round_trip_loss_bps(curve, found) == ceil(Fraction((found.paid_raw - back) * BPS, found.paid_raw))


def test_a_round_trip_by_hand_loses_both_fees() -> None:
    assert round_trip_loss_bps(STATE, a_buy(STATE, 10**15)) == 199  # 1 - 0.99 * 0.99


@pytest.mark.parametrize("changes", [{"paid_raw": 10**17 - 1}, {"received_raw": 1}, {"closes": True}])
def test_a_buy_that_the_formula_did_not_give_says_nothing_of_the_sell(changes: dict[str, int]) -> None:
    assert round_trip_loss_bps(STATE, replace(a_buy(STATE, 10**17), **changes)) is None  # type: ignore[arg-type]


def test_under_a_snipe_tax_the_formula_says_nothing() -> None:
    assert round_trip_loss_bps(state(snipe_bps=1), a_buy(STATE, 10**17)) is None
