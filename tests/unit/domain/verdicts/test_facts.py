"""What to know before buying: what is not known is never good."""

import pytest

from roundtrip.domain.check.outlook import Prospect
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.market.exposure import LeavingLiquidity
from roundtrip.domain.verdicts.facts import (
    MAX_FACTS,
    BundleShare,
    HolderShares,
    LiquidityShares,
    TokenFact,
    describe_age,
    describe_deployer,
    describe_holders,
    describe_liquidity,
    describe_outlook,
    describe_pool_cost,
    describe_stored_insiders,
    describe_stored_liquidity,
    describe_taxes,
    select_facts,
    sort_facts,
)

OWNER = "0x" + "0a" * 20


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        (HolderShares(2000, 0, True), ("bad", "Insiders hold 20.00 %.")),
        (HolderShares(1999, 0, True), ("mind", "Insiders hold 19.99 %.")),
        (HolderShares(499, 0, True), ("good", "Insiders hold 4.99 %.")),
        (HolderShares(499, 0, False), ("mind", "What insiders hold is not known.")),
        (HolderShares(0, 0, True), ("mind", "What insiders hold is not known.")),
        (HolderShares(0, 0, True, deployer_bps=0), ("good", "Insiders hold 0.00 %.")),
        (HolderShares(None, 0, True), ("mind", "What insiders hold is not known.")),
        (
            HolderShares(None, 0, True, deployer_bps=100),
            ("bad", "What all insiders hold is not known; of them the deployer 1.00 %."),
        ),
    ],
)
def test_insiders_are_good_only_where_all_is_known(shares: HolderShares, expected: tuple[str, str]) -> None:
    assert describe_holders(shares)[0][:2] == expected


@pytest.mark.parametrize(
    ("bundle", "insiders_bps", "text"),
    [
        (BundleShare(3, 2655, True, True), 3877,
         "38.77 %: the deployer 15.86 %, 2 more of its bundle 10.69 %, others 12.22 %."),
        (BundleShare(3, 2655, True, False), 3877,
         "38.77 %: the deployer 15.86 %, a bundle of 3 with one funder 26.55 % (these overlap)."),
        (BundleShare(3, 2655, False, False), 4241,
         "42.41 %: the deployer 15.86 %, a bundle of 3 in one transaction 26.55 %."),
        (None, 1586, "15.86 %: the deployer 15.86 %."),
    ],
)  # fmt: skip
def test_parts_of_the_insiders_add_up(bundle: BundleShare | None, insiders_bps: int, text: str) -> None:
    shares = HolderShares(insiders_bps, 0, True, 1586, bundle)
    assert describe_holders(shares)[0].text == f"Insiders hold {text}"


def test_strangers_of_one_purse_are_a_big_holder_and_the_ten_biggest_are_named_where_it_matters() -> None:
    def texts(shares: HolderShares) -> list[str]:
        return [fact.text for fact in describe_holders(shares)[1:]]

    assert texts(HolderShares(2000, 2999, True)) == []
    assert texts(HolderShares(100, 2999, True)) == ["The ten biggest wallets hold 29.99 %."]
    assert texts(HolderShares(100, 2999, False)) == []
    assert texts(HolderShares(2000, 3000, True)) == ["The ten biggest wallets hold 30.00 %."]
    assert texts(HolderShares(2000, 0, True, purse=(2, 500))) == ["2 wallets of one purse hold 5.00 %."]
    assert texts(HolderShares(2000, 0, True, purse=(2, 499))) == []
    assert describe_holders(None) == [TokenFact("mind", "Holders: not known yet.", "holders")]


def test_what_was_read_before_is_told_as_such() -> None:
    assert describe_stored_insiders(None) == []
    assert [fact.sign for fact in describe_stored_insiders(2000)] == ["bad"]
    assert describe_stored_liquidity(None).sign == "mind"
    # What was locked when it was last read may be free now.
    assert describe_stored_liquidity(LeavingLiquidity(0, 0)).sign == "good"
    assert describe_stored_liquidity(LeavingLiquidity(5000, 0)).sign == "bad"


