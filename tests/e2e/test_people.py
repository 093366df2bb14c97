"""What all pages have for people: times that stay current, a search at a key, limits that pass by themselves,
and the documentation's explorer."""

import re
from datetime import datetime, timedelta

import pytest
from playwright.async_api import Route, expect

from e2e.browser import Visitor
from e2e.ground import BrowserGround


async def test_times_are_told_as_people_tell_them_and_exact_on_a_click(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    await newcomer.open(f"/transaction/{ground.transaction}")
    time = newcomer.page.locator("time[data-ago]").first
    at = datetime.fromisoformat(await time.get_attribute("datetime") or "")
    # The local chain's clock is not the browser's.
    await newcomer.page.clock.set_fixed_time(at + timedelta(minutes=3))
    await newcomer.open(f"/transaction/{ground.transaction}")
    await expect(time).to_have_text(re.compile(r"^3\smin\sago$"))
    await time.hover()
    await expect(time).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC · "))
    await time.click()
    await expect(time).to_have_text(re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$"))


async def test_a_slash_goes_to_the_search_and_is_a_slash_there(newcomer: Visitor) -> None:
    await newcomer.open("/status")
    await newcomer.page.keyboard.press("/")
    search = newcomer.page.get_by_role("searchbox")
    await expect(search).to_be_focused()
    await newcomer.page.keyboard.press("/")
    await expect(search).to_have_value("/")


_PASTE = """text => {
    const data = new DataTransfer();
    data.setData("text", text);
    const event = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
    return document.activeElement.dispatchEvent(event);
}"""


@pytest.mark.parametrize("form", ["{}", " {}\n", "https://scan.example/token/{}?tab=holders", "check {} pls"])
async def test_a_paste_of_one_address_goes_at_once(
    newcomer: Visitor, ground: BrowserGround, form: str
) -> None:
    """From a token's page, whose search is empty: the next token is one paste away."""
    page = newcomer.page
    await newcomer.open(f"/token/{ground.fair}")
    await page.keyboard.press("Control+k")
    search = page.get_by_role("searchbox")
    await expect(search).to_be_focused()
    await expect(search).to_have_value("")
    await page.evaluate(_PASTE, form.format(ground.trap))
    await page.wait_for_url(f"**/token/{ground.trap}")


async def test_a_paste_of_two_addresses_or_into_a_text_is_only_a_paste(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    page = newcomer.page
    await newcomer.open("/status")
    await page.keyboard.press("/")
    assert await page.evaluate(_PASTE, f"{ground.fair} {ground.trap}")
    await page.get_by_role("searchbox").fill("what is ")
    assert await page.evaluate(_PASTE, ground.fair)


async def test_a_piece_beyond_a_limit_keeps_what_is_there_and_comes_by_itself(
    newcomer: Visitor, ground: BrowserGround
) -> None:
    newcomer.expected += ["429 (Too Many Requests)", "Response Status Error Code 429"]
    refused: list[str] = []

    async def refuse_once(route: Route) -> None:
        if refused:
            await route.continue_()
        else:
            refused.append(route.request.url)
            await route.fulfill(status=429, headers={"retry-after": "2"}, body="too fast")

    await newcomer.page.route("**/linked", refuse_once)
    await newcomer.open(f"/wallet/{ground.buyer}")
    before = newcomer.page.get_by_text("Searching for linked wallets…")
    await expect(newcomer.page.get_by_text("This part comes back by itself")).to_be_visible()
    await expect(before).to_be_visible()
    await expect(before).to_have_count(0)
    await expect(newcomer.page.get_by_text("This part comes back by itself")).to_have_count(0)


async def test_the_explorer_opens_within_the_pages_own_policy(newcomer: Visitor) -> None:
    await newcomer.open("/docs")
    await expect(newcomer.page.locator("#explorer")).to_be_empty()
    await newcomer.page.get_by_role("button", name="Open the API explorer").click()
    await expect(newcomer.page.locator("#explorer").get_by_text("/v1/check/{address}").first).to_be_visible()
