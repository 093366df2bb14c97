"""Which accounts a token names in its code, its storage and its events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.owner import named_accounts
from roundtrip.chain.owner.named_accounts import (
    ROLE_TOPICS,
    EventAccounts,
    find_in_code,
    find_in_logs,
    find_in_storage,
)
from roundtrip.chain.rpc.client import RpcError
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi
from roundtrip.venues.erc20 import TRANSFER_TOPIC
from unit.chain.samples import ENVIRONMENT, did, raw, refused

A, B, C = (Address("0x" + byte * 20) for byte in ("a1", "b2", "c3"))
HEAD = BlockRef(20_000, "0x" + "11" * 32, 1)
EVENT = "0x" + abi.keccak(b"Marked(address,uint256)").hex()


def push(value: str, size: int) -> str:
    return f"{0x5F + size:02x}{value.removeprefix('0x').rjust(2 * size, '0')}"


# --- code ---------------------------------------------------------------------------------------------


def test_addresses_among_the_constants_are_found() -> None:
    code = bytes.fromhex(push(A, 20) + push(B, 32) + push("ff" * 20, 20) + push("01", 20) + push(EVENT, 32))
    assert find_in_code(code) == (A, B)
    assert find_in_code(bytes.fromhex(push(A, 20))[:-1]) == ()


def test_words_behind_the_code_are_immutables() -> None:
    assert find_in_code(bytes.fromhex("00" * 300 + "fe" + abi.word(A) + abi.word(7))) == (A,)
    assert find_in_code(bytes.fromhex(abi.word(A) + "fe" * 32 * 9)) == ()


def test_a_constant_in_another_is_none() -> None:
    assert find_in_code(bytes.fromhex("7f" + "73" + A[2:] + "22" * 11)) == ()


def test_the_tokens_own_events_are_found() -> None:
    approval = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
    others = (TRANSFER_TOPIC, approval, "ff" * 32, "4e487b71" + "00" * 28, "ff" * 20 + "00" * 12)
    code = bytes.fromhex("".join(push(word, 32) for word in (*others, EVENT, EVENT)))
    assert named_accounts.find_hashes(code) == (EVENT,)


@given(st.binary(max_size=200))
def test_no_code_breaks_it(code: bytes) -> None:
    assert all(len(address) == 42 for address in find_in_code(code))
    named_accounts.find_hashes(code)


# --- storage --------------------------------------------------------------------------------------------


def slots(*words: int, implementation: int = 0) -> bytes:
    """The answer of a read of all slots."""
    padding = [0] * (33 - len(words))
    return bytes.fromhex("".join(abi.word(word) for word in (*words, *padding, implementation)))


def test_addresses_in_slots_are_found_also_beside_small_values() -> None:
    a, b, c = (int(address, 16) for address in (A, B, C))
    assert find_in_storage(did(slots(a, 1 << 160 | b, c << 16 | 0x0112))) == (A, B, C)


@pytest.mark.parametrize(
    "word",
    [
        10**27,
        int.from_bytes(b"A token's name".ljust(32, b"\0"), "big"),
        int.from_bytes(b"RGT".ljust(31, b"\0") + b"\x06", "big"),
        int(EVENT, 16),
        2**256 - 1,
        2**160 - 1,
    ],
)
def test_amounts_texts_and_hashes_are_no_addresses(word: int) -> None:
    assert find_in_storage(did(slots(word))) == ()


def test_slots_that_are_hashes_in_the_code_are_read() -> None:
    slot = "0x" + abi.keccak(b"a slot").hex()
    (block,) = named_accounts.slots_plan(ENVIRONMENT, (A, B), bytes.fromhex(push(slot, 32))).blocks
    assert [account for account, _ in block.codes] == [step.call.to for step in block.steps] == [A, B]
    assert all(push(slot, 32) + "54" in reader for _, reader in block.codes)


def test_what_could_not_be_read_is_not_nothing() -> None:
    assert find_in_storage(refused()) is None
    assert find_in_storage(did(b"\0" * 32)) is None
    assert find_in_storage(did(slots())) == ()


def test_an_implementation_is_no_account() -> None:
    behind = did(slots(implementation=int(A, 16)))
    assert (find_in_storage(behind), named_accounts.is_proxy(behind)) == ((), True)
    assert not named_accounts.is_proxy(did(slots(1)))


# --- events ----------------------------------------------------------------------------------------------


def log(*topics: str, data: str = "") -> dict[str, Any]:
    words = [topics[0], *("0x" + abi.word(topic) for topic in topics[1:])]
    return {"address": A, "topics": words, "data": f"0x{data}"}


ROLE, MADE = log(ROLE_TOPICS[0], EVENT, A, B), log(TRANSFER_TOPIC, "0x", C)
MARKED = log(EVENT, data=abi.word(C) + abi.word(10**20))
BLOCK = raw({"hash": HEAD.hash})
REFUSED = RpcError(-32600, "range")


def test_accounts_in_events_are_found() -> None:
    found = find_in_logs((raw([]), BLOCK), (raw([MARKED, ROLE]), raw([MADE])), HEAD)
    assert found == EventAccounts((A, B), (C,), (C,), whole=True)


def test_the_latest_role_comes_first() -> None:
    later = log(ROLE_TOPICS[1], A, C)
    found = find_in_logs((raw([]), BLOCK), (raw([ROLE, later]), raw([])), HEAD)
    assert found.roles == (A, C, B)


def test_without_the_whole_chain_the_last_blocks_are_read() -> None:
    assert find_in_logs((raw([ROLE]), BLOCK), (REFUSED, raw([MADE])), HEAD) == EventAccounts(
        (A, B), (C,), (), False
    )
    assert find_in_logs((REFUSED, BLOCK), (raw([ROLE]), REFUSED), HEAD) == EventAccounts(
        (A, B), (), (), False
    )


@pytest.mark.parametrize(
    "block",
    [raw(None), REFUSED, raw({"hash": "0x" + "22" * 32}), raw([1])],
    ids=["none", "error", "other", "odd"],
)
def test_logs_without_the_heads_block_are_not_believed(block: Any) -> None:
    found = find_in_logs((raw([ROLE]), block), (raw([ROLE]), raw([MADE])), HEAD)
    assert found == EventAccounts((), (), (), False)


@pytest.mark.parametrize(
    "odd", [7, [{"address": A, "topics": ["0x", "zz"], "data": "0x"}], [{"topics": []}], {"a": 1}]
)
def test_odd_logs_are_missing_ones(odd: Any) -> None:
    assert find_in_logs((raw(odd), BLOCK), (raw(odd), raw(odd)), HEAD) == EventAccounts((), (), (), False)


def test_of_many_logs_both_ends_are_read() -> None:
    many = [log(EVENT, A), *[log(EVENT, B)] * 300, log(EVENT, C)]
    found = find_in_logs((raw([]), BLOCK), (raw(many), raw([])), HEAD)
    assert found == EventAccounts((), (), (A, B, C), whole=False)


def test_logs_are_asked_for_in_a_bounded_range_too() -> None:
    calls = named_accounts.log_calls(A, b"", HEAD)
    wanted: list[Any] = [call.params[0] for call in (calls.recent[0], *calls.whole)]
    ranges = [(one["fromBlock"], one["toBlock"]) for one in wanted]
    assert ranges == [(hex(10_001), hex(20_000)), ("0x0", hex(20_000)), ("0x0", hex(20_000))]


def test_a_node_that_fails_on_the_whole_chain_leaves_the_last_blocks() -> None:
    late, recent = NodeFault("it took too long"), (raw([ROLE]), BLOCK)
    assert find_in_logs(recent, late, HEAD) == EventAccounts((A, B), (), (), False)
    assert find_in_logs(late, (raw([ROLE]), raw([])), HEAD) == EventAccounts((), (), (), False)
