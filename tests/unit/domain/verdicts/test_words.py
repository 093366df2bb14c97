"""The words of verdicts."""

import pytest

from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.check.verdict import CODES
from roundtrip.domain.trade.judge import LEVELS
from roundtrip.domain.verdicts.words import code_text, level_word, simulation_word

WARN: tuple[Level, ...] = ("warn",)


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
    ("level", "unlimited", "sells_back", "expected"),
    [
        ("ok", None, False, ("unknown", "Goes through")),
        ("warn", None, False, ("warn", "Goes through")),
        ("ok", False, False, ("warn", "Allows a spender")),
        ("ok", True, False, ("danger", "Allows everything")),
        ("ok", True, True, ("danger", "Allows everything")),
        ("warn", True, False, ("danger", "Allows everything")),
        ("warn", False, True, ("warn", "Allows a spender")),
        ("warn", None, True, ("warn", "Very high fees")),
        ("danger", True, True, ("danger", "Very high fees")),
        ("unknown", None, False, ("unknown", "Not known")),
    ],
)
def test_what_calls_allow_is_said_before_what_they_move(
    level: Level, unlimited: bool | None, sells_back: bool, expected: tuple[str, str]
) -> None:
    approvals = [] if unlimited is None else [unlimited]
    assert simulation_word(level, "heavy_fees", approvals, sells_back) == expected


def test_the_colour_of_a_simulation_is_never_better_than_its_level() -> None:
    badness = ("ok", "warn", "unknown", "danger")
    levels: list[tuple[Level, str]] = [
        (level, code) for code, best in LEVELS.items() for level in (best, "warn")
    ]
    for level, code in levels:
        for approvals in ([], [False], [True]):
            for sells_back in (False, True):
                colour, _ = simulation_word(level, code, approvals, sells_back)
                assert badness.index(colour) >= badness.index(level)
