"""The quote on the form of a buy: a check at the form's amount, before a wallet is named."""

import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from roundtrip.config.settings import Settings
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.world import Built
from support.serving import service


@pytest.fixture
async def url(indexed: Context) -> AsyncIterator[str]:
    async with service(indexed, Settings(anon_per_minute=10_000)) as found:
        yield found


async def read_quote(url: str, **query: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as browser, browser.get(f"{url}/trade/quote", params=query) as page:
        return page.status, await page.text()


async def test_a_quote_tells_what_a_check_at_that_size_bought(url: str, built: Built) -> None:
    token = built.tokens["plain"]
    status, shown = await read_quote(url, token=token, amount="0.5", slippage="10")
    async with (
        aiohttp.ClientSession() as browser,
        browser.get(f"{url}/v1/check/{token}", params={"amount": "0.5"}) as one,
    ):
        trade = (await one.json())["trade"]
    assert status == 200
    cells = dict(re.findall(r"<dt>([^<]+)</dt><dd>(?:<span[^>]*>)?([\d.,]+)", shown))
    assert cells["You pay"] == "0.5"
    out = float(trade["tokensOut"])
    assert float(cells["You get about"].replace(",", "")) == pytest.approx(out, rel=2e-3)
    assert float(cells["At least"].replace(",", "")) == pytest.approx(out * 0.9, rel=2e-3)
    assert float(cells["Sold straight back"]) == pytest.approx(
        0.5 * (1 - trade["roundTripLossBps"] / 1e4), rel=1e-3
    )
    assert "Can sell" in shown


@pytest.mark.parametrize("story", ["owner_only_sell", "time_bomb"])
async def test_a_quote_of_a_trap_tells_no_figures(url: str, built: Built, story: str) -> None:
    status, shown = await read_quote(url, token=built.tokens[story], amount="0.1")
    assert status == 200
    assert '<article class="verdict-md t-danger">' in shown
    assert "You get about" not in shown
    assert "Sold straight back" not in shown


async def test_a_quote_with_much_impact_calls_its_loss_no_good(url: str, built: Built) -> None:
    _, shown = await read_quote(url, token=built.tokens["plain"], amount="10")
    assert re.search(r'<dd class="t-(warn|danger)">[\d.]+\W%', shown)
    assert "only if nobody trades between" in shown
    assert 't-ok">−' not in shown


async def test_a_quote_of_a_smaller_size_says_so(url: str, built: Built) -> None:
    _, shown = await read_quote(url, token=built.tokens["curve"], amount="10")
    assert "10 ETH did not go through.</strong>" in shown


async def test_all_may_slip(url: str, built: Built) -> None:
    status, shown = await read_quote(url, token=built.tokens["plain"], amount="0.1", slippage="100")
    assert status == 200
    assert "<dt>At least</dt><dd>0 <small>" in shown


async def test_a_quote_says_that_a_pool_takes_usdg(url: str, built: Built) -> None:
    _, shown = await read_quote(url, token=built.tokens["usdg_pool"], amount="0.1")
    assert "Its pool is not paid in ETH</strong>: the amount above is in USDG." in shown


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({}, None),
        ({"token": "0x12", "amount": "0.1"}, None),
        ({"amount": "50"}, "No quote: "),
        ({"amount": "0,5"}, "No quote: "),
        ({"amount": "none"}, "No quote: "),
        ({"amount": "0.1", "slippage": "-1"}, "No quote: The slippage must be a number"),
    ],
)
async def test_a_form_that_names_no_such_buy_has_no_quote(
    url: str, built: Built, query: dict[str, str], said: str | None
) -> None:
    token = {"token": built.tokens["plain"]} if "amount" in query else {}
    status, shown = await read_quote(url, **(token | query))
    assert status == 200
    assert (shown == "") if said is None else (said in shown and 'role="alert"' not in shown)
