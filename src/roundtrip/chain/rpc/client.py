"""Typed JSON-RPC over HTTP, one trip for a batch. Ids, sizes and shapes of the node's answers are checked."""

import asyncio
import contextlib
import math
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec

from roundtrip.domain.base.errors import TOOK_TOO_LONG, NodeFault, ServiceFull
from roundtrip.domain.base.metrics import Measures

from .data_fee import NO_DATA_FEE, DataFee
from .node_words import cut_secrets, secrets_in
from .refusals import explain_refusal
from .rpc_error import REVERTED as REVERTED
from .rpc_error import RpcError as RpcError

MAX_WAIT_S = 10
"""How long a command waits, once, where a node refuses and says how long to wait."""
MAX_ANSWER_BYTES = 16 * 2**20
"""The largest answer to a batch. Eight venues with ordinary tokens take about 0.6 MB."""

READ_METHODS = frozenset(
    {
        "debug_traceCall",
        "debug_traceTransaction",
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
"""Every method that is ever sent to a node. All of them read; none changes or sends anything."""


@dataclass(frozen=True, slots=True)
class RpcCall:
    """One JSON-RPC request of a batch. Raises ValueError for a method that does more than read: every request
    to a node is made here, so this service cannot send a transaction."""

    method: str
    params: Sequence[object] | msgspec.Raw

    def __post_init__(self) -> None:
        if self.method not in READ_METHODS:
            raise ValueError(f"this service only reads from a node, and {self.method} is not in READ_METHODS")


def entries(calls: Sequence[RpcCall]) -> list[dict[str, Any]]:
    """The calls of one batch as they are sent; an id is the call's index."""
    return [
        {"jsonrpc": "2.0", "id": index, "method": call.method, "params": call.params}
        for index, call in enumerate(calls)
    ]


Answer = msgspec.Raw | RpcError
"""A node's answer to one call: the raw JSON of its result, or an error."""


class _RpcAnswer(msgspec.Struct):
    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: RpcError | None = None


class NodeTimeout(NodeFault):
    """No answer came in time. That alone does not show whether the node or the request is to blame."""

    def __init__(self) -> None:
        super().__init__(TOOK_TOO_LONG)


class CodeFault(NodeFault):
    """A contract's code caused the fault, not the node: it counts as a call of the caller."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.counts = True


class NodeAnswerTooLarge(CodeFault):
    """The answer exceeds the size that this service reads: some contract returns very much data."""


class NodeAnswerTooDeep(NodeAnswerTooLarge):
    """The answer is nested too deeply to be read: a trace of calls inside each other."""


class SimulationTooLong(CodeFault):
    """A simulation used up its time while the node answered other requests."""

    def __init__(self) -> None:
        super().__init__("a simulation took too long")
        self.message = "Simulating this token takes longer than this service allows."


class NodeRefused(NodeFault):
    """The node refused the whole request: an HTTP ``status`` other than 200, or one ``error`` in place of a
    batch's answers. ``retry_after_s``: how long the node's retry-after header asks to wait."""

    def __init__(
        self,
        why: str,
        status: int,
        error: RpcError | None = None,
        retry_after_s: int | None = None,
        remedy: str = "",
    ) -> None:
        super().__init__(why, remedy)
        self.http_status = status
        self.error = error
        self.node_retry_after_s = retry_after_s


@dataclass(slots=True)
class Meter:
    """The cost of using the node: trips (HTTP requests), the calls in them, and the time they took."""

    trips: int = 0
    calls: int = 0
    node_ms: float = 0.0

    def add(self, *meters: "Meter") -> None:
        """Counts uses that ran at the same time: the most trips and the longest time, the calls of all."""
        self.trips += max((meter.trips for meter in meters), default=0)
        self.calls += sum(meter.calls for meter in meters)
        self.node_ms += max((meter.node_ms for meter in meters), default=0.0)


@dataclass(slots=True)
class Budget:
    """The node calls that this process may make in a day. ``calls_per_day`` 0: no limit. ``code``,
    ``message``: of the error that is raised when they are spent. ``spent``: those of ``day``, counted from
    1970 in UTC."""

    calls_per_day: int = 0
    code: str = "budget_spent"
    message: str = "Today's budget of chain calls is used up. It renews at 00:00 UTC."
    spent: int = 0
    day: int = -1

    def affords(self, calls: int, now_s: float) -> bool:
        """Whether the day has room for this many more."""
        spent = self.spent if int(now_s // 86_400) == self.day else 0
        return not self.calls_per_day or spent + calls <= self.calls_per_day

    def spend(self, calls: int, now_s: float) -> None:
        """Counts ``calls``. Raises ServiceFull when the day has no room for them."""
        if not self.calls_per_day:
            return
        today = int(now_s // 86_400)
        if not self.affords(calls, now_s):
            wait_s = int((today + 1) * 86_400 - now_s) + 1
            raise ServiceFull(self.code, self.message, wait_s)
        if today != self.day:
            self.day, self.spent = today, 0
        self.spent += calls


EXECUTING_METHODS = frozenset(
    {
        "debug_traceCall",
        "debug_traceTransaction",
        "eth_call",
        "eth_createAccessList",
        "eth_estimateGas",
        "eth_simulateV1",
    }
)
"""Methods that run contracts' code, so the time they take does not depend on the node alone."""


def runs_code(calls: Sequence[RpcCall]) -> bool:
    """Whether a batch makes the node run contracts' code."""
    return any(call.method in EXECUTING_METHODS for call in calls)


class RpcNode(Protocol):
    """Answers JSON-RPC: one node (``Node``), several (``node_pool.NodePool``), or a wrapper around them
    (``recorder``, ``bulkhead``, ``daily_budget``)."""

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]: ...

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[Answer] | NodeFault]: ...


