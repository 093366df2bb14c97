"""Typed JSON-RPC over HTTP: one batch is one trip. A node is not believed: ids, sizes, shapes are checked."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp
import msgspec

from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.metrics import Measures

MOST_ANSWER_BYTES = 16 * 2**20
"""A whole batch's answer. Eight venues with ordinary tokens take about 0.6 MB."""

READ_METHODS = frozenset(
    {
        "eth_call",
        "eth_chainId",
        "eth_createAccessList",
        "eth_estimateGas",
        "eth_gasPrice",
        "eth_getBalance",
        "eth_getBlockByHash",
        "eth_getBlockByNumber",
        "eth_getCode",
        "eth_getLogs",
        "eth_getStorageAt",
        "eth_getTransactionByHash",
        "eth_getTransactionCount",
        "eth_getTransactionReceipt",
        "eth_simulateV1",
        "eth_subscribe",
        "web3_clientVersion",
    }
)
"""All a node is ever asked: each of them reads, none changes or sends anything."""


@dataclass(frozen=True, slots=True)
class RpcCall:
    """One JSON-RPC request of a batch. Raises ValueError for a method that does more than read: there is
    no other way to a node, so nothing this service does can send."""

    method: str
    params: Sequence[object]

    def __post_init__(self) -> None:
        if self.method not in READ_METHODS:
            raise ValueError(f"this service only reads from a node, and {self.method} is not in READ_METHODS")


def entries(calls: Sequence[RpcCall]) -> list[dict[str, Any]]:
    """The calls of one batch as they are sent: an id is a call's place in it."""
    return [
        {"jsonrpc": "2.0", "id": index, "method": call.method, "params": call.params}
        for index, call in enumerate(calls)
    ]


class RpcError(msgspec.Struct, frozen=True):
    """A node's own error for one request; ``data`` is hex where it carries revert bytes."""

    code: int = 0
    message: str = ""
    data: msgspec.Raw = msgspec.Raw()


REVERTED = 3
"""The code of a call that reverted, as geth and anvil answer eth_call."""


class _RpcAnswer(msgspec.Struct):
    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: RpcError | None = None


class NodeTimeout(NodeFault):
    """No answer came in time. That alone does not say whether the node or the request is to blame."""

    def __init__(self) -> None:
        super().__init__("it took too long")


