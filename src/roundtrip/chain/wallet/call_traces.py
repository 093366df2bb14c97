"""The calls inside a call, as a node's call tracer tells them. Many nodes serve none. The node is not
trusted: what it says here is shown, and decides nothing."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from roundtrip.chain.rpc.client import (
    Meter,
    NodeAnswerTooDeep,
    NodeAnswerTooLarge,
    RpcCall,
    RpcError,
    RpcNode,
)
from roundtrip.chain.rpc.hex_fields import HexAddress, HexBytes, Quantity
from roundtrip.chain.rpc.node_logs import UnverifiedLog
from roundtrip.chain.simulate.revert_reason import reason_in
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.events import Transferred
from roundtrip.domain.base.names import reason
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.venues import erc20
from roundtrip.venues.base import Call

MAX_FRAMES, MAX_DEPTH, MAX_MOVES = 150, 24, 200
"""The most calls of one trace, the most inside each other, and the most tokens' movements, that are kept."""
MAX_TRACE_BYTES = 4 * 2**20
"""A longer answer is not read: decoding it holds all that this process does."""
_TRACER: Mapping[str, object] = {"tracer": "callTracer", "tracerConfig": {"withLog": True}, "timeout": "3s"}
_HEAD = 4
_PLENTY_WEI = 2**96

Untold = Literal["not_told", "too_deep", "too_large"]
"""Why there is no trace: the node does not tell, or not in a known form; its calls are nested too deeply to
be read; its answer is too large."""


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One call. ``kind``: as the tracer names it, such as CALL or DELEGATECALL. ``head``: the function's
    selector, or less. ``reason``: why it failed, cleaned; None: it did not. ``is_undone``: it ran inside one
    that failed, so that nothing of it stays. ``moves``: what tokens reported, in order; empty where nothing
    of it stays."""

    kind: str
    to: Address | None
    value_wei: int
    head: bytes
    reason: str | None
    is_undone: bool
    moves: tuple[Transferred, ...]
    calls: tuple["TracedCall", ...]


@dataclass(frozen=True, slots=True)
class CallTrace:
    """``left_out``: how many calls inside are not in the tree, with those inside them: those that only read
    are never counted. ``moves_left_out``: how many movements of tokens are not."""

    root: TracedCall
    left_out: int
    moves_left_out: int


class _Frame(msgspec.Struct):
    type: str
    to: HexAddress | None = None
    value: Quantity | None = None
    input: HexBytes = "0x"
    output: HexBytes | None = None
    error: str | None = None
    logs: list[UnverifiedLog] = []
    calls: list["_Frame"] = []


async def trace_transaction(node: RpcNode, tx_hash: TxHash, meter: Meter) -> CallTrace | Untold:
    """The calls of a transaction in a block."""
    return await _trace(node, RpcCall("debug_traceTransaction", [tx_hash, _TRACER]), meter)


async def trace_call(
    node: RpcNode, sender: Address, call: Call, gas: int, block: int, has_plenty: bool, meter: Meter
) -> CallTrace | Untold:
    """The calls of one call with the limit ``gas`` on the state after ``block``. ``has_plenty``: its sender
    has plenty of eth."""
    sent = {"from": sender, "to": call.to, "data": call.data, "value": hex(call.value_wei), "gas": hex(gas)}
    overrides = {sender: {"balance": hex(_PLENTY_WEI)}} if has_plenty else {}
    options = {**_TRACER, "stateOverrides": overrides}
    return await _trace(node, RpcCall("debug_traceCall", [sent, hex(block), options]), meter)


async def _trace(node: RpcNode, request: RpcCall, meter: Meter) -> CallTrace | Untold:
    try:
        (answer,) = await node.batch([request], meter)
    except NodeAnswerTooDeep:
        return "too_deep"
    except NodeAnswerTooLarge:
        return "too_large"
    except NodeFault:
        return "not_told"
    if isinstance(answer, RpcError):
        return "not_told"
    # A large answer takes long: a thread keeps the event loop free.
    return await asyncio.to_thread(read_trace, answer)


def read_trace(answer: bytes | msgspec.Raw) -> CallTrace | Untold:
    """The tree in a tracer's answer."""
    if len(answer) > MAX_TRACE_BYTES:
        return "too_large"
    try:
        frame, kept = msgspec.json.decode(answer, type=_Frame), _KeptFrames()
        return CallTrace(kept.read(frame, 0, is_undone=False), kept.left_out, kept.moves_left_out)
    except RecursionError:
        return "too_deep"
    except (msgspec.DecodeError, ValueError):
        return "not_told"


@dataclass(slots=True)
class _KeptFrames:
    frames: int = 0
    left_out: int = 0
    moves: int = 0
    moves_left_out: int = 0

    def read(self, frame: _Frame, depth: int, is_undone: bool) -> TracedCall:
        self.frames += 1
        is_lost = is_undone or frame.error is not None
        moves = () if is_lost else tuple(self._keep_moves(frame))
        inner = []
        for one in _changing(frame):
            if self.frames >= MAX_FRAMES or depth >= MAX_DEPTH:
                self._leave_out(one, is_lost)
            else:
                inner.append(self.read(one, depth + 1, is_lost))
        return TracedCall(
            kind=frame.type.upper()[:16],
            to=None if frame.to is None else Address(frame.to.lower()),
            value_wei=int(frame.value or "0x0", 16),
            head=bytes.fromhex(frame.input[2 : 2 + 2 * _HEAD]),
            reason=_read_reason(frame),
            is_undone=is_undone,
            moves=moves,
            calls=tuple(inner),
        )

    def _keep_moves(self, frame: _Frame) -> Iterator[Transferred]:
        for moved in _moves(frame):
            if self.moves < MAX_MOVES:
                self.moves += 1
                yield moved
            else:
                self.moves_left_out += 1

    def _leave_out(self, frame: _Frame, is_undone: bool) -> None:
        """Counts the call, those inside it, and what they move, however deep: without recursion."""
        waiting = [(frame, is_undone)]
        while waiting:
            one, is_lost = waiting.pop()
            is_lost = is_lost or one.error is not None
            self.left_out += 1
            self.moves_left_out += 0 if is_lost else sum(1 for _ in _moves(one))
            waiting += [(inner, is_lost) for inner in _changing(one)]


def _changing(frame: _Frame) -> Iterator[_Frame]:
    """The calls inside but for those that only read: these move nothing, however much they call."""
    return (one for one in frame.calls if one.type != "STATICCALL")


def _moves(frame: _Frame) -> Iterator[Transferred]:
    """The transfers among its logs; other events have as many topics. Raises ValueError for a malformed
    one."""
    for log in frame.logs:
        if log.topics and log.topics[0].lower() == erc20.TRANSFER_TOPIC:
            moved = erc20.decode_transfer(log.decode())
            if moved is not None:
                yield moved


def _read_reason(frame: _Frame) -> str | None:
    if frame.error is None:
        return None
    told = reason_in(bytes.fromhex((frame.output or "0x")[2:])) if frame.output else None
    return reason(told or frame.error)