@dataclass(slots=True)
class Node:
    """One node behind one url. Answers are in the order of the calls.

    ``patience_s``: how long it waits, once, where the node refuses and its retry-after header asks for no
    longer; it waits again only after an answer. 0: it does not wait."""

    url: str
    session: aiohttp.ClientSession
    timeout_s: float = 5.0
    budget: Budget = field(default_factory=Budget)
    most_answer_bytes: int = MAX_ANSWER_BYTES
    clock: Callable[[], float] = time.time
    measures: Measures = field(default_factory=Measures)
    data_fee: DataFee = NO_DATA_FEE
    """Its gas is added to the gas limits of plain calls, which are for the execution alone. Plans of
    simulations add it themselves."""
    patience_s: float = 0.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _has_waited: bool = field(default=False, init=False)
    _secrets: tuple[str, ...] = field(default=(), init=False)
    _headers: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._secrets = secrets_in(self.url)
        # On this machine compression costs time and saves nothing; elsewhere it saves nine tenths.
        encoding = "identity" if urlsplit(self.url).hostname in _LOOPBACK else "gzip, deflate"
        self._headers = _HEADERS | {"accept-encoding": encoding}

    def note_data_fee(self, fee: DataFee) -> None:
        """Takes the fee that the chain charges now."""
        self.data_fee = fee

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        """Sends one trip. Each answer is the raw JSON of a result, or the node's error for that call.

        ``budgeted``: counted in the day's budget. Following the head is not: it never stops.

        A call without a usable answer gets an RpcError of code 0. Raises NodeFault when no answer is usable,
        NodeTimeout when none came in time, NodeAnswerTooLarge above ``most_answer_bytes``, ServiceFull when
        the budget is spent.
        """
        if budgeted:
            self.budget.spend(len(calls), self.clock())
        body = msgspec.json.encode(entries([_with_data_gas(call, self.data_fee) for call in calls]))
        raw = await self._send_patiently(calls, body, meter, timeout_s or self.timeout_s)
        return [self._cut_secrets(answer) for answer in _sort_answers(raw, calls)]

    def _cut_secrets(self, answer: Answer) -> Answer:
        """An error may repeat the URL that it was asked at. Our own, ``NULL`` and ``NO_ANSWER``, do not."""
        if not isinstance(answer, RpcError) or answer is NULL or answer is NO_ANSWER:
            return answer
        if not any(word in answer.message for word in self._secrets):
            return answer
        return RpcError(answer.code, cut_secrets(answer.message, self._secrets), answer.data)

    async def _send_patiently(
        self, calls: Sequence[RpcCall], body: bytes, meter: Meter | None, timeout_s: float
    ) -> bytes:
        try:
            raw = await self._send_measured(calls, body, meter, timeout_s)
        except NodeRefused as refused:
            wait_s = refused.node_retry_after_s
            if self._has_waited or wait_s is None or not wait_s <= self.patience_s or not self.patience_s:
                raise
            await self.sleep(wait_s)
            try:
                raw = await self._send_measured(calls, body, meter, timeout_s)
            except NodeRefused:
                self._has_waited = True
                raise
        self._has_waited = False
        return raw

    async def _send_measured(
        self, calls: Sequence[RpcCall], body: bytes, meter: Meter | None, timeout_s: float
    ) -> bytes:
        measures, sort = self.measures, SORTS[any(call.method == "eth_simulateV1" for call in calls)]
        started, ended = time.perf_counter(), "failed"
        with measures.span("node", sort) as note:
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
                note("calls", len(calls))
                note("ended", ended)
        return raw

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[Answer] | NodeFault]:
        """Sends several batches at once, counted as one trip. A batch that fails does not affect the others.

        A batch without a usable answer gets its NodeFault. Raises ServiceFull when the budget is spent.
        """
        own = Meter()
        started = time.perf_counter()
        outcomes = await asyncio.gather(*(self.batch(group, own) for group in groups), return_exceptions=True)
        meter.trips += 1
        meter.calls += own.calls
        meter.node_ms += (time.perf_counter() - started) * 1000
        return _raise_unless_faults(outcomes)

    async def _post(self, body: bytes, timeout_s: float) -> bytes:
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self.session.post(
                self.url, data=body, headers=self._headers, timeout=timeout, allow_redirects=False
            ) as response:
                received = bytearray()
                async for chunk in response.content.iter_any():
                    received += chunk
                    if len(received) > self.most_answer_bytes:
                        response.close()
                        # The fault's traceback keeps this frame alive.
                        received.clear()
                        raise NodeAnswerTooLarge("the node's answer is too large to read")
                if not received.lstrip().startswith(b"["):
                    wait_s = _read_wait(response.headers.get("retry-after"), self.clock())
                    raise _refusal_of(bytes(received), response.status, wait_s, self._secrets)
                return bytes(received)
        except TimeoutError as error:
            raise NodeTimeout from error
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            raise NodeFault("the connection to the node failed") from error


