"""What a call tracer tells is cut to what a page can show, and believed in nothing."""

from typing import Any

import msgspec
import pytest

from roundtrip.chain.wallet.call_traces import MAX_DEPTH, MAX_FRAMES, CallTrace, TracedCall, read_trace

ROUTER, TOKEN, WALLET = (f"0x{digit * 40}" for digit in "abc")
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"


def frame(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "CALL",
        "from": WALLET,
        "to": ROUTER,
        "input": "0x3593564c00",
        "calls": list(calls),
    } | more


def read(told: object) -> CallTrace | None:
    return read_trace(msgspec.json.encode(told))


def count(call: TracedCall) -> int:
    return 1 + sum(map(count, call.calls))


def test_calls_that_only_read_are_left_out_with_all_inside_them() -> None:
    found = read(frame(frame(frame(), type="STATICCALL"), frame(to=TOKEN, value="0x5", input="0xa9059cbb")))
    assert found is not None
    (inner,) = found.root.calls
    assert (found.root.head.hex(), found.left_out) == ("3593564c", 0)
    assert (inner.to, inner.value_wei, inner.head.hex(), inner.reason) == (TOKEN, 5, "a9059cbb", None)


def test_a_failure_has_its_reason_cleaned() -> None:
    words = b"\x08\xc3\x79\xa0" + (32).to_bytes(32) + (5).to_bytes(32) + b'no "x'.ljust(32, b"\0")
    found = read(frame(frame(error="execution reverted", output="0x" + words.hex()), error="out of gas"))
    assert found is not None
    assert (found.root.reason, found.root.calls[0].reason) == ("out of gas", "no 'x")


def test_the_tree_is_cut_and_says_so() -> None:
    wide = read(frame(*[frame()] * (MAX_FRAMES + 9)))
    deep: dict[str, Any] = frame()
    for _ in range(MAX_DEPTH + 4):
        deep = frame(deep)
    nested = read(deep)
    assert wide is not None
    assert nested is not None
    assert (count(wide.root), wide.left_out) == (MAX_FRAMES, 10)
    assert (count(nested.root), nested.left_out) == (MAX_DEPTH + 1, 1)


@pytest.mark.parametrize(
    "told",
    [
        None, [], {"type": "CALL", "to": "0x12"}, frame(value="5"), frame(input="0xabc"),
        frame(logs=[{"address": TOKEN, "topics": [TRANSFER[:-1]], "data": "0x"}]),
        frame(logs=[{"address": TOKEN, "topics": [TRANSFER] * 5, "data": "0x"}]),
    ],
)  # fmt: skip
def test_another_form_is_no_trace(told: object) -> None:
    assert read(told) is None


def test_an_answer_that_is_nested_too_deeply_is_no_trace() -> None:
    text = b'{"type":"CALL","calls":[' * 100_000 + b"]}" * 100_000
    assert read_trace(text) is None
