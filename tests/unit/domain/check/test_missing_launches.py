"""What is missing of pools with hooks and of launches: proven or unproven, by hand."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import Evidence, HookCarry, VenueEvidence
from roundtrip.domain.check.verdict import judge
from unit.domain.builders import (
    ABSENT,
    ITS_OWN,
    LIQUID,
    NO_MONEY,
    NODE,
    buys,
    cells,
    evidence,
    no_trade,
    refused_buys,
    sold,
    venue,
)
from unit.domain.launches import CURVE, at, launch, launched, state, v4

UNTAXED = HookCarry(1, 1, 1)


def code(found: Evidence) -> str:
    return judge(found, POLICY).verdict.code


def hooked(loss_bps: int, carried: object = NODE, impact_bps: int = 0) -> VenueEvidence:
    return at(v4(), venue(cells(loss_bps), impact_bps=impact_bps), carried=carried)


# --- hooks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("loss", "found"), [(60, "ok"), (999, "ok"), (1000, "unproven"), (1200, "unproven"),
                                             (2000, "unproven"), (6000, "unproven")])  # fmt: skip
def test_a_lost_keep_matters_where_the_loss_is_large_enough_for_a_toll(loss: int, found: str) -> None:
    assert code(evidence(hooked(loss))) == found


def test_a_lost_keep_does_not_matter_where_the_impact_is_larger_than_all_of_it() -> None:
    assert code(evidence(hooked(900, NODE, 2000))) == "thin_pool"


def test_a_keep_that_the_token_hides_is_the_pools() -> None:
    assert code(evidence(hooked(2000, ITS_OWN))) == "toll_pool"


def test_a_lost_keep_of_a_pool_that_cannot_win_leaves_the_verdict_proven() -> None:
    assert code(evidence(venue(), hooked(2000))) == "ok"


def test_the_piece_that_is_named_is_the_keep() -> None:
    assert judge(evidence(hooked(2000)), POLICY).missing == NODE


@pytest.mark.parametrize(
    ("at_best", "found"), [(1501, "high_fees"), (1500, "high_fees"), (1499, "unproven"), (0, "unproven")]
)
def test_a_lost_environment_of_a_hooked_pool_counts_up_to_the_margin(at_best: int, found: str) -> None:
    # No high fees if it wins; the other pool's 16 % are beaten only by less than 15 %.
    lost = at(v4(), venue(cells(at_best, full=NODE, fees=sold(0))), carried=UNTAXED)
    assert code(evidence(venue(cells(1600)), lost)) == found


def test_a_hooked_pool_whose_sells_are_lost_cannot_win_within_the_margin() -> None:
    lost = at(v4(), venue(cells(0, full=NODE, full_again=NODE)), carried=UNTAXED)
    assert code(evidence(venue(cells(1600)), lost)) == "unproven"
    # Nothing is less than no loss: a hundred and more would have to be beaten.
    assert code(evidence(venue(cells(100)), lost)) == "ok"


def test_a_hooked_pool_of_which_nothing_is_known_may_win() -> None:
    lost = at(v4(), no_trade(LIQUID, buys(NODE, NODE, NODE, NODE)))
    assert code(evidence(lost)) == "unproven"
    assert code(evidence(venue(cells(400)), lost)) == "unproven"


# --- launches -------------------------------------------------------------------------------------


def on_curve(curve_state: object, loss_bps: int = 200, impact_bps: int = 0) -> Evidence:
    found = at(CURVE, venue(cells(loss_bps), impact_bps=impact_bps))
    return launched(launch(curve_state), found)  # type: ignore[arg-type]


def test_a_lost_curve_may_tax_its_first_buyers() -> None:
    assert code(on_curve(NODE)) == "unproven"
    assert judge(on_curve(NODE), POLICY).missing == NODE


def test_a_lost_curve_does_not_matter_where_its_sells_are_ruinous() -> None:
    assert code(on_curve(NODE, 6000)) == "heavy_fees"


def test_a_lost_curve_does_not_matter_where_another_venue_is_better() -> None:
    found = on_curve(NODE)
    assert code(replace(found, venues=(*found.venues, venue()))) == "ok"
    # A tax that is high would let the other one win, and one that is low changes nothing.
    assert code(replace(found, venues=(*found.venues, venue(cells(400))))) == "ok"
    assert code(replace(found, venues=(*found.venues, venue(cells(1700))))) == "unproven"


@pytest.mark.parametrize("left", [no_trade(ABSENT), no_trade(LIQUID, refused_buys())])
def test_a_lost_curve_does_not_matter_where_it_does_not_sell_to_us(left: VenueEvidence) -> None:
    known, lost = (launched(launch(one), at(CURVE, left)) for one in (state(), NODE))
    assert code(lost) == code(known)


def test_a_known_tax_leaves_nothing_unproven() -> None:
    assert code(on_curve(state(snipe_bps=9900))) == "heavy_fees"
    assert code(on_curve(state(snipe_bps=1600))) == "high_fees"


# --- figures that hang on each other --------------------------------------------------------------


def test_a_lost_full_sell_leaves_the_keep_open_where_the_small_round_trip_was_refused() -> None:
    def found(full: object) -> Evidence:
        every = cells(7000, full=full, fees=NO_MONEY)  # type: ignore[arg-type]
        return evidence(at(v4(), venue(every), carried=UNTAXED))

    assert code(found(sold(7000))) == "toll_pool"
    assert code(found(NODE)) in ("unproven", "toll_pool")


def test_a_lost_small_round_trip_does_not_matter_where_the_tax_alone_is_ruinous() -> None:
    found = at(CURVE, venue(cells(200, fees=NODE)))
    assert code(launched(launch(state(snipe_bps=9900)), found)) == "heavy_fees"


def test_a_lost_curve_does_not_matter_where_its_small_round_trip_is_ruinous() -> None:
    found = at(CURVE, venue(cells(200, fees=sold(6000))))
    assert code(launched(launch(NODE), found)) == "heavy_fees"


def test_a_lost_keep_is_no_more_than_the_full_sell_lost() -> None:
    every = cells(900, day=sold(6000), fees=NO_MONEY)
    assert code(evidence(at(v4(), venue(every), carried=NODE))) == "heavy_fees"


def test_a_lost_launch_may_tax_its_first_buyers_too() -> None:
    assert code(launched(NODE, at(CURVE, venue(cells(200))))) == "unproven"