def _with_data_gas(call: RpcCall, fee: DataFee) -> RpcCall:
    """The call as it is sent; one with a gas limit of its own gets the gas for its data beside it."""
    if not fee.wei or call.method not in _CALLS_WITH_GAS:
        return call
    sent = call.params[0]
    if not isinstance(sent, dict) or "gas" not in sent:
        return call
    gas = int(sent["gas"], 16) + fee.gas(sent.get("data", "0x"))
    return RpcCall(call.method, [{**sent, "gas": hex(gas)}, *call.params[1:]])


_CALLS_WITH_GAS = EXECUTING_METHODS - {"eth_simulateV1"}


async def send_each(
    node: RpcNode, groups: Sequence[Sequence[RpcCall]], meter: Meter
) -> list[list[Answer] | NodeFault]:
    """``RpcNode.batches`` by one ``node.batch`` per group, all at once; their meters are added up."""
    meters = [Meter() for _ in groups]
    batches = (node.batch(group, own) for group, own in zip(groups, meters, strict=True))
    outcomes = await asyncio.gather(*batches, return_exceptions=True)
    meter.add(*meters)
    return _raise_unless_faults(outcomes)


def _raise_unless_faults(outcomes: Sequence[list[Answer] | BaseException]) -> list[list[Answer] | NodeFault]:
    """The answers or the fault of each batch. Raises the first exception that is not a NodeFault."""
    answers: list[list[Answer] | NodeFault] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, NodeFault):
            raise outcome
        answers.append(outcome)
    return answers


