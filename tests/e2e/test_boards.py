"""Boards in a real browser: sorting, the keyboard, live rows that stay where they are, and the search."""

import re

import pytest
from playwright.async_api import Page, Route, expect

from e2e.browser import Visitor
from e2e.ground import BrowserGround, asked
from roundtrip.console.pages.boards import BOARDS

_WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
_CUT_OFF = """() => [...document.querySelectorAll('#rows td')]
    .filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.outerHTML.slice(0, 200))"""
_NEXT_ROWS = """() => {
    const rows = document.getElementById('rows').cloneNode(true);
    const list = [...rows.querySelectorAll('[data-row]')];
    const added = list[0].cloneNode(true);
    added.dataset.row = '0xadded';
    for (const row of list) row.querySelector('[data-label=Raised]').textContent = '77';
    list[0].before(list[1]);
    list[1].before(added);
    return rows.innerHTML;
}"""
_A_HUNDRED = """() => {
    const row = document.querySelector('#rows [data-row]');
    const rows = [...Array(100)].map((_, number) => {
        const copy = row.cloneNode(true);
        copy.dataset.row = number;
        return copy;
    });
    const group = row.parentNode;
    group.replaceChildren(...rows);
    for (const other of document.querySelectorAll('#rows tbody')) if (other !== group) other.remove();
    return row.dataset.row;
}"""
_PLACES = """() => {
    const rows = [...document.querySelectorAll('#rows [data-row]')];
    const tops = rows.map((row) => row.getBoundingClientRect().top);
    return tops.map((top) => Math.round(top - tops[0]));
}"""


@pytest.mark.parametrize("board", [board.tool for board in BOARDS])
async def test_a_phone_shows_every_cell_whole(newcomer: Visitor, board: str) -> None:
    page = newcomer.page
    await page.set_viewport_size({"width": 390, "height": 844})
    await newcomer.open(f"/boards/{board}")
    await expect(page.locator("#rows [data-row]").first).to_be_visible()
    assert await page.evaluate(_WIDER) is False
    assert await page.evaluate(_CUT_OFF) == []


async def test_a_click_on_a_heading_sorts_and_the_address_keeps_it(newcomer: Visitor) -> None:
    page = newcomer.page
    # Live news would change the numbers while they are read. The browser reports that the held stream ends.
    newcomer.expected.append("[object Event]")
    await _hold_stream(page, "graduating_soon")
    await newcomer.open("/boards/graduating_soon")
    await page.get_by_role("columnheader", name="Buys, 10 min").get_by_role("link").click()
    await page.wait_for_url("**/boards/graduating_soon?sort=buys")
    heading = page.get_by_role("columnheader", name="Buys, 10 min")
    await expect(heading).to_have_attribute("aria-sort", "descending")
    await newcomer.open("/boards/graduating_soon?sort=buys")
    # Tokens that a check calls a danger stand below the others, sorted apart.
    listed = page.locator('#rows .group-listed [data-label="Buys, 10 min"]')
    counts = [int(text.split()[0]) for text in await listed.all_inner_texts()]
    assert counts == sorted(counts, reverse=True)
    await page.locator("select[name=full]").select_option("95")
    await page.get_by_role("button", name="Show").click()
    await page.wait_for_url(re.compile("full=95"))
    fills = await page.locator("#rows [data-label=Full]").all_inner_texts()
    assert fills
    assert all(float(text.rstrip(" %")) >= 95 for text in fills)


async def test_arrows_lead_from_row_to_row_and_enter_opens(newcomer: Visitor) -> None:
    page = newcomer.page
    await newcomer.open("/boards/graduating_soon")
    rows = page.locator("#rows [data-row]")
    tokens = [await rows.nth(n).get_attribute("data-row") for n in range(2)]
    await rows.first.locator("a").first.focus()
    await page.keyboard.press("ArrowDown")
    await expect(rows.nth(1).locator("a").first).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await expect(rows.first.locator("a").first).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/token/{tokens[1]}")
    await newcomer.settled()


async def test_j_and_k_lead_through_a_hundred_rows_of_a_phone_and_enter_opens(newcomer: Visitor) -> None:
    page = newcomer.page
    newcomer.expected.append("[object Event]")
    await _hold_stream(page, "graduating_soon")
    await page.set_viewport_size({"width": 390, "height": 844})
    await newcomer.open("/boards/graduating_soon")
    token = await page.evaluate(_A_HUNDRED)
    for _ in range(101):
        await page.keyboard.press("j")
    last = page.locator("#rows [data-row='99'] .row-link")
    await expect(last).to_be_focused()
    await expect(last).to_be_in_viewport()
    await page.keyboard.press("k")
    await expect(page.locator("#rows [data-row='98'] .row-link")).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/token/{token}")
    await newcomer.settled()


