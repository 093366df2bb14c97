"""Where a balance lies, against the layouts that compilers and libraries publish."""

import msgspec
import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from roundtrip.chain.rpc.client import RpcError
from roundtrip.chain.simulate.balance_slots import MARK_RAW, guess_calls, guesses, read_guesses
from unit.chain.samples import PINNED, raw, word
from unit.venues.network import address

ASSET, WALLET = address(0xA55E7), address(0x77)
NOTHING = raw("0x" + word(0).hex())
FOUND = raw("0x" + word(MARK_RAW).hex())


def keys() -> list[str]:
    return [guess.of(WALLET) for guess in guesses(ASSET)]


@pytest.mark.parametrize("slot", [0, 1, 9, 23])
def test_solidity_hashes_the_key_before_the_slot_and_vyper_after_it(slot: int) -> None:
    assert "0x" + keccak(encode(["address", "uint256"], [WALLET, slot])).hex() in keys()
    assert "0x" + keccak(encode(["uint256", "address"], [slot, WALLET])).hex() in keys()


def test_the_namespaced_slot_is_the_one_of_erc_7201() -> None:
    inner = int.from_bytes(keccak(text="openzeppelin.storage.ERC20"), "big") - 1
    slot = int.from_bytes(keccak(encode(["uint256"], [inner])), "big") & ~0xFF
    assert "0x" + keccak(encode(["address", "uint256"], [WALLET, slot])).hex() in keys()


def test_every_guess_is_another_key() -> None:
    assert len(set(keys())) == len(keys())


def test_each_guess_is_filled_in_and_the_balance_asked() -> None:
    calls = guess_calls(ASSET, WALLET, PINNED)
    for call, key in zip(calls, keys(), strict=True):
        ask, pinned, overrides = call.params
        assert ask == {"to": ASSET, "data": "0x70a08231" + WALLET[2:].rjust(64, "0")}
        assert pinned == {"blockHash": PINNED.hash}
        assert overrides == {ASSET: {"stateDiff": {key: "0x" + word(MARK_RAW).hex()}}}


def answers(*right: int) -> list[msgspec.Raw | RpcError]:
    return [FOUND if number in right else NOTHING for number in range(len(guesses(ASSET)))]


def test_the_guess_whose_balance_comes_back_is_the_one() -> None:
    assert read_guesses(ASSET, answers(7)) == guesses(ASSET)[7]


@pytest.mark.parametrize("right", [(), (3, 7)])
def test_none_or_two_are_no_find(right: tuple[int, ...]) -> None:
    assert read_guesses(ASSET, answers(*right)) is None


def test_a_node_that_fails_finds_nothing() -> None:
    assert read_guesses(ASSET, [RpcError(-32601, "no overrides")] * len(guesses(ASSET))) is None
