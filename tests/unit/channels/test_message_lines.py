"""Rows as lines that fit a chat message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.channels.message_lines import cut_text, format_lines, utf16_length

Texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=400), min_size=1, max_size=30)


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@given(Texts, st.integers(1, 10), st.integers(400, 4096))
def test_whatever_the_rows_they_fit(texts: list[str], most_rows: int, most: int) -> None:
    lines = format_lines(texts, most_rows, most)
    assert utf16(lines) == utf16_length(lines) <= most
    assert lines.count("\n") == min(len(texts), most_rows) - 1 + (len(texts) > most_rows)


def test_a_row_is_a_line() -> None:
    assert format_lines(["one", " two\n\n three\u2028four "], 10, 100) == "one\ntwo three four"


def test_of_more_rows_than_there_may_be_the_number_is_told() -> None:
    assert format_lines([f"row {number}" for number in range(12)], 10, 2000).splitlines()[9:] == [
        "row 9",
        "and 2 more",
    ]


@pytest.mark.parametrize(
    ("text", "most", "found"), [("abcd", 4, "abcd"), ("abcde", 4, "abc…"), ("😀😀😀", 5, "😀😀…")]
)
def test_what_is_too_long_loses_its_end(text: str, most: int, found: str) -> None:
    assert cut_text(text, most) == found
