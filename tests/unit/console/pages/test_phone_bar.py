"""A phone's bar holds the word in one line: no word of a verdict that can be bought is long there."""

from types import SimpleNamespace

import pytest

from roundtrip.console.support.render import Templates
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.verdicts.risks import Risk
from roundtrip.domain.verdicts.words import level_word

MOST = 18
"""Characters that fit beside the size and the button, on 360 pixels."""


def bar(level: Level, code: str, *risks: Risk) -> str:
    verdict = SimpleNamespace(code=code)
    values = {
        "check": SimpleNamespace(address="0x12", verdict=verdict, trade=None), "amount": "0.01",
        "colour": level, "word": level_word(level, code), "has_pool": True, "is_tradable": True,
        "is_sized": False, "grave": next((risk for risk in risks if risk.level == "danger"), None),
    }  # fmt: skip
    return Templates({}).render("stays_piece.html", **values)


@pytest.mark.parametrize(
    ("level", "code"),
    [
        ("ok", "ok"), ("warn", "ok"), ("warn", "thin_pool"), ("warn", "toll_pool"), ("warn", "high_fees"),
        ("warn", "heavy_fees"),
    ],
)  # fmt: skip
def test_what_can_be_bought_has_a_short_word_and_a_button(level: Level, code: str) -> None:
    text = bar(level, code)
    word = text.partition("<strong")[2].partition(">")[2].partition("<")[0]
    assert 0 < len(word) <= MOST
    assert ">Buy</a>" in text


@pytest.mark.parametrize(
    ("level", "code"), [("danger", "cannot_sell"), ("danger", "thin_pool"), ("warn", "cannot_buy")]
)
def test_what_should_not_be_bought_has_its_whole_word_and_no_button(level: Level, code: str) -> None:
    text = bar(level, code)
    assert level_word(level, code) in text
    assert "<a" not in text


@pytest.mark.parametrize(
    ("risk", "words"),
    [
        (Risk("insiders", "danger", "insiders hold 40.74 %"), "▲ insiders 40.74 %"),
        (Risk("liquidity", "danger", "100 % of liquidity can be withdrawn"), "▲ liquidity can leave"),
        (Risk("owner", "danger", "its owner can stop sells"), "▲ its owner can stop sells"),
    ],
)
def test_a_grave_risk_stands_in_the_bar_and_the_button_does_not_call(risk: Risk, words: str) -> None:
    young = Risk("age", "warn", "launched a minute ago")
    text = bar("ok", "ok", young, risk)
    assert f">{words}</small>" in text
    assert "primary" not in text
    assert "at 0.01 ETH" not in text
    calm = bar("ok", "ok", young)
    assert "primary" in calm
    assert "at 0.01 ETH" in calm
    assert "▲" not in bar("danger", "cannot_sell", risk)
