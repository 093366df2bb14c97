"""What every door does with a request: limit, read the parameters, run, write the answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import structlog

from roundtrip.api.admission.gate import Admitted, CallRefused, Gate
from roundtrip.api.admission.minute_limits import Ticket
from roundtrip.api.operations.operation import AnyOperation, HandlerCall
from roundtrip.api.request.callers import CallerRequest
from roundtrip.api.request.failure_log import Failures
from roundtrip.api.request.idempotency import read_once
from roundtrip.api.request.min_block import read_min_block
from roundtrip.api.request.request_ids import request_id
from roundtrip.api.sharing.single_flight import FlightCaller, SharedAnswer, SharedAnswers, TookTooLong
from roundtrip.domain.accounts.keys import without_keys
from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import wait_for_block
from roundtrip.services.support.wallet_params import WalletParams

log = structlog.get_logger(__name__)

Door = Literal["http", "mcp", "pages"]
"""By which a request came."""

Reads = Callable[[], Awaitable[Mapping[str, object]]]
"""Raises CallerFault."""

DEADLINE_S = 30.0
"""For one run: the longest that any use case waits for its node is some twenty seconds."""

_NO_QUERY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DoorReply:
    """An answer on its way out: encoded, with the headers that every door may show. ``forms``: of an answer
    that is shared, what doors made of it before, and keep with it."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    error: RoundtripError | None = None
    forms: dict[str, bytes] | None = field(default=None, compare=False, repr=False)


class ErrorDetail(msgspec.Struct, frozen=True):
    """Code and message of an error."""

    code: str
    message: str


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The body of every error."""

    error: ErrorDetail


class TracedFailure(RoundtripError):
    """What was not the caller's doing: the message names a request id that the log knows."""

    def __init__(self, code: str, message: str, request: str, retry_after_s: int | None = None) -> None:
        super().__init__(code, f"{message} Request {request}.", retry_after_s)
        self.said = message
        self.request_id = request


class Unexpected(TracedFailure):
    """A fault of ours that nobody foresaw."""

    def __init__(self, request: str | None = None) -> None:
        super().__init__("internal", "Something failed on our side.", request or request_id())


def with_request_id(error: RoundtripError, request: str | None = None) -> RoundtripError:
    """The error as its caller is told it: with the request's id, where it was not his doing."""
    if error.status < 500 or isinstance(error, TracedFailure):
        return error
    return TracedFailure(error.code, error.message, request or request_id(), error.retry_after_s)


def error_reply(error: RoundtripError, headers: Mapping[str, str] | None = None) -> DoorReply:
    """An error as its caller is told it."""
    return render_error(with_request_id(error), headers)


