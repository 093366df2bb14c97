"""What became of a wallet's own calls: each code, in the decided order, with and without gaps."""

from dataclasses import replace
from itertools import permutations
from random import Random

import pytest
from hypothesis import assume, given, settings

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import CellOutcome, CompletedBuy, EnvironmentBuy, ProbeCell, Sold
from roundtrip.domain.trade.judge import (
    COST_UNKNOWN,
    LEVELS,
    WORST_FIRST,
    Allowance,
    Exit,
    TradeOutcome,
    WalletChanges,
    code_of_loss,
    judge_exit,
    judge_share,
    judge_trade,
    level_of,
    split_cost,
)
from roundtrip.domain.trade.text import sentence
from unit.domain.builders import BOUGHT_RAW, ITS_OWN, NO_MONEY, NODE, TOKEN, pieces_cell, sold
from unit.domain.judged_trades import DONE, FAILED, OTHER, SPENDER, TRADED, Seeds, of
from unit.domain.trades import GRID, filled, grid, ran, received, refused_grid, some_exit, way


def code(one: Exit) -> str:
    return judge_exit(one, POLICY).code


def test_the_levels_are_those_of_the_specification() -> None:
    assert dict(LEVELS) == {
        "ok": "ok",
        "tx_reverts": "warn",
        "cannot_sell": "danger",
        "heavy_loss": "danger",
        "high_loss": "warn",
        "nothing_received": "warn",
        "no_route": "unknown",
        "unproven": "unknown",
    }


# --- one received token ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss_bps", "expected"),
    [
        (-300, "ok"), (0, "ok"), (1499, "ok"), (1500, "high_loss"), (1501, "high_loss"),
        (4999, "high_loss"), (5000, "heavy_loss"), (10_000, "heavy_loss"),
    ],
)  # fmt: skip
def test_the_lines(loss_bps: int, expected: str) -> None:
    found = judge_exit(received(way(cells=grid(loss_bps))), POLICY)
    assert (found.code, found.loss_bps) == (expected, loss_bps)
    assert code_of_loss(loss_bps, POLICY) == expected


@pytest.mark.parametrize("name", ["full", "full_again", "hour", "hour_again", "day", "day_again"])
def test_the_worst_of_the_sells_that_count_decides(name: str) -> None:
    assert code(received(way(cells=grid(60, **{name: sold(5000)})))) == "heavy_loss"
    assert code(received(way(cells=grid(60, **{name: sold(1500)})))) == "high_loss"


@pytest.mark.parametrize("name", ["half", "sliver", "handed_on", "half_handed_on"])
def test_what_nobody_needs_where_all_of_it_sells_decides_nothing(name: str) -> None:
    for outcome in (NO_MONEY, NODE, sold(9000, GRID[name].share_bps)):
        assert code(received(way(cells=grid(60, **{name: outcome})))) == "ok"


def test_refused_everywhere_it_cannot_be_sold() -> None:
    found = judge_exit(received(way(cells=refused_grid())), POLICY)
    assert (found.code, found.loss_bps) == ("cannot_sell", None)


@pytest.mark.parametrize("share_bps", [1, 100, 4999])
def test_less_than_half_of_it_is_not_sold(share_bps: int) -> None:
    part = sold(60, share_bps, 10_000)
    every = {name: part for name in GRID if GRID[name].share_bps == 10_000}
    assert code(received(way(cells=refused_grid(**every)))) == "cannot_sell"


@pytest.mark.parametrize(
    ("share_bps", "loss_bps", "expected"),
    [(5000, 60, "heavy_loss"), (5100, 0, "high_loss"), (8600, 0, "ok"), (8500, 0, "high_loss")],
)
def test_what_does_not_sell_is_lost(share_bps: int, loss_bps: int, expected: str) -> None:
    part = sold(loss_bps, share_bps, 10_000)
    every = {name: part for name in GRID if GRID[name].share_bps == 10_000}
    assert code(received(way(cells=grid(60, **every)))) == expected


def test_what_sells_now_and_neither_in_an_hour_nor_in_a_day_cannot_be_sold() -> None:
    gone = dict.fromkeys(("hour", "hour_again", "day", "day_again"), NO_MONEY)
    found = judge_exit(received(way(cells=grid(60, **gone))), POLICY)
    assert (found.code, found.loss_bps) == ("cannot_sell", None)


@pytest.mark.parametrize("names", [("hour", "hour_again"), ("day", "day_again")])
def test_what_sells_at_some_times_only_is_no_trap_and_no_pass(names: tuple[str, ...]) -> None:
    found = judge_exit(received(way(cells=grid(60, **dict.fromkeys(names, NO_MONEY)))), POLICY)
    assert (found.code, found.loss_bps, level_of(found.code, found)) == ("ok", 60, "warn")


