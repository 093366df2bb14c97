"""What a crowd changes about a verdict: its code, its level, and its words."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.base.venue import TRAITS
from roundtrip.domain.check.evidence import (
    CellOutcome,
    Crowd,
    Difference,
    Evidence,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    VenueEvidence,
)
from roundtrip.domain.check.verdict import Verdict, judge
from unit.domain.builders import NO_MONEY, NODE, cells, evidence, refused_cells, sold, venue
from unit.domain.crowds import (
    CHOICES,
    FATES,
    GONE,
    ITS_OWN,
    NO_BUY,
    PAUSED,
    checked,
    crowd,
    crowd_sale,
    isolated,
    trade,
)

ROUTE = TRAITS["amm_v3"].second_route


def seen(known: Evidence) -> Verdict:
    return judge(known, POLICY).verdict


def code_and_level(known: Evidence) -> tuple[str, str]:
    verdict = seen(known)
    return verdict.code, verdict.level


def only(cause: Difference, outcome: CellOutcome, met: object = PAUSED) -> Evidence:
    """One wallet met something else, and this difference alone leads to it."""
    actual = isolated(as_drawn=outcome, **{cause.replace(" ", "_"): outcome})
    return checked(crowd(trade(met), tries=actual))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "looked"),
    [
        (None, ""),
        (Crowd(()), ""),
        (crowd(), "; 20 of 20 test wallets sold it within a day, too (2 eth together)"),
        (
            crowd(trade(NO_BUY)),
            "; 19 of 20 test wallets sold it within a day, too (1.9 eth together), and 1 could not trade",
        ),
        (
            crowd(trade(RefusedCall("sell", "CurrencyNotSettled", 1), way="second route")),
            "; 19 of 20 test wallets sold it within a day, too (2 eth together), and 1 could not through "
            "Permit2 and the Universal Router: it takes no taxed token",
        ),
    ],
    ids=["no crowd", "left out", "sound", "no buy", "settled short"],
)
def test_a_crowd_that_met_nothing_else_says_how_far_it_looked(known: Crowd | None, looked: str) -> None:
    assert code_and_level(checked(known)) == ("ok", "ok")
    text = seen(checked(None)).text
    assert seen(checked(known)).text == f"{text.removesuffix('.')}{looked}."


# --- traps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", FATES)
def test_a_token_that_some_wallets_cannot_sell_cannot_be_sold(cause: Difference) -> None:
    verdict = seen(only(cause, PAUSED))
    assert (verdict.code, verdict.level) == ("cannot_sell", "danger")
    assert 'The sell fails with "paused".' in verdict.text


def test_a_trap_says_whom_it_catches() -> None:
    assert seen(only("wallet", PAUSED)).text.startswith(
        "1 of 20 test wallets could buy it and not sell it: not now, not within a day. The others could. "
        'The sell fails with "paused".'
    )
    assert seen(only("others", PAUSED)).text.startswith("A wallet alone could sell it, but not after others ")
    assert "bought and sold" in seen(only("others sold", PAUSED)).text


def test_a_trap_on_one_venue_leaves_the_other() -> None:
    """The verdict is of the best venue that takes sells; a trap takes none."""
    (trapped,) = only("wallet", PAUSED).venues
    both = evidence(trapped, venue(cells(90)))
    assert code_and_level(both) == ("ok", "warn")
    assert judge(both, POLICY).best == 1
    assert code_and_level(evidence(trapped, trapped)) == ("cannot_sell", "danger")


# --- choices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", CHOICES)
@pytest.mark.parametrize("outcome", [PAUSED, sold(7000)], ids=["refused", "costly"])
def test_what_a_trader_chooses_is_a_warning(cause: Difference, outcome: CellOutcome) -> None:
    loses_later = cause == "time" and outcome is not PAUSED
    found = ("heavy_fees", "danger") if loses_later else ("ok", "warn")
    assert code_and_level(only(cause, outcome)) == found


def test_what_is_lost_some_time_after_the_buy_counts() -> None:
    assert seen(only("time", sold(7000))).text.startswith(
        "Fees and taxes take 70.00 % of a round trip, sold 13 seconds after the buy"
    )


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("tip", '; a sell with a tip of 0 wei is refused ("paused")'),
        ("route", f'; a sell through {ROUTE} is refused ("paused")'),
        ("time", '; a sell 13 seconds after the buy is refused ("paused")'),
    ],
)
def test_a_warning_names_the_choice(cause: Difference, words: str) -> None:
    assert words in seen(only(cause, PAUSED)).text


def test_what_was_not_met_alone_is_a_warning() -> None:
    known = checked(crowd(trade(PAUSED), trade(PAUSED), tries=isolated()))
    assert code_and_level(known) == ("ok", "warn")
    assert "2 of 20 test wallets could not sell" in seen(known).text


# --- losses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss_bps", "code", "level"),
    [
        (1499, "ok", "warn"),
        (1500, "high_fees", "warn"),
        (4999, "high_fees", "warn"),
        (5000, "heavy_fees", "danger"),
        (9000, "heavy_fees", "danger"),
    ],
)
@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("wallet", " from 1 of 20 test wallets"),
        ("others", " after others have bought"),
        ("others sold", " after others have bought and sold"),
    ],
)
def test_what_some_wallets_lose_counts_as_fees(
    cause: Difference, words: str, loss_bps: int, code: str, level: str
) -> None:
    known = only(cause, sold(loss_bps), crowd_sale(loss_bps))
    assert code_and_level(known) == (code, level)
    if code != "ok":
        percent = f"{loss_bps // 100}.{loss_bps % 100:02d} %"
        assert f"Fees and taxes take {percent} of a round trip{words}." in seen(known).text


def test_what_everybody_loses_is_no_matter_of_some() -> None:
    (taxed,) = only("wallet", sold(3000), crowd_sale(3600)).venues
    known = evidence(replace(taxed, cells=cells(3000)))
    assert code_and_level(known) == ("high_fees", "warn")
    assert "test wallet" not in seen(known).text


# --- not known ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "known",
    [
        GONE,
        Missing("token", "its answer is too large"),
        crowd(trade(PAUSED)),
        crowd(trade(crowd_sale(9000))),
        crowd(trade(GONE)),
        crowd(trade(PAUSED), tries=isolated(wallet=GONE)),
        crowd(trade(PAUSED), tries=isolated(others_sold=ITS_OWN)),
        crowd(trade(PAUSED), tries=isolated(tip=GONE)),
    ],
    ids=["no crowd", "the token's", "refused", "costly", "lost", "wallet", "others", "choice"],
)
def test_a_crowd_that_is_not_known_is_no_pass(known: Crowd | Missing) -> None:
    assert code_and_level(checked(known)) == ("unproven", "unknown")


def test_a_trap_is_proven_whatever_else_is_unknown() -> None:
    odd = trade(PAUSED), trade(GONE)
    known = checked(crowd(*odd, tries=isolated(wallet=PAUSED, others=GONE)))
    assert code_and_level(known) == ("cannot_sell", "danger")


def test_a_trap_is_proven_whatever_another_environment_met() -> None:
    (trapped,) = only("wallet", PAUSED).venues
    unknown = ProbeCell(Probe("probe", POLICY.later_s, BPS, 1), NODE)
    known = evidence(replace(trapped, cells=(*trapped.cells, unknown)))
    assert code_and_level(known) == ("cannot_sell", "danger")


def test_an_unknown_crowd_of_a_venue_that_takes_no_sell_changes_nothing() -> None:
    known = evidence(replace(venue(refused_cells()), crowd=GONE))
    assert code_and_level(known) == ("cannot_sell", "danger")


def test_an_unknown_crowd_of_a_worse_venue_changes_nothing() -> None:
    worse = replace(venue(cells(900)), crowd=GONE)
    assert code_and_level(evidence(venue(), worse)) == ("ok", "ok")
    better = replace(venue(), crowd=GONE)
    # Each value of what is unknown gives an ok; but of the venue that is named not all is known.
    assert code_and_level(evidence(venue(cells(900)), better)) == ("ok", "warn")
    assert code_and_level(evidence(venue(cells(2000)), better)) == ("unproven", "unknown")


# --- the second route ---------------------------------------------------------------------------------


def by_route(outcome: CellOutcome, **outcomes: CellOutcome) -> VenueEvidence:
    """The usual sells are refused; by the second route this happens."""
    cell = ProbeCell(Probe("probe", POLICY.later_s, BPS, 0, "second route"), outcome)
    return venue((*refused_cells(**outcomes), cell))


def test_a_token_that_sells_by_its_second_route_only_is_a_warning() -> None:
    verdict = seen(evidence(by_route(sold(60))))
    assert (verdict.code, verdict.level) == ("ok", "warn")
    assert f"The usual sell is refused; a sell through {ROUTE} went through for a loss of 0.60 %" in (
        verdict.text
    )


def test_the_reason_of_the_usual_sell_is_named_beside_it() -> None:
    refused = replace(NO_MONEY, reason="no routers")
    verdict = seen(evidence(by_route(sold(60), full=refused)))
    assert 'The usual sell is refused (the sell fails with "no routers"); a sell through' in verdict.text


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (sold(1500), ("high_fees", "warn")),
        (sold(6000), ("heavy_fees", "danger")),
        (PAUSED, ("cannot_sell", "danger")),
        (sold(60, 4999, BPS), ("cannot_sell", "danger")),
        (NODE, ("unproven", "unknown")),
    ],
    ids=["costly", "heavy", "refused", "a part", "unknown"],
)
def test_the_second_route_decides_where_nothing_else_sells(
    outcome: CellOutcome, expected: tuple[str, str]
) -> None:
    assert code_and_level(evidence(by_route(outcome))) == expected


@pytest.mark.parametrize("outcome", [PAUSED, NODE, sold(9000)], ids=["refused", "unknown", "costly"])
def test_where_the_usual_sell_works_the_second_route_does_not_count(outcome: CellOutcome) -> None:
    cell = ProbeCell(Probe("probe", POLICY.later_s, BPS, 0, "second route"), outcome)
    assert code_and_level(evidence(venue((*cells(), cell)))) == ("ok", "ok")


def test_a_larger_trip_is_not_blamed_on_its_size_where_the_usual_one_fails_later() -> None:
    large = ProbeCell(Probe("large", POLICY.later_s, POLICY.most_bps, 0), PAUSED)
    for later in ("hour", "day"):
        judged = judge(evidence(venue((*cells(60, **{later: PAUSED}), large))), POLICY).verdict
        assert (judged.code, judged.level) == ("ok", "warn")
        assert "1 eth" not in judged.text
        assert f"but not at all after {'an' if later == 'hour' else 'a'} {later}" in judged.text


@pytest.mark.parametrize(
    ("size_wei", "says"),
    [
        (42 * 10**16, "what 1 eth buys cannot be sold, and what 0.42 eth buys can."),
        (9 * 10**16, "what 1 eth buys cannot be sold."),
        (2 * 10**18, "what 1 eth buys cannot be sold."),
    ],
)
def test_where_1_eth_does_not_sell_the_largest_size_that_did_is_named(size_wei: int, says: str) -> None:
    large = ProbeCell(Probe("large", POLICY.later_s, POLICY.most_bps, 0), PAUSED)
    known = replace(venue((*cells(60), large)), crowd=crowd(trade(size_wei=size_wei), count=1))
    judged = judge(evidence(known), POLICY).verdict
    assert (judged.code, judged.level) == ("ok", "warn")
    assert judged.text.endswith(says)
