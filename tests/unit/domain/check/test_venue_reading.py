"""One venue's evidence read into losses, shares and a status."""

import math
from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import (
    BuyOutcome,
    CellOutcome,
    EnvironmentBuy,
    Missing,
    RefusedCall,
    Size,
    Sold,
    VenueEvidence,
)
from roundtrip.domain.check.refusals import POOL_GAVE_NOTHING
from roundtrip.domain.check.sales import Sale, loss_bps
from roundtrip.domain.check.venue_code import LossParts, code_of, fee_like_bps, parts, takes_sells
from roundtrip.domain.check.venue_reading import is_filled, main_size, pool_keep_bps, read_venue
from unit.domain.builders import (
    ABSENT,
    DRY,
    LIQUID,
    MAIN_CELLS,
    NO_MONEY,
    NODE,
    PAID_RAW,
    bought,
    buys,
    cells,
    fee_that_keeps,
    main_cell,
    no_trade,
    partial_buys,
    refused_buys,
    refused_cells,
    small_buy,
    sold,
    venue,
)
from unit.domain.launches import v4

QUICK = settings(max_examples=200, deadline=None)
NO_BUY = RefusedCall("buy", "paused", 50_000)


@QUICK
@given(st.integers(1, 2**128), st.integers(0, 2**128))
def test_a_loss_is_rounded_up(paid: int, back: int) -> None:
    assert loss_bps(paid, back) == ceil(Fraction(paid - back, paid) * BPS)


@pytest.mark.parametrize(
    ("paid", "back", "loss"),
    [(100, 100, 0), (100, 0, BPS), (10**18, 10**18 - 1, 1), (10**18, 10**18 + 1, 0), (100, 110, -1000),
     (10_000, 8_500, 1500), (10**8, 85 * 10**6 - 1, 1501), (10**8, 85 * 10**6 + 1, 1500)],
)  # fmt: skip
def test_losses_by_hand(paid: int, back: int, loss: int) -> None:
    assert loss_bps(paid, back) == loss


@QUICK
@given(st.integers(0, 1_000_000))
def test_a_pool_keeps_its_fee_twice_rounded_up(fee_pips: int) -> None:
    left = 1 - Fraction(fee_pips, 1_000_000)
    assert pool_keep_bps(fee_pips) == ceil((1 - left * left) * BPS)


@pytest.mark.parametrize(("fee_pips", "keep"), [(0, 0), (100, 2), (500, 10), (3000, 60), (10_000, 199)])
def test_the_usual_fees_by_hand(fee_pips: int, keep: int) -> None:
    assert pool_keep_bps(fee_pips) == keep


def only(name: str, outcome: CellOutcome) -> object:
    return getattr(read_venue(venue(cells(**{name: outcome})), POLICY), name)


@pytest.mark.parametrize("name", ["hour", "day", "half", "sliver", "handed_on"])
def test_every_probe_is_read_from_its_own_cell(name: str) -> None:
    share = MAIN_CELLS[name][1]
    assert only(name, sold(777, share)) == Sale(777, share, True)
    assert only(name, NO_MONEY) == NO_MONEY
    assert only(name, NODE) == NODE


def test_a_probe_that_was_not_asked_is_unknown_where_a_code_needs_it() -> None:
    found = read_venue(venue(cells(full=None, full_again=None, hour=None, day=None, fees=None)), POLICY)
    for needed in (found.full, found.hour, found.day):
        assert isinstance(needed, Missing)
    assert found.half == Sale(60, 5000, True)
    assert found.fees_bps is None
    assert found.large is None


@pytest.mark.parametrize("at", ["full", "full_again"])
def test_the_worse_of_two_environments_counts(at: str) -> None:
    def read(outcome: CellOutcome) -> object:
        return read_venue(venue(cells(100, **{at: outcome})), POLICY).full

    assert read(sold(200)) == Sale(200, BPS, True)
    assert read(sold(50)) == Sale(100, BPS, True)
    assert read(sold(50, 9000, BPS)) == Sale(100, 9000, False)
    assert read(NO_MONEY) == NO_MONEY
    assert read(NODE) == NODE


def test_a_refusal_in_one_environment_counts_more_than_an_unknown_in_the_other() -> None:
    found = read_venue(venue(cells(full=NODE, full_again=NO_MONEY)), POLICY)
    assert found.full == NO_MONEY


def test_of_two_sells_in_part_the_smaller_part_counts() -> None:
    found = read_venue(
        venue(refused_cells(full=sold(100, 1000, BPS), full_again=sold(200, 6000, BPS))), POLICY
    )
    assert isinstance(found.full, Sale)
    assert found.full.share_bps == 1000