def in_pieces(outcome: CellOutcome, **outcomes: CellOutcome) -> Exit:
    """Every single sale refused, but for the named ones, and these ten sales."""
    return received(way(cells=(*refused_grid(**outcomes), pieces_cell(outcome))))


@pytest.mark.parametrize(
    ("loss_bps", "expected"), [(60, "ok"), (1499, "ok"), (1500, "high_loss"), (5000, "heavy_loss")]
)
def test_where_no_single_sale_is_enough_ten_sales_decide(loss_bps: int, expected: str) -> None:
    found = judge_exit(in_pieces(sold(loss_bps)), POLICY)
    assert (found.code, found.loss_bps) == (expected, loss_bps)
    assert level_of(found.code, found) != "ok"


def test_what_ten_sales_do_not_sell_is_lost() -> None:
    assert code(in_pieces(sold(0, 8600))) == "ok"
    assert code(in_pieces(sold(0, 8500))) == "high_loss"
    assert code(in_pieces(sold(0, 4999))) == "cannot_sell"
    assert code(in_pieces(NO_MONEY)) == "cannot_sell"


@pytest.mark.parametrize("name", ["half", "hour", "day"])
def test_ten_sales_decide_nothing_where_one_is_enough(name: str) -> None:
    every = {name: sold(60, GRID[name].share_bps)}
    every |= {f"{name}_again": every[name]} if name != "half" else {}
    for outcome in (NO_MONEY, NODE, sold(9000)):
        assert code(in_pieces(outcome, **every)) == "ok"


def test_lost_ten_sales_leave_it_unproven_where_no_single_sale_is_enough() -> None:
    found = judge_exit(in_pieces(NODE), POLICY)
    assert (found.code, found.missing) == ("unproven", NODE)
    found = judge_exit(in_pieces(NODE, sliver=sold(60, 100)), POLICY)
    assert (found.code, found.missing) == ("unproven", NODE)


def test_ten_sales_are_shown_where_they_decide_and_are_no_sale_straight_back() -> None:
    found = judge_exit(in_pieces(sold(60), sliver=sold(60, 100)), POLICY)
    probe, sale = found.shown_sell(POLICY) or (None, None)
    assert probe is not None
    assert (probe.seller, probe.delay_s, sale) == ("pieces", POLICY.day_s, sold(60))
    assert not found.sells_all()
    outcome = judge_trade(ran(), (found,), TRADED, POLICY)
    assert (outcome.code, outcome.level()) == ("ok", "warn")
    text = sentence(outcome, ran(), None, POLICY)
    assert "ten sales of a tenth went through within a day" in text


def test_what_sells_later_only_is_judged_by_the_later_sells() -> None:
    cooling = dict.fromkeys(("full", "full_again", "half", "sliver", "handed_on", "half_handed_on"), NO_MONEY)
    assert code(received(way(cells=grid(60, **cooling)))) == "ok"
    assert code(received(way(cells=grid(1500, **cooling)))) == "high_loss"
    assert code(received(way(cells=grid(5000, **cooling)))) == "heavy_loss"


@pytest.mark.parametrize("at", ["full_again", "hour_again", "day_again"])
def test_what_sells_in_one_block_and_not_in_another_like_it_cannot_be_sold(at: str) -> None:
    assert code(received(way(cells=grid(60, **{at: NO_MONEY})))) == "cannot_sell"


def test_a_refusal_of_the_first_wallet_alone_is_a_plain_refusal() -> None:
    assert code(received(way(cells=grid(60, full=NO_MONEY)))) == "ok"


def test_what_cost_nothing_and_sells_is_ok() -> None:
    cells = tuple(
        ProbeCell(c.probe, replace(c.outcome, paid_raw=0)) for c in grid() if isinstance(c.outcome, Sold)
    )
    free = replace(
        way(cells=cells), buys=(EnvironmentBuy("probe", 0, CompletedBuy(0, BOUGHT_RAW, 0, 140_000)),)
    )
    assert code(replace(received(free), free=True)) == "ok"
    assert code(replace(received(replace(free, cells=refused_grid())), free=True)) == "cannot_sell"


def test_an_impact_that_nobody_knows_leaves_it_unproven() -> None:
    """Where nobody else may buy there is nothing to hold a price against."""
    alone = replace(way(), buys=tuple(buy for buy in way().buys if buy.size == "probe"))
    assert code(received(alone)) == "unproven"
    assert code(received(replace(alone, cells=refused_grid()))) == "cannot_sell"
    assert code(received(replace(alone, cells=grid(9000)))) == "heavy_loss"


