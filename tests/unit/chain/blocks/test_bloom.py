"""The bloom of logs against bits worked out by hand, and against another way of making it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.blocks.bloom import address_bits, bits, topic_bits
from support.scripted_chain import set_bits

ADDRESS = "0x" + "aB" * 20
TOPIC = "0x" + "Cd" * 32


def test_bits_worked_out_by_hand() -> None:
    # keccak of nothing begins c5d2 4601 86f7: its last eleven bits of each pair.
    assert bits(b"") == 1 << 0x5D2 | 1 << 0x601 | 1 << 0x6F7


@given(st.binary(max_size=40))
def test_bits_are_those_that_another_way_of_making_them_sets(data: bytes) -> None:
    bloom = bytearray(256)
    set_bits(bloom, data)
    assert bits(data) == int.from_bytes(bloom)


def test_upper_case_is_returned_in_lower_case() -> None:
    assert address_bits(ADDRESS) == (ADDRESS.lower(), bits(b"\xab" * 20))
    assert topic_bits(TOPIC) == (TOPIC.lower(), bits(b"\xcd" * 32))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0x",
        "ab" * 21,
        ADDRESS[:-1],
        ADDRESS + "00",
        ADDRESS[:-1] + "g",
        ADDRESS[:-2] + "  ",
        ADDRESS[:-1] + "\n",
        ADDRESS + " ",
        ADDRESS[:-1] + "٣",
        "0x" + "1_" * 20,
    ],
)
def test_what_is_no_hex_of_that_length_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hex"):
        address_bits(text)
    with pytest.raises(ValueError, match="hex"):
        topic_bits(text.replace(ADDRESS, TOPIC) if text != "ab" * 21 else "ab" * 33)
