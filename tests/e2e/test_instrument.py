"""A token's page as an instrument: sizes without a new page, tabs, the chart's money; and the pages' head."""

import re

import pytest
from playwright.async_api import Browser, expect

from e2e.browser import PHONE, SMALL_PHONE, Visitor, visiting
from e2e.ground import BrowserGround

HEADER_PX = 60
LEAST_SIZES = 8
MOST_PX = 3_000
MOST_SHIFT = 0.1
_SHIFTS = """() => {
    window.shifted = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
}"""


async def test_another_size_comes_without_a_new_page_and_is_said_once(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    page = newcomer.page
    await newcomer.open("/boards/moving_now")
    await newcomer.open(f"/token/{ground.fair}")
    await page.evaluate("() => { window.same = true; }")
    sizes = page.get_by_role("region", name="At your size")
    await sizes.get_by_role("link", name="0.01 ETH").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#sized")).to_contain_text("At 0.01 ETH:")
    await page.wait_for_url("**?amount=0.01")
    await expect(sizes.get_by_role("link", name="0.01 ETH")).to_be_focused()
    await expect(page.locator("#size-note")).to_contain_text(
        "At 0.01 ETH: Can sell. Put in 0.01 ETH, get back 0.009"
    )
    await expect(page.locator("#share-text")).to_contain_text("0.01 ETH in, 0.009")
    await sizes.get_by_label("Your amount").fill("50")
    await sizes.get_by_role("button", name="Try").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#size-fault")).to_contain_text("0.001")
    await expect(sizes).to_contain_text("Put in 0.01 ETH")
    await expect(sizes.get_by_role("button", name="Try")).to_be_focused()
    assert await page.evaluate("() => window.same")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.go_back()
    await page.wait_for_url("**/boards/moving_now")
    assert not [url for url in asked if "/token/" in url], "Back makes no check"


async def test_the_chart_has_the_verdicts_below_its_times(newcomer: Visitor, ground: BrowserGround) -> None:
    page = newcomer.page
    await newcomer.open(f"/token/{ground.fair}")
    figure = page.locator("figure[data-candles]")
    await expect(figure.locator(".plot canvas")).to_be_visible()
    said = await figure.get_attribute("data-verdicts")
    assert said is not None
    assert said[-1] == "o"
    await expect(figure).to_contain_text("Checks said:")
    drawn = """figure => {
        const canvas = figure.querySelector("canvas"), context = canvas.getContext("2d");
        const row = context.getImageData(0, canvas.height - 3, canvas.width, 1).data, seen = new Set();
        for (let at = 0; at < row.length; at += 4) seen.add([...row.slice(at, at + 3)].join(","));
        return [...seen];
    }"""
    assert "15,122,77" in await figure.evaluate(drawn), "the good verdict's green"


async def test_a_transaction_tells_who_calls_whom(newcomer: Visitor, ground: BrowserGround) -> None:
    page = newcomer.page
    await newcomer.open(f"/transaction/{ground.transaction}")
    calls = page.get_by_role("region", name="Who calls whom")
    await calls.scroll_into_view_if_needed()
    await expect(calls).to_contain_text("the sender →")
    await expect(calls).to_contain_text("As the node tells it.")


async def test_the_slider_goes_over_sizes_that_were_simulated(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    page = newcomer.page
    await newcomer.open(f"/token/{ground.fair}")
    slider, told = page.get_by_label("Size in ETH"), page.locator("#size-told")
    await expect(told).to_contain_text("0.1 ETH $")
    await slider.press("Home")
    await expect(told).to_contain_text("0.01 ETH $")
    for _ in range(LEAST_SIZES):
        await slider.press("ArrowRight")
    await expect(told).to_contain_text("10 ETH $")
    await slider.press("Home")
    await told.get_by_role("link", name="Check it").click()
    await expect(page.locator("#sized")).to_contain_text("At 0.01 ETH:")


async def test_a_tab_shows_its_part_and_an_address_leads_into_it(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    page = newcomer.page
    await newcomer.open(f"/token/{ground.fair}")
    tabs = page.get_by_role("navigation", name="Parts of this page")
    await expect(page.get_by_role("heading", name="What was tried")).to_be_visible()
    await tabs.get_by_role("link", name="JSON").click()
    await expect(page.get_by_role("heading", name="For programs")).to_be_visible()
    await expect(page.get_by_role("heading", name="What was tried")).to_be_hidden()
    await expect(tabs.get_by_role("link", name="JSON")).to_have_attribute("aria-current", "true")
    await newcomer.open("/docs")
    await newcomer.open(f"/token/{ground.fair}#holders")
    await expect(page.get_by_role("heading", name="Who holds it")).to_be_visible()
    await expect(tabs.get_by_role("link", name="Holders")).to_have_attribute("aria-current", "true")


async def test_the_chart_draws_dollars_and_the_cap(newcomer: Visitor, ground: BrowserGround) -> None:
    page = newcomer.page
    await newcomer.open(f"/token/{ground.fair}")
    chart = page.get_by_role("region", name="Price", exact=True)
    await expect(chart.locator(".plot canvas")).to_be_visible()
    legend = chart.locator(".u-legend")
    await expect(legend).to_contain_text("Close$")
    dollars = await legend.inner_text()
    await chart.get_by_role("button", name="ETH").click()
    await expect(legend).not_to_contain_text("$")
    await chart.get_by_role("button", name="Cap").click()
    await expect(legend).to_contain_text("$")
    assert await legend.inner_text() != dollars


async def test_j_and_k_lead_through_a_board(newcomer: Visitor) -> None:
    page = newcomer.page
    await newcomer.open("/boards/graduating_soon")
    rows = page.locator("#rows [data-row]")
    await page.keyboard.press("j")
    await expect(rows.first.locator("a").first).to_be_focused()
    await page.keyboard.press("j")
    await expect(rows.nth(1).locator("a").first).to_be_focused()
    await page.keyboard.press("k")
    await expect(rows.first.locator("a").first).to_be_focused()


async def test_a_chip_filters_and_a_second_press_takes_it_back(newcomer: Visitor) -> None:
    page = newcomer.page
    await newcomer.open("/boards/graduating_soon")
    await page.get_by_role("link", name="80 % full or more").click()
    await page.wait_for_url("**?full=80")
    chosen = page.get_by_role("link", name="80 % full or more")
    await expect(chosen).to_have_attribute("aria-current", "true")
    await chosen.click()
    await page.wait_for_url(re.compile(r"/boards/graduating_soon\??$"))


async def test_a_transaction_is_run_again_in_two_presses(newcomer: Visitor, ground: BrowserGround) -> None:
    page = newcomer.page
    await newcomer.open(f"/transaction/{ground.transaction}")
    await page.get_by_role("link", name="Run this again now").click()
    await page.wait_for_url("**/simulate?tx=*")
    await newcomer.send("Simulate")
    await expect(page.get_by_role("heading", name="Result in block")).to_be_visible()
    await expect(page.get_by_role("region", name="Who calls whom")).to_contain_text("your wallet →")


async def test_the_docs_are_searched(newcomer: Visitor) -> None:
    page = newcomer.page
    await newcomer.open("/docs")
    await page.get_by_label("Search the documentation").fill("webhook signature")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/docs?q=*")
    await page.get_by_role("main").locator('a[href^="/docs/alerts.md#"]').first.click()
    await page.wait_for_url("**/docs/alerts.md#*")


async def test_a_phones_wallet_gets_a_code_on_a_desktop(newcomer: Visitor) -> None:
    await newcomer.open("/sign-in")
    await expect(newcomer.page.get_by_role("img", name="QR code of this page’s address")).to_be_visible()
    await newcomer.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    await expect(newcomer.page.get_by_role("img", name="QR code of this page’s address")).to_be_hidden()


@pytest.mark.parametrize("font", ["DejaVu Sans", "DejaVu Sans Mono", "DejaVu Serif"])
async def test_the_head_is_one_row_on_a_small_phone_in_every_font(newcomer: Visitor, font: str) -> None:
    page = newcomer.page
    await page.set_viewport_size({"width": SMALL_PHONE[0], "height": SMALL_PHONE[1]})
    await newcomer.open("/status")
    await page.evaluate("font => document.documentElement.style.setProperty('--font', font)", f'"{font}"')
    box = await page.locator("header.top").bounding_box()
    assert box is not None
    assert box["height"] <= HEADER_PX
    assert not await newcomer.is_wide()


async def test_a_phone_has_the_verdict_in_sight_and_jumps_little(
    browser: Browser, ground: BrowserGround
) -> None:
    async with visiting(browser, ground.url, PHONE, has_touch=True, is_mobile=True) as reader:
        await reader.context.add_init_script(f"({_SHIFTS})()")
        await reader.open(f"/token/{ground.fair}")
        tabs = await reader.page.locator(".tabs").bounding_box()
        assert tabs is not None
        assert tabs["y"] <= MOST_PX
        await expect(reader.page.locator("#stays")).to_be_in_viewport()
        await expect(reader.page.locator("#stays")).to_contain_text("Can sell")
        await reader.page.mouse.wheel(0, 1_500)
        await expect(reader.page.locator("#stays")).to_be_in_viewport()
        await expect(reader.page.locator(".plot canvas")).to_be_visible()
        assert await reader.page.evaluate("() => window.shifted") <= MOST_SHIFT
