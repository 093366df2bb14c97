"""The risks beside a verdict."""

import pytest

from evidence.corpus import documents
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.market.exposure import LeavingLiquidity
from roundtrip.domain.verdicts.risks import (
    combine_risks,
    find_insider_warning,
    format_tax,
    list_risks,
    rate_age,
    rate_insiders,
    rate_liquidity,
    rate_loss,
    rate_tax,
    warn_of_holding,
    worst_risk,
)

TOPICS = ["insiders", "liquidity", "owner", "tax", "age"]


@pytest.mark.parametrize(
    ("bps", "level"),
    [(None, "unknown"), (0, "ok"), (499, "ok"), (500, "warn"), (1999, "warn"), (2000, "danger")],
)
def test_what_insiders_hold_has_a_level_of_its_own(bps: int | None, level: str) -> None:
    assert rate_insiders(bps).level == level


def test_a_measured_share_is_named_and_no_threshold() -> None:
    assert rate_insiders(4074).text == "insiders hold 40.74 %"
    assert rate_insiders(10_000).text == "insiders hold 100 %"


@pytest.mark.parametrize(
    ("leaving", "level"),
    [
        (None, "unknown"),
        (LeavingLiquidity(0, 0), "ok"),
        (LeavingLiquidity(0, 1), "unknown"),
        (LeavingLiquidity(1, 0), "warn"),
        (LeavingLiquidity(5000, 5000), "danger"),
    ],
)
def test_liquidity_that_can_be_withdrawn_has_one(leaving: LeavingLiquidity | None, level: str) -> None:
    assert rate_liquidity(leaving).level == level


@pytest.mark.parametrize(
    ("age_s", "level"), [(None, "unknown"), (-1, "unknown"), (60, "warn"), (86_400, "ok")]
)
def test_a_young_token_is_a_risk(age_s: int | None, level: str) -> None:
    assert rate_age(age_s).level == level


@pytest.mark.parametrize("name", documents())
def test_every_check_lists_the_five_in_order(name: str) -> None:
    evidence = canonical_json.load(Evidence, documents()[name])
    risks = list_risks(evidence, judge(evidence, POLICY), POLICY)
    assert [risk.topic for risk in risks] == TOPICS
    # A check alone reads neither holders nor liquidity: that is no pass.
    assert [risk.level for risk in risks[:2]] == ["unknown", "unknown"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("curve_taxed", "tax 8.00 % to buy, 8.00 % to sell"),
        ("fee_on_buy", "tax 20.00 % to buy"),
        ("v4_fee_on_sell", "tax 10.00 % to sell"),
        ("plain", "no tax"),
    ],
)
def test_a_tax_is_that_of_each_way(name: str, text: str) -> None:
    evidence = canonical_json.load(Evidence, documents()[name])
    assert rate_tax(evidence, judge(evidence, POLICY), POLICY).text == text


def test_a_tax_of_unknown_ways_is_that_of_a_round_trip() -> None:
    assert format_tax(994, None, 1000) == "9.94 %"
    assert format_tax(5, 0, 0) == "0.05 %"
    assert format_tax(None, None, None) == "not known"


@pytest.mark.parametrize(
    ("name", "tax"),
    [("plain", "ok"), ("graduated_taxed", "warn"), ("fee_on_buy", "danger"), ("no_pool", "unknown")],
)
def test_a_tax_is_measured(name: str, tax: str) -> None:
    evidence = canonical_json.load(Evidence, documents()[name])
    risks = list_risks(evidence, judge(evidence, POLICY), POLICY, 9000, LeavingLiquidity(0, 0), 60)
    assert {risk.topic: risk.level for risk in risks}["tax"] == tax
    worst = worst_risk(risks)
    assert worst is not None
    assert worst.topic == "insiders"


@pytest.mark.parametrize(
    ("verdict", "bps", "expected"),
    [
        ("ok", 2000, "danger"),
        ("ok", 1999, None),
        ("ok", None, "unknown"),
        ("warn", 9000, "danger"),
        ("danger", 9000, None),
        ("unknown", None, None),
    ],
)
def test_insiders_are_named_beside_a_verdict_that_does_not_say_no(
    verdict: Level, bps: int | None, expected: str | None
) -> None:
    risk = find_insider_warning(verdict, bps)
    assert (risk and risk.level) == expected


def test_what_is_known_beside_a_check_replaces_what_it_does_not_read() -> None:
    evidence = canonical_json.load(Evidence, documents()["plain"])
    of_check = list_risks(evidence, judge(evidence, POLICY), POLICY, age_s=90_000)
    leaving = LeavingLiquidity(0, 0)
    combined = combine_risks(of_check, 100, leaving, 60)
    assert combined == [rate_insiders(100), rate_liquidity(leaving), *of_check[2:4], rate_age(60)]
    assert combine_risks(of_check, None, None, None) == list(of_check)
    assert [risk.topic for risk in combine_risks([], 100, leaving, 60)] == TOPICS[:2]


def test_a_loss_is_coloured_from_five_percent_on() -> None:
    assert [rate_loss(bps) for bps in (-5, 499, 500, 4999, 5000)] == ["ok", "ok", "warn", "warn", "danger"]


def test_what_went_bad_of_a_holding_is_listed_the_worst_first() -> None:
    warnings = warn_of_holding("unknown", ("danger", "cannot_sell"), (100, 201), 1999, 5000)
    assert warnings == [
        ("danger", "Newest check: Honeypot: you cannot sell."),
        ("danger", "50.00 % of its liquidity was taken out since you bought."),
        ("unknown", "We could not find out whether you can sell it. This is not a pass."),
        ("warn", "Fees and taxes rose from 1.00 % to 2.01 %."),
        ("warn", "Its deployer sold 19.99 % of its tokens since you bought."),
    ]
    assert warn_of_holding("yes", ("ok", "ok"), (100, 200), 0, 0) == []
    assert warn_of_holding("yes", None, (None, 9000), 0, 0) == []
    assert [level for level, _ in warn_of_holding("part", None, (None, None), 0, 0)] == ["warn"]
    assert [level for level, _ in warn_of_holding("refused", None, (None, None), 2000, 1)] == [
        "danger",
        "danger",
        "warn",
    ]
