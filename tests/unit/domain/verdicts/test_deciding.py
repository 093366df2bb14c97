"""The figure beside a code is the one that decided it."""

import re
from dataclasses import replace

import pytest

from evidence.corpus import documents
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Difference, Evidence
from roundtrip.domain.check.verdict import judge
from roundtrip.domain.verdicts.deciding import DecidingFigure, deciding_figure, explains
from roundtrip.domain.verdicts.facts import describe_taxes
from roundtrip.domain.verdicts.risks import rate_tax
from unit.domain.builders import cells, evidence, sold, venue
from unit.domain.crowds import checked, crowd, crowd_sale, isolated, trade


def of_others(cause: Difference, loss_bps: int) -> Evidence:
    """A token that takes so much of some wallets, and 0.60 % of a wallet alone."""
    taken = sold(loss_bps)
    tries = isolated(as_drawn=taken, **{cause.replace(" ", "_"): taken})
    return checked(crowd(trade(crowd_sale(loss_bps)), tries=tries))


def figure_of(known: Evidence) -> DecidingFigure | None:
    return deciding_figure(judge(known, POLICY), POLICY)


@pytest.mark.parametrize(
    ("known", "kind", "text"),
    [
        (evidence(venue(cells(60))), "round_trip", "A round trip costs 0.60 %"),
        (evidence(venue(cells(2000))), "round_trip", "A round trip costs 20.00 %"),
        (of_others("others", 3000), "others", "A round trip costs 30.00 % after others have bought"),
        (of_others("wallet", 3000), "others", "A round trip costs 30.00 % from 1 of 20 test wallets"),
        (
            evidence(venue(cells(60, hour=sold(60), day=sold(3000)))),
            "later",
            "A round trip costs 30.00 % after a day",
        ),
    ],
    ids=["ok", "high fees", "others", "wallets", "later"],
)
def test_the_figure_is_the_one_that_decided(known: Evidence, kind: str, text: str) -> None:
    figure = figure_of(known)
    assert figure is not None
    assert (figure.kind, figure.text) == (kind, text)


@pytest.mark.parametrize("name", documents())
def test_each_figure_reaches_the_line_of_its_code_and_stands_in_the_text(name: str) -> None:
    known = canonical_json.load(Evidence, documents()[name])
    judgement = judge(known, POLICY)
    figure, verdict = deciding_figure(judgement, POLICY), judgement.verdict
    needs = verdict.code in ("toll_pool", "thin_pool", "high_fees", "heavy_fees")
    assert not needs or figure is not None
    if figure is not None and needs:
        assert explains(verdict.code, figure.bps, POLICY)
        (percent,) = re.findall(r"[0-9,.]+ %", figure.short.partition(" for ")[0])
        left = f"{(10_000 - figure.bps) / 100:.2f} %"
        assert percent in verdict.text or left in verdict.text


def test_no_risk_and_no_fact_beside_high_fees_says_that_there_is_no_tax() -> None:
    known = of_others("others", 3000)
    judgement = judge(known, POLICY)
    assert judgement.verdict.code == "high_fees"
    risk = rate_tax(known, judgement, POLICY)
    assert (risk.level, risk.text) == ("warn", "costs 30.00 % after others have bought")
    (fact,) = describe_taxes(0, 0, 0, deciding_figure(judgement, POLICY))
    assert (fact.sign, fact.text) == ("bad", "A round trip costs 30.00 % after others have bought.")


def test_without_a_venue_that_decided_there_is_none() -> None:
    assert figure_of(evidence()) is None
    refused = judge(evidence(venue(cells(60))), POLICY)
    assert deciding_figure(replace(refused, best=None), POLICY) is None


def test_a_stored_loss_stands_beside_a_code_only_where_it_says_why() -> None:
    assert explains("ok", 60, POLICY)
    assert not explains("high_fees", 60, POLICY)
    assert not explains("thin_pool", 60, POLICY)
    assert explains("toll_pool", POLICY.toll_warn_bps, POLICY)
