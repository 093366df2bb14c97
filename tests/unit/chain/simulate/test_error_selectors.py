"""The list of known errors, and the arguments they are told with."""

import itertools
import re

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.simulate.error_selectors import KNOWN, SIGNATURES
from roundtrip.chain.simulate.revert_reason import reason_in
from roundtrip.domain.base import names
from unit.chain.samples import error_string, word

WALLET = "0x00000000000000000000000000000000deadbeef"
HUGE = 2**256 - 1
GOLDEN = {
    "5212cba1": "CurrencyNotSettled",
    "3b99b53d": "SliceOutOfBounds",
    "486aa307": "PoolNotInitialized",
    "025ac17e": "CurveGraduated",
    "1f2a2005": "ZeroAmount",
    "da52ba9e": "NativeValueMismatch",
    "e0aeda7d": "UnexpectedNativeValue",
    "d93c0665": "EnforcedPause",
    "3ee5aeb5": "ReentrancyGuardReentrantCall",
    "5bf6f916": "TransactionDeadlinePassed",
    "39d35496": "V3TooLittleReceived",
    "6a12f104": "InsufficientETH",
    "54e3ca0d": "ManagerLocked",
    "756688fe": "InvalidNonce",
    "a9e35b2f": "HookCallFailed",
}
"""Selectors as explorers and sources show them, not hashed here."""


def reverted(signature: str, *values: object) -> bytes:
    """A revert as a contract makes it, encoded by eth_abi."""
    types = signature[signature.index("(") + 1 : -1]
    return keccak(text=signature)[:4] + encode(types.split(",") if types else [], values)


# --- the list --------------------------------------------------------------------------------------


def test_a_signature_is_written_as_it_is_hashed() -> None:
    kind = r"(address|bool|string|bytes|bytes([1-9]|[12][0-9]|3[0-2])|u?int[1-9][0-9]{0,2})"
    for signature in SIGNATURES:
        assert re.fullmatch(rf"[A-Z][A-Za-z0-9_]*\(({kind}(,{kind})*)?\)", signature)
        for size in re.findall(r"int([0-9]+)", signature.partition("(")[2]):
            assert int(size) % 8 == 0
            assert 8 <= int(size) <= 256


def test_a_known_error_is_found_by_its_selector() -> None:
    for signature in SIGNATURES:
        found = KNOWN[keccak(text=signature)[:4]]
        assert f"{found.name}({','.join(found.types)})" == signature


def test_no_two_signatures_share_a_selector() -> None:
    heads = [keccak(text=signature)[:4] for signature in SIGNATURES]
    assert len(set(heads)) == len(heads) == len(KNOWN)
    assert not {bytes.fromhex("08c379a0"), bytes.fromhex("4e487b71")} & set(heads)


@pytest.mark.parametrize("head", GOLDEN)
def test_a_selector_seen_elsewhere_has_its_name(head: str) -> None:
    assert reason_in(bytes.fromhex(head)) == GOLDEN[head]


