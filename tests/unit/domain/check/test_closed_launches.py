"""Launches in words: closed curves, the last of a sale, tolls of hooks, the first seconds' tax."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import (
    CellOutcome,
    Evidence,
    HookCarry,
    LaunchRecord,
    Probe,
    ProbeCell,
    RefusedCall,
    VenueEvidence,
)
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.check.verdict_text import snipe_left_s
from unit.domain.builders import (
    ABSENT,
    DRY,
    LIQUID,
    NODE,
    bought,
    buys,
    cells,
    evidence,
    no_trade,
    refused_buys,
    refused_cells,
    sold,
    venue,
)
from unit.domain.launches import CURVE, LAUNCHPAD_POOL, NOW_S, at, gone, launch, launched, state, v4

QUICK = settings(max_examples=100, deadline=None)
CLOSED = launch(state(closed=True))
NO_CURVE = at(CURVE, no_trade(ABSENT))
NO_POOL = at(LAUNCHPAD_POOL, no_trade(ABSENT))
UNTIL = "Its curve is sold out and its pool has not opened. You cannot trade it until then."


def seen(found: Evidence) -> tuple[str, str]:
    verdict = judge(found, POLICY).verdict
    return verdict.code, verdict.level


def says(found: Evidence) -> str:
    return judge(found, POLICY).verdict.text


# --- closed launches ------------------------------------------------------------------------------

WORDS: tuple[tuple[str, LaunchRecord, str], ...] = (
    ("ready", CLOSED, UNTIL),
    ("swept just now", gone("swept", NOW_S), UNTIL),
    ("swept an hour ago", gone("swept", NOW_S - 3600), UNTIL),
    ("swept over an hour ago", gone("swept", NOW_S - 3601),
     "Its curve is sold out and its pool has not opened for 1 h 0 min. You cannot trade it until then."),
    ("swept yesterday", gone("swept", NOW_S - 90_000 - 5 * 60),
     "Its curve is sold out and its pool has not opened for 25 h 5 min. You cannot trade it until then."),
    ("swept at no known time", gone("swept"), UNTIL),
    ("rescued", gone("rescued", NOW_S - 90_000),
     "The launchpad cancelled this launch and emptied its curve: you cannot trade it."),
    ("pooled, and gone", gone("pooled", NOW_S - 9), "No pool trades this token."),
    ("on its curve", launch(), "No pool trades this token."),
)  # fmt: skip


@pytest.mark.parametrize(("known", "text"), [(k, t) for _, k, t in WORDS], ids=[name for name, _, _ in WORDS])
def test_a_launch_between_curve_and_pool_is_no_trap_and_told_as_such(known: LaunchRecord, text: str) -> None:
    found = launched(known, NO_CURVE, NO_POOL)
    assert seen(found) == ("no_pool", "warn")
    assert says(found) == text


def test_how_long_is_too_long_is_the_policys() -> None:
    found = launched(gone("swept", NOW_S - 61), NO_CURVE)
    assert judge(found, replace(POLICY, closed_long_s=60)).verdict.text.endswith(
        "for 0 h 1 min. You cannot trade it until then."
    )


def test_a_closed_launch_is_judged_by_a_pool_that_trades_it_elsewhere() -> None:
    found = launched(CLOSED, NO_CURVE, venue())
    assert seen(found) == ("ok", "ok")
    assert "sold out" not in says(found)


# --- the last of a sale ---------------------------------------------------------------------------


def closing() -> VenueEvidence:
    """A curve that the smallest buy of all would close."""
    every = tuple(replace(b, outcome=replace(bought(0, b.size), closes=True)) for b in buys())
    return at(CURVE, no_trade(LIQUID, every))


def test_a_curve_all_but_sold_out_is_told_as_such() -> None:
    found = launched(launch(), closing())
    assert seen(found) == ("empty_pool", "warn")
    assert "almost sold out" in says(found)
    assert "almost sold out" in says(launched(launch(), at(v4(), no_trade(DRY, refused_buys())), closing()))


def test_a_curve_that_a_smaller_buy_leaves_open_is_judged_at_that() -> None:
    all_buys = buys(replace(bought(), closes=True))
    found = launched(launch(), at(CURVE, venue(cells(200, "tenth"), all_buys=all_buys)))
    assert seen(found) == ("ok", "warn")
    assert "would sell its curve out" in says(found)


def test_an_empty_pool_beside_an_absent_curve_is_not_told_as_a_curve() -> None:
    found = launched(gone("pooled"), NO_CURVE, at(LAUNCHPAD_POOL, no_trade(DRY, refused_buys())))
    assert seen(found) == ("empty_pool", "warn")
    assert "curve" not in says(found)


# --- whose toll it is -----------------------------------------------------------------------------


def test_a_toll_by_a_hook_names_the_hook() -> None:
    found = evidence(at(v4(), venue(cells(2345)), carried=HookCarry(1, 1, 1)))
    assert seen(found) == ("toll_pool", "warn")
    assert says(found).startswith("The pool's hook keeps 23.45 % of a round trip")


@pytest.mark.parametrize(
    ("loss_bps", "later", "words"),
    [
        (6476, {"hour": sold(60)}, "; a sell an hour after the buy lost 0.60 %."),
        (6476, {"day": sold(-10)}, "; a sell a day after the buy gained 0.10 %."),
        (6476, {"hour": sold(3237)}, "; a sell an hour after the buy lost 32.37 %."),
        (6476, {"hour": sold(3238)}, ""),
        (6476, {"hour": sold(60, 9000, BPS)}, ""),
        (6476, {"fees": sold(100), "hour": sold(60)}, ""),
    ],
)
def test_a_toll_that_falls_within_a_day_says_so(
    loss_bps: int, later: dict[str, CellOutcome], words: str
) -> None:
    tolls = evidence(at(v4(), venue(cells(loss_bps, **later)), carried=HookCarry(1, 1, 1)))
    taxes = evidence(venue(cells(loss_bps, **later)))
    for found, beginning in (
        (tolls, "The pool's hook keeps 64.76 %"),
        (taxes, "Fees and taxes take 64.76 %"),
    ):
        assert says(found).startswith(beginning)
        assert (words in says(found)) if words else ("after the buy" not in says(found))


def test_a_toll_by_a_plain_fee_names_the_pool() -> None:
    found = evidence(at(v4(None, 100_000), venue(cells(1900))))
    assert seen(found) == ("toll_pool", "warn")
    assert says(found).startswith("The pool keeps 19.00 % of a round trip")


@pytest.mark.parametrize("where", [CURVE, LAUNCHPAD_POOL])
def test_the_launchpads_fees_are_fees_and_never_a_toll(where: object) -> None:
    found = launched(launch(), at(where, venue(cells(2345))))  # type: ignore[arg-type]
    assert seen(found) == ("high_fees", "warn")


# --- the tax of the first seconds -----------------------------------------------------------------


def sniped(snipe_bps: int, **changes: object) -> Evidence:
    return launched(launch(state(snipe_bps=snipe_bps, **changes)), at(CURVE, venue(cells(200))))


@pytest.mark.parametrize(
    ("snipe", "code", "level"),
    [(618, "ok", "ok"), (1499, "ok", "ok"), (1500, "high_fees", "warn"), (4999, "high_fees", "warn"),
     (5000, "heavy_fees", "danger"), (9900, "heavy_fees", "danger")],
)  # fmt: skip
def test_the_snipe_tax_counts_as_a_fee(snipe: int, code: str, level: str) -> None:
    assert seen(sniped(snipe)) == (code, level)


def test_the_text_says_what_the_first_buyers_pay_and_when_that_ends() -> None:
    text = says(sniped(9900, launched_at_s=NOW_S - 1, snipe_seconds=3))
    assert text == (
        "Fees and taxes take 99.00 % of a round trip; an extra tax on first buyers, now 99.00 %, ends in 2 s."
    )


def test_the_text_tells_no_end_that_the_curve_does_not_tell() -> None:
    text = says(sniped(618, snipe_seconds=None))
    assert "; an extra tax on first buyers, now 6.18 %." in text
    assert "ends in" not in text


def test_without_the_tax_or_off_the_curve_the_text_says_nothing_of_it() -> None:
    assert "first buyers" not in says(sniped(0))
    known = launch(state(snipe_bps=618))
    assert "first buyers" not in says(launched(known, at(v4(None))))
    assert "first buyers" not in says(launched(launch(None), at(CURVE, venue(cells(200)))))


@pytest.mark.parametrize(("launched_at", "seconds", "left"), [(-1, 3, 2), (-3, 3, 0), (-9, 3, 0), (0, 15, 15),
                                                              (0, None, None)])  # fmt: skip
def test_what_is_left_of_the_tax(launched_at: int, seconds: int | None, left: int | None) -> None:
    known = state(launched_at_s=NOW_S + launched_at, snipe_seconds=seconds)
    assert snipe_left_s(known, NOW_S) == left


def test_a_curve_whose_state_is_lost_is_unproven() -> None:
    assert seen(launched(launch(NODE), at(CURVE, venue(cells(200))))) == ("unproven", "unknown")


# --- long texts and strangers' words --------------------------------------------------------------

LONG = "y" * 500


def longest(reason: str) -> Evidence:
    """Everything there is to say at once: a part, a tax, gas, a smaller size, what was not looked at."""
    no = RefusedCall("sell", reason, 1)
    every = refused_cells(full=no, full_again=no, half=sold(60, 5000, gas=2**24))
    small = tuple(replace(c, probe=replace(c.probe, size="tenth")) for c in every[:-1])
    found = at(CURVE, venue((*small, every[-1]), all_buys=buys(RefusedCall("buy", reason, 1))))
    known = launch(state(snipe_bps=1499, snipe_seconds=15))
    return replace(launched(known, found), candidates_complete=False)


def crowded(reason: str) -> Evidence:
    """As much again: a second wallet that was refused, a larger trade that does not sell."""
    no = RefusedCall("buy", reason, 1)
    found = at(CURVE, venue(cells(60, full_again=no, day=sold(60, gas=2**24))))
    large = ProbeCell(Probe("large", POLICY.later_s, POLICY.most_bps, 0), RefusedCall("sell", reason, 1))
    known = launch(state(snipe_bps=1499, snipe_seconds=15))
    return replace(launched(known, replace(found, cells=(*found.cells, large))), candidates_complete=False)


def test_the_longest_texts_of_a_launch_are_short_too() -> None:
    # Eighty characters of each are a stranger's, at most.
    assert "first buyers" in says(longest(LONG))
    assert "gas" in says(longest(LONG))
    assert "what 1 eth buys cannot be sold" in says(crowded(LONG))
    larger = judge(crowded(LONG), replace(POLICY, large_wei=5 * 10**18)).verdict.text
    assert "what 5 eth buys cannot be sold" in larger
    assert len(says(longest(LONG))) <= 340
    assert len(says(crowded(LONG))) <= 340
    assert len(says(longest(""))) <= 300
    assert len(says(crowded(""))) <= 300


@QUICK
@given(st.text(max_size=300).map(lambda text: "a" + text))
def test_a_strangers_words_are_cleaned_in_a_launchs_text_too(reason: str) -> None:
    trap = refused_cells(**dict.fromkeys(("full", "full_again", "hour"), RefusedCall("sell", reason, 1)))
    for found in (
        longest(reason),
        crowded(reason),
        launched(launch(), at(CURVE, no_trade(LIQUID, refused_buys(reason)))),
        launched(launch(state(snipe_bps=9900)), at(CURVE, venue(trap))),
        evidence(at(v4(), venue(trap), carried=RefusedCall("sell", reason, 1))),
    ):
        text = says(found)
        assert text.isprintable()
        assert text.count('"') == 2
        assert 0 < len(text.split('"')[1]) <= 80
