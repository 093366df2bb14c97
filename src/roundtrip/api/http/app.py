"""The HTTP door: one loop over the table."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roundtrip.api.admission.gate import Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.dispatch import Dispatch, DoorReply, Unexpected, error_reply, render_error
from roundtrip.api.documents.landing import FRONT, wants_page
from roundtrip.api.documents.llms_txt import llms_txt
from roundtrip.api.documents.openapi import openapi_json
from roundtrip.api.documents.tool_schemas import tools_json
from roundtrip.api.mcp.server import McpDoor
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.api.request.callers import CallerRequest, Callers, anonymous, is_loopback
from roundtrip.api.request.idempotency import given_once
from roundtrip.api.request.min_block import given_min_block
from roundtrip.api.request.request_ids import HEADER, begin_request
from roundtrip.api.request.secret_paths import clean
from roundtrip.api.server.protocol import BODY_S
from roundtrip.api.server.responses import (
    CORS,
    HSTS,
    LARGE_BYTES,
    MOST_BRACKETS,
    NO_STORE,
    BodyUnread,
    Document,
    send_options,
    send_reply,
    takes_gzip,
)
from roundtrip.domain.base.errors import CallerFault, LimitReached, RoundtripError, ServiceFull
from roundtrip.domain.base.metrics import Measures
from roundtrip.services.runtime.context import Context

MOST_BODY_BYTES = 64 * 1024

log = structlog.get_logger(__name__)
_NOBODY = CallerRequest("")
"""Of whom nothing is counted."""
_NO_QUERY: Mapping[str, str] = {}
_CUT, _SQUEEZED = "http", "http gzip"
_HEALTH = "/v1/health"
_FULL_CODE = "busy"
_FULL = render_error(
    ServiceFull(_FULL_CODE, "More is asked than can be answered now; ask again in a moment.", 1)
)
"""Made once: it has to cost next to nothing, so that its request's id is in the header alone."""
_FULL_PAGE = b"Too many people ask at once. Load this page again in a moment.\n"

Lifespan = Callable[[], AbstractAsyncContextManager[None]]
Lost = Callable[[Scope, CallerFault], Response]
"""Makes a page that says so."""


async def read_body(receive: Receive, within_s: float = BODY_S) -> bytes:
    """The request's body. Raises BodyUnread (bad_input) past the size this service reads, and where it takes
    longer than ``within_s``."""
    try:
        async with asyncio.timeout(within_s):
            return await _read_body(receive)
    except TimeoutError:
        raise BodyUnread(f"The body did not come within {within_s:.0f} seconds.") from None


async def _read_body(receive: Receive) -> bytes:
    received = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise BodyUnread("The request ended before its body did.")
        received += message.get("body", b"")
        if len(received) > MOST_BODY_BYTES:
            raise BodyUnread(f"The body is over {MOST_BODY_BYTES // 1024} KiB.")
        if not message.get("more_body", False):
            return bytes(received)


def _cut(reply: DoorReply, operation: AnyOperation) -> DoorReply:
    """As much of an answer as this door gives; of a shared one that is cut once."""
    if operation.path_answer is None or reply.error is not None:
        return reply
    body = (reply.forms or {}).get(_CUT)
    if body is None:
        body = msgspec.json.encode(msgspec.json.decode(reply.body, type=operation.path_answer))
        if reply.forms is not None:
            reply.forms[_CUT] = body
    return replace(reply, body=body)


async def _compress(reply: DoorReply, asked: Iterable[tuple[bytes, bytes]]) -> DoorReply:
    """The reply, compressed beside the loop where the caller reads that; a shared one once."""
    headers = {**reply.headers, "vary": "accept-encoding"}
    if not takes_gzip(asked):
        return replace(reply, headers=headers)
    body = (reply.forms or {}).get(_SQUEEZED)
    if body is None:
        body = await asyncio.to_thread(gzip.compress, reply.body, 1, mtime=0)
        if reply.forms is not None:
            reply.forms[_SQUEEZED] = body
    return replace(reply, body=body, headers={**headers, "content-encoding": "gzip"})