class CodeFault(NodeFault):
    """Strangers' code caused it, not the node: it counts as a call of whoever asked."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.counts = True


class NodeAnswerTooLarge(CodeFault):
    """The answer passed the size this service reads: some contract answers with very much."""


class SimulationTooLong(CodeFault):
    """A simulation took all the time it may take, while the node answered other requests."""

    def __init__(self) -> None:
        super().__init__("a simulation took too long")
        self.message = "A simulation of it takes longer than this service allows."


class NodeRefused(NodeFault):
    """It did not take the request as a whole: an HTTP ``status`` other than 200, or one ``error`` in place of
    a batch's answers. ``retry_after_s``: how long it asks to be left alone, where it says so in seconds."""

    def __init__(
        self, why: str, status: int, error: RpcError | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(why)
        self.http_status = status
        self.error = error
        self.node_retry_after_s = retry_after_s


@dataclass(slots=True)
class Meter:
    """What one use of the node cost: trips (HTTP requests), calls in them, and the time they took."""

    trips: int = 0
    calls: int = 0
    node_ms: float = 0.0

    def add(self, *beside: "Meter") -> None:
        """Counts what was done at the same time: the trips of the one that took most, the calls of all."""
        self.trips += max((one.trips for one in beside), default=0)
        self.calls += sum(one.calls for one in beside)
        self.node_ms += max((one.node_ms for one in beside), default=0.0)


@dataclass(slots=True)
class Budget:
    """How many node calls this process may make in a day. ``calls_per_day`` 0: no budget. ``code``, ``said``:
    what is told when they are spent."""

    calls_per_day: int = 0
    code: str = "budget_spent"
    said: str = "Today's budget of chain calls is used up."
    spent: int = 0
    day: int = -1

    def affords(self, calls: int, now_s: float) -> bool:
        """Whether the day has room for so many more."""
        spent = self.spent if int(now_s // 86_400) == self.day else 0
        return not self.calls_per_day or spent + calls <= self.calls_per_day

    def spend(self, calls: int, now_s: float) -> None:
        """Counts ``calls``. Raises ServiceFull when the day has no more."""
        if not self.calls_per_day:
            return
        today = int(now_s // 86_400)
        if not self.affords(calls, now_s):
            wait_s = int((today + 1) * 86_400 - now_s) + 1
            raise ServiceFull(self.code, self.said, wait_s)
        if today != self.day:
            self.day, self.spent = today, 0
        self.spent += calls


EXECUTING_METHODS = frozenset({"eth_call", "eth_createAccessList", "eth_estimateGas", "eth_simulateV1"})
"""Methods that run contracts' code: how long they take is not the node's doing alone."""


def runs_code(calls: Sequence[RpcCall]) -> bool:
    """Whether a batch makes the node run contracts' code."""
    return any(call.method in EXECUTING_METHODS for call in calls)


class RpcNode(Protocol):
    """Whoever may be asked: one node (``Node``), several as one (``nodes.Nodes``), or who stands before them
    (``recording``)."""

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]: ...

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]: ...


@dataclass(slots=True)
class Node:
    """One node behind one url. Answers come back in the order of the calls."""

    url: str
    session: aiohttp.ClientSession
    timeout_s: float = 5.0
    budget: Budget = field(default_factory=Budget)
    most_answer_bytes: int = MOST_ANSWER_BYTES
    clock: Callable[[], float] = time.time
    measures: Measures = field(default_factory=Measures)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        """One trip. Each answer is the raw JSON of a result, or the node's error for that call.

        Following the head is not ``budgeted``: it goes on when nobody asks anything.

        A call without a usable answer gets an RpcError of code 0. Raises NodeFault when nothing usable
        came back, NodeTimeout when nothing came in time, NodeAnswerTooLarge past ``most_answer_bytes``,
        ServiceFull when the budget is spent.
        """
        if budgeted:
            self.budget.spend(len(calls), self.clock())
        body = msgspec.json.encode(entries(calls))
        return _sort_answers(
            await self._send_measured(calls, body, meter, timeout_s or self.timeout_s), calls
        )

    async def _send_measured(
        self, calls: Sequence[RpcCall], body: bytes, meter: Meter | None, timeout_s: float
    ) -> bytes:
        measures, sort = self.measures, _sort(calls)
        started, ended = time.perf_counter(), "failed"
        with measures.span("node", sort) as span:
            try:
                raw = await self._post(body, timeout_s)
                ended = "answered"
            except asyncio.CancelledError:
                ended = "left"
                raise
            finally:
                took_s = time.perf_counter() - started
                measures.observe("node", sort, ended, took_s)
                for call in calls:
                    measures.count("node_calls", call.method)
                if meter is not None:
                    meter.trips += 1
                    meter.calls += len(calls)
                    meter.node_ms += took_s * 1000
                span.note("calls", len(calls))
                span.note("ended", ended)
        return raw

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        """Several batches at once, which count as one trip: what one of them suffers the others do not.

        For a batch without a usable answer its fault. Raises ServiceFull when the budget is spent.
        """
        own = Meter()
        started = time.perf_counter()
        found = await asyncio.gather(*(self.batch(group, own) for group in groups), return_exceptions=True)
        meter.trips += 1
        meter.calls += own.calls
        meter.node_ms += (time.perf_counter() - started) * 1000
        answers: list[list[msgspec.Raw | RpcError] | NodeFault] = []
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, NodeFault):
                raise one
            answers.append(one)
        return answers

    async def one(self, method: str, *params: object) -> msgspec.Raw | RpcError:
        """A single call."""
        return (await self.batch([RpcCall(method, params)]))[0]

    async def _post(self, body: bytes, timeout_s: float) -> bytes:
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self.session.post(
                self.url, data=body, headers=_HEADERS, timeout=timeout, allow_redirects=False
            ) as response:
                received = bytearray()
                async for chunk in response.content.iter_any():
                    received += chunk
                    if len(received) > self.most_answer_bytes:
                        response.close()
                        # Who keeps the fault, or its traceback, keeps this frame.
                        received.clear()
                        raise NodeAnswerTooLarge("its answer is too large to read")
                if response.status != 200 and not received.lstrip().startswith(b"["):
                    raise _refusal_of(bytes(received), response.status, response.headers.get("retry-after"))
                return bytes(received)
        except TimeoutError as error:
            raise NodeTimeout from error
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            raise NodeFault("the connection failed") from error


