"""The words for what wallets of a crowd met: a clause for each cause, and strangers' words in quotes."""

import pytest

from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.crowd_reading import Cause, CrowdFinding, CrowdReading
from roundtrip.domain.check.crowd_text import differing_text, trap_reason, trap_text, victims_text
from roundtrip.domain.check.evidence import RefusedCall
from roundtrip.domain.check.refusals import REASON_WITHHELD, ROUTER_REASONS
from unit.domain.crowds import PAUSED, crowd_sale, trade

ROUTE = "Permit2 and the Universal Router"
ALL_CAUSES: tuple[Cause, ...] = (
    "wallet", "others", "others sold", "size", "time", "share", "pieces", "route", "approval", "tip",
    "together", "not alone",
)  # fmt: skip
ODD = trade(PAUSED, size_wei=10**18, again_wei=5 * 10**17, after_s=7200, share_bps=5000, tip_wei=15 * 10**8)


def refused(cause: Cause, refusal: RefusedCall | None = PAUSED, **changes: object) -> CrowdFinding:
    of = trade(PAUSED, **changes) if changes else ODD
    return CrowdFinding(of, cause, True, BPS, refusal)


def losing(cause: Cause, loss_bps: int = 1234, **changes: object) -> CrowdFinding:
    of = trade(crowd_sale(loss_bps), **changes) if changes else ODD
    return CrowdFinding(of, cause, False, loss_bps, None)


def reading(
    *findings: CrowdFinding, differing: int = 3, largest_wei: int = 0, refused: int = 3, sold: int = 24
) -> CrowdReading:
    worst = max((finding.loss_bps for finding in findings), default=0)
    return CrowdReading(27, 27, differing, findings, False, worst, largest_wei, refused, sold)


def clause(*findings: CrowdFinding, largest_wei: int = 0) -> str:
    return differing_text(reading(*findings, largest_wei=largest_wei), ROUTE)


REFUSED_CLAUSES: dict[Cause, str] = {
    "size": 'a sell of what 1.5 eth buys is refused ("paused")',
    "time": 'a sell 2 hours after the buy is refused ("paused")',
    "share": 'a sell of 50.00 % of it is refused ("paused")',
    "pieces": 'a sale in ten pieces over a day is refused ("paused")',
    "route": 'a sell through Permit2 and the Universal Router is refused ("paused")',
    "approval": 'a sell after an unlimited approval is refused ("paused")',
    "tip": 'a sell with a tip of 1.5 gwei is refused ("paused")',
    "together": 'a sell that differed in several ways from the usual one is refused ("paused")',
    "not alone": '3 of 27 test wallets could not sell ("paused") while others traded, and alone they did not '
    "meet that",
}


@pytest.mark.parametrize(("cause", "text"), REFUSED_CLAUSES.items(), ids=REFUSED_CLAUSES)
def test_each_cause_of_a_refusal_has_its_clause(cause: Cause, text: str) -> None:
    assert clause(refused(cause)) == text


@pytest.mark.parametrize("cause", [cause for cause in REFUSED_CLAUSES if cause != "not alone"])
def test_each_cause_of_a_loss_has_its_clause(cause: Cause) -> None:
    assert clause(losing(cause)) == REFUSED_CLAUSES[cause].replace('is refused ("paused")', "loses 12.34 %")


def test_a_loss_that_was_not_met_alone_says_so() -> None:
    assert clause(losing("not alone", 0)) == (
        "3 of 27 test wallets got less while others traded, and alone they did not meet that"
    )


@pytest.mark.parametrize(
    ("cause", "sell"),
    [
        ("wallet", "a sell by 3 of 27 test wallets"),
        ("others", "a sell after others have bought"),
        ("others sold", "a sell after others have bought and sold"),
    ],
)
def test_a_loss_that_nobody_chose_names_whom_or_when(cause: Cause, sell: str) -> None:
    assert clause(losing(cause)) == f"{sell} loses 12.34 %"


def test_a_size_is_held_against_the_largest_that_sold() -> None:
    text = 'a sell of what 1.5 eth buys is refused ("paused"); the largest that sold cost 0.25 eth'
    assert clause(refused("size"), largest_wei=25 * 10**16) == text


def test_without_findings_the_wallets_are_counted() -> None:
    assert differing_text(reading(differing=3), ROUTE) == "3 of 27 test wallets met something else"


def test_it_says_how_few_could_trade() -> None:
    few = CrowdReading(5, 27, 0, (), False, 0, 0, 0, 5)
    assert differing_text(few, ROUTE) == "only 5 of 27 test wallets could trade"
    assert differing_text(reading(differing=0), ROUTE) == ""


# --- several ------------------------------------------------------------------------------------------


