"""The HTTP API: routes built from the table of operations."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roundtrip.api.admission.gate import Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.dispatch import Dispatch, DoorReply, Unexpected, error_reply, render_error
from roundtrip.api.documents.landing import FRONT, prefers_html
from roundtrip.api.documents.llms_txt import llms_txt
from roundtrip.api.documents.openapi import openapi_json
from roundtrip.api.documents.tool_schemas import tools_json
from roundtrip.api.http.lines import GZIP_FORM, PATH_FORM, WarmAnswers, send_lines
from roundtrip.api.mcp.server import McpDoor
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import LINES, TEXT, AnyOperation
from roundtrip.api.request.callers import (
    HEADER,
    CallerRequest,
    Callers,
    anonymous,
    hide_keys,
    is_loopback,
    start_request,
)
from roundtrip.api.request.idempotency import shown_idempotency_keys
from roundtrip.api.request.min_block import shown_min_blocks
from roundtrip.api.request.param_errors import MAX_BRACKETS, describe_repeated_query
from roundtrip.api.server.drain import DRAINS, ENDING, READY, EndlessAnswers
from roundtrip.api.server.protocol import BODY_S
from roundtrip.api.server.responses import (
    CORS,
    HSTS,
    WORTH_COMPRESSING_BYTES,
    BodyUnread,
    Document,
    accepts_gzip,
    accepts_only_text,
    compress_body,
    send_options,
    send_reply,
)
from roundtrip.api.stream.hub import StreamHub, send_stream, shown_last_event_id
from roundtrip.domain.accounts.keys import digest_of
from roundtrip.domain.base.errors import CallerFault, LimitReached, ParamFault, RoundtripError, ServiceFull
from roundtrip.domain.base.metrics import Measures
from roundtrip.services.verdicts.history import TokensToCheck
from roundtrip.services.verdicts.news import DatabaseNews, StreamPlan

MAX_BODY_BYTES = 64 * 1024

log = structlog.get_logger(__name__)
_UNCOUNTED_CALLER = CallerRequest("")
"""The caller of operations that count no calls."""
_NO_PARAMS = QueryParams()
_RECONNECT_MS, _RECONNECT_SPREAD_MS = 1_000, 4_000
"""Spreads reconnects of clients whose streams ended together."""
_MAX_PAUSED = 10_000
"""Paused addresses that are remembered."""
Lifespan = Callable[[], AbstractAsyncContextManager[None]]
NotFoundPage = Callable[[Scope, CallerFault], Response]
"""Renders the page for a path that does not exist."""


async def read_body(receive: Receive, within_s: float = BODY_S) -> bytes:
    """The request's body. Raises BodyUnread (bad_input): it is larger than ``MAX_BODY_BYTES``, or takes
    longer than ``within_s``."""
    try:
        async with asyncio.timeout(within_s):
            return await _read_body(receive)
    except TimeoutError:
        raise BodyUnread(
            f"The body did not arrive within {within_s:.0f} seconds. Send the request again."
        ) from None


async def _read_body(receive: Receive) -> bytes:
    received = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise BodyUnread("The connection ended before the whole body arrived.")
        received += message.get("body", b"")
        if len(received) > MAX_BODY_BYTES:
            raise BodyUnread(f"The body is too large: the limit is {MAX_BODY_BYTES // 1024} KiB.")
        if not message.get("more_body", False):
            return bytes(received)


def _encode_for_path(reply: DoorReply, operation: AnyOperation) -> DoorReply:
    """The reply with the operation's ``path_answer``; of a shared answer, encoded once."""
    if operation.path_answer is None or reply.error is not None:
        return reply
    body = (reply.forms or {}).get(PATH_FORM)
    if body is None:
        body = msgspec.json.encode(msgspec.json.decode(reply.body, type=operation.path_answer))
        if reply.forms is not None:
            reply.forms[PATH_FORM] = body
    return replace(reply, body=body)