def test_a_sell_that_moves_nothing_is_a_refusal() -> None:
    for empty in (replace(sold(), sold_raw=0), replace(sold(), held_raw=0), replace(sold(), sold_raw=-1)):
        found = only("day", empty)
        assert isinstance(found, RefusedCall)
        assert found.step == "sell"


@pytest.mark.parametrize(("left", "whole"), [(0, True), (100, True), (101, False), (-5, True)])
def test_a_sell_is_whole_when_less_than_a_ten_thousandth_is_left(left: int, whole: bool) -> None:
    outcome = Sold(10**6, 10**6, 10**6, 10**6 - left, 10**6, 0, 0)
    found = only("day", outcome)
    assert isinstance(found, Sale)
    assert found.whole is whole


@QUICK
@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_a_share_is_of_what_was_bought_and_never_more_than_all(got: int, gone: int) -> None:
    found = only("day", Sold(10**6, got, got, gone, 10**6, 0, 0))
    assert isinstance(found, Sale)
    assert found.share_bps == min(BPS, ceil(Fraction(gone * BPS, got)))


def test_a_part_is_measured_against_what_that_part_cost() -> None:
    assert only("half", sold(250, 5000)) == Sale(250, 5000, True)
    assert only("sliver", sold(250, 100)) == Sale(250, 100, True)


@pytest.mark.parametrize(
    ("facts", "all_buys", "status"),
    [
        (ABSENT, (), "absent"),
        (ABSENT, refused_buys(), "absent"),
        (ABSENT, buys(NODE, NODE, NODE, NODE), "absent"),
        (DRY, refused_buys(), "dry"),
        (replace(LIQUID, sqrt_price_x96=0), refused_buys(), "dry"),
        (LIQUID, partial_buys(), "dry"),
        (LIQUID, refused_buys(), "refused"),
        (LIQUID, buys(), "bought"),
        (NODE, buys(), "bought"),
        (NODE, refused_buys(), NODE),
        (LIQUID, buys(probe=NODE), NODE),
        (LIQUID, buys(probe=NO_BUY, tenth=NODE), NODE),
    ],
)
def test_a_status_by_state_and_buys(
    facts: PoolFacts | Missing, all_buys: tuple[EnvironmentBuy, ...], status: object
) -> None:
    assert read_venue(no_trade(facts, all_buys), POLICY).status == status


def test_a_venue_that_fills_only_the_smallest_buy_is_not_dry() -> None:
    all_buys = buys(NO_BUY, NO_BUY, NO_BUY, small_buy())
    assert read_venue(no_trade(LIQUID, all_buys), POLICY).status != "dry"


def test_a_venue_that_fills_for_one_wallet_and_refuses_another_is_not_dry() -> None:
    all_buys = (*refused_buys(), EnvironmentBuy("probe", 1, bought()))
    assert read_venue(no_trade(LIQUID, all_buys), POLICY).status != "dry"


def test_a_refused_buy_is_kept() -> None:
    assert read_venue(no_trade(LIQUID, refused_buys("why")), POLICY).buy_refusal == RefusedCall(
        "buy", "why", 50_000
    )


@pytest.mark.parametrize(
    ("probe", "tenth", "hundredth", "size"),
    [
        (None, None, None, "probe"),
        (NO_BUY, None, None, "tenth"),
        (NO_BUY, NO_BUY, None, "hundredth"),
        (bought(0, "probe", 5000), None, None, "tenth"),
        (NO_BUY, NO_BUY, NO_BUY, None),
        (NODE, None, None, NODE),
        (NO_BUY, NODE, None, NODE),
        (None, NODE, NODE, "probe"),
    ],
)
def test_the_main_size_is_the_largest_that_filled(
    probe: BuyOutcome | None, tenth: BuyOutcome | None, hundredth: BuyOutcome | None, size: object
) -> None:
    assert main_size(venue(all_buys=buys(probe, tenth, hundredth))) == size


@pytest.mark.parametrize(("paid", "received", "full"), [(99, 1, True), (98, 1, False), (100, 0, False)])
def test_a_buy_is_filled_when_nearly_all_was_taken_and_something_came(
    paid: int, received: int, full: bool
) -> None:
    assert is_filled(replace(bought(), paid_raw=paid, received_raw=received, offered_raw=100)) is full


@pytest.mark.parametrize("size", ["tenth", "hundredth"])
def test_a_smaller_main_size_reads_its_own_cells(size: Size) -> None:
    no = buys(NO_BUY, NO_BUY if size == "hundredth" else None)
    all_cells = (*cells(500, size), main_cell("probe", "hour", NO_MONEY))
    found = read_venue(venue(all_cells, all_buys=no), POLICY)
    assert found.size == size
    assert found.hour == Sale(500, BPS, True)


