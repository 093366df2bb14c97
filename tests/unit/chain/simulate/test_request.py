"""The request of a simulation, field by field, and answers in the shapes that nodes give."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from roundtrip.chain.rpc.client import RpcError
from roundtrip.chain.rpc.data_fee import DataFee
from roundtrip.chain.rpc.dialect import ANVIL, GETH, NITRO, Dialect
from roundtrip.chain.simulate.request import (
    GAS_POOL_SPENT,
    Plan,
    PlannedBlock,
    Results,
    SimulatedStep,
    StepResult,
    build,
    read,
)
from roundtrip.domain.check.evidence import Missing
from roundtrip.venues.base import Call
from unit.chain.samples import ENVIRONMENT, PINNED, error_string, interpreters_recursion_limit, raw
from unit.venues.network import address

BUYER, READER, TO = ENVIRONMENT.buyer, ENVIRONMENT.reader, address(0x70)
LIMIT = 300_000
MOST = "0x1000000"

BUY = SimulatedStep("buy", BUYER, Call(TO, "0xaabb", 5), 2**24)
LOOK = SimulatedStep("look", READER, Call(TO, "0x70a08231"), LIMIT)
SELL = SimulatedStep("sell", BUYER, Call(TO, "0xccdd"), LIMIT)
PLAN = Plan(
    ENVIRONMENT,
    (
        PlannedBlock(1, (BUY, LOOK), ((BUYER, 10**18), (READER, 1)), ((BUYER, 17),)),
        PlannedBlock(13, (SELL,), ((TO, 3),)),
    ),
)


def built(plan: Plan, dialect: Dialect = ANVIL) -> dict[str, Any]:
    params = build(plan, PINNED, dialect).params
    options = params[0]
    assert isinstance(options, dict)
    return options


def test_a_plan_becomes_exactly_this_request() -> None:
    fees = {"maxFeePerGas": "0xcf", "maxPriorityFeePerGas": "0x7"}
    overrides = {"baseFeePerGas": "0x64", "feeRecipient": ENVIRONMENT.coinbase}
    first, second = (
        {"prevRandao": "0x" + keccak(b"\xcd" * 32 + index.to_bytes(4, "big")).hex()} for index in (0, 1)
    )
    assert first != second
    request = build(PLAN, PINNED, ANVIL)
    assert request.method == "eth_simulateV1"
    # Written and read again: what is compared is what goes over the wire.
    assert msgspec.json.decode(msgspec.json.encode(request.params)) == [
        {
            "blockStateCalls": [
                {
                    "stateOverrides": {
                        BUYER: {"balance": "0xde0b6b3a7640000", "nonce": "0x11"},
                        READER: {"balance": "0x1"},
                    },
                    "blockOverrides": {"number": "0x3e9", "time": "0x68e77801", **overrides, **first},
                    "calls": [
                        {"from": BUYER, "to": TO, "gas": MOST, "input": "0xaabb", "value": "0x5", **fees},
                        {"from": READER, "to": TO, "gas": "0x493e0", "input": "0x70a08231", **fees},
                    ],
                },
                {
                    "stateOverrides": {TO: {"balance": "0x3"}},
                    "blockOverrides": {"number": "0x3ea", "time": "0x68e7780e", **overrides, **second},
                    "calls": [{"from": BUYER, "to": TO, "gas": "0x493e0", "input": "0xccdd", **fees}],
                },
            ],
            "validation": True,
            "traceTransfers": False,
        },
        {"blockHash": PINNED.hash},
    ]  # fmt: skip


@pytest.mark.parametrize(("delay_s", "numbers"), [(1, 1), (13, 1), (3600, 300), (86_400, 7200)])
def test_a_later_block_stands_as_many_numbers_later_as_its_delay_says(delay_s: int, numbers: int) -> None:
    plan = Plan(ENVIRONMENT, (PlannedBlock(1, ()), PlannedBlock(delay_s, ())), passes_numbers=True)
    first, second = (block["blockOverrides"] for block in built(plan)["blockStateCalls"])
    assert (first["number"], first["time"]) == (hex(1_001), hex(1_760_000_001))
    assert (second["number"], second["time"]) == (hex(1_001 + numbers), hex(1_760_000_001 + delay_s))


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=6), st.integers(1, 60))
def test_numbers_and_times_only_rise(delays: list[int], seconds_a_number: int) -> None:
    plan = Plan(ENVIRONMENT, tuple(PlannedBlock(delay_s, ()) for delay_s in delays), passes_numbers=True)
    blocks = [b["blockOverrides"] for b in built(plan, Dialect("any", seconds_a_number))["blockStateCalls"]]
    seen = [(PINNED.number, PINNED.timestamp_s)]
    seen += [(int(b["number"], 16), int(b["time"], 16)) for b in blocks]
    for (number, time_s), (next_number, next_time_s) in pairwise(seen):
        assert next_number > number
        assert next_time_s > time_s


def test_a_nonce_may_be_set_without_a_balance() -> None:
    plan = Plan(ENVIRONMENT, (PlannedBlock(1, (), nonces=((BUYER, 3),)),))
    assert built(plan)["blockStateCalls"][0]["stateOverrides"] == {BUYER: {"nonce": "0x3"}}


def test_no_override_ever_writes_code_or_storage() -> None:
    kinds = {
        kind
        for block in built(PLAN)["blockStateCalls"]
        for override in block["stateOverrides"].values()
        for kind in override
    }
    assert kinds == {"balance", "nonce"}


# --- reading ---------------------------------------------------------------------------------------


def good(returned: str = "0x", gas: int = 21_000) -> dict[str, Any]:
    return {"status": "0x1", "gasUsed": hex(gas), "returnData": returned, "logs": []}


def by_geth(data: bytes, gas: int = 40_000) -> dict[str, Any]:
    error = {"code": 3, "message": "execution reverted", "data": "0x" + data.hex()}
    return {"status": "0x0", "gasUsed": hex(gas), "returnData": "0x", "error": error, "logs": []}


def by_geth_vm(message: str, gas: int) -> dict[str, Any]:
    error = {"code": -32015, "message": message}
    return {"status": "0x0", "gasUsed": hex(gas), "returnData": "0x", "error": error, "logs": []}


def by_anvil(data: bytes, gas: int = 40_000) -> dict[str, Any]:
    error = {"code": -3200, "message": "execution failed"}
    returned = "0x" + data.hex()
    return {"status": "0x0", "gasUsed": hex(gas), "returnData": returned, "error": error, "logs": []}


def blocks(*sells: dict[str, Any], look: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """A node's answer to PLAN whose last block holds ``sells``."""
    return [
        {"number": "0x3e9", "timestamp": "0x68e77801", "calls": [good(gas=150_000), look or good("0x2a")]},
        {"number": "0x3ea", "timestamp": "0x68e7780e", "calls": list(sells), "gasLimit": "0x1c9c380"},
    ]


