"""Keys and sessions on their page: made for a signature, shown once, ended by their owner alone; and what an
account used and paid for."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from html import unescape
from http.cookies import SimpleCookie
from typing import Any

import pytest

from roundtrip.console.support.page_request import COOKIE
from roundtrip.domain.accounts import keys
from roundtrip.services.runtime.context import Context
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.console_house import ConsoleHouse, house_of
from support.keys import NOW_S, Person, kept_of, key_for, random_context
from support.paying import Payer, some_address
from support.watching import SETTINGS

KEY = re.compile(r"rt_[0-9A-Za-z]{49}")
NO_ID = 10**17


async def signature(house: ConsoleHouse, person: Person, session: str) -> str:
    """Of the text that the page has the wallet sign."""
    status, body, headers = await house.post(
        "/account/keys/text", {"csrf": await house.csrf(session)}, session
    )
    assert (status, headers["content-type"]) == (200, "application/json")
    found = re.search('"message":"(.*?)"', body)
    assert found is not None
    text = found.group(1).replace("\\n", "\n")
    assert "Make an API key for this wallet." in text
    return person.sign(text)


async def act(house: ConsoleHouse, session: str, name: str, **form: str) -> tuple[int, str, Any]:
    form["csrf"] = await house.csrf(session)
    return await house.post(f"/account/do/{name}", form, session)


async def make_key(house: ConsoleHouse, person: Person, session: str, label: str = "") -> str:
    """Makes a key on the page, and returns it."""
    signed = await signature(house, person, session)
    status, page, _ = await act(house, session, "make_own_key", signature=signed, label=label)
    assert status == 200
    (key,) = set(KEY.findall(page))
    return str(key)


async def is_live(house: ConsoleHouse, key: str) -> bool:
    async with house.browser.get(f"{house.url}/v1/credits", headers={"x-api-key": key}) as response:
        return response.status == 200


async def ids(house: ConsoleHouse, person: Person) -> list[int]:
    """Of the wallet's keys and sessions, the oldest first."""
    async with house.ctx.pool.acquire() as connection:
        return [
            row["id"]
            for row in await connection.fetch(
                "SELECT key.id FROM accounts.key AS key JOIN accounts.account AS account "
                "ON account.id = account_id"
                " WHERE account.wallet = $1 ORDER BY key.id",
                bytes.fromhex(person.address[2:]),
            )
        ]


# --- keys ------------------------------------------------------------------------------------------


async def test_a_key_is_shown_once_and_acts_until_it_is_revoked(house: ConsoleHouse) -> None:
    person = Person()
    session = await house.signed_in(person)
    key = await make_key(house, person, session, "my bot")
    assert await is_live(house, key)
    status, page, headers = await house.get("/account/keys", session)
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert KEY.findall(page) == []
    assert f"<code>{keys.start_of(key)}…</code>" in page
    assert "<bdi>my bot</bdi>" in page
    key_id = str((await ids(house, person))[1])
    status, page, _ = await act(house, session, "end_own", id=key_id)
    assert status == 200
    assert f"Key {keys.start_of(key)}… is revoked." in page
    assert not await is_live(house, key)
    # The same form once more, by a reload.
    status, page, _ = await act(house, session, "end_own", id=key_id)
    assert (status, "is revoked already." in page) == (200, True)
    _, page, _ = await house.get("/account/keys", session)
    assert "You have no live key." in page
    assert "Revoked keys" in page


async def test_a_form_that_is_sent_again_makes_no_second_key(house: ConsoleHouse) -> None:
    person = Person()
    session = await house.signed_in(person)
    signed = await signature(house, person, session)
    first = await act(house, session, "make_own_key", signature=signed, label="a")
    again = await act(house, session, "make_own_key", signature=signed, label="a")
    assert (first[0], again[0]) == (200, 401)
    assert len(set(KEY.findall(first[1]))) == 1
    assert KEY.findall(again[1]) == []
    assert "No key was made" in again[1]
    # The key, and the session.
    assert (await kept_of(house.ctx, person.address)).live == 2
    # Its session goes on.
    assert (await house.get("/account/keys", session))[0] == 200


