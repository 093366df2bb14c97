"""Many checks in one request, against the real service."""

import json
from typing import Any

import aiohttp
import jsonschema
import pytest

from roundtrip.api.documents.tool_schemas import path_schema
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context
from roundtrip.services.verdicts.history import MAX_CHECKS
from roundtrip_development.devnet.world import Built
from support.serving import service

NOBODY = "0x" + "1" * 40


async def post(
    session: aiohttp.ClientSession, base_url: str, addresses: object, **headers: str
) -> tuple[aiohttp.ClientResponse, str]:
    async with session.post(
        f"{base_url}/v1/checks", json={"addresses": addresses}, headers=headers
    ) as response:
        return response, await response.text()


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("text/plain", "text/plain"),
        ("application/json, text/plain, */*", "application/x-ndjson"),
        ("*/*", "application/x-ndjson"),
    ],
)
async def test_the_lines_are_plain_text_for_clients_that_accept_nothing_else(
    base_url: str, session: aiohttp.ClientSession, accept: str, content_type: str
) -> None:
    body = {"addresses": [NOBODY]}
    async with session.post(f"{base_url}/v1/checks", json=body, headers={"accept": accept}) as response:
        assert (response.status, response.content_type) == (200, content_type)
        (line,) = lines_of(await response.text())
    assert line["check"]["verdict"]["code"] == "no_contract"


async def test_each_token_is_checked_once_and_faults_stand_in_their_lines(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    plain, trap = built.tokens["plain"], built.tokens["owner_only_sell"]
    response, text = await post(session, base_url, [plain, "0x12", trap, "0x" + plain[2:].upper(), NOBODY])
    assert (response.status, response.content_type) == (200, "application/x-ndjson")
    by_address = {line["address"]: line for line in lines_of(text)}
    assert by_address.keys() == {plain, "0x12", trap, NOBODY}
    assert len(lines_of(text)) == 4
    assert by_address[plain]["check"]["verdict"]["code"] == "ok"
    assert by_address[trap]["check"]["verdict"]["code"] == "cannot_sell"
    assert by_address[NOBODY]["check"]["verdict"]["code"] == "no_contract"
    assert by_address["0x12"]["check"] is None
    assert by_address["0x12"]["error"]["code"] == "bad_address"
    schema = path_schema(next(row for row in OPERATIONS if row.name == "check_tokens"))
    for line in by_address.values():
        jsonschema.validate(line, schema, jsonschema.Draft202012Validator)
    async with session.get(f"{base_url}/v1/check/{plain}") as single:
        assert await single.json() == by_address[plain]["check"]


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        ([NOBODY] * (MAX_CHECKS + 1), "1 to 50 addresses"),
        ([], "1 to 50 addresses"),
        (NOBODY, "1 to 50 addresses"),
        ([7], "addresses[0]"),
        (["0x" + "1" * 200], "addresses[0]"),
    ],
)
async def test_what_is_no_list_of_addresses_is_refused_whole(
    base_url: str, session: aiohttp.ClientSession, addresses: object, expected: str
) -> None:
    response, text = await post(session, base_url, addresses)
    assert (response.status, json.loads(text)["error"]["code"]) == (400, "bad_input")
    assert expected in json.loads(text)["error"]["message"]


async def test_each_token_counts_as_a_call_and_past_the_limit_the_rest_is_refused(
    ctx: Context, built: Built, session: aiohttp.ClientSession
) -> None:
    addresses = [f"0x{number:040x}" for number in range(1, 13)]
    async with service(ctx, Settings()) as base_url:
        response, text = await post(session, base_url, [NOBODY, NOBODY, NOBODY.upper().replace("X", "x")])
        assert response.headers["x-ratelimit-remaining"] == "10"
        assert len(lines_of(text)) == 1
        _, text = await post(session, base_url, addresses)
        codes = [line["error"] and line["error"]["code"] for line in lines_of(text)]
        assert (codes.count(None), codes.count("rate_limited")) == (9, 3)
        response, text = await post(session, base_url, addresses)
        assert (response.status, json.loads(text)["error"]["code"]) == (429, "rate_limited")
        assert "retry-after" in response.headers


async def test_a_key_that_is_not_live_is_refused_once(base_url: str, session: aiohttp.ClientSession) -> None:
    response, text = await post(session, base_url, [NOBODY], **{"x-api-key": "rt_" + "a" * 43})
    assert (response.status, json.loads(text)["error"]["code"]) == (401, "bad_key")
