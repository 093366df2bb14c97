"""What to know before buying: the worst first, five lines, and nothing unknown is a pass."""

from typing import Any, get_args

import pytest

from roundtrip.console.pages.token import (
    amount_back,
    draw_history,
    find_smaller,
    list_facts,
    list_risks,
    tells_back,
)
from roundtrip.domain.market.exposure import LeavingLiquidity
from roundtrip.domain.verdicts.facts import MAX_FACTS, TokenFact, select_facts
from roundtrip.domain.verdicts.risks import Topic
from roundtrip.services.check.card import CheckCard
from roundtrip.services.holders.handlers import HoldersPage
from roundtrip.services.holders.insiders import StoredRisk
from roundtrip.services.liquidity.schema import Liquidity
from roundtrip.services.support.check_answer import Check
from roundtrip.services.verdicts.history import CheckHistory
from support.answers import build_answer

CHECK: dict[str, Any] = {
    "flags": [],
    "launchpad": None,
    "checkedAt": "2026-01-05T12:00:00Z",
    "token": {"owner": None},
    "verdict": {"level": "ok", "code": "ok"},
}
HELD: dict[str, Any] = {
    "status": "complete",
    "holders": {"top10Bps": 1200},
    "forensics": {"suspiciousBps": 100},
    "deployer": None,
    "bundle": None,
    "launch": {"time": "2026-01-01T12:00:00Z"},
}
COST = {"taxBps": 0, "buyTaxBps": 0, "sellTaxBps": 0, "poolBps": 60, "impactBps": 50}
BURNED = {
    "freeBps": 0,
    "unknownBps": 0,
    "contractBps": 0,
    "lockedBps": 0,
    "burnedBps": 9999,
    "launchpadBps": 0,
}
BUNDLE = {"wallets": 3, "funder": "0x" + "f" * 40, "heldBps": 2655}
OWNER = {"topic": "owner", "standing": "may", "text": "It has an owner."}


def card(*outlook: dict[str, str], **cost: Any) -> dict[str, Any]:
    return {"cost": COST | cost, "outlook": list(outlook), "deep": False}


def facts(
    check: Any = CHECK,
    card: Any = None,
    held: Any = None,
    totals: Any = None,
    says_liquidity: bool = False,
    groups: Any = (),
    leaving: LeavingLiquidity | None = None,
) -> list[TokenFact]:
    liquidity = None if totals is None else {"poolsComplete": True, "totals": totals}
    holders = None if held is None else {"held": held, "launched": {"groups": groups}}
    return list_facts(
        build_answer(Check, check),
        None if card is None else build_answer(CheckCard, card),
        None if holders is None else build_answer(HoldersPage, holders),
        None if liquidity is None else build_answer(Liquidity, liquidity),
        says_liquidity,
        StoredRisk(leaving=leaving),
    )


def signs(found: list[TokenFact]) -> list[str]:
    return [fact.sign for fact in found]


def test_what_is_not_known_is_no_pass() -> None:
    assert signs(facts()) == ["mind", "mind"]
    unknown = card(taxBps=None, buyTaxBps=None, sellTaxBps=None, poolBps=None, impactBps=None)
    assert signs(facts(card=unknown)) == ["mind", "mind"]
    partial = HELD | {"status": "partial"}
    assert "good" not in signs(facts(held=partial | {"launch": None}))


def test_all_well_is_said_in_five_lines() -> None:
    found = facts(card=card(), held=HELD | {"deployer": {"heldBps": 0}}, totals=BURNED)
    assert signs(found) == ["good"] * MAX_FACTS


def test_the_worst_comes_first_and_the_rest_is_left_out() -> None:
    held = HELD | {"forensics": {"suspiciousBps": 3877}, "holders": {"top10Bps": 6604}}
    found = facts(CHECK | {"flags": ["hook", "no_liquidity"]}, card(OWNER, sellTaxBps=1000, taxBps=994), held)
    assert signs(found)[:5] == ["bad", "bad", "bad", "mind", "mind"]
    assert len(select_facts(found, "ok", "ok")) == MAX_FACTS