async def test_the_pages_sign_in_and_make_a_key_by_the_text_of_a_claim(house: ConsoleHouse) -> None:
    """The text that the pages' script has every kind of wallet sign."""
    person = Person()
    _, body, _ = await house.post("/sign-in/text", {"address": person.address})
    asked, other = (
        json.loads(body),
        json.loads((await house.post("/sign-in/text", {"address": person.address}))[1]),
    )
    form = {"address": person.address, "signature": person.sign(asked["claimMessage"])}
    for claim in ({}, {"claim": ""}, {"claim": other["claim"]}):
        assert (await house.post("/sign-in", form | claim))[0] == 401
    status, _, headers = await house.post("/sign-in", form | {"claim": asked["claim"]})
    assert status == 303
    session = str(SimpleCookie(headers["set-cookie"])[COOKIE].value)
    _, body, _ = await house.post("/account/keys/text", {"csrf": await house.csrf(session)}, session)
    asked = json.loads(body)
    form = {"signature": person.sign(asked["claimMessage"])}
    assert (await act(house, session, "make_own_key", **form))[0] == 401
    status, page, _ = await act(house, session, "make_own_key", **form, claim=asked["claim"])
    assert (status, len(set(KEY.findall(page)))) == (200, 1)


async def test_a_session_alone_makes_no_key(house: ConsoleHouse) -> None:
    """Nor does a signature for a session, or of another wallet."""
    person, other = Person(), Person()
    session = await house.signed_in(person)
    for_session = person.sign(await house.text(person))
    others = other.sign(await text_to_sign(house, person, session))
    for signed in (for_session, others, "0x", "", "0x" + "0" * 130, "nonsense"):
        status, page, _ = await act(house, session, "make_own_key", signature=signed)
        assert status in (400, 401)
        assert KEY.findall(page) == []
    assert (await kept_of(house.ctx, person.address)).live == 1
    assert (await kept_of(house.ctx, other.address)).live == 0


async def text_to_sign(house: ConsoleHouse, person: Person, session: str) -> str:
    _, body, _ = await house.post("/account/keys/text", {"csrf": await house.csrf(session)}, session)
    found = re.search('"message":"(.*?)"', body)
    assert found is not None
    assert person.shown in found.group(1)
    return found.group(1).replace("\\n", "\n")


async def test_the_sixth_key_is_refused_and_sessions_are_none_of_the_five(house: ConsoleHouse) -> None:
    person = Person()
    session = await house.signed_in(person)
    for _ in range(keys.MAX_LIVE):
        await make_key(house, person, session)
    assert await house.signed_in(person)
    _, page, _ = await house.get("/account/keys", session)
    assert 'id="make-key"' not in page
    assert "Revoke one to make another." in page
    signed = await signature(house, person, session)
    status, page, _ = await act(house, session, "make_own_key", signature=signed)
    assert (status, KEY.findall(page)) == (409, [])
    assert "too_many_keys" in page
    await act(house, session, "end_own", id=str((await ids(house, person))[1]))
    # The signature made nothing, and is good for the place that is free now.
    status, page, _ = await act(house, session, "make_own_key", signature=signed)
    assert (status, len(set(KEY.findall(page)))) == (200, 1)


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("\u202eevil\u202c \u200bbot", "evil bot"),
        ('"><b>', '"><b>'),
        ("  a \n b  ", "a b"),
        ("x" * 64, "x" * 64),
    ],
)
async def test_a_label_is_cleaned_and_escaped(house: ConsoleHouse, label: str, shown: str) -> None:
    person = Person()
    session = await house.signed_in(person)
    await make_key(house, person, session, label)
    _, page, _ = await house.get("/account/keys", session)
    assert [unescape(one) for one in re.findall("<bdi>(.*?)</bdi>", page)] == [shown]
    assert "<script>" not in page
    assert "\u202e" not in page


async def test_a_label_that_is_too_long_makes_no_key(house: ConsoleHouse) -> None:
    person = Person()
    session = await house.signed_in(person)
    signed = await signature(house, person, session)
    status, page, _ = await act(house, session, "make_own_key", signature=signed, label="x" * 65)
    assert (status, "at most 64 characters" in page) == (400, True)
    assert (await kept_of(house.ctx, person.address)).live == 1


# --- whose they are --------------------------------------------------------------------------------


