"""What each size loses, as a piece of a token's page: the same figures as checks, and never a pass."""

import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from roundtrip.config.settings import Settings
from roundtrip.services.check.size_curve import SIZES_WEI, SizePoint, count_cheap, size_curve, split_sizes
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import TokenParams
from roundtrip_development.devnet.world import Built
from support.serving import service

SIZES = ("0.01", "0.03", "0.1", "0.3", "1", "2", "5", "10")


@pytest.fixture
async def url(indexed: Context) -> AsyncIterator[str]:
    async with service(indexed, Settings(anon_per_minute=10_000)) as found:
        yield found


async def read(context: Context, token: str) -> list[SizePoint]:
    return (await size_curve(context, TokenParams(token))).answer.points


@pytest.mark.parametrize("story", ["plain", "v4_eth", "usdg_pool", "curve", "v4_fee_on_sell"])
async def test_a_size_loses_what_a_check_of_it_says(
    indexed: Context, built: Built, url: str, story: str
) -> None:
    found = {point.eth: point for point in await read(indexed, built.tokens[story])}
    assert tuple(found) == SIZES
    async with (
        aiohttp.ClientSession() as browser,
        browser.get(f"{url}/v1/check/{built.tokens[story]}") as one,
    ):
        loss_bps = (await one.json())["trade"]["roundTripLossBps"]
    point = found["0.1"]
    assert point.came == "sells"
    assert point.loss_bps is not None
    assert abs(point.loss_bps - loss_bps) <= 2


async def test_what_does_not_sell_has_no_loss_and_no_largest_size(indexed: Context, built: Built) -> None:
    answer = (await size_curve(indexed, TokenParams(built.tokens["owner_only_sell"]))).answer
    assert {point.came for point in answer.points} == {"refused"}
    assert [point.lost_bps() for point in answer.points] == [None] * len(SIZES)
    assert (answer.largest_eth, answer.is_deeper) == (None, False)


async def test_a_limit_of_the_token_ends_the_curve(indexed: Context, built: Built) -> None:
    """``max_transaction`` takes small trades alone."""
    found = await read(indexed, built.tokens["max_transaction"])
    assert found[0].came == "sells"
    assert found[-1].came == "refused"


async def test_where_nothing_can_be_bought_nothing_is_drawn(indexed: Context, built: Built, url: str) -> None:
    assert await read(indexed, built.tokens["no_pool"]) == []
    async with aiohttp.ClientSession() as browser:
        async with browser.get(f"{url}/token/{built.tokens['no_pool']}/sizes") as page:
            assert "Not known: no venue takes 0.1 ETH now." in await page.text()
        async with browser.get(f"{url}/token/{built.tokens['plain']}/sizes") as page:
            shown = await page.text()
    assert re.findall(r'data-eth="([\d.]+)"', shown) == list(SIZES)
    assert "This is no verdict: a check at a size tries more." in shown


@pytest.mark.parametrize("story", ["plain", "v4_eth", "max_transaction"])
async def test_the_largest_size_was_tried_and_loses_little(
    indexed: Context, built: Built, url: str, story: str
) -> None:
    answer = (await size_curve(indexed, TokenParams(built.tokens[story]))).answer
    assert answer.largest_eth is not None
    cheap = [point.eth for point in answer.points if point.is_cheap()]
    costly = [point.eth for point in answer.points if not point.is_cheap()]
    assert float(cheap[-1]) <= float(answer.largest_eth) < float(costly[0])
    async with (
        aiohttp.ClientSession() as browser,
        browser.get(f"{url}/v1/check/{built.tokens[story]}", params={"amount": answer.largest_eth}) as one,
    ):
        trade = (await one.json())["trade"]
    tried = SizePoint(answer.largest_eth, "sells", trade["roundTripLossBps"], trade["priceImpactBps"])
    assert tried.is_cheap()


def test_sizes_are_cheap_up_to_the_first_that_is_not() -> None:
    cheap, costly, refused = (
        SizePoint("1", "sells", 60, 0),
        SizePoint("2", "sells", 600, 0),
        SizePoint("3", "refused"),
    )
    assert count_cheap([]) == count_cheap([costly, cheap]) == count_cheap([refused]) == 0
    assert count_cheap([cheap, cheap, costly, cheap]) == count_cheap([cheap, cheap, refused]) == 2
    assert count_cheap([cheap, cheap]) == 2


def test_between_two_sizes_lie_rounded_ones() -> None:
    assert split_sizes(1_000, 2_000) == [1_100, 1_200, 1_300, 1_500, 1_600, 1_700, 1_800]
    assert split_sizes(10, 12) == [11]
    assert split_sizes(10, 11) == []


def test_what_is_lost_counts_the_impact() -> None:
    assert SizePoint("1", "sells", 200, 1000).lost_bps() == 1180
    assert SizePoint("1", "sells", 499, 0).is_cheap()
    assert not SizePoint("1", "sells", 500, 0).is_cheap()
    assert not SizePoint("1", "part", 100, 0).is_cheap()
    assert not SizePoint("1", "refused").is_cheap()
    assert len(SIZES_WEI) == len(SIZES)
