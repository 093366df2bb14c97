"""Positions and closings: plain figures, and against a slow model of whole histories and fractions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import TxHash
from roundtrip.domain.market.profit import (
    DUST,
    EMPTY,
    ProfitRound,
    ValuedFill,
    WalletPosition,
    fold,
    fold_fills,
    value_held,
)

ETH = 10**18


def spot(number: int) -> Spot:
    """One a block: a round within one block is a matter of its own."""
    return Spot(100 + number, 9 - number % 10, 7000 + number, TxHash("0x"))


def history(*deeds: tuple[str, int, int | None]) -> list[ValuedFill]:
    """Fills in order: buy or sell, tokens raw, wei. Two millionths of a dollar a wei where that is known."""
    return [
        ValuedFill(spot(number), what == "buy", token_raw, eth_wei, None if eth_wei is None else 2 * eth_wei)
        for number, (what, token_raw, eth_wei) in enumerate(deeds)
    ]


def after(*deeds: tuple[str, int, int | None]) -> tuple[WalletPosition, list[tuple[int, int]]]:
    """The position, and of each closing what was spent and got."""
    position, closings = fold_fills(None, history(*deeds))
    return position, [(closing.spent_wei, closing.got_wei) for closing in closings]


def taken_wei(position: WalletPosition) -> int | None:
    """The profit so far of the open round's sales, over the cost of the sold tokens; None: unknown."""
    if position.round_unpriced:
        return None
    return position.round_got_wei - (position.round_spent_wei - position.cost_wei)


# --- plain figures ---------------------------------------------------------------------------------


def test_bought_and_sold_out() -> None:
    fills = history(("buy", 1000, 50), ("sell", 1000, 80))
    position, closings = fold_fills(None, fills)
    assert closings == [ProfitRound(fills[1].spot, 50, 80)]
    assert closings[0].profit_wei == 30
    assert position == EMPTY._replace(
        bought_raw=1000, sold_raw=1000, spent_wei=50, got_wei=80, profit_wei=30, spent_micro_usd=100,
        buys=1, sells=1, closed=1, first_s=7000, last_s=7001,
    )  # fmt: skip


def test_a_part_is_sold_at_average_cost() -> None:
    position, closings = after(("buy", 100, 10), ("buy", 300, 50), ("sell", 200, 45))
    assert closings == []
    assert (position.held_raw, position.cost_wei, position.profit_wei) == (200, 30, 0)
    assert taken_wei(position) == 15
    position, closings = after(
        ("buy", 100, 10), ("buy", 300, 50), ("sell", 200, 45), ("buy", 200, 70), ("sell", 400, 100)
    )
    assert closings == [(130, 145)]
    assert (position.held_raw, position.cost_wei, position.profit_wei, position.closed) == (0, 0, 15, 1)


def test_two_rounds_are_two_closings() -> None:
    position, closings = after(("buy", 10, 100), ("sell", 10, 150), ("buy", 5, 80), ("sell", 5, 60))
    assert closings == [(100, 150), (80, 60)]
    assert (position.profit_wei, position.closed, position.spent_wei, position.got_wei) == (30, 2, 180, 210)


def test_tokens_that_were_given_are_no_profit() -> None:
    """An insider is sent a thousand tokens, buys one and sells them all."""
    position, closings = after(("buy", 1, 10), ("sell", 1001, 10_010_000))
    assert closings == [(10, 10_000)]
    assert position.got_wei == 10_000
    position, closings = after(("sell", 1000, ETH))
    assert (closings, position.profit_wei, position.got_wei, position.sells) == ([], 0, 0, 1)
    assert position.sold_raw == 1000


@pytest.mark.parametrize(("sold", "closes"), [(998_999, False), (999_000, True), (999_999, True)])
def test_a_thousandth_that_is_left_is_dust(sold: int, closes: bool) -> None:
    position, closings = after(("buy", 1_000_000, 500_000), ("sell", sold, 700_000))
    assert closings == ([(500_000, 700_000)] if closes else [])
    assert (position.held_raw == 0) == closes
    assert (position.cost_wei == 0) == closes
    again, later = fold_fills(position, [ValuedFill(spot(5), False, 1_000_000 - sold, 100, 200)])
    assert [(one.spent_wei, one.got_wei) for one in later] == ([] if closes else [(500_000, 700_100)])
    assert again.profit_wei == (200_000 if closes else 200_100)