def answered(answer: Any) -> Results | Missing:
    return read(PLAN, raw(answer), PINNED, ANVIL)


def sold(call: dict[str, Any]) -> StepResult:
    results = answered(blocks(call))
    assert not isinstance(results, Missing)
    return results["sell"]


def test_results_stand_under_the_labels_of_their_steps() -> None:
    results = answered(blocks(good("0x" + "00" * 31 + "07", 60_000)))
    assert results == {
        "buy": StepResult(True, 150_000, b"", False),
        "look": StepResult(True, 21_000, b"\x2a", False),
        "sell": StepResult(True, 60_000, bytes(31) + b"\7", False),
    }


@pytest.mark.parametrize("shape", [by_geth, by_anvil])
def test_a_reverts_bytes_are_found_in_either_nodes_place(shape: Any) -> None:
    result = sold(shape(error_string("trading not open")))
    assert result == StepResult(False, 40_000, error_string("trading not open"), False)
    assert result.reason() == "trading not open"


@pytest.mark.parametrize("shape", [by_geth, by_anvil])
def test_an_empty_revert_is_not_taken_for_running_out_of_gas(shape: Any) -> None:
    assert sold(shape(b"", LIMIT - 1)) == StepResult(False, LIMIT - 1, b"", False)
    assert sold(shape(b"", LIMIT - 1)).reason() is None