async def test_a_star_in_the_row_watches_the_token_where_it_is(member: Visitor) -> None:
    page = member.page
    await member.open("/boards/graduating_soon")
    star = page.locator("#rows [data-row] .star").first
    await expect(star).to_have_attribute("aria-pressed", "false")
    for pressed in ("true", "false"):
        async with page.expect_response("**/watch"):
            await star.click()
        await expect(star).to_have_attribute("aria-pressed", pressed)
        await member.open("/boards/graduating_soon")
        await expect(star).to_have_attribute("aria-pressed", pressed)
    await member.settled()


async def test_a_press_on_a_window_counts_over_it_and_stays_live(newcomer: Visitor) -> None:
    page = newcomer.page
    await newcomer.open("/boards/moving_now")
    async with page.expect_request("**/boards/moving_now/live?window=24h"):
        await page.get_by_role("link", name="24 h", exact=True).first.click()
    await expect(page.locator("#state")).to_contain_text("Live")
    await page.get_by_role("link", name="Can sell", exact=True).click()
    await page.wait_for_url("**/boards/moving_now?window=24h&verdict=ok")
    await newcomer.settled()


async def test_the_whole_row_leads_to_its_page(newcomer: Visitor) -> None:
    page = newcomer.page
    await newcomer.open("/boards/winners")
    row = page.locator("#rows [data-row]").first
    wallet = await row.get_attribute("data-row")
    box = await row.locator("td").nth(3).bounding_box()
    assert box is not None
    await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    await page.wait_for_url(f"**/wallet/{wallet}")
    await newcomer.settled()


async def test_live_news_move_no_row_until_the_reader_asks(newcomer: Visitor) -> None:
    page = newcomer.page
    newcomer.expected.append("[object Event]")
    sent = await _hold_stream(page, "graduating_soon")
    await newcomer.open("/boards/graduating_soon")
    rows = page.locator("#rows [data-row]")
    first = await rows.first.get_attribute("data-row")
    used = rows.nth(2)
    await used.locator("a").first.focus()
    before = await used.inner_html()
    places = await page.evaluate(_PLACES)
    sent["rows"] = await page.evaluate(_NEXT_ROWS)
    news = page.get_by_role("button", name="1 new")
    await expect(news).to_be_visible()
    # Other rows changed where they are; the one in use did not, and none moved against another.
    await expect(rows.first.locator("[data-label=Raised]")).to_have_text("77")
    assert await used.inner_html() == before
    assert await rows.first.get_attribute("data-row") == first
    assert await page.evaluate(_PLACES) == places
    await news.press("Enter")
    await expect(rows.first).to_have_attribute("data-row", "0xadded")
    await expect(rows.first.locator("a").first).to_be_focused()
    await expect(news).to_be_hidden()


async def _hold_stream(page: Page, board: str) -> dict[str, str]:
    """Answers the board's stream with what the caller puts under ``rows``; the browser asks again."""
    sent: dict[str, str] = {}

    async def answer(route: Route) -> None:
        data = "".join(f"data: {line}\n" for line in sent.get("rows", "").splitlines())
        body = "retry: 200\n\n" + (f"event: rows\n{data}\n" if data else "")
        await route.fulfill(status=200, content_type="text/event-stream", body=body)

    await page.route(f"**/boards/{board}/live", answer)
    return sent


async def test_the_search_suggests_what_begins_so(newcomer: Visitor, ground: BrowserGround) -> None:
    page = newcomer.page
    token = (await asked(ground.url, "look_up", query=ground.fair))["token"]
    await newcomer.open("/status")
    await page.keyboard.press("/")
    await page.keyboard.type(token["symbol"][:3].lower())
    found = page.locator(f'.suggestions a[href="/token/{ground.fair}"]')
    await expect(found).to_be_visible()
    await expect(found.locator(".chip")).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await expect(page.locator(".suggestions a").first).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator(".suggestions")).to_have_count(0)
    await expect(page.get_by_role("searchbox")).to_be_focused()
    # A part of the name, without scripts' help.
    await page.get_by_role("searchbox").fill(token["name"][:-1])
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/search?**")
    await page.locator(f'main .suggestions a[href="/token/{ground.fair}"]').click()
    await page.wait_for_url(f"**/token/{ground.fair}")
    await newcomer.settled()