def render_error(error: RoundtripError, headers: Mapping[str, str] | None = None) -> DoorReply:
    """The specification's error shape."""
    body = msgspec.json.encode(ErrorAnswer(ErrorDetail(error.code, error.message)))
    found = dict(headers or {})
    if error.retry_after_s is not None:
        found["retry-after"] = str(error.retry_after_s)
    return DoorReply(error.status, body, found, error)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The one way from a door to a use case."""

    ctx: Context
    gate: Gate
    shared: SharedAnswers
    deadline_s: float = DEADLINE_S
    clock: Callable[[], float] = time.perf_counter
    """Seconds that never go back, of which durations are measured."""
    failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "failures", Failures(self.clock))

    async def run(
        self,
        operation: AnyOperation,
        raw: Mapping[str, object] | Reads,
        asking: CallerRequest,
        query: Mapping[str, str] = _NO_QUERY,
        once: tuple[object, ...] = (),
        door: Door = "http",
        min_block: tuple[object, ...] = (),
    ) -> DoorReply:
        """Answers one request. Never raises: every failure is a Reply. ``raw``: the parameters as they came,
        or what reads them, once the caller is let in. ``query``: what came by the query string, where there
        is one. ``once``: the idempotency keys that it shows, and ``min_block``: which block its answer has to
        be of at least, as they came."""
        measures, began_s = self.ctx.measures, self.clock()
        if door == "pages":
            # Theirs alone are in no table that the door could begin with.
            measures.count("errors", operation.name, "internal", by=0)
        with measures.span("request", operation.name, is_root=True) as span:
            reply = await self._run(operation, raw, asking, query, once, min_block)
            ended = _ending_of(reply)
            if measures.traces is not None:
                span.note("request", request_id())
            span.note("door", door)
            span.note("ended", ended)
            if reply.error is not None:
                span.note("code", reply.error.code)
                self._record_failure(reply.error, operation, door)
        measures.observe("operation", operation.name, ended, self.clock() - began_s)
        measures.count("requests", door, ended)
        return reply

    def _record_failure(self, error: RoundtripError, operation: AnyOperation, door: Door) -> None:
        """Counts it, and puts down in the log what was our doing; of what nobody foresaw that is done."""
        self.ctx.measures.count("errors", operation.name, error.code)
        if isinstance(error, TracedFailure) and not isinstance(error, Unexpected):
            self.failures.tell(error, operation.name, door)

    async def _run(
        self,
        operation: AnyOperation,
        raw: Mapping[str, object] | Reads,
        asking: CallerRequest,
        query: Mapping[str, str],
        once: tuple[object, ...],
        min_block: tuple[object, ...],
    ) -> DoorReply:
        admitted: Admitted | None = None
        try:
            admitted = await self.gate.admit(asking, operation.counts, operation.key)
            params = read_params(operation, raw if isinstance(raw, Mapping) else await raw(), query)
            key = read_once(once) if operation.once else None
            least = read_min_block(min_block) if operation.takes_min_block else 0
            if least:
                await wait_for_block(self.ctx, least)
            shared, hit = await self._answer(operation, params, admitted, asking, key, least)
        except CallRefused as refused:
            return error_reply(refused.error, _ticket_headers(refused.ticket))
        except RoundtripError as error:
            return error_reply(error, _ticket_headers(self._unpaid(admitted, error.counts)))
        except Exception:
            unexpected = Unexpected()
            log.exception("request failed", request=unexpected.request_id, operation=operation.name)
            return error_reply(unexpected, _ticket_headers(self._unpaid(admitted, counted=False)))
        except BaseException:
            # Nobody reads the answer; the run goes on for others.
            if admitted is not None:
                self.gate.release(admitted)
            raise
        headers = _ticket_headers(await self._settle(admitted, shared.counted))
        if operation.shared_by is None:
            return DoorReply(200, shared.body, headers)
        headers["x-cache"] = "hit" if hit else "miss"
        return DoorReply(200, shared.body, headers, forms=shared.forms)

    async def _settle(self, admitted: Admitted | None, counted: bool) -> Ticket | None:
        """Has the call paid for, or hands it back where the answer is spoiled."""
        if admitted is None or not counted:
            return self._unpaid(admitted, counted)
        await self.gate.settle(admitted)
        return admitted.ticket

    def _unpaid(self, admitted: Admitted | None, counted: bool) -> Ticket | None:
        """An error costs no credit, and counts only where it was the caller's doing."""
        if admitted is None:
            return None
        if not counted:
            return self.gate.hand_back(admitted).ticket
        self.gate.release(admitted)
        return admitted.ticket

    async def _answer(
        self,
        operation: AnyOperation,
        params: msgspec.Struct,
        admitted: Admitted,
        asking: CallerRequest,
        once: str | None,
        least: int,
    ) -> tuple[SharedAnswer, bool]:
        caller = asking.name if admitted.account is None else f"account:{admitted.account.id}"
        address = asking.name if self.gate.is_bound(asking) else None

        async def make() -> SharedAnswer:
            ctx = self.ctx
            if operation.lane is not None:
                ctx = ctx.for_caller(caller, operation.lane, _token_of(params), address)
            call = HandlerCall(ctx, params, admitted.account, once)
            with self.ctx.measures.span("use_case", operation.name):
                answered = await self._in_time(operation.handler(call))
            body = msgspec.json.encode(answered.answer)
            msgspec.json.decode(body, type=operation.answer)
            return SharedAnswer(body, answered.ttl_ms, answered.counted, answered.block, answered.is_absence)

        asker = FlightCaller(
            admitted.account is not None, admitted.account.id if admitted.account else None, address
        )
        if operation.counts == "never":
            return await make(), False
        if operation.shared_by is None:
            with self.shared.alone(asker):
                return await make(), False
        question = f"{operation.name}:{operation.shared_by(params)}"
        kept = self.shared.fresh(question) if least else None
        if least and (kept is None or kept.block < least):
            # Shared by those only who waited for the same block: another process may be behind it.
            question += f" from block {least}"
        return await self.shared.get(question, make, asker)

    async def _in_time(self, answering: Awaitable[UseCaseAnswer[Any]]) -> UseCaseAnswer[Any]:
        """Whoever waits for it waits no longer, and its place is free again."""
        deadline = asyncio.timeout(self.deadline_s)
        try:
            async with deadline:
                return await answering
        except TimeoutError:
            if not deadline.expired():
                raise
            raise TookTooLong from None


def _token_of(params: msgspec.Struct) -> str | None:
    """The token that a request names; what else it names cannot be told from its parameters."""
    named = getattr(params, "token", None) or getattr(params, "address", None)
    return named.lower() if isinstance(named, str) else None


def _ending_of(reply: DoorReply) -> str:
    """What became of a request: an answer that was made for it, or shared with it; refused for what the
    caller did, or failed for what he did not."""
    if reply.error is not None:
        return "refused" if reply.error.status < 500 else "failed"
    return "shared" if reply.headers.get("x-cache") == "hit" else "made"


def read_params(
    operation: AnyOperation, raw: Mapping[str, object], query: Mapping[str, str] = _NO_QUERY
) -> msgspec.Struct:
    """The parameters as the use case's own type. Of the query only what the operation takes by it counts, and
    that comes by nothing else. Raises CallerFault."""
    for name in operation.query:
        if name in raw:
            raise CallerFault(
                operation.bad_params, f"The request does not fit: {name} is no parameter of it."
            )
    known = {name: query[name] for name in operation.query if name in query}
    try:
        params: Any = msgspec.convert({**_whole(raw), **known}, type=operation.params)
    except msgspec.ValidationError as error:
        if operation.bad_params == "bad_address" and "$.address" in str(error):
            what = "an address" if issubclass(operation.params, WalletParams) else "a token address"
            raise CallerFault("bad_address", f"That is not {what}: 0x and 40 hex digits.") from None
        raise CallerFault(operation.bad_params, f"The request does not fit: {_unfit(str(error))}.") from None
    assert isinstance(params, msgspec.Struct)
    return params


def _whole(raw: Mapping[str, object]) -> dict[str, object]:
    """JSON has one kind of number: 100.0 is as good an integer as 100."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in raw.items()
    }


def _unfit(told: str) -> str:
    """What is wrong, in words: a pattern tells a program's reader nothing that the documentation does not."""
    # A field may be named like anything, also like a key that was put in the wrong place.
    told = without_keys(told)
    what, _, where = told.partition(" - at `$.")
    field = where.rstrip("`")
    return f"{field} is not in the form that it has to have" if "matching regex" in what else told[:200]


def _ticket_headers(ticket: Ticket | None) -> dict[str, str]:
    if ticket is None:
        return {}
    return {
        "x-ratelimit-limit": str(ticket.limit),
        "x-ratelimit-remaining": str(max(0, ticket.remaining)),
    }