@pytest.mark.parametrize("call", [by_geth_vm("out of gas", LIMIT), by_anvil(b"", LIMIT)])
def test_running_out_of_gas_is_told_by_the_gas(call: dict[str, Any]) -> None:
    assert sold(call).out_of_gas
    assert sold(call).reason() == "out of gas"


def test_a_revert_with_words_is_believed_whatever_gas_it_took() -> None:
    result = sold(by_anvil(error_string("no"), LIMIT))
    assert (result.out_of_gas, result.reason()) == (False, "no")


def test_a_fault_of_the_machine_without_bytes_is_a_failure_without_a_reason() -> None:
    result = sold(by_geth_vm("stack underflow (0 <=> 1)", 90_000))
    assert result == StepResult(False, 90_000, b"", False)


def test_a_failure_without_any_error_is_a_failure() -> None:
    call = {"status": "0x0", "gasUsed": "0x10", "returnData": "0x"}
    assert sold(call) == StepResult(False, 16, b"", False)


def test_a_failed_call_does_not_hide_the_others() -> None:
    results = answered(blocks(good(), look=by_anvil(b"\1\2\3\4")))
    assert isinstance(results, dict)
    assert [results[label].ok for label in ("buy", "look", "sell")] == [True, False, True]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            RpcError(-32601, "the method eth_simulateV1 does not exist"),
            "(the node does not support this method, error -32601)",
        ),
        (RpcError(-38014, ""), "-38014"),
        (RpcError(-32000, "key=SECRET \u202e <b>pay</b>"), "(error -32000)"),
        (RpcError(429, "project abc: rate limited"), "(the node limits our calls, error 429)"),
    ],
)
def test_a_node_that_did_not_run_it_leaves_it_missing(error: RpcError, why: str) -> None:
    found = read(PLAN, error, PINNED, ANVIL)
    assert isinstance(found, Missing)
    assert found.fault == "node"
    assert why in found.why
    assert len(found.why) < 120


def changed(block: int, **fields: Any) -> list[dict[str, Any]]:
    answer = blocks(good())
    answer[block] |= fields
    return answer


OTHER_ANSWERS: dict[str, Any] = {
    "no block": [],
    "one block less": blocks(good())[:1],
    "one block more": [*blocks(good()), blocks(good())[1]],
    "one call less": blocks(),
    "one call more": blocks(good(), good()),
    "another first number": changed(0, number="0x3e8"),
    "another later number": changed(1, number="0x3eb"),
    "another first time": changed(0, timestamp="0x68e77800"),
    "another later time": changed(1, timestamp="0x68e7780d"),
    "blocks the other way round": list(reversed(blocks(good()))),
}
JUNK: dict[str, Any] = {
    "null": None,
    "a text": "0x",
    "a number": 7,
    "an object": {"calls": []},
    "blocks that are texts": ["0x1", "0x2"],
    "a number that is none": changed(0, number="latest"),
    "a number that is no text": changed(0, number=1001),
    "no time": [{k: v for k, v in b.items() if k != "timestamp"} for b in blocks(good())],
    "calls that are null": changed(1, calls=None),
    "calls that are numbers": changed(1, calls=[1]),
    "a status of its own": blocks({**good(), "status": "0x2"}),
    "a status that is a number": blocks({**good(), "status": 1}),
    "no status": blocks({"gasUsed": "0x1", "returnData": "0x"}),
    "gas that is no number": blocks({**good(), "gasUsed": "much"}),
    "no gas": blocks({"status": "0x1", "returnData": "0x"}),
    "half a byte returned": blocks(good("0x123")),
    "no hex returned": blocks(good("0xzz")),
    "nothing returned": blocks({**good(), "returnData": None}),
    "no hex in the error": blocks({**by_geth(b""), "error": {"code": 3, "data": "0xzz"}}),
    "an error that is a text": blocks({**by_geth(b""), "error": "reverted"}),
}


@pytest.mark.parametrize("case", [*OTHER_ANSWERS, *JUNK])
def test_an_answer_that_does_not_fit_the_plan_is_missing(case: str) -> None:
    found = answered((OTHER_ANSWERS | JUNK)[case])
    assert isinstance(found, Missing)
    assert found.fault == "node"
    assert len(found.why) < 150


