"""The word of a simulation: what is allowed comes before what is moved."""

from typing import Any

import pytest

from roundtrip.console.pages.trade import TradeForm, describe_check, simulation_word
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.trade.judge import LEVELS


@pytest.mark.parametrize(
    ("level", "unlimited", "sells", "said"),
    [
        ("ok", None, False, ("unknown", "Goes through")),
        ("warn", None, False, ("warn", "Goes through")),
        ("ok", False, False, ("warn", "Allows a spender")),
        ("ok", True, False, ("danger", "Allows everything")),
        ("ok", True, True, ("danger", "Allows everything")),
        ("warn", True, False, ("danger", "Allows everything")),
        ("warn", False, True, ("warn", "Allows a spender")),
        ("danger", True, True, ("danger", "Very high fees")),
        ("unknown", None, False, ("unknown", "Not known")),
    ],
)
def test_what_is_allowed_is_said_before_what_is_moved(
    level: str, unlimited: bool | None, sells: bool, said: tuple[str, str]
) -> None:
    answer: dict[str, Any] = {
        "verdict": {"level": level, "code": "heavy_fees"},
        "approvals": [] if unlimited is None else [{"unlimited": unlimited}],
        "sellBack": {} if sells else None,
    }
    assert simulation_word(answer) == said


def test_what_sells_back_has_the_verdicts_word() -> None:
    verdict = {"level": "warn", "code": "high_fees"}
    level, word = simulation_word({"verdict": verdict, "approvals": [], "sellBack": {}})
    assert level == "warn"
    assert word != "Goes through"


def test_the_colour_is_never_better_than_the_answers_level() -> None:
    badness = ("ok", "warn", "unknown", "danger")
    for level, code in ((level, code) for code, best in LEVELS.items() for level in {best, "warn"}):
        for approvals in ([], [{"unlimited": False}], [{"unlimited": True}]):
            verdict = {"level": level, "code": code}
            for answer in ({"sellBack": None}, {"sellBack": {"back": None}}):
                colour, _ = simulation_word({"verdict": verdict, "approvals": approvals, **answer})
                assert badness.index(colour) >= badness.index(level)


@pytest.mark.parametrize("slippage", ["nan", "inf", "1e400", "-1", "x", "1" * 400])
def test_a_slippage_that_is_no_number_is_told(slippage: str) -> None:
    form = TradeForm("buy", "0x12", "0x34", "1", "", slippage)
    with pytest.raises(CallerFault, match="The slippage must be a number"):
        form.params()


@pytest.mark.parametrize(
    ("level", "code", "insiders_bps", "expected"),
    [
        ("ok", "ok", 2000, ("Can sell", "ok", "danger")),
        ("ok", "ok", 1999, ("Can sell", "ok", None)),
        ("ok", "ok", None, ("Can sell", "ok", "unknown")),
        ("warn", "ok", 9000, ("Sells, with a warning", "warn", "danger")),
        ("danger", "heavy_loss", 9000, ("Loses half or more", "danger", None)),
    ],
)
def test_what_insiders_hold_stands_beside_a_trades_verdict(
    level: str, code: str, insiders_bps: int | None, expected: tuple[str, str, str | None]
) -> None:
    shown = describe_check({"level": level, "code": code}, {"insidersBps": insiders_bps})
    insiders = shown["insiders"]
    assert (shown["word"], shown["colour"], insiders and insiders.level) == expected