# --- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (reverted("InsufficientBalance(uint256,uint256)", 5, 7), "InsufficientBalance(5, 7)"),
        (
            reverted("ERC20InsufficientBalance(address,uint256,uint256)", WALLET, 1, 2),
            f"ERC20InsufficientBalance({WALLET}, 1, 2)",
        ),
        (reverted("OwnableUnauthorizedAccount(address)", WALLET), f"OwnableUnauthorizedAccount({WALLET})"),
        (reverted("AllowanceExpired(uint256)", 1_700_000_000), "AllowanceExpired(1700000000)"),
        (reverted("TickSpacingTooSmall(int24)", -8_388_608), "TickSpacingTooSmall(-8388608)"),
        (reverted("ProtocolFeeTooLarge(uint24)", 2**24 - 1), "ProtocolFeeTooLarge(16777215)"),
        (reverted("CurveGraduated()"), "CurveGraduated"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_of_static_types_are_told(data: bytes, reason: str) -> None:
    assert reason_in(data) == reason
    assert reason_in(data + b"and more") == reason
    assert names.reason(reason) == reason, "a sentence shows it whole"


def test_addresses_and_hashes_are_shortened_before_a_number_would_be_cut() -> None:
    ether = 10**18
    short = reverted("ERC20InsufficientAllowance(address,uint256,uint256)", WALLET, ether, 2 * ether)
    assert reason_in(short) == f"ERC20InsufficientAllowance(0x0000.., {ether}, {2 * ether})"
    pool = reverted("NotEnoughLiquidity(bytes32)", bytes(range(1, 33)))
    assert reason_in(pool) == f"NotEnoughLiquidity(0x{bytes(range(1, 33)).hex()})"[:25] + "..)"


def test_a_number_is_told_whole_or_not_at_all() -> None:
    assert reason_in(reverted("SlippageExceeded(uint256,uint256)", HUGE, 1)) == "SlippageExceeded"
    room = names.REASON_LENGTH - len("AllowanceExpired()")
    assert reason_in(reverted("AllowanceExpired(uint256)", 10 ** (room - 1))) == (
        f"AllowanceExpired({10 ** (room - 1)})"
    )
    assert reason_in(reverted("AllowanceExpired(uint256)", 10**room)) == "AllowanceExpired"


@pytest.mark.parametrize("size", [4, 5, 36, 67])
def test_a_body_too_short_gives_the_bare_name(size: int) -> None:
    assert reason_in(reverted("SlippageExceeded(uint256,uint256)", 5, 7)[:size]) == "SlippageExceeded"


@pytest.mark.parametrize(
    ("signature", "body"),
    [
        ("OwnableInvalidOwner(address)", word(2**160)),
        ("ProtocolFeeTooLarge(uint24)", word(2**24)),
        ("TickSpacingTooLarge(int24)", word(2**23)),
        ("TickSpacingTooLarge(int24)", word(HUGE - 2**23)),
        ("ERC20InsufficientBalance(address,uint256,uint256)", word(HUGE) + word(1) + word(2)),
    ],
)
def test_a_word_that_is_no_such_value_gives_the_bare_name(signature: str, body: bytes) -> None:
    assert reason_in(keccak(text=signature)[:4] + body) == signature.partition("(")[0]


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("bool", True, "true"),
        ("bool", False, "false"),
        ("bytes4", b"\x57\x5e\x24\xb4", "0x575e24b4"),
        ("int256", -(2**200), str(-(2**200))),
        ("string", "text", None),
        ("bytes8", b"12345678", "0x3132333435363738"),
    ],
)
def test_every_static_type_is_told_and_no_other(
    kind: str, value: object, shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    signature = f"Strange({kind})"
    head = keccak(text=signature)[:4]
    monkeypatch.setitem(KNOWN, head, type(next(iter(KNOWN.values())))("Strange", (kind,)))
    assert reason_in(reverted(signature, value)) == (f"Strange({shown})" if shown else "Strange")
    if kind in ("bool", "bytes4", "bytes8"):
        assert reason_in(head + word(HUGE)) == "Strange"


def test_an_error_told_fits_in_a_sentence() -> None:
    for signature, number in itertools.product(SIGNATURES, (0, 1, 10**18, 2**159, HUGE)):
        kinds = KNOWN[keccak(text=signature)[:4]].types
        reason = reason_in(keccak(text=signature)[:4] + word(number) * len(kinds))
        assert reason is not None
        assert len(reason) <= names.REASON_LENGTH
        assert reason.startswith(signature.partition("(")[0])


# --- any bytes at all ------------------------------------------------------------------------------

HEADS = st.sampled_from([*KNOWN, error_string("x")[:4], bytes.fromhex("4e487b71"), b"\xee" * 4, b""])


@given(
    HEADS,
    st.lists(st.one_of(st.integers(0, 300), st.integers(0, HUGE)), max_size=6),
    st.binary(max_size=3000),
)
def test_no_bytes_make_a_reason_raise_or_grow(head: bytes, words: list[int], rest: bytes) -> None:
    data = head + b"".join(map(word, words)) + rest
    reason = reason_in(data)
    assert (reason is None) is (len(data) < 4) or head == error_string("x")[:4]
    assert reason is None or len(reason) <= 1024


@given(HEADS, st.lists(HEADS, max_size=40), st.binary(max_size=100))
def test_wrapping_without_end_comes_to_an_end(head: bytes, heads: list[bytes], rest: bytes) -> None:
    data = head + rest
    for one in heads:
        data = one + word(128) * 4 + word(len(data)) + data
    reason = reason_in(data)
    assert reason is None or len(reason) <= 1024