def test_without_a_place_to_sell_there_is_no_route() -> None:
    assert code(received()) == "no_route"


def test_without_a_price_of_what_was_spent_there_is_no_route_but_a_trap_stays_one() -> None:
    assert code(received(way(), paid_known=False)) == "no_route"
    assert code(received(way(cells=refused_grid()), paid_known=False)) == "cannot_sell"
    assert judge_exit(received(way(), paid_known=False), POLICY).loss_bps is None


def test_a_token_that_could_not_be_looked_at_is_unproven() -> None:
    found = judge_exit(received(gap=NODE), POLICY)
    assert (found.code, found.missing) == ("unproven", NODE)


def test_it_is_sold_where_that_loses_least() -> None:
    good, dear, trap = way(cells=grid(60)), way(cells=grid(3000)), way(cells=refused_grid())
    for venues in permutations((good, dear, trap)):
        found = judge_exit(received(*venues), POLICY)
        assert (found.code, found.venue, found.loss_bps) == ("ok", good, 60)
    assert code(received(dear, trap)) == "high_loss"


def test_of_two_places_of_one_code_the_cheaper_one_is_shown() -> None:
    found = judge_exit(received(way(cells=grid(300)), way(cells=grid(61))), POLICY)
    assert found.loss_bps == 61


def test_the_sell_that_is_shown_is_the_worse_one_straight_back() -> None:
    found = judge_exit(received(way(cells=grid(60, full_again=sold(100), day=sold(400)))), POLICY)
    assert found.shown_sell(POLICY) == (GRID["full_again"], sold(100))
    laters = dict.fromkeys(("hour", "hour_again"), sold(60)) | dict.fromkeys(("day", "day_again"), sold(70))
    later = judge_exit(received(way(cells=refused_grid(**laters))), POLICY)
    assert later.shown_sell(POLICY) == (GRID["day"], sold(70))
    # In equal blocks it sold and was refused: nothing is shown.
    found = judge_exit(received(way(cells=refused_grid(hour=sold(60)))), POLICY)
    assert found.shown_sell(POLICY) is None
    assert judge_exit(received(), POLICY).shown_sell(POLICY) is None


LATER_ONLY: dict[str, CellOutcome] = dict.fromkeys(("hour", "hour_again", "day", "day_again"), sold(60))
PART: dict[str, CellOutcome] = {
    name: sold(0, 9000, BPS) for name, probe in GRID.items() if probe.share_bps == BPS
}


@pytest.mark.parametrize(
    ("cells", "level"),
    [
        (grid(60), "ok"),
        (grid(60, half=NO_MONEY), "ok"),
        (refused_grid(**LATER_ONLY), "warn"),
        (refused_grid(half=sold(60, 5000)), "warn"),
        (grid(60, **PART), "warn"),
        (grid(1500), "warn"),
        (refused_grid(handed_on=sold(60)), "danger"),
    ],
    ids=["whole", "not in halves", "later", "half", "nine tenths", "dear", "handed on"],
)
def test_level_ok_is_all_of_it_sold_straight_back(cells: tuple[ProbeCell, ...], level: str) -> None:
    found = judge_exit(received(way(cells=cells)), POLICY)
    outcome = judge_trade(ran(), (found,), WalletChanges(True, True), POLICY)
    assert outcome.level() == level


@pytest.mark.parametrize("raw", [1, 2**256 - 1, None])
def test_an_approval_is_warned_of_unless_its_spender_is_known(raw: int | None) -> None:
    """The amount makes no difference: a stranger may take it the moment that the wallet holds it."""
    one = Allowance(TOKEN, SPENDER, raw, "erc20" if raw is not None else "all")
    two = Allowance(TOKEN, OTHER, 5, "permit2")
    found = judge_exit(received(way()), POLICY)
    for exits in ((), (found,)):
        for allowances, known, level in (
            ((one,), set(), "warn"),
            ((one,), {OTHER}, "warn"),
            ((one,), {SPENDER}, "ok"),
            ((one, two), {SPENDER}, "warn"),
            ((one, two), {SPENDER, OTHER}, "ok"),
            ((), set(), "ok"),
        ):
            calls = ran(allowances=allowances)
            outcome = judge_trade(calls, exits, replace(TRADED, lost_bps=60), POLICY, frozenset(known))
            assert (outcome.code, outcome.level()) == ("ok", level)


