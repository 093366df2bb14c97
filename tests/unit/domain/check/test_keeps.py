"""What a pool, its hook, the launchpad and the first seconds' tax keep of a round trip."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import EnvironmentBuy, HookCarry, RefusedCall, VenueEvidence
from roundtrip.domain.check.venue_code import LossParts, fee_like_bps, parts
from roundtrip.domain.check.venue_reading import is_filled, main_size, read_venue
from unit.domain.builders import (
    ITS_OWN,
    LIQUID,
    NO_MONEY,
    NODE,
    bought,
    buys,
    cells,
    keep_of,
    no_trade,
    refused_cells,
    sold,
    venue,
)
from unit.domain.launches import CURVE, IDLE, LAUNCH, LAUNCHPAD_POOL, SWAPPING, at, launch, state, v4

QUICK = settings(max_examples=200, deadline=None)
DYNAMIC = 0x800000
MOVED_RAW = 10**24
UNTAXED = HookCarry(MOVED_RAW, MOVED_RAW, MOVED_RAW)
Bps = st.integers(0, BPS - 1)


def taxed(in_bps: int, out_bps: int | None = None) -> HookCarry:
    """What is carried by a token that takes this of every transfer."""
    out_bps = in_bps if out_bps is None else out_bps
    return HookCarry(MOVED_RAW, MOVED_RAW * (BPS - in_bps) // BPS, MOVED_RAW * (BPS - out_bps) // BPS)


def hooked(loss_bps: int, carried: object, where: Venue | None = None) -> VenueEvidence:
    """A pool with a hook whose every round trip loses this."""
    return at(where or v4(), venue(cells(loss_bps)), carried=carried)


def keep(found: VenueEvidence) -> object:
    return read_venue(found, POLICY).pool_fee_bps


def losing(*taken_bps: int) -> int:
    """The loss of a round trip of which each of these shares is taken, one after another, rounded up."""
    left = 10**40
    for share in taken_bps:
        left = left * (BPS - share) // BPS
    return -(-(10**40 - left) * BPS // 10**40)


# --- hooks ----------------------------------------------------------------------------------------


@QUICK
@given(Bps)
def test_without_a_tax_all_of_the_loss_is_the_hooks(loss: int) -> None:
    assert keep(hooked(loss, UNTAXED)) == loss


@QUICK
@given(st.integers(0, 9000), st.integers(0, 9000))
def test_a_tax_alone_leaves_next_to_nothing_for_the_hook(in_bps: int, out_bps: int) -> None:
    found = keep(hooked(losing(in_bps, out_bps), taxed(in_bps, out_bps)))
    assert isinstance(found, int)
    # The loss is known to a hundredth of a percent, and what is left of it may be little.
    assert 0 <= found <= 1 + BPS * BPS // ((BPS - in_bps) * (BPS - out_bps))


@QUICK
@given(st.integers(0, 5000), st.integers(0, 5000))
def test_of_a_hook_and_a_tax_each_gets_its_own(hook_bps: int, tax_bps: int) -> None:
    found = keep(hooked(losing(hook_bps, hook_bps, tax_bps, tax_bps), taxed(tax_bps)))
    assert isinstance(found, int)
    assert abs(found - losing(hook_bps, hook_bps)) <= 5


def test_a_hook_and_a_tax_by_hand() -> None:
    # Half is lost; the token's transfers leave 0.8 * 0.8 = 0.64; 0.5 of 0.64 is 0.78125: kept 21.88 %.
    found = read_venue(hooked(5000, taxed(2000)), POLICY)
    assert found.pool_fee_bps == 2188
    assert parts(found, POLICY) == LossParts(5000, 2188, 0, 2812)


@pytest.mark.parametrize("carried", [RefusedCall("sell", "no transfers", 1), None, ITS_OWN], ids=str)
def test_where_the_token_would_not_be_moved_past_it_the_pool_is_blamed(carried: object) -> None:
    assert keep(hooked(3000, carried)) == 3000


def test_where_the_node_did_not_tell_the_keep_is_not_known() -> None:
    assert keep(hooked(3000, NODE)) == NODE
    assert read_venue(hooked(3000, NODE), POLICY).fees_bps == 3000


def test_a_lost_small_round_trip_leaves_the_keep_unknown() -> None:
    assert keep(at(v4(), venue(cells(60, fees=NODE)), carried=UNTAXED)) == NODE
    assert keep(at(v4(), venue(all_buys=buys(thousandth=NODE)), carried=UNTAXED)) == NODE


def test_where_the_small_round_trip_is_refused_the_full_one_tells() -> None:
    assert keep(at(v4(), venue(cells(700, fees=NO_MONEY)), carried=UNTAXED)) == 700
    assert keep(at(v4(), venue(refused_cells(hour=sold(700))), carried=UNTAXED)) == 0


def test_a_token_that_takes_everything_of_a_transfer_leaves_the_hook_nothing() -> None:
    assert keep(hooked(BPS, HookCarry(MOVED_RAW, 0, MOVED_RAW))) == 0
    assert keep(hooked(BPS, HookCarry(MOVED_RAW, MOVED_RAW, 0))) == 0
    assert keep(hooked(BPS, HookCarry(MOVED_RAW, MOVED_RAW, -5))) == 0


def test_a_token_that_gives_on_transfer_does_not_raise_the_keep() -> None:
    assert keep(hooked(700, HookCarry(MOVED_RAW, 2 * MOVED_RAW, 3 * MOVED_RAW))) == 700


@pytest.mark.parametrize(("loss", "kept"), [(-300, 0), (0, 0), (BPS, BPS)])
def test_a_keep_is_between_nothing_and_all(loss: int, kept: int) -> None:
    assert keep(hooked(loss, UNTAXED)) == kept


@QUICK
@given(Bps, st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_hook_never_keeps_more_than_is_lost(loss: int, arrived: int, received: int) -> None:
    found = keep(hooked(loss, HookCarry(10**6, arrived, received)))
    assert isinstance(found, int)
    assert 0 <= found <= loss


@pytest.mark.parametrize("bit", range(14))
def test_a_keep_is_measured_only_where_the_hook_takes_part_in_swaps(bit: int) -> None:
    found = keep(hooked(700, UNTAXED, v4(SWAPPING[:38] + f"{1 << bit:04x}")))  # type: ignore[arg-type]
    # Before and after swap are bits 7 and 6, their returned deltas bits 3 and 2.
    assert found == (700 if bit in (7, 6, 3, 2) else keep_of(3000))


def test_a_fee_that_is_set_swap_by_swap_is_measured_whatever_else_the_hook_may_do() -> None:
    where = v4(IDLE, DYNAMIC)
    assert where.dynamic_fee()
    assert not where.hook_in_swaps()
    assert keep(hooked(700, UNTAXED, where)) == 700


def test_a_v4_pool_without_a_hook_keeps_its_fee() -> None:
    assert keep(hooked(700, None, v4(None, 10_000))) == keep_of(10_000)


def test_a_pool_that_was_not_bought_from_keeps_what_its_name_tells() -> None:
    refused = no_trade(LIQUID, buys(NO_MONEY, NO_MONEY, NO_MONEY, NO_MONEY))
    assert keep(refused) == keep_of(3000)
    assert keep(at(v4(), refused)) == 0


# --- the launchpad --------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [CURVE, LAUNCHPAD_POOL, replace(LAUNCHPAD_POOL, fee_pips=DYNAMIC)])
@pytest.mark.parametrize("loss", [0, 700, 9000])
def test_the_launchpad_keeps_no_toll_however_much_it_takes(where: Venue, loss: int) -> None:
    found = read_venue(at(where, venue(cells(loss)), carried=UNTAXED), POLICY, LAUNCH)
    assert found.pool_fee_bps == 0
    assert parts(found, POLICY).tax_bps == loss
    assert not found.rival_hook


def fees(where: Venue, known: object, measured: object = sold(200)) -> tuple[object, object]:
    """What a small round trip lost, and the first seconds' tax."""
    found = read_venue(at(where, venue(cells(fees=measured))), POLICY, known)  # type: ignore[arg-type]
    return found.fees_bps, found.first_tax_bps


