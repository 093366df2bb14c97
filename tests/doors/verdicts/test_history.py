"""The history of a token's checks, against the real service."""

import aiohttp
import jsonschema
import pytest

from roundtrip.api.documents.tool_schemas import answer_schema
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built


async def test_it_lists_what_checks_found_and_makes_none(
    ctx: Context, base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    token = built.tokens["time_bomb"]
    await ctx.pool.execute("DELETE FROM facts.evidence WHERE token = $1", bytes.fromhex(token[2:]))
    url = f"{base_url}/v1/check/0x{token[2:].upper()}/history"
    checked = (await check(ctx, CheckParams(token))).answer
    again = (await check(ctx, CheckParams(token))).answer
    assert checked.trade is not None
    async with session.get(url) as response:
        assert response.status == 200, await response.text()
        found = await response.json()
    (row,) = [one for one in OPERATIONS if one.name == "check_history"]
    jsonschema.validate(found, answer_schema(row))
    assert (found["address"], found["checks"]) == (token, 2)
    (entry,) = found["changes"]
    assert entry["roundTripLossBps"] == checked.trade.round_trip_loss_bps is not None
    assert (entry["code"], entry["level"]) == (again.verdict.code, again.verdict.level)
    assert (entry["checks"], entry["changed"]) == (2, [])
    assert entry["block"] == entry["lastBlock"] == ctx.heads.current().block.number


async def test_a_token_that_was_never_checked_has_none(base_url: str, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{base_url}/v1/check/0x{'7' * 40}/history") as response:
        found = await response.json()
    assert (response.status, found["checks"], found["changes"]) == (200, 0, [])
    assert found["text"] == "No check of this token is stored."


@pytest.mark.parametrize("address", ["0x12", "vitalik.eth"])
async def test_what_is_no_address_is_said(
    base_url: str, session: aiohttp.ClientSession, address: str
) -> None:
    async with session.get(f"{base_url}/v1/check/{address}/history") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "bad_address")
