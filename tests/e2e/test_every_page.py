"""Each page of the table in a real browser: fit for everybody and for a phone, and light of weight."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Browser, Response

from e2e.browser import AXE, DESKTOP, PHONE, SMALL_PHONE, Visitor, furnish, sign_in, visiting
from e2e.ground import BrowserGround
from e2e.places import PIECES, WHOLE, Example, examples, is_whole
from roundtrip.console.support.page_request import COOKIE
from support.keys import Person

MAX_BYTES, MAX_WITH_CHART = 150_000, 260_000
WITH_CHART = ("/token/{address}", "/token/{address}/chart")
NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
GRAVE = ("serious", "critical")


@dataclass(frozen=True, slots=True)
class Visitors:
    """Somebody who is in, somebody who is not, and where they can go."""

    member: Visitor
    newcomer: Visitor
    places: list[Example]

    def who(self, example: Example) -> list[Visitor]:
        """Who gets to see that page."""
        return [self.member] if example.signed_in else [self.member, self.newcomer]


@pytest.fixture(scope="module")
async def house(browser: Browser, ground: BrowserGround) -> AsyncIterator[Visitors]:
    async with visiting(browser, ground.url) as newcomer, visiting(browser, ground.url) as member:
        for visitor in (newcomer, member):
            await visitor.context.add_init_script(path=AXE)
        await sign_in(member, Person())
        await furnish(member, ground.fair, ground.buyer, ground.strange["script"].token)
        yield Visitors(member, newcomer, examples(ground))


async def test_every_row_of_the_table_is_a_page_or_known_as_a_piece(house: Visitors) -> None:
    cookie = await house.member.cookie()
    assert cookie is not None
    sent = f"{COOKIE}={cookie['value']}"
    whole = {one.pattern: await is_whole(house.member.url, one, sent) for one in house.places}
    assert {row for row, is_one in whole.items() if is_one} == set(WHOLE)
    assert {row for row, is_one in whole.items() if not is_one} == PIECES


@pytest.mark.parametrize("row", WHOLE)
async def test_nothing_grave_for_who_sees_or_moves_otherwise(house: Visitors, row: str) -> None:
    """By axe-core, light and dark, on a desk and on a phone, where tables scroll."""
    found: list[str] = []
    for example in _of(house, row):
        for visitor in house.who(example):
            await visitor.open(example.path)
            for width, height in (DESKTOP, PHONE):
                await visitor.page.set_viewport_size({"width": width, "height": height})
                # What scrolls at this size can be reached from the next frame on.
                await visitor.page.evaluate(NEXT_FRAME)
                for scheme in ("light", "dark"):
                    await visitor.page.emulate_media(color_scheme=scheme)
                    found += [f"{example.path} {width} {scheme}: {one}" for one in await violations(visitor)]
            await visitor.page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    assert not found, "\n".join(found)


async def violations(visitor: Visitor) -> list[str]:
    """Each with where it is."""
    result: dict[str, Any] = await visitor.page.evaluate(
        "() => axe.run(document, {resultTypes: ['violations'], elementRef: false})"
    )
    return [
        f"{one['impact']} {one['id']}: " + json.dumps([node["html"][:120] for node in one["nodes"][:3]])
        for one in result["violations"]
        if one["impact"] in GRAVE
    ]


@pytest.mark.parametrize("row", WHOLE)
async def test_a_phone_need_not_be_scrolled_sideways(house: Visitors, row: str) -> None:
    wide = []
    for example in _of(house, row):
        visitor = house.who(example)[0]
        await visitor.open(example.path)
        for width, height in (SMALL_PHONE, PHONE):
            await visitor.page.set_viewport_size({"width": width, "height": height})
            if await visitor.is_wide():
                wide.append(f"{example.path} at {width}")
    assert not wide, wide


@pytest.mark.parametrize("row", WHOLE)
async def test_all_that_a_page_loads_is_light(browser: Browser, house: Visitors, row: str) -> None:
    """With nothing kept from before, its pieces counted in."""
    heavy = []
    for example in _of(house, row):
        cookies = await house.member.context.cookies() if example.signed_in else []
        async with visiting(browser, house.member.url, storage_state={"cookies": cookies}) as visitor:
            await visitor.open(example.path)
            weight = sum([await _bytes_of(one) for one in visitor.came])
        assert weight > 0
        if weight >= (MAX_WITH_CHART if row in WITH_CHART else MAX_BYTES):
            heavy.append(f"{example.path}: {weight} bytes")
    assert not heavy, heavy


async def _bytes_of(response: Response) -> int:
    # A stream that stays open has no size.
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        return 0
    return (await response.request.sizes())["responseBodySize"]


def _of(house: Visitors, row: str) -> list[Example]:
    found = [one for one in house.places if one.pattern == row]
    assert found
    return found
