"""The front door, the documents, and what pages of others may read."""

import gzip
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

import roundtrip
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import AnyOperation

DOCS = Path(__file__).resolve().parents[3] / "docs"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
WITH_PATH = [row for row in OPERATIONS if row.path is not None]


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(skip_auto_headers=["accept", "accept-encoding"]) as found:
        yield found


@pytest.mark.parametrize("accept", [BROWSER, "text/html", "application/json;q=0.5, text/html"])
async def test_people_are_shown_a_page_that_asks_nobody_else(
    base_url: str, session: aiohttp.ClientSession, accept: str
) -> None:
    async with session.get(base_url, headers={"accept": accept}) as response:
        assert response.status == 200
        assert response.content_type == "text/html"
        policy = response.headers["content-security-policy"]
        page = await response.text()
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policy
    assert re.findall("https?://(?!127[.]0[.]0[.]1)", page) == []
    assert "treat it as a no" in page
    assert "/v1/check/0x" in page


@pytest.mark.parametrize(
    "agent",
    [
        "TelegramBot (like TwitterBot)",
        "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
        "facebookexternalhit/1.1",
        "WhatsApp/2.23.20.0 A",
    ],
)
async def test_a_link_preview_that_accepts_anything_is_shown_a_page(
    base_url: str, session: aiohttp.ClientSession, agent: str
) -> None:
    for path, status in (("/", 200), ("/nowhere", 404)):
        async with session.get(base_url + path, headers={"accept": "*/*", "user-agent": agent}) as response:
            assert (response.status, response.content_type) == (status, "text/html")
    # Scripts of pages ask so, too, and read JSON.
    asked = {"accept": "*/*", "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0"}
    async with session.get(f"{base_url}/nowhere", headers=asked) as response:
        assert (response.status, response.content_type) == (404, "application/json")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/check/", 404, "not_found"),
        ("POST", "/v1/health", 405, "method_not_allowed"),
    ],
)
async def test_below_v1_an_error_is_json_for_browsers_too(
    base_url: str, session: aiohttp.ClientSession, method: str, path: str, status: int, code: str
) -> None:
    async with session.request(method, base_url + path, headers={"accept": BROWSER}) as response:
        assert (response.status, response.content_type) == (status, "application/json")
        assert (await response.json())["error"]["code"] == code


async def test_well_known_files_are_there(base_url: str, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{base_url}/favicon.ico") as response:
        assert (response.status, response.content_type) == (200, "image/x-icon")
        assert (await response.read()).startswith(b"\0\0\1\0")
    async with session.get(f"{base_url}/robots.txt") as response:
        assert (response.status, response.content_type) == (200, "text/plain")
        assert "Disallow: /account" in await response.text()


@pytest.mark.parametrize(
    "accept", [None, "*/*", "application/json", "text/html;q=0", "text/html;q=0.1,application/json", "x;q=y"]
)
async def test_programs_are_told_in_json(
    base_url: str, session: aiohttp.ClientSession, accept: str | None
) -> None:
    headers = {"accept": accept} if accept else {}
    async with session.get(base_url, headers=headers) as response:
        assert response.status == 200
        assert response.headers["vary"] == "accept, user-agent"
        answer = await response.json()
    assert (answer["name"], answer["version"]) == ("roundtrip", roundtrip.__version__)
    for name, path in answer["links"].items():
        async with session.get(base_url + path) as response:
            assert response.status == (405 if name == "mcp" else 200)


@pytest.mark.parametrize(
    ("path", "kept"),
    [("/v1/tools.json", "tools.json"), ("/v1/openapi.json", "openapi.json"), ("/llms.txt", "llms.txt")],
)
async def test_the_documents_are_those_that_are_kept(
    base_url: str, session: aiohttp.ClientSession, path: str, kept: str
) -> None:
    async with session.get(base_url + path) as response:
        assert response.status == 200
        assert response.headers["access-control-allow-origin"] == "*"
        body = await response.read()
    if kept.endswith(".json"):
        assert json.loads(body) == json.loads((DOCS / kept).read_bytes())
    else:
        assert body == (DOCS / kept).read_bytes()
    async with session.head(base_url + path) as response:
        assert (response.status, await response.read()) == (200, b"")
        assert int(response.headers["content-length"]) == len(body)


async def test_a_large_document_is_compressed_for_who_reads_that(
    base_url: str, session: aiohttp.ClientSession
) -> None:
    url = f"{base_url}/v1/openapi.json"
    async with aiohttp.ClientSession(auto_decompress=False) as raw:
        async with raw.get(url, headers={"accept-encoding": "gzip"}) as response:
            assert response.headers["content-encoding"] == "gzip"
            small = await response.read()
        async with raw.get(url, headers={"accept-encoding": "identity"}) as response:
            assert "content-encoding" not in response.headers
            assert await response.read() == gzip.decompress(small)


@pytest.mark.parametrize("row", WITH_PATH, ids=lambda row: str(row.name))
async def test_pages_of_others_may_read_what_needs_no_key(
    base_url: str, session: aiohttp.ClientSession, row: AnyOperation
) -> None:
    asked = {"origin": "https://example.com", "access-control-request-method": row.method}
    url = base_url + str(row.path).replace("{address}", "0x" + "1" * 40)
    async with session.options(url, headers=asked) as response:
        assert response.status == 200
        assert row.method in response.headers["allow"].split(", ")
        assert "x-ratelimit-limit" not in response.headers
        open_to_all = response.headers.get("access-control-allow-origin")
    assert open_to_all == ("*" if row.method == "GET" and not row.key else None)
    async with session.options(f"{base_url}/mcp") as response:
        assert response.headers["allow"] == "POST, OPTIONS"
        assert "access-control-allow-origin" not in response.headers


async def test_what_is_not_served_says_what_is(base_url: str, session: aiohttp.ClientSession) -> None:
    for path, methods in (
        ("/v1/health", {"GET", "HEAD", "OPTIONS"}),
        ("/v1/keys/nonce", {"POST", "OPTIONS"}),
        ("/mcp", {"POST", "OPTIONS"}),
    ):
        async with session.delete(base_url + path) as response:
            assert response.status == 405
            assert response.headers["allow"] == ", ".join(sorted(methods))
    async with session.options(f"{base_url}/nothing") as response:
        assert response.status == 404
