"""Practice through the tool server, by accounts with a real key; a buy and a sell are done once for a key."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import aiohttp
import msgspec
import pytest
from mcp.client.client import Client

from roundtrip.domain.practice.practice import YOUNG
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.doors import over_mcp_client
from support.keys import random_context
from support.serving import service
from support.watching import SETTINGS, Caller, caller, operation

TOOLS = ("practice_account", "practice_buy", "practice_sell", "practice_trades")
NEWEST = "2026-07-28"


@pytest.fixture
async def me(indexed: Context) -> AsyncIterator[Caller]:
    ctx = random_context(indexed, Clock())
    async with service(ctx, SETTINGS) as url:
        yield await caller(ctx, url)


@dataclass(frozen=True)
class Call:
    """One call as it is sent."""

    me: Caller
    name: str
    arguments: dict[str, Any]

    async def result(self, *keys: str, meta: object = None, version: str | None = None) -> dict[str, Any]:
        """What came back; ``keys``: by the header, ``meta``: by the envelope."""
        params: dict[str, Any] = {"name": self.name, "arguments": self.arguments}
        headers = [("x-api-key", self.me.key), ("content-type", "application/json")]
        headers += [("Idempotency-Key", key) for key in keys]
        own: dict[str, Any] = {} if meta is None else {"idempotencyKey": meta}
        if version == NEWEST:
            own |= {
                "io.modelcontextprotocol/protocolVersion": NEWEST,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers += [("mcp-method", "tools/call"), ("mcp-name", self.name)]
        if version is not None:
            headers.append(("mcp-protocol-version", version))
        if own:
            params["_meta"] = own
        body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.me.url}/mcp", data=msgspec.json.encode(body), headers=headers) as response,
        ):
            assert response.status == 200, await response.text()
            found: dict[str, Any] = (await response.json())["result"]
        return found

    async def text(self, *keys: str, meta: object = None) -> str:
        """The whole text, byte for byte."""
        return str((await self.result(*keys, meta=meta))["content"][0]["text"])


def buy(me: Caller, built: Built, eth: str = "0.1") -> Call:
    return Call(me, "practice_buy", {"token": built.tokens["plain"], "eth": eth})


async def sides(me: Caller) -> list[str]:
    return [one["side"] for one in (await me.ask("practice_trades"))["trades"]]


def test_which_need_a_key_write_and_are_done_once() -> None:
    rows = {name: operation(name) for name in TOOLS}
    assert all(row.key and row.on_mcp and row.path is None and row.counts == "day" for row in rows.values())
    acts = {"practice_buy", "practice_sell"}
    assert {name for name, row in rows.items() if row.writes} == acts
    assert {name for name, row in rows.items() if row.once} == acts
    assert all("Idempotency-Key" in rows[name].tool_description() for name in acts)


async def test_every_tool_answers_as_it_declares(me: Caller, built: Built) -> None:
    token = built.tokens["plain"]
    await me.ask("practice_buy", token=token, eth="0.2")
    first = await me.ask("practice_sell", token=token)
    # The pool's fee twice, and a sell does not find the price that the buy would have made.
    assert (first["counted"], first["whyNot"]) == (False, YOUNG)
    assert Decimal("-0.01") < Decimal(first["profit"]) < Decimal("-0.0012")
    await me.ask("practice_buy", token=token, eth="0.1")
    answer = await me.ask("practice_account")
    (one,) = answer["positions"]
    left = 1 + Decimal(first["profit"]) - Decimal("0.1")
    assert Decimal(answer["eth"]) == left
    assert Decimal(answer["worth"]) == left + Decimal(one["worth"])
    assert answer["profitThisWeek"] == first["profit"]
    assert await sides(me) == ["buy", "sell", "buy"]
    for name in ("practice_account", "practice_trades"):
        assert (await over_mcp_client(me.url, operation(name), {}, me.key)).answer == await me.ask(name)
    for arguments in ({"percent": 0}, {"percent": 101}, {"percent": "five"}, {"amount": "all"}):
        assert (await me.came("practice_sell", token=token, **arguments)).code == "bad_input"
    for eth in (0.1, "-1", "", "1e-1", "0.1 ", None):
        assert (await me.came("practice_buy", token=token, eth=eth)).code == "bad_input"
    assert (await me.came("practice_buy", token="0x12", eth="0.1")).code == "bad_input"
    sold = await me.ask("practice_sell", token=token)
    # Beside what was sold within the minute.
    assert Decimal(sold["got"]) < Decimal(one["worth"])
    assert (sold["position"], Decimal(sold["ethLeft"])) == (None, left + Decimal(sold["got"]))
    assert (await me.came("practice_sell", token=token)).code == "nothing_to_sell"


async def test_a_repeat_gives_the_first_answer_byte_for_byte(me: Caller, built: Built) -> None:
    call = buy(me, built)
    first = await call.text("k-1")
    assert "You bought " in first
    for again in (call.text("k-1"), call.text(meta="k-1"), call.text("k-1", meta="k-1"), call.text(" k-1 ")):
        assert await again == first
    for version in ("2025-06-18", NEWEST):
        for result in (
            await call.result("k-1", version=version),
            await call.result(meta="k-1", version=version),
        ):
            assert result["content"][0]["text"] == first
    assert await sides(me) == ["buy"]
    assert await call.text() != first
    assert await call.text("k-2") != first
    assert await sides(me) == ["buy"] * 3


async def test_the_official_client_repeats_by_meta(me: Caller, built: Built) -> None:
    call = buy(me, built)
    async with Client(f"{me.url}/mcp/{me.key}") as client:
        first, again = [
            await client.call_tool(call.name, call.arguments, meta={"idempotencyKey": "mine"})  # type: ignore[arg-type]
            for _ in range(2)
        ]
    assert first.structured_content == again.structured_content
    assert first.structured_content is not None
    assert await call.text("mine") == first.content[0].text  # type: ignore[union-attr]
    assert await sides(me) == ["buy"]


async def test_what_a_key_may_not_be_used_for(me: Caller, built: Built) -> None:
    call = buy(me, built)
    await call.text("k-1")
    refused = [
        (buy(me, built, "0.2"), ("k-1",), None), (call, ("k-1", "k-2"), None), (call, ("k-1",), "k-2"),
        (call, ("x" * 201,), None), (call, (), ""), (call, (), 5), (call, (), ["k-1"]), (call, (), "a\n"),
        (Call(me, "practice_sell", {"token": built.tokens["plain"]}), ("k-1",), None),
    ]  # fmt: skip
    for other, keys, meta in refused:
        assert (await other.text(*keys, meta=meta)).startswith("bad_input: "), (keys, meta)
    assert await sides(me) == ["buy"]
    # Who does nothing that could be done twice may say what he likes.
    assert (await Call(me, "practice_trades", {}).result("x" * 201))["isError"] is False


async def test_the_same_request_at_once_is_done_once(me: Caller, built: Built) -> None:
    call = buy(me, built)
    came = await asyncio.gather(*(call.text("k-1") for _ in range(4)))
    assert len(set(came)) == 1
    assert came[0].count("You bought ")
    assert await sides(me) == ["buy"]


async def test_what_failed_may_be_tried_again(me: Caller, built: Built) -> None:
    sell = Call(me, "practice_sell", {"token": built.tokens["plain"]})
    assert (await sell.text("k-1")).startswith("nothing_to_sell: ")
    await buy(me, built).text()
    first = await sell.text("k-1")
    assert "You sold " in first
    assert await sell.text("k-1") == first
    assert await sides(me) == ["sell", "buy"]


async def test_keys_are_kept_as_hashes_only(me: Caller, built: Built) -> None:
    await buy(me, built).text("a-very-own-name")
    [row] = await me.ctx.pool.fetch(
        "SELECT * FROM accounts.practice_repeat WHERE account_id = $1", me.account_id
    )
    assert "a-very-own-name" not in repr(dict(row))
