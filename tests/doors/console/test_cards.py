"""Cards and badges: pictures of the newest stored check, which other sites embed."""

import re
import struct
from collections.abc import AsyncIterator
from xml.etree import ElementTree

import aiohttp
import asyncpg
import pytest

from roundtrip.config.settings import Settings
from roundtrip.console.pages import cards
from roundtrip.devnet.world import Built
from roundtrip.services.runtime.context import Context
from support.serving import service

SETTINGS = Settings(anon_per_minute=10_000)


@pytest.fixture
async def client(indexed: Context) -> AsyncIterator[aiohttp.ClientSession]:
    async with service(indexed, SETTINGS) as url, aiohttp.ClientSession(url) as found:
        yield found


async def count_checks(ctx: Context) -> int:
    pool: asyncpg.Pool = ctx.pool
    return int(await pool.fetchval("SELECT count(*) FROM facts.evidence"))


def shown(svg: str) -> list[str]:
    drawn = ElementTree.fromstring(svg)  # noqa: S314
    return [text for text in drawn.itertext() if text]


async def test_a_card_is_of_the_newest_check_and_makes_none(
    client: aiohttp.ClientSession, indexed: Context, built: Built
) -> None:
    token = built.tokens["six_decimals"]
    await indexed.pool.execute("DELETE FROM facts.evidence WHERE token = $1", bytes.fromhex(token[2:]))
    before = await count_checks(indexed)
    for name, word in (("card.svg", "Not checked yet"), ("badge.svg", "not checked yet")):
        async with client.get(f"/t/{token}/{name}") as response:
            assert (response.status, response.content_type) == (200, "image/svg+xml")
            assert response.headers["cache-control"] == "public, max-age=10"
            assert word in shown(await response.text())
    assert await count_checks(indexed) == before


async def test_the_tokens_page_fills_the_card(
    client: aiohttp.ClientSession, indexed: Context, built: Built
) -> None:
    token = built.tokens["owner_only_sell"]
    async with client.get(f"/v1/check/{token}") as response:
        check = await response.json()
    checks = await count_checks(indexed)
    async with client.get(f"/t/{token}/card.svg") as response:
        rows, headers = shown(await response.text()), response.headers
    assert rows[2:5] == ["Honeypot: you cannot sell", f'"{check["token"]["symbol"]}"', token.lower()]
    assert re.fullmatch(r"As of block [\d,]+, 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", rows[-1])
    assert headers["cache-control"] == "public, max-age=60"
    assert headers["cross-origin-resource-policy"] == "cross-origin"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in headers
    async with client.get(f"/t/{token}/badge.svg") as response:
        assert shown(await response.text())[1:] == ["roundtrip", "honeypot: you cannot sell"]
    assert await count_checks(indexed) == checks


async def test_a_card_is_a_picture_and_asked_for_again_it_is_not_sent(
    client: aiohttp.ClientSession, built: Built
) -> None:
    token = built.tokens["strange_name"]
    async with client.get(f"/v1/check/{token}") as response:
        assert response.status == 200
    async with client.get(f"/t/{token}/card.png") as response:
        assert (response.status, response.content_type) == (200, "image/png")
        png, etag = await response.read(), response.headers["etag"]
    assert struct.unpack(">II", png[16:24]) == (1200, 630)
    async with client.head(f"/t/{token}/card.png") as response:
        assert (response.status, response.headers["content-length"]) == (200, str(len(png)))
    assert 10_000 < len(png) < 150_000
    async with client.get(f"/t/{token}/card.png", headers={"if-none-match": etag}) as response:
        assert (response.status, await response.read()) == (304, b"")
        assert response.headers["etag"] == etag
    async with client.get(f"/t/{token}/card.svg", headers={"if-none-match": etag}) as response:
        assert response.status == 200


async def test_the_tokens_page_names_its_card(client: aiohttp.ClientSession, built: Built) -> None:
    token = built.tokens["plain"].lower()
    async with client.get(f"/t/{token}", headers={"accept": "text/html"}) as response:
        assert response.url.path == f"/token/{token}"
        page = await response.text()
    tags = dict(re.findall(r'<meta (?:property|name)="((?:og|twitter):[^"]+)" content="([^"]*)">', page))
    link = f"http://127.0.0.1:8463/t/{token}"
    assert tags["og:url"] == link
    assert tags["og:image"] == tags["twitter:image"] == f"{link}/card.png"
    assert tags["og:title"] == f"Can sell: {token}"
    assert tags["og:title"] == tags["twitter:title"]
    assert tags["twitter:card"] == "summary_large_image"
    assert (tags["og:image:width"], tags["og:image:height"]) == ("1200", "630")
    assert tags["og:description"].startswith("As of block ")


@pytest.mark.parametrize("name", ["card.svg", "card.png", "badge.svg"])
async def test_a_broken_address_is_an_error(client: aiohttp.ClientSession, name: str) -> None:
    async with client.get(f"/t/0x12/{name}") as response:
        assert (response.status, response.content_type) == (400, "text/html")
        assert response.headers["cache-control"] == "no-store"


async def test_pictures_have_a_limit_of_their_own(
    indexed: Context, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "PICTURES_A_MINUTE", 3)
    check, path = (f"{start}{built.tokens['plain']}" for start in ("/v1/check/", "/t/"))
    async with service(indexed, Settings(anon_per_minute=1)) as url, aiohttp.ClientSession(url) as client:

        async def ask(path: str, **headers: str) -> int:
            async with client.get(path, headers=headers) as response:
                etags.append(response.headers.get("etag", ""))
                return response.status

        etags: list[str] = []
        statuses = [await ask(f"{path}/badge.svg") for _ in range(2)]
        statuses += [await ask(f"{path}/badge.svg", **{"if-none-match": etags[0]}) for _ in range(3)]
        statuses += [await ask(f"{path}/badge.svg") for _ in range(2)]
        assert statuses == [200, 200, 304, 304, 304, 200, 429]
        assert [await ask(check), await ask(check)] == [200, 429]
