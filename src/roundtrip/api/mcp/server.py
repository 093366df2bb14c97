"""The tool server: the table of operations, and prompts, over the Model Context Protocol, stateless, plain
JSON."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
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
from roundtrip.api.dispatch import Dispatch, DoorReply, add_request_id, error_reply
from roundtrip.api.documents.about import INSTRUCTIONS, NOTE, error_text
from roundtrip.api.documents.listing import listed_tools
from roundtrip.api.documents.prompts import PROMPTS, AgentPrompt, BadPromptArgument
from roundtrip.api.documents.tool_schemas import params_schema
from roundtrip.api.mcp.prepared_answers import (
    Listing,
    MalformedMessage,
    PreparableRequest,
    SendRecorder,
    listing_request,
    read_envelope,
    read_headers,
    read_plain_request,
    send_malformed,
    send_prepared,
)
from roundtrip.api.operations.catalog import tools
from roundtrip.api.operations.operation import AnyOperation
from roundtrip.api.request.callers import PATH_KEY, CallerRequest, Callers
from roundtrip.api.request.failure_log import TracedFailure
from roundtrip.api.request.idempotency import shown_idempotency_keys
from roundtrip.api.request.min_block import shown_min_blocks
from roundtrip.api.request.param_errors import find_similar, quote_name, read_json_text, read_quoted
from roundtrip.api.server.responses import NO_STORE, accepts_gzip, send_reply
from roundtrip.domain.base.errors import CallerFault, ParamFault

_LISTING_CACHE = CacheHint(ttl_ms=60_000, scope="public")
_REPLY = "roundtrip.reply"
"""Scope entry: the reply of a call that has run already."""
_BAD_ARGUMENTS = "roundtrip.unfit"
"""Scope entry: set if the call's arguments are not an object."""
_IDEMPOTENCY_KEYS = "roundtrip.once"
"""Scope entry: the call's idempotency keys, unvalidated."""
_MIN_BLOCKS = "roundtrip.min_block"
"""Scope entry: the call's minimum blocks, unvalidated."""

Context = ServerRequestContext[Any, Request]

# At INFO the protocol's library writes a line for every stateless request.
logging.getLogger("mcp").setLevel(logging.WARNING)


