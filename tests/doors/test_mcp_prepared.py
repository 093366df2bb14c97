"""What is sent again is byte for byte what the protocol's library sends."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS

from roundtrip.api.prepared import Plain, plain_request
from roundtrip.devnet.world import Built
from roundtrip.services.context import Context
from support.serving import service

VERSIONS = [None, *KNOWN_PROTOCOL_VERSIONS]
META = "io.modelcontextprotocol/"
Sent = tuple[dict[str, str], dict[str, Any]]


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as found:
        yield found


@pytest.fixture
async def base_url(ctx: Context) -> AsyncIterator[str]:
    async with service(ctx) as url:
        yield url


def request(version: str | None, method: str, plain: bool, request_id: object = 1, **params: Any) -> Sent:
    """Headers and message of one protocol version; not plain: with something in it that changes nothing, and
    that only the library looks at."""
    headers = {"accept": "application/json"}
    if version is not None:
        headers["mcp-protocol-version"] = version
    if version in (None, *HANDSHAKE_PROTOCOL_VERSIONS):
        meta: dict[str, Any] = {} if plain else {"_meta": {}}
    else:
        assert version is not None
        client = {"name": "t", "version": "1"} | ({} if plain else {"title": "T"})
        meta = {
            "_meta": {
                f"{META}protocolVersion": version,
                f"{META}clientCapabilities": {},
                f"{META}clientInfo": client,
            }
        }
        headers["mcp-method"] = method
        if "name" in params:
            headers["mcp-name"] = params["name"]
    return headers, {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, **meta}}


async def answered(
    session: aiohttp.ClientSession, base_url: str, sent: Sent
) -> tuple[int, dict[str, str], bytes]:
    headers, body = sent
    async with session.post(f"{base_url}/mcp", json=body, headers=headers) as response:
        return response.status, dict(response.headers), await response.read()


def is_plain(sent: Sent) -> Plain | None:
    headers = [(b"content-type", b"application/json")]
    headers += [(name.encode(), value.encode()) for name, value in sent[0].items()]
    return plain_request(headers, json.dumps(sent[1]).encode())


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_listing_is_the_librarys(
    base_url: str, session: aiohttp.ClientSession, version: str | None
) -> None:
    by_library = request(version, "tools/list", plain=False)
    plainly = request(version, "tools/list", plain=True)
    assert is_plain(plainly) is not None
    assert is_plain(by_library) is None
    expected = await answered(session, base_url, by_library)
    assert expected[0] == 200
    assert b'"check_token"' in expected[2]
    came = [await answered(session, base_url, plainly) for _ in range(3)]
    assert came == [expected] * 3


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_call_is_the_librarys(
    base_url: str, built: Built, session: aiohttp.ClientSession, version: str | None
) -> None:
    asked = {"name": "check_token", "arguments": {"address": built.tokens["plain"]}}
    plainly = request(version, "tools/call", plain=True, **asked)
    by_library = request(version, "tools/call", plain=False, **asked)
    assert is_plain(plainly) is not None
    assert is_plain(by_library) is None
    came = [await answered(session, base_url, plainly) for _ in range(3)]
    expected = await answered(session, base_url, by_library)
    assert expected[0] == 200
    assert b'"structuredContent"' in expected[2]
    assert came == [expected] * 3


@pytest.mark.parametrize("request_id", [0, -7, 2**53, "a", "7f-a.b_c:d"])
async def test_each_request_gets_its_own_id_back(
    base_url: str, session: aiohttp.ClientSession, request_id: object
) -> None:
    for one in ("first", request_id):
        sent = request(None, "tools/list", True, one)
        assert is_plain(sent) is not None
        headers, body = sent
        async with session.post(f"{base_url}/mcp", json=body, headers=headers) as response:
            assert (await response.json())["id"] == one


async def test_what_failed_is_not_kept(base_url: str, built: Built, session: aiohttp.ClientSession) -> None:
    bad = request(None, "tools/call", True, name="check_token", arguments={"address": "0x12"})
    first, second = [await answered(session, base_url, bad) for _ in range(2)]
    assert first == second
    assert b"bad_address: " in first[2]
    good = request(None, "tools/call", True, name="check_token", arguments={"address": built.tokens["plain"]})
    assert b'"isError":false' in (await answered(session, base_url, good))[2]


async def test_one_tokens_answer_is_not_anothers(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    for name in ("plain", "owner_only_sell", "plain", "owner_only_sell"):
        address = built.tokens[name]
        sent = request(None, "tools/call", True, name="check_token", arguments={"address": address})
        async with session.post(f"{base_url}/mcp", json=sent[1], headers=sent[0]) as response:
            result = (await response.json())["result"]
        assert result["structuredContent"]["address"] == address.lower()


JSON = (b"content-type", b"application/json")
ACCEPT = (b"accept", b"*/*")
LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
NEWEST = [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", b"tools/list")]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([ACCEPT], LIST),
        ([JSON], LIST),
        ([JSON, (b"accept", b"text/event-stream")], LIST),
        ([JSON, ACCEPT, ACCEPT], LIST),
        ([(b"content-type", b"text/plain"), ACCEPT], LIST),
        ([JSON, ACCEPT, (b"mcp-protocol-version", b"1999-01-01")], LIST),
        ([JSON, ACCEPT, (b"mcp-param-x", b"1")], LIST),
        ([JSON, ACCEPT, *NEWEST], LIST),
        ([JSON, ACCEPT], LIST.replace(b"2.0", b"1.0")),
        ([JSON, ACCEPT], LIST.replace(b"1,", b"1.5,")),
        ([JSON, ACCEPT], LIST.replace(b"1,", b"true,")),
        ([JSON, ACCEPT], LIST.replace(b"1,", b"null,")),
        ([JSON, ACCEPT], LIST.replace(b"1,", b'"a\\"b",')),
        ([JSON, ACCEPT], LIST.replace(b"1,", b'"\xc3\xa4",')),
        ([JSON, ACCEPT], LIST.replace(b"tools/list", b"ping")),
        ([JSON, ACCEPT], LIST.replace(b"tools/list", b"tools/call")),
        ([JSON, ACCEPT], LIST[:-1] + b',"more":1}'),
        ([JSON, ACCEPT], LIST[:-1] + b',"params":{"cursor":"2"}}'),
        ([JSON, ACCEPT], LIST[:-1] + b',"params":{"_meta":{"progressToken":1}}}'),
        ([JSON, ACCEPT], LIST[:-1] + b',"params":null}'),
        ([JSON, ACCEPT], LIST[:-1] + b',"params":{"name":"check_token"}}'),
        ([JSON, ACCEPT], LIST[:-1]),
        ([JSON, ACCEPT], b"[" * 60_000),
    ],
)
def test_anything_out_of_the_ordinary_is_the_librarys_to_answer(
    headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    assert plain_request([JSON, ACCEPT], LIST) is not None
    assert plain_request(headers, body) is None
