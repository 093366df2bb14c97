"""The least block of an answer, as a request shows it."""

import pytest

from roundtrip.api.request.min_block import read_min_block, shown_min_blocks
from roundtrip.domain.base.errors import CallerFault


def read(*headers: bytes, meta: object = None) -> int:
    shown = [(b"accept", b"5"), *((b"x-min-block", one) for one in headers)]
    return read_min_block(shown_min_blocks(shown, meta))


def test_the_highest_that_is_shown_counts() -> None:
    assert read() == 0
    assert read(b"12") == 12
    assert read(b" 12 ", b"7") == 12
    assert read(b"12", meta={"minBlock": 13}) == 13
    assert read(meta={"minBlock": "13", "other": 1}) == 13
    assert read(meta=["minBlock"]) == 0
    assert read(meta={"minBlock": None}) == 0


@pytest.mark.parametrize(
    "expected", [b"", b"-1", b"0x10", b"1.0", b"latest", b"1" * 16, b"\xff", "١".encode()]
)
def test_what_is_no_number_of_a_block_is_refused(expected: bytes) -> None:
    with pytest.raises(CallerFault, match="number of a block") as caught:
        read(expected)
    assert caught.value.code == "bad_input"


@pytest.mark.parametrize("expected", [True, -1, 1.5, "x", [1], {}, 10**15, "١"])
def test_what_is_none_in_the_envelope_is_refused(expected: object) -> None:
    with pytest.raises(CallerFault, match="number of a block"):
        read(meta={"minBlock": expected})