DEPLOYER = "0x" + "d" * 40


@pytest.mark.parametrize(
    ("wallets", "insiders_bps", "text"),
    [
        ([DEPLOYER], 3877,
         "38.77 %: the deployer 15.86 %, 2 more of its bundle 10.69 %, others 12.22 %."),
        ([], 3877,
         "38.77 %: the deployer 15.86 %, a bundle of 3 with one funder 26.55 % (these overlap)."),
        ([], 4241, "42.41 %: the deployer 15.86 %, a bundle of 3 with one funder 26.55 %."),
    ],
)  # fmt: skip
def test_parts_of_the_insiders_add_up_to_the_boards_number(
    wallets: list[str], insiders_bps: int, text: str
) -> None:
    held = HELD | {
        "forensics": {"suspiciousBps": insiders_bps}, "bundle": BUNDLE,
        "deployer": {"address": DEPLOYER, "heldBps": 1586},
    }  # fmt: skip
    group = {"isBundle": True, "count": 3, "heldBps": 2655, "wallets": [{"address": one} for one in wallets]}
    assert facts(held=held, groups=[group])[0].text == f"Insiders hold {text}"


def test_no_insiders_of_an_unknown_deployer_are_no_pass() -> None:
    held = HELD | {"forensics": {"suspiciousBps": 0}}
    assert [fact for fact in facts(held=held) if "Insiders" in fact.text] == []


@pytest.mark.parametrize(
    ("totals", "sign"),
    [
        ({"freeBps": 8700, "burnedBps": 1300}, "bad"),
        ({"freeBps": 10, "burnedBps": 9990}, "mind"),
        ({"contractBps": 9999, "burnedBps": 0}, "mind"),
        ({"lockedBps": 9999, "burnedBps": 0}, "mind"),
        ({"burnedBps": 5000}, "mind"),
        ({}, "good"),
    ],
)
def test_liquidity_is_good_only_where_nobody_can_withdraw_it(totals: dict[str, int], sign: str) -> None:
    (found,) = [fact for fact in facts(totals=BURNED | totals) if fact.part == "liquidity"]
    assert found.sign == sign


@pytest.mark.parametrize(
    ("answer", "sign"), [({"ifItLeft": {"lossBps": 8919}}, "bad"), ({"poolsComplete": False}, "mind")]
)
def test_what_lies_out_of_range_or_is_not_read_is_no_pass(answer: dict[str, Any], sign: str) -> None:
    liquidity = build_answer(Liquidity, {"poolsComplete": True, "totals": BURNED} | answer)
    facts = list_facts(build_answer(Check, CHECK), None, None, liquidity)
    (found,) = [fact for fact in facts if fact.part == "liquidity"]
    assert found.sign == sign


def test_a_token_without_a_pool_has_no_liquidity_to_tell_of() -> None:
    alone = CHECK | {"verdict": {"level": "warn", "code": "no_pool"}}
    assert [fact for fact in facts(alone) if fact.part == "liquidity"] == []


@pytest.mark.parametrize(
    ("size", "amount", "smaller"),
    [("0.01 eth", "0.1", "0.01"), ("0.1 eth", "0.1", None), ("0.5 eth", "0.50", None), (None, "0.1", None)],
)
def test_a_smaller_size_than_asked_for_is_told(size: str | None, amount: str, smaller: str | None) -> None:
    assert find_smaller(build_answer(CheckCard, {"cost": {"size": size}}), amount) == smaller
    assert find_smaller(None, amount) is None


def test_liquidity_that_the_verdict_tells_of_is_not_called_unknown() -> None:
    assert [fact for fact in facts(says_liquidity=True) if fact.part == "liquidity"] == []


