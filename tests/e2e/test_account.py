"""Somebody who signs in with a wallet, in a real browser: what he makes, watches and tries."""

import asyncio
import re

import aiohttp
from playwright.async_api import expect

from e2e.browser import AnnouncedWallet, Visitor, install
from e2e.ground import BrowserGround
from support.keys import Person

PATIENCE_S, LOOK_S = 60.0, 0.5


async def wait_for_a_hit(visitor: Visitor, text: str, patience_s: float = PATIENCE_S) -> None:
    """The inbox, loaded again until it says so; bounded."""
    async with asyncio.timeout(patience_s):
        await visitor.open("/account/inbox")
        while not await visitor.page.get_by_role("listitem").filter(has_text=text).count():
            await asyncio.sleep(LOOK_S)
            await visitor.open("/account/inbox")


# --- signing in ------------------------------------------------------------------------------------


async def test_who_has_two_wallets_chooses_and_the_cookie_is_nobody_elses(
    newcomer: Visitor, person: Person
) -> None:
    page, other = newcomer.page, Person()
    await install(
        newcomer, AnnouncedWallet("First", other, other), AnnouncedWallet("Second <b>", person, person)
    )
    await newcomer.open("/sign-in")
    wallets = page.get_by_role("group", name="Wallets in this browser").get_by_role("button")
    await expect(wallets).to_have_text(["Sign in with First", "Sign in with Second <b>"])
    await expect(page.get_by_role("status")).to_have_text(
        "Choose your wallet. It shows you the text before you sign."
    )
    await wallets.nth(1).click()
    await page.wait_for_url("**/account")
    await newcomer.settled()
    await expect(page.get_by_role("main")).to_contain_text(person.address[-4:])
    cookie = await newcomer.cookie()
    assert cookie is not None
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert await page.evaluate("() => document.cookie") == ""
    assert cookie["value"] not in await page.content()


async def test_who_refuses_to_sign_is_told_that_nothing_happened(newcomer: Visitor, person: Person) -> None:
    await install(newcomer, AnnouncedWallet("Shy", person, None))
    await newcomer.open("/sign-in")
    await newcomer.page.get_by_role("button", name="Sign in with Shy").click()
    await expect(newcomer.page.get_by_role("status")).to_have_text(
        "You did not sign, so you are not signed in."
    )
    assert newcomer.page.url.endswith("/sign-in")
    assert await newcomer.cookie() is None


async def test_a_signature_of_another_wallet_opens_nothing(newcomer: Visitor, person: Person) -> None:
    newcomer.expected.append("status of 401")
    await install(newcomer, AnnouncedWallet("Liar", person, Person()))
    await newcomer.open("/sign-in")
    async with newcomer.page.expect_navigation():
        await newcomer.page.get_by_role("button", name="Sign in with Liar").click()
    await expect(newcomer.page.get_by_role("alert")).to_contain_text("bad_signature")
    assert await newcomer.cookie() is None


async def test_without_a_wallet_it_says_so(newcomer: Visitor) -> None:
    await newcomer.open("/sign-in")
    await expect(newcomer.page.get_by_role("status")).to_contain_text("No wallet was found in this browser.")


async def test_a_wallet_of_before_is_found_too(newcomer: Visitor, person: Person) -> None:
    await newcomer.context.add_init_script(
        "window.ethereum = { request: async () => ['%s'] };" % person.shown  # noqa: UP031
    )
    await newcomer.open("/sign-in")
    wallet = newcomer.page.get_by_role("button", name="Sign in with the wallet of this browser")
    await expect(wallet).to_be_visible()


async def test_who_signs_out_is_out_here_and_everywhere(member: Visitor) -> None:
    cookie = await member.cookie()
    await member.send("Sign out")
    assert member.page.url == f"{member.url}/"
    assert await member.cookie() is None
    await expect(member.page.get_by_role("link", name="Sign in").first).to_be_visible()
    assert cookie is not None
    await member.context.add_cookies(
        [{"name": str(cookie["name"]), "value": str(cookie["value"]), "url": member.url}]
    )
    await member.open("/account")
    assert member.page.url.endswith("/sign-in")


async def test_what_needs_an_account_leads_to_where_one_is_made(newcomer: Visitor) -> None:
    await newcomer.open("/account/inbox")
    assert newcomer.page.url.endswith("/sign-in")


# --- keys ------------------------------------------------------------------------------------------


async def test_a_key_that_is_made_on_the_page_asks_until_it_is_revoked(member: Visitor) -> None:
    page = member.page
    await member.open("/account/keys")
    await page.get_by_label("Label").fill("my bot")
    await member.send("Sign with Test wallet")
    new = page.get_by_role("region", name="Your new key, my bot")
    key = await new.get_by_role("code").first.inner_text()
    assert await _status_of(member.url, key) == 200
    await member.open("/account/keys")
    assert key not in await page.content()
    await member.send(f"Revoke {key[:8]}")
    assert await _status_of(member.url, key) == 401


