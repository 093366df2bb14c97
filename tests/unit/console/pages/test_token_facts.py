"""What to know before buying: the worst first, five lines, and nothing unknown is a pass."""

from typing import Any

import pytest

from roundtrip.console.pages.token import amount_back, colour_loss, describe_verdict, draw_history
from roundtrip.console.pages.token_facts import MOST_FACTS, TokenFact, find_risk, list_facts

CHECK: dict[str, Any] = {
    "flags": [],
    "launchpad": None,
    "checkedAt": "2026-01-05T12:00:00Z",
    "token": {"owner": None},
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
    check: Any = CHECK, card: Any = None, held: Any = None, totals: Any = None, says_liquidity: bool = False
) -> list[TokenFact]:
    liquidity = None if totals is None else {"ifItLeft": None, "poolsComplete": True, "totals": totals}
    return list_facts(check, card, held, liquidity, says_liquidity)


def signs(found: list[TokenFact]) -> list[str]:
    return [fact.sign for fact in found]


def test_what_is_not_known_is_no_pass() -> None:
    assert signs(facts()) == ["mind", "mind"]
    unknown = card(taxBps=None, buyTaxBps=None, sellTaxBps=None, poolBps=None, impactBps=None)
    assert signs(facts(card=unknown)) == ["mind", "mind"]
    partial = HELD | {"status": "partial"}
    assert "good" not in signs(facts(held=partial | {"launch": None}))


def test_all_well_is_said_in_five_lines() -> None:
    found = facts(card=card(), held=HELD, totals=BURNED)
    assert signs(found) == ["good"] * MOST_FACTS


def test_the_worst_comes_first_and_the_rest_is_left_out() -> None:
    held = HELD | {
        "forensics": {"suspiciousBps": 3877}, "holders": {"top10Bps": 6604}, "bundle": BUNDLE,
        "deployer": {"heldBps": 1590},
    }  # fmt: skip
    found = facts(CHECK | {"flags": ["hook", "no_liquidity"]}, card(OWNER, sellTaxBps=1000, taxBps=994), held)
    assert signs(found) == ["bad", "bad", "bad", "mind", "mind"]
    assert found[0].text == (
        "Insiders hold 38.77 %: the deployer 15.90 %, a bundle of 3 with one funder 26.55 % (these overlap)."
    )


@pytest.mark.parametrize(
    ("cost", "sign", "text"),
    [
        ({"sellTaxBps": 500, "taxBps": 498}, "mind", "The token takes a tax: buy 0.00 %, sell 5.00 %."),
        ({"buyTaxBps": None, "sellTaxBps": None, "taxBps": 2000}, "bad", "20.00 % of a round trip."),
        ({"poolBps": 1949}, "bad", "The pool and its hook keep 19.49 % of a round trip."),
        ({"impactBps": 600}, "mind", "6.00 % fewer tokens than a small one."),
    ],
)
def test_a_cost_of_five_percent_is_told(cost: dict[str, Any], sign: str, text: str) -> None:
    (found,) = [fact for fact in facts(card=card(**cost)) if text in fact.text]
    assert found.sign == sign


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
    ("answer", "sign"),
    [({"ifItLeft": {"lossBps": 8919}}, "bad"), ({"poolsComplete": False}, "mind")],
)
def test_what_lies_out_of_range_or_is_not_read_is_no_pass(answer: dict[str, Any], sign: str) -> None:
    liquidity = {"ifItLeft": None, "poolsComplete": True, "totals": BURNED} | answer
    (found,) = [fact for fact in list_facts(CHECK, None, None, liquidity) if fact.part == "liquidity"]
    assert found.sign == sign


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
    rows = [{"wallets": 4, "heldBps": 3679, "hasDeployer": True}, {"wallets": 2, "heldBps": 900}]
    held = HELD | {"forensics": {"suspiciousBps": 100, "purses": {"rows": rows}}}
    text = "4 wallets of one purse, the deployer among them, hold 36.79 %."
    assert find_risk(facts(held=held)) == text


def test_an_owner_is_told_once() -> None:
    owned = CHECK | {"token": {"owner": "0x" + "0a" * 20}}
    (found,) = [fact for fact in facts(owned, card(OWNER)) if "owner" in fact.text]
    assert found.text == f"Its owner 0x{'0a' * 20} can still act; what it can do was not tried."
    harms = OWNER | {"standing": "can", "text": "Its owner can stop you from selling."}
    assert [fact.sign for fact in facts(owned, card(harms, OWNER)) if "owner" in fact.text] == ["bad"]


def test_what_comes_back_is_cut_and_coloured_by_its_loss() -> None:
    trade = {"paid": {"amount": "0.1", "asset": "eth"}, "roundTripLossBps": 198, "method": "simulated_trade"}

    def back(sold_bps: int | None, level: str = "warn", **changes: object) -> str | None:
        check = {"trade": trade | changes, "verdict": {"level": level}}
        return amount_back(check, None if sold_bps == 0 else {"soldBps": sold_bps})

    assert back(10_000) == "0.09802"
    assert back(7000) == "0.06861"
    assert back(10_000, roundTripLossBps=12_000) == "0"
    assert (back(0, "ok"), back(0, "warn"), back(None)) == ("0.09802", None, None)
    assert back(10_000, roundTripLossBps=None) is None
    assert back(10_000, method="curve_math") is None
    assert [colour_loss(bps) for bps in (-5, 499, 500, 4999, 5000)] == ["ok", "ok", "warn", "warn", "danger"]


def verdict(minute: int, last: int, level: str, code: str = "ok", catch: str | None = None) -> dict[str, Any]:
    return {
        "checkedAt": f"2026-01-05T12:{minute:02}:00Z", "lastCheckedAt": f"2026-01-05T12:{last:02}:00Z",
        "level": level, "code": code, "catch": catch, "checks": 2,
    }  # fmt: skip


def test_verdicts_are_a_strip_from_the_oldest_on() -> None:
    newest_first = [
        verdict(40, 60 - 1, "warn", catch="hour"),
        verdict(10, 30, "danger", "cannot_sell"),
        verdict(0, 5, "ok"),
    ]
    strip = draw_history({"changes": newest_first})
    assert [span["colour"] for span in strip] == ["ok", "danger", "danger"]
    assert [span["word"] for span in strip][-1] == "Sells now, not in an hour"
    assert [span["x"] for span in strip] == sorted(span["x"] for span in strip)
    assert all(span["width"] > 0 and span["x"] < 600 for span in strip)
    assert draw_history({"changes": newest_first[:1]}) == draw_history(None) == []


@pytest.mark.parametrize(
    ("level", "code", "weighs", "expected"),
    [
        ("ok", "ok", True, ("Can sell, but beware", "warn", "They hold much.")),
        ("ok", "ok", False, ("Can sell", "ok", None)),
        ("warn", "ok", True, ("Sells, with a warning", "warn", "They hold much.")),
        ("danger", "cannot_sell", True, ("Honeypot: you cannot sell", "danger", None)),
    ],
)
def test_what_insiders_hold_takes_the_green_of_a_verdict(
    level: str, code: str, weighs: bool, expected: tuple[str, str, str | None]
) -> None:
    shown = describe_verdict(
        {"level": level, "code": code}, None, [TokenFact("bad", "They hold much.", "holders", weighs)]
    )
    assert (shown["word"], shown["colour"], shown["risk"]) == expected
