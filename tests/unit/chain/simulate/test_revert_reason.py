"""What bytes of a revert say; they are written by whoever deployed the contract."""

import pytest
from eth_abi.abi import encode
from hypothesis import example, given
from hypothesis import strategies as st

from roundtrip.chain.simulate.revert_reason import reason_in
from unit.chain.samples import error_string, refused, word

ERROR = bytes.fromhex("08c379a0")
PANIC = bytes.fromhex("4e487b71")
HUGE = 2**256 - 1


def text_of(length: int, body: bytes) -> bytes:
    return ERROR + word(32) + word(length) + body


@given(st.text(min_size=1, max_size=200).filter(lambda text: not text.endswith("\0")))
def test_an_errors_text_comes_back_as_it_was_written(text: str) -> None:
    assert reason_in(ERROR + encode(["string"], [text])) == text
    assert reason_in(error_string(text)) == text


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (0x00, "a panic of no stated kind"),
        (0x01, "an assertion failed"),
        (0x11, "arithmetic overflow"),
        (0x12, "division by zero"),
        (0x21, "no such value of an enum"),
        (0x22, "badly encoded bytes in storage"),
        (0x31, "pop from an empty array"),
        (0x32, "index out of bounds"),
        (0x41, "out of memory"),
        (0x51, "call of a function that was never set"),
        (0x52, "panic 82"),
        (HUGE, f"panic {HUGE}"),
    ],
)
def test_a_panic_is_told_by_its_number(number: int, reason: str) -> None:
    assert reason_in(PANIC + word(number)) == reason


def test_a_panic_without_its_number_is_a_custom_error() -> None:
    assert reason_in(PANIC + word(1)[:31]) == "custom error 0x4e487b71"


@pytest.mark.parametrize("rest", [b"", b"\1", bytes(64)])
def test_a_custom_error_is_told_by_its_selector(rest: bytes) -> None:
    assert reason_in(bytes.fromhex("5212cba2") + rest) == "custom error 0x5212cba2"


@pytest.mark.parametrize("data", [b"", b"\x08", ERROR[:3]])
def test_fewer_bytes_than_a_selector_give_no_reason(data: bytes) -> None:
    assert reason_in(data) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (error_string("trading is not open yet")[:-9], "trading is not open yet"),
        (error_string("trading is not open yet")[:84], "trading is not o"),
        (text_of(4000, b"said too early"), "said too early"),
        (error_string("x")[:68], None),
        (ERROR, None),
    ],
    ids=["its padding is cut", "the text is cut", "it claims more than is there", "only the head", "nothing"],
)
def test_a_text_that_is_cut_is_read_as_far_as_it_goes(data: bytes, reason: str | None) -> None:
    assert reason_in(data) == reason


def test_a_text_ends_where_it_says_also_when_its_padding_is_not_zero() -> None:
    assert reason_in(text_of(4, b"nope" + b"x" * 28)) == "nope"


def test_an_empty_text_is_no_reason() -> None:
    assert not reason_in(error_string(""))


@pytest.mark.parametrize("length", [2**40, 2**62, 2**63 - 1024])
def test_a_text_that_claims_to_be_huge_is_read_as_far_as_it_goes(length: int) -> None:
    assert reason_in(text_of(length, b"mine")) == "mine"


@pytest.mark.parametrize("length", [2**63, 2**255, HUGE])
def test_a_text_that_claims_to_be_endless_is_read_as_far_as_it_goes(length: int) -> None:
    assert reason_in(text_of(length, b"mine")) == "mine"


@pytest.mark.parametrize("offset", [31, 64, 2**31, 2**63, HUGE])
def test_a_text_that_points_elsewhere_does_not_raise(offset: int) -> None:
    reason = reason_in(ERROR + word(offset) + word(4) + b"here".ljust(32, b"\0"))
    assert reason is None or len(reason) < 1024


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    assert reason_in(text_of(3, b"a\xffb".ljust(32, b"\0"))) == "a\ufffdb"


def test_of_a_megabyte_only_the_beginning_is_read() -> None:
    reason = reason_in(text_of(2**20, b"a" * 2**20))
    assert reason is not None
    assert set(reason) == {"a"}
    assert 900 < len(reason) <= 1024
    assert reason_in(b"\xee" * 2**20) == "custom error 0xeeeeeeee"


@given(st.binary(max_size=200))
@example(b"")
def test_no_bytes_at_all_make_it_raise(data: bytes) -> None:
    assert reason_in(data) is None or isinstance(reason_in(data), str)


@given(
    st.sampled_from([ERROR, PANIC]), st.integers(0, 2**63 - 1), st.integers(0, 2**62), st.binary(max_size=80)
)
def test_no_text_of_a_known_kind_makes_it_raise(head: bytes, offset: int, length: int, rest: bytes) -> None:
    data = head + word(offset) + word(length) + rest
    reason = reason_in(data)
    assert reason is None or isinstance(reason, str)


@given(st.sampled_from([ERROR, PANIC]), st.sampled_from([0, 32, HUGE]), st.integers(2**63, HUGE))
def test_no_endless_text_of_a_known_kind_makes_it_raise(head: bytes, offset: int, length: int) -> None:
    reason = reason_in(head + word(offset) + word(length) + bytes(32))
    assert reason is None or isinstance(reason, str)


def test_a_step_that_ran_out_of_gas_says_so_and_nothing_else() -> None:
    assert refused(out_of_gas=True).reason() == "out of gas"
    assert refused(error_string("closed")).reason() == "closed"
    assert refused().reason() is None
