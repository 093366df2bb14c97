"""What is sealed opens with its key, unchanged, and not otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.channels.secrets import Seal, Unsealable

KEY, NONCE = bytes(range(32)), bytes(range(100, 112))
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary(min_size=12, max_size=40))
def test_what_is_sealed_opens_again(text: str, entropy: bytes) -> None:
    assert Seal(KEY).unseal(Seal(KEY).seal(text, entropy)) == text


def test_it_is_not_to_be_read_in_what_is_sealed() -> None:
    sealed = Seal(KEY).seal(SECRET, NONCE)
    assert SECRET.encode() not in sealed
    assert sealed[:13] == b"\x01" + NONCE
    assert len(sealed) == 1 + 12 + len(SECRET) + 16
    assert sealed != Seal(KEY).seal(SECRET, NONCE[::-1])


@given(st.integers(0, 1 + 12 + len(SECRET) + 15), st.integers(1, 255))
def test_changed_anywhere_it_does_not_open(at: int, by: int) -> None:
    sealed = bytearray(Seal(KEY).seal(SECRET, NONCE))
    sealed[at] ^= by
    with pytest.raises(Unsealable):
        Seal(KEY).unseal(bytes(sealed))


@pytest.mark.parametrize("length", [0, 1, 5, 13, 28, 30])
def test_cut_short_it_does_not_open(length: int) -> None:
    with pytest.raises(Unsealable):
        Seal(KEY).unseal(Seal(KEY).seal(SECRET, NONCE)[:length])


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(Unsealable):
        Seal(KEY[::-1]).unseal(Seal(KEY).seal(SECRET, NONCE))


@pytest.mark.parametrize("key", [b"", KEY[:16], KEY[:31], KEY + b"x"])
def test_a_key_has_32_bytes(key: bytes) -> None:
    with pytest.raises(ValueError, match="32"):
        Seal(key)


def test_too_little_chance_is_refused_and_nothing_shows_the_key() -> None:
    with pytest.raises(ValueError, match="12"):
        Seal(KEY).seal(SECRET, NONCE[:11])
    assert KEY.hex() not in repr(Seal(KEY))
    assert repr(KEY) not in repr(vars(Seal(KEY)))
