"""A cap on one sale is a warning, and no trap: where no single sale sells half, ten smaller ones decide."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import CellOutcome, ProbeCell, RefusedCall
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.services.check.probe_grid import grid_of
from unit.domain.builders import (
    MAIN_CELLS,
    NO_MONEY,
    NODE,
    bought,
    buys,
    cells,
    evidence,
    pieces_cell,
    refused_cells,
    sold,
    venue,
)
from unit.domain.crowds import PAUSED, crowd, isolated, trade

CAP = RefusedCall("sell", "max transaction", 90_000)


def capped(pieces: CellOutcome, **outcomes: CellOutcome | None) -> tuple[ProbeCell, ...]:
    """Every single sale refused, but for the named ones, and these ten sales."""
    every: dict[str, CellOutcome | None] = dict.fromkeys(MAIN_CELLS, CAP)
    return (*cells(**{**every, "sliver": sold(60, 100), **outcomes}), pieces_cell(pieces))


def judged(*found: tuple[ProbeCell, ...]) -> Judgement:
    return judge(evidence(*(venue(one, told_on_sell=CAP) for one in found)), POLICY)


def verdict(*found: tuple[ProbeCell, ...]) -> tuple[str, str]:
    result = judged(*found).verdict
    return result.code, result.level


def says(pieces: CellOutcome, **outcomes: CellOutcome | None) -> str:
    return judged(capped(pieces, **outcomes)).verdict.text


# --- codes -----------------------------------------------------------------------------------------


def test_ten_sales_that_go_through_make_a_cap_a_warning() -> None:
    assert verdict(capped(sold(60))) == ("ok", "warn")


@pytest.mark.parametrize(
    ("pieces", "found"),
    [(sold(60), ("cannot_sell", "danger")), (sold(60, 9000), ("ok", "warn")), (None, None)],
    ids=["all of it", "a part", "not tried"],
)
def test_a_cap_hides_no_wallet_that_cannot_sell_a_piece(
    pieces: CellOutcome | None, found: tuple[str, str] | None
) -> None:
    small = trade(PAUSED, size_wei=POLICY.probe_wei // POLICY.small_pieces)
    met = crowd(small, *(trade(CAP) for _ in range(9)), tries=isolated(wallet=PAUSED))
    tried = capped(NO_MONEY if pieces is None else pieces)
    one = replace(venue(tried if pieces else tried[:-1], told_on_sell=CAP), crowd=met)
    verdict = judge(evidence(one), POLICY).verdict
    assert (verdict.code, verdict.level) == (found or ("cannot_sell", "danger"))
    assert verdict.text.startswith("1 of 20 test wallets could buy it and not sell it") is (
        pieces == sold(60)
    )


def test_ten_sales_that_are_refused_leave_a_trap() -> None:
    found = judged(capped(NO_MONEY))
    assert (found.verdict.code, found.verdict.level, found.missing) == ("cannot_sell", "danger", None)


@pytest.mark.parametrize(("share_bps", "code"), [(4999, "cannot_sell"), (5000, "ok"), (9000, "ok")])
def test_half_of_it_has_to_be_sold_in_ten_sales(share_bps: int, code: str) -> None:
    assert verdict(capped(sold(60, share_bps, 10_000)))[0] == code


def test_what_the_sales_take_beyond_what_they_ask_for_is_lost_and_not_sold() -> None:
    assert verdict(capped(sold(60, 10_000, 1000)))[0] == "cannot_sell"
    # Half of the sales went through, and everything left the wallet for half of the money.
    assert verdict(capped(sold(5000, 10_000, 5000))) == ("heavy_fees", "danger")


def test_what_ten_sales_sold_at_most_is_told_where_it_is_too_little() -> None:
    assert "this check could sell at most 40.00 % of it" in says(sold(60, 4000, 10_000))


@pytest.mark.parametrize(
    ("loss_bps", "code", "level"),
    [(1499, "ok", "warn"), (1500, "high_fees", "warn"), (5000, "heavy_fees", "danger")],
)
def test_what_ten_sales_lose_counts_where_nothing_else_sells(loss_bps: int, code: str, level: str) -> None:
    assert verdict(capped(sold(loss_bps))) == (code, level)


@pytest.mark.parametrize("name", ["half", "hour", "day"])
def test_what_ten_sales_lose_does_not_count_where_one_sale_is_enough(name: str) -> None:
    one = sold(60, MAIN_CELLS[name][1])
    assert verdict(capped(sold(9000), **{name: one})) == ("ok", "warn")


def test_ten_sales_prove_nothing_where_equal_blocks_gave_unequal_results() -> None:
    found = (*cells(full_again=NO_MONEY), pieces_cell(sold(60)))
    assert verdict(found) == ("cannot_sell", "danger")


def test_a_pool_that_takes_one_sale_comes_before_a_cheaper_one_that_takes_ten() -> None:
    found = judged(capped(sold(0)), cells(1400))
    assert (found.best, found.verdict.code) == (1, "ok")


# --- a missing result ------------------------------------------------------------------------------


def test_ten_sales_that_the_node_lost_are_no_pass_and_no_trap() -> None:
    found = judged(capped(NODE))
    assert (found.verdict.code, found.verdict.level, found.missing) == ("unproven", "unknown", NODE)


def test_lost_ten_sales_do_not_matter_beside_a_pool_that_takes_one() -> None:
    assert verdict(cells(), capped(NODE)) == ("ok", "ok")


def test_lost_ten_sales_do_not_matter_where_half_sold() -> None:
    assert verdict(capped(NODE, half=sold(60, 5000))) == ("ok", "warn")


def test_lost_ten_sales_that_might_be_dear_matter_beside_a_pool_that_sells_later() -> None:
    # The other pool brings half as much again: at a loss of 30 % of it, it would decide, and not be ok.
    later, dear = venue(refused_cells(hour=sold(60))), buys(probe=bought(-5000))
    lost = evidence(later, venue(capped(NODE), all_buys=dear))
    assert judge(lost, POLICY).verdict.code == "unproven"
    known = evidence(later, venue(capped(sold(3000)), all_buys=dear))
    assert judge(known, POLICY).verdict.code == "high_fees"
    assert judge(evidence(later, venue(capped(NO_MONEY), all_buys=dear)), POLICY).verdict.code == "ok"


def test_evidence_without_ten_sales_reads_as_it_did() -> None:
    assert verdict(capped(NO_MONEY)[:-1]) == ("cannot_sell", "danger")


# --- words -----------------------------------------------------------------------------------------


def test_the_sentence_names_the_sale_that_failed_and_what_ten_lost() -> None:
    why = '(the token says "max transaction")'
    ten = "ten sales of a tenth went through within a day for a loss of 0.60 %"
    assert says(sold(60)) == f"A sale of half of it is refused {why}; {ten}."
    # A half that was not tried is not called refused.
    assert says(sold(60), half=None) == f"A sale of all of it is refused {why}; {ten}."


def test_the_sentence_says_how_much_one_sale_moves_and_what_ten_sold() -> None:
    clipped = sold(60, 1000, 10_000)
    text = says(sold(60, 7000), full=clipped, full_again=clipped, half=sold(60, 1000, 5000))
    assert text == (
        "One sale sells at most 10.00 % of it; "
        "ten sales of a tenth within a day sold 70.00 % of it for a loss of 0.60 %."
    )


def test_a_gain_is_not_told_as_a_loss() -> None:
    assert says(sold(-300)).endswith("ten sales of a tenth went through within a day for a gain of 3.00 %.")


def test_the_grid_shows_the_ten_sales_in_a_row_of_their_own() -> None:
    found = evidence(venue(capped(sold(60))))
    rows = {row.label: row.cells for row in grid_of(found, judge(found, POLICY), POLICY).rows}
    *_, last = rows["Buy for 0.1 eth, sell all in ten sales over a day"]
    assert last is not None
    assert (last.came, last.loss_bps, last.delay_s) == ("sells", 60, POLICY.day_s)
    *_, single = rows["Buy for 0.1 eth, sell all"]
    assert single is not None
    assert single.came == "refused"