async def _status_of(url: str, key: str) -> int:
    headers = {"authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(url) as session, session.get("/v1/credits", headers=headers) as answer:
        return answer.status


# --- flagging --------------------------------------------------------------------------------------


async def test_a_token_is_flagged_on_its_page(member: Visitor, ground: BrowserGround) -> None:
    page = member.page
    await member.open(f"/token/{ground.fair}")
    await page.get_by_role("link", name="Predictions", exact=True).click()
    flags = page.locator("#predictions")
    await flags.locator("summary").click()
    await flags.get_by_role("radio", name="runs").check()
    await flags.get_by_role("button", name="Flag it").click()
    await expect(flags.get_by_role("status")).to_be_visible(timeout=20_000)
    await expect(flags).to_contain_text("You say that it")
    await flags.locator("summary").click()
    await expect(flags.get_by_role("radio", name="runs")).to_be_disabled()
    await member.open(f"/token/{ground.fair}/flags")
    await expect(page.get_by_role("main")).to_contain_text("You say that it")


# --- watching --------------------------------------------------------------------------------------


async def test_a_rule_hits_and_the_inbox_tells(member: Visitor, ground: BrowserGround) -> None:
    page = member.page
    await (
        page.get_by_role("navigation", name="Account").get_by_role("link", name="Alerts", exact=True).click()
    )
    await page.get_by_label("Alert me about").fill(f"any buying on {ground.fair}")
    # It follows the form, and is there on a button's press as well.
    await expect(page.locator("#preview")).to_contain_text("This rule would have sent", timeout=20_000)
    await member.send("Preview")
    await expect(page.get_by_role("heading", name="This rule would have sent")).to_be_visible()
    await member.send("Set the rule")
    await expect(
        page.get_by_role("code").filter(has_text=f"any buying on {ground.fair}").first
    ).to_be_visible()
    await ground.buy_fair()
    await wait_for_a_hit(member, "bought")
    row = page.get_by_role("listitem").filter(has_text="bought").first
    await row.get_by_role("link", name="transaction").click()
    await page.wait_for_url(re.compile("/transaction/0x[0-9a-f]{64}$"))
    await expect(page.locator("#main")).to_contain_text("bought")


async def test_a_rule_that_is_none_is_told_beside_the_form(member: Visitor) -> None:
    member.expected.append("status of 400")
    await member.open("/account/watch")
    await member.page.get_by_label("Alert me about").fill("any bying <b>")
    await member.send("Set the rule")
    await expect(member.page.get_by_role("alert")).to_contain_text("bad_input")
    await expect(member.page.get_by_label("Alert me about")).to_have_value("any bying <b>")


# --- practising ------------------------------------------------------------------------------------


async def practise(member: Visitor, token: str) -> None:
    await member.open("/account/practice")
    await member.page.get_by_label("Token’s address").fill(token)
    await member.send("Buy with pretend eth")


async def test_a_practice_trade_there_and_back(member: Visitor, ground: BrowserGround) -> None:
    page = member.page
    await practise(member, ground.fair)
    await expect(page.get_by_role("status")).to_contain_text("0.1")
    held = page.get_by_role("table").first
    await expect(held.locator(f'a[href="/token/{ground.fair}"]')).to_be_visible()
    await held.get_by_label("Percent").fill("100")
    await member.send("Sell")
    await expect(page.get_by_text("Every account begins with one practice eth")).to_be_visible()
    for side in ("buy", "sell"):
        row = page.get_by_role("row").filter(has=page.get_by_role("cell", name=side, exact=True))
        await expect(row.locator(f'a[href="/token/{ground.fair}"]')).to_be_visible()


async def test_a_trap_is_not_practised_to_a_profit(member: Visitor, ground: BrowserGround) -> None:
    """What cannot be sold is refused as it would be on the chain."""
    page = member.page
    await practise(member, ground.trap)
    await expect(page.get_by_role("table").first).to_contain_text("Worth if sold now")
    await expect(page.get_by_role("table").first).to_contain_text("cannot be sold")
    await expect(page.get_by_role("button", name="Sell")).to_have_count(0)
    await page.get_by_text("Write it off", exact=True).click()
    member.expected.append("status of 4")
    await member.send("Try to sell, then write it off")
    await expect(page.get_by_role("alert")).to_contain_text("Nothing was sold. ")
    await expect(page.get_by_role("alert")).to_contain_text("would_fail")
    await expect(page.get_by_role("table").first.locator(f'a[href="/token/{ground.trap}"]')).to_be_visible()
