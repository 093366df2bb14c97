"""Somebody without an account, in a real browser, under the pages' own policy."""

import re

import pytest
from playwright.async_api import Browser, expect

from e2e.browser import Visitor, visiting
from e2e.ground import BrowserGround, asked
from roundtrip.console.pages.boards import BOARDS


async def symbol_of(ground: BrowserGround, token: str) -> str:
    found = await asked(ground.url, "look_up", query=token)
    return str(found["token"]["symbol"])


async def test_from_the_front_by_a_symbol_to_the_verdict_and_who_holds_it(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    page = newcomer.page
    assert await newcomer.open("/") == 200
    await expect(page.get_by_role("heading", level=1)).to_have_text("Before you buy it: can it be sold?")
    await expect(page.get_by_role("heading", name="Moving now")).to_be_visible()
    await page.get_by_role("searchbox").fill(await symbol_of(ground, ground.fair))
    await page.get_by_role("button", name="Check").click()
    await page.wait_for_url(f"**/token/{ground.fair}")
    await newcomer.settled()
    card = page.get_by_role("article")
    await expect(card.locator(".word")).to_contain_text(re.compile("[Ss]ell"))
    await expect(card).to_contain_text(re.compile("loss of|round trip"))
    await page.get_by_role("link", name="Holders", exact=True).click()
    holders = page.get_by_role("region", name="Who holds it")
    await expect(holders.get_by_role("table").first).to_be_visible()
    await expect(holders.get_by_role("img", name="Of the supply")).to_be_visible()
    await page.get_by_role("link", name="Tests", exact=True).click()
    grid = page.get_by_role("region", name="What was tried")
    await expect(grid.get_by_role("row")).not_to_have_count(0)


async def test_a_trap_says_so_in_a_word(newcomer: Visitor, ground: BrowserGround) -> None:
    await newcomer.open(f"/token/{ground.trap}")
    card = newcomer.page.get_by_role("article")
    await expect(card.locator(".word")).to_contain_text("Honeypot: you cannot sell")
    await expect(card).to_contain_text('The token says "trading not open"')


async def test_another_size_is_tried_on_the_page(newcomer: Visitor, ground: BrowserGround) -> None:
    page = newcomer.page
    await newcomer.open(f"/token/{ground.fair}")
    sizes = page.get_by_role("region", name="At your size")
    await sizes.get_by_role("link", name="0.5 ETH").click()
    await page.wait_for_url("**?amount=0.5")
    await expect(sizes).to_contain_text("Put in 0.5 ETH")
    await sizes.get_by_label("Your amount").fill("0.02")
    await sizes.get_by_role("button", name="Try").click()
    await page.wait_for_url("**?amount=0.02")
    await expect(sizes).to_contain_text("Put in 0.02 ETH")
    await expect(page.get_by_role("region", name="Know before you buy")).to_be_visible()
    # Of this token they are the reason beside the verdict.
    await expect(page.get_by_role("article")).to_contain_text("insiders hold")


async def test_the_front_shows_what_moves(newcomer: Visitor, ground: BrowserGround) -> None:
    await newcomer.open("/")
    await expect(newcomer.page.locator(f'main a[href="/token/{ground.fair}"]').first).to_be_visible()


@pytest.mark.parametrize("board", [board.tool for board in BOARDS])
async def test_a_board_shows_rows_that_lead_on(newcomer: Visitor, board: str) -> None:
    page = newcomer.page
    await newcomer.open("/boards")
    title, tab = next((one.title, one.tab) for one in BOARDS if one.tool == board)
    await page.get_by_role("navigation", name="Boards").get_by_role("link", name=tab, exact=True).click()
    await page.wait_for_url(f"**/boards/{board}")
    await expect(page.get_by_role("heading", level=1)).to_have_text(title)
    link = page.locator("#rows [data-row]").get_by_role("link").first
    await expect(link).to_be_visible()
    await link.click()
    await page.wait_for_url(re.compile("/(token|wallet)/0x[0-9a-f]{40}$"))
    await newcomer.settled()
    await expect(page.get_by_role("heading", level=1)).to_be_visible()


async def test_the_league_the_chain_and_the_words_of_a_wallet_and_a_transaction(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    page = newcomer.page
    await newcomer.open("/league")
    await expect(page.get_by_role("table").get_by_role("row")).not_to_have_count(0)
    await page.get_by_role("link", name=re.compile("^agents$", re.I)).click()
    await expect(page.get_by_role("cell", name="Early bird")).to_be_visible()
    await newcomer.open("/status")
    await expect(page.get_by_text("The service is up to date with the chain.")).to_be_visible()
    await newcomer.open(f"/search?q={ground.transaction}")
    assert page.url.endswith(f"/transaction/{ground.transaction}")
    await expect(page.locator("#main")).to_contain_text("bought")
    await page.locator(".verdict").get_by_role("link").first.click()
    await page.wait_for_url("**/wallet/0x*")
    await newcomer.settled()
    await expect(page.get_by_role("heading", name="Linked wallets")).to_be_visible()
    await expect(page.get_by_role("heading", name="What it holds")).to_be_visible()


async def test_what_is_not_there_is_told(newcomer: Visitor) -> None:
    newcomer.expected.append("status of 400")
    assert await newcomer.open("/token/0x12") == 400
    await expect(newcomer.page.get_by_role("alert")).to_contain_text("bad_address")


async def test_by_keyboard_alone(newcomer: Visitor, ground: BrowserGround) -> None:
    page = newcomer.page
    await newcomer.open("/status")
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the page's content")
    await expect(skip).to_be_focused()
    await expect(skip).to_be_in_viewport()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    await newcomer.open("/status")
    links = await page.get_by_role("navigation", name="Pages").get_by_role("link").all_inner_texts()
    wanted = ["Skip to the page's content", "roundtrip", "", "Check", *links]
    reached = []
    for _ in wanted:
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate("() => document.activeElement.textContent.trim()"))
    assert reached == wanted
    assert {"Board", "Simulate", "Alerts", "Practice", "Portfolio", "Sign in"} <= set(links)
    await newcomer.open("/status")
    for _ in range(3):
        await page.keyboard.press("Tab")
    await expect(page.get_by_role("searchbox")).to_be_focused()
    await page.keyboard.type(ground.trap)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/token/{ground.trap}")
    await newcomer.settled()


async def test_without_scripts_everything_that_needs_no_account_is_there(
    browser: Browser, ground: BrowserGround
) -> None:
    async with visiting(browser, ground.url, java_script_enabled=False) as plain:
        page = plain.page
        await page.goto(f"{ground.url}/token/{ground.fair}")
        await expect(page.get_by_role("article")).to_contain_text(re.compile("loss of|round trip"))
        await expect(page.get_by_role("table").first).to_be_visible()
        await page.get_by_role("link", name="Holders", exact=True).click()
        await page.locator(f'main p a[href="/token/{ground.fair}/holders"]').click()
        await page.wait_for_url("**/holders")
        await expect(page.get_by_role("heading", name="Who holds it")).to_be_visible()
        await expect(page.get_by_role("table").first).to_be_visible()
        await page.goto(f"{ground.url}/sign-in")
        await expect(page.locator("noscript p")).to_be_visible()
        assert "need no account work without scripts." in await page.get_by_role("main").inner_text()
