"""The tool server's own manners."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import aiohttp
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from roundtrip.api.documents.about import QUOTED_NOTE
from roundtrip.api.documents.prompts import PROMPTS
from roundtrip.api.documents.tool_schemas import params_schema
from roundtrip.api.operations.catalog import tools
from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.serving import service


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(skip_auto_headers=["accept"]) as found:
        yield found


def call(name: str, arguments: object) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@pytest.mark.parametrize("accept", ["application/json", "*/*", "application/json, text/event-stream", None])
async def test_any_client_that_takes_json_is_served(
    base_url: str, built: Built, session: aiohttp.ClientSession, accept: str | None
) -> None:
    headers = {"accept": accept} if accept else {}
    request = call("check_token", {"address": built.tokens["plain"]})
    async with session.post(f"{base_url}/mcp", json=request, headers=headers) as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        body = await response.json()
    assert body["result"]["structuredContent"]["verdict"]["code"] == "ok"


async def test_initialize_is_answered_and_not_needed(base_url: str, session: aiohttp.ClientSession) -> None:
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}
        },
    }  # fmt: skip
    async with session.post(f"{base_url}/mcp", json=hello) as response:
        body = await response.json()
    assert body["result"]["serverInfo"]["name"] == "roundtrip"
    assert body["result"]["protocolVersion"] == "2025-06-18"
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with session.post(f"{base_url}/mcp", json=done) as response:
        assert response.status == 202


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_lists_and_calls(base_url: str, built: Built, mode: Any) -> None:
    async with Client(f"{base_url}/mcp", mode=mode) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == [tool.name for tool in tools()]
        result = await client.call_tool("check_token", {"address": built.tokens["owner_only_sell"]})
    assert result.structured_content is not None
    assert result.structured_content["verdict"]["code"] == "cannot_sell"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_gets_prompts(base_url: str, built: Built, mode: Any) -> None:
    async with Client(f"{base_url}/mcp", mode=mode) as client:
        listed = await client.list_prompts()
        assert [prompt.name for prompt in listed.prompts] == [prompt.name for prompt in PROMPTS]
        wanted = {"token": built.tokens["plain"], "amount": "0.5"}
        prompt = await client.get_prompt("check_before_you_buy", wanted)
        (message,) = prompt.messages
        assert message.role == "user"
        assert isinstance(message.content, TextContent)
        assert f"Call check_token with address {built.tokens['plain']}." in message.content.text
        for name, arguments, text in (
            ("rm_rf", {}, "There is no such prompt. The prompts are check_before_you_buy, "),
            ("check_before_you_buy", {"token": "FOX"}, "token is wrong. The token's address: "),
        ):
            with pytest.raises(MCPError, match=text):
                await client.get_prompt(name, arguments)


async def test_an_unknown_tool_is_an_error_of_the_protocol(
    base_url: str, session: aiohttp.ClientSession
) -> None:
    for name, hint in (("rm_rf", ""), ("chek_token", " Did you mean check_token?")):
        async with session.post(f"{base_url}/mcp", json=call(name, {})) as response:
            error = (await response.json())["error"]
        text = f'There is no tool "{name}"; tools/list names all {len(tools())}.{hint}'
        assert (error["code"], error["message"]) == (-32602, text)


async def test_an_unknown_argument_is_named_and_its_quotes_are_not_called_strangers(
    base_url: str, session: aiohttp.ClientSession
) -> None:
    wrong = {"address": "0x" + "1" * 40, "amout": "1"}
    async with session.post(f"{base_url}/mcp", json=call("check_token", wrong)) as response:
        text = (await response.json())["result"]["content"][0]["text"]
    assert text.startswith('bad_input: "amout" is not an argument of check_token. Did you mean amount? ')
    assert text.endswith(" It takes address, deep, amount.")


async def test_bad_json_is_an_error_of_the_protocol(base_url: str, session: aiohttp.ClientSession) -> None:
    headers = {"content-type": "application/json"}
    async with session.post(f"{base_url}/mcp", data=b"{nope", headers=headers) as response:
        assert response.status == 400
        assert (await response.json())["error"]["code"] == -32700


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"a":' * 12_000, b"\xff" * 100, b"", b"null", b"7"])
async def test_a_body_that_is_no_request_ends_nothing(
    base_url: str, built: Built, session: aiohttp.ClientSession, body: bytes
) -> None:
    headers = {"content-type": "application/json"}
    async with session.post(f"{base_url}/mcp", data=body, headers=headers) as response:
        assert response.status == 400
    request = call("check_token", {"address": built.tokens["plain"]})
    async with session.post(f"{base_url}/mcp", json=request) as response:
        assert (await response.json())["result"]["isError"] is False


@pytest.mark.parametrize("size", [64 * 1024 + 1, 5_000_000])
async def test_an_oversize_body_is_refused(base_url: str, session: aiohttp.ClientSession, size: int) -> None:
    body = json.dumps(call("check_token", {"address": "0x" + "1" * size}))
    headers = {"content-type": "application/json"}
    sent = io.BytesIO(body.encode())
    async with session.post(f"{base_url}/mcp", data=sent, headers=headers) as response:
        assert response.status == 400
        assert (await response.json())["error"]["code"] == "bad_input"


async def test_a_body_of_the_largest_size_is_read(base_url: str, session: aiohttp.ClientSession) -> None:
    empty = json.dumps(call("check_token", {"address": ""}))
    body = json.dumps(call("check_token", {"address": "1" * (64 * 1024 - len(empty))}))
    assert len(body) == 64 * 1024
    headers = {"content-type": "application/json"}
    async with session.post(f"{base_url}/mcp", data=body, headers=headers) as response:
        assert response.status == 200
        assert (await response.json())["result"]["isError"] is True


async def test_tool_calls_count_and_listing_does_not(
    ctx: Context, built: Built, session: aiohttp.ClientSession
) -> None:
    request = call("check_token", {"address": built.tokens["plain"]})
    async with service(ctx, Settings(anon_per_minute=3)) as base_url:
        for _ in range(3):
            async with session.post(f"{base_url}/mcp", json=request) as response:
                assert (await response.json())["result"]["isError"] is False
        async with session.post(f"{base_url}/mcp", json=request) as response:
            result = (await response.json())["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("rate_limited: ")
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        for _ in range(20):
            async with session.post(f"{base_url}/mcp", json=listing) as response:
                assert len((await response.json())["result"]["tools"]) == len(tools())


async def test_an_error_that_quotes_strangers_opens_with_the_note(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    """What HTTP says without it; a client that parses ``code: message`` finds the code where it was."""
    trade = {"token": built.tokens["paused"], "from": "0x" + "77" * 20, "amount": "0.1", "fund": True}
    async with session.post(f"{base_url}/v1/prepare/buy", json=trade) as response:
        error = (await response.json())["error"]
    assert (error["code"], '"' in error["message"], QUOTED_NOTE in error["message"]) == (
        "would_fail",
        True,
        False,
    )
    async with session.post(f"{base_url}/mcp", json=call("prepare_buy", trade)) as response:
        bare = (await response.json())["result"]
    assert (bare["isError"], len(bare["content"])) == (True, 1)
    async with Client(f"{base_url}/mcp") as client:
        official = await client.call_tool("prepare_buy", trade)
    assert official.is_error
    (shown,) = official.content
    assert shown.type == "text"
    for text in (bare["content"][0]["text"], shown.text):
        assert text == f"would_fail: {QUOTED_NOTE} {error['message']}"
        assert text.index("written by strangers") < text.index('"')


@pytest.mark.parametrize(
    ("given", "paid", "flagged"),
    [
        ({}, "0.1", False),
        ({"amount": "0.05", "deep": True}, "0.05", True),
        ({"amount": 0.05, "deep": "true"}, "0.05", True),
        ({"amount": None, "deep": False}, "0.1", False),
    ],
)
async def test_a_check_takes_what_http_takes_by_its_query_string(
    base_url: str, built: Built, session: aiohttp.ClientSession, given: Any, paid: str, flagged: bool
) -> None:
    listed = {tool.name: params_schema(tool) for tool in tools()}
    assert {name: field["type"] for name, field in listed["check_token"]["properties"].items()} == {
        "address": "string", "deep": "boolean", "amount": "string"
    }  # fmt: skip
    request = call("check_token", {"address": built.tokens["max_transaction"], **given})
    async with session.post(f"{base_url}/mcp", json=request) as response:
        result = (await response.json())["result"]
    answer = result["structuredContent"]
    assert (result["isError"], answer["trade"]["paid"]["amount"]) == (False, paid)
    assert ("owner" in answer["verdict"]["text"]) is flagged


async def test_what_a_model_puts_in_quotes_is_read(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    wallet, token = built.accounts[0], built.tokens["plain"]
    calls = json.dumps([{"to": token, "data": "0x18160ddd"}])
    for name, given in (
        ("simulate_transaction", {"from": wallet, "calls": calls, "fund": "true"}),
        ("prepare_buy", {"token": token, "from": wallet, "amount": "0.01", "slippageBps": "250"}),
        ("prepare_buy", json.dumps({"token": token, "from": wallet, "amount": "0.01"})),
    ):
        async with session.post(f"{base_url}/mcp", json=call(name, cast(Any, given))) as response:
            result = (await response.json())["result"]
        assert result["isError"] is False, result


async def test_escapes_hide_no_nesting_from_the_limit(base_url: str, session: aiohttp.ClientSession) -> None:
    """Deeper than a recursive parser bears; the body itself has few brackets."""
    quoted = '{"calls":' + "[" * 900 + "]" * 900 + ',"more":[' + "[]," * 900 + "[]]}"
    hidden = quoted.replace("{", "\\u007b").replace("[", "\\u005b").replace('"', '\\"')
    body = json.dumps(call("check_token", "HERE")).replace("HERE", hidden).encode()
    headers = {"content-type": "application/json"}
    async with session.post(f"{base_url}/mcp", data=body, headers=headers) as response:
        result = (await response.json())["result"]
    assert result["isError"] is True
    assert "arguments must be an object" in result["content"][0]["text"]


async def test_an_unknown_version_of_the_protocol_gets_the_known_ones(
    base_url: str, session: aiohttp.ClientSession
) -> None:
    message, headers = (
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"mcp-protocol-version": "2031-01-01"},
    )
    async with session.post(f"{base_url}/mcp", json=message, headers=headers) as response:
        text = (await response.json())["error"]["message"]
    assert (response.status, "2025-06-18" in text, "2031" in text) == (400, True, False)


async def test_a_dead_key_is_told_in_the_result(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    request = call("check_token", {"address": built.tokens["plain"]})
    headers = {"authorization": "Bearer rt_nope"}
    async with session.post(f"{base_url}/mcp", json=request, headers=headers) as response:
        result = (await response.json())["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("bad_key: ")


async def test_blanks_behind_header_values_do_not_matter(base_url: str, built: Built) -> None:
    host, port = base_url.removeprefix("http://").split(":")
    body = json.dumps(call("check_token", {"address": built.tokens["plain"]}))
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json \t\r\nAccept: */* \r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write((head + body).encode())
    async with asyncio.timeout(10):
        raw = await reader.read()
    writer.close()
    assert raw.startswith(b"HTTP/1.1 200")
