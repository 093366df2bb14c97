"""Checks of another size over HTTP, against the real service."""

from typing import Any

import aiohttp
import pytest

from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built

STORED = "SELECT count(*) FROM facts.evidence WHERE token = $1"


async def checked(session: aiohttp.ClientSession, url: str, query: str) -> dict[str, Any]:
    async with session.get(f"{url}?{query}") as response:
        assert response.status == 200, await response.text()
        found: dict[str, Any] = await response.json()
        return found


async def test_the_loss_is_that_of_the_size_and_nothing_is_stored(
    ctx: Context, base_url: str, built: Built, session: aiohttp.ClientSession
) -> None:
    token = built.tokens["plain"]
    url, row = f"{base_url}/v1/check/{token}", bytes.fromhex(token[2:])
    usual = await checked(session, url, "amount=0.1")
    stored = await ctx.pool.fetchval(STORED, row)
    sizes = ("0.001", "1", "10")
    by_size = {size: await checked(session, url, f"amount={size}") for size in sizes}
    assert await ctx.pool.fetchval(STORED, row) == stored
    for size, answer in by_size.items():
        assert answer.keys() == usual.keys()
        assert answer["trade"]["paid"] == {"amount": size, "asset": "eth"}
        assert answer["trade"]["roundTripLossBps"] is not None
    impacts = [answer["trade"]["priceImpactBps"] for answer in by_size.values()]
    assert impacts[0] < usual["trade"]["priceImpactBps"] < impacts[1] < impacts[2]
    # The proof is still of the usual size.
    async with session.get(f"{url}/proof") as response:
        assert (await response.json())["checkedAt"] == usual["checkedAt"]


@pytest.mark.parametrize("amount", ["0.0009", "10.1", "x", ""])
async def test_what_is_out_of_range_is_said(
    base_url: str, built: Built, session: aiohttp.ClientSession, amount: str
) -> None:
    url = f"{base_url}/v1/check/{built.tokens['plain']}"
    async with session.get(url, params={"amount": amount}) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "bad_input")
