"""The verdict that a row of a page shows."""

import pytest

from roundtrip.domain.market.exposure import EXPOSED_FOR_S, TokenExposure
from roundtrip.domain.market.moving import CheckedLevel, TokenChecks
from roundtrip.domain.verdicts.words import level_word
from roundtrip.services.boards.shown_verdict import present_stored

NOW_S = 1_700_000_000.0


@pytest.mark.parametrize(
    ("level", "insiders_bps", "age_s", "expected"),
    [
        ("ok", 2000, 0, ("warn", "insiders")),
        ("ok", 1999, 0, ("ok", None)),
        ("ok", None, 0, ("unknown", "insiders_unknown")),
        # Wallets trade: an old reading says nothing.
        ("ok", 9000, EXPOSED_FOR_S + 1, ("unknown", "insiders_unknown")),
        ("warn", 9000, 0, ("warn", None)),
        ("unknown", 9000, 0, ("unknown", None)),
    ],
)
def test_what_insiders_hold_takes_the_green_of_a_row(
    level: str, insiders_bps: int | None, age_s: int, expected: tuple[str, str | None]
) -> None:
    exposure = TokenExposure(insiders_bps, NOW_S - age_s)
    shown = present_stored(TokenChecks(CheckedLevel("ok", level, NOW_S), None, exposure=exposure), NOW_S)
    assert shown is not None
    assert (shown.level, shown.catch) == expected


def test_a_row_says_that_it_sells_and_that_insiders_are_not_known() -> None:
    young = CheckedLevel("ok", "ok", NOW_S)
    old = CheckedLevel("ok", "ok", NOW_S - 90_000)
    words = [
        level_word(shown.level, shown.code, shown.catch)
        for checked in (young, old)
        if (shown := present_stored(TokenChecks(checked, None), NOW_S)) is not None
    ]
    assert words == ["Can sell, insiders not known", "Not known"]


def test_an_old_check_keeps_what_it_caught() -> None:
    old = CheckedLevel("ok", "warn", NOW_S - 90_000, catch="hour")
    shown = present_stored(TokenChecks(old, None), NOW_S)
    assert shown is not None
    assert (shown.level, shown.catch) == ("unknown", "hour")
