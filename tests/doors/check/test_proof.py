"""The proof of a check over HTTP: of the newest check, or of one made now; its shape, its manners."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import aiohttp
import jsonschema
import msgspec
import pytest

from roundtrip.api.documents.tool_schemas import answer_schema
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.chain.rpc.client import READ_METHODS, RpcCall, RpcError
from roundtrip.config.settings import Settings
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence
from roundtrip.services.check.proof import check_proof
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip_development.devnet.world import Built
from support.faulty_node import FaultyNode
from support.nodes import node_of
from support.serving import service

COUNTED = "SELECT count(*) FROM facts.evidence WHERE token = $1"


class Refusing:
    """A node that says its chain, and nothing of its blocks."""

    async def batch(self, calls: Sequence[RpcCall]) -> list[msgspec.Raw | RpcError]:
        answers: list[msgspec.Raw | RpcError] = [msgspec.Raw(b'"0x1237"'), RpcError(-32005, "daily limit")]
        return answers[: len(calls)]


async def proof_of(session: aiohttp.ClientSession, base_url: str, token: str) -> dict[str, Any]:
    async with session.get(f"{base_url}/v1/check/{token}/proof") as response:
        assert response.status == 200, await response.text()
        assert response.headers["access-control-allow-origin"] == "*"
        assert response.content_type == "application/json"
        found: dict[str, Any] = await response.json()
        return found


async def test_it_is_of_the_newest_check_and_asks_nothing_again(
    ctx: Context, base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    token = built.tokens["transfer_tax"]
    async with session.get(f"{base_url}/v1/check/{token}") as response:
        checked = await response.json()
    before = await ctx.pool.fetchval(COUNTED, bytes.fromhex(token[2:]))
    proof = await proof_of(session, base_url, "0x" + token[2:].upper())
    assert await ctx.pool.fetchval(COUNTED, bytes.fromhex(token[2:])) == before
    for same in ("address", "chainId", "verdict", "checkedAt"):
        assert proof[same] == checked[same]


async def test_where_there_is_none_a_check_is_made(
    ctx: Context, base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    token = built.tokens["odd_tier"]
    row = bytes.fromhex(token[2:])
    await ctx.pool.execute("DELETE FROM facts.evidence WHERE token = $1", row)
    assert (await proof_of(session, base_url, token))["address"] == token
    assert (await proof_of(session, base_url, token))["address"] == token
    assert await ctx.pool.fetchval(COUNTED, row) == 1


async def test_one_of_an_earlier_release_is_not_handed_out(
    ctx: Context, base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    token = built.tokens["odd_tier"]
    await proof_of(session, base_url, token)
    row = bytes.fromhex(token[2:])
    await ctx.pool.execute("UPDATE facts.evidence SET document = '{\"schema\":1}' WHERE token = $1", row)
    assert (await proof_of(session, base_url, token))["evidence"]["schema"] > 1


async def test_its_shape_is_the_published_one_and_it_tells_no_secret(
    ctx: Context, base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    proof = await proof_of(session, base_url, built.tokens["plain"])
    (row,) = [one for one in OPERATIONS if one.name == "check_proof"]
    jsonschema.validate(proof, answer_schema(row))
    assert proof["block"].keys() == {"number", "hash", "time"}
    calls = [call for trip in proof["trips"] for batch in trip for call in batch]
    assert {call["method"] for call in calls} <= READ_METHODS
    assert all(call.keys() == {"jsonrpc", "id", "method", "params"} for call in calls)
    assert [call["id"] for call in proof["trips"][0][0]] == list(range(len(proof["trips"][0][0])))
    assert proof["contracts"]["swapRouter02"] == built.contracts["swapRouter02"]
    evidence = canonical_json.load(Evidence, json.dumps(proof["evidence"]).encode())
    assert evidence.token == proof["address"]
    assert node_of(ctx).url not in str(proof)


async def test_it_counts_as_a_check_does(ctx: Context, built: Built, session: aiohttp.ClientSession) -> None:
    async with service(ctx, Settings()) as base_url:
        url = f"{base_url}/v1/check/{built.tokens['plain']}/proof"
        for left in range(9, -1, -1):
            async with session.get(url) as response:
                assert response.headers["x-ratelimit-remaining"] == str(left)
        async with session.get(url) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (429, "rate_limited")


@pytest.mark.parametrize(
    ("accepts", "gzipped"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
    ],
)
async def test_it_is_compressed_for_who_reads_that(
    base_url: str, built: Built, accepts: str, gzipped: bool
) -> None:
    url = f"{base_url}/v1/check/{built.tokens['plain']}/proof"
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(url, headers={"accept-encoding": accepts}) as response,
    ):
        assert response.status == 200, await response.text()
        assert (response.headers.get("content-encoding") == "gzip") is gzipped
        assert response.headers["vary"] == "accept-encoding"
        body = await response.read()
    assert (len(body) < 40_000) is gzipped
    assert json.loads(gzip.decompress(body) if gzipped else body)["trips"]


@pytest.mark.parametrize("address", ["0x12", "vitalik.eth", "0x" + "g" * 40, "0x" + "1" * 41])
async def test_what_is_no_address_is_said(
    base_url: str, session: aiohttp.ClientSession, address: str
) -> None:
    async with session.get(f"{base_url}/v1/check/{address}/proof") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "bad_address")


async def test_nothing_is_posted_to_it(base_url: str, built: Built, session: aiohttp.ClientSession) -> None:
    async with session.post(f"{base_url}/v1/check/{built.tokens['plain']}/proof") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (405, "method_not_allowed")


OTHER_HASH = "0x" + "ab" * 32


@pytest.mark.parametrize("gone", ["another block has its number", "no block has its number"])
async def test_of_a_block_that_is_not_on_the_chain_none_is_handed_out(
    ctx: Context, base_url: str, built: Built, session: aiohttp.ClientSession, gone: str
) -> None:
    """As after a fork, and after the local chain was started again."""
    token = built.tokens["odd_tier"]
    row = bytes.fromhex(token[2:])
    await ctx.pool.execute("DELETE FROM facts.evidence WHERE token = $1", row)
    was = (await proof_of(session, base_url, token))["block"]
    document = await ctx.pool.fetchval("SELECT document FROM facts.evidence WHERE token = $1", row)
    changed = document.replace(was["hash"].encode(), OTHER_HASH.encode())
    if gone.startswith("no block"):
        number = f'"number":{was["number"]}'.encode()
        assert number in changed
        changed = changed.replace(number, b'"number":999999999')
    assert changed != document
    await ctx.pool.execute("UPDATE facts.evidence SET document = $2 WHERE token = $1", row, changed)
    for _ in range(2):
        assert (await proof_of(session, base_url, token))["block"] == was
    assert await ctx.pool.fetchval(COUNTED, row) == 2


async def test_where_the_block_could_not_be_looked_at_none_is_handed_out(
    ctx: Context, base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    kept = built.tokens["plain"]
    await proof_of(session, base_url, kept)
    before = await ctx.pool.fetchval(COUNTED, bytes.fromhex(kept[2:]))
    url = node_of(ctx).url
    async with FaultyNode(url).running() as faulty:
        node_of(ctx).url = faulty.url
        for fault in ("status 500", "nonsense"):
            faulty.fault = fault
            async with session.get(f"{base_url}/v1/check/{kept}/proof") as response:
                assert (response.status, (await response.json())["error"]["code"]) == (502, "upstream"), fault
    refused = replace(ctx, node=Refusing())  # type: ignore[arg-type]
    with pytest.raises(NodeFault, match="the node limits our calls, error -32005"):
        await check_proof(refused, CheckParams(kept))
    assert await ctx.pool.fetchval(COUNTED, bytes.fromhex(kept[2:])) == before


async def test_without_a_database_it_is_busy(
    ctx: Context, built: Built, session: aiohttp.ClientSession, database_url: str
) -> None:
    async with connections.create_pool(database_url, min_size=1, max_size=1) as pool:
        pass
    async with service(replace(ctx, pool=pool)) as base_url:
        url = f"{base_url}/v1/check/{built.tokens['plain']}/proof"
        async with session.get(url) as response:
            assert (response.status, (await response.json())["error"]["code"]) == (503, "busy")
