"""What a call tracer tells is cut to what a page can show, and believed in nothing."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

from roundtrip.chain.rpc.client import (
    Meter,
    NodeAnswerTooDeep,
    NodeAnswerTooLarge,
    RpcCall,
    RpcError,
    RpcNode,
)
from roundtrip.chain.wallet.call_traces import (
    MAX_DEPTH,
    MAX_FRAMES,
    MAX_MOVES,
    MAX_TRACE_BYTES,
    CallTrace,
    TracedCall,
    Untold,
    read_trace,
    trace_call,
    trace_transaction,
)
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.venues.base import Call
from support.one_batch import OneBatchNode
from unit.chain.samples import interpreters_recursion_limit

ROUTER, TOKEN, WALLET = (Address(f"0x{digit * 40}") for digit in "abc")
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
APPROVAL = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
ENDS = ["0x" + at[2:].rjust(64, "0") for at in (WALLET, ROUTER)]


def log(topic: str = TRANSFER) -> dict[str, Any]:
    return {"address": TOKEN, "topics": [topic, *ENDS], "data": "0x" + "07".rjust(64, "0")}


def frame(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "CALL",
        "from": WALLET,
        "to": ROUTER,
        "input": "0x3593564c00",
        "calls": list(calls),
    } | more


def read(told: object) -> CallTrace | Untold:
    return read_trace(msgspec.json.encode(told))


def count(call: TracedCall) -> int:
    return 1 + sum(map(count, call.calls))


def test_calls_that_only_read_are_left_out_with_all_inside_them() -> None:
    found = read(frame(frame(frame(), type="STATICCALL"), frame(to=TOKEN, value="0x5", input="0xa9059cbb")))
    assert isinstance(found, CallTrace)
    (inner,) = found.root.calls
    assert (found.root.head.hex(), found.left_out) == ("3593564c", 0)
    assert (inner.to, inner.value_wei, inner.head.hex(), inner.reason) == (TOKEN, 5, "a9059cbb", None)


def test_a_failure_has_its_reason_cleaned() -> None:
    words = b"\x08\xc3\x79\xa0" + (32).to_bytes(32) + (5).to_bytes(32) + b'no "x'.ljust(32, b"\0")
    found = read(frame(frame(error="execution reverted", output="0x" + words.hex()), error="out of gas"))
    assert isinstance(found, CallTrace)
    assert (found.root.reason, found.root.calls[0].reason) == ("out of gas", "no 'x")


def test_the_tree_is_cut_and_says_so() -> None:
    wide = read(frame(*[frame()] * (MAX_FRAMES + 9)))
    deep: dict[str, Any] = frame()
    for _ in range(MAX_DEPTH + 4):
        deep = frame(deep)
    nested = read(deep)
    assert isinstance(wide, CallTrace)
    assert isinstance(nested, CallTrace)
    assert (count(wide.root), wide.left_out) == (MAX_FRAMES, 10)
    # Four more inside each other, and one that the innermost has.
    assert (count(nested.root), nested.left_out) == (MAX_DEPTH + 1, 4)


def test_a_call_that_is_left_out_counts_with_all_inside_it_that_does_not_only_read() -> None:
    lost = frame(frame(frame(), logs=[log()] * 3), frame(frame(), type="STATICCALL"), logs=[log()] * 2)
    undone = frame(frame(logs=[log()]), logs=[log()], error="out of gas")
    found = read(frame(*[frame()] * (MAX_FRAMES - 1), lost, undone))
    assert isinstance(found, CallTrace)
    assert (found.left_out, found.moves_left_out) == (3 + 2, 5)


def test_of_the_logs_only_transfers_are_kept_so_many_in_all() -> None:
    each = MAX_MOVES // 4
    found = read(frame(*[frame(logs=[log(APPROVAL), *[log()] * each])] * 6))
    assert isinstance(found, CallTrace)
    assert [len(call.moves) for call in found.root.calls] == [each] * 4 + [0] * 2
    assert (found.moves_left_out, found.root.calls[0].moves[0]) == (2 * each, (TOKEN, WALLET, ROUTER, 7))


def test_what_is_inside_a_call_that_failed_is_undone_and_moves_nothing() -> None:
    failed = frame(frame(frame(logs=[log()]), logs=[log()]), logs=[log()], error="execution reverted")
    found = read(frame(failed, frame(logs=[log()]), logs=[log()]))
    assert isinstance(found, CallTrace)
    one, other = found.root.calls
    inner = one.calls[0]
    told = [(call.is_undone, len(call.moves)) for call in (found.root, one, inner, inner.calls[0], other)]
    assert told == [(False, 1), (False, 0), (True, 0), (True, 0), (False, 1)]


@pytest.mark.parametrize(
    "told",
    [
        None, [], {"type": "CALL", "to": "0x12"}, frame(value="5"), frame(input="0xabc"),
        frame(logs=[{"address": TOKEN, "topics": [TRANSFER, TRANSFER[:-1], TRANSFER], "data": "0x"}]),
        frame(logs=[{"address": TOKEN, "topics": [TRANSFER] * 5, "data": "0x"}]),
    ],
)  # fmt: skip
def test_another_form_is_no_trace(told: object) -> None:
    assert read(told) == "not_told"


def test_an_answer_that_is_nested_too_deeply_or_too_large_is_no_trace_and_says_which() -> None:
    with interpreters_recursion_limit():
        assert read_trace(b'{"type":"CALL","calls":[' * 100_000 + b"]}" * 100_000) == "too_deep"
    assert read(frame(output="0x" + "0" * MAX_TRACE_BYTES)) == "too_large"


class _TracingNode(OneBatchNode):
    def __init__(self, answer: msgspec.Raw | RpcError | NodeFault) -> None:
        self.answer, self.asked = answer, list[RpcCall]()

    async def batch(self, calls: Sequence[RpcCall], *more: Any, **named: Any) -> Any:
        self.asked += calls
        if isinstance(self.answer, NodeFault):
            raise self.answer
        return [self.answer]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (NodeAnswerTooDeep("deep"), "too_deep"), (NodeAnswerTooLarge("large"), "too_large"),
        (NodeFault("away"), "not_told"), (RpcError(code=-32601), "not_told"),
        (msgspec.Raw(b"[]"), "not_told"),
    ],
)  # fmt: skip
async def test_without_a_trace_it_is_said_why(answer: Any, why: str) -> None:
    assert await trace_transaction(cast(RpcNode, _TracingNode(answer)), TxHash("0x1"), Meter()) == why


async def test_a_call_is_traced_with_a_limit_of_gas() -> None:
    node = _TracingNode(msgspec.Raw(msgspec.json.encode(frame())))
    call = Call(ROUTER, "0x", 3)
    found = await trace_call(cast(RpcNode, node), WALLET, call, 0x9000, 5, has_plenty=False, meter=Meter())
    assert isinstance(found, CallTrace)
    (asked,) = node.asked
    assert asked.params[:2] == [
        {"from": WALLET, "to": ROUTER, "data": "0x", "value": "0x3", "gas": "0x9000"}, "0x5",
    ]  # fmt: skip
