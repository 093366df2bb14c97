"""The risks beside a verdict."""

import pytest

from evidence.corpus import documents
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.market.exposure import LeavingLiquidity
from roundtrip.domain.verdicts.risks import list_risks, rate_age, rate_insiders, rate_liquidity, worst_risk

TOPICS = ["insiders", "liquidity", "owner", "tax", "age"]


@pytest.mark.parametrize(
    ("bps", "level"),
    [(None, "unknown"), (0, "ok"), (499, "ok"), (500, "warn"), (1999, "warn"), (2000, "danger")],
)
def test_what_insiders_hold_has_a_level_of_its_own(bps: int | None, level: str) -> None:
    assert rate_insiders(bps).level == level


def test_a_measured_share_is_named_and_no_threshold() -> None:
    assert rate_insiders(4074).text == "insiders hold 40.74 %"


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
