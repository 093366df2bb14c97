"""Null in the place of an argument that may be left out, at every door."""

from typing import Any

import aiohttp
import msgspec
import pytest
from mcp.client.client import Client
from mcp_types import TextContent

from roundtrip.api.documents.tool_schemas import params_schema
from roundtrip.api.operations.catalog import OPERATIONS, tools
from roundtrip_development.devnet.world import Built

ROWS = {row.name: row for row in OPERATIONS}


def optional(name: str) -> list[str]:
    row = ROWS[name]
    names = [field.encode_name for field in msgspec.structs.fields(row.params) if not field.required]
    return [name for name in names if name not in row.query]


def with_nulls(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {**dict.fromkeys(optional(name)), **given}


def trades(built: Built) -> dict[str, dict[str, Any]]:
    token, wallet = built.tokens["plain"], built.accounts[0]
    return {
        "prepare_buy": {"token": token, "from": wallet, "amount": "0.01"},
        "prepare_sell": {"token": token, "from": wallet, "percent": 50},
        "simulate_transaction": {"from": wallet, "to": wallet, "value": "1"},
    }


async def call(
    session: aiohttp.ClientSession, url: str, name: str, arguments: dict[str, Any], meta: Any = None
) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, **({} if meta is None else {"_meta": meta})}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with session.post(f"{url}/mcp", json=message) as response:
        result: dict[str, Any] = (await response.json())["result"]
    return result


@pytest.mark.parametrize("name", ["prepare_buy", "prepare_sell", "simulate_transaction"])
async def test_a_trade_takes_nulls_over_http_and_mcp(
    base_url: str, built: Built, session: aiohttp.ClientSession, name: str
) -> None:
    given = with_nulls(name, trades(built)[name])
    assert None in given.values()
    async with session.post(f"{base_url}{ROWS[name].path}", json=given) as response:
        assert response.status == 200, await response.text()
    result = await call(session, base_url, name, given, {"minBlock": None, "idempotencyKey": None})
    assert result["isError"] is False, result


@pytest.mark.parametrize("row", [row for row in tools() if not row.key], ids=lambda row: str(row.name))
async def test_a_tool_takes_nulls(
    base_url: str, built: Built, session: aiohttp.ClientSession, row: Any
) -> None:
    """Whatever else is wrong: the fault is never in an argument that is null."""
    given = {"address": built.tokens["plain"], "query": "PLAIN", "hash": "0x" + "1" * 64}
    given |= trades(built).get(row.name, {})
    required = {name: given[name] for name in params_schema(row).get("required", ())}
    if "percent" in given:
        required["percent"] = given["percent"]
    result = await call(session, base_url, row.name, with_nulls(row.name, required))
    text = result["content"][0]["text"]
    assert not result["isError"] or not text.startswith(("bad_input", "bad_address")), text


async def test_a_stranger_that_is_null_is_refused(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    wrong = {"address": built.tokens["plain"], "chain": None}
    result = await call(session, base_url, "check_token", wrong)
    assert result["content"][0]["text"] == (
        'bad_input: "chain" is not an argument of check_token. It takes address, deep, amount.'
    )
    body = {**trades(built)["prepare_buy"], "gas": None}
    async with session.post(f"{base_url}/v1/prepare/buy", json=body) as response:
        assert response.status == 400
        assert '"gas" is not an argument' in (await response.json())["error"]["message"]


async def test_a_prompt_takes_nulls(base_url: str, built: Built, session: aiohttp.ClientSession) -> None:
    token = built.tokens["plain"]
    message = {
        "jsonrpc": "2.0", "id": 1, "method": "prompts/get",
        "params": {"name": "check_before_you_buy", "arguments": {"token": token, "amount": None}},
    }  # fmt: skip
    async with session.post(f"{base_url}/mcp", json=message) as response:
        body = await response.json()
    async with Client(f"{base_url}/mcp") as client:
        official = await client.get_prompt("check_before_you_buy", {"token": token})
    content = official.messages[0].content
    assert isinstance(content, TextContent)
    assert body["result"]["messages"][0]["content"]["text"] == content.text
