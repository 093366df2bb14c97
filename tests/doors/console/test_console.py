"""The pages as a browser gets them: what they guard, who is signed in, what a form may do."""

import re
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from roundtrip.api.admission.page_views import PIECES_PER_VIEW
from roundtrip.api.operations.catalog import OPERATIONS, tools
from roundtrip.app import http_server
from roundtrip.config.settings import Settings
from roundtrip.console.routes import PAGES
from roundtrip.console.support.page_request import COOKIE, SECURE_COOKIE, path_after_sign_in
from roundtrip.console.support.render import (
    decimal,
    ether,
    number,
    percent,
    refusal,
    render_sentence,
    stranger,
    usd,
)
from roundtrip.domain.accounts import keys
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.verdict import CODES
from roundtrip.domain.verdicts.words import code_text
from roundtrip.services.accounts.manage_keys import LIFETIME_S, MAX_SESSIONS
from roundtrip.services.runtime.context import Context
from roundtrip.store.index import tokens as token_store
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.console_house import BROWSER, ConsoleHouse, house_of
from support.keys import NOW_S, Person, kept_of, key_for, random_context, text_for
from support.serving import service
from support.watching import SETTINGS


def pages_of(built: Built) -> dict[str, str]:
    """Where each page of the table is found on the local chain, those that need nobody."""
    token = built.tokens["plain"]
    paths = {
        "{address}": token,
        "{board}": "graduating_soon",
        "{hash}": "0x" + "1" * 64,
        "{tool}": "check-token",
        "decisions/{page}": "decisions/0010-dialects.md",
        "{page}": "keys.md",
    }
    found = {}
    for page in PAGES:
        if page.method == "GET" and not page.signed_in and not page.streams:
            path = page.path
            for name, value in paths.items():
                path = path.replace(name, value)
            found[page.path] = path
    return found


# --- what a page is --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row", sorted({page.path for page in PAGES if page.method == "GET" and not page.streams})
)
async def test_every_page_guards_itself(house: ConsoleHouse, built: Built, row: str) -> None:
    """What does not need an account answers; what does leads to where one is made. None has a word of script
    or style in it, none asks anybody else."""
    signed_in = next(page.signed_in for page in PAGES if page.path == row)
    path = row.replace("{room}", "watch") if signed_in else pages_of(built)[row]
    status, page, headers = await house.get(path + ("?q=plain" if row == "/search" else ""))
    if signed_in:
        assert (status, headers["location"].partition("?")[0]) == (303, "/sign-in")
    elif row == "/search":
        assert status in (200, 303)
    elif row.startswith("/transaction/{hash}"):
        assert status in (404, 422)
    else:
        assert status == 200
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == ("private, no-cache" if status == 200 else "no-store")
    assert re.findall(r"<script(?![^>]* src=\"/static/)", page) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:", page) == []
    # A link asks nobody before it is followed.
    assert re.findall('(?<!<a href=")https?://(?!127[.]0[.]0[.]1)', page) == []
    assert len(page) < 60_000


@pytest.mark.parametrize(("path", "status"), [("/nothing", 404), ("/token", 404), ("/mcp", 405)])
async def test_where_nothing_is_a_browser_is_shown_a_page(
    house: ConsoleHouse, path: str, status: int
) -> None:
    answered, page, headers = await house.get(path)
    assert (answered, headers["content-type"]) == (status, "text/html; charset=utf-8")
    answer = "There is no such page" if status == 404 else "Your request did not succeed"
    assert f"<h1>{answer}</h1>" in page
    assert headers["content-security-policy"].startswith("default-src 'none';")
    assert ("POST" in headers.get("allow", "")) is (status == 405)
    answered, body, headers = await house.get(path, accept="application/json")
    assert (answered, headers["content-type"]) == (status, "application/json")
    assert '"error"' in body


