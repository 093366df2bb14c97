"""What a token does to those who hold it: how many are caught, what that makes of the verdict, and what is
still open while some of it is missing."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import CellOutcome, HolderSell, HolderSells, Missing, RefusedCall, Sold
from roundtrip.domain.check.holder_sells import find_caught, holder_sentence, lost_bps, traps
from roundtrip.domain.check.missing_pieces import possible_codes
from roundtrip.domain.check.venue_reading import read_venue
from roundtrip.domain.check.verdict import Verdict, judge
from unit.domain.builders import BOUGHT_RAW, ITS_OWN, NODE, cells, evidence, sold, venue
from unit.domain.owner_attempts import known as owners
from unit.domain.owners import call

CONTROL = sold(60)
NO = RefusedCall("sell", "listed", 1)
NO_BUY = RefusedCall("buy", "no", 1)


def gets(less_bps: int, share_bps: int = 10_000) -> Sold:
    """A holder's sell of a share of what the control sold, for so much less a token."""
    planned = BOUGHT_RAW * share_bps // 10_000
    back = CONTROL.back_raw * share_bps // 10_000 * (10_000 - less_bps) // 10_000
    return Sold(0, planned, planned, planned, back, 0, 100_000)


FAIR = gets(0)


def held(*outcomes: CellOutcome, later: CellOutcome | None = None) -> HolderSells:
    tried = tuple(
        HolderSell(Address(f"0x{n:040x}"), 1, one, later if isinstance(one, RefusedCall) else None)
        for n, one in enumerate(outcomes, 1)
    )
    return HolderSells(0, CONTROL, 11, tried)


def judged(known: HolderSells | Missing | None, loss_bps: int = 60) -> Verdict:
    return judge(replace(evidence(venue(cells(loss_bps))), holder_sells=known), POLICY).verdict


@pytest.mark.parametrize(
    ("outcome", "lost"),
    [
        (FAIR, 0),
        (gets(9000), 9000),
        (gets(0, 100), 0),
        (gets(2500, 100), 2500),
        (gets(-500), -500),
        (gets(10_000), None),
        (NO, None),
        (RefusedCall("approve", None, 1), None),
        (NODE, NODE),
        (ITS_OWN, ITS_OWN),
    ],
)
def test_a_loss_is_against_what_a_fresh_wallet_gets_a_token(
    outcome: CellOutcome, lost: int | Missing | None
) -> None:
    assert lost_bps(CONTROL, outcome) == lost


def test_a_refused_buy_before_it_tells_nothing() -> None:
    assert isinstance(lost_bps(CONTROL, NO_BUY), Missing)


def test_tokens_that_stay_behind_are_lost() -> None:
    """Asked to sell all, the token moves a quarter, and a quarter comes back."""
    quarter = replace(gets(0, 2500), planned_raw=BOUGHT_RAW, held_raw=BOUGHT_RAW)
    assert lost_bps(CONTROL, quarter) == 7500


# --- the verdict ------------------------------------------------------------------------------------

CANNOT = "real holders cannot sell it, though a new wallet can."
PLAIN = "It was bought and sold straight back for a loss of 0.60 %."


