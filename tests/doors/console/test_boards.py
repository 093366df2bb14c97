"""The home page and the boards, as a browser gets them without scripts."""

import re
from dataclasses import replace

import aiohttp

from roundtrip.services.runtime.context import Context
from support.console_house import BROWSER, ConsoleHouse
from support.fixtures import closed_database
from support.serving import service
from support.watching import SETTINGS


async def test_the_home_page_searches_first_and_says_in_words_what_comes_below(house: ConsoleHouse) -> None:
    status, page, _ = await house.get("/")
    assert status == 200
    order = [page.index(part) for part in ('id="find"', ">Just checked<", ">Moving now<", ">What this is<")]
    assert order == sorted(order)
    (focused,) = re.findall(r"<input[^>]* autofocus", page)
    assert focused.startswith('<input id="find"')
    assert 'sse-connect="/boards/newest_verdicts/live?short=1"' in page


async def test_the_home_page_stays_where_the_index_cannot_be_read(ctx: Context) -> None:
    away = replace(ctx, pool=closed_database())
    async with (
        service(away, SETTINGS) as url,
        aiohttp.ClientSession() as session,
        session.get(url, headers=BROWSER) as response,
    ):
        page = await response.text()
    assert response.status == 200
    assert 'id="find"' in page
    assert page.count("cannot be shown now") == 2


async def test_a_view_is_in_the_address_and_its_form_and_links_keep_it(house: ConsoleHouse) -> None:
    _, page, _ = await house.get("/boards/moving_now?sort=age&verdict=ok&dangers=hide&more=1")
    assert re.findall(r'<option value="(\w+)" selected>', page) == ["age", "ok"]
    assert 'name="dangers" value="hide" checked' in page
    assert 'data-needs="verdict-ok" data-hides="group-danger"' in page
    assert 'id="reload" href="/boards/moving_now?sort=age&amp;verdict=ok&amp;dangers=hide"' in page


async def test_each_curve_shows_a_verdict_or_that_it_is_checked(house: ConsoleHouse) -> None:
    _, page, _ = await house.get("/boards/graduating_soon")
    rows = re.findall(r"<tr data-row=.*?</tr>", page, re.S)
    assert rows
    for row in rows:
        assert ("being checked" in row) != ("chip t-" in row)
        assert row.count('class="row-link"') == 1
