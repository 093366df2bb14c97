"""The tool server: the same table over the Model Context Protocol, stateless, plain JSON."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

import roundtrip
from roundtrip.domain.errors import CallerFault, RoundtripError

from .about import INSTRUCTIONS, NOTE
from .callers import Asking, Callers
from .catalog import tools
from .dispatch import Dispatch, Reply, error_reply
from .gate import Refused
from .operation import Operation
from .paths import PATH_KEY
from .prepared import Plain, Recording, plain_request, send_kept
from .publish import answer_schema, params_schema

_LISTING_TTL_MS = 60_000
_REPLY = "roundtrip.reply"
"""Where the answer of a call that ran already is found in its request's scope."""

Context = ServerRequestContext[Any, Request]

# At INFO the protocol's library writes a line for every stateless request.
logging.getLogger("mcp").setLevel(logging.WARNING)


class McpDoor:
    """POST /mcp as an ASGI application; ``running`` must be around it."""

    def __init__(self, dispatch: Dispatch, callers: Callers) -> None:
        self._dispatch = dispatch
        self._callers = callers
        self._table = {operation.name: operation for operation in tools()}
        self._listings: dict[str, bytes] = {}
        self._schemas = {name: params_schema(operation) for name, operation in self._table.items()}
        self._manager = StreamableHTTPSessionManager(
            self._server(),
            json_response=True,
            stateless=True,
            # The guard against rebinding is for servers that trust whoever reaches them; this one does not.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._app = StreamableHTTPASGIApp(self._manager)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Once for each door."""
        async with self._manager.run():
            yield

    async def let_in(self, scope: Scope) -> None:
        """Looks at the key at the end of the address, where there is one. Raises CallerFault (bad_key),
        ServiceFull."""
        if PATH_KEY not in scope:
            return
        try:
            await self._dispatch.gate.look_at(self._asking(scope))
        except Refused as refused:
            raise refused.error from None

    async def __call__(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Answers one request; a client that sends no Accept takes anything (RFC 9110, 12.5.1)."""
        # The HTTP parser keeps blanks behind values, which the protocol's newest version refuses.
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        if not any(name == b"accept" for name, _ in headers):
            headers.append((b"accept", b"*/*"))
        scope = {**scope, "headers": headers}
        again = _again(body, receive)
        refusal = _refusal(headers, body)
        plain = None if refusal else plain_request(headers, body)
        if refusal:
            await refusal(scope, receive, send)
        elif plain is None:
            await self._app(scope, again, send)
        elif plain.tool is None:
            await self._list(plain, scope, again, send)
        else:
            await self._call_plainly(plain, scope, again, send)

    async def _list(self, plain: Plain, scope: Scope, again: Receive, send: Send) -> None:
        kept = self._listings.get(plain.version)
        if kept is not None:
            await send_kept(kept, plain.id, send)
            return
        recording = Recording(send, plain.id)
        await self._app(scope, again, recording)
        if recording.kept is not None:
            self._listings[plain.version] = recording.kept

    async def _call_plainly(self, plain: Plain, scope: Scope, again: Receive, send: Send) -> None:
        """Runs the call first: what everyone shares may have been written for somebody else before."""
        operation = self._table.get(plain.tool or "")
        if operation is None:
            await self._app(scope, again, send)
            return
        reply = await self._reply(operation, plain.arguments, scope)
        form = f"mcp {plain.version}"
        kept = (reply.forms or {}).get(form)
        if kept is not None:
            await send_kept(kept, plain.id, send)
            return
        recording = Recording(send, plain.id)
        await self._app({**scope, _REPLY: reply}, again, recording)
        if reply.forms is not None and recording.kept is not None:
            reply.forms[form] = recording.kept

    def _server(self) -> Server[Any]:
        listing = types.ListToolsResult(tools=[_listed(operation) for operation in self._table.values()])

        async def list_tools(
            ctx: Context, params: types.PaginatedRequestParams | None
        ) -> types.ListToolsResult:
            if params is not None and params.cursor is not None:
                raise MCPError(types.INVALID_PARAMS, "All tools are on one page: there is no cursor.")
            return listing

        async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
            operation = self._table.get(params.name)
            if operation is None:
                raise MCPError(types.INVALID_PARAMS, "There is no tool of this name.")
            assert ctx.request is not None
            return await self._call(operation, params.arguments or {}, ctx.request.scope)

        server: Server[Any] = Server(
            "roundtrip",
            version=roundtrip.__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            # Without it every call of the newest protocol version would list the tools first.
            get_tool_input_schema=self._schemas.get,
            cache_hints={"tools/list": CacheHint(ttl_ms=_LISTING_TTL_MS, scope="public")},
        )
        server.middleware.clear()
        return server

    def _asking(self, scope: Scope) -> Asking:
        """Who asks. Raises CallerFault (bad_key)."""
        return self._callers.identify(scope["headers"], scope.get("client"), scope.get(PATH_KEY))

    async def _reply(self, operation: Operation, arguments: Mapping[str, object], scope: Scope) -> Reply:
        try:
            asking = self._asking(scope)
        except RoundtripError as error:
            return error_reply(error)
        return await self._dispatch.run(operation, arguments, asking)

    async def _call(
        self, operation: Operation, arguments: Mapping[str, object], scope: Scope
    ) -> types.CallToolResult:
        ran = scope.get(_REPLY)
        reply = ran if isinstance(ran, Reply) else await self._reply(operation, arguments, scope)
        if reply.error is not None:
            return types.CallToolResult(
                content=_text(f"{reply.error.code}: {reply.error.message}"), is_error=True
            )
        answer = msgspec.json.decode(reply.body)
        # What is said in sentences comes first, for whoever reads aloud.
        said = [answer["text"]] if isinstance(answer.get("text"), str) else []
        return types.CallToolResult(
            content=_text("\n".join([NOTE, *said, reply.body.decode()])), structured_content=answer
        )


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, to be read once more. What comes after it is the connection's to tell:
    the library waits for its end, and a body given for ever would keep it, and everyone, waiting."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _refusal(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Response | None:
    """What the library would answer in its own words, or with what it was sent."""
    kinds = [value.split(b";")[0].strip().lower() for name, value in headers if name == b"content-type"]
    if kinds != [b"application/json"]:
        fault = CallerFault(
            "bad_input", "The content-type of a request to the tool server is application/json."
        )
        reply = error_reply(fault)
        return Response(reply.body, reply.status, media_type="application/json")
    if body.lstrip(b" \t\r\n")[:1] == b"[":
        error = types.ErrorData(code=types.INVALID_REQUEST, message="Send one request at a time, no batch.")
        refused = types.JSONRPCError(jsonrpc="2.0", id=None, error=error)
        return Response(refused.model_dump_json(exclude_unset=True), 400, media_type="application/json")
    return None


def _text(text: str) -> list[types.ContentBlock]:
    return [types.TextContent(type="text", text=text)]


def _listed(operation: Operation) -> types.Tool:
    return types.Tool(
        name=operation.name,
        title=operation.title,
        description=operation.tool_description(),
        input_schema=params_schema(operation),
        output_schema=answer_schema(operation),
        annotations=types.ToolAnnotations(
            title=operation.title,
            read_only_hint=not operation.writes,
            destructive_hint=operation.writes and operation.destroys,
            idempotent_hint=not operation.writes or operation.repeatable,
            open_world_hint=True,
        ),
    )
