"""The calls inside a call, as a node's call tracer tells them. Many nodes serve none. The node is not
trusted: what it says here is shown, and decides nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, RpcNode
from roundtrip.chain.rpc.hex_fields import HexAddress, HexBytes, Quantity
from roundtrip.chain.rpc.node_logs import UnverifiedLog
from roundtrip.chain.simulate.revert_reason import reason_in
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.names import reason
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.venues.base import Call, Log

MAX_FRAMES, MAX_DEPTH = 150, 24
"""The most calls of one trace, and the most inside each other, that are kept."""
_TRACER: Mapping[str, object] = {"tracer": "callTracer", "tracerConfig": {"withLog": True}, "timeout": "3s"}
_HEAD = 4
_MAX_LOGS = 40
_PLENTY_WEI = 2**96


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One call. ``kind``: as the tracer names it, such as CALL or DELEGATECALL. ``head``: the function's
    selector, or less. ``reason``: why it failed, cleaned; None: it did not."""

    kind: str
    to: Address | None
    value_wei: int
    head: bytes
    reason: str | None
    logs: tuple[Log, ...]
    calls: tuple["TracedCall", ...]


@dataclass(frozen=True, slots=True)
class CallTrace:
    """``left_out``: how many calls inside are not in the tree: those that only read are never counted."""

    root: TracedCall
    left_out: int


class _Frame(msgspec.Struct):
    type: str
    to: HexAddress | None = None
    value: Quantity | None = None
    input: HexBytes = "0x"
    output: HexBytes | None = None
    error: str | None = None
    logs: list[UnverifiedLog] = []
    calls: list["_Frame"] = []


async def trace_transaction(node: RpcNode, tx_hash: TxHash, meter: Meter) -> CallTrace | None:
    """The calls of a transaction in a block; None: the node does not tell."""
    return await _trace(node, RpcCall("debug_traceTransaction", [tx_hash, _TRACER]), meter)


async def trace_call(
    node: RpcNode, sender: Address, call: Call, block: int, has_plenty: bool, meter: Meter
) -> CallTrace | None:
    """The calls of one call on the state after ``block``. ``has_plenty``: its sender has plenty of eth. None:
    the node does not tell."""
    sent = {"from": sender, "to": call.to, "data": call.data, "value": hex(call.value_wei)}
    overrides = {sender: {"balance": hex(_PLENTY_WEI)}} if has_plenty else {}
    options = {**_TRACER, "stateOverrides": overrides}
    return await _trace(node, RpcCall("debug_traceCall", [sent, hex(block), options]), meter)


async def _trace(node: RpcNode, request: RpcCall, meter: Meter) -> CallTrace | None:
    try:
        (answer,) = await node.batch([request], meter)
    except NodeFault:
        return None
    return None if isinstance(answer, RpcError) else read_trace(answer)


def read_trace(answer: bytes | msgspec.Raw) -> CallTrace | None:
    """The tree in a tracer's answer; None: it has another form, or is nested too deeply to be read."""
    try:
        frame, kept = msgspec.json.decode(answer, type=_Frame), _Kept()
        return CallTrace(kept.read(frame, 0), kept.left_out)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


@dataclass(slots=True)
class _Kept:
    frames: int = 0
    left_out: int = 0

    def read(self, frame: _Frame, depth: int) -> TracedCall:
        self.frames += 1
        inner = []
        for one in frame.calls:
            # What only reads moves nothing, however much it calls.
            if one.type == "STATICCALL":
                continue
            if self.frames >= MAX_FRAMES or depth >= MAX_DEPTH:
                self.left_out += 1
                continue
            inner.append(self.read(one, depth + 1))
        return TracedCall(
            kind=frame.type.upper()[:16],
            to=None if frame.to is None else Address(frame.to.lower()),
            value_wei=int(frame.value or "0x0", 16),
            head=bytes.fromhex(frame.input[2 : 2 + 2 * _HEAD]),
            reason=_read_reason(frame),
            logs=tuple(log.decode() for log in frame.logs[:_MAX_LOGS]),
            calls=tuple(inner),
        )


def _read_reason(frame: _Frame) -> str | None:
    if frame.error is None:
        return None
    told = reason_in(bytes.fromhex((frame.output or "0x")[2:])) if frame.output else None
    return reason(told or frame.error)
