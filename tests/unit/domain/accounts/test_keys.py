"""How keys and designations are written, and what is no key."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.accounts import keys
from roundtrip.domain.accounts.account import MAX_TRIES, agent_name, designation

CHANCE = st.binary(min_size=32, max_size=32)
LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def number_in(key: str) -> int:
    """What its 43 characters say."""
    found = 0
    for letter in key[3:46]:
        found = found * 62 + LETTERS.index(letter)
    return found


@given(CHANCE)
def test_a_key_has_all_of_its_chance_in_it(chance: bytes) -> None:
    key = keys.format_key(chance)
    assert re.fullmatch("rt_[0-9A-Za-z]{49}", key)
    assert number_in(key) == int.from_bytes(chance, "big")
    assert keys.is_key(key)
    assert keys.start_of(key) == key[:8]
    assert len(keys.hash_of(key)) == 32


@given(CHANCE)
def test_a_session_is_no_key_and_a_key_no_session(chance: bytes) -> None:
    key, session = keys.format_key(chance), keys.format_key(chance, keys.SESSION_PREFIX)
    assert (keys.is_key(key), keys.is_session(key)) == (True, False)
    assert (keys.is_key(session), keys.is_session(session)) == (False, True)
    assert keys.hash_of(key) != keys.hash_of(session)
    # Nor one with the other's beginning.
    for other in ("rs_" + key[3:], "rt_" + session[3:]):
        assert not keys.is_key_or_session(other)
    assert keys.without_keys(session) == session[:8] + "..."


def test_known_keys() -> None:
    """The format does not change behind the backs of those who have one."""
    assert keys.format_key(bytes(32)) == "rt_" + "0" * 43 + "1yFFu2"
    assert keys.format_key(b"\xff" * 32) == "rt_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp13WAJ5q"
    assert keys.hash_of(keys.format_key(bytes(32))).hex().startswith("968921b1")


@given(CHANCE, st.integers(0, 51), st.sampled_from(LETTERS + "_- \n\u0660é"))
def test_one_wrong_character_is_told(chance: bytes, at: int, wrong: str) -> None:
    key = keys.format_key(chance)
    typo = key[:at] + wrong + key[at + 1 :]
    assert keys.is_key(typo) == (typo == key)


@given(CHANCE, st.integers(3, 50))
def test_two_swapped_characters_are_told(chance: bytes, at: int) -> None:
    key = keys.format_key(chance)
    swapped = key[:at] + key[at + 1] + key[at] + key[at + 2 :]
    assert keys.is_key(swapped) == (swapped == key)


@given(CHANCE)
def test_what_is_around_a_key_is_told(chance: bytes) -> None:
    key = keys.format_key(chance)
    for wrong in ("", key[:-1], key + "0", key + "\n", " " + key, key.upper(), key[3:], "xx_" + key[3:]):
        assert not keys.is_key(wrong)
        with pytest.raises(ValueError, match="not how a key is written"):
            keys.hash_of(wrong)


@given(st.text(max_size=80))
def test_no_text_breaks_the_reading_of_it(text: str) -> None:
    assert not keys.is_key(text)


@given(CHANCE, st.integers(9, 52))
def test_a_key_in_a_text_is_cut_to_its_start_also_when_it_is_no_whole_key(chance: bytes, length: int) -> None:
    key = keys.format_key(chance)[:length]
    assert (
        keys.without_keys(f"field `{key}`, `part_of`: {key}")
        == f"field `{key[:8]}...`, `part_of`: {key[:8]}..."
    )


def test_a_key_is_made_of_32_bytes() -> None:
    for size in (0, 16, 31, 33):
        with pytest.raises(ValueError, match="32 bytes"):
            keys.format_key(bytes(size))


@given(CHANCE, st.integers(0, MAX_TRIES - 1))
def test_a_designation_gets_longer_where_many_are_taken(chance: bytes, tries: int) -> None:
    made = designation(chance, tries)
    assert re.fullmatch(rf"mite-[2-9a-hjkmnp-z]{{{4 + tries // 8}}}", made)


def test_designations_are_spread_over_all_there_are() -> None:
    made = {designation(number.to_bytes(32, "big"), 0) for number in range(31**4)}
    assert len(made) == 31**4


@pytest.mark.parametrize(
    ("given_", "kept"), [("Bot", "Bot"), ("  My   Bot 9 ", "My Bot 9"), ("a" * 24, "a" * 24), ("7", "7")]
)
def test_names_of_agents(given_: str, kept: str) -> None:
    assert agent_name(given_) == kept


@pytest.mark.parametrize(
    "wrong", ["", "   ", "a" * 25, "a_b", "a-b", "a\n", "a\tb", "<b>", "Bоt", "bot\u202e", "é", "٣", "🤖"]
)
def test_what_is_no_name_of_an_agent(wrong: str) -> None:
    with pytest.raises(ValueError, match="1 to 24 Latin letters"):
        agent_name(wrong)