@pytest.mark.parametrize(
    ("record", "flags", "signs_of_it"),
    [
        ({"launches": 3, "graduated": 2, "soldOwn": 0}, [], ["good"]),
        ({"launches": 3, "graduated": 2, "soldOwn": 1}, [], ["mind"]),
        ({"launches": 1, "graduated": 0, "soldOwn": 0}, [], ["mind"]),
        ({"launches": 13, "graduated": 1, "soldOwn": 0}, ["serial_deployer"], ["bad"]),
    ],
)
def test_a_deployers_record_is_told_once(
    record: dict[str, int], flags: list[str], signs_of_it: list[str]
) -> None:
    found = facts(CHECK | {"flags": flags, "launchpad": {"deployer": record}})
    assert [fact.sign for fact in found if "eployer" in fact.text] == signs_of_it


def test_what_the_owner_did_in_a_trial_is_bad() -> None:
    found = facts(card=card(OWNER | {"standing": "can", "text": "Its owner can stop you from selling."}))
    assert found[0] == TokenFact("bad", "Its owner can stop you from selling.", "outlook")
    assert signs(facts(card=card(OWNER | {"standing": "not_found"}))) == ["mind", "mind", "good"]


def test_wallets_of_one_purse_are_told() -> None:
    his = {"wallets": 4, "heldBps": 9000, "hasDeployer": True}
    strangers = {"wallets": 2, "heldBps": 9000, "hasDeployer": False}

    def insider_facts(insiders_bps: int, *rows: dict[str, Any]) -> tuple[list[str], str | None]:
        held = HELD | {"forensics": {"suspiciousBps": insiders_bps, "purses": {"rows": list(rows)}}}
        found = facts(held=held)
        bad = (fact.text for fact in found if fact.sign == "bad" and "Insiders" in fact.text)
        return [fact.text for fact in found if "purse" in fact.text], next(bad, None)

    assert insider_facts(3679, his) == ([], "Insiders hold 36.79 %.")
    # Strangers with one payer are a big holder, and no insiders.
    assert insider_facts(100, strangers) == (["2 wallets of one purse hold 90.00 %."], None)
    assert insider_facts(3679, his, strangers) == (
        ["2 wallets of another purse hold 90.00 %."],
        "Insiders hold 36.79 %.",
    )


def test_an_owner_is_told_once() -> None:
    owned = CHECK | {"token": {"owner": "0x" + "0a" * 20}}
    (found,) = [fact for fact in facts(owned, card(OWNER)) if "owner" in fact.text]
    assert found.text == f"Its owner 0x{'0a' * 20} can still act; what it can do was not tried."
    harms = OWNER | {"standing": "can", "text": "Its owner can stop you from selling."}
    assert [fact.sign for fact in facts(owned, card(harms, OWNER)) if "owner" in fact.text] == ["bad"]


def test_what_comes_back_is_cut() -> None:
    trade = {"paid": {"amount": "0.1", "asset": "eth"}, "roundTripLossBps": 198, "method": "simulated_trade"}

    def back(sold_bps: int | None, level: str = "warn", **changes: object) -> str | None:
        check = build_answer(Check, {"trade": trade | changes, "verdict": {"level": level}})
        return amount_back(check, None if sold_bps == 0 else build_answer(CheckCard, {"soldBps": sold_bps}))

    assert back(10_000) == "0.09802"
    assert back(7000) == "0.06861"
    assert back(10_000, roundTripLossBps=12_000) == "0"
    assert (back(0, "ok"), back(0, "warn"), back(None)) == ("0.09802", None, None)
    assert back(10_000, roundTripLossBps=None) is None
    assert back(10_000, method="curve_math") is None


FIGURE = {"bps": 4000, "text": "You lose 40.00 % after an hour", "short": "40.00 % after an hour"}


