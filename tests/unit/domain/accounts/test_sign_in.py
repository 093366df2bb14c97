"""The text that is signed for a key."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.accounts.keys import (
    CLAIM_BYTES,
    LIFETIME_S,
    WINDOW_S,
    SignInSite,
    SignInWallet,
    nonce,
    text,
    valid_texts,
    valid_windows,
    window,
)
from roundtrip.domain.base.types import Address

SECRET = bytes(range(32))
WALLET = SignInWallet(Address("0x" + "ab" * 20), "0x" + "Ab" * 20, 3)
ASKER = SignInSite("https://roundtrip.example:8443", 4663)
AT_S = st.floats(min_value=1_000_000, max_value=4_000_000_000)


def test_the_text_is_the_one_of_eip_4361() -> None:
    made = text(ASKER, WALLET, SECRET, 29_333_333)
    assert made == (
        "roundtrip.example:8443 wants you to sign in with your Ethereum account:\n"
        f"{WALLET.shown}\n"
        "\n"
        "Make an API key for this wallet. Signing moves nothing and costs nothing.\n"
        "\n"
        "URI: https://roundtrip.example:8443\n"
        "Version: 1\n"
        "Chain ID: 4663\n"
        f"Nonce: {nonce(SECRET, WALLET, 29_333_333)}\n"
        "Issued At: 2025-10-09T08:53:00Z\n"
        "Expiration Time: 2025-10-09T09:03:00Z"
    )


def test_the_nonce_is_long_enough_and_of_letters_and_digits_only() -> None:
    assert re.fullmatch("[0-9a-f]{32}", nonce(SECRET, WALLET, 7))


def test_the_nonce_depends_on_all_that_it_is_made_from() -> None:
    other = SignInWallet(Address("0x" + "ac" * 20), WALLET.shown, 3)
    later = SignInWallet(WALLET.address, WALLET.shown, 4)
    made = [nonce(SECRET, WALLET, 7), nonce(SECRET, WALLET, 8), nonce(SECRET[::-1], WALLET, 7)]
    made += [nonce(SECRET, other, 7), nonce(SECRET, later, 7)]
    made += [nonce(SECRET, WALLET, 7, bytes(CLAIM_BYTES)), nonce(SECRET, WALLET, 7, b"\1" * CLAIM_BYTES)]
    assert len(set(made)) == 7


def test_a_claim_of_another_length_is_refused() -> None:
    """What a shorter one leaves out must not be made up for by what stands before it."""
    for length in (1, CLAIM_BYTES - 1, CLAIM_BYTES + 1):
        with pytest.raises(ValueError, match="32 bytes"):
            nonce(SECRET, WALLET, 7, bytes(length))


@given(st.binary(min_size=CLAIM_BYTES, max_size=CLAIM_BYTES), AT_S)
def test_a_claims_texts_are_none_of_another_claim_or_of_none(claim: bytes, now_s: float) -> None:
    plain = valid_texts(ASKER, WALLET, SECRET, now_s)
    own = valid_texts(ASKER, WALLET, SECRET, now_s, claim=claim)
    others = valid_texts(ASKER, WALLET, SECRET, now_s, claim=bytes([claim[0] ^ 1]) + claim[1:])
    assert len({*plain, *own, *others}) == 30


@given(AT_S)
def test_exactly_those_windows_are_good_whose_ten_minutes_run(now_s: float) -> None:
    near = range(window(now_s) - 30, window(now_s) + 30)
    running = {one for one in near if one * WINDOW_S <= now_s < one * WINDOW_S + LIFETIME_S}
    found = valid_windows(now_s)
    assert set(found) == running
    assert list(found) == sorted(found, reverse=True)
    assert window(now_s) in found
    assert len(found) == 10


@given(AT_S, st.floats(min_value=0, max_value=3 * LIFETIME_S))
def test_a_text_is_good_until_it_says_it_is_not(now_s: float, passed_s: float) -> None:
    asked = window(now_s)
    later_s = now_s + passed_s
    good = text(ASKER, WALLET, SECRET, asked) in valid_texts(ASKER, WALLET, SECRET, later_s)
    assert good == (later_s < asked * WINDOW_S + LIFETIME_S)