async def test_what_programs_may_ask_can_be_read_by_people(house: ConsoleHouse) -> None:
    _, front, _ = await house.get("/status")
    assert re.findall('<a href="([^"]+)">(?:HTTP API|Tools)</a>', front) == ["/operations", "/tools"]
    _, docs, _ = await house.get("/docs")
    assert all(f'href="/operations#{one.name}"' in docs for one in OPERATIONS if one.path is not None)
    _, page, _ = await house.get("/operations")
    for one in OPERATIONS:
        assert (f"<code>{one.method} {one.path}</code>" in page) is (one.path is not None)
    _, page, _ = await house.get("/tools")
    paths = {one.name: f"/tools/{one.name.replace('_', '-')}" for one in tools()}
    assert [f'<a href="{path}">' in page for path in paths.values()] == [True] * 36
    for one in tools():
        status, page, _ = await house.get(paths[one.name])
        assert (status, f"<code>{one.name}</code>" in page) == (200, True)
    assert (await house.get("/tools/nothing"))[0] == 404


async def test_what_pages_load_is_ours_and_kept_for_ever(house: ConsoleHouse) -> None:
    _, page, _ = await house.get("/status")
    loaded = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
    assert len(loaded) >= 4
    weight = len(page)
    for path in loaded:
        async with (
            aiohttp.ClientSession(auto_decompress=False) as raw,
            raw.get(house.url + path, headers=BROWSER) as response,
        ):
            assert response.status == 200
            assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
            weight += len(await response.read())
    assert weight < 150_000


async def test_what_strangers_wrote_is_escaped_and_marked(house: ConsoleHouse, built: Built) -> None:
    _, page, _ = await house.get(f"/token/{built.tokens['strange_name']}")
    marked = re.findall(r'<bdi class="stranger" title="written by a stranger">(.*?)</bdi>', page)
    assert marked
    assert str(stranger("<script>alert(1)</script>")).count("<") == 2
    text = str(render_sentence('Sold "<img src=x>" (0x' + "a" * 40 + ") for <b>."))
    assert "<img" not in text
    assert "<b>" not in text
    assert f'href="/search?q=0x{"a" * 40}"' in text
    assert 'class="stranger"' in text


@pytest.mark.parametrize(
    ("exact", "shown"),
    [
        ("0.898421999387279529", "0.898421"),
        ("0.001578886612720471", "0.00157888"),
        ("0.99999999999", "0.999999"),
        ("12.345678901", "12.3456"),
        ("3968218.431120862500435297", "3,968,218"),
        ("0.123456", None),
        ("0.000000000000000000", "0"),
    ],
)
def test_a_long_decimal_of_a_sentence_is_cut_and_whole_for_who_hovers(exact: str, shown: str | None) -> None:
    answer = str(render_sentence(f"It came to {exact} eth."))
    cut = exact if shown is None else f'<span title="{exact}">{shown}</span>'
    assert answer == (f"It came to {cut}\xa0eth." if shown is None else f"It came to {cut} eth.")


async def test_what_a_wallet_holds_has_its_newest_check_and_tokens_have_their_symbol(
    house: ConsoleHouse, indexed: Context
) -> None:
    row = await indexed.pool.fetchrow(
        "SELECT wallet.address AS wallet, token.address AS token FROM facts.position AS position"
        " JOIN facts.address AS wallet ON wallet.id = position.wallet_id"
        " JOIN facts.address AS token ON token.id = position.token_id WHERE position.held_raw > 0 LIMIT 1"
    )
    assert row is not None
    wallet, token = ("0x" + row[name].hex() for name in ("wallet", "token"))
    await house.get(f"/token/{token}")
    _, page, _ = await house.get(f"/wallet/{wallet}")
    assert '<td class="all" data-label="Newest check"><span class="chip t-' in page
    assert "Launches outside the launchpad are not listed here" in page
    async with indexed.pool.acquire() as connection:
        await token_store.keep(connection, Address(token), "<b>", None, 18, None, 0)
    for path, text in (("liquidity", "Liquidity of"), ("flags", "Flags on")):
        _, page, _ = await house.get(f"/token/{token}/{path}")
        assert re.search(f'<h1>{text} <bdi class="stranger"[^>]*>&lt;b&gt;</bdi>', page)
    await indexed.pool.execute("DELETE FROM facts.token WHERE token = $1", row["token"])