async def _compress(reply: DoorReply, request_headers: Iterable[tuple[bytes, bytes]]) -> DoorReply:
    """The reply, compressed if the caller accepts gzip; a shared answer once."""
    headers = {**reply.headers, "vary": "accept-encoding"}
    if not accepts_gzip(request_headers):
        return replace(reply, headers=headers)
    body = (reply.forms or {}).get(GZIP_FORM)
    if body is None:
        body = await compress_body(reply.body)
        if reply.forms is not None:
            reply.forms[GZIP_FORM] = body
    return replace(reply, body=body, headers={**headers, "content-encoding": "gzip"})


def _refuse_repeated(query: QueryParams) -> None:
    """Raises ParamFault (bad_input): a parameter is given more than once, and one value would be ignored."""
    for name, times in Counter(name for name, _ in query.multi_items()).items():
        if times > 1:
            raise ParamFault("bad_input", describe_repeated_query(name, times))


def _find_ending(scope: Scope) -> EndlessAnswers:
    state: Mapping[str, EndlessAnswers] = scope.get("state", {})
    return state.get(ENDING, EndlessAnswers())


@dataclass(frozen=True, slots=True)
class OperationEndpoint:
    """One operation as an ASGI application. ``hub``: hands out the events of streams. ``warm``: learns which
    answers are shared."""

    operation: AnyOperation
    dispatch: Dispatch
    callers: Callers
    hub: StreamHub | None = None
    warm: WarmAnswers | None = None

    def is_public(self) -> bool:
        """Whether any web page may read its answers (CORS)."""
        return self.operation.method == "GET" and not self.operation.key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        caller = _UNCOUNTED_CALLER
        if self.operation.counts != "never" or self.operation.key:
            caller = self.callers.identify(scope["headers"], scope.get("client"))

        query_string = scope.get("query_string")
        parsed = QueryParams(query_string) if query_string else _NO_PARAMS

        async def raw() -> Mapping[str, object]:
            _refuse_repeated(parsed)
            return await self._read_raw(scope, receive)

        query: Mapping[str, str] = parsed
        if self.operation.streams:
            query = {**query, **shown_last_event_id(scope["headers"])}
        idempotency_keys = shown_idempotency_keys(scope["headers"]) if self.operation.once else ()
        min_blocks = shown_min_blocks(scope["headers"]) if self.operation.takes_min_block else ()
        whole_reply = await self.dispatch.run(
            self.operation, raw, caller, query, idempotency_keys, min_block=min_blocks
        )
        if self.operation.streams and whole_reply.error is None:
            await self._send_stream(whole_reply, caller, scope, receive, send)
            return
        if self.operation.each is not None and whole_reply.error is None:
            await self._send_each(self.operation.each, whole_reply, caller, scope, receive, send)
            return
        reply = _encode_for_path(whole_reply, self.operation)
        if len(reply.body) > WORTH_COMPRESSING_BYTES:
            reply = await _compress(reply, scope["headers"])
        if self.warm is not None and reply.forms is not None and self._is_warm(min_blocks):
            self.warm.remember(self.operation, scope, query)
        await send_reply(reply, send, self.is_public())

    def _is_warm(self, min_blocks: tuple[object, ...]) -> bool:
        """Whether path and query alone say which shared answer this was."""
        return self.is_public() and not (min_blocks or self.operation.has_body() or self.operation.once)

    async def _send_each(
        self,
        each: AnyOperation,
        reply: DoorReply,
        caller: CallerRequest,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Runs ``each`` for every address of the reply, as a request of its own, and sends the lines."""
        addresses = msgspec.json.decode(reply.body, type=TokensToCheck).addresses

        async def run(address: str) -> DoorReply:
            return await self.dispatch.run(each, {"address": address}, caller)

        media_type = TEXT if accepts_only_text(scope["headers"]) else LINES
        await send_lines(addresses, reply.headers, run, receive, send, _find_ending(scope), media_type)

    async def _send_stream(
        self, reply: DoorReply, caller: CallerRequest, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Sends events; a HEAD request gets the headers alone."""
        assert self.hub is not None
        plan, is_sent = msgspec.json.decode(reply.body, type=StreamPlan), False
        if scope["method"] == "HEAD":
            await send_reply(replace(reply, body=b""), send, self.is_public())
            return

        async def send_noting(message: Message) -> None:
            nonlocal is_sent
            is_sent = True
            await send(message)

        delay_ms = int.from_bytes(self.dispatch.ctx.entropy()[:2]) % _RECONNECT_SPREAD_MS
        try:
            with self.hub.reserve_stream(plan.account_id):
                await send_stream(
                    self.hub, plan, reply.headers, _RECONNECT_MS + delay_ms, receive, send_noting,
                    _find_ending(scope), key_hash=None if caller.key is None else digest_of(caller.key),
                )  # fmt: skip
        except RoundtripError as error:
            if is_sent:
                raise
            await send_reply(error_reply(error, reply.headers), send, self.is_public())

    async def _read_raw(self, scope: Scope, receive: Receive) -> Mapping[str, object]:
        path: Mapping[str, object] = scope["path_params"]
        if not self.operation.has_body():
            return path
        body = await read_body(receive)
        if body.count(b"[") + body.count(b"{") > MAX_BRACKETS:
            raise CallerFault("bad_json", f"The body may contain at most {MAX_BRACKETS} brackets and braces.")
        try:
            fields = msgspec.json.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise CallerFault(
                "bad_json", 'The body must be valid JSON, such as {"address": "0x..."}.'
            ) from None
        if not isinstance(fields, dict):
            raise CallerFault("bad_input", 'The body must be a JSON object, such as {"address": "0x..."}.')
        return {**fields, **path}


@dataclass(frozen=True, slots=True)
class PathEndpoint:
    """The operations of one path, by method."""

    by_method: Mapping[str, OperationEndpoint]

    def methods(self) -> list[str]:
        """The methods that the path takes."""
        head = ["HEAD"] if "GET" in self.by_method else []
        return [*self.by_method, *head, "OPTIONS"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        method = scope["method"]
        if method == "OPTIONS":
            is_public = any(endpoint.is_public() for endpoint in self.by_method.values())
            await send_options(self.methods(), send, is_public)
            return
        await self.by_method["GET" if method == "HEAD" else method](scope, receive, send)


class PathRoute(Route):
    """One path with all its methods: a method that it does not take is refused (405), and not taken by a path
    with a parameter in its place."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As the library, except that the path decides alone."""
        match, child = super().matches(scope)
        return Match.FULL if match is Match.PARTIAL else match, child


@dataclass(frozen=True, slots=True)
class McpEndpoint:
    """POST /mcp. Checks a key at the end of the path first, then reads the body with this service's own size
    limit, before the protocol's library sees it."""

    door: McpDoor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["method"] == "OPTIONS":
            await send_options(("POST", "OPTIONS"), send, cors=False)
            return
        try:
            await self.door.check_path_key(scope)
            body = await read_body(receive)
        except RoundtripError as error:
            await send_reply(error_reply(error), send, cors=False)
            return
        await self.door(scope, body, receive, send)


@dataclass(frozen=True, slots=True)
class ReadyEndpoint:
    """GET /ready: whether a balancer may send callers to this process. Asks neither node nor database nor
    shared store: where one of them fails it fails for all processes, and the balancer would take out each of
    them. ``drains``: whether an operator asked this process to drain."""

    drains: Callable[[], bool]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["method"] == "OPTIONS":
            await send_options(("GET", "HEAD", "OPTIONS"), send, cors=False)
        elif self.drains() or _find_ending(scope).is_ending:
            await send_reply(render_error(ServiceFull("busy", DRAINS, 5)), send, cors=False)
        else:
            await send_reply(DoorReply(200, b'{"ready":true}'), send, cors=False)


def create_app(
    dispatch: Dispatch,
    callers: Callers,
    lifespan: Lifespan | None = None,
    door: McpDoor | None = None,
    extra_routes: Sequence[Route] = (),
    not_found_page: NotFoundPage | None = None,
    hub: StreamHub | None = None,
    drains: Callable[[], bool] = lambda: False,
) -> "Service":
    """The whole service as one ASGI application. ``lifespan`` runs around it, outermost, and ends when all
    runs have ended. ``door``: the tool server; None: one with the table's tools. ``extra_routes``: routes
    that are matched before all others. ``not_found_page``: renders the page for a path that does not exist.
    ``hub``: hands out the events of streams; None: one that reads the database. ``drains``: whether an
    operator asked this process to drain."""
    hub = StreamHub(DatabaseNews(dispatch.ctx)) if hub is None else hub
    dispatch.ctx.measures.watch("streams", "events", hub.count_streams)
    door = McpDoor(dispatch, callers) if door is None else door
    warm = WarmAnswers(dispatch, callers)

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if lifespan is not None:
                await stack.enter_async_context(lifespan())
            # Runs use the lifespan's resources, and the tool server's calls wait for runs.
            stack.push_async_callback(dispatch.shared.finish_runs)
            await stack.enter_async_context(door.running())
            yield

    routes = [*extra_routes, *_build_routes(dispatch, callers, hub, warm, door, drains)]
    over_https = dispatch.ctx.public_url.startswith("https:")
    app = Service(
        dispatch.ctx.measures,
        over_https=over_https,
        routes=routes,
        lifespan=running,
        exception_handlers={
            HTTPException: partial(_reply_http_error, not_found_page),
            Exception: _reply_unexpected,
        },
    )
    for operation in OPERATIONS:
        # A counter must start at 0: the first error would not be an increase, and would raise no alert.
        dispatch.ctx.measures.count("errors", operation.name, "internal", by=0)
    app.router.redirect_slashes = False
    limits = MinuteLimits(lambda: int(dispatch.ctx.now_s() * 1000))
    app.address_limit = AddressLimit(callers, limits, dispatch.gate)
    app.warm = warm
    app.drains = drains
    return app


def _build_routes(
    dispatch: Dispatch,
    callers: Callers,
    hub: StreamHub,
    warm: WarmAnswers,
    door: McpDoor,
    drains: Callable[[], bool],
) -> list[Route]:
    endpoints = _group_by_path(dispatch, callers, hub, warm)
    routes: list[Route] = [
        PathRoute(path, endpoints[path], methods=endpoints[path].methods())
        for path in sorted(endpoints, key=lambda path: "{" in path)
    ]
    for path, document in documents().items():
        routes.append(Route(path, document, methods=["GET", "OPTIONS"]))
    routes.append(Route("/mcp", McpEndpoint(door), methods=["POST", "OPTIONS"]))
    routes.append(Route(READY, ReadyEndpoint(drains), methods=["GET", "OPTIONS"]))
    return routes


def _group_by_path(
    dispatch: Dispatch, callers: Callers, hub: StreamHub, warm: WarmAnswers
) -> dict[str, PathEndpoint]:
    by_path: dict[str, dict[str, OperationEndpoint]] = {}
    for operation in OPERATIONS:
        if operation.path is not None:
            endpoint = OperationEndpoint(operation, dispatch, callers, hub, warm)
            by_path.setdefault(operation.path, {})[operation.method] = endpoint
    return {path: PathEndpoint(by_method) for path, by_method in by_path.items()}


@cache
def documents() -> Mapping[str, ASGIApp]:
    """The constant documents, by path."""
    return {
        "/v1/tools.json": Document(msgspec.json.encode(tools_json())),
        "/v1/openapi.json": Document(msgspec.json.encode(openapi_json())),
        "/llms.txt": Document(llms_txt().encode(), "text/plain; charset=utf-8"),
        "/": FRONT,
    }


@dataclass(frozen=True, slots=True)
class AddressLimit:
    """Limits how many requests of any kind one address may make in a minute, including uncounted ones. Beyond
    it each of its connections is answered once and closed, and new ones are not read until it may ask again.
    A proxy's connections stay: they carry others' requests, too."""

    callers: Callers
    limits: MinuteLimits
    gate: Gate
    _until_ms: OrderedDict[str, int] = field(default_factory=OrderedDict)

    async def __call__(self, scope: Scope, send: Send) -> bool:
        """Whether this request was refused. Only its address has been read."""
        host = self.callers.host(scope["headers"], scope.get("client"))
        allowance = self.gate.allowances.address
        if is_loopback(host) and not allowance.loopback:
            return False
        name = anonymous(host)
        try:
            self.limits.take(name, allowance.requests)
        except LimitReached as error:
            headers = {}
            if scope.get("client") and scope["client"][0] == host:
                headers["connection"] = "close"
                self._pause(name, error.retry_after_s or 1)
            await send_reply(error_reply(error, headers), send, cors=scope["path"] != "/mcp")
            return True
        return False

    def pause_s(self, host: str | None) -> float:
        """For how long the address's new connections are not read."""
        if not self._until_ms:
            return 0.0
        return max(0.0, (self._until_ms.get(anonymous(host), 0) - self.limits.now_ms()) / 1000)

    def _pause(self, name: str, wait_s: int) -> None:
        now_ms = self.limits.now_ms()
        self._until_ms[name] = now_ms + wait_s * 1000
        self._until_ms.move_to_end(name)
        while next(iter(self._until_ms.values())) < now_ms or len(self._until_ms) > _MAX_PAUSED:
            self._until_ms.popitem(last=False)


_STATUSES = ("0xx", "1xx", "2xx", "3xx", "4xx", "5xx")


class Service(Starlette):
    """The application. Keys are removed from paths before routing, and every answer carries its request's id.
    ``over_https``: the service is public over HTTPS, and every answer carries HSTS."""

    def __init__(self, measures: Measures, over_https: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._fixed_headers = (HSTS,) if over_https else ()
        self._measures = measures
        measures.count("errors", "outside", "internal", by=0)

    address_limit: AddressLimit
    warm: WarmAnswers
    drains: Callable[[], bool]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or runs the lifespan."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        headers = ((HEADER, start_request().encode()), *self._fixed_headers)
        is_complete = False

        async def send_with_headers(message: Message) -> None:
            nonlocal is_complete
            is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                self._measures.count("answers", _STATUSES[message["status"] // 100])
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        if await self.address_limit(scope, send_with_headers):
            return
        if await self.warm.answer(scope, send, send_with_headers, headers):
            return
        hide_keys(scope)
        try:
            await super().__call__(scope, receive, send_with_headers)
        except Exception:
            self._measures.count("errors", "outside", "internal")
            # Already logged and answered; the server would log it again. But after half an answer the server
            # has to close the connection.
            if not is_complete:
                raise


async def _reply_http_error(
    not_found_page: NotFoundPage | None, request: Request, error: Exception
) -> Response:
    """The answer where no route fits: a page for browsers, and below /v1 the error's body for all."""
    assert isinstance(error, HTTPException)
    named = dict(error.headers or {})
    if "Allow" in named:
        # The library joins a set, whose order changes with the process.
        named["Allow"] = ", ".join(sorted(named["Allow"].split(", ")))
    if error.status_code == 405:
        fault = CallerFault("method_not_allowed", _describe_method(request.method, named))
    else:
        fault = CallerFault(
            "not_found", "There is nothing at this path. GET /v1/openapi.json lists all paths."
        )
    headers = {**named, "cache-control": "no-store", "vary": "accept, accept-encoding, user-agent"}
    is_api = f"{request.scope['path']}/".startswith("/v1/")
    if not_found_page is not None and not is_api and prefers_html(request.headers.raw):
        page = not_found_page(request.scope, fault)
        page.headers.update(headers)
        return page
    reply = error_reply(fault, headers)
    response = Response(reply.body, reply.status, dict(reply.headers), media_type="application/json")
    # Web pages that may call the API may also read that the path or method is wrong.
    response.raw_headers.extend(CORS)
    return response


def _describe_method(method: str, headers: Mapping[str, str]) -> str:
    allowed = headers.get("Allow")
    return f"This path does not accept {method}." + (f" It accepts {allowed}." if allowed else "")


async def _reply_unexpected(request: Request, error: Exception) -> Response:
    unexpected = Unexpected()
    log.error("request failed", request=unexpected.request_id, exc_info=error)
    reply = error_reply(unexpected, {"cache-control": "no-store"})
    return Response(reply.body, reply.status, dict(reply.headers), media_type="application/json")