@pytest.mark.parametrize(
    ("shares", "sign"),
    [
        (None, "mind"),
        (LiquidityShares(LeavingLiquidity(5000, 0), 5000, 0, False, True), "bad"),
        (LiquidityShares(LeavingLiquidity(1, 0), 9999, 0, True, False), "mind"),
        (LiquidityShares(LeavingLiquidity(0, 0), 10_000, 0, True, True), "bad"),
        (LiquidityShares(LeavingLiquidity(0, 0), 10_000, 0, False, False), "mind"),
        (LiquidityShares(LeavingLiquidity(0, 1), 9999, 0, False, True), "mind"),
        (LiquidityShares(LeavingLiquidity(0, 0), 9899, 101, False, True), "mind"),
        (LiquidityShares(LeavingLiquidity(0, 0), 9900, 100, False, True), "good"),
    ],
)
def test_liquidity_is_good_only_where_it_stays(shares: LiquidityShares | None, sign: str) -> None:
    assert describe_liquidity(shares).sign == sign


@pytest.mark.parametrize(
    ("taxes", "expected"),
    [
        ((0, 0, 0), [("good", "No buy tax, no sell tax.")]),
        ((0, 499, 499), []),
        ((0, 500, 498), [("mind", "A tax takes 5.00 % of each sell.")]),
        ((1000, 1000, 1900), [("bad", "A tax takes 10.00 % of each buy and 10.00 % of each sell.")]),
        ((None, None, 2000), [("bad", "Taxes take 20.00 % of a round trip.")]),
        ((None, None, 0), []),
    ],
)
def test_a_tax_is_named_from_five_percent_on(
    taxes: tuple[int | None, int | None, int | None], expected: list[tuple[str, str]]
) -> None:
    assert [fact[:2] for fact in describe_taxes(*taxes)] == expected


def test_what_the_pool_keeps_is_named_from_five_percent_on() -> None:
    assert list(describe_pool_cost(499, None)) == []
    assert [fact.sign for fact in describe_pool_cost(500, 1949)] == ["mind", "bad"]


@pytest.mark.parametrize(
    ("prospect", "deep", "expected"),
    [
        (Prospect("owner", "can", "It can stop you."), True, ["bad"]),
        (Prospect("owner", "may", "It has an owner."), True, ["mind"]),
        (Prospect("code", "not_known", "Not known."), True, ["mind"]),
        (Prospect("pool", "may", "The pool may."), True, []),
        (Prospect("owner", "not_found", "None found."), True, []),
    ],
)
def test_nothing_found_speaks_for_nothing(prospect: Prospect, deep: bool, expected: list[str]) -> None:
    assert [fact.sign for fact in describe_outlook([prospect], OWNER, deep)] == expected


def test_an_owner_is_named_once() -> None:
    acts, harms = Prospect("owner", "may", "It has an owner."), Prospect("owner", "can", "It can stop you.")
    (fact,) = describe_outlook([acts], OWNER, deep=False)
    assert fact.text == f"Its owner {OWNER} can still act; what it can do was not tried."
    assert [fact.text for fact in describe_outlook([harms, acts], OWNER, deep=True)] == ["It can stop you."]
    assert [fact.text for fact in describe_outlook([acts], None, deep=True)] == ["It has an owner."]


def test_a_record_and_an_age_have_signs() -> None:
    signs = [describe_deployer(*record).sign for record in ((3, 2, 0), (3, 2, 1), (1, 0, 0))]
    assert signs == ["good", "mind", "mind"]
    assert describe_age(None) == describe_age(0) == []
    assert [describe_age(seconds)[0].sign for seconds in (86_399, 86_400)] == ["mind", "good"]


@pytest.mark.parametrize(
    ("level", "code", "expected"),
    [
        ("ok", "ok", ["bad", "mind", "good"]),
        ("danger", "cannot_sell", ["bad", "mind"]),
        ("unknown", "unproven", ["bad", "mind"]),
        ("warn", "not_a_token", []),
    ],
)
def test_nothing_speaks_for_a_token_that_cannot_be_sold(level: Level, code: str, expected: list[str]) -> None:
    facts = sort_facts([TokenFact("good", "a"), TokenFact("bad", "b"), TokenFact("mind", "c")])
    assert [fact.sign for fact in select_facts(facts, level, code)] == expected
    assert len(select_facts(facts * 3, "ok", "ok")) == MAX_FACTS
