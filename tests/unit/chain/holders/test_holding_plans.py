"""What a holding is said to be worth, from what its seller got and what a wallet got that really bought."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.holders.holding_plans import Control, HoldingTrade, tried_amounts, worth_raw
from roundtrip.domain.check.evidence import CellOutcome, Missing, RefusedCall, Sold

HALF_BPS = 5000
NO = RefusedCall("sell", "no", 0)
NODE, TOKEN = Missing("node", "gone"), Missing("token", "silent")


def sold(raw: int, back_raw: int, left_raw: int = 0) -> Sold:
    return Sold(
        paid_raw=0,
        held_raw=raw,
        planned_raw=raw,
        sold_raw=raw - left_raw,
        back_raw=back_raw,
        buy_gas=0,
        sell_gas=0,
    )


@pytest.mark.parametrize(
    ("own", "control", "worth"),
    [
        (sold(1000, 900), None, 900),
        (NO, None, NO),
        (NODE, None, NODE),
        (sold(1000, 900), Control(HoldingTrade(10, 9), ()), 900),
        (sold(1000, 900), Control(NO, (sold(10, 9),)), NO),
        (sold(1000, 900), Control(TOKEN, (sold(10, 9),)), TOKEN),
        (sold(1000, 900), Control(NODE, ()), NODE),
        (sold(1000, 900), Control(HoldingTrade(1000, 450), ()), 450),
        (sold(1000, 900), Control(HoldingTrade(1000, 900), (sold(10, 18),)), 450),
        (sold(1000, 900), Control(HoldingTrade(1000, 892), ()), 900),
        (NO, Control(HoldingTrade(10, 9), (sold(10, 9),)), NO),
        (NO, Control(NO, ()), NO),
        (NO, Control(TOKEN, ()), TOKEN),
        (NO, Control(TOKEN, (NO, NO)), TOKEN),
        (NO, Control(TOKEN, (sold(10, 9),)), NO),
        (NO, Control(NODE, ()), NODE),
        (NODE, Control(HoldingTrade(10, 9), ()), NODE),
    ],
    ids=[
        "sold, no control",
        "refused, no control",
        "no node, no control",
        "sold, a buyer gets the same price",
        "sold, a buyer is refused",
        "sold, a buyer is unknown for the token",
        "sold, a buyer is unknown for the node",
        "sold, a buyer gets half",
        "sold, small parts sell for twice the price",
        "sold, a buyer gets nearly the same price",
        "refused, a buyer and a small part sell",
        "refused, a buyer is refused",
        "refused, a buyer is unknown for the token",
        "refused, a buyer is unknown, small parts are refused",
        "refused, a buyer is unknown, a small part sells",
        "refused, a buyer is unknown for the node",
        "no node, a buyer sells",
    ],
)
def test_what_it_is_worth(
    own: CellOutcome, control: Control | None, worth: int | RefusedCall | Missing
) -> None:
    assert worth_raw(own, control, HALF_BPS) == worth


def test_it_is_unknown_where_only_a_wallet_that_bought_can_sell() -> None:
    assert isinstance(worth_raw(NO, Control(HoldingTrade(10, 9), (NO, NO)), HALF_BPS), Missing)


@pytest.mark.parametrize(
    ("own", "control"),
    [
        (sold(1000, 0), None),
        (sold(1000, -5), None),
        (sold(1000, 900, left_raw=501), None),
        (sold(1000, 900), Control(HoldingTrade(10, 0), ())),
    ],
    ids=["for nothing", "for less than nothing", "most is left", "a buyer gets nothing"],
)
def test_a_sell_that_brings_nothing_or_leaves_most_is_none(own: Sold, control: Control | None) -> None:
    assert isinstance(worth_raw(own, control, HALF_BPS), RefusedCall)


RAW = st.integers(1, 10**30)
TRADES = st.builds(HoldingTrade, RAW, RAW)


@given(TRADES, TRADES, st.lists(TRADES, max_size=2))
def test_it_is_never_more_than_its_seller_got_nor_than_a_buyer_gets_for_a_token(
    own: HoldingTrade, bought: HoldingTrade, small: list[HoldingTrade]
) -> None:
    answer = tuple(sold(one.sold_raw, one.back_raw) for one in small)
    worth = worth_raw(sold(own.sold_raw, own.back_raw), Control(bought, answer), HALF_BPS)
    assert isinstance(worth, int)
    assert worth <= own.back_raw
    assert worth * bought.sold_raw * 99 <= bought.back_raw * own.sold_raw * 100


@given(RAW)
def test_ever_less_is_tried_and_never_nothing(raw: int) -> None:
    tried = tried_amounts(raw)
    assert tried[0] == raw
    assert tried[-1] >= 1
    assert all(low * 16 <= high or low == 1 for high, low in pairwise(tried))
