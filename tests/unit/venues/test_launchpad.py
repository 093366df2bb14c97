"""What the launchpad's factory tells of a launch, encoded with eth_abi."""

from dataclasses import replace
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.types import Address
from roundtrip.venues import launchpad
from roundtrip.venues.base import Call
from roundtrip.venues.launchpad import FactoryRecord, read_record
from unit.venues.network import ABOVE, BELOW, CONTRACTS, address

FIELDS = {
    "token": "address",
    "curve": "address",
    "deployer": "address",
    "creatorFeeRecipient": "address",
    "pairToken": "address",
    "graduationThreshold": "uint256",
    "poolFee": "uint24",
    "tickSpacing": "int24",
    "creatorTaxBps": "uint256",
    "buybackEnabled": "bool",
    "phase": "uint8",
    "sweptQuote": "uint256",
    "sweptTokens": "uint256",
    "sweptAt": "uint256",
    "exists": "bool",
}
TOKEN, CURVE, DEPLOYER = BELOW, address(0xC0), address(0xDE)
SAID: dict[str, Any] = {
    "token": TOKEN,
    "curve": CURVE,
    "deployer": DEPLOYER,
    "creatorFeeRecipient": address(0xFE),
    "pairToken": ABOVE,
    "graduationThreshold": 41_600_000_000_000_000_002,
    "poolFee": 3000,
    "tickSpacing": 200,
    "creatorTaxBps": 100,
    "buybackEnabled": True,
    "phase": 0,
    "sweptQuote": 5,
    "sweptTokens": 6,
    "sweptAt": 1_760_000_000,
    "exists": True,
}
RECORD = FactoryRecord(
    CURVE, DEPLOYER, address(0xFE), ABOVE, 41_600_000_000_000_000_002, 3000, 200, 100, "curve", 1_760_000_000
)


def answer(**changes: Any) -> bytes:
    rows = SAID | changes
    return encode(list(FIELDS.values()), [rows[name] for name in FIELDS])


def with_word(index: int, value: int) -> bytes:
    data = bytearray(answer())
    data[32 * index : 32 * index + 32] = value.to_bytes(32, "big")
    return bytes(data)


def test_factory_and_hook_are_asked_by_the_hash_of_what_they_are_asked() -> None:
    factory, hook = CONTRACTS.launchpad_factory, CONTRACTS.launchpad_hook
    assert factory is not None
    assert hook is not None
    data = keccak(text="getLaunchedToken(address)")[:4] + encode(["address"], [TOKEN])
    assert launchpad.launch_calls(TOKEN, CONTRACTS) == (
        Call(factory, "0x" + data.hex()),
        Call(hook, "0x" + keccak(text="hookFeeBps()")[:4].hex()),
    )


def test_a_record_is_read_field_by_field() -> None:
    assert read_record(TOKEN, answer()) == RECORD
    assert read_record(TOKEN, answer() + bytes(64)) == RECORD


@pytest.mark.parametrize(("number", "phase"), list(enumerate(("curve", "swept", "pooled", "rescued"))))
def test_a_phase_has_its_name(number: int, phase: str) -> None:
    assert read_record(TOKEN, answer(phase=number)) == replace(RECORD, phase=phase)  # type: ignore[arg-type]


@pytest.mark.parametrize("phase", [4, 255, 2**255])
def test_a_phase_nobody_knows_is_no_record(phase: int) -> None:
    assert read_record(TOKEN, with_word(10, phase)) is None


@pytest.mark.parametrize("spacing", [1, 200, 2**23 - 1, -1, -200, -(2**23)])
def test_a_tick_spacing_has_its_sign(spacing: int) -> None:
    assert read_record(TOKEN, answer(tickSpacing=spacing)) == replace(RECORD, tick_spacing=spacing)


@pytest.mark.parametrize("exists", [0, 2, 2**256 - 1])
def test_what_does_not_exist_was_not_launched(exists: int) -> None:
    assert read_record(TOKEN, with_word(14, exists)) is None


@pytest.mark.parametrize("other", [ABOVE, address(0)])
def test_the_record_of_another_token_is_none_of_this_one(other: Address) -> None:
    assert read_record(TOKEN, answer(token=other)) is None


@pytest.mark.parametrize("index", [0, 1, 2, 4])
def test_what_is_more_than_an_address_makes_no_record(index: int) -> None:
    assert read_record(TOKEN, with_word(index, 1 << 160 | int(TOKEN, 16))) is None


def test_less_than_a_record_is_none() -> None:
    whole = answer()
    assert [read_record(TOKEN, whole[:size]) for size in range(len(whole))] == [None] * len(whole)
    assert read_record(TOKEN, None) is None


@given(st.binary(max_size=600))
def test_garbage_is_no_record(data: bytes) -> None:
    assert read_record(TOKEN, data) is None


@given(st.lists(st.integers(0, 2**256 - 1), min_size=13, max_size=13))
def test_whatever_stands_between_the_token_and_its_existence_never_raises(words: list[int]) -> None:
    record = read_record(TOKEN, encode(["uint256"] * 15, [int(TOKEN, 16), *words, 1]))
    if record is not None:
        assert words[9] < 4
        assert -(2**23) <= record.tick_spacing < 2**23


@pytest.mark.parametrize("gone", ["launchpad_factory", "launchpad_hook"])
def test_a_launchpad_is_its_factory_and_its_hook(gone: str) -> None:
    assert launchpad.factory_and_hook(CONTRACTS) == (CONTRACTS.launchpad_factory, CONTRACTS.launchpad_hook)
    bare = replace(CONTRACTS, **{gone: None})  # type: ignore[arg-type]
    assert launchpad.factory_and_hook(bare) is None
    assert launchpad.launch_calls(TOKEN, bare) == ()
    assert launchpad.read_launch(TOKEN, (), bare) is None
