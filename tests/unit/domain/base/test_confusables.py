"""What a symbol may be read as."""

import pytest

from roundtrip.domain.base.confusables import _MAX_READINGS, CONFUSABLES, list_readings


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("NVDA", "nvda"),
        ("nvda", "nvda"),
        ("NVD\u0410", "nvda"),
        ("\u039d\u2228D\u0391", "nvda"),
        ("\uff2e\uff36\uff24\uff21", "nvda"),
        ("\U0001d5e1\U0001d5e9\U0001d5d7\U0001d5d4", "nvda"),
        ("NV\u200bDA", "nvda"),
        ("N\u0301VDA", "nvda"),
        ("$NVDA", "nvda"),
        ("U\u0405DG", "usdg"),
        ("TSIA", "tsla"),
        ("TS1A", "tsla"),
        ("lBM", "ibm"),
        ("D0GE", "doge"),
        ("rnoon", "moon"),
        ("vvif", "wif"),
        ("\U0001f438", "\U0001f438"),
    ],
)
def test_a_text_is_read_as_what_it_looks_like(text: str, reading: str) -> None:
    assert reading in list_readings(text)


@pytest.mark.parametrize(
    ("text", "other"), [("PEPE", "pope"), ("pixel", "plxel"), ("ALL", "ail"), ("RNDR", "mdr"), ("A5", "as")]
)
def test_a_text_is_not_read_as_what_looks_different(text: str, other: str) -> None:
    assert other not in list_readings(text)


@pytest.mark.parametrize("text", ["", "\u200b", "\u3164"])
def test_what_shows_nothing_has_no_reading(text: str) -> None:
    assert list_readings(text) == frozenset()


def test_a_long_text_has_bounded_readings() -> None:
    """One of each letter, where every place of its own would be too many."""
    readings = list_readings("lI01O|" * 10)
    assert len(readings) <= 2 * _MAX_READINGS
    assert "ii0iei".replace("e", "o") * 10 in readings


def test_as_many_readings_as_are_allowed_are_all_read() -> None:
    """Eight letters of two readings each are 256; a ninth is one too many, and all are read as the same."""
    assert len(list_readings("I" * 8)) == _MAX_READINGS
    assert list_readings("I" * 9) == {"i" * 9, "l" * 9}


def test_each_character_looks_like_one_text_that_is_ascii() -> None:
    characters = [character for group in CONFUSABLES.values() for character in group]
    assert len(characters) == len(set(characters)) > 400
    assert all(text.isascii() and text.isalnum() for text in CONFUSABLES)
    assert not any(character.isascii() for character in characters)
