"""Practice accounts and positions: nothing is made or lost, and illegal events change nothing."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.errors import IllegalMove
from roundtrip.domain.base.types import Address
from roundtrip.domain.practice import practice
from roundtrip.domain.practice.practice import (
    GIFT_WEI,
    LIFE,
    MIN_WEI,
    START_WEI,
    WEEK_S,
    PracticePosition,
    PracticePurse,
    monday_s,
    next_state,
    open_account,
    part_of,
    turn_week,
)

TOKEN, OTHER = Address("0x" + "aa" * 20), Address("0x" + "bb" * 20)
MONDAY_S = 1_759_708_800
"""2025-10-06, 00:00 UTC."""
EVENTS = ("bought", "sold_part", "sold_all", "written_off")


def holding(
    held_raw: int = 100, cost_wei: int = 1000, token: Address = TOKEN, stuck: bool = False
) -> PracticePosition:
    return PracticePosition(token, "open", held_raw, cost_wei, stuck)


# --- the life of a position ------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "event"), [*product(("open", "closed"), EVENTS)])
def test_every_event_is_legal_or_raises(state: practice.State, event: practice.Event) -> None:
    legal = {
        ("closed", "bought"): "open", ("open", "bought"): "open", ("open", "sold_part"): "open",
        ("open", "sold_all"): "closed", ("open", "written_off"): "closed",
    }  # fmt: skip
    assert legal == LIFE
    if (state, event) in legal:
        assert next_state(state, event) == legal[state, event]
        return
    with pytest.raises(IllegalMove):
        next_state(state, event)


def test_what_cannot_be_is_illegal() -> None:
    account, closed = PracticePurse(500, 1000, 0), PracticePosition(TOKEN)
    for eth_wei, token_raw in ((0, 1), (-1, 1), (501, 1), (1, 0), (1, -1)):
        with pytest.raises(IllegalMove):
            practice.buy(account, closed, eth_wei, token_raw)
    for token_raw, eth_wei in ((0, 1), (-1, 1), (101, 1), (1, -1)):
        with pytest.raises(IllegalMove):
            practice.sell(account, holding(), token_raw, eth_wei)
    with pytest.raises(IllegalMove):
        practice.sell(account, closed, 1, 1)
    with pytest.raises(IllegalMove):
        practice.write_off(closed)


RAWS = st.integers(1, 2**200)


@given(st.lists(st.tuples(st.booleans(), RAWS, RAWS), min_size=1, max_size=20))
def test_of_any_trades_nothing_is_made_or_lost(trades: list[tuple[bool, int, int]]) -> None:
    account, position, done = PracticePurse(START_WEI, START_WEI, 0), PracticePosition(TOKEN), []
    for is_buy, first, second in trades:
        if is_buy and account.eth_wei:
            account, position, trade = practice.buy(account, position, 1 + first % account.eth_wei, second)
        elif not is_buy and position.state == "open":
            account, position, trade = practice.sell(
                account, position, 1 + first % position.held_raw, second % START_WEI
            )
            assert trade.cost_wei >= 0
            assert trade.profit_wei == trade.eth_wei - trade.cost_wei
        else:
            continue
        done.append(trade)
        buys = [one for one in done if one.side == "buy"]
        sells = [one for one in done if one.side == "sell"]
        paid, got = sum(one.eth_wei for one in buys), sum(one.eth_wei for one in sells)
        assert account.eth_wei == account.given_wei - paid + got
        assert position.held_raw == sum(one.token_raw for one in buys) - sum(one.token_raw for one in sells)
        assert position.cost_wei == paid - sum(one.cost_wei for one in sells)
        assert (position.held_raw == 0) == (position.state == "closed")
        if position.state == "closed":
            assert position.cost_wei == 0


@given(RAWS, st.integers(0, 2**120), st.lists(st.integers(1, 100), max_size=8))
def test_a_part_takes_its_share_of_the_cost_to_less_than_a_wei(
    held_raw: int, cost_wei: int, parts: list[int]
) -> None:
    account, position = PracticePurse(0, 0, 0), holding(held_raw, cost_wei)
    for percent in parts:
        if position.held_raw * percent // 100 == 0:
            continue
        before = position
        account, position, trade = practice.sell(account, position, position.held_raw * percent // 100, 0)
        share = before.cost_wei * trade.token_raw
        assert trade.cost_wei * before.held_raw <= share < (trade.cost_wei + 1) * before.held_raw
        if position.state == "closed":
            assert trade.cost_wei == before.cost_wei
            return


def test_a_sell_that_went_through_is_not_stuck() -> None:
    _, position, _ = practice.sell(PracticePurse(0, 0, 0), holding(stuck=True), 1, 1)
    assert not position.is_stuck
    _, position, _ = practice.buy(PracticePurse(9, 9, 0), holding(stuck=True), 1, 1)
    assert position.is_stuck


# --- weeks -----------------------------------------------------------------------------------------


def test_weeks_begin_on_monday() -> None:
    assert monday_s(MONDAY_S) == MONDAY_S
    assert monday_s(MONDAY_S + WEEK_S - 1) == MONDAY_S
    assert monday_s(MONDAY_S - 1) == MONDAY_S - WEEK_S
    assert open_account(MONDAY_S + 5) == PracticePurse(START_WEI, START_WEI, MONDAY_S)


POOR = MIN_WEI - 1
WEEKS = [
    (POOR, (), True, 0), (MIN_WEI, (), False, 0), (0, (), True, 0), (POOR, (holding(),), False, 0),
    (POOR, (holding(stuck=True),), True, 1), (MIN_WEI, (holding(stuck=True),), False, 1),
    (POOR, (holding(stuck=True), holding(token=OTHER)), False, 1),
    (POOR, (holding(stuck=True), holding(token=OTHER, stuck=True)), True, 2),
]  # fmt: skip


@pytest.mark.parametrize(("eth_wei", "held", "is_given", "lost"), WEEKS)
def test_who_is_given_something_on_monday(
    eth_wei: int, held: tuple[PracticePosition, ...], is_given: bool, lost: int
) -> None:
    account = PracticePurse(eth_wei, START_WEI, MONDAY_S)
    for now_s in (MONDAY_S - 1, MONDAY_S, MONDAY_S + WEEK_S - 1):
        same = turn_week(account, held, now_s)
        assert (same.account, same.lost, same.trades) == (account, (), ())
    for weeks in (1, 2, 9):
        turned = turn_week(account, held, MONDAY_S + weeks * WEEK_S + 3)
        gift = GIFT_WEI if is_given else 0
        assert turned.account == PracticePurse(eth_wei + gift, START_WEI + gift, MONDAY_S + weeks * WEEK_S)
        assert len(turned.lost) == lost
        sides = ["written_off"] * lost + ["gift"] * is_given
        assert [trade.side for trade in turned.trades] == sides
        assert all(trade.profit_wei == -1000 for trade in turned.trades[:lost])
        left = [one for one in held if one not in turned.lost]
        again = turn_week(turned.account, left, MONDAY_S + weeks * WEEK_S + 4)
        assert (again.account, again.trades) == (turned.account, ())


def test_what_is_paid_is_rounded_up() -> None:
    assert [part_of(10, share, 3) for share in (0, 1, 2, 3)] == [0, 4, 7, 10]


# --- gains that do not count -------------------------------------------------------------------------

STEP = st.tuples(
    st.booleans(),
    st.integers(1, 100),
    st.integers(1, 1000).map(lambda tenths: tenths / 10),
    st.booleans(),
    st.sampled_from((TOKEN, OTHER)),
)
"""Whether it buys, how many hundredths, at what price, whether its sell counts, and which token."""


@given(steps=st.lists(STEP, max_size=40))
def test_no_order_of_trades_makes_gains_that_do_not_count_spendable(
    steps: list[tuple[bool, int, float, bool, Address]],
) -> None:
    """Who sets the price himself ends with no more to spend than he was given and gained by sells that
    count."""
    account, positions, counted_wei = (
        open_account(MONDAY_S),
        {TOKEN: PracticePosition(TOKEN), OTHER: PracticePosition(OTHER)},
        0,
    )
    for buys, hundredths, price, counts, token in steps:
        position = positions[token]
        if buys:
            paid_wei = account.eth_wei * hundredths // 100
            got_raw = int(paid_wei / price)
            if paid_wei and got_raw:
                account, positions[token], _ = practice.buy(account, position, paid_wei, got_raw)
        elif part_raw := position.held_raw * hundredths // 100:
            brings_wei = int(part_raw * price)
            account, positions[token], trade = practice.sell(account, position, part_raw, brings_wei)
            if counts:
                counted_wei += max(0, trade.profit_wei or 0)
            else:
                account = practice.set_apart(account, trade)
        at_cost_wei = sum(one.cost_wei for one in positions.values())
        assert 0 <= account.eth_wei + at_cost_wei <= START_WEI + counted_wei


def test_a_loss_that_does_not_count_is_a_loss_and_a_gain_gives_back_what_it_cost() -> None:
    account = PracticePurse(1000, 2000, 0, apart_wei=5)
    for brings_wei, spendable_wei, apart_wei in ((400, 1400, 5), (1000, 2000, 5), (9000, 2000, 8005)):
        after_it, _, trade = practice.sell(account, holding(100, 1000), 100, brings_wei)
        kept = practice.set_apart(after_it, trade)
        assert (kept.eth_wei, kept.apart_wei) == (spendable_wei, apart_wei)


def test_what_is_set_apart_keeps_nobody_from_the_gift() -> None:
    poor = PracticePurse(MIN_WEI - 1, START_WEI, MONDAY_S, apart_wei=50 * START_WEI)
    given_ = turn_week(poor, [], MONDAY_S + WEEK_S).account
    assert (given_.eth_wei, given_.apart_wei) == (MIN_WEI - 1 + GIFT_WEI, 50 * START_WEI)
