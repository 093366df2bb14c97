"""A check's card: what it says beside the verdict comes from the same evidence."""

import re
from dataclasses import replace

from evidence.corpus import documents
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, Missing
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
    assert (cost.buy_gas or "").endswith(" wei (under $0.01)")
    assert (cost.sell_gas or "").endswith(" wei (under $0.01)")
    trap = card("owner_only_sell").cost
    assert trap is not None
    assert trap.buy_gas is None


def test_gas_has_its_price_in_dollars_where_that_is_known() -> None:
    evidence = replace(canonical_json.load(Evidence, documents()["plain"]), block_base_fee_wei=10**9)
    cost = read_card(evidence, judge(evidence, POLICY), False, POLICY).cost
    assert cost is not None
    assert re.fullmatch(r"0\.000\d+ eth \(\$\d+\.\d\d\)", cost.sell_gas or "")
    unpriced = replace(evidence, market=replace(evidence.market, usdg_per_eth_raw=Missing("node", "late")))
    cost = read_card(unpriced, judge(unpriced, POLICY), False, POLICY).cost
    assert cost is not None
    assert re.fullmatch(r"0\.000\d+ eth", cost.sell_gas or "")