async def test_a_wallets_trades_are_on_its_page_and_older_ones_a_page_further(
    house: ConsoleHouse, indexed: Context
) -> None:
    busiest = await indexed.pool.fetchval(
        "SELECT wallet.address FROM facts.position AS position JOIN facts.address AS wallet"
        " ON wallet.id = position.wallet_id GROUP BY 1 ORDER BY sum(buys + sells) DESC LIMIT 1"
    )
    wallet = f"0x{busiest.hex()}"
    _, page, _ = await house.get(f"/wallet/{wallet}")
    assert "Newest trades</h2>" in page
    path, found = f"/wallet/{wallet}/trades", list[str]()
    while path:
        status, page, _ = await house.get(path)
        assert status == 200
        rows = re.findall(r'<tr data-row="([0-9-]+)">', page)
        assert 0 < len(rows) <= 20
        found += rows
        older = re.search(r'href="([^"]*[?]before=[^"]*)"', page)
        path = "" if older is None else older.group(1)
    count = (
        "SELECT sum(buys + sells) FROM facts.position JOIN facts.address ON id = wallet_id WHERE address = $1"
    )
    assert len(set(found)) == len(found) == await indexed.pool.fetchval(count, busiest) > 20
    for before, status in (("1-1-1", 200), ("x", 400), (f"{2**31}-1-1", 400)):
        assert (await house.get(f"/wallet/{wallet}/trades?before={before}"))[0] == status


async def test_a_wallet_that_traded_nothing_has_a_page(house: ConsoleHouse, indexed: Context) -> None:
    quiet = await indexed.pool.fetchval(
        "SELECT address FROM facts.launch JOIN facts.address AS wallet ON wallet.id = deployer_id"
        " WHERE NOT EXISTS (SELECT FROM facts.position WHERE wallet_id = deployer_id) LIMIT 1"
    )
    status, page, _ = await house.get(f"/wallet/0x{quiet.hex()}")
    assert status == 200
    assert "Tokens it launched</h2>" in page
    assert "Newest trades" not in page


async def test_bad_input_is_told_on_a_page(house: ConsoleHouse) -> None:
    status, page, _ = await house.get("/token/0x12")
    assert status == 400
    assert "bad_address" in page
    assert "That is not a whole address" in page
    assert "Yours has 4 characters, not 42." in page
    assert 'value="0x12"' in page
    status, page, _ = await house.get("/token/0x12", hx_request="true")
    assert status == 200
    assert "<html" not in page
    # A pattern's "$" lets a line's end through.
    status, page, _ = await house.get(f"/token/0x{'0' * 40}%0a/holders")
    assert (status, "bad_address" in page) == (400, True)
    assert (await house.get("/boards/none"))[0] == 404
    assert (await house.get("/nowhere"))[0] == 404


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (number(1234567), "1,234,567"),
        (number(12345.678), '<span title="12345.678">12,340</span>'),
        (usd(120596.33), '<span title="$120596.33">$120,500</span>'),
        (number(0.1 + 0.7), "0.8"),
        (decimal("-0.0012345678"), '<span title="-0.0012345678">−0.001234</span>'),
        (decimal("0.25"), "0.25"),
        (percent(60), "0.60\xa0%"),
        (number(None), "–"),
    ],
)
def test_figures_have_four_digits_and_the_full_one_in_the_title(shown: str, text: str) -> None:
    assert str(shown) == text