def test_a_cause_has_one_clause_and_its_plainest_wallet_says_it() -> None:
    """The smallest size, and of equal sizes the earliest time."""
    later = refused("time", size_wei=10**16, after_s=7200)
    first, large = (
        refused("time", size_wei=10**16, after_s=60),
        refused("time", size_wei=10**18, after_s=30),
    )
    for order in ((later, first, large), (large, later, first)):
        assert clause(*order) == 'a sell 1 minute after the buy is refused ("paused")'


def test_clauses_of_several_causes_are_joined() -> None:
    actual = refused("tip", tip_wei=10**9, size_wei=2), losing("size", size_wei=10**17)
    size = "a sell of what 0.1 eth buys loses 12.34 %"
    assert clause(*actual) == f'a sell with a tip of 1 gwei is refused ("paused"), and {size}'


def test_what_was_not_met_alone_is_said_only_where_nothing_else_was() -> None:
    assert clause(refused("not alone"), losing("tip")) == "a sell with a tip of 1.5 gwei loses 12.34 %"
    assert clause(refused("not alone"), refused("not alone")) == REFUSED_CLAUSES["not alone"]


# --- reasons ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (None, ""),
        (RefusedCall("sell", None, 1), ""),
        (RefusedCall("sell", "", 1), ""),
        (RefusedCall("sell", 'say "it"', 1), " (\"say 'it'\")"),
        *((RefusedCall("sell", reason, 1), f" ({REASON_WITHHELD})") for reason in sorted(ROUTER_REASONS)),
    ],
    ids=str,
)
def test_a_reason_stands_in_brackets(refusal: RefusedCall | None, why: str) -> None:
    assert clause(refused("tip", refusal)) == f"a sell with a tip of 1.5 gwei is refused{why}"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (None, ""),
        ("paused", ' The sell fails with "paused".'),
        ("STF", " The token refused the transfer, and the router gave no reason for it."),
        ("a\nb", ' The sell fails with "a b".'),
    ],
)
def test_the_reason_of_a_trap_is_a_sentence(reason: str | None, text: str) -> None:
    actual = reading(losing("tip"), refused("wallet", RefusedCall("sell", reason, 1)))
    assert trap_reason(actual) == text


# --- traps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (
            "wallet",
            "3 of 27 test wallets could buy it and not sell it: not now, not within a day. The others could",
        ),
        (
            "others",
            "A wallet alone could sell it, but not after others had bought: not now, not within a day",
        ),
        (
            "others sold",
            "A wallet alone could sell it, but not after others had bought and sold: "
            "not now, not within a day",
        ),
    ],
)
def test_a_trap_says_who_cannot_sell(cause: Cause, text: str) -> None:
    assert trap_text(reading(refused(cause))) == text


@pytest.mark.parametrize(
    ("refused_count", "sold", "text"),
    [
        (3, 20, "3 of 27 test wallets could buy it and not sell it: {}. 20 others could"),
        (26, 1, "26 of 27 test wallets could buy it and not sell it: {}. The others could"),
        (25, 1, "25 of 27 test wallets could buy it and not sell it: {}. 1 other could"),
        (27, 0, "27 of 27 test wallets could buy it and not sell it: {}. "
                "The first wallet, which traded alone, could"),
        (0, 27, "1 of 27 test wallets could buy it and not sell it: {}. The others could"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("cause", ["wallet", "company"])
def test_a_trap_counts_only_others_that_sold(cause: Cause, refused_count: int, sold: int, text: str) -> None:
    found = reading(refused(cause), differing=27, refused=refused_count, sold=sold)
    assert trap_text(found) == text.format("not now, not within a day")


@pytest.mark.parametrize("cause", [cause for cause in ALL_CAUSES if cause in REFUSED_CLAUSES])
def test_what_a_trader_chooses_is_no_trap(cause: Cause) -> None:
    assert trap_text(reading(refused(cause))) == ""
    assert trap_reason(reading(refused(cause))) == ""


@pytest.mark.parametrize("cause", ["wallet", "others", "others sold"])
def test_a_loss_is_no_trap(cause: Cause) -> None:
    assert trap_text(reading(losing(cause))) == ""


# --- victims ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("wallet", " from 3 of 27 test wallets"),
        ("others", " after others have bought"),
        ("others sold", " after others have bought and sold"),
        ("size", ""),
        ("together", ""),
        ("not alone", ""),
    ],
)
def test_who_loses_it(cause: Cause, text: str) -> None:
    assert victims_text(reading(losing(cause, 4000)), 4000) == text
    assert victims_text(reading(losing(cause, 3999)), 4000) == ""
    assert victims_text(reading(refused(cause)), BPS) == ""


def test_without_a_crowd_everybody_does() -> None:
    assert victims_text(None, 4000) == ""
