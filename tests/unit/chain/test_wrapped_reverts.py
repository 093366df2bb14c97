"""Errors that wrap another one (ERC-7751), encoded with eth_abi, and errors known by name."""

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain import reverts
from roundtrip.chain.reverts import reason_in
from unit.chain.samples import error_string, word
from unit.venues.network import address

WRAPPED = keccak(text="WrappedError(address,bytes4,bytes,bytes)")[:4]
HOOK = address(0xDEAD0080)
HEAD = 4 + 4 * 32
"""Selector and the four words that stand before the bytes."""
DETAILS = keccak(text="HookCallFailed()")[:4]
NAMED = {
    "WrappedError(address,bytes4,bytes,bytes)": "WrappedError",
    "CurrencyNotSettled()": "CurrencyNotSettled",
    "SliceOutOfBounds()": "SliceOutOfBounds",
    "V4TooLittleReceived(uint256,uint256)": "V4TooLittleReceived",
    "PoolNotInitialized()": "PoolNotInitialized",
    "CurveGraduated()": "CurveGraduated",
    "SlippageExceeded(uint256,uint256)": "SlippageExceeded",
    "ZeroAmount()": "ZeroAmount",
    "NativeValueMismatch()": "NativeValueMismatch",
    "UnexpectedNativeValue()": "UnexpectedNativeValue",
}


def wrap(reason: bytes, details: bytes = DETAILS) -> bytes:
    """As v4 hands on what a hook said."""
    return WRAPPED + encode(
        ["address", "bytes4", "bytes", "bytes"], [HOOK, b"\x57\x5e\x24\xb4", reason, details]
    )


def selector(signature: str) -> bytes:
    return keccak(text=signature)[:4]


# --- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("signature", NAMED)
@pytest.mark.parametrize("rest", [b"", word(1) + word(2)])
def test_a_known_error_has_its_name(signature: str, rest: bytes) -> None:
    if signature.startswith("Wrapped"):
        rest = b""
    assert reason_in(selector(signature) + rest) == NAMED[signature]


def test_every_known_error_has_its_signature_here() -> None:
    assert {selector(signature): name for signature, name in NAMED.items()} == reverts._KNOWN


# --- wrapped ---------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=100).filter(lambda text: not text.endswith("\0")))
def test_what_a_hook_said_is_what_is_told(text: str) -> None:
    assert reason_in(wrap(error_string(text))) == text
    assert reason_in(wrap(error_string(text), b"")) == text


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (bytes.fromhex("4e487b71") + word(0x12), "division by zero"),
        (selector("PoolNotInitialized()"), "PoolNotInitialized"),
        (selector("Nobody()") + word(7), f"custom error 0x{selector('Nobody()').hex()}"),
        (b"", "WrappedError"),
        (b"\x08\xc3", "WrappedError"),
        (error_string(""), "WrappedError"),
    ],
    ids=["a panic", "a known error", "a strange error", "nothing", "no selector", "an empty text"],
)
def test_any_error_may_be_wrapped(inner: bytes, reason: str) -> None:
    assert reason_in(wrap(inner)) == reason


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_what_is_wrapped_more_than_once_is_not_opened_again(depth: int) -> None:
    inner = error_string("deep inside")
    for _ in range(depth):
        inner = wrap(inner)
    assert reason_in(wrap(inner)) == "WrappedError"


def test_a_wrapped_error_that_is_cut_is_read_as_far_as_it_goes() -> None:
    whole = wrap(error_string("trading is not open yet"), b"")
    assert reason_in(whole) == "trading is not open yet"
    found = [reason_in(whole[:size]) for size in range(HEAD, len(whole))]
    assert set(found) >= {"WrappedError", "trading is not open yet", "trading is not o"}
    for reason in found:
        assert reason is not None
        assert "trading is not open yet".startswith(reason) or reason == "WrappedError"


def test_a_wrapped_error_cut_before_its_reason_says_only_what_it_is() -> None:
    whole = wrap(error_string("trading is not open yet"))
    assert {reason_in(whole[:size]) for size in range(4, HEAD)} == {"WrappedError"}


def test_of_a_long_wrapped_reason_only_the_beginning_is_read() -> None:
    reason = reason_in(wrap(error_string("a" * 100_000)))
    assert reason is not None
    assert set(reason) == {"a"}
    assert 500 < len(reason) <= 1024


@given(st.integers(0, 2**256 - 1), st.integers(0, 2**256 - 1), st.binary(max_size=300))
def test_whatever_a_wrapped_error_claims_of_itself_never_raises(at: int, size: int, rest: bytes) -> None:
    data = WRAPPED + word(1) + word(2) + word(at) + word(size) + rest
    reason = reason_in(data)
    assert isinstance(reason, str)
    assert len(reason) <= 1024


@given(st.binary(max_size=400))
def test_no_bytes_after_its_selector_make_it_raise(rest: bytes) -> None:
    assert isinstance(reason_in(WRAPPED + rest), str)
