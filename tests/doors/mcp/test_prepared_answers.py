"""What is sent again is byte for byte what the protocol's library sends."""

import json
import zlib
from typing import Any

import aiohttp
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS

from roundtrip.api.mcp import server
from roundtrip.api.mcp.prepared_answers import (
    MalformedMessage,
    PreparableRequest,
    read_envelope,
    read_headers,
    read_plain_request,
)
from roundtrip_development.devnet.world import Built

VERSIONS = [None, *KNOWN_PROTOCOL_VERSIONS]
META = "io.modelcontextprotocol/"
Sent = tuple[dict[str, str], dict[str, Any]]


def request(version: str | None, method: str, plain: bool, request_id: object = 1, **params: Any) -> Sent:
    """Headers and message of one protocol version; not plain: with something in it that changes nothing, and
    that only the library looks at."""
    headers = {"accept": "application/json", "accept-encoding": "identity"}
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
        answer = {name.lower(): value for name, value in response.headers.items()}
        del answer["x-request-id"]
        return response.status, answer, await response.read()


def is_plain(sent: Sent) -> PreparableRequest | None:
    headers = [(b"content-type", b"application/json")]
    headers += [(name.encode(), value.encode()) for name, value in sent[0].items()]
    return plain_of(headers, json.dumps(sent[1]).encode())


def plain_of(headers: list[tuple[bytes, bytes]], body: bytes) -> PreparableRequest | None:
    answer = read_headers(headers)
    return read_plain_request(answer, read_envelope(answer, body))


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_listing_is_the_librarys(
    base_url: str, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    sent = request(version, "tools/list", plain=True)
    odd = request(version, "tools/list", plain=False)
    assert is_plain(sent) is not None
    assert is_plain(odd) is not None
    came = [await answered(session, base_url, one) for one in (sent, odd, sent, odd)]
    monkeypatch.setattr(server, "read_plain_request", lambda headers, message: None)
    status, headers, body = await answered(session, base_url, sent)
    assert b'"check_token"' in body
    assert came == [(status, {**headers, "vary": "accept-encoding"}, body)] * 4


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("request_id", [1, "x" * 7000, 'a"\\\x01ä\U0001f600', ""])
async def test_the_listing_comes_compressed_to_who_takes_it(
    base_url: str, session: aiohttp.ClientSession, version: str | None, request_id: object
) -> None:
    headers, body = request(version, "tools/list", True, request_id)
    plain = await answered(session, base_url, (headers | {"accept-encoding": "identity"}, body))
    # The client decompresses, and checks the sum.
    small = await answered(session, base_url, (headers | {"accept-encoding": "gzip"}, body))
    assert small[2] == plain[2]
    assert json.loads(small[2])["id"] == request_id
    assert "content-encoding" not in plain[1]
    assert small[1]["content-encoding"] == "gzip"
    # The id is stored as it is.
    assert int(small[1]["content-length"]) < len(plain[2]) / 4 + len(json.dumps(request_id))
    assert plain[1]["vary"] == small[1]["vary"] == "accept-encoding"
    assert plain[1]["cache-control"] == small[1]["cache-control"] == "no-store"


async def test_a_listing_is_one_whole_gzip_member(base_url: str) -> None:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        headers, body = request(None, "tools/list", True, "abc")
        sent = (headers | {"accept-encoding": "gzip"}, body)
        _, _, came = await answered(session, base_url, sent)
    reading = zlib.decompressobj(zlib.MAX_WBITS | 16)
    whole = reading.decompress(came)
    assert reading.eof
    assert reading.unused_data == b""
    assert json.loads(whole)["id"] == "abc"


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


@pytest.mark.parametrize("request_id", [0, -7, 2**53, 10**30, "", "7f-a.b_c:d", 'ä"\\'])
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


ACCEPT = (b"accept", b"*/*")
LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check_token"}}'
NEWEST = [(b"mcp-protocol-version", b"2026-07-28"), (b"mcp-method", b"tools/list")]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (NEWEST, LIST),
        ([], LIST.replace(b'"id":1,', b"")),
        ([], LIST.replace(b"tools/list", b"ping")),
        ([], LIST.replace(b"tools/list", b"tools/call")),
        ([], LIST[:-1] + b',"params":{"cursor":"2"}}'),
        ([], LIST[:-1] + b',"params":{"_meta":{"progressToken":true}}}'),
        ([], LIST[:-1] + b',"params":{"_meta":[]}}'),
        ([], CALL[:-1] + b',"more":1}'),
        ([], CALL.replace(b'"check_token"', b"5")),
        ([], CALL.replace(b'"check_token"', b'"check_token","arguments":null')),
        ([], CALL.replace(b'"check_token"', b'"check_token","_meta":{}')),
        ([], CALL.replace(b'"check_token"', b'"check_token","task":{}')),
    ],
)
def test_anything_out_of_the_ordinary_is_the_librarys_to_answer(
    headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    assert plain_of([ACCEPT], LIST) is not None
    assert plain_of([ACCEPT], CALL) is not None
    assert plain_of([ACCEPT, *headers], body) is None


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([ACCEPT, ACCEPT], LIST),
        ([(b"mcp-param-x", b"1"), (b"mcp-method", b"a"), (b"mcp-method", b"b")], LIST),
        ([], LIST[:-1] + b',"more":1}'),
        ([], LIST[:-1] + b',"params":null}'),
        ([], LIST[:-1] + b',"params":{"name":"check_token","_meta":{"progressToken":1,"more":[{}]}}}'),
        ([], LIST.replace(b"1,", b'"a\\"b",')),
    ],
)
def test_every_way_to_ask_for_the_listing_gives_the_kept_one(
    headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    assert plain_of(headers, body) is not None


@pytest.mark.parametrize("headers", [[(b"accept", b"text/event-stream")], [NEWEST[0], NEWEST[0]]])
def test_some_headers_are_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(MalformedMessage):
        plain_of(headers, LIST)
