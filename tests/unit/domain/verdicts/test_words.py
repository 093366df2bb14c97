"""The words of verdicts."""

import pytest

from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import CODES
from roundtrip.domain.trade.judge import LEVELS
from roundtrip.domain.verdicts.words import code_text, level_word, simulation_word


@pytest.mark.parametrize("code", [*CODES, *LEVELS, "of_an_earlier_release"])
@pytest.mark.parametrize("level", ["ok", "warn", "unknown", "danger"])
def test_a_word_is_no_code_and_promises_no_more_than_its_level(code: str, level: str) -> None:
    word = level_word(level, code)
    assert word
    assert word != code
    assert " ok" not in f" {word.lower()}"
    assert (word == "Can sell") == (
        level == "ok" and code in ("ok", "no_route", "unproven", "of_an_earlier_release")
    )
    assert (word == "Not known") == (level == "unknown")


def test_a_trap_is_named() -> None:
    assert level_word("danger", "cannot_sell") == "Honeypot: you cannot sell"
    assert level_word("warn", "ok") == "Sells, with a warning"
    assert level_word("warn", "not_a_token") == "Not a token"


def test_each_code_has_a_text() -> None:
    assert [code for code in CODES if not code_text("ok", code)] == []


@pytest.mark.parametrize(
    ("level", "code", "approvals", "sells_back", "word"),
    [
        ("ok", "ok", [], False, "Goes through"),
        ("warn", "ok", [], False, "Goes through"),
        ("ok", "ok", [], True, "Can sell"),
        ("warn", "ok", [], True, "Sells, with a warning"),
        ("ok", "ok", [False], True, "Allows a spender"),
        ("ok", "ok", [False, True], False, "Allows everything"),
        ("warn", "ok", [True], False, "Allows everything"),
        ("warn", "nothing_received", [True], False, "Allows everything"),
        ("warn", "nothing_received", [], False, "Nothing comes back"),
        ("warn", "tx_reverts", [], False, "It would fail"),
        ("warn", "tx_reverts", [True], False, "It would fail"),
        ("warn", "high_loss", [], True, "Loses much"),
        ("danger", "heavy_loss", [True], True, "Loses half or more"),
        ("danger", "cannot_sell", [True], False, "Honeypot: you cannot sell"),
        ("unknown", "unproven", [], False, "Not known"),
        ("unknown", "no_route", [True], False, "Not known"),
    ],
)
def test_what_calls_allow_is_said_before_what_they_move(
    level: Level, code: str, approvals: list[bool], sells_back: bool, word: str
) -> None:
    assert simulation_word(level, code, approvals, sells_back) == word
