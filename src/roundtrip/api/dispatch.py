"""What happens to a request from every door (HTTP, MCP or a page): check limits, read the parameters, run the
handler, encode the answer."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

import msgspec
import structlog

from roundtrip.api.admission.gate import Admitted, CallRefused, Gate
from roundtrip.api.admission.minute_limits import Ticket
from roundtrip.api.operations.operation import AnyOperation, HandlerCall
from roundtrip.api.request.callers import CallerRequest, request_id
from roundtrip.api.request.failure_log import FailureLog, TracedFailure
from roundtrip.api.request.idempotency import read_idempotency_key
from roundtrip.api.request.min_block import read_min_block
from roundtrip.api.request.param_errors import (
    describe_mismatch,
    describe_unknown_query,
    drop_nulls,
    is_unknown_field,
    quote_name,
)
from roundtrip.api.sharing.places import PAGE_WAIT_S, WAIT_S, FlightCaller
from roundtrip.api.sharing.single_flight import SharedAnswer, SharedAnswers, TookTooLong
from roundtrip.domain.base.errors import ParamFault, RoundtripError
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import read_from_replica, wait_for_block

log = structlog.get_logger(__name__)

Door = Literal["http", "mcp", "pages"]
"""The interface that a request came through."""

ReadParams = Callable[[], Awaitable[Mapping[str, object]]]
"""Reads a request's parameters. Raises CallerFault."""

DEADLINE_S = 30.0
"""The time limit of one run. A use case waits for its node for at most about 20 s."""

_NO_QUERY: Mapping[str, str] = MappingProxyType({})
_MAX_WAITS_S: Mapping[Door, float] = MappingProxyType({"http": WAIT_S, "mcp": WAIT_S, "pages": PAGE_WAIT_S})
"""How long a request waits for one of the places in which runs are made, by door."""


@dataclass(frozen=True, slots=True)
class DoorReply:
    """An encoded answer with the headers that every door may send. ``forms``: other encodings of a shared
    answer that doors have cached with it, by name; None: the answer is not shared. ``answer``: the decoded
    body; None: the answer is shared, or an error."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    error: RoundtripError | None = None
    forms: dict[str, bytes] | None = field(default=None, compare=False, repr=False)
    answer: Any = field(default=None, compare=False, repr=False)


class ErrorDetail(msgspec.Struct, frozen=True):
    """Code and message of an error."""

    code: str
    message: str


NODE_RETRY_S = 2
"""When to retry after a fault of the node."""


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The body of every error."""

    error: ErrorDetail


class Unexpected(TracedFailure):
    """An unexpected exception in this service."""

    def __init__(self, request: str | None = None) -> None:
        super().__init__("internal", "An error occurred in this service.", request or request_id())


def add_request_id(error: RoundtripError, request: str | None = None) -> RoundtripError:
    """The error as the caller receives it: with the request's id where the caller did not cause it."""
    if error.status < 500 or isinstance(error, TracedFailure):
        return error
    return TracedFailure(error.code, error.message, request or request_id(), error.retry_after_s)


def error_reply(error: RoundtripError, headers: Mapping[str, str] | None = None) -> DoorReply:
    """Encodes an error, with the request's id where the caller did not cause it."""
    return render_error(add_request_id(error), headers)