def test_a_routers_code_is_told_in_words_and_a_token_reason_quoted() -> None:
    words = "the token refused the transfer"
    router = f"{words}, and the router gave no reason for it"
    assert str(refusal("STF")) == f'<span title="STF">{router}</span>'
    asked = f"{words} and gave no reason"
    assert str(refusal("STF", told=asked)) == f'<span title="STF">{asked}</span>'
    assert str(refusal("STF", is_short=True)) == ""
    assert "has not approved the router" in refusal("STF", is_callers=True)
    assert str(refusal("LOK")).startswith('<span title="LOK">the pool is not open yet, or ')
    assert ">LOK</bdi>" in refusal("LOK", is_short=True)
    assert ">paused</bdi>" in refusal("paused")
    assert "no reason given" in refusal(None)


def test_amounts_of_eth_have_one_unit_and_quotations_keep_theirs() -> None:
    assert ether('a trip of 0.1 eth; it says "pay 5 eth", an ether') == (
        'a trip of 0.1 ETH; it says "pay 5 eth", an ether'
    )


def test_each_code_of_a_verdict_has_words_beside_it() -> None:
    assert [code for code in CODES if not code_text("ok", code)] == []


FEW_VIEWS = SETTINGS.model_copy(update={"anon_per_minute": 1, "views_per_minute": 2})


async def test_a_page_counts_as_a_view_and_beyond_them_comes_back_by_itself(indexed: Context) -> None:
    clock = Clock()
    async with house_of(random_context(indexed, clock), clock, FEW_VIEWS) as house:
        # Not as calls, of which there is one; and what is shared is free.
        for board in ("winners", "signals", "winners", "signals"):
            assert (await house.get(f"/boards/{board}"))[0] == 200
        status, page, headers = await house.get("/boards/moving_now")
        assert (status, headers["retry-after"]) == (429, "60")
        assert '<noscript><meta http-equiv="refresh" content="60"></noscript>' in page
        assert 'data-comes-back="60"' in page
        clock.now_s += 61
        assert (await house.get("/boards/moving_now"))[0] == 200


@pytest.mark.parametrize("path", ["/wallet/0x{:040x}/linked", "/transaction/0x{:064x}/calls"])
async def test_a_piece_beyond_the_limit_is_an_error_that_keeps_what_is_there(
    indexed: Context, path: str
) -> None:
    clock = Clock()
    async with house_of(random_context(indexed, clock), clock, FEW_VIEWS) as house:
        came = [
            await house.get(path.format(number), hx_request="true")
            for number in range(2 * PIECES_PER_VIEW + 1)
        ]
    assert [status for status, _, _ in came] == [200] * (2 * PIECES_PER_VIEW) + [429]
    _, piece, headers = came[-1]
    assert (headers["retry-after"], "rate_limited" in piece, "<html" in piece) == ("60", True, False)


async def test_thirty_token_pages_in_a_minute_raise_no_limit(indexed: Context, built: Built) -> None:
    """As a service is by default, under a clock that stands still."""
    clock = Clock()
    tokens = list(built.tokens.values())[:30]
    async with house_of(random_context(indexed, clock), clock, Settings()) as house:
        for token in tokens:
            await indexed.heads.refresh()
            assert (await house.get(f"/token/{token}"))[0] == 200
    assert len(tokens) == 30


