"""The verdict that a row of a page shows."""

from roundtrip.domain.market.moving import CheckedLevel, TokenChecks, TokenExposure
from roundtrip.domain.verdicts.words import level_word
from roundtrip.services.support.shown_verdict import present_stored

NOW_S = 1_700_000_000.0


def test_what_insiders_hold_changes_no_word_and_no_colour() -> None:
    for insiders_bps in (None, 0, 9000):
        exposure = TokenExposure(insiders_bps, NOW_S)
        shown = present_stored(TokenChecks(CheckedLevel("ok", "ok", NOW_S), None, exposure=exposure), NOW_S)
        assert shown is not None
        assert (shown.level, level_word(shown.level, shown.code)) == ("ok", "Can sell")


def test_an_old_check_proves_nothing() -> None:
    shown = present_stored(TokenChecks(CheckedLevel("ok", "ok", NOW_S - 90_000), None), NOW_S)
    assert shown is not None
    assert (shown.level, level_word(shown.level, shown.code)) == ("unknown", "Not known")
