"""The HTTP door: one loop over the table."""

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from roundtrip.domain.errors import CallerFault, RoundtripError

from .callers import Asking, Callers
from .catalog import OPERATIONS
from .dispatch import Dispatch, Reply, Unexpected, error_reply
from .mcp import McpDoor
from .operation import Operation
from .protocol import BODY_S
from .publish import tools_json

MOST_BODY_BYTES = 64 * 1024
_LARGE_BYTES = 64 * 1024
"""Beyond it an answer is compressed for who reads that; proofs are as large, and become a twentieth."""
MOST_BRACKETS = 1000
"""No request needs more; what reads JSON by recursion is never let near the end of its stack."""

_NOBODY = Asking("")
"""Of whom nothing is counted."""

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


async def send_reply(reply: Reply, send: Send, cors: bool) -> None:
    """Writes a reply as JSON."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(reply.body))]
    headers += [(name.encode(), value.encode()) for name, value in reply.headers.items()]
    if isinstance(reply.error, BodyUnread):
        headers.append((b"connection", b"close"))
    if cors:
        headers.append((b"access-control-allow-origin", b"*"))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


class BodyUnread(CallerFault):
    """Nothing more is read of this request, so its connection is of no more use."""

    def __init__(self, message: str) -> None:
        super().__init__("bad_input", message)


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


def _cut(reply: Reply, operation: Operation) -> Reply:
    """As much of an answer as this door gives."""
    if operation.path_answer is None or reply.error is not None:
        return reply
    answer = msgspec.json.decode(reply.body, type=operation.path_answer)
    return replace(reply, body=msgspec.json.encode(answer))


async def _squeezed(reply: Reply, asked: Iterable[tuple[bytes, bytes]]) -> Reply:
    """The reply, compressed beside the loop where the caller reads that."""
    headers = {**reply.headers, "vary": "accept-encoding"}
    if not takes_gzip(asked):
        return replace(reply, headers=headers)
    body = await asyncio.to_thread(gzip.compress, reply.body, 1, mtime=0)
    return replace(reply, body=body, headers={**headers, "content-encoding": "gzip"})


def takes_gzip(asked: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether these request headers accept gzip; by name only, and not with the weight zero."""
    told = b",".join(value for name, value in asked if name == b"accept-encoding")
    for one in told.lower().split(b","):
        coding, _, weight = one.partition(b";")
        if coding.strip() == b"gzip":
            return not re.fullmatch(rb"\s*q\s*=\s*0(\.0*)?\s*", weight)
    return False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One row of the table as an ASGI application."""

    operation: Operation
    dispatch: Dispatch
    callers: Callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        cors = self.operation.method == "GET" and not self.operation.key
        try:
            asking = _NOBODY
            if self.operation.counts != "never" or self.operation.key:
                asking = self.callers.identify(scope["headers"], scope.get("client"))
        except RoundtripError as error:
            await send_reply(error_reply(error), send, cors)
            return

        async def raw() -> Mapping[str, object]:
            return await self._raw(scope, receive)

        query = QueryParams(scope.get("query_string", b""))
        reply = _cut(await self.dispatch.run(self.operation, raw, asking, query), self.operation)
        if len(reply.body) > _LARGE_BYTES:
            reply = await _squeezed(reply, scope["headers"])
        await send_reply(reply, send, cors)

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
class McpEndpoint:
    """POST /mcp, with this service's own limit on bodies before the protocol sees them."""

    door: McpDoor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        try:
            body = await read_body(receive)
        except RoundtripError as error:
            await send_reply(error_reply(error), send, cors=False)
            return

        async def again() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        await self.door(scope, again, send)


def create_app(dispatch: Dispatch, callers: Callers, lifespan: Lifespan | None = None) -> Starlette:
    """The whole service as one ASGI application. ``lifespan`` runs around it, outermost."""
    door = McpDoor(dispatch, callers)
    prepared = msgspec.json.encode(tools_json())

    async def serve_tools(scope: Scope, receive: Receive, send: Send) -> None:
        await send_reply(Reply(200, prepared), send, cors=True)

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        if lifespan is None:
            async with door.running():
                yield
        else:
            async with lifespan(), door.running():
                yield
        await dispatch.shared.settle()

    routes = [
        Route(operation.path, Endpoint(operation, dispatch, callers), methods=[operation.method])
        for operation in OPERATIONS
        if operation.path is not None
    ]
    routes.append(Route("/v1/tools.json", _Prepared(serve_tools), methods=["GET"]))
    routes.append(Route("/mcp", McpEndpoint(door), methods=["POST"]))
    app = Starlette(
        routes=routes,
        lifespan=running,
        exception_handlers={HTTPException: _http_error, Exception: _unexpected},
    )
    app.router.redirect_slashes = False
    return app


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An answer that never changes; an instance, since a router takes functions for request handlers."""

    serve: Callable[[Scope, Receive, Send], Any]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.serve(scope, receive, send)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        fault = CallerFault("method_not_allowed", f"{request.method} is not served at this path.")
    else:
        fault = CallerFault("not_found", "There is nothing at this path.")
    reply = error_reply(fault, dict(error.headers or {}))
    return Response(reply.body, reply.status, dict(reply.headers), media_type="application/json")


async def _unexpected(request: Request, error: Exception) -> Response:
    reply = error_reply(Unexpected())
    return Response(reply.body, reply.status, media_type="application/json")
