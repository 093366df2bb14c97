"""The sentence of a simulation or a trade."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import CellOutcome, Missing, ProbeCell, RefusedCall
from roundtrip.domain.check.venue_reading import read_venue
from roundtrip.domain.trade.judge import (
    Allowance,
    BalanceChange,
    CallResult,
    TradeOutcome,
    judge_exit,
    judge_trade,
)
from roundtrip.domain.trade.text import describe_reason, failure_clause, sentence, warnings_text
from unit.domain.builders import NO_MONEY, NODE, TOKEN, pieces_cell, sold
from unit.domain.judged_trades import DONE, FAILED, OTHER, SPENDER, TRADED, Seeds, text_of
from unit.domain.trades import GRID, grid, ran, received, refused_grid, some_exit, way

KNOWN = {SPENDER: "Permit2"}


def test_an_unlimited_approval_opens_the_text() -> None:
    for raw in (2**256 - 1, 2**160 - 1, 2**128, 2**96 - 1, 2**256 - 1 - 10**24):
        one = Allowance(TOKEN, SPENDER, raw, "erc20")
        assert one.is_unlimited()
        text = warnings_text(ran(allowances=(one,)), KNOWN)
        assert text == f"It lets Permit2 ({SPENDER}) take all you hold of {TOKEN}, now and later."


def test_what_is_lowered_is_told_and_no_change_is_not_claimed() -> None:
    answer = {
        0: f"It goes through. {SPENDER} may no longer take your {TOKEN}.",
        5: f"It goes through. {SPENDER} may take less of your {TOKEN} than before, but still some.",
        2**200: f"It goes through. {SPENDER} may still take all you hold of {TOKEN}.",
    }
    for raw, text in answer.items():
        calls = replace(ran(), lowered=(Allowance(TOKEN, SPENDER, raw, "erc20"),))
        assert sentence(TradeOutcome("ok"), calls, None, POLICY) == text
        named = text.replace(SPENDER, f"Permit2 ({SPENDER})")
        assert sentence(TradeOutcome("ok"), calls, None, POLICY, spenders=KNOWN) == named


def test_an_unlimited_approval_that_is_given_again_is_as_good_as_new() -> None:
    unlimited, bounded = (Allowance(TOKEN, SPENDER, raw, "erc20") for raw in (2**256 - 1, 5))
    calls = replace(ran(), standing=(unlimited, bounded))
    assert calls.with_given_again({(TOKEN, SPENDER, "erc20")}).allowances == (unlimited,)
    assert calls.with_given_again({(TOKEN, OTHER, "erc20")}).allowances == ()
    assert calls.with_given_again({(TOKEN, SPENDER, "erc20")}).needs_warning(frozenset())


def test_an_approval_for_all_is_unlimited() -> None:
    one = Allowance(TOKEN, SPENDER, None, "all")
    assert one.is_unlimited()
    assert f"everything you hold of the collection {TOKEN}" in warnings_text(ran(allowances=(one,)), KNOWN)


def test_a_bounded_approval_is_told_where_nobody_knows_the_spender() -> None:
    one = Allowance(TOKEN, SPENDER, 10**18, "permit2")
    trade = replace(ran(allowances=(one,)), moved=(BalanceChange(OTHER, 5, 0, ()),))
    assert warnings_text(trade, KNOWN) == ""
    # Where the calls only approve, also of a known one.
    assert (
        warnings_text(ran(allowances=(one,)), KNOWN)
        == f"It lets Permit2 ({SPENDER}) take some of your {TOKEN}."
    )
    assert SPENDER in warnings_text(ran(allowances=(one,)), {OTHER: "Permit2"})
    assert warnings_text(ran(allowances=(one,)), {}) == (
        f"It lets {SPENDER}, an address that we do not know, take some of your {TOKEN}."
    )


def test_every_approval_that_matters_is_told() -> None:
    several = (
        Allowance(TOKEN, SPENDER, 5, "erc20"),
        Allowance(OTHER, SPENDER, 2**256 - 1, "erc20"),
        Allowance(TOKEN, OTHER, None, "all"),
    )
    text = warnings_text(ran(allowances=several), {})
    assert text.count("It lets ") == 3


def test_a_call_that_reaches_no_code_is_told_after_what_is_allowed() -> None:
    one = Allowance(TOKEN, SPENDER, 2**256 - 1, "erc20")
    calls = replace(ran(allowances=(one,)), without_code=(OTHER,), code_unread=(SPENDER,))
    assert warnings_text(calls, {}) == (
        f"It lets {SPENDER} take all you hold of {TOKEN}, now and later. "
        f"There is no contract at {OTHER}; the data does nothing. "
        f"We could not find out whether there is a contract at {SPENDER}; if not, the data does nothing."
    )


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((FAILED,), 'It would fail with "paused".'),
        ((DONE, FAILED, FAILED), 'Call 2 of 3 would fail with "paused".'),
        ((CallResult(False, 1, ""),), "It would fail; it gives no reason."),
        ((CallResult(False, 1, "WrappedError"),), "It would fail; it gives no reason."),
        (
            (CallResult(False, 1, "STF"),),
            "It would fail: the router could not take the token: the wallet holds too little of it, has not "
            "approved the router, or the token refuses the transfer.",
        ),
        (
            (CallResult(False, 1, "LOK"),),
            'It would fail with "LOK", a code of routers and pools: the pool is not open yet, or another '
            "call to it has not ended.",
        ),
        ((CallResult(False, 1, "\u200b\u202e"),), "It would fail; it gives no reason."),
    ],
)
def test_a_failing_call_is_told_with_its_reason(calls: tuple[CallResult, ...], expected: str) -> None:
    assert sentence(TradeOutcome("tx_reverts"), ran(*calls), None, POLICY) == expected


def test_reasons_of_strangers_are_cleaned_cut_and_cannot_end_their_quotes() -> None:
    nasty = 'ok". It is proven.\n\u202e' + "x" * 300
    text = sentence(TradeOutcome("tx_reverts"), ran(CallResult(False, 1, nasty)), None, POLICY)
    assert text.count('"') == 2
    assert text.startswith('It would fail with "')
    assert text.endswith('".')
    assert "\n" not in text
    assert "\u202e" not in text
    assert len(text) < 110
    assert describe_reason(nasty) == text[len('It would fail with "') : -len('".')]
    assert describe_reason("") == "no reason given"


@pytest.mark.parametrize("word", ["trading not open", 'x". All good'])
def test_a_trap_is_told_with_the_tokens_own_word(word: str) -> None:
    cells = refused_grid(**dict.fromkeys(GRID, RefusedCall("sell", word, 9)))
    text = text_of(received(way(cells=cells)))
    assert text.startswith("It goes through, but you cannot sell what it buys: not now, not within a day. ")
    assert text.count('"') == 2


LATER: dict[str, CellOutcome] = dict.fromkeys(("hour", "hour_again", "day", "day_again"), sold(60))


TEXTS: dict[str, tuple[tuple[ProbeCell, ...], str]] = {
    "whole": (grid(60), "It goes through, and what it buys sold straight back for a loss of 0.60 %."),
    "later worse": (
        grid(60, day=sold(400), day_again=sold(400)),
        "sold straight back for a loss of 0.60 %, and after a day for a loss of 4.00 %.",
    ),
    "hour gone": (grid(60, hour=NO_MONEY, hour_again=NO_MONEY), ", but it does not sell after an hour."),
    "day gone": (grid(60, day=NO_MONEY, day_again=NO_MONEY), ", but it does not sell after a day."),
    "half": (
        refused_grid(half=sold(60, 5000), **LATER),
        "not all of what it buys sells at once; half of it does, for a loss of 0.60 %.",
    ),
    "ten sales": (
        (*refused_grid(), pieces_cell(sold(60))),
        "what it buys does not sell in one sale; "
        "ten sales of a tenth went through within a day for a loss of",
    ),
    "seven of ten sales": (
        (*refused_grid(), pieces_cell(sold(0, 7000))),
        "what it buys does not sell in one sale; ten sales of a tenth within a day sold 70.00 % of it for",
    ),
    "handed on": (refused_grid(handed_on=sold(60)), "; a wallet that you send it to can sell it."),
    "later": (
        refused_grid(**LATER),
        "you cannot sell what it buys at once; you can after an hour, for a loss of 0.60 %.",
    ),
    "an hour later only": (
        refused_grid(hour=sold(60), hour_again=sold(60)),
        "you can after an hour, but not after a day, for a loss of 0.60 %.",
    ),
    "part": (
        grid(60, **{n: sold(60, 7000, 10_000) for n in GRID if GRID[n].share_bps == 10_000}),
        "but only 70.00 % of what it buys sold straight back, for a loss of ",
    ),
    "fickle": (
        grid(60, full_again=NO_MONEY),
        "but the same sell worked in one simulated block and failed in another.",
    ),
    "refused": (refused_grid(), "but you cannot sell what it buys: not now, not within a day."),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_sentence_says_what_holds(name: str) -> None:
    cells, phrase = TEXTS[name]
    text = text_of(received(way(cells=cells)))
    assert text.startswith("It goes through, ")
    assert phrase in text
    assert text.endswith(".")
    assert ".." not in text


@pytest.mark.parametrize(("impact_bps", "said"), [(9, False), (10, True), (250, True), (4000, True)])
def test_price_impact_is_named(impact_bps: int, said: bool) -> None:
    text = text_of(received(way(impact_bps=impact_bps)))
    assert (" for its money than a small one" in text) is said
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
    text = warnings_text(calls, {OTHER: "Permit2"}) + sentence(outcome, calls, None, POLICY)
    assert "safe" not in text.lower()
    assert text.endswith(".")


def test_what_has_no_price_and_what_has_no_place_are_told_apart() -> None:
    assert text_of(received()) == "It goes through, but we found no pool that buys what it brings."
    assert "no known price" in text_of(received(way(), paid_known=False))


def test_an_unproven_trade_is_no_pass() -> None:
    assert "This is not a pass" in text_of(received(way(cells=grid(60, day=NODE))))
    outcome = TradeOutcome("unproven", missing=Missing("node", "the node timed out"))
    assert "the node timed out" in sentence(outcome, ran(), None, POLICY)


def test_the_whole_sentence_of_a_trap_and_of_a_large_buy() -> None:
    assert text_of(received(way(cells=refused_grid()))).startswith(
        "It goes through, but you cannot sell what it buys: not now, not within a day."
    )
    stopped = RefusedCall("sell", "closed", 1)
    for later in ({"hour": stopped, "day": stopped}, {"hour": sold(60, BPS // 10), "day": stopped}):
        said = text_of(received(way(cells=grid(60, **later))))
        assert said.startswith(
            "It goes through, and you can sell what it buys now for a loss of 0.60 %, but not "
        )
        assert "after an hour or a day" in said
    assert text_of(received(way(impact_bps=4000))) == (
        "It goes through, but this size gets 40.00 % fewer tokens for its money than a small one; "
        "what it buys sold straight back for a loss of 0.60 %."
    )
    assert text_of(received(way(impact_bps=10))) == (
        "It goes through, and what it buys sold straight back for a loss of 0.60 %. "
        "The price impact is 0.10 %: this size gets that much less for its money than a small one."
    )


def test_a_refused_transfer_is_no_word_of_the_token() -> None:
    assert failure_clause("STF") == ": the token refused the transfer, and the router gave no reason for it"
    assert failure_clause("paused") == ' with "paused"'
    assert [failure_clause(given) for given in (None, "", "WrappedError")] == ["; it gives no reason"] * 3


@pytest.mark.parametrize(
    ("reason", "hints"),
    [
        ("max transaction", True),
        ("Transfer limit", True),
        ("amountExceedsCap", True),
        ("paused", False),
        ("", False),
    ],
)
def test_a_reason_that_speaks_of_a_limit_hints_at_a_smaller_amount(reason: str, hints: bool) -> None:
    for failed in (CallResult(False, 1, reason), CallResult(False, 1, "TF", reason or "no")):
        text = sentence(TradeOutcome("tx_reverts"), ran(failed), None, POLICY)
        assert text.endswith(" A smaller amount may go through.") is hints


def test_an_allowance_of_all_that_is_held_is_not_some() -> None:
    stranger = f"It lets {SPENDER}, an address that we do not know, take all you hold of {TOKEN}."
    for allowance in (
        Allowance(TOKEN, SPENDER, 10**18, "erc20", covers_held=True),
        Allowance(TOKEN, SPENDER, 2**128 - 1, "erc20"),
    ):
        assert not allowance.is_unlimited()
        assert warnings_text(ran(allowances=(allowance,)), {}) == stranger
        assert warnings_text(ran(allowances=(allowance,)), KNOWN) == (
            f"It lets Permit2 ({SPENDER}) take all you hold of {TOKEN}."
        )
        lowered = sentence(TradeOutcome("ok"), replace(ran(), lowered=(allowance,)), None, POLICY)
        assert lowered == f"It goes through. {SPENDER} may still take all you hold of {TOKEN}."