@dataclass(frozen=True, slots=True)
class OperationEndpoint:
    """One row of the table as an ASGI application."""

    operation: AnyOperation
    dispatch: Dispatch
    callers: Callers

    def readable(self) -> bool:
        """Whether anybody's page may read what it answers."""
        return self.operation.method == "GET" and not self.operation.key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        asking = _NOBODY
        if self.operation.counts != "never" or self.operation.key:
            asking = self.callers.identify(scope["headers"], scope.get("client"))

        async def raw() -> Mapping[str, object]:
            return await self._raw(scope, receive)

        told = scope.get("query_string")
        query = QueryParams(told) if told else _NO_QUERY
        once = given_once(scope["headers"]) if self.operation.once else ()
        least = given_min_block(scope["headers"]) if self.operation.takes_min_block else ()
        ran = await self.dispatch.run(self.operation, raw, asking, query, once, min_block=least)
        reply = _cut(ran, self.operation)
        if len(reply.body) > LARGE_BYTES:
            reply = await _compress(reply, scope["headers"])
        await send_reply(reply, send, self.readable())

    async def _raw(self, scope: Scope, receive: Receive) -> Mapping[str, object]:
        path: Mapping[str, object] = scope["path_params"]
        if self.operation.method == "GET":
            return path
        body = await read_body(receive)
        if body.count(b"[") + body.count(b"{") > MOST_BRACKETS:
            raise CallerFault("bad_json", "The body is nested deeper than anything this service reads.")
        try:
            fields = msgspec.json.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise CallerFault("bad_json", "The body is no JSON.") from None
        if not isinstance(fields, dict):
            raise CallerFault("bad_input", "The body is JSON, but no object.")
        return {**fields, **path}


@dataclass(frozen=True, slots=True)
class PathEndpoint:
    """All that one path serves, by method."""

    by_method: Mapping[str, OperationEndpoint]

    def methods(self) -> list[str]:
        """What it takes."""
        head = ["HEAD"] if "GET" in self.by_method else []
        return [*self.by_method, *head, "OPTIONS"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        method = scope["method"]
        if method == "OPTIONS":
            readable = any(one.readable() for one in self.by_method.values())
            await send_options(self.methods(), send, readable)
            return
        await self.by_method["GET" if method == "HEAD" else method](scope, receive, send)


@dataclass(frozen=True, slots=True)
class McpEndpoint:
    """POST /mcp, with this service's own limit on bodies before the protocol sees them. A key at the end of
    the address has to be live before anything else is looked at."""

    door: McpDoor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["method"] == "OPTIONS":
            await send_options(("POST", "OPTIONS"), send, cors=False)
            return
        try:
            await self.door.let_in(scope)
            body = await read_body(receive)
        except RoundtripError as error:
            await send_reply(error_reply(error), send, cors=False)
            return
        await self.door(scope, body, receive, send)


def create_app(
    dispatch: Dispatch,
    callers: Callers,
    lifespan: Lifespan | None = None,
    door: McpDoor | None = None,
    beside: Sequence[Route] = (),
    turns_away: Callable[[], bool] = lambda: False,
    lost: Lost | None = None,
) -> Starlette:
    """The whole service as one ASGI application. ``lifespan`` runs around it, outermost, and ends when runs
    are settled. ``door``: the tool server, where it has to have more than the table's tools. ``beside``: what
    else is served, before all of it. ``turns_away``: whether the next request is, unless it
    asks for the service's health, or what may be asked. ``lost``: makes the page for where nothing is."""
    door = McpDoor(dispatch, callers) if door is None else door

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            if lifespan is not None:
                await closing.enter_async_context(lifespan())
            # Runs need what the lifespan holds, and the door's calls wait for runs.
            closing.push_async_callback(dispatch.shared.settle)
            await closing.enter_async_context(door.running())
            yield

    routes = [
        *beside,
        *(
            Route(path, endpoint, methods=endpoint.methods())
            for path, endpoint in _paths(dispatch, callers).items()
        ),
    ]
    for path, document in documents().items():
        routes.append(Route(path, document, methods=["GET", "OPTIONS"]))
    routes.append(Route("/mcp", McpEndpoint(door), methods=["POST", "OPTIONS"]))
    app = Service(
        dispatch.ctx.measures,
        over_https=dispatch.ctx.public_url.startswith("https:"),
        routes=routes,
        lifespan=running,
        exception_handlers={HTTPException: partial(_http_error, lost), Exception: _reply_unexpected},
    )
    for operation in OPERATIONS:
        # A counter that begins at one has not increased: the first fault that nobody foresaw alerts nobody.
        dispatch.ctx.measures.count("errors", operation.name, "internal", by=0)
    app.router.redirect_slashes = False
    app.turned_away = OverloadShield(turns_away, dispatch.ctx)
    counted = MinuteLimits(lambda: int(dispatch.ctx.now_s() * 1000))
    app.address_bound = AddressBound(callers, counted, dispatch.gate)
    return app


def _paths(dispatch: Dispatch, callers: Callers) -> dict[str, PathEndpoint]:
    by_path: dict[str, dict[str, OperationEndpoint]] = {}
    for operation in OPERATIONS:
        if operation.path is not None:
            endpoint = OperationEndpoint(operation, dispatch, callers)
            by_path.setdefault(operation.path, {})[operation.method] = endpoint
    return {path: PathEndpoint(by_method) for path, by_method in by_path.items()}


def documents() -> dict[str, ASGIApp]:
    """What is served and never changes, by path."""
    return {
        "/v1/tools.json": Document(msgspec.json.encode(tools_json())),
        "/v1/openapi.json": Document(msgspec.json.encode(openapi_json())),
        "/llms.txt": Document(llms_txt().encode(), "text/plain; charset=utf-8"),
        "/": FRONT,
    }


@dataclass(frozen=True, slots=True)
class OverloadShield:
    """What is answered before anything is looked at, while the service can do no more."""

    turns_away: Callable[[], bool]
    ctx: Context

    async def __call__(self, scope: Scope, send: Send) -> bool:
        """Whether this request was answered so."""
        # What a browser asks first costs nothing, and without its headers a page is not told why.
        if scope["path"] == _HEALTH or scope["method"] == "OPTIONS" or not self.turns_away():
            return False
        measures = self.ctx.measures
        measures.observe("operation", "turned_away", "failed", 0.0)
        measures.count("requests", "mcp" if scope["path"] == "/mcp" else "http", "failed")
        measures.count("errors", "turned_away", _FULL_CODE)
        if not wants_page(scope["headers"]):
            await send_reply(_FULL, send, cors=scope["path"] != "/mcp")
            return True
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"retry-after", b"1")]
        headers += [NO_STORE, (b"content-length", b"%d" % len(_FULL_PAGE))]
        await send({"type": "http.response.start", "status": _FULL.status, "headers": headers})
        await send({"type": "http.response.body", "body": _FULL_PAGE})
        return True


