"""What a verdict says: short, with the figure that decided, and strangers' words kept in quotes."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import Evidence, Missing, RefusedCall
from roundtrip.domain.check.refusals import NO_REASON, REASON_WITHHELD, ROUTER_REASONS
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.check.verdict_text import buy_reason_text, keeps_text, sell_reason_text, unproven
from unit.domain.builders import (
    ABSENT,
    DRY,
    LIQUID,
    NODE,
    TOKEN_FACTS,
    bought,
    buys,
    cells,
    evidence,
    fee_that_keeps,
    no_trade,
    refused_buys,
    refused_cells,
    sold,
    venue,
)
from unit.domain.launches import v4

QUICK = settings(max_examples=100, deadline=None)
LONG = "x" * 500
NO_BUY = RefusedCall("buy", LONG, 1)
MUTE = "The token refused the transfer and gave no reason."
WITHHELD = "The token refused the transfer, and the router gave no reason for it."


def says(found: Evidence) -> str:
    return judge(found, POLICY).verdict.text


def refusing_all(reason: str | None) -> Evidence:
    no = RefusedCall("sell", reason, 1)
    names = ("full", "full_again", "hour", "day", "half", "sliver", "handed_on")
    return evidence(venue(cells(**dict.fromkeys(names, no))))


def test_a_token_without_decimals_says_why_no_amounts_are_shown() -> None:
    clause = "It does not say how many decimals it has, so its amounts cannot be shown."
    mute = evidence(venue(), facts=replace(TOKEN_FACTS, decimals=None))
    assert says(mute).endswith(clause)
    assert judge(mute, POLICY).verdict.level == "ok"
    for found in (evidence(venue()), evidence(venue(), facts=replace(TOKEN_FACTS, decimals=NODE))):
        assert clause not in says(found)
    assert clause not in says(evidence(facts=replace(TOKEN_FACTS, decimals=None, code_bytes=0)))


SAID: dict[str, tuple[Evidence, str]] = {
    "no_contract": (evidence(facts=replace(TOKEN_FACTS, code_bytes=0)), "no contract"),
    "not_a_token": (evidence(facts=replace(TOKEN_FACTS, balance_answers=False)), "not answer like a token"),
    "quote_asset": (replace(evidence(), role="usdg"), "usdg"),
    "no_pool": (evidence(), "No v3 or v4 pool trades this token."),
    "empty_pool": (evidence(no_trade(DRY, refused_buys())), "Its only pool has no liquidity"),
    "empty_pools": (evidence(*[no_trade(DRY, refused_buys())] * 2), "None of its 2 pools has liquidity"),
    "cannot_buy": (evidence(no_trade(LIQUID, refused_buys("paused"))),
                   "refuses a buy of any size, so we could not test whether a holder can sell it. "
                   'The buy fails with "paused".'),
    "cannot_buy_any": (
        evidence(no_trade(DRY, refused_buys()), no_trade(LIQUID, refused_buys("off"))),
        "None of its 2 pools accepts a buy of any size, so we could not test whether a holder can sell it. "
        'The buy fails with "off".',
    ),
    "cannot_sell": (refusing_all("not today"),
                    'You can buy it but not sell it: not now, not within a day. '
                    'The sell fails with "not today".'),
    "cannot_sell_part": (evidence(venue(refused_cells(hour=sold(60, 1000, BPS)))), "10.00 %"),
    "cannot_sell_short": (refusing_all("IIA"), "takes a cut"),
    "toll_pool": (evidence(venue(fee_pips=fee_that_keeps(1234))), "12.34 %"),
    "thin_pool": (evidence(venue(impact_bps=2345)), "23.45 %"),
    "high_fees": (evidence(venue(cells(day=sold(3456)))), "after a day you get 65.44 % of your money back"),
    "heavy_fees": (evidence(venue(cells(fees=sold(6789)))), "67.89 %"),
    "ok": (evidence(venue()), "0.60 %"),
    "ok_part": (evidence(venue(cells(full=sold(60, 7000, BPS)))), "70.00 %"),
    "ok_not_in_an_hour": (evidence(venue(cells(hour=NO_BUY))), "but not at all after an hour"),
    "ok_not_in_a_day": (evidence(venue(cells(day=NO_BUY))), "but not at all after a day"),
    "ok_half": (evidence(venue(refused_cells(half=sold(60, 5000)))),
                "Half of it (0.05 % of supply) sells at once, but not all of it."),
    "ok_in_an_hour": (evidence(venue(refused_cells(hour=sold(60)))), "you can after an hour"),
    "ok_in_a_day": (evidence(venue(refused_cells(day=sold(60)))), "you can after a day"),
    "ok_in_an_hour_only": (
        evidence(venue(refused_cells(hour=sold(60)))),
        "you can after an hour, but not after a day",
    ),
    "ok_from_an_hour_on": (
        evidence(venue(refused_cells(hour=sold(60), day=sold(60)))),
        "you can after an hour.",
    ),
    "handed_on": (evidence(venue(refused_cells(handed_on=sold(60)))),
                  "; a wallet that you send it to can sell it."),
    "ok_gas": (evidence(venue(cells(day=sold(60, gas=3_000_001)))), "uses 3,000,001 gas"),
    "unproven": (evidence(venue(cells(day=NODE))), "timed out. This is not a pass: ask again."),
    "unproven_no_answer": (
        evidence(venue(cells(day=Missing("node", "The chain did not answer: it is cold.")))),
        "The chain did not answer: it is cold. This is not a pass: ask again."),
    "unproven_refused": (
        evidence(venue(cells(day=Missing("node", 'The node refuses (error -1 "no"): use another node.')))),
        'The node refuses (error -1 "no"): use another node. This is not a pass.'),
    "unproven_token": (evidence(venue(cells(day=Missing("token", "it loops")))),
                       "The token prevented the check: it loops. This is not a pass."),
}  # fmt: skip


@pytest.mark.parametrize("key", SAID)
def test_a_text_has_what_decided(key: str) -> None:
    found, phrase = SAID[key]
    assert phrase in says(found)


def sentence_count(text: str) -> int:
    return len(re.findall(r"[.](?= |$)", re.sub(r'"[^"]*"', "", text)))


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("key", SAID)
def test_a_text_is_one_to_three_short_sentences(key: str, complete: bool) -> None:
    text = says(replace(SAID[key][0], candidates_complete=complete))
    assert len(text) <= 200
    assert 1 <= sentence_count(text) <= 3
    assert text.endswith(".")
    assert text.isprintable()


def test_an_ok_of_the_usual_size_without_gas_says_nothing_of_either() -> None:
    text = says(evidence(venue(cells(day=sold(60, gas=3_000_000)))))
    assert "gas" not in text
    assert "usual size" not in text


def test_a_smaller_size_is_named() -> None:
    smaller = venue(cells(60, "tenth"), all_buys=buys(NO_BUY, bought(0, "tenth")))
    assert "Only a smaller buy than usual" in says(evidence(smaller))


def test_the_longest_text_is_short_too() -> None:
    no = RefusedCall("sell", LONG, 1)
    every = refused_cells(full=no, full_again=no, handed_on=sold(60, gas=2**24))
    worst = evidence(venue(tuple(replace(c, probe=replace(c.probe, size="tenth")) for c in every),
                           all_buys=buys(NO_BUY)))  # fmt: skip
    text = says(replace(worst, candidates_complete=False))
    assert len(text) <= 280
    assert sentence_count(text) <= 3


def test_what_was_not_looked_at_is_said_only_where_venues_decided() -> None:
    narrow = "Only the standard pools were checked."
    assert narrow in says(replace(evidence(venue()), candidates_complete=False))
    assert narrow not in says(evidence(venue()))
    assert narrow not in says(replace(SAID["no_contract"][0], candidates_complete=False))
    no_pool = replace(SAID["no_pool"][0], candidates_complete=False)
    assert says(no_pool) == f"No standard v3 or v4 pool trades this token. {narrow}"


# --- strangers' words -----------------------------------------------------------------------------


def quoted(text: str) -> str:
    """What stands between the only two quotation marks of a text."""
    assert text.count('"') == 2, text
    return text.split('"')[1]


@QUICK
@given(st.text(max_size=300).map(lambda text: "a" + text))
def test_a_reason_is_cleaned_cut_and_cannot_leave_its_quotes(reason: str) -> None:
    for found in (refusing_all(reason), evidence(no_trade(LIQUID, refused_buys(reason)))):
        text = says(found)
        assert text.isprintable()
        assert 0 < len(quoted(text)) <= 80
        assert len(text) <= 200


def test_double_quotes_inside_cannot_break_out() -> None:
    assert quoted(says(refusing_all('sold"). It is safe ("'))) == "sold'). It is safe ('"


@pytest.mark.parametrize("reason", [None, "", "\u200b\u202e"])
def test_no_reason_is_no_quotes(reason: str | None) -> None:
    assert '"' not in says(refusing_all(reason))
    assert '"' not in says(evidence(no_trade(LIQUID, refused_buys(reason))))


def test_a_long_reason_is_cut_at_eighty() -> None:
    assert quoted(says(refusing_all(LONG))) == "x" * 80


def test_the_tokens_own_word_goes_before_the_routers() -> None:
    answer = RefusedCall("sell", "blacklisted", 1)
    found = refusing_all("STF")
    told_venue = replace(found.venues[0], told_on_sell=answer)
    assert 'The token says "blacklisted".' in says(evidence(told_venue))
    silent = replace(found.venues[0], told_on_sell=RefusedCall("sell", None, 1))
    assert MUTE in says(evidence(silent))
    lost = replace(found.venues[0], told_on_sell=NODE)
    assert WITHHELD in says(evidence(lost))
    buy = replace(no_trade(LIQUID, refused_buys("router")), told_on_buy=RefusedCall("buy", "paused", 1))
    assert 'The token says "paused".' in says(evidence(buy))


@pytest.mark.parametrize("code", sorted(ROUTER_REASONS))
def test_a_routers_code_is_never_quoted(code: str) -> None:
    trap = refusing_all(code)
    assert says(trap).endswith(f"not within a day. {WITHHELD}")
    assert sell_reason_text(trap.venues[0], judge(trap, POLICY).readings[0]) == REASON_WITHHELD
    assert says(evidence(no_trade(LIQUID, refused_buys(code)))).endswith(f"a holder can sell it. {WITHHELD}")


def test_a_hooks_refusal_is_not_taken_for_the_tokens() -> None:
    (trap,) = refusing_all("WrappedError").venues
    hooked = replace(trap, venue=v4())
    assert says(evidence(hooked)).endswith("not within a day.")
    asked = replace(hooked, told_on_sell=RefusedCall("sell", None, 1))
    assert says(evidence(asked)).endswith(MUTE)


def test_a_reason_text_is_there_only_where_something_was_refused() -> None:
    fine = judge(evidence(venue()), POLICY).readings[0]
    assert buy_reason_text(venue(), fine) is None
    assert sell_reason_text(venue(), fine) is None
    mute = refusing_all(None)
    assert sell_reason_text(mute.venues[0], judge(mute, POLICY).readings[0]) == NO_REASON
    closed = evidence(no_trade(LIQUID, refused_buys(None)))
    assert buy_reason_text(closed.venues[0], judge(closed, POLICY).readings[0]) == NO_REASON
    gone = evidence(no_trade(ABSENT))
    assert buy_reason_text(gone.venues[0], judge(gone, POLICY).readings[0]) is None


def test_why_nothing_is_proven_is_cleaned_too() -> None:
    text = says(evidence(venue(cells(day=Missing("token", "a\u202e\n" + LONG)))))
    assert text.isprintable()
    assert len(text) <= 200
    assert "This is not a pass." in text


# --- texts that must hold -------------------------------------------------------------------------


def test_a_tiny_part_sold_in_an_hour_is_not_told_as_selling_then() -> None:
    found = evidence(venue(refused_cells(hour=sold(0, 100, BPS), day=sold())))
    assert "after an hour" not in says(found)


def test_a_tiny_part_of_the_half_sell_is_not_told_as_half() -> None:
    found = evidence(venue(refused_cells(half=sold(0, 100, 5000), hour=sold())))
    assert "alf of it" not in says(found)


def test_the_part_that_is_told_as_the_most_is_the_most() -> None:
    third = sold(60, 3000, BPS)
    assert "Only 30.00 %" not in says(evidence(venue(cells(full=third, full_again=third))))


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("it loops", "The token prevented the check: it loops. This is not a pass."),
        ("", "The token prevented the check. This is not a pass."),
        (
            "The chain did not answer in time.",
            "The token prevented the check. The chain did not answer in time. This is not a pass.",
        ),
    ],
)
def test_what_the_token_prevented_reads_as_sentences(why: str, text: str) -> None:
    assert unproven(Missing("token", why)) == text


@pytest.mark.parametrize(
    ("loss_bps", "keep_bps", "text"),
    [
        (499, 60, ""),
        (1050, 60, "Fees and taxes take 10.50 % of a round trip."),
        (1300, 1200, "The pool keeps 12.00 % of a round trip for itself."),
        (2000, 60, "Fees and taxes take 20.00 % of a round trip."),
    ],
)
def test_what_a_venue_keeps_has_the_verdicts_words(loss_bps: int, keep_bps: int, text: str) -> None:
    tried = venue(cells(loss_bps), fee_pips=fee_that_keeps(keep_bps))
    found = evidence(tried)
    judged = judge(found, POLICY)
    assert keeps_text(found, tried.venue, judged.readings, POLICY) == text
    if judged.verdict.code != "ok":
        assert judged.verdict.text.startswith(text.removesuffix("."))
    elsewhere = replace(tried.venue, fee_pips=1)
    assert keeps_text(found, elsewhere, judged.readings, POLICY) == ""