@pytest.mark.parametrize(
    ("level", "card", "told"),
    [
        ("ok", {}, True),
        ("ok", None, True),
        ("warn", {"cost": {"impactBps": 499}}, True),
        ("warn", {"cost": {"impactBps": 500}}, False),
        ("warn", {"soldBps": 7000}, False),
        ("warn", {"figure": FIGURE | {"kind": "later"}}, False),
        ("warn", {"figure": FIGURE | {"kind": "impact"}}, True),
        ("danger", {}, False),
        ("unknown", {}, False),
    ],
)
def test_what_comes_back_is_told_alone_only_where_it_is_the_whole_story(
    level: str, card: dict[str, Any] | None, told: bool
) -> None:
    trade = {"paid": {"amount": "0.1", "asset": "eth"}, "roundTripLossBps": 198, "method": "simulated_trade"}
    check = build_answer(Check, {"trade": trade, "verdict": {"level": level}})
    shown = None if card is None else build_answer(CheckCard, {"soldBps": 10_000} | card)
    assert amount_back(check, shown) or level in ("danger", "unknown")
    assert tells_back(check, shown) is told


def verdict(minute: int, last: int, level: str, code: str = "ok") -> dict[str, Any]:
    return {
        "checkedAt": f"2026-01-05T12:{minute:02}:00Z", "lastCheckedAt": f"2026-01-05T12:{last:02}:00Z",
        "level": level, "code": code, "checks": 2,
    }  # fmt: skip


def test_verdicts_are_a_strip_from_the_oldest_on() -> None:
    newest_first = [
        verdict(40, 60 - 1, "warn"),
        verdict(10, 30, "danger", "cannot_sell"),
        verdict(0, 5, "ok"),
    ]
    strip = draw_history(build_answer(CheckHistory, {"changes": newest_first}))
    assert [span.change.level for span in strip] == ["ok", "danger", "warn"]
    assert strip[-1].word == "Sells, with a warning"
    assert [span.x for span in strip] == sorted(span.x for span in strip)
    assert all(span.width > 0 and span.x < 600 for span in strip)
    one = build_answer(CheckHistory, {"changes": newest_first[:1]})
    assert draw_history(one) == draw_history(None) == []


def test_chips_agree_with_what_the_page_reads_of_holders() -> None:
    check = build_answer(Check, CHECK)
    read = HELD | {"forensics": {"suspiciousBps": 2047}, "launch": {"time": "2026-01-05T11:47:00Z"}}
    held = build_answer(HoldersPage, {"held": read}).held
    risks = [{"topic": topic, "level": "unknown", "text": "not read"} for topic in get_args(Topic)]
    card = build_answer(CheckCard, {"risks": risks})
    shown = list_risks(check, card, held, StoredRisk())
    assert [shown[0].text, shown[-1].text] == ["insiders hold 20.47 %", "launched 13 minutes ago"]
    assert list_risks(check, card, None, StoredRisk(2000))[0].text == "insiders hold 20 %"


@pytest.mark.parametrize(
    ("level", "code", "count"),
    [
        ("ok", "ok", 5),
        ("warn", "ok", 5),
        ("danger", "cannot_sell", 5),
        ("warn", "no_pool", 0),
        ("unknown", "unproven", 0),
    ],
)
def test_risks_stand_beside_every_verdict_of_a_token_that_a_pool_trades(
    level: str, code: str, count: int
) -> None:
    check = build_answer(Check, CHECK | {"verdict": {"level": level, "code": code}})
    risks = [{"topic": topic, "level": "unknown", "text": "not read"} for topic in get_args(Topic)]
    stored = StoredRisk(4074, LeavingLiquidity(10_000, 0))
    shown = list_risks(check, build_answer(CheckCard, {"risks": risks}), None, stored)
    assert len(shown) == count
    assert [risk.text for risk in shown if risk.level == "danger"] == (
        ["insiders hold 40.74 %", "100 % of liquidity can be withdrawn"] if shown else []
    )