def render_error(error: RoundtripError, headers: Mapping[str, str] | None = None) -> DoorReply:
    """Encodes an error in the specification's error shape."""
    body = msgspec.json.encode(ErrorAnswer(ErrorDetail(error.code, error.message)))
    all_headers = dict(headers or {})
    retry_after_s = error.retry_after_s or (NODE_RETRY_S if error.code == "upstream" else None)
    if retry_after_s is not None:
        all_headers["retry-after"] = str(retry_after_s)
    return DoorReply(error.status, body, all_headers, error)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The one way from a door to a use case."""

    ctx: Context
    gate: Gate
    shared: SharedAnswers
    deadline_s: float = DEADLINE_S
    clock: Callable[[], float] = time.perf_counter
    """Monotonic seconds, for durations."""
    failures: FailureLog = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "failures", FailureLog(self.clock))

    async def run(
        self,
        operation: AnyOperation,
        raw: Mapping[str, object] | ReadParams,
        caller: CallerRequest,
        query: Mapping[str, str] = _NO_QUERY,
        idempotency_keys: tuple[object, ...] = (),
        door: Door = "http",
        min_block: tuple[object, ...] = (),
    ) -> DoorReply:
        """Answers one request. Never raises: every failure is a DoorReply. ``raw``: the unvalidated
        parameters, or a function that reads them once the caller is admitted. ``query``: the query string's
        parameters. ``idempotency_keys`` and ``min_block``: the unvalidated values that the request
        carries."""
        measures, started_s = self.ctx.measures, self.clock()
        if door == "pages":
            # Operations of pages are in no table, so their counters cannot be initialised at startup.
            measures.count("errors", operation.name, "internal", by=0)
        with measures.span("request", operation.name, is_root=True) as note:
            reply = await self._run(
                operation, raw, caller, query, idempotency_keys, min_block, _MAX_WAITS_S[door]
            )
            outcome = _classify_outcome(reply)
            if measures.traces is not None:
                note("request", request_id())
            note("door", door)
            note("ended", outcome)
            if reply.error is not None:
                note("code", reply.error.code)
                self._record_failure(reply.error, operation, door)
        self._measure(operation, door, outcome, started_s)
        return reply

    async def run_shared(
        self, operation: AnyOperation, shared: SharedAnswer, caller: CallerRequest
    ) -> Ticket | None:
        """Counts one HTTP request that is answered by ``shared``, an answer stored for all callers: limits
        and metrics as in ``run``, but no trace span. Raises CallRefused, which holds the error to send."""
        started_s = self.clock()
        try:
            admitted = await self._admit(operation, caller)
        except Exception as fault:
            refused = fault if isinstance(fault, CallRefused) else CallRefused(Unexpected(), None)
            error = add_request_id(refused.error)
            if isinstance(error, Unexpected):
                log.exception("request failed", request=error.request_id, operation=operation.name)
            self._record_failure(error, operation, "http")
            self._measure(operation, "http", _classify_error(error), started_s)
            raise CallRefused(error, refused.ticket) from None
        ticket = await self._charge(admitted, shared.counted)
        self._measure(operation, "http", "shared", started_s)
        return ticket

    def _measure(self, operation: AnyOperation, door: Door, outcome: str, started_s: float) -> None:
        self.ctx.measures.observe("operation", operation.name, outcome, self.clock() - started_s)
        self.ctx.measures.count("requests", door, outcome)

    def _record_failure(self, error: RoundtripError, operation: AnyOperation, door: Door) -> None:
        """Counts the error, and logs it if the caller did not cause it. Unexpected ones are logged
        already."""
        self.ctx.measures.count("errors", operation.name, error.code)
        if isinstance(error, TracedFailure) and not isinstance(error, Unexpected):
            self.failures.write(error, operation.name, door)

    def has_shared(self, operation: AnyOperation, raw: Mapping[str, object]) -> bool:
        """Whether this process has an answer to share, or is making it. An answer that something does not
        exist yet holds for one block only, so it does not count."""
        if operation.shared_by is None:
            return False
        try:
            key = f"{operation.name}:{operation.shared_by(read_params(operation, raw))}"
        except RoundtripError:
            return False
        return self.shared.has(key)

    async def _run(
        self,
        operation: AnyOperation,
        raw: Mapping[str, object] | ReadParams,
        caller: CallerRequest,
        query: Mapping[str, str],
        idempotency_keys: tuple[object, ...],
        min_block: tuple[object, ...],
        wait_s: float,
    ) -> DoorReply:
        admitted: Admitted | None = None
        try:
            admitted = await self._admit(operation, caller)
            given = raw if isinstance(raw, Mapping) else await raw()
            chain_id = None if operation.rewrite is None else self.ctx.chain_id
            params = read_params(operation, given, query, chain_id)
            key = read_idempotency_key(idempotency_keys) if operation.once else None
            min_block_number = read_min_block(min_block) if operation.takes_min_block else 0
            if min_block_number:
                await wait_for_block(self.ctx, min_block_number)
            shared, is_hit = await self._share_or_run(
                operation, params, admitted, caller, key, min_block_number, wait_s
            )
        except CallRefused as refused:
            return error_reply(refused.error, limit_headers(refused.ticket))
        except RoundtripError as error:
            return error_reply(error, limit_headers(self._release_uncharged(admitted, error.counts)))
        except Exception:
            failure = Unexpected()
            log.exception("request failed", request=failure.request_id, operation=operation.name)
            return error_reply(failure, limit_headers(self._release_uncharged(admitted, counted=False)))
        except BaseException:
            # The caller has disconnected; the run continues for others that share it.
            if admitted is not None:
                self.gate.release(admitted)
            raise
        if operation.writes and operation.key:
            self.gate.doubt_keys(admitted)
        headers = limit_headers(await self._charge(admitted, shared.counted))
        if operation.shared_by is None:
            return DoorReply(200, shared.body, headers, answer=shared.answer)
        headers["x-cache"] = "hit" if is_hit else "miss"
        return DoorReply(200, shared.body, headers, forms=shared.forms)

    async def _admit(self, operation: AnyOperation, caller: CallerRequest) -> Admitted:
        """Admits the call, or raises CallRefused. An operation that ignores keys accepts a revoked one,
        too."""
        asking = caller.without_key() if operation.ignores_key else caller
        return await self.gate.admit(asking, operation.counts, operation.key)

    async def _charge(self, admitted: Admitted | None, counted: bool) -> Ticket | None:
        """Charges the call, or refunds it if its answer does not count."""
        if admitted is None or not counted:
            return self._release_uncharged(admitted, counted)
        await self.gate.charge(admitted)
        return admitted.ticket

    def _release_uncharged(self, admitted: Admitted | None, counted: bool) -> Ticket | None:
        """Releases the call's credit, and refunds its place in the limits unless it is ``counted``: an error
        costs no credit, and counts only if the caller caused it."""
        if admitted is None:
            return None
        if not counted:
            return self.gate.refund(admitted).ticket
        self.gate.release(admitted)
        return admitted.ticket

    async def _share_or_run(
        self,
        operation: AnyOperation,
        params: msgspec.Struct,
        admitted: Admitted,
        caller: CallerRequest,
        idempotency_key: str | None,
        min_block_number: int,
        wait_s: float,
    ) -> tuple[SharedAnswer, bool]:
        """The answer, and whether it came from the shared answers. An operation without ``shared_by`` runs
        for each call, unless it ``has_own_place``. A run holds one of the places for runs, unless it has its
        own or its calls count against no limit and are not shared."""
        caller_name = caller.name if admitted.account is None else f"account:{admitted.account.id}"
        address = caller.name if self.gate.is_bound(caller) else None

        async def run() -> SharedAnswer:
            ctx = self.ctx
            if operation.lane is not None:
                ctx = ctx.for_caller(caller_name, operation.lane, _find_token(params), address)
            call = HandlerCall(ctx, params, admitted.account, idempotency_key)
            with self.ctx.measures.span("use_case", operation.name):
                answer = await self._run_with_deadline(_wake_and_run(operation, call))
            body = msgspec.json.encode(answer.answer)
            decoded = msgspec.json.decode(body, type=operation.answer)
            is_stored = operation.shared_by is not None or operation.has_own_place
            return SharedAnswer(
                body, answer.ttl_ms, answer.counted, answer.block, answer.is_absence,
                answer=None if is_stored else decoded,
            )  # fmt: skip

        def size() -> int:
            return len(msgspec.json.encode(params))

        flight_caller = FlightCaller(caller_name, address, wait_s)
        if operation.has_own_place:
            return (await self.shared.get(operation.name, run, None))[0], False
        if operation.shared_by is None:
            if operation.counts == "never":
                return await run(), False
            async with self.shared.places.hold(flight_caller, size):
                return await run(), False
        key = f"{operation.name}:{operation.shared_by(params)}"
        fresh = self.shared.find_fresh(key) if min_block_number else None
        if min_block_number and (fresh is None or fresh.block < min_block_number):
            # Shared only among callers that waited for the same block: another process may be behind it.
            key += f" from block {min_block_number}"
        return await self.shared.get(key, run, flight_caller, size)

    async def _run_with_deadline(self, run: Awaitable[UseCaseAnswer[Any]]) -> UseCaseAnswer[Any]:
        """The awaited answer. Raises TookTooLong past the deadline, which frees the run's place."""
        deadline = asyncio.timeout(self.deadline_s)
        try:
            async with deadline:
                return await run
        except TimeoutError:
            if not deadline.expired():
                raise
            raise TookTooLong from None


