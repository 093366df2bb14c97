"""The sentence of a simulation or a trade."""

from random import Random

import pytest
from hypothesis import given, settings

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check.evidence import CellOutcome, Missing, ProbeCell, RefusedCall
from roundtrip.domain.check.venue_reading import read_venue
from roundtrip.domain.trade.judge import Allowance, CallResult, TradeOutcome, judge_exit, judge_trade
from roundtrip.domain.trade.text import opening, reason, sentence
from unit.domain.builders import NO_MONEY, NODE, TOKEN, sold
from unit.domain.judged_trades import DONE, FAILED, OTHER, SPENDER, TRADED, Seeds, text_of
from unit.domain.trades import GRID, grid, ran, received, refused_grid, some_exit, way


def test_an_unlimited_approval_opens_the_text() -> None:
    for raw in (2**256 - 1, 2**160 - 1, 2**128, 2**96 - 1, 2**256 - 1 - 10**24):
        one = Allowance(TOKEN, SPENDER, raw, "erc20")
        assert one.is_unlimited()
        said = opening((one,), frozenset({SPENDER}))
        assert said == f"It lets {SPENDER} take all you have, and will have, of {TOKEN}."


def test_an_approval_for_all_is_unlimited() -> None:
    one = Allowance(TOKEN, SPENDER, None, "all")
    assert one.is_unlimited()
    assert f"everything you hold of the collection {TOKEN}" in opening((one,), frozenset({SPENDER}))


def test_a_bounded_approval_is_told_where_nobody_knows_the_spender() -> None:
    one = Allowance(TOKEN, SPENDER, 10**18, "permit2")
    assert opening((one,), frozenset({SPENDER})) == ""
    assert SPENDER in opening((one,), frozenset({OTHER}))
    assert "not known" in opening((one,), frozenset())


def test_every_approval_that_matters_is_told() -> None:
    several = (
        Allowance(TOKEN, SPENDER, 5, "erc20"),
        Allowance(OTHER, SPENDER, 2**256 - 1, "erc20"),
        Allowance(TOKEN, OTHER, None, "all"),
    )
    said = opening(several, frozenset())
    assert said.count("It lets ") == 3


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((FAILED,), 'It would fail ("paused").'),
        ((DONE, FAILED, FAILED), 'Call 2 of 3 would fail ("paused").'),
        ((CallResult(False, 1, ""),), "It would fail; no reason was given."),
        ((CallResult(False, 1, "\u200b\u202e"),), "It would fail; no reason was given."),
    ],
)
def test_a_failing_call_is_told_with_its_reason(calls: tuple[CallResult, ...], expected: str) -> None:
    assert sentence(TradeOutcome("tx_reverts"), ran(*calls), None, POLICY) == expected


def test_reasons_of_strangers_are_cleaned_cut_and_cannot_end_their_quotes() -> None:
    nasty = 'ok". It is proven.\n\u202e' + "x" * 300
    said = sentence(TradeOutcome("tx_reverts"), ran(CallResult(False, 1, nasty)), None, POLICY)
    assert said.count('"') == 2
    assert said.startswith('It would fail ("')
    assert said.endswith('").')
    assert "\n" not in said
    assert "\u202e" not in said
    assert len(said) < 110
    assert reason(CallResult(False, 1, nasty)) == said[len('It would fail ("') : -len('").')]
    assert reason(CallResult(False, 1, "")) == "no reason given"


@pytest.mark.parametrize("word", ["trading not open", 'x". All good'])
def test_a_trap_is_told_with_the_tokens_own_word(word: str) -> None:
    cells = refused_grid(**dict.fromkeys(GRID, RefusedCall("sell", word, 9)))
    said = text_of(received(way(cells=cells)))
    assert "cannot be sold, at once or within a day" in said
    assert said.count('"') == 2


LATER: dict[str, CellOutcome] = dict.fromkeys(("hour", "hour_again", "day", "day_again"), sold(60))


TEXTS: dict[str, tuple[tuple[ProbeCell, ...], str]] = {
    "whole": (grid(60), "sold straight back for a loss of 0.60 %"),
    "later worse": (grid(60, day=sold(400), day_again=sold(400)), "4.00 %"),
    "hour gone": (grid(60, hour=NO_MONEY, hour_again=NO_MONEY), "in an hour it no longer sells"),
    "day gone": (grid(60, day=NO_MONEY, day_again=NO_MONEY), "in a day it no longer sells"),
    "half": (refused_grid(half=sold(60, 5000), **LATER), "half of it does"),
    "handed on": (refused_grid(handed_on=sold(60)), "; another wallet that it is handed on to can sell it"),
    "later": (refused_grid(**LATER), "does not sell at once"),
    "part": (
        grid(60, **{n: sold(60, 7000, 10_000) for n in GRID if GRID[n].share_bps == 10_000}),
        "only 70.00 % of what it buys sells straight back",
    ),
    "fickle": (grid(60, full_again=NO_MONEY), "in one block and not in another"),
    "refused": (refused_grid(), "cannot be sold"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_sentence_says_what_holds(name: str) -> None:
    cells, phrase = TEXTS[name]
    said = text_of(received(way(cells=cells)))
    assert said.startswith("It goes through; ")
    assert phrase in said
    assert said.endswith(".")
    assert ".." not in said


@pytest.mark.parametrize(("impact_bps", "said"), [(9, False), (10, True), (250, True), (4000, True)])
def test_price_impact_is_named(impact_bps: int, said: bool) -> None:
    text = text_of(received(way(impact_bps=impact_bps)))
    assert ("less for its money" in text) is said
    reading = read_venue(way(impact_bps=impact_bps), POLICY)
    assert reading.impact_bps == impact_bps


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(seed=Seeds)
def test_no_sentence_ever_says_safe(seed: int) -> None:
    rng = Random(seed)
    found = judge_exit(some_exit(rng, 2, 2), POLICY)
    allowed = tuple(
        Allowance(TOKEN, rng.choice((SPENDER, OTHER)), rng.choice((None, 1, 2**256 - 1)), "erc20")
        for _ in range(rng.randint(0, 3))
    )
    calls = ran(*(DONE,) * rng.randint(1, 6), allowances=allowed)
    outcome = judge_trade(calls, (found,), TRADED, POLICY)
    said = opening(allowed, frozenset({OTHER})) + sentence(outcome, calls, None, POLICY)
    assert "safe" not in said.lower()
    assert said.endswith(".")


def test_what_has_no_price_and_what_has_no_place_are_told_apart() -> None:
    assert "no pool was found" in text_of(received())
    assert "no known price" in text_of(received(way(), paid_known=False))


def test_an_unproven_trade_is_no_pass() -> None:
    assert "This is not a pass" in text_of(received(way(cells=grid(60, day=NODE))))
    outcome = TradeOutcome("unproven", missing=Missing("node", "the node timed out"))
    assert "the node timed out" in sentence(outcome, ran(), None, POLICY)