def test_a_stake_that_is_always_kept_is_no_dust() -> None:
    trading = [("buy", 100, 10), ("sell", 100, 11)] * 2000
    position, closings = after(("buy", 100, 10), *trading)
    assert closings == []
    assert position.held_raw == 100
    assert position.round_most_raw == 200


@pytest.mark.parametrize("unknown", [0, 1, 2])
def test_a_round_with_an_unknown_value_is_never_a_profit(unknown: int) -> None:
    deeds: list[tuple[str, int, int | None]] = [("buy", 10, 100), ("sell", 4, 900), ("sell", 6, 900)]
    deeds[unknown] = (*deeds[unknown][:2], None)
    position, closings = after(*deeds)
    assert closings == []
    assert (position.unpriced, position.closed, position.profit_wei, position.held_raw) == (1, 0, 0, 0)
    position, closings = after(*deeds, ("buy", 10, 100), ("sell", 10, 130))
    assert closings == [(100, 130)], "the next round is whole again"
    assert (position.closed, position.profit_wei) == (1, 30)


def test_what_an_open_round_has_taken_is_unknown_with_one_fill() -> None:
    position, _ = after(("buy", 10, 100), ("buy", 10, None), ("sell", 10, 500))
    assert taken_wei(position) is None
    assert (position.round_unpriced, position.spent_micro_usd) == (1, None)


def test_an_unknown_sale_of_given_tokens_spoils_no_round() -> None:
    position, closings = after(("sell", 10, None), ("buy", 10, 100), ("sell", 10, 130))
    assert closings == [(100, 130)]
    assert position.unpriced == 1


def test_dollars_are_known_of_all_buys_or_not_at_all() -> None:
    buy, sale = history(("buy", 10, 100), ("sell", 10, 130))
    bare = buy._replace(micro_usd=None)
    later = buy._replace(spot=spot(8))
    assert fold_fills(None, [buy, sale, later])[0].spent_micro_usd == 400
    assert fold_fills(None, [bare, sale, later])[0].spent_micro_usd is None
    assert fold_fills(None, [bare, sale, later])[1] == [ProfitRound(sale.spot, 100, 130)], "the eth is known"
    unsold = fold_fills(None, [buy, sale._replace(micro_usd=None)])[0]
    assert unsold.spent_micro_usd == 200, "what a sale brought in dollars is not asked"


def test_nothing_bought_for_money_is_a_loss() -> None:
    position, closings = after(("buy", 0, 70), ("sell", 5, 10))
    assert (position.cost_wei, position.round_spent_wei, taken_wei(position), closings) == (0, 70, -70, [])
    _, closings = after(("buy", 0, 70), ("sell", 5, 10), ("buy", 5, 30), ("sell", 5, 60))
    assert closings == [(100, 60)]
    assert after(("buy", 10, 30), ("buy", 0, 70))[0].cost_wei == 100


def test_money_for_nothing_does_not_count() -> None:
    position, closings = after(("buy", 10, 30), ("sell", 0, 900), ("sell", 0, None), ("sell", 10, 40))
    assert closings == [(30, 40)]
    assert (position.got_wei, position.unpriced, position.sells) == (40, 1, 3)


def test_times_are_of_the_first_and_the_newest() -> None:
    position, _ = after(("sell", 1, 1), ("buy", 1, 1), ("sell", 1, 1))
    assert (position.first_s, position.last_s) == (7000, 7002)


# --- any history -----------------------------------------------------------------------------------

RAW = st.one_of(st.integers(0, 3), st.integers(0, 5000), st.integers(0, 10**30))
WEI = st.one_of(st.none(), st.integers(0, 3), st.integers(0, 10**20), st.integers(0, 10**20))
ALWAYS_WEI = st.integers(0, 10**20)


