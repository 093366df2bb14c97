"""The price and the trades of a token, in a real browser."""

import pytest
from playwright.async_api import Browser, Locator, expect

from e2e.browser import DESKTOP, PHONE, Visitor, visiting
from e2e.ground import BrowserGround


async def test_the_chart_is_drawn_once_it_is_seen_and_other_candles_can_be_chosen(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    page = newcomer.page
    await newcomer.open(f"/token/{ground.fair}")
    await page.get_by_role("heading", name="Price", exact=True).scroll_into_view_if_needed()
    chart = page.get_by_role("region", name="Price", exact=True)
    await expect(chart.locator(".plot canvas")).to_be_visible()
    await expect(chart.get_by_text("It was launched.")).to_be_visible()
    await chart.get_by_role("link", name="5m", exact=True).click()
    await expect(chart.get_by_role("link", name="5m", exact=True)).to_have_attribute("aria-current", "true")
    await expect(chart.locator(".plot canvas")).to_have_count(1)
    await chart.get_by_text("The newest candles as a table").click()
    await expect(chart.get_by_role("row")).not_to_have_count(1)


async def test_a_trade_appears_while_the_page_is_open(newcomer: Visitor, ground: BrowserGround) -> None:
    page = newcomer.page
    await newcomer.open(f"/token/{ground.fair}/trades")
    trades = page.get_by_role("region", name="The newest trades")
    await expect(trades.get_by_role("row").nth(1)).to_be_visible()
    bought = await ground.buy_fair()
    row = trades.locator("tr", has=page.locator(f'a[href="/transaction/{bought}"]'))
    await expect(row).to_contain_text("Buy 0.05 ETH", timeout=30_000)
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()


async def test_a_page_that_is_cut_off_says_so_and_keeps_its_rows(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    page = newcomer.page
    newcomer.expected.append("ERR_ABORTED")
    await newcomer.open(f"/token/{ground.fair}/trades")
    await page.route("**/trades", lambda route: route.abort("aborted"))
    await expect(page.get_by_text("Not live now")).to_be_visible(timeout=30_000)
    await expect(
        page.get_by_role("region", name="The newest trades").get_by_role("row").nth(1)
    ).to_be_visible()


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_without_scripts_there_is_a_line_and_a_table(
    browser: Browser, ground: BrowserGround, size: tuple[int, int]
) -> None:
    async with visiting(browser, ground.url, size, java_script_enabled=False) as reader:
        await reader.page.goto(f"{reader.url}/token/{ground.fair}/chart")
        chart = reader.page.get_by_role("region", name="Price", exact=True)
        await expect(chart.locator("svg.trend")).to_be_visible()
        await chart.get_by_text("The newest candles as a table").click()
        await expect(chart.get_by_role("row").nth(1)).to_be_visible()


async def test_on_a_phone_two_fingers_zoom_the_chart_and_one_moves_it(
    browser: Browser, ground: BrowserGround
) -> None:
    async with visiting(browser, ground.url, PHONE, has_touch=True, is_mobile=True) as reader:
        await reader.open(f"/token/{ground.fair}/chart?span=1d")
        over, canvas = reader.page.locator(".u-over"), reader.page.locator(".plot canvas")
        await over.scroll_into_view_if_needed()
        box = await over.bounding_box()
        assert box is not None
        whole = await _draws_other(canvas, "")
        touch = await reader.context.new_cdp_session(reader.page)

        async def move(*fingers: tuple[float, float]) -> None:
            for part in range(6):
                points = [
                    {"id": number, "x": box["x"] + start + (end - start) * part / 5, "y": box["y"] + 60}
                    for number, (start, end) in enumerate(fingers)
                ]
                kind = "touchMove" if part else "touchStart"
                await touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
            await touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

        await move((150, 60), (170, 240))
        zoomed = await _draws_other(canvas, whole)
        await move((60, 200))
        await _draws_other(canvas, zoomed)


async def _draws_other(canvas: Locator, before: str) -> str:
    """Waits until the picture is not ``before``; the picture."""
    seen = "canvas => canvas.toDataURL()"
    page, handle = canvas.page, await canvas.element_handle()
    await page.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before", arg=[handle, before], timeout=5_000
    )
    return str(await canvas.evaluate(seen))