@pytest.mark.parametrize(("snipe", "counts"), [(0, 200), (1, 200), (199, 200), (200, 200), (201, 201),
                                               (9900, 9900)])  # fmt: skip
def test_the_snipe_tax_counts_as_the_fee_only_where_it_is_more(snipe: int, counts: int) -> None:
    known = launch(state(snipe_bps=snipe))
    assert fees(CURVE, known) == (200, snipe)
    assert fee_like_bps(read_venue(at(CURVE, venue(cells(200))), POLICY, known), POLICY) == counts


@pytest.mark.parametrize("where", [LAUNCHPAD_POOL, v4(), v4(None), venue().venue])
def test_the_snipe_tax_counts_on_the_curve_only(where: Venue) -> None:
    found = at(where, venue(cells(200)))
    assert read_venue(found, POLICY, launch(state(snipe_bps=9900))).first_tax_bps == 0
    assert read_venue(found, POLICY, launch(NODE)).first_tax_bps == 0


def test_the_snipe_tax_stands_in_where_the_small_round_trip_was_refused() -> None:
    assert fees(CURVE, launch(state(snipe_bps=618)), NO_MONEY) == (None, 618)
    assert fees(CURVE, launch(), NO_MONEY) == (None, 0)


def test_fees_are_unknown_where_the_curve_or_the_round_trip_is() -> None:
    assert fees(CURVE, launch(NODE)) == (200, NODE)
    assert fees(CURVE, NODE) == (200, NODE)
    assert fees(CURVE, launch(state(snipe_bps=618)), NODE) == (NODE, 618)


def test_without_a_launch_or_its_state_fees_are_what_was_measured() -> None:
    assert fees(CURVE, None) == (200, 0)
    assert fees(CURVE, launch(None)) == (200, 0)


# --- the buy that closes a curve ------------------------------------------------------------------


def test_a_buy_that_closes_the_curve_is_not_filled() -> None:
    assert is_filled(bought())
    assert not is_filled(replace(bought(), closes=True))


def test_a_curve_is_judged_at_the_largest_size_that_leaves_it_open() -> None:
    closing = replace(bought(), closes=True)
    assert main_size(at(CURVE, venue(all_buys=buys(closing)))) == "tenth"
    found = no_trade(LIQUID, tuple(replace(b, outcome=closing) for b in buys()))
    assert main_size(at(CURVE, found)) is None
    assert read_venue(at(CURVE, found), POLICY, LAUNCH).status == "dry"


def test_a_closing_buy_beside_refused_ones_is_dry_too() -> None:
    closing = EnvironmentBuy("hundredth", 0, replace(bought(0, "hundredth"), closes=True))
    no = [EnvironmentBuy(size, 0, NO_MONEY) for size in ("probe", "tenth")]
    assert read_venue(at(CURVE, no_trade(LIQUID, (*no, closing))), POLICY, LAUNCH).status == "dry"
