"""The home page and the boards, as a browser gets them without scripts."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape

import aiohttp

from roundtrip.domain.base.types import Address
from roundtrip.services.boards.newest_verdicts import MAX_SHOWN
from roundtrip.services.runtime.context import Context
from roundtrip.store.check import evidence
from support.console_house import BROWSER, ConsoleHouse
from support.fixtures import closed_database
from support.keys import Person
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


async def test_a_window_is_in_the_stream_and_in_every_link_of_the_board(house: ConsoleHouse) -> None:
    _, page, _ = await house.get("/boards/moving_now?window=24h&verdict=ok")
    assert 'sse-connect="/boards/moving_now/live?window=24h"' in page
    assert '<a href="/boards/moving_now?window=24h&amp;verdict=ok" aria-current="true">24 h</a>' in page
    assert '<input type="hidden" name="window" value="24h">' in page
    assert "data-usual" not in page
    _, page, _ = await house.get("/boards/moving_now?window=a-year")
    assert 'sse-connect="/boards/moving_now/live" hx-ext="sse" data-usual data-needs=""' in page


async def test_verdicts_go_on_on_older_pages(house: ConsoleHouse) -> None:
    async with house.ctx.pool.acquire() as connection:
        now = datetime.fromtimestamp(house.ctx.now_s(), UTC)
        for number in range(1, MAX_SHOWN + 3):
            kept = evidence.KeptEvidence(now, 1, "p", "ok", "ok", b"")
            await evidence.keep(connection, Address(f"0x{number:040x}"), kept)
    _, page, _ = await house.get("/boards/newest_verdicts")
    shown = re.findall(r'<tr data-row="(0x\w+)"', page)
    assert len(shown) == MAX_SHOWN
    (older,) = re.findall(r'<a class="btn" href="([^"]+)">Older checks', page)
    status, page, _ = await house.get(unescape(older))
    more = re.findall(r'<tr data-row="(0x\w+)"', page)
    assert (status, "sse-connect" in page) == (200, False)
    # The service may check a token of its own meanwhile.
    own = [row for row in (*shown, *more) if int(row, 16) <= MAX_SHOWN + 2]
    assert own == [f"0x{number:040x}" for number in range(MAX_SHOWN + 2, 0, -1)]
    assert not {*more} & {*shown}
    # Its heads, chips and form stay on it, and one link leads to the newest.
    before = older.partition("before=")[2]
    table = re.findall(r'<th scope="col"[^>]*><a href="([^"]+)"', page)
    chips = re.findall(r'aria-label="Show only">(.*?)</p>', page)[0]
    assert all(f"before={before}" in link for link in table)
    assert chips.count(f"before={before}") == chips.count("href=") == 3
    assert f'<input type="hidden" name="before" value="{before}">' in page
    assert '<a href="/boards/newest_verdicts">The newest</a>' in page
    _, page, _ = await house.get(f"/boards/newest_verdicts?before={before}&verdict=danger")
    # Tests before this one may have made checks of traps.
    is_empty = '<tr data-row="' not in page
    assert (f'<a href="/boards/newest_verdicts?before={before}">Show all' in page) is is_empty
    assert (await house.get("/boards/newest_verdicts?before=1"))[0] == 200
    _, page, _ = await house.get("/")
    (made,) = re.findall(r"About ([0-9,]+) checks so far", page)
    assert int(made.replace(",", "")) >= MAX_SHOWN + 2
    for wrong in ("what", "-1", "0", "9" * 19, "9" * 5000):
        assert (await house.get(f"/boards/newest_verdicts?before={wrong}"))[0] == 400


async def test_who_is_signed_in_sees_what_he_watches(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    _, page, _ = await house.get("/boards/graduating_soon", session)
    assert 'data-watched=""' in page
    token = re.findall(r'<tr data-row="(0x\w+)"', page)[0]
    (csrf,) = re.findall(r'data-csrf="(\w+)"', page)
    assert (await house.post(f"/token/{token}/watch", {"csrf": csrf, "off": ""}, session))[0] == 303
    _, page, _ = await house.get("/boards/graduating_soon", session)
    assert f'data-watched="{token}"' in page
    _, page, _ = await house.get("/boards/graduating_soon")
    assert "data-watched" not in page