async def test_nobody_ends_what_is_anothers(house: ConsoleHouse) -> None:
    person, other = Person(), Person()
    session, others = await house.signed_in(person), await house.signed_in(other)
    key = await make_key(house, other, others)
    wanted = [*map(str, await ids(house, other)), str(NO_ID), str(2**64), "0", "-1", "x", "1.5", ""]
    for one in wanted:
        # 404 for an id that could exist, 400 for what is no id.
        status, page, _ = await act(house, session, "end_own", id=one)
        assert status == (404 if one.isdigit() and 0 < int(one) <= NO_ID else 400), one
        assert keys.start_of(key) not in page
    assert await is_live(house, key)
    assert (await house.get("/account/keys", others))[0] == 200


@pytest.mark.parametrize("name", ["make_own_key", "end_own", "sign_out_everywhere"])
async def test_forms_without_the_sessions_csrf_or_from_another_site_are_refused(
    house: ConsoleHouse, name: str
) -> None:
    person = Person()
    session = await house.signed_in(person)
    (session_id,) = await ids(house, person)
    form = {"signature": await signature(house, person, session), "id": str(session_id)}
    for csrf, headers in (
        ({}, {}),
        ({"csrf": "0" * 64}, {}),
        ({"csrf": await house.csrf(session)}, {"sec_fetch_site": "cross-site"}),
    ):
        status, _, _ = await house.post(f"/account/do/{name}", form | csrf, session, **headers)
        assert status == 400
        assert (await house.post("/account/keys/text", csrf, session, **headers))[0] == 400
    kept = await kept_of(house.ctx, person.address)
    assert (kept.keys_made, kept.live) == (1, 1)


async def test_a_key_in_the_cookie_ends_nothing_and_sees_no_sessions(house: ConsoleHouse) -> None:
    """Who got hold of a program's key cannot lock its owner out."""
    person = Person()
    session = await house.signed_in(person)
    key = await make_key(house, person, session)
    session_id = str((await ids(house, person))[0])
    for path in ("end_own", "sign_out_everywhere"):
        # A session counts in a cookie, never in a form.
        form = {"csrf": await house.csrf(session), "id": session_id, "session": session}
        status, _, headers = await house.post(f"/account/do/{path}", form, key)
        assert (status, headers["location"]) == (303, "/sign-in")
    assert (await house.get("/account/keys", key))[0] == 303
    assert (await house.get("/account/keys", session))[0] == 200


# --- sessions --------------------------------------------------------------------------------------


async def test_sessions_are_listed_apart_and_end_one_by_one(house: ConsoleHouse) -> None:
    person = Person()
    first = await house.signed_in(person)
    house.clock.now_s = NOW_S + 90
    this = await house.signed_in(person)
    _, page, _ = await house.get("/account/keys", this)
    began, ends = datetime.fromtimestamp(NOW_S, UTC), datetime.fromtimestamp(NOW_S, UTC) + timedelta(days=14)
    assert page.count("<strong>This browser</strong>") == 1
    assert f"{began:%Y-%m-%d %H:%M:%S} UTC" in page
    assert f"{ends:%Y-%m-%d %H:%M:%S} UTC" in page
    assert page.index("This browser") < page.index("Another browser")
    one, own = await ids(house, person)
    status, page, _ = await act(house, this, "end_own", id=str(one))
    assert (status, "The session has ended." in page) == (200, True)
    assert (await house.get("/account/keys", first))[0] == 303
    # Its own: the page leads to where one signs in, and forgets the cookie.
    status, _, headers = await act(house, this, "end_own", id=str(own))
    assert (status, headers["location"]) == (303, "/sign-in")
    assert 'roundtrip_session=""' in headers["set-cookie"]


async def test_sign_out_everywhere_ends_sessions_and_no_keys(house: ConsoleHouse) -> None:
    person, other = Person(), Person()
    first, this, others = [await house.signed_in(one) for one in (person, person, other)]
    key = await make_key(house, person, this)
    status, _, headers = await act(house, this, "sign_out_everywhere")
    assert (status, headers["location"]) == (303, "/sign-in")
    for ended in (first, this):
        assert (await house.get("/account/keys", ended))[0] == 303
    assert (await house.get("/account/keys", others))[0] == 200
    assert await is_live(house, key)