@pytest.mark.parametrize("bytes_", [b"", b"[", b"\xff", b'[{"number":"\xff"}]', b"nope"])
def test_an_answer_that_is_no_json_is_missing(bytes_: bytes) -> None:
    found = read(PLAN, msgspec.Raw(bytes_), PINNED, ANVIL)
    assert isinstance(found, Missing)
    assert found.fault == "node"


def test_an_answer_that_is_nested_without_end_is_missing() -> None:
    deep = b'[{"logs":' + b"[" * 100_000 + b"]" * 100_000 + b"}]"
    with interpreters_recursion_limit():
        assert isinstance(read(PLAN, msgspec.Raw(deep), PINNED, ANVIL), Missing)


def test_an_answer_for_another_pinned_block_is_missing() -> None:
    other = replace(PINNED, number=PINNED.number + 1)
    assert isinstance(read(PLAN, raw(blocks(good())), other, ANVIL), Missing)


def test_what_was_asked_and_what_is_read_agree_about_the_clock() -> None:
    overrides = [block["blockOverrides"] for block in built(PLAN)["blockStateCalls"]]
    for answer, asked in zip(blocks(good()), overrides, strict=True):
        assert (answer["number"], answer["timestamp"]) == (asked["number"], asked["time"])


# --- the gas of a request ----------------------------------------------------------------------------


def answered_by_geth(answer: Any, pool: int) -> Results | Missing:
    return read(PLAN, raw(answer), PINNED, replace(GETH, gas_pool=pool))


STARVED = by_geth_vm("out of gas", 150_000)
USED = 171_000
"""By the calls before the sell."""


@pytest.mark.parametrize("failed", [STARVED, by_geth(b"", 150_000), by_geth(error_string("STF"), 90_000)])
def test_a_call_that_failed_with_less_gas_than_its_limit_was_not_run(failed: dict[str, Any]) -> None:
    """Also where it says why: less gas makes a router hide the token's own reason."""
    assert answered_by_geth(blocks(failed), USED + LIMIT - 1) == GAS_POOL_SPENT
    results = answered_by_geth(blocks(failed), USED + LIMIT)
    assert isinstance(results, dict)
    assert not results["sell"].ok


def test_a_call_that_succeeded_with_less_gas_than_its_limit_counts() -> None:
    results = answered_by_geth(blocks(good(gas=90_000)), USED + 100_000)
    assert isinstance(results, dict)
    assert results["sell"].ok


def test_a_node_without_a_pool_runs_every_call() -> None:
    assert isinstance(answered(blocks(by_anvil(b"", LIMIT))), dict)


@pytest.mark.parametrize(
    ("error", "is_spent"),
    [
        (RpcError(-38013, "err: intrinsic gas too low: have 0, want 21000 (supplied gas 0)"), True),
        (RpcError(-38013, "err: intrinsic gas too low (supplied gas 20999)"), True),
        (RpcError(-32603, "err: gas limit reached (supplied gas 9000000)"), True),
        (RpcError(-38015, "block gas limit reached: remaining: 3000000, required: 9000000"), True),
        (RpcError(-38013, f"err: intrinsic gas too low (supplied gas {LIMIT})"), False),
        (RpcError(-38014, "err: insufficient funds for gas * price + value (supplied gas 0)"), False),
        (RpcError(-32603, "method handler crashed"), False),
    ],
)
def test_a_request_that_its_gas_did_not_suffice_for_is_no_fault_of_the_node(
    error: RpcError, is_spent: bool
) -> None:
    result = read(PLAN, error, PINNED, NITRO)
    assert (result == GAS_POOL_SPENT) is is_spent
    assert isinstance(result, Missing)
    assert (result.fault == "token") is is_spent


def test_the_gas_for_data_is_added_to_limits_of_execution_only() -> None:
    fee = DataFee(10**12, 100)
    own = structs.replace(SELL, label="own", includes_data_fee=True)
    plan = Plan(ENVIRONMENT, (PlannedBlock(1, (LOOK, own)),))
    look, mine = built(plan, replace(NITRO, data_fee=fee))["blockStateCalls"][0]["calls"]
    assert int(look["gas"], 16) == LIMIT + fee.gas("0x70a08231", ENVIRONMENT.base_fee_wei) > LIMIT
    assert int(mine["gas"], 16) == LIMIT
