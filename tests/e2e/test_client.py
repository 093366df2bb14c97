"""The TypeScript client in a browser: on a page of the service's own origin, and on one of another."""

import json
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page, Route

from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.live_service import Live, live_service
from support.typescript_client import CLIENT, build
from support.webhook_vectors import NOW_S, SECRET, vectors

IMPORTS = {
    "roundtrip-client": "/bot/dist/src/index.js",
    "openapi-fetch": "/bot/node_modules/openapi-fetch/dist/index.mjs",
}
PAGE = f'<script type="importmap">{json.dumps({"imports": IMPORTS})}</script>'
ELSEWHERE = "http://localhost:1"
USE = """async ({url, key, plain, trap, secret, message, nowS}) => {
  const { Client, verifyWebhook } = await import("roundtrip-client");
  const client = new Client({ baseUrl: url, key });
  const stream = client.stream({ tokens: [plain], events: ["verdict"] });
  const first = stream[Symbol.asyncIterator]().next();
  while (stream.lastEventId === "") await client.health();
  const codes = {};
  for await (const line of client.checks([plain, trap])) codes[line.address] = line.check?.verdict.code;
  const { value } = await first;
  const { kind } = await verifyWebhook(secret, message.headers, message.body, nowS);
  return [codes, value.verdict.level, kind];
}"""
CHECK = """async ({url, plain}) => {
  const { Client } = await import("roundtrip-client");
  const client = new Client({ baseUrl: url });
  const { requestId } = await client.check("0x12").catch((error) => error);
  return [(await client.check(plain)).verdict.level, typeof requestId];
}"""


@pytest.fixture
async def live(indexed: Context, built: Built) -> AsyncIterator[Live]:
    async with live_service(indexed, built) as found:
        yield found


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    # Browsers ask before a page may call this machine. A service on the internet needs no such leave.
    async with await browser.new_context(permissions=["local-network-access"]) as context:
        yield await context.new_page()


async def open_bot(page: Page, origin: str) -> None:
    """A page of this origin that can import the client."""
    await build()

    async def serve(route: Route) -> None:
        path = route.request.url.removeprefix(f"{origin}/bot/")
        await (
            route.fulfill(path=CLIENT / path) if path else route.fulfill(body=PAGE, content_type="text/html")
        )

    await page.route(f"{origin}/bot/**", serve)
    await page.goto(f"{origin}/bot/")


async def test_a_page_of_the_service_checks_follows_and_verifies(page: Page, live: Live) -> None:
    await open_bot(page, live.url)
    asked = {
        "url": live.url, "key": live.key, "plain": live.plain, "trap": live.trap,
        "secret": SECRET, "message": vectors()[0].as_json(), "nowS": NOW_S,
    }  # fmt: skip
    found = await page.evaluate(USE, asked)
    assert found == [{live.plain: "ok", live.trap: "cannot_sell"}, "ok", "rule"]


async def test_a_page_of_another_origin_checks_without_a_key(page: Page, live: Live) -> None:
    await open_bot(page, ELSEWHERE)
    assert await page.evaluate(CHECK, {"url": live.url, "plain": live.plain}) == ["ok", "string"]
