"""The way from a token that somebody watches to the alert that it stopped selling, and back to its page."""

import asyncio

import pytest
from playwright.async_api import expect

from e2e.browser import AXE, PHONE, Visitor
from e2e.ground import BrowserGround, asked
from e2e.test_account import wait_for_a_hit
from e2e.test_every_page import violations
from roundtrip_development.devnet.deploy import ContractDeployer, calldata, put_token
from roundtrip_development.devnet.stories import Story
from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.actors import code_of

SOURCE = "zoo/pausable_owner.vy"
GUARD_S = 150.0
"""Two runs of the guard, and the check between them."""
SHARED_S = 60.0


class OwnedToken:
    """A token of the local chain, and the account that may turn its selling off."""

    def __init__(self, ground: BrowserGround) -> None:
        self._rpc_url, self._contracts = ground.rpc_url, ground.built.contracts
        self._owner = ground.built.accounts[8]
        with SyncRpc(self._rpc_url) as chain:
            owner = ContractDeployer(chain, self._owner, 6_000_000)
            weth, positions = self._contracts["weth"], self._contracts["v3PositionManager"]
            owner.send(weth, calldata("deposit()"), 20 * 10**18)
            owner.send(weth, calldata("approve(address,uint256)", positions, 20 * 10**18))
            self.address = put_token(
                owner, self._contracts, Story("watched", "", SOURCE, "Watched", "WTCH"), code_of(SOURCE)
            )
            owner.check_receipts()

    def stop_selling(self) -> None:
        with SyncRpc(self._rpc_url) as chain:
            owner = ContractDeployer(chain, self._owner, 6_000_000)
            owner.receipt(owner.send(self.address, calldata("setSelling(bool)", False)))


async def until_unsellable(url: str, token: str) -> None:
    """Checks until an answer is younger than the owner's act: answers are shared for some seconds."""
    async with asyncio.timeout(SHARED_S):
        while (await asked(url, "check_token", address=token))["verdict"]["code"] != "cannot_sell":  # noqa: ASYNC110
            await asyncio.sleep(1)


@pytest.fixture
async def owned(ground: BrowserGround) -> OwnedToken:
    return await asyncio.to_thread(OwnedToken, ground)


async def test_who_watches_a_token_is_told_that_it_stopped_selling(
    member: Visitor, ground: BrowserGround, owned: OwnedToken
) -> None:
    page = member.page
    await member.open(f"/token/{owned.address}")
    await expect(page.locator(".hero .word")).to_contain_text("Can sell")
    await page.get_by_role("button", name="Watch: tell me if this stops selling").click()
    await expect(page.get_by_text("You watch it.")).to_be_visible()
    await member.open("/account/watch")
    await expect(page.locator(f'a.shown[href="/token/{owned.address}"]')).to_contain_text("Can sell")

    await asyncio.to_thread(owned.stop_selling)
    # Somebody asks for a check, which the guard reads; it makes the one that confirms it.
    await until_unsellable(ground.url, owned.address)
    await wait_for_a_hit(member, "You watch", GUARD_S)
    row = page.get_by_role("listitem").filter(has_text="You watch").first
    await expect(row.locator(".chip")).to_have_text("Honeypot: you cannot sell")
    await page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    await page.evaluate(AXE.read_text())
    assert await violations(member) == []
    assert not await member.is_wide()
    await row.locator(f'a[href="/token/{owned.address}"]').first.click()
    await page.wait_for_url(f"**/token/{owned.address}")
    await member.settled()
    await expect(page.locator(".hero .word")).to_contain_text("Honeypot: you cannot sell")
    await page.get_by_role("button", name="Stop watching").click()
    await expect(page.get_by_role("button", name="Watch: tell me if this changes")).to_be_visible()


async def test_watching_leads_to_sign_in_and_back(newcomer: Visitor, ground: BrowserGround) -> None:
    await newcomer.open(f"/token/{ground.fair}")
    await newcomer.page.get_by_role("link", name="Watch: tell me if this stops selling").click()
    await newcomer.page.wait_for_url(f"**/sign-in?to=/token/{ground.fair}")
    await expect(newcomer.page.locator('input[name="to"]')).to_have_value(f"/token/{ground.fair}")