SORTS = ("reads", "simulations")
"""Of trips to a node: what takes long for itself."""


def _sort(calls: Sequence[RpcCall]) -> str:
    return SORTS[any(call.method == "eth_simulateV1" for call in calls)]


_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")
_HEADERS = {"content-type": "application/json", "accept": "application/json"}
NO_ANSWER = RpcError(message="the node gave no answer to this call")
NULL = RpcError(message="the node knows of no such transaction")
"""What a null says of ``NULLABLE``; to anything else it is no answer."""
NULLABLE = frozenset({"eth_getTransactionByHash", "eth_getTransactionReceipt"})
_NO_BATCH = "it answered with something that is no batch of answers"


def _refusal_of(raw: bytes, status: int, retry_after: str | None = None) -> NodeRefused:
    """What an answer says that is no list."""
    told = retry_after is not None and retry_after.isascii() and retry_after.isdigit()
    wait_s = int(retry_after[:9]) if told and retry_after is not None else None
    if not raw.lstrip().startswith(b"{"):
        return NodeRefused(f"it answered with HTTP status {status}", status, None, wait_s)
    try:
        error = msgspec.json.decode(raw, type=_RpcAnswer).error
    except (msgspec.DecodeError, ValueError, RecursionError):
        error = None
    return NodeRefused(_NO_BATCH, status, error, wait_s)


def _sort_answers(raw: bytes, calls: Sequence[RpcCall]) -> list[msgspec.Raw | RpcError]:
    try:
        answers = msgspec.json.decode(raw, type=list[_RpcAnswer])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        if raw.lstrip().startswith(b"{"):
            raise _refusal_of(raw, 200) from error
        raise NodeFault(_NO_BATCH) from error
    sorted_answers: list[msgspec.Raw | RpcError] = [NO_ANSWER] * len(calls)
    seen: set[int] = set()
    for answer in answers:
        if not isinstance(answer.id, int) or not 0 <= answer.id < len(calls):
            continue
        if answer.id in seen:
            # Two answers to one call: neither is believed.
            sorted_answers[answer.id] = NO_ANSWER
            continue
        seen.add(answer.id)
        if answer.error is not None:
            sorted_answers[answer.id] = answer.error
        elif bytes(answer.result) not in (b"", b"null"):
            sorted_answers[answer.id] = answer.result
        elif answer.result and calls[answer.id].method in NULLABLE:
            sorted_answers[answer.id] = NULL
    if all(answer is NO_ANSWER for answer in sorted_answers):
        raise NodeFault("it answered none of the calls")
    return sorted_answers


def quantity(answer: msgspec.Raw | RpcError) -> int:
    """A hex quantity. Raises NodeFault when it is none."""
    found = text(answer)
    if not _QUANTITY.fullmatch(found):
        raise NodeFault("it answered with something that is no number")
    return int(found, 16)


def text(answer: msgspec.Raw | RpcError) -> str:
    """A JSON string. Raises NodeFault when it is none."""
    if isinstance(answer, RpcError):
        # A node's own words may hold anything, also whose key it was asked with.
        raise NodeFault(f"error {answer.code}")
    try:
        return msgspec.json.decode(answer, type=str)
    except (msgspec.DecodeError, ValueError) as error:
        raise NodeFault("it answered with something that is no text") from error


def hex_bytes(answer: msgspec.Raw | RpcError) -> bytes:
    """Bytes as ``0x`` hex. Raises NodeFault when they are none."""
    try:
        return bytes.fromhex(text(answer).removeprefix("0x"))
    except ValueError as error:
        raise NodeFault("it answered with something that is no hex") from error
