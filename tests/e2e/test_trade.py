"""A trade on the page with a wallet of the browser that really sends, and a simulation of pasted calls."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from playwright.async_api import expect

from e2e.browser import AXE, Visitor
from e2e.ground import BrowserGround
from e2e.test_every_page import violations

MAX = "f" * 64
WAIT_MS = 30_000
BUYERS = 4
"""Enough for the board, which counts different people."""
AMOUNT_WEI = 10**17
_PROVIDER = """(() => {
  const provider = {
    async request({ method, params }) {
      if (method === "eth_requestAccounts") return [ADDRESS];
      const { error, result } = JSON.parse(await window.e2eNode(method, JSON.stringify(params || [])));
      if (error) throw Object.assign(new Error(error.message), { code: error.code });
      return result;
    },
  };
  const info = Object.freeze({
    uuid: "00000000-0000-4000-8000-000000000009", name: "Sending wallet",
    icon: "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'/%3E", rdns: "org.example.sender",
  });
  const announce = () => window.dispatchEvent(
    new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({ info, provider }) }));
  window.addEventListener("eip6963:requestProvider", announce);
  announce();
})();"""


async def install_sender(
    visitor: Visitor, rpc_url: str, address: str, refused: set[str]
) -> list[dict[str, Any]]:
    """A wallet whose account the local node holds. It refuses the methods in ``refused``. Returns the list of
    the transactions that it sends from now on."""
    sent: list[dict[str, Any]] = []

    async def ask(method: str, params: str) -> str:
        if method in refused:
            return json.dumps({"error": {"code": 4001, "message": "User rejected the request."}})
        given = json.loads(params)
        sent.extend(given if method == "eth_sendTransaction" else [])
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
        async with aiohttp.ClientSession() as session, session.post(rpc_url, json=body) as response:
            return json.dumps(await response.json())

    await visitor.context.expose_function("e2eNode", ask)
    await visitor.context.add_init_script(_PROVIDER.replace("ADDRESS", json.dumps(address)))
    return sent


@pytest.fixture
def trader(ground: BrowserGround) -> str:
    """An account whose key the local node has."""
    return ground.built.accounts[7]


async def test_from_the_board_over_the_token_to_a_buy_and_a_sell(
    newcomer: Visitor, ground: BrowserGround, trader: str
) -> None:
    refused: set[str] = {"eth_sendTransaction"}
    sent = await install_sender(newcomer, ground.rpc_url, trader, refused)
    page, token = newcomer.page, ground.fair
    for _ in range(BUYERS):
        await ground.buy_fair()
    row = page.locator(f'#rows [data-row] a[href="/token/{token}"]').first
    async with asyncio.timeout(WAIT_MS / 1000):
        # Until the index has the buys.
        while not await row.count():
            await newcomer.open("/boards/moving_now")
    await row.click()
    await page.wait_for_url(f"**/token/{token}")
    await expect(page.locator(".hero .word")).to_contain_text("Can sell")
    await page.get_by_role("link", name="Buy 0.1 ETH of it with your wallet").click()
    quote = page.locator("#quote")
    for amount in ("0.01", "0.1"):
        await page.get_by_role("button", name=amount, exact=True).click()
        await expect(quote).to_contain_text(f"{amount} ETH", timeout=WAIT_MS)
        await expect(quote).to_contain_text("You get about")
    await page.get_by_role("button", name="Use the account of Sending wallet").click()
    await expect(page.get_by_label("Your wallet’s address")).to_have_value(trader)
    await newcomer.send("Check and prepare")
    await expect(page.get_by_text("Verified:")).to_be_visible()
    await page.get_by_role("button", name="Buy with Sending wallet").click()
    await expect(page.locator("#send-note")).to_have_text(
        "You refused it in your wallet. Nothing more was sent."
    )
    refused.clear()
    await page.get_by_role("button", name="Buy with Sending wallet").click()
    await expect(page.locator("#came")).to_be_visible(timeout=WAIT_MS)
    await expect(page.locator("#came [data-against]")).to_contain_text("promised")
    await expect(page.locator("#came")).not_to_have_class("notice t-ok t-danger")
    await expect(page.locator("#senders")).to_be_hidden()
    assert [int(call["value"], 16) for call in sent] == [AMOUNT_WEI]
    await page.evaluate(AXE.read_text())
    assert await violations(newcomer) == []

    await page.get_by_role("link", name="Sell it").click()
    await newcomer.settled()
    await page.get_by_role("button", name="Sell with Sending wallet").click()
    await expect(page.locator("#came")).to_be_visible(timeout=WAIT_MS)
    await expect(page.locator(".step-state").last).to_contain_text("Done in block")
    got = float(await page.locator("[data-came]").inner_text())
    assert 0.09 < got < 0.1


async def test_a_reload_sends_nothing_twice(newcomer: Visitor, ground: BrowserGround, trader: str) -> None:
    refused: set[str] = set()
    await install_sender(newcomer, ground.rpc_url, trader, refused)
    page, trade = newcomer.page, f"/trade?token={ground.built.tokens['plain']}&from={trader}&amount=0.01"
    buy = page.get_by_role("button", name="Buy with Sending wallet")
    look = page.get_by_role("button", name="Look what became of it with Sending wallet")
    await newcomer.open(trade)
    await buy.click()
    await expect(page.locator("#came")).to_be_visible(timeout=WAIT_MS)
    refused.add("eth_sendTransaction")
    await page.reload()
    await expect(buy).to_have_count(0)
    await look.click()
    await expect(page.locator("#came")).to_contain_text("You got", timeout=WAIT_MS)
    await expect(page.locator("#came [data-promise]")).to_be_hidden()
    await expect(page.locator("#senders")).to_be_hidden()

    # Asked for in the wallet and not told to the page: the account's nonce tells whether it went.
    nonce = await page.evaluate("() => Number(new URLSearchParams(location.hash.slice(1)).get('nonce'))")
    await page.goto("about:blank")
    await newcomer.open(f"{trade}#nonce={nonce}&of=1&sent=")
    await look.click()
    await expect(page.locator("#send-note")).to_contain_text("cannot know whether a step was sent")
    await expect(buy).to_have_count(0)
    await page.goto("about:blank")
    await newcomer.open(f"{trade}#nonce={nonce + 1}&of=1&sent=")
    await look.click()
    await expect(page.locator("#send-note")).to_contain_text("Nothing was sent")
    await expect(buy).to_be_visible()


async def test_a_trap_is_not_prepared(newcomer: Visitor, ground: BrowserGround, trader: str) -> None:
    await newcomer.open(f"/trade?token={ground.trap}&from={trader}&amount=0.1")
    await expect(newcomer.page.get_by_text("We prepare no transaction for this trade.")).to_be_visible()
    await expect(newcomer.page.locator("#steps, #senders")).to_have_count(0)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("amount=0", "amount"),
        ("amount=much", "amount"),
        ("amount=1&slippage=x", "The slippage must be a number"),
    ],
)
async def test_a_wrong_field_is_said_above_the_form(
    newcomer: Visitor, ground: BrowserGround, trader: str, query: str, said: str
) -> None:
    newcomer.expected.append("status of 400")
    assert await newcomer.open(f"/trade?token={ground.trap}&from={trader}&{query}") == 400
    await expect(newcomer.page.locator(".notice.t-danger")).to_contain_text(said)
    await expect(newcomer.page.get_by_label("Token’s address")).to_have_value(ground.trap)


async def test_pasted_calls_are_simulated(newcomer: Visitor, ground: BrowserGround, trader: str) -> None:
    page, token = newcomer.page, ground.built.tokens["plain"]
    data = "0x095ea7b3" + ground.built.contracts["permit2"][2:].lower().rjust(64, "0") + MAX
    await newcomer.open(f"/simulate?from={trader}")
    await page.get_by_label("What you are about to sign").fill(
        json.dumps({"from": trader, "to": token, "input": data, "gas": "0x30d40"})
    )
    await newcomer.send("Simulate")
    await expect(page.locator("#result + .t-ok .word")).to_have_text("Allows everything")
    await expect(page.locator(".changes").first).to_contain_text("everything, now and later")
    await expect(page.locator(".changes").first).to_contain_text("PLAIN")
    await page.get_by_text("Change it, or simulate another").click()
    await page.get_by_label("What you are about to sign").fill("[1]")
    newcomer.expected.append("status of 400")
    await newcomer.send("Simulate")
    await expect(page.locator(".notice.t-danger")).to_contain_text("The calls must be a JSON list")
