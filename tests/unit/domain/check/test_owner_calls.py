"""What an owner could change, read from what became of the sell after each of his calls."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import CellOutcome, Missing, OwnerCall, RefusedCall
from roundtrip.domain.check.owner_calls import change, lost_bps, owner_sentence
from roundtrip.domain.check.verdict import judge
from unit.domain.builders import BOUGHT_RAW, ITS_OWN, NODE, evidence, refused_cells, sold, venue
from unit.domain.owner_attempts import known
from unit.domain.owners import call

STOPPED = RefusedCall("sell", "paused", 1)
BUY_REFUSED = RefusedCall("buy", "no", 1)


def says(*tried: OwnerCall, control: CellOutcome | None = None, left_out: int = 0) -> str:
    return owner_sentence(known(*tried, control=control, left_out=left_out), POLICY)


@pytest.mark.parametrize(
    ("outcome", "lost"),
    [
        (sold(60), 60),
        (sold(9900), 9900),
        (sold(60, 2500, planned_bps=10_000), 7515),
        (sold(10_000), None),
        (STOPPED, None),
        (RefusedCall("approve", None, 1), None),
        (NODE, NODE),
        (ITS_OWN, ITS_OWN),
    ],
)
def test_what_is_lost_is_of_what_was_to_be_sold(outcome: CellOutcome, lost: int | Missing | None) -> None:
    assert lost_bps(outcome) == lost


def test_being_given_more_is_no_loss() -> None:
    """A mint to the seller leaves him with more than he had: nothing seems to have left the wallet."""
    assert lost_bps(replace(sold(60), sold_raw=-BOUGHT_RAW)) == 60


@pytest.mark.parametrize("step", ["buy", "fund"])
def test_a_refused_buy_tells_nothing_of_what_comes_after_it(step: str) -> None:
    refused = RefusedCall(step, None, 1)  # type: ignore[arg-type]
    assert isinstance(lost_bps(refused), Missing)
    assert change(known(call(refused)), POLICY) is None


def test_the_first_that_stops_it_is_named() -> None:
    dear, first, second = (call(sold(9000), "dear()"), call(STOPPED, "a()"), call(STOPPED, "b()"))
    assert says(dear, first, second) == "Its owner can stop you from selling (function a())."
    assert says(second, dear, first) == "Its owner can stop you from selling (function b())."
    assert (
        says(call(STOPPED, "up()", "proxy admin"))
        == "Its proxy admin can stop you from selling (function up())."
    )


def test_where_none_stops_it_the_dearest_is_named() -> None:
    found = says(
        call(sold(60), "a()"), call(sold(6000), "b()"), call(sold(9900), "c()"), call(sold(7000), "d()")
    )
    assert found == "Its owner can raise your loss to 99.00 % (function c())."


def test_the_line_of_a_dear_sell_is_the_policys() -> None:
    """So much more than without the call."""
    line = POLICY.warn_loss_bps
    assert "it did not stop the sell" in says(call(sold(100 + line - 1)), control=sold(100))
    assert "raise your loss to 16.00 %" in says(call(sold(100 + line)), control=sold(100))


def test_what_was_as_dear_before_is_not_the_owners_doing() -> None:
    assert "it did not stop the sell" in says(call(sold(7000)), control=sold(6000))
    assert "raise your loss to 90.00 %" in says(call(sold(9000)), control=sold(6000))
    assert "stop you from selling" in says(call(STOPPED), control=sold(6000))


@pytest.mark.parametrize("control", [STOPPED, NODE, ITS_OWN, BUY_REFUSED, sold(10_000)])
def test_nothing_is_named_where_it_does_not_sell_without_a_call(control: CellOutcome) -> None:
    assert change(known(call(STOPPED), control=control), POLICY) is None
    assert says(call(STOPPED), control=control).startswith("We could not find out what its owner can change")


def test_what_was_not_found_out_never_counts_as_none() -> None:
    sold_, gap, refused = call(sold(), "a()"), call(NODE, "b()"), call(None, "c()")
    assert says(sold_) == "We tried 1 function of its owner: it did not stop the sell."
    assert says(gap) == "We could not find out what 1 function would do."
    assert says(refused) == "We could not tell what its owner can change."
    assert says() == "Its owner has no function that we could test."
    assert says(left_out=1) == "1 function was not tried."
    every = says(sold_, call(sold(), "z()"), gap, refused, refused, left_out=3)
    assert every == (
        "We tried 2 functions of its owner: none stopped the sell; we could not find out what 1 "
        "function would do; 1 function refused all values that we tried; 3 functions were not tried."
    )


def test_a_function_of_which_one_manner_is_unknown_is_unknown() -> None:
    assert says(call(sold(), "a()"), call(NODE, "a()")) == "We could not find out what 1 function would do."
    assert says(call(None, "a()"), call(sold(), "a()")) == (
        "We tried 1 function of its owner: it did not stop the sell."
    )


@pytest.mark.parametrize("gap", [NODE, ITS_OWN])
def test_where_all_of_it_is_missing_it_says_so(gap: Missing) -> None:
    assert owner_sentence(gap, POLICY) == f"We could not find out what its owner can change: {gap.why}."


def test_nothing_is_said_where_it_was_not_asked() -> None:
    assert owner_sentence(None, POLICY) == ""


@given(st.lists(st.sampled_from([sold(60), sold(9000), NODE, ITS_OWN, None, BUY_REFUSED])))
def test_only_a_refused_sell_is_said_to_stop_it(outcomes: list[CellOutcome | None]) -> None:
    text = says(*(call(outcome, f"f{n}()") for n, outcome in enumerate(outcomes)))
    assert "stop you from selling" not in text
    unknown = [o for o in outcomes if isinstance(o, Missing) or o == BUY_REFUSED]
    if unknown and sold(9000) not in outcomes:
        assert "could not find out" in text


def test_code_and_level_stay_and_the_text_has_one_sentence_more() -> None:
    plain = evidence(venue())
    answer = replace(plain, owner_calls=known(call(STOPPED, "pause()")))
    before, after = judge(plain, POLICY), judge(answer, POLICY)
    assert replace(after, verdict=before.verdict) == before
    assert (after.verdict.code, after.verdict.level) == ("ok", "ok")
    assert (
        after.verdict.text == f"{before.verdict.text} Its owner can stop you from selling (function pause())."
    )


def test_the_owners_calls_make_no_verdict_unproven() -> None:
    assert judge(replace(evidence(venue()), owner_calls=NODE), POLICY).verdict.level == "ok"
    trap = replace(evidence(venue(refused_cells())), owner_calls=NODE)
    assert judge(trap, POLICY).verdict.code == "cannot_sell"
