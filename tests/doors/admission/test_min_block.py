"""A caller that has seen a block is answered of that block or a later one, by every door."""

from typing import Any

import aiohttp
import pytest

from roundtrip.services.runtime import newest_block
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built

HEADER = "x-min-block"
SOMEBODY = "0x" + "ab" * 20
PAY = {"from": SOMEBODY, "to": SOMEBODY, "value": "0", "fund": True}


def mined(rpc: SyncRpc) -> int:
    """A block that nobody else has heard of."""
    rpc.call("evm_mine")
    return int(rpc.call("eth_blockNumber"), 16)


async def checked(session: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, str | None]:
    async with session.get(url, headers=headers) as response:
        return response.status, response.headers.get("x-cache")


async def test_an_answer_that_is_shared_is_of_that_block(
    base_url: str, built: Built, session: aiohttp.ClientSession, rpc: SyncRpc
) -> None:
    url, number = f"{base_url}/v1/check/{built.tokens['plain']}", int(rpc.call("eth_blockNumber"), 16)
    assert await checked(session, url) == (200, "miss")
    assert await checked(session, url, **{HEADER: str(number)}) == (200, "hit")
    later = str(mined(rpc))
    assert await checked(session, url) == (200, "hit")
    assert [await checked(session, url, **{HEADER: later}) for _ in range(2)] == [(200, "miss"), (200, "hit")]


async def test_a_simulation_is_of_that_block_over_every_door(
    base_url: str, session: aiohttp.ClientSession, rpc: SyncRpc
) -> None:
    number = mined(rpc)
    url = f"{base_url}/v1/simulate"
    async with session.post(url, json=PAY, headers={HEADER: str(number)}) as response:
        assert (await response.json())["block"] == number
    number = mined(rpc)
    assert (await called(session, base_url, {HEADER: str(number)}, {}))["block"] == number
    number = mined(rpc)
    assert (await called(session, base_url, {}, {"_meta": {"minBlock": number}}))["block"] == number


async def called(
    session: aiohttp.ClientSession, base_url: str, headers: dict[str, str], more: dict[str, Any]
) -> dict[str, Any]:
    params = {"name": "simulate_transaction", "arguments": PAY, **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with session.post(f"{base_url}/mcp", json=body, headers=headers) as response:
        return dict((await response.json())["result"]["structuredContent"])


@pytest.mark.parametrize("path", ["/v1/simulate", "/v1/prepare/buy", "/v1/prepare/sell", None])
async def test_a_block_that_the_node_has_not_got_is_busy(
    base_url: str,
    built: Built,
    session: aiohttp.ClientSession,
    rpc: SyncRpc,
    monkeypatch: pytest.MonkeyPatch,
    path: str | None,
) -> None:
    monkeypatch.setattr(newest_block, "REACH_S", 0.1)
    token = built.tokens["plain"]
    body = PAY if path == "/v1/simulate" else {"token": token, "from": SOMEBODY, "amount": "1"}
    headers = {HEADER: str(mined(rpc) + 1)}
    asked = (
        session.get(f"{base_url}/v1/check/{token}", headers=headers)
        if path is None
        else session.post(base_url + path, json=body, headers=headers)
    )
    async with asked as response:
        assert (response.status, response.headers["retry-after"]) == (503, "1")
        assert (await response.json())["error"]["code"] == "busy"
        # Not the caller's doing.
        assert response.headers["x-ratelimit-remaining"] == response.headers["x-ratelimit-limit"]


async def test_what_is_no_block_is_refused(
    base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    url = f"{base_url}/v1/check/{built.tokens['plain']}"
    async with session.get(url, headers={HEADER: "latest"}) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "bad_input")


async def test_an_absence_is_shared_until_there_is_a_newer_block(
    base_url: str, session: aiohttp.ClientSession, rpc: SyncRpc
) -> None:
    url = f"{base_url}/v1/check/{SOMEBODY}"
    assert [await checked(session, url) for _ in range(2)] == [(200, "miss"), (200, "hit")]
    mined(rpc)
    assert await checked(session, url) == (200, "miss")
