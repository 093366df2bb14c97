"""Errors that wrap another one (ERC-7751 and its like), encoded with eth_abi, and errors known by name."""

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.simulate.error_selectors import KNOWN
from roundtrip.chain.simulate.revert_reason import Shortfall, reason_in, shortfall_in
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
def test_a_known_error_has_its_name(signature: str) -> None:
    assert reason_in(selector(signature)) == NAMED[signature]


@pytest.mark.parametrize("signature", [one for one in NAMED if one.endswith("()")])
def test_what_follows_an_error_without_arguments_is_not_told(signature: str) -> None:
    assert reason_in(selector(signature) + word(1) + word(2)) == NAMED[signature]


def test_a_known_error_with_arguments_tells_them() -> None:
    assert reason_in(selector("InsufficientBalance(uint256,uint256)") + word(1) + word(2)) == (
        "InsufficientBalance(1, 2)"
    )


@pytest.mark.parametrize("name", ["V4TooLittleReceived", "V4TooMuchRequested", "SlippageExceeded"])
def test_the_numbers_of_a_swaps_own_limit_are_not_told(name: str) -> None:
    assert reason_in(selector(f"{name}(uint256,uint256)") + word(1) + word(2)) == name


def test_every_error_with_a_name_here_is_known() -> None:
    for signature, name in NAMED.items():
        assert KNOWN[selector(signature)].name == name


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


# --- the Universal Router's and the quoter's -------------------------------------------------------

FAILED = selector("ExecutionFailed(uint256,bytes)")
UNEXPECTED = selector("UnexpectedRevertBytes(bytes)")


def failed(message: bytes, command: int = 3) -> bytes:
    """As the Universal Router hands on what a command said."""
    return FAILED + encode(["uint256", "bytes"], [command, message])


def unexpected(message: bytes) -> bytes:
    """As v4's quoter hands on what a swap said."""
    return UNEXPECTED + encode(["bytes"], [message])


def test_the_routers_error_is_laid_out_as_it_is_here() -> None:
    """By hand: selector, command 3, where the bytes begin, how many, and they."""
    inner = "f4d678b8".ljust(64, "0")
    data = bytes.fromhex(f"2c4029e9{3:064x}{64:064x}{4:064x}{inner}")
    assert data == failed(bytes.fromhex("f4d678b8"))
    assert reason_in(data) == "InsufficientBalance"


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (error_string("IIA"), "IIA"),
        (bytes.fromhex("4e487b71") + word(0x11), "arithmetic overflow"),
        (selector("V3TooLittleReceived()"), "V3TooLittleReceived"),
        (selector("SlippageExceeded(uint256,uint256)") + word(5) + word(7), "SlippageExceeded"),
        (selector("Nobody()"), f"custom error 0x{selector('Nobody()').hex()}"),
        (wrap(error_string("trading is not open yet")), "trading is not open yet"),
    ],
    ids=["a text", "a panic", "a known error", "one with arguments", "a strange error", "a wrapped one"],
)
def test_what_a_command_or_a_quote_said_is_what_is_told(inner: bytes, reason: str) -> None:
    assert reason_in(failed(inner)) == reason
    assert reason_in(unexpected(inner)) == reason


@pytest.mark.parametrize("inner", [b"", b"\x08\xc3", error_string("")], ids=["nothing", "half", "empty"])
def test_a_command_that_failed_without_a_word_is_told_by_its_errors_name(inner: bytes) -> None:
    assert reason_in(failed(inner)) == "ExecutionFailed"
    assert reason_in(unexpected(inner)) == "UnexpectedRevertBytes"


def test_each_kind_of_wrapping_is_opened_once() -> None:
    assert reason_in(failed(unexpected(wrap(error_string("deep"))))) == "deep"
    assert reason_in(failed(failed(error_string("deep")))) == "ExecutionFailed"
    assert reason_in(failed(wrap(failed(error_string("deep"))))) == "WrappedError"
    assert reason_in(wrap(failed(wrap(error_string("deep"))))) == "ExecutionFailed"


@pytest.mark.parametrize("offset", [0, 32, 2**31, 2**256 - 1])
def test_an_execution_that_points_elsewhere_says_only_what_it_is(offset: int) -> None:
    data = FAILED + word(3) + word(offset) + word(68) + error_string("not this one")
    assert reason_in(data) == "ExecutionFailed"


def test_a_reason_that_lies_beyond_what_is_read_is_not_looked_for() -> None:
    near, far = (
        (word(3) + word(at)).ljust(at, b"\0") + word(100) + error_string("far") for at in (512, 2048)
    )
    assert reason_in(FAILED + near) == "far"
    assert reason_in(FAILED + far) == "ExecutionFailed"


@given(st.integers(0, 2**256 - 1), st.integers(0, 2**256 - 1), st.binary(max_size=300))
def test_whatever_an_execution_claims_of_itself_never_raises(at: int, size: int, rest: bytes) -> None:
    for data in (FAILED + word(1) + word(at) + word(size) + rest, UNEXPECTED + word(at) + word(size) + rest):
        reason = reason_in(data)
        assert isinstance(reason, str)
        assert len(reason) <= 1024


# --- a minimum that is not met ---------------------------------------------------------------------

TOO_LITTLE = selector("V4TooLittleReceived(uint256,uint256)") + word(100) + word(90)
CURVE_SHORT = selector("SlippageExceeded(uint256,uint256)") + word(90) + word(100)


@pytest.mark.parametrize(
    ("data", "brought_raw"),
    [
        (TOO_LITTLE, 90), (failed(TOO_LITTLE), 90), (CURVE_SHORT, 90),
        (error_string("Too little received"), None), (error_string("Insufficient WETH9"), None),
        (selector("V3TooLittleReceived()"), None), (selector("InsufficientETH()"), None),
        (failed(selector("V3TooLittleReceived()")), None),
    ],
    ids=[
        "v4", "the Universal Router", "a curve", "v3", "v3's weth", "v3's second route", "its weth", "both",
    ],
)  # fmt: skip
def test_a_shortfall_is_what_the_router_measured(data: bytes, brought_raw: int | None) -> None:
    assert shortfall_in(data) == Shortfall(brought_raw)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x08\xc3", error_string("paused"), selector("V4TooLittleReceived(uint256,uint256)") + word(1),
        failed(b""), failed(error_string("V4TooLittleReceived(100, 90)")), selector("CurrencyNotSettled()"),
        # A hook may state any amount; the manager wraps what it says.
        wrap(TOO_LITTLE), failed(wrap(TOO_LITTLE)), failed(failed(TOO_LITTLE)),
        wrap(selector("V3TooLittleReceived()")), error_string("V3TooLittleReceived"),
    ],
)  # fmt: skip
def test_what_a_stranger_says_is_no_shortfall(data: bytes) -> None:
    assert shortfall_in(data) is None


# --- cut -------------------------------------------------------------------------------------------


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