@pytest.mark.parametrize("impact", [0, 1, 1499, 1500, 5000, 9999])
def test_impact_is_how_much_worse_the_judged_buy_fills(impact: int) -> None:
    assert read_venue(venue(impact_bps=impact), POLICY).impact_bps == impact


def test_impact_is_never_below_zero_and_unknown_without_the_small_buy() -> None:
    def read(small: BuyOutcome) -> object:
        return read_venue(venue(all_buys=buys(thousandth=small)), POLICY).impact_bps

    assert read(bought(5000, "thousandth")) == 0
    assert read(NODE) == NODE
    # The next larger one serves where the smallest is refused.
    assert read(NO_BUY) == 0
    assert read(replace(small_buy(), received_raw=0)) == 0
    assert read(replace(small_buy(), paid_raw=0)) == 0


def test_a_token_that_refuses_every_smaller_buy_hides_its_price_itself() -> None:
    found = read_venue(venue(all_buys=buys(tenth=NO_BUY, hundredth=NO_BUY, thousandth=NO_BUY)), POLICY)
    assert isinstance(found.impact_bps, Missing)
    assert found.impact_bps.fault == "token"


def test_fees_are_the_loss_of_the_smallest_round_trip() -> None:
    assert read_venue(venue(cells(fees=sold(222))), POLICY).fees_bps == 222
    assert read_venue(venue(cells(fees=NODE)), POLICY).fees_bps == NODE
    assert read_venue(venue(cells(fees=NO_MONEY)), POLICY).fees_bps is None


def test_the_most_gas_of_any_leg_is_kept() -> None:
    assert read_venue(venue(cells(day=sold(60, gas=4_000_000))), POLICY).most_gas == 4_000_000
    assert read_venue(venue(cells(fees=sold(60, gas=4_000_000))), POLICY).most_gas == 150_000


@pytest.mark.parametrize("name", ["full", "hour", "day", "half"])
@pytest.mark.parametrize(("share", "takes"), [(4999, False), (5000, True)])
def test_half_within_a_day_by_any_probe_is_taking_the_sell(name: str, share: int, takes: bool) -> None:
    outcomes: dict[str, CellOutcome | None] = {name: sold(60, share, BPS)}
    if name == "full":
        # What sells at once only, and neither after an hour nor after a day, is a trap.
        outcomes |= {"full_again": sold(60, share, BPS), "hour": NODE}
    assert takes_sells(read_venue(venue(refused_cells(**outcomes)), POLICY), POLICY) is takes


def test_what_only_another_wallet_sells_is_not_taking_the_sell() -> None:
    assert not takes_sells(read_venue(venue(refused_cells(handed_on=sold(60))), POLICY), POLICY)


def test_a_buy_that_is_paid_for_and_brings_nothing_keeps_the_money() -> None:
    nothing = RefusedCall("arrive", "nothing arrived for what was paid", 90_000)
    small = EnvironmentBuy("thousandth", 0, RefusedCall("buy", None, 0))
    for tried in (
        (EnvironmentBuy("probe", 0, nothing),),
        (EnvironmentBuy("probe", 0, NO_MONEY), EnvironmentBuy("tenth", 0, nothing)),
    ):
        found = read_venue(replace(venue(()), buys=(*tried, small)), POLICY)
        assert (found.status, found.buy_refusal) == ("keeps", None)


def test_a_sell_that_the_second_block_refuses_is_not_taking_the_sell() -> None:
    found = read_venue(venue(cells(full_again=NO_MONEY)), POLICY)
    assert found.inconsistent is True
    assert not takes_sells(found, POLICY)


def test_a_sell_that_the_first_block_refuses_is_a_refused_sell() -> None:
    found = read_venue(venue(cells(full=NO_MONEY)), POLICY)
    assert found.inconsistent is False
    assert found.full == NO_MONEY


def test_a_buy_that_only_one_of_two_blocks_takes_says_nothing_of_selling() -> None:
    found = read_venue(venue(cells(full_again=NO_BUY)), POLICY)
    assert found.inconsistent is False
    assert found.full == Sale(60, BPS, True)
    assert found.refused_elsewhere == NO_BUY
    assert code_of(found, POLICY) == ("ok", "warn")


