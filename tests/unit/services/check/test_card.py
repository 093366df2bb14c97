"""A check's card: what it says beside the verdict comes from the same evidence."""

from dataclasses import replace

from evidence.corpus import documents
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.sales import Sale
from roundtrip.domain.check.verdict import judge
from roundtrip.services.check.card import CheckCard, read_card


def card(name: str) -> CheckCard:
    evidence = canonical_json.load(Evidence, documents()[name])
    return read_card(evidence, judge(evidence, POLICY), False, POLICY)


def test_a_part_that_sold_is_not_all_of_it() -> None:
    assert card("plain").sold_bps == BPS
    assert card("owner_only_sell").sold_bps is None
    assert card("no_pool").sold_bps is None
    evidence = canonical_json.load(Evidence, documents()["plain"])
    judgement = judge(evidence, POLICY)
    (reading,) = judgement.readings
    assert isinstance(reading.full, Sale)
    part = replace(reading, full=replace(reading.full, share_bps=7000, whole=False))
    assert read_card(evidence, replace(judgement, readings=(part,)), False, POLICY).sold_bps == 7000


def test_gas_is_known_where_a_sell_went_through() -> None:
    cost = card("plain").cost
    assert cost is not None
    assert (cost.gas or "").endswith(" wei")
    trap = card("owner_only_sell").cost
    assert trap is not None
    assert trap.gas is None