class McpDoor:
    """POST /mcp as an ASGI application; it serves inside ``running``."""

    def __init__(self, dispatch: Dispatch, callers: Callers) -> None:
        self._dispatch = dispatch
        self._callers = callers
        self._table = {operation.name: operation for operation in tools()}
        self._listings: dict[str, Listing] = {}
        self._schemas = {name: params_schema(operation) for name, operation in self._table.items()}
        self._manager = StreamableHTTPSessionManager(
            self._build_server(),
            json_response=True,
            stateless=True,
            # Rebinding protection is for servers that trust every client that reaches them; this one does
            # not.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._app = StreamableHTTPASGIApp(self._manager)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the library's session manager. Enter it once for each McpDoor."""
        async with self._manager.run():
            yield

    async def check_path_key(self, scope: Scope) -> None:
        """Checks the key at the end of the path, if there is one. Raises CallerFault (bad_key),
        ServiceFull."""
        if PATH_KEY not in scope:
            return
        try:
            await self._dispatch.gate.look_at(self._identify(scope))
        except CallRefused as refused:
            error = add_request_id(refused.error)
            measures = self._dispatch.ctx.measures
            measures.count("requests", "mcp", "failed" if error.status >= 500 else "refused")
            measures.count("errors", "mcp", error.code)
            if isinstance(error, TracedFailure):
                self._dispatch.failures.write(error, "mcp", "mcp")
            raise error from None

    async def __call__(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Answers one request."""
        send = _with_no_store(send)
        kinds = [value for name, value in scope["headers"] if name == b"content-type"]
        if [kind.split(b";")[0].strip().lower() for kind in kinds] != [b"application/json"]:
            text = "The Content-Type header must be application/json."
            await send_reply(error_reply(CallerFault("bad_input", text)), send, cors=False)
            return
        try:
            headers = read_headers(scope["headers"])
            message = read_envelope(headers, body)
        except MalformedMessage as malformed:
            await send_malformed(malformed, send)
            return
        meta = message.params.get("_meta")
        shown = {
            _IDEMPOTENCY_KEYS: shown_idempotency_keys(headers, meta),
            _MIN_BLOCKS: shown_min_blocks(headers, meta),
        }
        scope = {**scope, "headers": headers, **shown}
        arguments = message.params.get("arguments")
        if isinstance(arguments, str) and isinstance(unquoted := read_json_text(arguments), dict):
            arguments, params = unquoted, {**message.params, "arguments": unquoted}
            message = replace(message, params=params, whole={**message.whole, "params": params})
            body = msgspec.json.encode(message.whole)
        if message.method == "tools/call" and not isinstance(arguments, dict | None):
            # The library would answer with a protocol error; all other bad arguments are errors of the
            # result.
            scope[_BAD_ARGUMENTS] = True
            params = {name: value for name, value in message.params.items() if name != "arguments"}
            await self._app(
                scope, _replay_body(msgspec.json.encode({**message.whole, "params": params}), receive), send
            )
            return
        if message.method == "prompts/get" and isinstance(arguments, dict):
            given = {name: value for name, value in arguments.items() if value is not None}
            params = {**message.params, "arguments": given}
            body = msgspec.json.encode({**message.whole, "params": params})
        plain, replay = read_plain_request(headers, message), _replay_body(body, receive)
        if plain is None:
            await self._app(scope, replay, send)
        elif plain.tool is None:
            await self._send_listing(plain, scope, body, receive, send)
        else:
            await self._call_plain_tool(plain, scope, replay, send)

    async def _send_listing(
        self, plain: PreparableRequest, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        listing = self._listings.get(plain.version)
        if listing is None:
            canonical, request_id = listing_request(plain.version)
            recorder = SendRecorder(_discard, request_id)
            await self._app(scope, _replay_body(canonical, receive), recorder)
            if recorder.recorded is None:
                await self._app(scope, _replay_body(body, receive), send)
                return
            listing = self._listings[plain.version] = Listing(recorder.recorded)
        await listing.send(plain.id, accepts_gzip(scope["headers"]), send)

    async def _call_plain_tool(
        self, plain: PreparableRequest, scope: Scope, replay: Receive, send: Send
    ) -> None:
        """Runs the call first: a shared answer may already have a recorded form of it."""
        operation = self._table.get(plain.tool or "")
        if operation is None:
            await self._app(scope, replay, send)
            return
        reply = await self._run_operation(operation, plain.arguments, scope)
        form = f"mcp {plain.version}"
        prepared = (reply.forms or {}).get(form)
        if prepared is not None:
            await send_prepared(prepared, plain.id, send)
            return
        recorder = SendRecorder(send, plain.id)
        await self._app({**scope, _REPLY: reply}, replay, recorder)
        if reply.forms is not None and recorder.recorded is not None:
            reply.forms[form] = recorder.recorded

    def _build_server(self) -> Server[Any]:
        listing = _list_tools()

        async def list_tools(
            ctx: Context, params: types.PaginatedRequestParams | None
        ) -> types.ListToolsResult:
            if params is not None and params.cursor is not None:
                raise MCPError(types.INVALID_PARAMS, "All tools are on one page. Leave out cursor.")
            return listing

        async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
            operation = self._table.get(params.name)
            if operation is None:
                raise MCPError(types.INVALID_PARAMS, self._describe_unknown_tool(params.name))
            assert ctx.request is not None
            return await self._call_tool(operation, params.arguments or {}, ctx.request.scope)

        async def list_prompts(
            ctx: Context, params: types.PaginatedRequestParams | None
        ) -> types.ListPromptsResult:
            if params is not None and params.cursor is not None:
                raise MCPError(types.INVALID_PARAMS, "All prompts are on one page. Leave out cursor.")
            return _LISTED_PROMPTS

        server: Server[Any] = Server(
            "roundtrip",
            version=roundtrip.__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_list_prompts=list_prompts,
            on_get_prompt=_get_prompt,
            # Without it, every call of the newest protocol version would list the tools first.
            get_tool_input_schema=self._schemas.get,
            cache_hints={"tools/list": _LISTING_CACHE, "prompts/list": _LISTING_CACHE},
        )
        # Without the library's own tracing: ``Dispatch.run`` makes the spans.
        server.middleware.clear()
        return server

    def _describe_unknown_tool(self, name: str) -> str:
        similar = find_similar(name, list(self._table))
        guess = "" if similar is None else f" Did you mean {similar}?"
        return f"There is no tool {quote_name(name)}; tools/list names all {len(self._table)}.{guess}"

    def _identify(self, scope: Scope) -> CallerRequest:
        return self._callers.identify(scope["headers"], scope.get("client"), scope.get(PATH_KEY))

    async def _run_operation(
        self, operation: AnyOperation, arguments: Mapping[str, object], scope: Scope
    ) -> DoorReply:
        params, query = _read_arguments(operation, arguments)
        caller = self._identify(scope)
        idempotency_keys, min_blocks = scope[_IDEMPOTENCY_KEYS], scope[_MIN_BLOCKS]
        return await self._dispatch.run(
            operation,
            _refuse_arguments if _BAD_ARGUMENTS in scope else params,
            caller,
            query,
            idempotency_keys=idempotency_keys,
            door="mcp",
            min_block=min_blocks,
        )

    async def _call_tool(
        self, operation: AnyOperation, arguments: Mapping[str, object], scope: Scope
    ) -> types.CallToolResult:
        ready = scope.get(_REPLY)
        reply = (
            ready if isinstance(ready, DoorReply) else await self._run_operation(operation, arguments, scope)
        )
        if reply.error is not None:
            code, message = reply.error.code, reply.error.message
            # Quotes in the message of a ParamFault hold examples, which need no note on strangers.
            is_own = isinstance(reply.error, ParamFault)
            text = f"{code}: {message}" if is_own else error_text(code, message)
            return types.CallToolResult(content=_text_content(text), is_error=True)
        # The text is the same JSON after the note: the answer's sentences are fields of it, without a
        # line of their own.
        return types.CallToolResult(
            content=_text_content(f"{NOTE}\n{reply.body.decode()}"),
            structured_content=msgspec.json.decode(reply.body),
        )


def _list_prompt(prompt: AgentPrompt) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=param.name, description=param.description, required=param.required)
        for param in prompt.params
    ]
    return types.Prompt(
        name=prompt.name, title=prompt.title, description=prompt.description, arguments=arguments
    )


_PROMPTS = {prompt.name: prompt for prompt in PROMPTS}
_LISTED_PROMPTS = types.ListPromptsResult(prompts=[_list_prompt(prompt) for prompt in PROMPTS])


async def _get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    prompt = _PROMPTS.get(params.name)
    if prompt is None:
        raise MCPError(
            types.INVALID_PARAMS, f"There is no such prompt. The prompts are {', '.join(_PROMPTS)}."
        )
    try:
        text = prompt.text(params.arguments or {})
    except BadPromptArgument as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])


@cache
def _list_tools() -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in listed_tools()])


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that returns a body which was already read, then the connection's own messages: the
    library waits for the disconnect, so repeating the body forever would block it and the event loop."""
    is_sent = False

    async def replay() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _read_arguments(
    operation: AnyOperation, arguments: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, str]]:
    """The arguments as HTTP has them: what language models put in quotes is read, and what HTTP takes from a
    query string is a text of its own."""
    given, query = read_quoted(arguments, operation.params), {}
    for name in operation.query:
        value = given.pop(name, None)
        if value is not None:
            query[name] = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return given, query


async def _refuse_arguments() -> Mapping[str, object]:
    raise ParamFault("bad_input", 'arguments must be an object, such as {"address": "0x..."}.')


async def _discard(message: Message) -> None:
    """A ``send`` that discards the answer."""


def _with_no_store(send: Send) -> Send:
    """A ``send`` that sets ``cache-control: no-store``."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [header for header in message["headers"] if header[0] != NO_STORE[0]]
            message = {**message, "headers": [*headers, NO_STORE]}
        await send(message)

    return sending


def _text_content(text: str) -> list[types.ContentBlock]:
    return [types.TextContent(type="text", text=text)]