@pytest.mark.parametrize(
    ("outcomes", "code", "level", "says"),
    [
        ((NO, NO), "cannot_sell", "danger", f"2 of 2 {CANNOT}"),
        ((NO, FAIR), "ok", "warn", f"{PLAIN} 1 of 2 {CANNOT}"),
        (
            (NO, NO, FAIR, FAIR, FAIR), "ok", "warn",
            f"{PLAIN} 2 of 5 real holders cannot sell it, though a new wallet can.",
        ),
        ((NO,), "ok", "warn", f"{PLAIN} 1 of 1 real holder cannot sell it, though a new wallet can."),
        (
            (*[FAIR] * 11, NO), "ok", "warn",
            f"{PLAIN} 1 of 12 real holders cannot sell it, though a new wallet can.",
        ),
        (
            (gets(9000), gets(5000), FAIR), "cannot_sell", "danger",
            "2 of 3 real holders get up to 90.00 % less than a new wallet.",
        ),
        (
            (gets(9000), NO, FAIR), "cannot_sell", "danger",
            "2 of 3 real holders cannot sell it or get up to 90.00 % less than a new wallet.",
        ),
        (
            (gets(9000), FAIR, FAIR), "ok", "warn",
            f"{PLAIN} 1 of 3 real holders gets up to 90.00 % less than a new wallet.",
        ),
        (
            (gets(4999), gets(4999)), "ok", "warn",
            f"{PLAIN} Some of 2 real holders get up to 49.99 % less than a new wallet.",
        ),
        (
            (gets(1500), FAIR, FAIR), "ok", "warn",
            f"{PLAIN} Some of 3 real holders get up to 15.00 % less than a new wallet.",
        ),
        (
            (NO, gets(1500), FAIR), "ok", "warn",
            f"{PLAIN} 1 of 3 real holders cannot sell it, though a new wallet can; others get up to "
            "15.00 % less than a new wallet.",
        ),
        ((gets(1499), FAIR), "ok", "ok", f"{PLAIN} 2 real holders can sell it as a new wallet can."),
        ((FAIR,), "ok", "ok", f"{PLAIN} 1 real holder can sell it as a new wallet can."),
        ((gets(-3000), FAIR), "ok", "ok", f"{PLAIN} 2 real holders can sell it as a new wallet can."),
        ((), "ok", "ok", PLAIN),
    ],
)  # fmt: skip
def test_what_holders_meet_makes_the_verdict(
    outcomes: tuple[CellOutcome, ...], code: str, level: str, says: str
) -> None:
    assert judged(held(*outcomes)) == Verdict(code, level, says)  # type: ignore[arg-type]


def test_nobody_asked_is_not_spoken_of() -> None:
    assert judged(None) == Verdict("ok", "ok", PLAIN)


@pytest.mark.parametrize(
    ("known", "outcomes", "says"),
    [
        (48, [], "Of 48 wallets that bought more than they sold, none holds enough to try."),
        (
            12,
            [FAIR],
            "Of 12 wallets that bought more than they sold, only 1 holds enough to try."
            " 1 real holder can sell it as a new wallet can.",
        ),
        (12, [FAIR, FAIR], "2 real holders can sell it as a new wallet can."),
        (11, [FAIR], "1 real holder can sell it as a new wallet can."),
    ],
)
def test_of_many_holders_too_few_that_hold_enough_is_said_and_no_alarm(
    known: int, outcomes: list[CellOutcome], says: str
) -> None:
    """Anybody can buy from many wallets, and send on what he bought."""
    sells = replace(held(*outcomes), known=known)
    assert judged(sells).level == "ok"
    assert holder_sentence(sells, POLICY) == says


def test_who_was_caught_and_who_was_not_is_told_apart_from_who_is_not_known() -> None:
    sells = held(NO, gets(4999), gets(5000), NODE, FAIR)
    by_number = {number: one.holder for number, one in enumerate(sells.tried)}
    caught, freed = find_caught(sells, POLICY)
    assert set(caught) == {by_number[0], by_number[2]}
    assert set(freed) == {by_number[1], by_number[4]}


def test_who_sells_when_a_day_is_over_only_waits() -> None:
    waits = judged(held(NO, NO, FAIR, later=FAIR))
    assert (waits.code, waits.level) == ("ok", "warn")
    assert waits.text.endswith("2 of 3 real holders can sell it only after a day.")
    never = judged(held(NO, NO, FAIR, later=NO))
    assert never.code == "cannot_sell"
    robbed = judged(held(NO, NO, FAIR, later=gets(9000)))
    assert robbed.code == "cannot_sell"


def test_caught_and_waiting_are_told_apart() -> None:
    one = HolderSell(Address("0x" + "77" * 20), 1, NO, FAIR)
    known = held(NO, FAIR, FAIR, FAIR)
    text = holder_sentence(replace(known, tried=(*known.tried, one)), POLICY)
    assert text == (
        "1 of 5 real holders cannot sell it, though a new wallet can; 1 more can sell it only after a day."
    )