def test_a_call_that_reaches_no_code_or_may_reach_none_is_warned_of() -> None:
    for calls in (replace(ran(), without_code=(OTHER,)), replace(ran(), code_unread=(OTHER,))):
        outcome = judge_trade(calls, (), WalletChanges(False, False), POLICY)
        assert (outcome.code, outcome.level()) == ("ok", "warn")


@pytest.mark.parametrize("code_", ["unproven", *WORST_FIRST])
def test_a_warning_of_the_calls_makes_no_level_better(code_: str) -> None:
    calls = replace(ran(), without_code=(OTHER,))
    outcome = judge_trade(calls, (of(code_),), TRADED, POLICY)
    assert (outcome.code, outcome.level()) == (code_, LEVELS[code_] if code_ != "ok" else "warn")


def test_what_sells_only_in_a_pool_that_has_to_open_is_a_warning() -> None:
    found = judge_exit(replace(received(way()), through_opening=True), POLICY)
    assert judge_trade(ran(), (found,), WalletChanges(True, True), POLICY).level() == "warn"


# --- gaps ------------------------------------------------------------------------------------------

_FILLINGS, _WITNESSES = 60, 3000


def changed_by_filling(seed: int, venues: int) -> tuple[Exit, Exit] | None:
    """A token called proven, and a filling of its gaps that gives another code."""
    rng = Random(seed)
    gappy = some_exit(rng, venues, 3)
    proven = code(gappy)
    assume(proven != "unproven")
    return next(
        ((gappy, full) for full in (filled(rng, gappy) for _ in range(_FILLINGS)) if code(full) != proven),
        None,
    )


@pytest.mark.parametrize("venues", [1, 3])
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(seed=Seeds)
def test_a_proven_code_survives_every_filling(venues: int, seed: int) -> None:
    assert changed_by_filling(seed, venues) is None


def only_code(seed: int, venues: int) -> str | None:
    """The one code that every filling gives though the token is called unproven."""
    rng = Random(seed)
    gappy = some_exit(rng, venues, 3)
    assume(code(gappy) == "unproven")
    seen: set[str] = set()
    for _ in range(_WITNESSES):
        seen.add(code(filled(rng, gappy)))
        if len(seen) > 1:
            return None
    return seen.pop()


@pytest.mark.parametrize("venues", [1, 3])
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(seed=Seeds)
def test_an_unproven_code_has_two_fillings_that_differ(venues: int, seed: int) -> None:
    assert only_code(seed, venues) is None


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(seed=Seeds)
def test_nothing_is_unproven_without_a_gap(seed: int) -> None:
    assert code(some_exit(Random(seed), 3, 0)) != "unproven"


def test_a_lost_full_sell_beside_a_half_that_sold_is_not_ok() -> None:
    # All of it may sell, and for next to nothing.
    gappy = received(way(cells=grid(60, full=NODE, full_again=NODE)))
    assert code(received(way(cells=grid(60, full=sold(9000), full_again=sold(9000))))) == "heavy_loss"
    assert code(gappy) == "unproven"


def test_a_lost_later_sell_may_be_worse_than_no_sell() -> None:
    assert code(received(way(cells=grid(2000, hour=sold(9000))))) == "heavy_loss"
    assert code(received(way(cells=grid(2000, hour=NODE)))) == "unproven"


@pytest.mark.parametrize("name", ["full", "full_again", "hour", "hour_again", "day", "day_again"])
def test_a_lost_sell_that_counts_leaves_it_unproven(name: str) -> None:
    found = judge_exit(received(way(cells=grid(60, **{name: NODE}))), POLICY)
    assert (found.code, found.missing) == ("unproven", NODE)


def test_a_lost_place_beside_a_good_one_changes_nothing() -> None:
    lost = way(cells=grid(**dict.fromkeys(GRID, NODE)))
    assert code(received(way(), lost)) == "ok"
    assert code(received(lost)) == "unproven"


def test_the_gap_that_is_named_is_whose_fault_it_is() -> None:
    assert judge_exit(received(way(cells=grid(60, day=ITS_OWN))), POLICY).missing == ITS_OWN


# --- the whole trade -------------------------------------------------------------------------------


def test_the_decided_order() -> None:
    """Of several tokens the worst decides; a call that fails and what is not known go before them."""
    order = ("unproven", *WORST_FIRST)
    assert order == ("unproven", "cannot_sell", "heavy_loss", "no_route", "high_loss", "ok")
    for number, worse in enumerate(order):
        for better in order[number:]:
            for pair in permutations((of(worse), of(better))):
                assert judge_trade(ran(), pair, TRADED, POLICY).code == worse


