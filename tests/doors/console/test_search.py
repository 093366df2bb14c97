"""The search box takes what people paste, longer than a query of look_up."""

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import tokens
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.console_house import ConsoleHouse, house_of
from support.keys import random_context


@pytest.fixture
async def house(indexed: Context) -> AsyncIterator[ConsoleHouse]:
    clock = Clock()
    async with house_of(random_context(indexed, clock), clock) as made:
        yield made


@pytest.mark.parametrize(
    "text",
    [
        "https://robinhoodchain.blockscout.com/token/{}?tab=token_transfers", "eip155:4663/erc20:{}",
        "https://dexscreener.com/robinhood/{}", '"{}"', "robinhood.blockscout.example/token/{}",
        "https://robinhood.blockscout.example/token/{}?a=" + "x" * 8_000,
        "somebody in a chat wrote that this one is good, " * 4 + "{} \u200b and to buy it now",
    ],
)  # fmt: skip
async def test_a_paste_leads_to_the_page(house: ConsoleHouse, built: Built, text: str) -> None:
    token = built.tokens["plain"]
    status, _, headers = await house.get("/search?q=" + quote(text.format(token)))
    assert (status, headers.get("location")) == (303, f"/token/{token}")


@pytest.mark.parametrize("text", ["https://dexscreener.com/robinhood/{}?a=1", "“PLA", '"$plain"', "#Plain"])
async def test_a_paste_is_suggested(house: ConsoleHouse, built: Built, text: str) -> None:
    token = Address(built.tokens["plain"])
    async with house.ctx.pool.acquire() as connection:
        await tokens.keep(connection, token, "PLAIN", "Plain", 18, 1, 1)
    try:
        _, page, _ = await house.get("/suggest?q=" + quote(text.format(token)))
    finally:
        async with house.ctx.pool.acquire() as connection:
            await connection.execute("DELETE FROM facts.token")
    assert token in page


@pytest.mark.parametrize("text", ["https://etherscan.io/token/{}" + "#code" * 9, "eip155:1:{}"])
async def test_another_chain_is_named_before_the_page(house: ConsoleHouse, built: Built, text: str) -> None:
    token = built.tokens["plain"]
    status, page, _ = await house.get("/search?q=" + quote(text.format(token)))
    assert status == 200
    assert "names chain 1" in page
    assert f'href="/token/{token}"' in page


async def test_of_several_none_is_chosen(house: ConsoleHouse, built: Built) -> None:
    both = f"{built.tokens['plain']} or {built.tokens['curve']}"
    status, page, _ = await house.get("/search?q=" + quote(both))
    assert status == 400
    assert "2 different addresses or hashes" in page