def test_a_dear_token_stays_what_it_is_called_and_a_trap_is_one_before_all_else() -> None:
    assert judged(held(FAIR, FAIR), 2000).code == "high_fees"
    assert judged(held(*[FAIR] * 9, NO), 6000).level == "danger"
    assert judged(held(NO, NO), 6000).code == "cannot_sell"


def test_what_an_owner_could_change_is_said_beside() -> None:
    stopped = owners(call(RefusedCall("sell", "no", 1), "a()"))
    found = replace(evidence(venue()), holder_sells=held(NO, NO), owner_calls=stopped)
    text = judge(found, POLICY).verdict.text
    assert text == f"2 of 2 {CANNOT} Its owner can stop you from selling (function a())."


# --- what is missing --------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [NODE, ITS_OWN])
def test_nothing_found_out_of_holders_that_are_known_is_no_pass(gap: Missing) -> None:
    for known in (gap, held(gap, gap), held(*[gap] * 12)):
        found = judge(replace(evidence(venue()), holder_sells=known), POLICY)
        assert (found.verdict.code, found.verdict.level) == ("unproven", "unknown")
        assert found.missing == gap


def test_one_holder_decides_nothing_known_or_not() -> None:
    found = judged(held(NODE))
    assert (found.code, found.level) == ("ok", "warn"), "could not find out is no pass"
    assert found.text.endswith("We could not find out whether 1 real holder can sell it.")


def test_a_gap_that_changes_nothing_leaves_it_proven() -> None:
    few = judged(held(*[FAIR] * 8, *[NODE] * 3))
    assert (few.code, few.level) == ("ok", "warn"), "the code is proven, and some may be barred"
    assert few.text.endswith(
        "8 real holders can sell it as a new wallet can; we could not find out about 3 more."
    )
    assert judged(held(*[NO] * 8, *[NODE] * 3)).code == "cannot_sell"
    assert judged(held(NO, NODE)).code == "unproven", "one of two, or two of two"
    assert judged(held(NO, NO, NODE)).code == "cannot_sell", "two of three, or all"
    assert judged(held(FAIR, NODE)).code == "ok", "none of two, or one"
    assert judged(held(*[FAIR] * 3, *[NODE] * 3)).code == "unproven"


Outcomes = st.lists(st.sampled_from([FAIR, NO, gets(9000), gets(2000), NODE, ITS_OWN]), max_size=6)


@settings(deadline=None)
@given(Outcomes)
def test_unproven_is_what_some_filling_would_change(outcomes: list[CellOutcome]) -> None:
    """Held against filling every gap with every sort of end, one after the other."""
    choices = [(FAIR, NO, gets(6000)) if isinstance(one, Missing) else (one,) for one in outcomes]
    codes = {judged(held(*filled)).code for filled in product(*choices)}
    text = judged(held(*outcomes)).code
    assert {text} == codes if len(codes) == 1 else text == "unproven"


def test_the_piece_that_decides_is_the_one_that_is_named() -> None:
    """A sliver that is lost decides nothing."""
    found = replace(evidence(venue(cells(sliver=ITS_OWN))), holder_sells=NODE)
    assert judge(found, POLICY).missing == NODE


def test_holders_make_no_other_verdict_possible() -> None:
    found = replace(evidence(venue()), holder_sells=NODE)
    readings = tuple(read_venue(one, POLICY) for one in found.venues)
    assert possible_codes(found, readings, POLICY) == {"ok", "cannot_sell"}
    assert traps(None, POLICY) == {False}


def test_amounts_of_nothing_end_in_a_line() -> None:
    """Evidence that no check makes may come in a proof."""
    nothing = Sold(0, 0, 0, 0, 0, 0, 0)
    assert lost_bps(nothing, FAIR) is not None
    assert lost_bps(nothing, nothing) is None
