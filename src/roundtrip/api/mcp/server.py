"""The tool server: the same table over the Model Context Protocol, stateless, plain JSON."""

import logging
from collections.abc import AsyncIterator, Mapping
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
from starlette.types import Message, Receive, Scope, Send

import roundtrip
from roundtrip.api.admission.gate import CallRefused
from roundtrip.api.dispatch import Dispatch, DoorReply, TracedFailure, error_reply, with_request_id
from roundtrip.api.documents.about import INSTRUCTIONS, NOTE, error_text
from roundtrip.api.documents.tool_schemas import answer_schema, params_schema
from roundtrip.api.operations.catalog import tools
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.api.request.callers import CallerRequest, Callers
from roundtrip.api.request.idempotency import given_once
from roundtrip.api.request.min_block import given_min_block
from roundtrip.api.request.secret_paths import PATH_KEY
from roundtrip.api.server.responses import NO_STORE, send_reply, takes_gzip
from roundtrip.domain.base.errors import CallerFault

from .envelope import MalformedMessage, read_envelope, read_headers, send_unfit
from .prepared_answers import (
    Listing,
    PreparableRequest,
    SendRecorder,
    canonical_listing,
    plain_request,
    send_kept,
)

_LISTING_TTL_MS = 60_000
_REPLY = "roundtrip.reply"
"""Where the answer of a call that ran already is found in its request's scope."""
_UNFIT = "roundtrip.unfit"
"""Set in the scope of a call whose arguments are no object."""
_ONCE = "roundtrip.once"
"""The idempotency keys that a call shows, in its request's scope."""
_MIN_BLOCK = "roundtrip.min_block"
"""The least blocks that a call shows, there too."""

Context = ServerRequestContext[Any, Request]

# At INFO the protocol's library writes a line for every stateless request.
logging.getLogger("mcp").setLevel(logging.WARNING)


class McpDoor:
    """POST /mcp as an ASGI application; ``running`` must be around it."""

    def __init__(self, dispatch: Dispatch, callers: Callers) -> None:
        self._dispatch = dispatch
        self._callers = callers
        self._table = {operation.name: operation for operation in tools()}
        self._listings: dict[str, Listing] = {}
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
        except CallRefused as refused:
            error = with_request_id(refused.error)
            measures = self._dispatch.ctx.measures
            measures.count("requests", "mcp", "failed" if error.status >= 500 else "refused")
            measures.count("errors", "mcp", error.code)
            if isinstance(error, TracedFailure):
                self._dispatch.failures.tell(error, "mcp", "mcp")
            raise error from None

    async def __call__(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Answers one request."""
        send = _without_store(send)
        kinds = [value for name, value in scope["headers"] if name == b"content-type"]
        if [kind.split(b";")[0].strip().lower() for kind in kinds] != [b"application/json"]:
            text = "The content-type of a request to the tool server is application/json."
            await send_reply(error_reply(CallerFault("bad_input", text)), send, cors=False)
            return
        try:
            headers = read_headers(scope["headers"])
            message = read_envelope(headers, body)
        except MalformedMessage as unfit:
            await send_unfit(unfit, send)
            return
        meta = message.params.get("_meta")
        shown = {_ONCE: given_once(headers, meta), _MIN_BLOCK: given_min_block(headers, meta)}
        scope = {**scope, "headers": headers, **shown}
        arguments = message.params.get("arguments")
        if message.method == "tools/call" and not isinstance(arguments, dict | None):
            # The library would refuse it in its own way; every other bad argument is told in the result.
            scope[_UNFIT] = True
            params = {name: value for name, value in message.params.items() if name != "arguments"}
            await self._app(
                scope, _again(msgspec.json.encode({**message.whole, "params": params}), receive), send
            )
            return
        plain, again = plain_request(headers, message), _again(body, receive)
        if plain is None:
            await self._app(scope, again, send)
        elif plain.tool is None:
            await self._list(plain, scope, body, receive, send)
        else:
            await self._call_plainly(plain, scope, again, send)

    async def _list(
        self, plain: PreparableRequest, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        listing = self._listings.get(plain.version)
        if listing is None:
            canonical, request_id = canonical_listing(plain.version)
            recording = SendRecorder(_nowhere, request_id)
            await self._app(scope, _again(canonical, receive), recording)
            if recording.kept is None:
                await self._app(scope, _again(body, receive), send)
                return
            listing = self._listings[plain.version] = Listing(recording.kept)
        await listing.send(plain.id, takes_gzip(scope["headers"]), send)

    async def _call_plainly(self, plain: PreparableRequest, scope: Scope, again: Receive, send: Send) -> None:
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
        recording = SendRecorder(send, plain.id)
        await self._app({**scope, _REPLY: reply}, again, recording)
        if reply.forms is not None and recording.kept is not None:
            reply.forms[form] = recording.kept

    def _server(self) -> Server[Any]:
        listing = types.ListToolsResult(
            tools=[_describe_tool(operation) for operation in self._table.values()]
        )

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

    def _asking(self, scope: Scope) -> CallerRequest:
        return self._callers.identify(scope["headers"], scope.get("client"), scope.get(PATH_KEY))

    async def _reply(
        self, operation: AnyOperation, arguments: Mapping[str, object], scope: Scope
    ) -> DoorReply:
        given = _no_object if _UNFIT in scope else arguments
        asking = self._asking(scope)
        once, least = scope[_ONCE], scope[_MIN_BLOCK]
        return await self._dispatch.run(operation, given, asking, once=once, door="mcp", min_block=least)

    async def _call(
        self, operation: AnyOperation, arguments: Mapping[str, object], scope: Scope
    ) -> types.CallToolResult:
        ran = scope.get(_REPLY)
        reply = ran if isinstance(ran, DoorReply) else await self._reply(operation, arguments, scope)
        if reply.error is not None:
            return types.CallToolResult(
                content=_text(error_text(reply.error.code, reply.error.message)), is_error=True
            )
        answer = msgspec.json.decode(reply.body)
        # What is said in sentences comes first, for whoever reads aloud.
        said = _sentences_of(answer)
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


async def _no_object() -> Mapping[str, object]:
    raise CallerFault("bad_input", "The arguments of a call are an object.")


async def _nowhere(message: Message) -> None:
    """A ``send`` for what is kept first."""


def _without_store(send: Send) -> Send:
    """A ``send`` of answers that nobody may keep."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            told = [one for one in message["headers"] if one[0] != NO_STORE[0]]
            message = {**message, "headers": [*told, NO_STORE]}
        await send(message)

    return sending


def _sentences_of(answer: Mapping[str, Any]) -> list[str]:
    """What an answer says in sentences: its text, or its verdict's."""
    verdict = answer.get("verdict")
    told = answer.get("text") or (verdict.get("text") if isinstance(verdict, dict) else None)
    return [told] if isinstance(told, str) else []


def _text(text: str) -> list[types.ContentBlock]:
    return [types.TextContent(type="text", text=text)]


def _describe_tool(operation: AnyOperation) -> types.Tool:
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