@pytest.mark.parametrize(
    ("name", "counts"), [("hour", True), ("day", True), ("half", False), ("sliver", False)]
)
def test_losses_count_at_once_in_an_hour_and_in_a_day(name: str, counts: bool) -> None:
    outcome = sold(900, MAIN_CELLS[name][1])
    found = read_venue(venue(cells(**{name: outcome})), POLICY)
    assert fee_like_bps(found, POLICY) == (900 if counts else 60)


def test_a_part_counts_where_the_whole_is_refused() -> None:
    def least(**outcomes: CellOutcome | None) -> int:
        return fee_like_bps(read_venue(venue(refused_cells(**outcomes)), POLICY), POLICY)

    assert least(half=sold(900, 5000), handed_on=sold(9000)) == 900
    assert least(half=sold(900, 100, 5000)) == 0
    assert least(hour=sold(800, 4999, BPS), day=sold(70)) == 70


def test_parts_tell_keep_impact_and_tax_apart() -> None:
    found = read_venue(venue(cells(60, fees=sold(400)), impact_bps=900), POLICY)
    assert parts(found, POLICY) == LossParts(worst_bps=900, pool_fee_bps=60, impact_bps=900, tax_bps=340)
    assert parts(read_venue(venue(cells(fees=sold(20))), POLICY), POLICY).tax_bps == 0


@pytest.mark.parametrize(
    ("keep", "impact", "tax", "code"),
    [(3, 2, 1, "toll_pool"), (1, 3, 2, "thin_pool"), (1, 2, 3, "high_fees"),
     (3, 3, 1, "toll_pool"), (1, 3, 3, "thin_pool"), (3, 1, 3, "toll_pool")],
)  # fmt: skip
def test_the_largest_part_names_the_code(keep: int, impact: int, tax: int, code: str) -> None:
    assert LossParts(9, keep, impact, tax).largest() == code


@pytest.mark.parametrize("name", ["full", "hour", "day"])
def test_level_ok_needs_all_of_it_sold_at_once_and_later(name: str) -> None:
    assert code_of(read_venue(venue(), POLICY), POLICY) == ("ok", "ok")
    short = cells(**{name: sold(60, 9000, BPS)})
    assert code_of(read_venue(venue(short), POLICY), POLICY) == ("ok", "warn")


def test_the_keep_of_a_thousand_can_be_met_exactly() -> None:
    assert [pool_keep_bps(fee_that_keeps(keep)) for keep in (999, 1000, 1001)] == [999, 1000, 1001]


# --- few base units -------------------------------------------------------------------------------


def coarse(units: int, small_units: int, impact_bps: int = 0) -> VenueEvidence:
    """A token of so few base units that a buy of a thousandth brings a handful; the pool's own price says
    ``impact_bps`` beside its fee of 0.3 %."""
    spot = Fraction(PAID_RAW * 997 * (BPS - impact_bps), 1000 * BPS * units)
    facts = replace(LIQUID, sqrt_price_x96=math.isqrt(int(spot * 2**192)))
    small = replace(small_buy(), received_raw=small_units)
    found = venue(
        cells(fees=sold(6250)), all_buys=buys(replace(bought(), received_raw=units), thousandth=small)
    )
    return replace(found, facts=facts)


@pytest.mark.parametrize("token_is_zero", [True, False])
def test_rounding_to_whole_units_is_no_fee(token_is_zero: bool) -> None:
    found = coarse(3968, 3)
    if not token_is_zero:
        facts = found.facts
        assert isinstance(facts, PoolFacts)
        found = replace(found, facts=replace(facts, sqrt_price_x96=2**192 // facts.sqrt_price_x96))
    reading = read_venue(found, POLICY)
    assert (reading.fees_bps, reading.impact_bps) == (60, 0)
    fine = venue(cells(fees=sold(6250)))
    assert read_venue(fine, POLICY).fees_bps == 6250


@pytest.mark.parametrize(("impact_bps", "seen_bps"), [(0, 0), (2000, 2000)])
def test_the_impact_of_a_coarse_token_is_that_of_its_pools_price(impact_bps: int, seen_bps: int) -> None:
    # What the small buy shows is up to two units off.
    assert read_venue(coarse(3968, 3, impact_bps), POLICY).impact_bps == pytest.approx(seen_bps, abs=1)
    rounded = RefusedCall("arrive", POOL_GAVE_NOTHING, 1)
    main = replace(bought(), received_raw=496)
    nothing = replace(coarse(496, 1, impact_bps), buys=buys(main, rounded, rounded, rounded))
    assert read_venue(nothing, POLICY).impact_bps == pytest.approx(seen_bps, abs=1)
    hooked = replace(nothing, venue=v4())
    assert isinstance(read_venue(hooked, POLICY).impact_bps, Missing)