SORTS = ("reads", "simulations")
"""The kinds of trips to a node that are measured apart: simulations take much longer."""


_QUANTITY = re.compile(r"0x[0-9a-fA-F]{1,64}")
_HEADERS = {"content-type": "application/json", "accept": "application/json"}
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
NO_ANSWER = RpcError(message="the node sent no answer to this call")
NULL = RpcError(message="the node knows of no such transaction")
"""The meaning of a null answer to ``NULLABLE``; for any other method null is no answer."""
NULLABLE = frozenset({"eth_getTransactionByHash", "eth_getTransactionReceipt"})


def _read_wait(retry_after: str | None, now_s: float) -> int | None:
    """The seconds that a retry-after header asks to wait, given as a number or as a date; None: it is
    neither."""
    if retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return int(retry_after[:9])
    try:
        return max(0, math.ceil(parsedate_to_datetime(retry_after).timestamp() - now_s))
    except (ValueError, OverflowError):
        return None


def _refusal_of(
    raw: bytes, status: int, wait_s: int | None = None, secrets: tuple[str, ...] = ()
) -> NodeRefused:
    """Reads an answer that is not a list of answers."""
    body = cut_secrets(raw[:_READ_BYTES].decode("utf-8", "replace"), secrets)
    error = None
    if raw.lstrip().startswith(b"{"):
        with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
            error = msgspec.json.decode(raw, type=_RpcAnswer).error
    if error is not None:
        error = RpcError(error.code, cut_secrets(error.message, secrets), error.data)
    refusal = explain_refusal(body, status, error, wait_s)
    return NodeRefused(refusal.why, status, error, wait_s, refusal.remedy)


_READ_BYTES = 16_384
"""So much of an answer that is not JSON-RPC is read for the node's words."""


_NESTED_METHODS = frozenset({"debug_traceCall", "debug_traceTransaction"})
"""Methods whose answers are nested as deeply as contracts nest their calls."""


def _sort_answers(raw: bytes, calls: Sequence[RpcCall]) -> list[Answer]:
    try:
        answers = msgspec.json.decode(raw, type=list[_RpcAnswer])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        if isinstance(error, RecursionError) and any(call.method in _NESTED_METHODS for call in calls):
            raise NodeAnswerTooDeep("the node's answer is nested too deeply to read") from error
        raise NodeFault("the node's answer is not a batch") from error
    sorted_answers: list[Answer] = [NO_ANSWER] * len(calls)
    seen: set[int] = set()
    for answer in answers:
        if not isinstance(answer.id, int) or not 0 <= answer.id < len(calls):
            continue
        if answer.id in seen:
            # Two answers to one call: both are discarded.
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
        raise NodeFault("the node answered none of the calls")
    return sorted_answers


def quantity(answer: Answer) -> int:
    """Decodes a hex quantity. Raises NodeFault when it is none."""
    digits = text(answer)
    if not _QUANTITY.fullmatch(digits):
        raise NodeFault("the node sent something that is not a number")
    return int(digits, 16)


def text(answer: Answer) -> str:
    """Decodes a JSON string. Raises NodeFault when it is none."""
    if isinstance(answer, RpcError):
        # A node's own message may hold a contract's text.
        raise NodeFault(f"error {answer.code}")
    try:
        return msgspec.json.decode(answer, type=str)
    except (msgspec.DecodeError, ValueError) as error:
        raise NodeFault("the node sent something that is not text") from error


def hex_bytes(answer: Answer) -> bytes:
    """Decodes ``0x`` hex. Raises NodeFault when it is none."""
    try:
        return bytes.fromhex(text(answer).removeprefix("0x"))
    except ValueError as error:
        raise NodeFault("the node sent something that is not hex") from error