async def test_a_visitors_pages_may_be_shown_from_memory_and_a_members_not(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    paths = ("/status", "/boards/winners", "/nowhere")
    assert [(await house.get(path))[2]["cache-control"] for path in paths] == [
        "private, no-cache",
        "private, no-cache",
        "no-store",
    ]
    assert {(await house.get(path, session))[2]["cache-control"] for path in paths} == {"no-store"}


async def test_without_what_browsers_load_there_are_no_pages(
    indexed: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server.build_pages, "__defaults__", (tmp_path, tmp_path))
    async with service(indexed, SETTINGS) as url, aiohttp.ClientSession() as browser:
        async with browser.get(url, headers=BROWSER) as response:
            assert (response.status, response.content_type) == (200, "application/json")
        async with browser.get(f"{url}/status", headers=BROWSER) as response:
            assert response.status == 404
        async with browser.get(f"{url}/v1/health") as response:
            assert response.status == 200


# --- sessions --------------------------------------------------------------------------------------


async def test_what_a_link_fills_in_is_kept_through_signing_in(house: ConsoleHouse) -> None:
    wanted = f"/account/practice?token=0x{'a' * 40}"
    assert path_after_sign_in(f"/token/0x{'a' * 40}") == f"/token/0x{'a' * 40}"
    _, _, headers = await house.get(wanted)
    asked = headers["location"]
    assert asked == f"/sign-in?to={quote(wanted, safe='')}"
    _, page, _ = await house.get(asked)
    assert f'name="to" value="{wanted}"' in page
    person = Person()
    form = {"address": person.address, "signature": person.sign(await house.text(person)), "to": wanted}
    status, _, headers = await house.post("/sign-in", form)
    assert (status, headers["location"]) == (303, wanted)


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://example.com/",
        "//example.com/account/practice",
        "/\\example.com",
        "/account/practice?token=0x12",
        f"/account/practice?token=0x{'a' * 40}\n",
        f"//example.com/account/practice?token=0x{'a' * 40}",
        "/account/watch?rule=//example.com",
    ],
)
async def test_signing_in_leads_nowhere_else(house: ConsoleHouse, elsewhere: str) -> None:
    _, page, _ = await house.get(f"/sign-in?to={quote(elsewhere, safe='')}")
    assert 'name="to" value="/account"' in page
    person = Person()
    form = {"address": person.address, "signature": person.sign(await house.text(person)), "to": elsewhere}
    status, _, headers = await house.post("/sign-in", form)
    assert (status, headers["location"]) == (303, "/account")


async def test_a_signature_is_a_session_that_only_a_cookie_carries(house: ConsoleHouse) -> None:
    person = Person()
    text = await house.text(person)
    assert "Sign in to the pages of this service." in text
    status, page, headers = await house.post(
        "/sign-in", {"address": person.address, "signature": person.sign(text)}
    )
    cookie = SimpleCookie(headers["set-cookie"])[COOKIE]
    assert status == 303
    assert cookie["httponly"]
    assert cookie["samesite"].lower() == "strict"
    assert cookie["max-age"] == str(LIFETIME_S)
    assert cookie["path"] == "/"
    assert cookie.value not in page
    status, page, _ = await house.get("/account", cookie.value)
    assert status == 200
    assert cookie.value not in page
    assert person.address[-4:] in page


async def test_a_session_is_no_key_of_the_account(house: ConsoleHouse) -> None:
    person = Person()
    session = await house.signed_in(person)
    _, page, _ = await house.get("/account/keys", session)
    assert "You have no live key." in page
    for _ in range(keys.MAX_LIVE):
        await key_for(house.ctx, person)
    await house.signed_in(person)
    _, page, _ = await house.get("/account/keys", session)
    assert page.count("no label") == keys.MAX_LIVE


