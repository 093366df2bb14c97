"""What strangers wrote shows as text, wherever it shows. A dialog, an error and a request to somebody else
are faults of every visit."""

import asyncio

import pytest
from playwright.async_api import expect

from e2e.browser import Visitor
from e2e.ground import STRANGE, BrowserGround
from e2e.test_account import wait_for_a_hit
from roundtrip.domain.base import names

HIDDEN = "() => [...document.body.innerText].filter((one) => /\\p{Cf}/u.test(one)).length"


def shown(which: str) -> tuple[str, str]:
    """Name and symbol of it as a page shows them."""
    name, symbol = STRANGE[which]
    return names.name(name) or "", names.symbol(symbol) or ""


async def is_text(visitor: Visitor, *texts: str) -> None:
    """Each stands there as a stranger's, whole and in its own direction; nothing of it became a part of the
    page, and nothing on the page is hidden."""
    for text in texts:
        marked = visitor.page.locator("bdi.stranger").get_by_text(text, exact=True)
        await expect(marked.first).to_be_visible()
        assert await marked.first.inner_text() == text
        assert await marked.first.evaluate("(one) => one.childElementCount") == 0
    became = 'img[src="x"], script:not([src]), main script:not([src^="/static/"]), bdi b'
    assert await visitor.page.locator(became).count() == 0
    assert await visitor.page.evaluate(HIDDEN) == 0


@pytest.mark.parametrize("which", STRANGE)
async def test_on_the_card_of_a_token(newcomer: Visitor, ground: BrowserGround, which: str) -> None:
    await newcomer.open(f"/token/{ground.strange[which].token}")
    name, symbol = shown(which)
    await is_text(newcomer, name, symbol)
    title = await newcomer.page.title()
    assert title.endswith("– roundtrip")
    assert name not in title


@pytest.mark.parametrize("board", ["moving_now", "graduating_soon"])
async def test_on_boards(newcomer: Visitor, ground: BrowserGround, board: str) -> None:
    await newcomer.open(f"/boards/{board}")
    await is_text(newcomer, *(shown(which)[1] for which in STRANGE))


async def test_in_a_wallet_and_a_transaction(newcomer: Visitor, ground: BrowserGround) -> None:
    await newcomer.open(f"/wallet/{ground.buyer}")
    await is_text(newcomer, *(shown(which)[1] for which in STRANGE))
    await newcomer.open(f"/transaction/{ground.transaction}")
    await is_text(newcomer, shown("script")[1])


async def test_where_it_is_looked_for(newcomer: Visitor) -> None:
    """Also what the visitor himself wrote."""
    for text in ('"><script>alert(9)</script>', "<img src=x onerror=alert(10)>"):
        await newcomer.open("/")
        await newcomer.page.get_by_role("searchbox").fill(text)
        await newcomer.page.keyboard.press("Enter")
        await newcomer.page.wait_for_url("**/search?**")
        await newcomer.settled()
        await is_text(newcomer, text)


async def test_in_the_inbox(member: Visitor, ground: BrowserGround) -> None:
    for which in STRANGE:
        await member.open("/account/watch")
        await member.page.get_by_label("Alert me about").fill(f"any buying on {ground.strange[which].token}")
        await member.send("Set the rule")
    await asyncio.gather(*(ground.buy_strange(which) for which in STRANGE))
    for which in STRANGE:
        await wait_for_a_hit(member, shown(which)[1])
        await is_text(member, shown(which)[1])


async def test_in_practice(member: Visitor, ground: BrowserGround) -> None:
    for which in STRANGE:
        await member.open("/account/practice")
        await member.page.get_by_label("Token’s address").fill(ground.strange[which].token)
        await member.send("Buy with pretend eth")
        await is_text(member, shown(which)[1])