def _find_token(params: msgspec.Struct) -> str | None:
    """The token address that the parameters name; None where they name none."""
    token = getattr(params, "token", None) or getattr(params, "address", None)
    return token.lower() if isinstance(token, str) else None


def _classify_outcome(reply: DoorReply) -> str:
    """The outcome, for metrics: "made" (computed for this request), "shared" (from the shared answers),
    "refused" (the caller's error), or "failed" (not the caller's error)."""
    if reply.error is not None:
        return _classify_error(reply.error)
    return "shared" if reply.headers.get("x-cache") == "hit" else "made"


def _classify_error(error: RoundtripError) -> str:
    return "refused" if error.status < 500 else "failed"


def read_params(
    operation: AnyOperation,
    raw: Mapping[str, object],
    query: Mapping[str, str] = _NO_QUERY,
    chain_id: int | None = None,
) -> msgspec.Struct:
    """The parameters as the operation's own type. Parameters that the operation takes from the query string
    are read from ``query`` only, all others from ``raw`` only. ``chain_id``: the chain that a request may
    name; None: any. Null is left out. Raises ParamFault."""
    for name in operation.query:
        if name in raw:
            raise ParamFault("bad_input", f"{quote_name(name)} is a parameter of the query string.")
    for name in query:
        if name not in operation.query:
            raise ParamFault("bad_input", describe_unknown_query(operation.name, operation.query, name))
    if operation.rewrite is not None:
        raw = operation.rewrite(raw, chain_id)
    from_query = {name: query[name] for name in operation.query if name in query}
    given = _convert_whole_floats(drop_nulls(raw, operation.params))
    try:
        params: Any = msgspec.convert({**given, **from_query}, type=operation.rewritten or operation.params)
    except msgspec.ValidationError as error:
        text = describe_mismatch(operation.params, operation.name, str(error), operation.unlisted)
        code = "bad_input" if is_unknown_field(str(error)) else operation.bad_params
        raise ParamFault(code, text) from None
    assert isinstance(params, msgspec.Struct)
    return params


def _convert_whole_floats(raw: Mapping[str, object]) -> dict[str, object]:
    """The parameters with whole floats as integers: JSON has one number type, so 100.0 is 100."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in raw.items()
    }


def limit_headers(ticket: Ticket | None) -> dict[str, str]:
    """The headers about the caller's limit for a minute."""
    if ticket is None:
        return {}
    return {"x-ratelimit-limit": str(ticket.limit), "x-ratelimit-remaining": str(max(0, ticket.remaining))}


async def _wake_and_run(operation: AnyOperation, call: HandlerCall[Any]) -> UseCaseAnswer[Any]:
    """Runs the handler; one with a ``lane``, which asks the node, gets a fresh head first."""
    if operation.lane is not None:
        await call.ctx.heads.wake()
    if not operation.from_replica:
        return await operation.handler(call)
    return await read_from_replica(call.ctx, lambda ctx: operation.handler(replace(call, ctx=ctx)))