async def test_a_session_is_good_in_its_cookie_only(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    for headers in ({"authorization": f"Bearer {session}"}, {"x-api-key": session}):
        async with house.browser.get(f"{house.url}/v1/check/0x{'1' * 40}", headers=headers) as response:
            assert response.status == 401
            assert "bad_key" in await response.text()
    assert (await house.get("/account", session))[0] == 200


async def test_a_text_for_a_key_opens_no_session_and_the_other_way_round(house: ConsoleHouse) -> None:
    person = Person()
    for_key = person.sign(await text_for(house.ctx, person.address))
    status, page, headers = await house.post("/sign-in", {"address": person.address, "signature": for_key})
    assert (status, "set-cookie" in headers) == (401, False)
    assert "bad_signature" in page
    for_session = person.sign(await house.text(person))
    async with house.browser.post(
        f"{house.url}/v1/keys", json={"address": person.address, "signature": for_session}
    ) as response:
        assert response.status == 401


async def test_a_signature_opens_one_session(house: ConsoleHouse) -> None:
    person = Person()
    signature = person.sign(await house.text(person))
    form = {"address": person.address, "signature": signature}
    assert (await house.post("/sign-in", form))[0] == 303
    assert (await house.post("/sign-in", form))[0] == 401


async def test_a_session_ends_by_signing_out_by_time_and_by_many_others(house: ConsoleHouse) -> None:
    person = Person()
    session = await house.signed_in(person)
    status, _, headers = await house.post("/sign-out", {"csrf": await house.csrf(session)}, session)
    assert (status, headers["location"]) == (303, "/")
    assert SimpleCookie(headers["set-cookie"])[COOKIE].value == ""
    status, _, headers = await house.get("/account", session)
    assert (status, headers["location"]) == (303, "/sign-in")
    assert SimpleCookie(headers["set-cookie"])[COOKIE].value == ""
    first = await house.signed_in(person)
    last = [await house.signed_in(person) for _ in range(MAX_SESSIONS)][-1]
    assert (await house.get("/account", first))[0] == 303
    assert (await house.get("/account", last))[0] == 200
    assert (await kept_of(house.ctx, person.address)).live == MAX_SESSIONS
    house.clock.now_s = NOW_S + LIFETIME_S - 1
    assert (await house.get("/account", last))[0] == 200
    house.clock.now_s = NOW_S + LIFETIME_S + 1
    assert (await house.get("/account", last))[0] == 303


HTTPS = SETTINGS.model_copy(update={"public_url": "https://roundtrip.example"})


async def test_behind_https_the_cookie_is_this_hosts_alone(indexed: Context) -> None:
    clock, person = Clock(), Person()
    async with house_of(random_context(indexed, clock), clock, HTTPS) as house:
        form = {"address": person.address, "signature": person.sign(await house.text(person))}
        _, _, headers = await house.post("/sign-in", form)
        (set_cookie,) = headers.getall("set-cookie")
        cookie = SimpleCookie(set_cookie)[SECURE_COOKIE]
        # What browsers ask of a cookie of such a name.
        assert SECURE_COOKIE.startswith("__Host-")
        assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")
        assert (cookie["httponly"], cookie["samesite"].lower()) == (True, "strict")
        session = str(cookie.value)
        assert (await house.get("/account", Cookie=f"{SECURE_COOKIE}={session}"))[0] == 200
        # Another host of the domain, or plain http, can put a cookie of the plain name there.
        status, _, headers = await house.get("/account", session)
        assert (status, headers["location"]) == (303, "/sign-in")
        others = f"{COOKIE}={session}; {SECURE_COOKIE}=rs_{'0' * 49}"
        assert (await house.get("/account", Cookie=others))[0] == 303
        # Without Secure a browser would not let it be taken back.
        _, page, _ = await house.get("/account/watch", Cookie=f"{SECURE_COOKIE}={session}")
        (csrf,) = set(re.findall('name="csrf" value="([0-9a-f]{64})"', page))
        for path in ("/sign-out", "/account"):
            sent = {"Cookie": f"{SECURE_COOKIE}={session}"}
            signs_out = path == "/sign-out"
            came = await (house.post(path, {"csrf": csrf}, **sent) if signs_out else house.get(path, **sent))
            ended = SimpleCookie(came[2]["set-cookie"])[SECURE_COOKIE]
            assert (ended.value, ended["secure"], ended["path"], ended["max-age"]) == ("", True, "/", "0")


async def test_over_http_the_cookie_has_the_plain_name(house: ConsoleHouse) -> None:
    """Browsers would refuse the other one."""
    person = Person()
    form = {"address": person.address, "signature": person.sign(await house.text(person))}
    _, _, headers = await house.post("/sign-in", form)
    cookie = SimpleCookie(headers["set-cookie"])[COOKIE]
    assert (cookie["secure"], cookie["domain"]) == ("", "")


@pytest.mark.parametrize("cookie", ["", "x", "rt_" + "0" * 49, "a;b", '"'])
async def test_a_cookie_that_is_no_session_is_nobody(house: ConsoleHouse, cookie: str) -> None:
    status, _, headers = await house.get("/account", cookie)
    assert (status, headers["location"]) == (303, "/sign-in")


@pytest.mark.parametrize("beside", ['a={"x": 1}; {}', "a=b c; {}", "é; {}; é", '{}; a="', "x{}=; {}"])
async def test_a_session_stands_beside_whatever_cookies_others_put_there(
    house: ConsoleHouse, beside: str
) -> None:
    """A host's ports share their cookies, and not everybody's are well formed."""
    session = await house.signed_in(Person())
    cookie = beside.replace("{}", f"{COOKIE}={session}")
    status, _, _ = await house.get("/account", cookie=None, Cookie=cookie)
    assert status == 200


async def test_another_key_in_the_request_is_not_a_pages(house: ConsoleHouse) -> None:
    """A page that is signed in is that of its cookie alone."""
    person, other = Person(), Person()
    session, key = await house.signed_in(person), (await key_for(house.ctx, other))["key"]
    _, page, _ = await house.get("/account", session, x_api_key=key)
    assert person.address[-4:] in page
    assert (await house.get("/account", None, x_api_key=key))[0] == 303


# --- forms -----------------------------------------------------------------------------------------


async def test_a_form_does_what_its_tool_does(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    csrf = await house.csrf(session)
    status, page, _ = await house.post(
        "/account/do/create_rule", {"csrf": csrf, "rule": "any buying over 1 eth"}, session
    )
    assert status == 200
    found = re.search(r'name="id" value="(\d+)"', page)
    assert found is not None
    assert "<code>any buying over 1 eth</code>" in page
    status, page, _ = await house.post(
        "/account/do/delete_rule", {"csrf": csrf, "id": found.group(1)}, session
    )
    assert status == 200
    assert "<code>any buying over 1 eth</code>" not in page


async def test_what_does_not_fit_is_told_beside_the_form(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    csrf = await house.csrf(session)
    status, page, _ = await house.post(
        "/account/do/create_rule", {"csrf": csrf, "rule": '"><script>'}, session
    )
    assert status == 400
    assert "bad_input" in page
    assert 'value="&#34;&gt;&lt;script&gt;"' in page
    for tool, form in (("nothing", {}), ("delete_rule", {"id": "x"}), ("delete_rule", {})):
        status, page, _ = await house.post(f"/account/do/{tool}", {"csrf": csrf, **form}, session)
        assert status in (400, 404)


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({}, {}),
        ({"csrf": "0" * 64}, {}),
        ({"csrf": "é" * 64}, {}),
        ({"csrf": "its own"}, {"sec_fetch_site": "cross-site"}),
        ({"csrf": "its own"}, {"sec_fetch_site": "same-site"}),
        ({"csrf": "its own"}, {"origin": "https://example.com"}),
        ({"csrf": "its own"}, {"origin": "null"}),
        ({"csrf": "another's"}, {}),
    ],
)
async def test_nobody_else_sends_a_form(
    house: ConsoleHouse, form: dict[str, str], headers: dict[str, str]
) -> None:
    session, other = await house.signed_in(Person()), await house.signed_in(Person())
    tokens = {"its own": await house.csrf(session), "another's": await house.csrf(other)}
    form = {name: tokens.get(value, value) for name, value in form.items()}
    status, page, _ = await house.post(
        "/account/do/create_rule", {**form, "rule": "any launching"}, session, **headers
    )
    assert status == 400
    assert "bad_input" in page
    _, page, _ = await house.get("/account/watch", session)
    assert "<code>any launching</code>" not in page


async def test_a_form_that_is_none_is_refused(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    async with house.browser.post(
        f"{house.url}/account/do/create_rule",
        json={"rule": "any launching"},
        headers=BROWSER | {"cookie": f"{COOKIE}={session}"},
    ) as response:
        assert response.status == 400