@dataclass(frozen=True, slots=True)
class AddressBound:
    """How many requests of any kind one address may make in a minute, those that are not counted too."""

    callers: Callers
    limits: MinuteLimits
    gate: Gate

    async def __call__(self, scope: Scope, send: Send) -> bool:
        """Whether this request was refused. Nothing of it was read but where it came from."""
        host = self.callers.host(scope["headers"], scope.get("client"))
        of_address = self.gate.allowances.address
        if is_loopback(host) and not of_address.loopback:
            return False
        try:
            self.limits.take(anonymous(host), of_address.requests)
        except LimitReached as error:
            await send_reply(error_reply(error), send, cors=scope["path"] != "/mcp")
            return True
        return False


_STATUSES = ("0xx", "1xx", "2xx", "3xx", "4xx", "5xx")


class Service(Starlette):
    """The application; it sees no key in a path. Every request has an id, and its answer says it.
    ``over_https``: people reach the service so, and every answer tells browsers to come in no other way."""

    def __init__(self, measures: Measures, over_https: bool = False, **given: Any) -> None:
        super().__init__(**given)
        self._always = (HSTS,) if over_https else ()
        self._measures = measures
        measures.count("errors", "outside", "internal", by=0)

    turned_away: OverloadShield
    address_bound: AddressBound

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or runs the lifespan."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        told = ((HEADER, begin_request().encode()), *self._always)
        is_whole = False

        async def sending(message: Message) -> None:
            nonlocal is_whole
            is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                self._measures.count("answers", _STATUSES[message["status"] // 100])
                message = {**message, "headers": [*message.get("headers", ()), *told]}
            await send(message)

        if await self.turned_away(scope, sending) or await self.address_bound(scope, sending):
            return
        clean(scope)
        try:
            await super().__call__(scope, receive, sending)
        except Exception:
            self._measures.count("errors", "outside", "internal")
            # It is logged, and told. The server would log it again; it has to hang up on half an answer.
            if not is_whole:
                raise


async def _http_error(lost: Lost | None, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        fault = CallerFault("method_not_allowed", f"{request.method} is not served at this path.")
    else:
        fault = CallerFault("not_found", "There is nothing at this path.")
    headers = {**(error.headers or {}), "cache-control": "no-store", "vary": "accept"}
    if lost is not None and wants_page(request.headers.raw):
        shown = lost(request.scope, fault)
        shown.headers.update(headers)
        return shown
    reply = error_reply(fault, headers)
    response = Response(reply.body, reply.status, dict(reply.headers), media_type="application/json")
    # Whoever may call from a page of his own is told there, too, that he asked in the wrong place.
    response.raw_headers.extend(CORS)
    return response


async def _reply_unexpected(request: Request, error: Exception) -> Response:
    unexpected = Unexpected()
    log.error("request failed", request=unexpected.request_id, exc_info=error)
    reply = error_reply(unexpected, {"cache-control": "no-store"})
    return Response(reply.body, reply.status, dict(reply.headers), media_type="application/json")
