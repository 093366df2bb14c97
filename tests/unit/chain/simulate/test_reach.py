"""Which contracts a trade reaches: by the node's list, and by what their code names."""

from typing import Any

import pytest

from roundtrip.chain.rpc.client import Answer, RpcError
from roundtrip.chain.simulate.reach import (
    CodeGraph,
    TouchedContracts,
    access_list_call,
    addresses_in_word,
    names_in,
    read_access_list,
    transfer_calls,
)
from roundtrip.chain.simulate.request import Plan, PlannedBlock, SimulatedStep
from roundtrip.domain.base.types import Address
from roundtrip.venues.base import Call
from unit.chain.samples import ENVIRONMENT, PINNED, raw

BUYER, READER = ENVIRONMENT.buyer, ENVIRONMENT.reader
TOKEN, ROUTER = Address("0x" + "c3" * 20), Address("0x" + "d4" * 20)
HELPER = Address("0x" + "a1" * 20)
OTHER = Address("0x" + "b2" * 20)
CALL, DELEGATECALL, SLOAD = "f1", "f4", "54"


def step(label: str, sender: Address = BUYER, data: str = "0x01") -> SimulatedStep:
    return SimulatedStep(label, sender, Call(ROUTER, data, 5), 100_000)


PLAN = Plan(
    ENVIRONMENT,
    (
        PlannedBlock(1, (step("sweep", READER), step("buy", data="0xb0")), ((BUYER, 7), (READER, 1))),
        PlannedBlock(7, (step("approve-0", data="0xa0"),)),
        PlannedBlock(6, (step("sell-0", data="0x50"), step("sell-1", data="0x51"))),
    ),
)


def test_the_list_is_of_the_buyers_own_calls_up_to_its_first_sale() -> None:
    call = access_list_call(PLAN, PINNED)
    sent, pinned, overrides = call.params
    assert (call.method, pinned) == ("eth_createAccessList", {"blockHash": PINNED.hash})
    assert isinstance(sent, dict)
    assert isinstance(overrides, dict)
    assert (sent["from"], sent["to"]) == (BUYER, BUYER)
    assert overrides[BUYER]["code"].endswith("b0a050")
    assert int(overrides[BUYER]["balance"], 16) > 7
    assert "code" not in overrides[READER]


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        (raw({"accessList": [{"address": TOKEN, "storageKeys": []}], "gasUsed": "0x1"}), ((TOKEN,), True)),
        (
            raw({"accessList": [{"address": TOKEN, "storageKeys": []}], "error": "execution reverted"}),
            ((TOKEN,), False),
        ),
        (raw({"accessList": [{"address": ROUTER, "storageKeys": []}]}), None),
        (raw({"accessList": [{"address": "x", "storageKeys": []}]}), None),
        (raw([]), None),
        (RpcError(-32602, "too many arguments, want at most 2"), None),
    ],
)
def test_a_list_without_the_token_is_none(answer: Answer, read: Any) -> None:
    assert read_access_list(answer, TOKEN) == (None if read is None else TouchedContracts(*read))


@pytest.mark.parametrize(
    ("code", "addresses", "slots"),
    [
        ("73" + "a1" * 20 + CALL, {HELPER}, set()),
        ("7f" + "00" * 12 + "a1" * 20 + CALL, {HELPER}, set()),
        ("7f" + "a1" * 32 + CALL, set(), set()),
        ("73" + "a1" * 20 + "00", set(), set()),
        ("6005" + SLOAD + CALL, set(), {5}),
        ("5f" + SLOAD + CALL, set(), {0}),
        ("6005" + "80" + SLOAD + CALL, set(), {5}),
        ("33" + SLOAD + CALL, set(), set()),
        (CALL + "00" + "00" * 12 + "a1" * 20, {HELPER}, set()),
        ("ef0100" + "a1" * 20, {HELPER}, set()),
    ],
)
def test_code_that_runs_other_code_names_it(code: str, addresses: set[Address], slots: set[int]) -> None:
    named = names_in(bytes.fromhex(code))
    assert (set(named.addresses), set(named.slots)) == (addresses, slots)


def test_an_address_is_found_alone_in_a_word_and_packed_with_others() -> None:
    value = int(HELPER, 16)
    assert list(addresses_in_word(value)) == [HELPER]
    assert HELPER in addresses_in_word(value << 8 | 1)
    assert HELPER in addresses_in_word(value | 1 << 255)
    assert list(addresses_in_word(10**9)) == []


def test_what_named_contracts_name_is_reached_too() -> None:
    """A proxy: its implementation is in its storage, and what that names, too."""
    graph = CodeGraph(frozenset({ROUTER}), {TOKEN: bytes.fromhex("6009" + SLOAD + DELEGATECALL)})
    assert graph.unread([TOKEN]) == ([], [(TOKEN, 9)])
    graph.words[TOKEN, 9] = int(HELPER, 16)
    assert graph.unread([TOKEN, ROUTER]) == ([HELPER], [])
    graph.codes[HELPER] = bytes.fromhex("6002" + SLOAD + CALL)
    assert graph.unread([TOKEN]) == ([], sorted([(HELPER, 2), (TOKEN, 2)]))
    graph.words |= {(HELPER, 2): 0, (TOKEN, 2): int(OTHER, 16)}
    assert graph.unread([TOKEN]) == ([OTHER], [])
    graph.codes[OTHER] = b""
    assert graph.unread([TOKEN]) == ([], [])
    assert graph.reached_from([TOKEN]) == {TOKEN, HELPER}


MASK = "73" + "ff" * 20 + "16"
TO_CALL = "5f5f5f5f5f"
"""What CALL takes beside gas and target."""


@pytest.mark.parametrize(
    ("target", "is_named"),
    [
        ("73" + "a1" * 20, True),
        ("6005" + SLOAD, True),
        ("6005" + SLOAD + MASK, True),
        ("6005" + SLOAD + "6008" + "1c" + MASK, True),
        ("6005" + SLOAD + "610100" + "90" + "04" + MASK, True),
        ("6004" + "35" + MASK, True),
        ("33", True),
        ("30", True),
        ("6001", True),
        ("6064", False),
        ("6005" + SLOAD + "6003" + "1c", False),
        ("6005" + SLOAD + "6001" + "18", False),
        ("6005" + SLOAD + "60ff" + "16", False),
        ("6005" + SLOAD + "6006" + SLOAD + "16", False),
        ("5f5f20" + SLOAD, False),
        ("5f51", False),
    ],
)
def test_a_target_is_named_where_its_address_can_be_read_before(target: str, is_named: bool) -> None:
    named = transfer_calls(bytes.fromhex(TO_CALL + target + "5a" + CALL + "00")).unnamed
    assert named == (frozenset() if is_named else {0xF1})


def test_a_slot_is_known_that_the_code_hands_on() -> None:
    slot = "7f" + "5e" * 32
    code = slot + "6025" + "56" + "00" + "5b" + SLOAD + "5f5f5f5f" + "84" + "5a" + DELEGATECALL + "00"
    found = transfer_calls(bytes.fromhex(code))
    assert (set(found.unnamed), set(found.slots)) == (set(), {int("5e" * 32, 16)})


def test_what_is_too_long_to_follow_is_not_taken_for_known() -> None:
    """Each turn leaves one value more on the stack: no two states are the same."""
    assert transfer_calls(bytes.fromhex("5b" + "5a" + "5f" + "56" + "5b" + CALL)).unnamed == {0xF1}