@pytest.mark.parametrize("exit_code", ["unproven", *WORST_FIRST])
def test_a_call_that_fails_goes_before_everything(exit_code: str) -> None:
    failing = ran(DONE, FAILED, DONE)
    assert judge_trade(failing, (of(exit_code),), TRADED, POLICY) == TradeOutcome("tx_reverts")
    short = WalletChanges(spent=True, received=True, short=True)
    assert judge_trade(ran(), (of(exit_code),), short, POLICY) == TradeOutcome("tx_reverts")


def test_of_two_tokens_of_one_code_the_greater_loss_decides() -> None:
    found = judge_trade(ran(), (of("high_loss", 1600), of("high_loss", 4000)), TRADED, POLICY)
    assert found.decided is not None
    assert found.decided.loss_bps == 4000


def test_an_unproven_trade_says_whose_fault_it_is() -> None:
    found = judge_trade(ran(), (of("cannot_sell"), of("unproven")), TRADED, POLICY)
    assert (found.code, found.level(), found.missing) == ("unproven", "unknown", NODE)


@pytest.mark.parametrize(
    ("spent", "received_", "expected"),
    [
        (True, False, "nothing_received"), (True, True, "ok"), (False, True, "ok"), (False, False, "ok"),
    ],
)  # fmt: skip
def test_without_a_received_token(spent: bool, received_: bool, expected: str) -> None:
    assert judge_trade(ran(), (), WalletChanges(spent, received_), POLICY).code == expected


@pytest.mark.parametrize(
    ("lost_bps", "expected"),
    [(-50, "ok"), (1499, "ok"), (1500, "high_loss"), (4999, "high_loss"), (5000, "heavy_loss")],
)
def test_money_changed_into_money_has_the_same_lines(lost_bps: int, expected: str) -> None:
    assert judge_trade(ran(), (), WalletChanges(True, True, lost_bps=lost_bps), POLICY).code == expected


def test_a_loss_that_nobody_knows_is_said_and_not_passed_over() -> None:
    """What is sold for money may be worth anything."""
    unknown = judge_trade(ran(), (), WalletChanges(True, True), POLICY)
    assert (unknown.code, unknown.unpriced, unknown.level()) == ("ok", True, "warn")
    assert "no known price" in sentence(unknown, ran(), None, POLICY)
    for changed in (
        WalletChanges(True, True, lost_bps=60),
        WalletChanges(False, True),
        WalletChanges(False, False),
    ):
        known = judge_trade(ran(), (), changed, POLICY)
        assert (known.code, known.unpriced) == ("ok", False)
        assert "no known price" not in sentence(known, ran(), None, POLICY)


def test_a_trade_with_a_received_token_never_says_that_nothing_came() -> None:
    assert judge_trade(ran(), (of("ok"),), WalletChanges(True, False), POLICY).code == "ok"


@pytest.mark.parametrize(
    ("usual_wei", "sent_wei", "even_wei", "most_wei"),
    [
        ((10, 100), 0, (10, 100), (10, 100)),
        ((20, 200), 0, (10, 100), (10, 100)),
        ((1, 99), 0, (1, 108), (11, 109)),
        ((1, 99), 10, (1, 108), (1, 108)),
        ((50, 0), 0, (110, 0), (110, 60)),
        ((0, 0), 0, (110, 110), (110, 110)),
        ((10, None), 0, (10, 100), (10, 100)),
        ((None, None), 0, (55, 55), (110, 110)),
        ((200, None), 0, (110, 0), (110, 0)),
    ],
)
def test_each_of_several_tokens_has_its_own_share_of_the_cost(
    usual_wei: tuple[int | None, ...], sent_wei: int, even_wei: tuple[int, ...], most_wei: tuple[int, ...]
) -> None:
    assert split_cost(110, usual_wei, sent_wei) == (even_wei, most_wei)


@pytest.mark.parametrize(
    ("least_bps", "most_bps", "code"),
    [
        (60, 60, "ok"),
        (60, 400, "ok"),
        (60, 1600, "unproven"),
        (1600, 6000, "unproven"),
        (6000, 9000, "heavy_loss"),
    ],
)
def test_a_token_is_unproven_where_it_may_have_cost_what_makes_it_worse(
    least_bps: int, most_bps: int, code: str
) -> None:
    least, most = (received(way(cells=grid(loss_bps))) for loss_bps in (least_bps, most_bps))
    finding = judge_share((least, most), POLICY)
    assert finding.code == code
    assert (finding.missing is COST_UNKNOWN) == (code == "unproven")
