"""The greeting, keys in the address, and requests that the protocol refuses."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from roundtrip.api.admission.call_counter import CallCounter
from roundtrip.api.admission.gate import Admitted, Counts, Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.dispatch import Dispatch
from roundtrip.api.http.app import create_app
from roundtrip.api.operations.catalog import tools
from roundtrip.api.request.callers import CallerRequest, Callers
from roundtrip.api.sharing.single_flight import SharedAnswers
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.counting import Counts as Ledger
from support.counting import Wall, account, hashed, key_of
from support.serving import served

LIVE, UNKNOWN, BROKEN = key_of("live"), key_of("unknown"), key_of("broken")
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
JSON = {"content-type": "application/json"}


@dataclass(slots=True)
class Keyring(Gate):
    """A gate that remembers what it was asked, and fails on one key."""

    asked: list[tuple[str | None, Counts]] = field(default_factory=list)

    async def admit(self, asking: CallerRequest, counts: Counts, needs_key: bool) -> Admitted:
        self._ask(asking, counts)
        return await Gate.admit(self, asking, counts, needs_key)

    async def look_at(self, asking: CallerRequest) -> None:
        self._ask(asking, "never")
        await Gate.look_at(self, asking)

    def _ask(self, asking: CallerRequest, counts: Counts) -> None:
        self.asked.append((asking.key, counts))
        if asking.key == BROKEN:
            raise ZeroDivisionError("no keys today")


@pytest.fixture
def gate() -> Keyring:
    allowance, wall = CallAllowance(100, 100), Wall()
    ledger = Ledger(live={hashed("live"): account(1)})
    allowances = Allowances(allowance, allowance, allowance)
    return Keyring(MinuteLimits(wall), allowances, CallCounter(ledger, wall))


@pytest.fixture
async def keyed_url(ctx: Context, gate: Keyring) -> AsyncIterator[str]:
    async with served(create_app(Dispatch(ctx, gate, SharedAnswers(lambda: 0.0)), Callers())) as url:
        yield url


def call(address: str) -> dict[str, Any]:
    params = {"name": "check_token", "arguments": {"address": address}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def test_a_live_key_in_the_address_is_the_callers(
    keyed_url: str, gate: Keyring, built: Built, session: aiohttp.ClientSession
) -> None:
    async with session.post(f"{keyed_url}/mcp/{LIVE}", json=call(built.tokens["plain"])) as response:
        assert (await response.json())["result"]["isError"] is False
    assert gate.asked == [(LIVE, "never"), (LIVE, "day")]
    async with session.post(f"{keyed_url}/mcp/{LIVE}", json=LIST) as response:
        assert len((await response.json())["result"]["tools"]) == len(tools())
    assert gate.asked[2:] == [(LIVE, "never")]


@pytest.mark.parametrize("message", [LIST, call("0x12"), {"jsonrpc": "2.0", "method": "notifications/x"}, []])
async def test_an_unknown_key_in_the_address_is_refused_before_anything_is_read(
    keyed_url: str, ctx: Context, session: aiohttp.ClientSession, message: object
) -> None:
    async with session.post(f"{keyed_url}/mcp/{UNKNOWN}", json=message) as response:
        assert response.status == 401
        assert "www-authenticate" not in response.headers
        body = await response.json()
    assert body == {"error": {"code": "bad_key", "message": body["error"]["message"]}}
    assert UNKNOWN not in json.dumps(body)
    counts = {(what, *labels): count for what, labels, count in ctx.measures.counts() if count}
    assert counts["requests", "mcp", "refused"] == counts["errors", "mcp", "bad_key"] == 1


async def test_two_different_keys_are_refused(keyed_url: str, session: aiohttp.ClientSession) -> None:
    for headers, status in (({"x-api-key": UNKNOWN}, 401), ({"authorization": f"Bearer {LIVE}"}, 200)):
        async with session.post(f"{keyed_url}/mcp/{LIVE}", json=LIST, headers=headers) as response:
            assert response.status == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"/mcp/{LIVE}", 405),
        ("DELETE", f"/mcp/{UNKNOWN}", 405),
        ("POST", f"/mcp/{LIVE}/", 404),
        ("POST", "/mcp/", 404),
        ("POST", f"/mcp/{LIVE}/more", 404),
        ("POST", f"/mcp/{BROKEN}", 500),
    ],
)
async def test_no_answer_and_no_log_has_the_key(
    keyed_url: str,
    session: aiohttp.ClientSession,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    status: int,
) -> None:
    with capture_logs() as logged, caplog.at_level(0):
        async with session.request(method, keyed_url + path, json=LIST) as response:
            assert response.status == status
            body = await response.json()
    assert body.keys() == {"error"}
    for key in (LIVE, UNKNOWN, BROKEN):
        assert key not in repr(
            (logged, [record.getMessage() for record in caplog.records], caplog.text, body)
        )


async def test_hello_tells_what_this_is_and_the_rules(base_url: str, session: aiohttp.ClientSession) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    async with session.post(f"{base_url}/mcp", json=sent) as response:
        answer = (await response.json())["result"]["instructions"]
    for text in ("simulation", "written by strangers", "by its address", "treat it as a no", "/v1/keys"):
        assert text in answer


async def test_the_listing_is_under_sixty_kilobytes(base_url: str, session: aiohttp.ClientSession) -> None:
    async with session.post(f"{base_url}/mcp", json=LIST) as response:
        body = await response.read()
    # Our own limit.
    assert len(body) < 60_000


async def test_annotations_follow_from_the_row(base_url: str, session: aiohttp.ClientSession) -> None:
    async with session.post(f"{base_url}/mcp", json=LIST) as response:
        listed = (await response.json())["result"]["tools"]
    for tool, row in zip(listed, tools(), strict=True):
        # What equals the protocol's default is left out. The destructive and the idempotent hint mean
        # nothing for a tool that only reads.
        hints = {
            "readOnlyHint": False,
            "destructiveHint": True,
            "idempotentHint": False,
            **tool["annotations"],
        }
        assert tool["title"] == row.title
        assert hints["readOnlyHint"] is not row.writes
        assert hints.get("openWorldHint", True)
        if row.writes:
            assert hints["destructiveHint"] is row.destroys
            assert hints["idempotentHint"] is row.repeatable
        assert row.writes or not (row.destroys or row.repeatable)
        # Our own limit: at most six sentences.
        assert tool["description"].count(". ") < 6


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        ({**LIST, "params": {"cursor": "2"}}, 200, -32602),
        ([LIST], 400, -32600),
        ([], 400, -32600),
        ({**LIST, "jsonrpc": "1.0"}, 400, -32600),
        ({**LIST, "method": "tools/run"}, 200, -32601),
        ({**LIST, "method": "tools/call"}, 200, -32602),
        ({**LIST, "method": "tools/call", "params": {"name": 5}}, 200, -32602),
    ],
)
async def test_a_bad_message_is_a_json_rpc_error(
    base_url: str, session: aiohttp.ClientSession, message: object, status: int, code: int
) -> None:
    async with session.post(f"{base_url}/mcp", json=message) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (status, code)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])
async def test_another_content_type_is_refused(
    base_url: str, session: aiohttp.ClientSession, kind: str
) -> None:
    headers = {"content-type": kind}
    async with session.post(f"{base_url}/mcp", data=json.dumps(LIST), headers=headers) as response:
        assert response.status == 400
        assert (await response.json())["error"]["code"] == "bad_input"
    headers = {"content-type": "application/json; charset=utf-8"}
    async with session.post(f"{base_url}/mcp", data=json.dumps(LIST), headers=headers) as response:
        assert response.status == 200


@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled"])
async def test_a_notification_is_taken_and_not_answered(
    base_url: str, session: aiohttp.ClientSession, method: str
) -> None:
    params = {"requestId": 1} if method.endswith("cancelled") else {}
    sent = {"jsonrpc": "2.0", "method": method, "params": params}
    async with session.post(f"{base_url}/mcp", json=sent) as response:
        assert (response.status, await response.read()) == (202, b"")


async def test_a_stream_that_is_asked_for_holds_up_nobody(
    base_url: str, session: aiohttp.ClientSession
) -> None:
    version, meta = "2026-07-28", "io.modelcontextprotocol/"
    envelope = {f"{meta}protocolVersion": version, f"{meta}clientCapabilities": {}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"_meta": envelope}}
    headers = {
        "mcp-protocol-version": version,
        "mcp-method": "subscriptions/listen",
        "accept": "application/json, text/event-stream",
    }
    for _ in range(3):
        async with session.post(f"{base_url}/mcp", json=sent, headers=headers) as response:
            assert "error" in await response.json()
        async with session.get(f"{base_url}/v1/tools.json") as response:
            assert response.status == 200
