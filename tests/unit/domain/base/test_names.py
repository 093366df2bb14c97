"""Text by strangers is shown harmless: visible, short, in one direction."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.domain.base import names

QUICK = settings(max_examples=200, deadline=None)

# Unicode's Default_Ignorable_Code_Point, written out: what a renderer shows nothing for.
IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
MONGOLIAN_SELECTORS = "\u180b\u180c\u180d\u180f"
BLANK_BRAILLE = "\u2800"

nasty = st.one_of(
    st.characters(),
    st.characters(categories=("Cs", "Cf", "Cc", "Co", "Cn")),
    st.characters(categories=("Mn", "Me", "Mc")),
    st.characters(categories=("Zs", "Zl", "Zp")),
    st.sampled_from("\u202e\u2066\u2069\u200f\ufeff\u00ad\U000e0041\ufe0f\u3164\u2800\u034f\"'"),
).filter(lambda character: character not in MONGOLIAN_SELECTORS)
Nasty = st.text(nasty, max_size=300)


def is_invisible(character: str) -> bool:
    return character == BLANK_BRAILLE or any(low <= ord(character) <= high for low, high in IGNORABLE)


def longest_pile(text: str) -> int:
    longest = pile = 0
    for character in text:
        pile = pile + 1 if unicodedata.category(character).startswith("M") else 0
        longest = max(longest, pile)
    return longest


@QUICK
@given(Nasty, st.integers(1, 100))
def test_cleaned_text_is_printable_bounded_and_visible(text: str, length: int) -> None:
    found = names.clean(text, length)
    assert found.isprintable()
    assert len(found) <= length
    assert not any(is_invisible(character) for character in found)
    assert longest_pile(found) <= 3
    assert found == " ".join(found.split())
    found.encode()  # no surrogates


@QUICK
@given(Nasty, st.integers(1, 100))
def test_cleaning_twice_changes_nothing_more(text: str, length: int) -> None:
    found = names.clean(text, length)
    assert names.clean(found, length) == found


@QUICK
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=32))
def test_plain_text_is_left_alone(text: str) -> None:
    assert names.clean(text, 32) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("US\u200bDC", "USDC"),
        ("\u202eCDSU", "CDSU"),
        ("a\U000e0041\U000e0042b", "ab"),
        ("  a \u3000\n\t b  ", "a b"),
        ("a\x00b", "ab"),
        ("a\ud800b", "ab"),
        ("z" + "\u0301" * 50, "z" + "\u0301" * 3),
        ("\u4e2d\u6587 \u05e9 \U0001f680", "\u4e2d\u6587 \u05e9 \U0001f680"),
        ("\u3164", ""),
    ],
)
def test_known_tricks_are_taken_out(text: str, shown: str) -> None:
    assert names.clean(text, 32) == shown


@pytest.mark.parametrize("selector", MONGOLIAN_SELECTORS)
def test_mongolian_selectors_are_invisible_too(selector: str) -> None:
    assert names.clean(f"US{selector}DC", 32) == "USDC"


@pytest.mark.parametrize("piece", ["a", " ", "\u200b", "\u0301", "\u202e", "\U0001f680", '"'])
def test_a_megabyte_is_cleaned_like_anything_else(piece: str) -> None:
    found = names.clean(piece * 2**20, 64)
    assert len(found) <= 64
    assert found.isprintable()


def test_lengths_are_the_decided_ones() -> None:
    long = "x" * 1000
    assert len(names.symbol(long) or "") == 32
    assert len(names.name(long) or "") == 64
    assert len(names.reason(long)) == 80


@pytest.mark.parametrize("text", ["", " ", "\u200b\u202e", "\u3164\u3164", "\ud800"])
def test_nothing_visible_is_no_symbol_and_no_name(text: str) -> None:
    assert names.symbol(text) is None
    assert names.name(text) is None


@QUICK
@given(Nasty)
def test_a_reason_has_no_double_quotes(text: str) -> None:
    assert '"' not in names.reason(text)


@pytest.mark.parametrize(
    "text", ["\u02ba", "\u02dd", "\u02ee", "\u05f4", "\u3003", "''", "'\"'", "\u201d'\u3003"]
)
def test_nothing_in_a_reason_looks_like_its_end(text: str) -> None:
    assert names.reason(f"a{text}b") == "a'b"


def abi_string(text: bytes, head: int = 32) -> bytes:
    padded = text + b"\0" * (-len(text) % 32)
    return head.to_bytes(32, "big") + b"\0" * (head - 32) + len(text).to_bytes(32, "big") + padded


@QUICK
@given(st.text(max_size=200), st.sampled_from([32, 64, 96]))
def test_an_abi_string_is_read_back(text: str, head: int) -> None:
    assert names.text_in(abi_string(text.encode(), head)) == text


@QUICK
@given(st.text(st.characters(min_codepoint=1, max_codepoint=0x7F), max_size=32))
def test_a_bytes32_text_is_read_back(text: str) -> None:
    assert names.text_in(text.encode().ljust(32, b"\0")) == text


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.tuples(st.integers(0, 300), st.integers(0, 400), st.binary(max_size=200)).map(
            lambda t: t[0].to_bytes(32, "big") + t[1].to_bytes(32, "big") + t[2]
        ),
    )
)
def test_arbitrary_bytes_are_text_or_none(data: bytes) -> None:
    found = names.text_in(data)
    assert found is None or len(found) <= len(data)


@pytest.mark.parametrize("size", [0, 1, 31, 33, 63])
def test_answers_of_another_shape_are_none(size: int) -> None:
    assert names.text_in(b"a" * size) is None


def test_a_length_beyond_the_answer_is_none() -> None:
    assert names.text_in((32).to_bytes(32, "big") + (2**255).to_bytes(32, "big") + b"abc") is None
    assert names.text_in((2**256 - 1).to_bytes(32, "big") * 3) is None


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    assert names.text_in(abi_string(b"a\xffb")) == "a\ufffdb"
