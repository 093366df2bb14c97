"""One call, three doors: HTTP, a bare MCP POST, and the official MCP client."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
from mcp.client.client import Client
from yarl import URL

from roundtrip.api.operations.operation import AnyOperation


@dataclass(frozen=True, slots=True)
class Came:
    """What came back: an error code, or the answer."""

    code: str | None
    answer: dict[str, Any] | None


async def over_http(base_url: str, operation: AnyOperation, arguments: dict[str, Any]) -> Came:
    """The operation's own path."""
    assert operation.path is not None
    in_path = {name: value for name, value in arguments.items() if f"{{{name}}}" in operation.path}
    quoted = {name: quote(str(value), safe="") for name, value in in_path.items()}
    url = URL(base_url + operation.path.format(**quoted), encoded=True)
    rest = {name: value for name, value in arguments.items() if name not in in_path}
    async with (
        aiohttp.ClientSession() as session,
        session.request(operation.method, url, json=rest if operation.method == "POST" else None) as response,
    ):
        body = msgspec.json.decode(await response.read())
    if response.status == 200:
        return Came(None, body)
    assert body.keys() == {"error"}
    assert body["error"].keys() == {"code", "message"}
    return Came(body["error"]["code"], None)


async def over_bare_mcp(
    base_url: str, operation: AnyOperation, arguments: dict[str, Any], key: str | None = None
) -> Came:
    """A JSON-RPC POST and nothing else; with a key by its header."""
    request = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": operation.name, "arguments": arguments},
    }
    headers = {} if key is None else {"x-api-key": key}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{base_url}/mcp", json=request, headers=headers) as response,
    ):
        assert response.status == 200
        result = msgspec.json.decode(await response.read())["result"]
    return _came(result["isError"], result["content"][0]["text"], result.get("structuredContent"))


async def over_mcp_client(
    base_url: str, operation: AnyOperation, arguments: dict[str, Any], key: str | None = None
) -> Came:
    """The official client; it checks the answer against the listed output schema. A key goes by address."""
    async with Client(f"{base_url}/mcp" + ("" if key is None else f"/{key}")) as client:
        result = await client.call_tool(operation.name, arguments)
    text = result.content[0]
    assert text.type == "text"
    return _came(bool(result.is_error), text.text, result.structured_content)


def _came(failed: bool, text: str, structured: dict[str, Any] | None) -> Came:
    if failed:
        assert structured is None
        return Came(text.split(":")[0], None)
    note, body = text.split("\n")
    assert "written by strangers" in note
    assert msgspec.json.decode(body) == structured
    return Came(None, structured)


Door = Callable[[str, AnyOperation, dict[str, Any]], Awaitable[Came]]
DOORS: dict[str, Door] = {"http": over_http, "bare mcp": over_bare_mcp, "mcp client": over_mcp_client}
