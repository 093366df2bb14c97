"""The tools and prompts that the protocol's public conformance suite asks for, behind this service's door."""

from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from roundtrip.api.mcp.server import Context, McpDoor

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
STRICT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
IN_A_HEADER: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}
TEXT = types.TextContent(type="text", text="This is a simple text response for testing.")
IMAGE = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
AUDIO = types.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")


def resource(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    held = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(type="resource", resource=held)


ANSWERS: dict[str, list[types.ContentBlock]] = {
    "test_simple_text": [TEXT],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        types.TextContent(type="text", text="Multiple content types test:"),
        IMAGE,
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "test_error_handling": [
        types.TextContent(type="text", text="This tool intentionally returns an error for testing")
    ],
    "test_tool_with_progress": [TEXT],
    "test_tool_with_logging": [TEXT],
    "test_missing_capability": [TEXT],
    "test_logging_tool": [TEXT],
    "test_streaming_elicitation": [TEXT],
    "json_schema_2020_12_tool": [TEXT],
    "test_custom_headers": [TEXT],
}
SCHEMAS = {"json_schema_2020_12_tool": STRICT, "test_custom_headers": IN_A_HEADER}


def user_message(text: str) -> types.PromptMessage:
    return types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))


def prompt_messages(name: str, arguments: dict[str, str]) -> list[types.PromptMessage]:
    if name == "test_prompt_with_arguments":
        return [
            user_message(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")
        ]
    if name == "test_prompt_with_embedded_resource":
        held = resource(arguments["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return [
            types.PromptMessage(role="user", content=held),
            user_message("Please process the embedded resource."),
        ]
    if name == "test_prompt_with_image":
        return [
            types.PromptMessage(role="user", content=IMAGE),
            user_message("Please analyze the image above."),
        ]
    return [user_message("This is a simple prompt for testing.")]


class SuiteDoor(McpDoor):
    """The tool server with the suite's tools and prompts beside its own."""

    def _build_server(self) -> Server[Any]:
        server = super()._build_server()
        listing, calling = (server.get_request_handler(name) for name in ("tools/list", "tools/call"))
        assert listing is not None
        assert calling is not None
        self._schemas.update({name: SCHEMAS.get(name, EMPTY) for name in ANSWERS})

        async def list_tools(ctx: Context, params: types.PaginatedRequestParams) -> types.ListToolsResult:
            listed = await listing.handler(ctx, params)
            assert isinstance(listed, types.ListToolsResult)
            more = [
                types.Tool(name=name, description=f"{name}.", input_schema=self._schemas[name])
                for name in ANSWERS
            ]
            return types.ListToolsResult(tools=[*listed.tools, *more])

        async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Any:
            content = ANSWERS.get(params.name)
            if content is None:
                return await calling.handler(ctx, params)
            if params.name == "test_missing_capability":
                raise MCPError(
                    types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                    "It needs sampling.",
                    {"requiredCapabilities": {"sampling": {}}},
                )
            return types.CallToolResult(content=content, is_error=params.name == "test_error_handling")

        getting = server.get_request_handler("prompts/get")
        assert getting is not None

        async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> Any:
            if not params.name.startswith("test_"):
                return await getting.handler(ctx, params)
            return types.GetPromptResult(messages=prompt_messages(params.name, params.arguments or {}))

        server.add_request_handler("prompts/get", types.GetPromptRequestParams, get_prompt)
        server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
        server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
        return server