@st.composite
def histories(draw: st.DrawFn, wei: st.SearchStrategy[int | None] = WEI, most: int = 25) -> list[ValuedFill]:
    """Fills in order. Some sell exactly what is left, or all but dust."""
    fills: list[ValuedFill] = []
    held = 0
    for number in range(draw(st.integers(0, most))):
        buys = draw(st.booleans())
        token_raw = draw(RAW)
        if not buys and held and draw(st.booleans()):
            token_raw = draw(st.sampled_from([held, held - held // DUST, held // 2, held + 1]))
        eth_wei = draw(wei)
        micro_usd = None if eth_wei is None else draw(st.one_of(st.none(), st.just(3 * eth_wei)))
        fills.append(ValuedFill(spot(number), buys, token_raw, eth_wei, micro_usd))
        held = max(0, held + (token_raw if buys else -token_raw))
    return fills


@dataclass
class Round:
    """Every fill of a round, and of the sales what they sold of it."""

    buys: list[ValuedFill] = field(default_factory=list)
    sales: list[tuple[ValuedFill, int]] = field(default_factory=list)
    unknown: bool = False
    most: int = 0
    cost: Fraction = Fraction(0)

    def held(self) -> int:
        return sum(buy.token_raw for buy in self.buys) - sum(taken for _, taken in self.sales)

    def spent(self) -> int:
        return sum(buy.eth_wei or 0 for buy in self.buys)

    def got(self) -> Fraction:
        return sum(
            (Fraction((sale.eth_wei or 0) * taken, sale.token_raw) for sale, taken in self.sales), Fraction(0)
        )


def exact(fills: Sequence[ValuedFill]) -> tuple[list[tuple[Spot, Round]], Round]:
    """The model: the rounds that ended, with what ended them, and the open one."""
    ended: list[tuple[Spot, Round]] = []
    now = Round()
    for fill in fills:
        held = now.held()
        if fill.buys:
            now.buys.append(fill)
            now.unknown |= fill.eth_wei is None
            now.most = max(now.most, held + fill.token_raw)
            now.cost = now.cost + (fill.eth_wei or 0) if held + fill.token_raw else Fraction(0)
            continue
        taken = min(held, fill.token_raw)
        if not taken:
            continue
        now.sales.append((fill, taken))
        now.unknown |= fill.eth_wei is None
        now.cost *= Fraction(held - taken, held)
        if Fraction(held - taken) <= Fraction(now.most, 1000):
            ended.append((fill.spot, now))
            now = Round()
    return ended, now


def test_the_model_agrees_with_a_plain_figure() -> None:
    ended, now = exact(history(("buy", 3, 10), ("sell", 4, 21), ("buy", 2, 5)))
    assert [(one.spent(), one.got()) for _, one in ended] == [(10, Fraction(63, 4))]
    assert (now.held(), now.spent(), now.cost) == (2, 5, Fraction(5))


@given(histories())
def test_it_is_what_the_model_says_but_for_rounding(fills: list[ValuedFill]) -> None:
    """Proceeds round down once a round at most, in its last sale; the cost that is left once a sale."""
    position, closings = fold_fills(None, fills)
    ended, now = exact(fills)
    whole = [(at, one) for at, one in ended if not one.unknown]
    assert [closing.spot for closing in closings] == [at for at, _ in whole]
    for closing, (_, one) in zip(closings, whole, strict=True):
        assert closing.spent_wei == one.spent()
        assert 0 <= one.got() - closing.got_wei < 1
    assert position.closed == len(closings)
    assert position.profit_wei == sum(closing.profit_wei for closing in closings)
    assert (position.held_raw, position.round_spent_wei) == (now.held(), now.spent())
    assert (Fraction(position.round_got_wei), position.round_most_raw) == (now.got(), now.most)
    assert (position.round_unpriced > 0) == now.unknown
    assert 0 <= now.cost - position.cost_wei <= len(now.sales)


@given(histories())
def test_what_is_counted(fills: list[ValuedFill]) -> None:
    position, _ = fold_fills(None, fills)
    buys = [fill for fill in fills if fill.buys]
    sales = [fill for fill in fills if not fill.buys]
    assert (position.buys, position.sells) == (len(buys), len(sales))
    assert position.unpriced == sum(fill.eth_wei is None for fill in fills)
    assert position.bought_raw == sum(fill.token_raw for fill in buys)
    assert position.sold_raw == sum(fill.token_raw for fill in sales)
    assert position.spent_wei == sum(fill.eth_wei or 0 for fill in buys)
    assert position.got_wei <= sum(fill.eth_wei or 0 for fill in sales)
    dollars = [fill.micro_usd for fill in buys]
    known = sum(one or 0 for one in dollars)
    assert position.spent_micro_usd == (None if None in dollars else known)
    assert (position.first_s, position.last_s) == (
        (fills[0].spot.at_s, fills[-1].spot.at_s) if fills else (0, 0)
    )


@given(histories())
def test_after_every_trade(fills: list[ValuedFill]) -> None:
    position: WalletPosition | None = None
    for fill in fills:
        position, closing = fold(position, fill)
        assert min(0 if value is None else value for value in position._replace(profit_wei=0)) == 0
        assert 0 <= position.held_raw <= position.round_most_raw
        assert position.held_raw or not position.cost_wei
        assert position.cost_wei <= position.round_spent_wei
        assert position.held_raw * DUST > position.round_most_raw or not position.round_most_raw
        if closing is not None:
            assert not fill.buys
            assert closing.spot == fill.spot
            assert (position.held_raw, position.round_spent_wei, position.round_got_wei) == (0, 0, 0)


@given(histories(ALWAYS_WEI))
def test_all_that_was_paid_and_got_is_in_closings_or_in_the_open_round(fills: list[ValuedFill]) -> None:
    """To the last wei, where every value is known."""
    position, closings = fold_fills(None, fills)
    assert position.spent_wei == sum(one.spent_wei for one in closings) + position.round_spent_wei
    assert position.got_wei == sum(one.got_wei for one in closings) + position.round_got_wei
    taken = taken_wei(position)
    assert taken is not None
    assert position.profit_wei + taken == (position.got_wei - (position.spent_wei - position.cost_wei))


@given(histories(), st.integers(0, 25))
def test_a_fold_may_stop_anywhere_and_go_on(fills: list[ValuedFill], at: int) -> None:
    first, before = fold_fills(None, fills[:at])
    second, later = fold_fills(first, fills[at:])
    assert (second, before + later) == fold_fills(None, fills)
    assert fold_fills(EMPTY, fills) == fold_fills(None, fills)


@given(histories().flatmap(lambda fills: st.tuples(st.just(fills), st.permutations(fills))))
def test_fills_are_folded_by_where_they_stand(both: tuple[list[ValuedFill], list[ValuedFill]]) -> None:
    fills, shuffled = both
    assert fold_fills(None, shuffled) == fold_fills(None, fills)


@given(histories(), st.integers(0, 10**30), WEI)
def test_between_rounds_a_sale_brings_nothing(
    fills: list[ValuedFill], given_raw: int, eth_wei: int | None
) -> None:
    """There is nothing of it that was bought."""
    sold_out, _ = fold_fills(None, [*fills, ValuedFill(spot(98), False, 10**40, 1, None)])
    more, closing = fold(sold_out, ValuedFill(spot(99), False, given_raw, eth_wei, None))
    assert closing is None
    counted = {"sold_raw", "sells", "unpriced", "last_s"}
    assert more._replace(**dict.fromkeys(counted, 0)) == sold_out._replace(**dict.fromkeys(counted, 0))


def test_a_round_within_one_block_is_no_profit() -> None:
    """Whoever owns the pool sells himself what he likes there, with money lent for one transaction."""

    def at(block: int, log: int) -> Spot:
        return Spot(block, log, 100 + block, TxHash(""))

    bought, sold = ValuedFill(at(7, 0), True, 10, 5, 5), ValuedFill(at(7, 1), False, 10, 500, 500)
    position, closings = fold_fills(None, [bought, sold])
    assert (closings, position.closed, position.profit_wei, position.held_raw) == ([], 0, 0, 0)
    later = [bought, sold._replace(spot=at(8, 0))]
    assert [one.profit_wei for one in fold_fills(None, later)[1]] == [495]
    # Begun in another block than the last one's end.
    again = [bought, sold, bought._replace(spot=at(7, 2)), sold._replace(spot=at(9, 0))]
    assert len(fold_fills(None, again)[1]) == 1


@pytest.mark.parametrize(
    ("amount_raw", "worth_wei", "expected"),
    [
        (1000, 700, (500, 200)),
        # Others sent it as much again: half of the worth is of its own buys.
        (2000, 1400, (500, 200)),
        # A thousandth less is rounding of a token; more is gone.
        (999, 999, (499, 500)),
        (998, 998, (500, None)),
        (1000, None, (500, None)),
        (0, 0, (500, None)),
    ],
)
def test_what_is_left_gains_over_what_was_paid_for_it(
    amount_raw: int, worth_wei: int | None, expected: tuple[int, int | None]
) -> None:
    assert value_held(1000, 500, amount_raw, worth_wei) == expected
