"""The gas that a call's data costs, and where it is added."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.rpc.data_fee import NO_DATA_FEE, DataFee

RECORDED = DataFee(22_780 * 10**8, 10**8)
"""Of a call without calldata, as nitro answered."""
PLAIN_BYTES = 142


def charged_gas(data: bytes, fee: DataFee, base_fee_wei: int) -> int:
    """What nitro charges, with another compressor of much the same strength."""
    size = PLAIN_BYTES + len(zlib.compress(data, 1)) if data else PLAIN_BYTES
    return fee.wei * size // PLAIN_BYTES // base_fee_wei


def test_without_a_fee_no_gas_is_added() -> None:
    assert NO_DATA_FEE.gas("0x" + "ff" * 1000, 10**8) == 0


@pytest.mark.parametrize("base_fee_wei", [10**7, 10**8, 10**11])
@given(st.binary(max_size=2000))
def test_no_calldata_costs_more_than_is_added(base_fee_wei: int, data: bytes) -> None:
    assert RECORDED.gas("0x" + data.hex(), base_fee_wei) >= charged_gas(data, RECORDED, base_fee_wei)


@given(st.lists(st.sampled_from([0, 0, 0, 0, 1, 7, 2**160 - 3, 2**256 - 1]), max_size=40))
def test_a_usual_calldata_costs_at_most_a_third_of_what_is_added_for_noise(values: list[int]) -> None:
    data = b"".join(value.to_bytes(32, "big") for value in values)
    added = RECORDED.gas("0x" + data.hex(), 10**8)
    assert charged_gas(data, RECORDED, 10**8) <= added
    assert added <= RECORDED.gas("0x" + "a7" * len(data), 10**8)


def test_the_fee_is_in_wei_so_its_gas_falls_as_the_base_fee_rises() -> None:
    assert RECORDED.gas("0x", 10**9) == pytest.approx(RECORDED.gas("0x", 10**8) / 10, rel=0.01)
    assert RECORDED.gas("0x") == RECORDED.gas("0x", 10**8)