async def test_a_session_that_is_over_is_not_listed(house: ConsoleHouse) -> None:
    person = Person()
    await house.signed_in(person)
    house.clock.now_s = NOW_S + 13 * 86_400
    this = await house.signed_in(person)
    house.clock.now_s = NOW_S + 15 * 86_400
    _, page, _ = await house.get("/account/keys", this)
    assert (page.count("This browser"), page.count("Another browser")) == (1, 0)


async def test_a_session_that_ends_midway_does_nothing_more(house: ConsoleHouse) -> None:
    """A request for a part of a page is answered with a redirect of the whole page."""
    person = Person()
    session = await house.signed_in(person)
    signed, csrf = await signature(house, person, session), await house.csrf(session)
    await house.post("/sign-out", {"csrf": csrf}, session)
    form = {"csrf": csrf, "signature": signed}
    status, _, headers = await house.post("/account/do/make_own_key", form, session)
    assert (status, headers["location"]) == (303, "/sign-in")
    status, page, headers = await house.post("/account/keys/text", form, session, hx_request="true")
    assert (status, headers["hx-redirect"], page) == (200, "/sign-in", "")
    assert (await kept_of(house.ctx, person.address)).keys_made == 1


# --- what it used, and paid for --------------------------------------------------------------------


async def test_the_account_shows_what_it_used(house: ConsoleHouse) -> None:
    person = Person()
    key, session = (await key_for(house.ctx, person))["key"], await house.signed_in(person)
    today = datetime.fromtimestamp(NOW_S, UTC).date()
    await used(house, person, {today - timedelta(days=13): 1500, today - timedelta(days=14): 7})
    async with house.browser.get(f"{house.url}/v1/check/0x12", headers={"x-api-key": key}) as response:
        assert response.status == 400
    _, page, _ = await house.get("/account", session)
    rows = re.findall("<tr><td>([0-9-]{10})</td><td>([0-9,]+)</td>", page)
    assert len(rows) == 14
    assert (rows[0], rows[-1]) == ((str(today), "1"), (str(today - timedelta(days=13)), "1,500"))
    assert "1,501 calls in 14 days" in page


async def used(house: ConsoleHouse, person: Person, calls: dict[date, int]) -> None:
    async with house.ctx.pool.acquire() as connection:
        await connection.executemany(
            "INSERT INTO accounts.day (account_id, day, calls, granted)"
            " SELECT id, $2, $3, 0 FROM accounts.account WHERE wallet = $1",
            [(bytes.fromhex(person.address[2:]), day, many) for day, many in calls.items()],
        )


async def test_while_payments_are_closed_the_page_says_so(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    _, page, _ = await house.get("/account", session)
    assert "You cannot buy more calls yet" in page
    assert 'name="tx"' not in page
    status, page, _ = await act(house, session, "redeem_payment", tx="0x" + "1" * 64)
    assert (status, "not_open" in page) == (404, True)


async def test_a_payment_is_claimed_by_its_hash(indexed: Context, rpc: SyncRpc, built: Built) -> None:
    clock, pay_to, person = Clock(), some_address(), Person()
    ctx, payer = random_context(indexed, clock), Payer(rpc, built)
    async with house_of(ctx, clock, SETTINGS.model_copy(update={"pay_to": pay_to})) as house:
        session = await house.signed_in(person)
        _, page, _ = await house.get("/account", session)
        assert f'<code class="whole" data-copy="{pay_to}">{pay_to}</code>' in page
        assert "One usdg buys 1,000 credits" in page
        for wrong, wanted in (("0x" + "1" * 64, 422), ("0x12", 400), ("", 400), ("<script>", 400)):
            status, page, _ = await act(house, session, "redeem_payment", tx=wrong)
            assert (status, "<script>" in page) == (wanted, False), wrong
        assert 'value="&lt;script&gt;"' in page
        tx = payer.pay(payer.wallet(person.address), pay_to, 2_500_000)
        payer.finalize()
        status, page, _ = await act(house, session, "redeem_payment", tx=tx)
        assert (
            status,
            "Payment of 2.5 usdg counted: you got 2,500 credits. You now have 2,500." in page,
        ) == (200, True)
        # By a reload.
        status, page, _ = await act(house, session, "redeem_payment", tx=tx)
        assert (status, "already_used" in page, "counted:" in page) == (409, True, False)
        assert "You have <strong>2,500</strong>" in page
