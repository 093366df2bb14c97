"""What is bought where it is cheapest must sell somewhere."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.check.evidence import (
    CellOutcome,
    CompletedBuy,
    EnvironmentBuy,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    Sold,
    VenueEvidence,
)
from roundtrip.domain.check.verdict import Judgement, judge
from unit.domain.builders import (
    BOUGHT_RAW,
    NO_MONEY,
    NODE,
    PAID_RAW,
    cells,
    evidence,
    refused_cells,
    sold,
    venue,
)


def cheaper(found: VenueEvidence, times: int = 1000, more_raw: int = 0) -> VenueEvidence:
    """The same venue where a buy brings so many times the tokens, and so many base units more."""

    def more(buy: EnvironmentBuy) -> EnvironmentBuy:
        assert isinstance(buy.outcome, CompletedBuy)
        received_raw = buy.outcome.received_raw * times + more_raw
        return replace(buy, outcome=replace(buy.outcome, received_raw=received_raw))

    return replace(found, buys=tuple(map(more, found.buys)))


TRAP = cheaper(venue(refused_cells()))
"""Brings most, and does not take the sell."""


def crossed(back_bps: int, share_bps: int = BPS) -> Sold:
    """What was bought in the trap, sold elsewhere for so much of what it cost."""
    back_raw, sold_raw = PAID_RAW * back_bps // BPS, BOUGHT_RAW * share_bps // BPS
    return Sold(PAID_RAW, BOUGHT_RAW, BOUGHT_RAW, sold_raw, back_raw, 1, 1)


def judged(outcome: CellOutcome | None, trap: VenueEvidence = TRAP) -> Judgement:
    return judge(evidence(trap, replace(venue(), crossed=outcome)), POLICY)


def seen(outcome: CellOutcome | None, trap: VenueEvidence = TRAP) -> tuple[str, str]:
    verdict = judged(outcome, trap).verdict
    return verdict.code, verdict.level


@pytest.mark.parametrize("no", [NO_MONEY, RefusedCall("approve", None, 1), RefusedCall("transfer", "no", 1)])
def test_a_pool_that_takes_back_only_its_own_is_no_way_out(no: RefusedCall) -> None:
    assert seen(no) == ("thin_pool", "danger")
    assert "accepts no sell" in judged(no).verdict.text


@pytest.mark.parametrize(
    ("back_bps", "found"),
    [(30_000, ("ok", "warn")), (BPS, ("ok", "warn")), (8501, ("ok", "warn")), (8500, ("thin_pool", "warn")),
     (5001, ("thin_pool", "warn")), (5000, ("thin_pool", "danger")), (0, ("thin_pool", "danger"))],
)  # fmt: skip
def test_what_is_lost_on_the_way_out_counts(back_bps: int, found: tuple[str, str]) -> None:
    assert seen(crossed(back_bps)) == found


def test_less_than_half_sold_is_no_way_out() -> None:
    assert seen(crossed(BPS, 4999)) == ("thin_pool", "danger")
    assert seen(crossed(BPS, 5000)) == ("ok", "warn")


@pytest.mark.parametrize(
    ("large", "says"),
    [
        (None, ""),
        (RefusedCall("buy", "no", 0), ""),
        (crossed(8501), ""),
        (crossed(4000), ", and what 1 eth buys there loses 60.00 % here"),
        (RefusedCall("sell", "no", 0), ", and what 1 eth buys there loses 100.00 % here"),
    ],
)
def test_what_more_money_loses_on_the_way_out_is_said(large: CellOutcome | None, says: str) -> None:
    fair = replace(venue(), crossed=crossed(BPS), crossed_large=large)
    assert f"takes no sell: {TRAP.venue.pool}{says}." in judge(evidence(TRAP, fair), POLICY).verdict.text


def test_a_cheaper_pool_that_takes_no_sell_is_named() -> None:
    text = "; another pool, where a buy brings most, takes no sell: "
    assert f"{text}{TRAP.venue.pool}." in judged(crossed(BPS)).verdict.text
    assert text not in judged(NO_MONEY).verdict.text
    # With a loss of its own, the pool that takes sells is not the only one to know of.
    taxed = judge(evidence(TRAP, replace(venue(cells(2000)), crossed=crossed(BPS))), POLICY).verdict
    assert taxed.code == "high_fees"
    assert text in taxed.text


@pytest.mark.parametrize("unknown", [RefusedCall("buy", "no", 1), RefusedCall("fund", None, 1), None])
def test_a_way_out_that_was_not_tried_says_nothing(unknown: RefusedCall | None) -> None:
    assert seen(unknown) == ("ok", "warn")


def test_where_the_cheapest_pool_takes_the_sell_nobody_needs_a_way_out() -> None:
    assert seen(NO_MONEY, cheaper(venue(), 2)) == ("ok", "ok")


@pytest.mark.parametrize(
    ("dear_bps", "says"),
    [(1600, "takes 15.40 %"), (9000, "takes 89.40 %"), (1400, None), (NODE, "may take more")],
)
def test_a_loss_where_a_buy_brings_most_is_warned_of(dear_bps: int | Missing, says: str | None) -> None:
    taxed = venue(cells(dear_bps)) if isinstance(dear_bps, int) else venue(cells(hour=dear_bps))
    for beside in (cheaper(taxed, 1, more_raw=BOUGHT_RAW // 10), taxed):
        verdict = judge(evidence(beside, replace(venue(), crossed=None)), POLICY).verdict
        assert (verdict.code, verdict.level) == ("ok", "ok" if says is None else "warn")
        if says is None:
            assert "another pool" not in verdict.text
        else:
            where = f"in another pool, where a buy brings most: {beside.venue.pool}."
            assert f"; the token {says} of a round trip {where}" in verdict.text


@pytest.mark.parametrize(
    ("outcome", "found", "says"),
    [
        (crossed(BPS), ("ok", "ok"), "straight back"),
        (crossed(8501), ("ok", "ok"), "straight back"),
        (None, ("ok", "ok"), "straight back"),
        (RefusedCall("buy", "no", 1), ("ok", "ok"), "straight back"),
        (
            crossed(8500),
            ("toll_pool", "warn"),
            "where a buy brings most, and what you buy there loses 15.00 % in another: 0x",
        ),
        (crossed(200), ("toll_pool", "danger"), "The pool keeps 99.00 % of a round trip where a buy"),
        (crossed(100), ("toll_pool", "danger"), "and what you buy there loses no less in another: 0x"),
        (RefusedCall("sell", "no", 1), ("toll_pool", "danger"), "does not sell in any other: 0x"),
        (NODE, ("ok", "warn"), "keeps 99.00 % of a round trip, and what it brings may lose much here, too: "),
    ],
)
@pytest.mark.parametrize(("times", "more_raw"), [(2, 0), (1, 0), (1, -1)])
def test_a_toll_where_a_buy_brings_most_counts_if_tokens_are_bound_to_it(
    outcome: CellOutcome | None, found: tuple[str, str], says: str, times: int, more_raw: int
) -> None:
    """Any stranger can open a pool with a toll: alone it is no fault of the token."""
    toll = venue(cells(9900))
    toll = cheaper(replace(toll, venue=replace(toll.venue, fee_pips=900_000)), times, more_raw)
    verdict = judge(evidence(toll, replace(venue(), crossed=outcome)), POLICY).verdict
    assert (verdict.code, verdict.level) == found
    assert says in verdict.text


@pytest.mark.parametrize("refused", [True, False])
def test_a_strangers_toll_decides_nothing_where_the_fair_pool_takes_no_large_sale(refused: bool) -> None:
    """All of the little that such a pool brings sells there."""
    fair = venue(cells(60, full=NO_MONEY) if refused else cells(60))
    toll = replace(venue(cells(9900)), venue=replace(venue().venue, fee_pips=900_000))
    dear = cheaper(toll, 1, more_raw=-BOUGHT_RAW * 99 // 100)
    verdict = judge(evidence(fair, replace(dear, crossed=None)), POLICY).verdict
    assert (verdict.code, verdict.level) == ("ok", "warn" if refused else "ok")


def test_a_token_with_a_tax_in_each_pool_is_judged_by_it() -> None:
    verdict = judge(evidence(cheaper(venue(cells(1900)), 2), venue(cells(1600))), POLICY).verdict
    assert verdict.code == "high_fees"
    assert "another pool" not in verdict.text


def test_a_trap_that_is_dearer_than_the_fair_pool_does_not_matter() -> None:
    found = judge(evidence(venue(refused_cells()), replace(cheaper(venue(), 2), crossed=None)), POLICY)
    assert (found.verdict.code, found.verdict.level) == ("ok", "ok")


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("pool", ["0x" + "01" * 20, "0x" + "fe" * 20])
def test_of_pools_that_bring_the_same_the_trap_counts(pool: str, is_first: bool) -> None:
    trap = venue(refused_cells())
    trap = replace(trap, venue=replace(trap.venue, pool=Address(pool)))
    fair = replace(venue(), crossed=crossed(BPS))
    for almost in (fair, cheaper(fair, 1, more_raw=1)):
        found = judge(evidence(*((trap, almost) if is_first else (almost, trap))), POLICY)
        assert (found.verdict.code, found.verdict.level) == ("ok", "warn")
        assert f"where a buy brings most, takes no sell: {pool}." in found.verdict.text


def test_a_lost_way_out_is_unproven_unless_it_cannot_matter() -> None:
    assert seen(NODE)[0] == "unproven"
    unsure = cheaper(venue(refused_cells(full=NODE, full_again=NODE)))
    assert seen(crossed(BPS), unsure)[0] == "ok"


def test_a_trap_that_may_sell_leaves_the_way_out_open() -> None:
    unsure = cheaper(venue(refused_cells(hour=NODE)))
    assert seen(NO_MONEY, unsure)[0] == "unproven"


def test_money_is_compared_in_eth() -> None:
    # Paid in eth and sold for usdg: 300 usdg are 0.1 eth here.
    sold = replace(crossed(BPS), back_raw=300 * 10**6)
    out = replace(venue(quote="usdg"), crossed=sold)
    assert judge(evidence(TRAP, out), POLICY).verdict.code == "ok"
    dear = replace(out, crossed=replace(sold, back_raw=3 * 10**6))
    assert judge(evidence(TRAP, dear), POLICY).verdict.code == "thin_pool"


def test_several_cheap_pools_are_judged_by_the_cheapest() -> None:
    fair = replace(venue(), crossed=crossed(BPS))
    found = judge(evidence(cheaper(venue(cells(200)), 2), TRAP, fair), POLICY)
    assert found.verdict.code == "ok"


_BESIDE = tuple(
    ProbeCell(Probe("probe", POLICY.later_s, BPS, 0, seller), sold(70))
    for seller in ("much gas", "little gas")
)


@pytest.mark.parametrize(
    ("cells_of_best", "level"),
    [(_BESIDE, "ok"), (_BESIDE[:1], "ok"), ((), "warn")],
    ids=["all", "some", "none"],
)
def test_what_others_meet_on_another_venue_only_is_not_known_here(
    cells_of_best: tuple[ProbeCell, ...], level: str
) -> None:
    best = replace(cheaper(venue(cells()), 2), cells=(*cells(), *cells_of_best))
    first = replace(venue(cells()), cells=(*cells(), *_BESIDE))
    verdict = judge(evidence(first, best), POLICY)
    assert (verdict.best, verdict.verdict.code, verdict.verdict.level) == (1, "ok", level)
    assert ("; we could not find out what" in verdict.verdict.text) is (level == "warn")
    alone = judge(evidence(best), POLICY).verdict
    assert (alone.code, alone.level) == ("ok", "ok")
