"""What is no message of JSON-RPC is refused in fixed words; what is not counted is bounded."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from roundtrip.api.operations.catalog import tools
from roundtrip.api.request.param_errors import MAX_BRACKETS
from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.serving import service

LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": "mine", "method": "tools/list"}
SECRET = "rt_Abcdefghijklmnopqrstuvwxyz0123456789Abcdefghijklm01"
META = "io.modelcontextprotocol/"
NEWEST = "2026-07-28"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(skip_auto_headers=["accept", "content-type"]) as found:
        yield found


async def post(
    session: aiohttp.ClientSession, base_url: str, body: object, **headers: str
) -> tuple[int, dict[str, Any]]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = {
        "content-type": "application/json",
        **{name.replace("_", "-"): v for name, v in headers.items()},
    }
    async with session.post(f"{base_url}/mcp", data=data, headers=answer) as response:
        assert response.headers["cache-control"] == "no-store"
        assert response.content_type == "application/json"
        return response.status, await response.json()


def call(arguments: object, name: str = "check_token", version: str | None = None) -> dict[str, Any]:
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    if version == NEWEST:
        params["_meta"] = {f"{META}protocolVersion": version, f"{META}clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def build_headers(version: str, method: str = "tools/call", name: str = "check_token") -> dict[str, str]:
    return {"mcp_protocol_version": version, "mcp_method": method, "mcp_name": name}


@pytest.mark.parametrize("version", ["2025-06-18", NEWEST])
@pytest.mark.parametrize(
    ("message", "code", "request_id"),
    [
        (b"{nope", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":NaN}', -32700, None),
        (b"null", -32600, None),
        (SECRET, -32600, None),
        ([LIST], -32600, None),
        ({}, -32600, None),
        ({**LIST, "method": 3, "apiKey": SECRET}, -32600, "mine"),
        ({**LIST, "method": None}, -32600, "mine"),
        ({**LIST, "jsonrpc": SECRET}, -32600, "mine"),
        ({**LIST, "jsonrpc": 2.0}, -32600, "mine"),
        ({**LIST, "params": SECRET}, -32600, "mine"),
        ({**LIST, "params": [SECRET]}, -32600, "mine"),
        ({"jsonrpc": "2.0", "id": 5, "result": {"a": SECRET}}, -32600, 5),
        ({**LIST, "method": SECRET}, -32601, "mine"),
        ({**LIST, "method": "resources/list"}, -32601, "mine"),
        ({**LIST, "method": "prompts/get", "params": {"name": [SECRET]}}, -32602, "mine"),
        (
            {**LIST, "method": "prompts/get", "params": {"name": "a", "arguments": {"b": [SECRET]}}},
            -32602,
            "mine",
        ),
        ({**LIST, "method": "prompts/get", "params": {"name": "a", "arguments": SECRET}}, -32602, "mine"),
    ],
)
async def test_what_is_no_request_is_refused_without_what_it_said(
    base_url: str,
    session: aiohttp.ClientSession,
    version: str,
    message: object,
    code: int,
    request_id: object,
) -> None:
    status, body = await post(session, base_url, message, mcp_protocol_version=version)
    assert body == {"jsonrpc": "2.0", "id": request_id, "error": body["error"]}
    assert body["error"] == {"code": code, "message": body["error"]["message"]}
    assert status == {-32601: 404 if version == NEWEST else 200}.get(code, 400)
    for part in (SECRET, SECRET[-12:], "pydantic"):
        assert part not in json.dumps(body)


@pytest.mark.parametrize("request_id", [None, 1.0, True, False, {}, [1]])
async def test_a_call_with_a_bad_id_is_refused_and_not_swallowed(
    base_url: str, built: Built, session: aiohttp.ClientSession, request_id: object
) -> None:
    message = {**call({"address": built.tokens["plain"]}), "id": request_id}
    status, body = await post(session, base_url, message)
    assert (status, body["id"], body["error"]["code"]) == (400, None, -32600)


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
@pytest.mark.parametrize("arguments", [[], [1], "0x12", "", 5, 0, True, False])
async def test_arguments_that_are_no_object_are_told_in_the_result(
    base_url: str, session: aiohttp.ClientSession, version: str, arguments: object
) -> None:
    status, body = await post(session, base_url, call(arguments, version=version), **build_headers(version))
    assert status == 200
    assert body["result"]["isError"] is True
    assert body["result"]["content"][0]["text"].startswith("bad_input: ")
    wrong = call(arguments, "rm_rf", version)
    _, body = await post(session, base_url, wrong, **build_headers(version, name="rm_rf"))
    assert body["error"]["code"] == -32602


async def test_such_a_call_counts_as_any_other(ctx: Context, session: aiohttp.ClientSession) -> None:
    async with service(ctx, Settings(anon_per_minute=2)) as base_url:
        texts = []
        for _ in range(3):
            _, body = await post(session, base_url, call([]))
            texts.append(body["result"]["content"][0]["text"].split(":")[0])
    assert texts == ["bad_input", "bad_input", "rate_limited"]


async def test_only_a_call_may_be_long(base_url: str, built: Built, session: aiohttp.ClientSession) -> None:
    for method in ("tools/list", "initialize", "ping", "notifications/initialized"):
        message = {**LIST, "method": method, "params": {"_meta": {"a": "x" * 8192}}}
        status, body = await post(session, base_url, message)
        assert (status, body["id"], body["error"]["code"]) == (400, "mine", -32600)
    small = {**LIST, "params": {"_meta": {"a": "x" * 8000}}}
    assert len((await post(session, base_url, small))[1]["result"]["tools"]) == len(tools())
    long = call({"address": built.tokens["plain"]}) | {"more": "x" * 20_000}
    assert (await post(session, base_url, long))[1]["result"]["isError"] is False


async def test_a_body_of_brackets_is_refused(base_url: str, session: aiohttp.ClientSession) -> None:
    for count, refused in ((MAX_BRACKETS - 3, False), (MAX_BRACKETS - 2, True)):
        status, body = await post(session, base_url, call({"address": [[] for _ in range(count - 1)]}))
        assert (status, "error" in body) == ((400, True) if refused else (200, False))


@pytest.mark.parametrize(
    "kind", ["Application/JSON", "APPLICATION/JSON; charset=UTF-8", "application/json ;x"]
)
async def test_a_content_type_is_the_same_in_any_case(
    base_url: str, built: Built, session: aiohttp.ClientSession, kind: str
) -> None:
    for message in (LIST, call({"address": built.tokens["plain"]})):
        status, body = await post(session, base_url, message, content_type=kind)
        assert (status, "result" in body) == (200, True)


@pytest.mark.parametrize("version", ["2025-06-18", NEWEST])
async def test_an_accept_header_is_empty_or_takes_json_or_is_refused(
    base_url: str, session: aiohttp.ClientSession, version: str
) -> None:
    message = call({"address": "0x12"}, version=version)
    for accept in ("", " ", ",", "Application/JSON;q=0.5", "text/html, */*"):
        status, body = await post(session, base_url, message, accept=accept, **build_headers(version))
        assert (status, body["result"]["isError"]) == (200, True)
    for accept in ("text/event-stream", "text/html", SECRET):
        status, body = await post(session, base_url, message, accept=accept, **build_headers(version))
        assert (status, body["error"]["code"]) == (406, -32600)
        assert "Accept" in body["error"]["message"]
        assert SECRET not in json.dumps(body)


async def test_a_version_that_is_none_is_not_repeated(base_url: str, session: aiohttp.ClientSession) -> None:
    status, body = await post(session, base_url, LIST, mcp_protocol_version=SECRET)
    assert (status, body["error"]["code"]) == (400, -32600)
    assert SECRET[-12:] not in json.dumps(body)


@pytest.mark.parametrize("story", ["plain", "owner_only_sell"])
async def test_a_verdict_stands_in_the_text_once(
    base_url: str, built: Built, session: aiohttp.ClientSession, story: str
) -> None:
    wallet, token = built.accounts[0], built.tokens[story]
    asked = {
        "check_token": {"address": token},
        "prepare_buy": {"from": wallet, "token": token, "amount": "0.01"},
        "simulate_transaction": {"from": wallet, "to": token, "data": "0x"},
    }
    for name, arguments in asked.items():
        _, body = await post(session, base_url, call(arguments, name))
        note, whole = body["result"]["content"][0]["text"].split("\n")
        assert "written by strangers" in note
        assert json.loads(whole)["verdict"]["text"] != ""
        assert body["result"]["structuredContent"] == json.loads(whole)


async def test_no_answer_of_the_moment_is_to_be_kept(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    for path in (f"/v1/check/{built.tokens['plain']}", "/v1/check/0x12", "/v1/nothing", "/mcp"):
        async with session.get(base_url + path) as response:
            assert response.headers.getall("cache-control") == ["no-store"]
    for path in ("/v1/tools.json", "/v1/openapi.json", "/llms.txt"):
        async with session.get(base_url + path) as response:
            assert "no-store" not in response.headers.get("cache-control", "")
    for _ in range(2):
        status, body = await post(session, base_url, call({"address": built.tokens["plain"]}))
        assert (status, body["result"]["isError"]) == (200, False)
