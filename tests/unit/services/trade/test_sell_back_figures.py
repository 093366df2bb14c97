"""The figures of a sell-back: one of them is what decided the code."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, plain_decimal
from roundtrip.domain.check.evidence import CellOutcome
from roundtrip.domain.trade.judge import Exit, WalletChanges, code_of_loss, judge_exit, judge_trade
from roundtrip.domain.trade.text import sentence
from roundtrip.services.trade.simulate import sell_back
from roundtrip.services.trade.simulation_answer import SellBack
from unit.domain.builders import BOUGHT_RAW, NO_MONEY, NODE, evidence, pieces_cell, sold
from unit.domain.judged_trades import Seeds
from unit.domain.trades import GRID, grid, ran, received, refused_grid, some_exit, way
from unit.venues.network import CONTRACTS


def figures_of(way_out: Exit) -> tuple[str, SellBack]:
    finding = judge_exit(way_out, POLICY)
    answer = sell_back(finding, evidence(), CONTRACTS, POLICY)
    assert answer is not None
    return finding.code, answer


def both(name: str, outcome: CellOutcome) -> dict[str, CellOutcome]:
    """The sell in both environments."""
    return {name: outcome, f"{name}_again": outcome}


def test_price_impact_that_decides_is_shown() -> None:
    code, answer = figures_of(received(way(cells=grid(41), impact_bps=5200)))
    assert (code, answer.round_trip_loss_bps, answer.price_impact_bps) == ("heavy_loss", 41, 5200)
    assert answer.later_loss_bps == 41


@pytest.mark.parametrize("name", ["hour", "day"])
def test_a_later_loss_that_decides_is_shown(name: str) -> None:
    code, answer = figures_of(received(way(cells=grid(60, **both(name, sold(6000))))))
    assert (code, answer.round_trip_loss_bps, answer.later_loss_bps) == ("heavy_loss", 60, 6000)
    assert answer.price_impact_bps == 0


def test_what_does_not_sell_later_counts_as_lost() -> None:
    code, answer = figures_of(received(way(cells=grid(0, **both("hour", sold(0, 8000, BPS))))))
    assert (code, answer.later_loss_bps) == ("high_loss", 2000)


@pytest.mark.parametrize(("name", "other"), [("hour", "day"), ("day", "hour")])
def test_where_one_later_sell_fails_the_other_ones_loss_is_shown(name: str, other: str) -> None:
    refused = both(name, NO_MONEY)
    code, answer = figures_of(received(way(cells=grid(60, **refused))))
    assert (code, answer.round_trip_loss_bps, answer.later_loss_bps) == ("ok", 60, 60)
    code, answer = figures_of(received(way(cells=grid(60, **refused, **both(other, sold(6000))))))
    assert (code, answer.round_trip_loss_bps, answer.later_loss_bps) == ("heavy_loss", 60, 6000)


def test_what_sells_only_later_is_shown_at_its_worst() -> None:
    every = both("hour", sold(60)) | both("day", sold(5000))
    code, answer = figures_of(received(way(cells=refused_grid(**every))))
    assert (code, answer.round_trip_loss_bps, answer.after_s) == ("heavy_loss", 5000, POLICY.day_s)
    assert answer.later_loss_bps == 5000
    every["half"] = sold(7000, POLICY.half_bps)
    code, answer = figures_of(received(way(cells=refused_grid(**every))))
    assert (code, answer.round_trip_loss_bps, answer.share_bps) == ("heavy_loss", 7000, POLICY.half_bps)


@pytest.mark.parametrize(
    "way_out",
    [
        received(way(cells=refused_grid(sliver=sold(60, 100)))),
        received(way(cells=grid(60), impact_bps=700), paid_known=False),
        received(way(cells=grid(60, full=NODE, full_again=NODE))),
    ],
    ids=["cannot_sell", "no_route", "unproven"],
)
def test_a_code_that_no_loss_decides_has_none(way_out: Exit) -> None:
    code, answer = figures_of(way_out)
    assert code in ("cannot_sell", "no_route", "unproven")
    assert (answer.round_trip_loss_bps, answer.price_impact_bps, answer.later_loss_bps) == (None, None, None)


def test_what_was_taken_beyond_the_request_is_not_shown_as_sold() -> None:
    """A token that shows ten times the balance: one of ten sales goes through, and all of it is gone."""
    lying = replace(sold(60, planned_bps=1000), sold_raw=BOUGHT_RAW)
    code, answer = figures_of(received(way(cells=(*refused_grid(), pieces_cell(lying)))))
    assert (code, answer.share_bps, answer.after_s) == ("cannot_sell", 1000, POLICY.day_s)
    assert (answer.sold, answer.round_trip_loss_bps) == (plain_decimal(BOUGHT_RAW // 10, 18), None)
    assert answer.back is not None
    assert answer.back.raw == str(lying.back_raw)


def test_where_too_little_sells_the_largest_part_is_shown() -> None:
    parts = refused_grid(full=sold(60, 300, BPS), full_again=sold(60, 200, BPS), sliver=sold(60, 100))
    way_out = received(way(cells=(*parts, pieces_cell(sold(60, 1500)))))
    code, answer = figures_of(way_out)
    assert (code, answer.share_bps) == ("cannot_sell", 1500)
    assert answer.back is not None
    outcome = judge_trade(ran(), (judge_exit(way_out, POLICY),), WalletChanges(True, True), POLICY)
    assert "at most 15.00 %" in sentence(outcome, ran(), None, POLICY)
    code, answer = figures_of(received(way(cells=parts)))
    # Of two environments the one that sold less.
    assert (code, answer.share_bps, answer.after_s) == ("cannot_sell", 200, POLICY.later_s)


def test_nothing_counts_as_sold_where_the_same_sell_also_failed() -> None:
    code, answer = figures_of(received(way(cells=grid(60, full_again=NO_MONEY))))
    assert (code, answer.sold, answer.share_bps, answer.back) == ("cannot_sell", "0", 0, None)
    assert (answer.after_s, answer.reverts is None) == (None, False)


def test_in_pieces_no_later_loss_is_known() -> None:
    code, answer = figures_of(received(way(cells=(*refused_grid(), pieces_cell(sold(2000))))))
    assert (code, answer.round_trip_loss_bps, answer.later_loss_bps) == ("high_loss", 2000, None)


@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(seed=Seeds)
def test_a_figure_of_the_answer_decided_the_code(seed: int) -> None:
    way_out = some_exit(Random(seed), 2, 1)
    finding = judge_exit(way_out, POLICY)
    assume(finding.loss_bps is not None and finding.code in ("ok", "high_loss", "heavy_loss"))
    assert finding.venue is not None
    # Of two environments that differ in both, the smaller share counts with the larger loss.
    outcomes = {cell.probe: cell.outcome for cell in finding.venue.cells}
    straight = (outcomes[GRID["full"]], outcomes[GRID["full_again"]])
    assume(straight[0] == straight[1])
    _, answer = figures_of(way_out)
    assert answer.round_trip_loss_bps is not None
    lost_bps, probe = answer.round_trip_loss_bps, (finding.shown_sell(POLICY) or (None,))[0]
    assert probe is not None
    if probe.share_bps == BPS:
        lost_bps = BPS - answer.share_bps * (BPS - lost_bps) // BPS
    figures = [lost_bps, answer.price_impact_bps or 0]
    if answer.later_loss_bps is not None:
        figures.append(answer.later_loss_bps)
    assert code_of_loss(max(figures), POLICY) == finding.code
