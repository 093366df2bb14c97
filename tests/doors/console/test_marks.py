"""What is said of wallets and tokens on their pages: by everybody, and by who is signed in."""

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import cast

import pytest

from roundtrip.chain.blocks.heads import Heads
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.community.flag_calls import MAX_A_DAY, MAX_OPEN, WEEK_S, Kind
from roundtrip.domain.community.marks import MAX_MARKS
from roundtrip.store.community import flags as calls
from roundtrip.store.server import connections
from roundtrip.store.server.rows import as_bytes
from roundtrip_development.devnet.world import Built
from support.clocks import Clock
from support.console_house import ConsoleHouse, house_of
from support.flagged import TOKEN, FlagGround, emptied_accounts
from support.keys import NOW_S, Person
from support.paying import account_of
from support.tables import own_database

WALLET = "0x" + "3c" * 20
NOW = datetime.fromtimestamp(NOW_S, UTC)


class _Heads:
    """Those of a chain written by hand, for who signs in."""

    def __init__(self, ground: FlagGround) -> None:
        self.current = ground.current
        self._ground = ground

    def last_number(self) -> int:
        return self._ground.at.number

    async def wake(self) -> None:
        """Nothing follows them."""


@pytest.fixture
async def fair(database_url: str) -> AsyncIterator[ConsoleHouse]:
    """A house whose index has tokens that can be flagged, and no node behind it."""
    async with (
        own_database(database_url, "console_marks") as url,
        connections.create_pool(url, min_size=1, max_size=4) as pool,
        pool.acquire() as index,
    ):
        await emptied_accounts(index)
        ground = FlagGround(pool, index)
        await ground.begin()
        clock = Clock(float(ground.at.timestamp_s))
        heads = cast(Heads, _Heads(ground))
        ctx = replace(ground.ctx, heads=heads, now_s=clock, entropy=lambda: secrets.token_bytes(32))
        async with house_of(ctx, clock) as found:
            yield found


async def say(
    house: ConsoleHouse, session: str, wallet: str = WALLET, piece: bool = True, **form: str
) -> tuple[int, str]:
    headers = {"hx_request": "true"} if piece else {}
    form["csrf"] = await house.csrf(session)
    status, page, _ = await house.post(f"/wallet/{wallet}/said", form, session, **headers)
    return status, page


async def flagged(
    house: ConsoleHouse, session: str, kind: str, token: str = TOKEN, piece: bool = True
) -> tuple[int, str]:
    headers = {"hx_request": "true"} if piece else {}
    form = {"csrf": await house.csrf(session), "kind": kind}
    status, page, _ = await house.post(f"/token/{token}/flags", form, session, **headers)
    return status, page


async def many_flags(
    house: ConsoleHouse, person: Person, count: int, made_at: datetime, kind: Kind = "drains"
) -> None:
    """That wait, on tokens of nobody."""
    account, at_s = await account_of(house.ctx, person.address), int(made_at.timestamp())
    async with house.ctx.pool.acquire() as connection, connection.transaction():
        for number in range(count):
            token = Address(f"0x{number + 1:040x}")
            new = calls.NewFlag(token, kind, at_s, 1, at_s + WEEK_S, calls.FlagBasis(deployer_raw=1))
            await calls.add(connection, account.id, new, None, made_at, made_at + timedelta(days=1))


def texts(page: str) -> str:
    """What it says, without its tags."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())


# --- wallets ---------------------------------------------------------------------------------------


async def test_a_wallet_is_named_marked_and_taken_back(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    status, page = await say(house, session, name="Old friend", mark="good")
    assert (status, "<html" in page) == (200, False)
    assert "You call it Old friend and mark it good" in texts(page)
    # What is left empty stays as it is; the same once more changes nothing.
    for _ in range(2):
        _, page = await say(house, session, mark="scam", name="")
        assert "You call it Old friend and mark it scam" in texts(page)
    _, page, _ = await house.get("/account/marks", session)
    assert "1 of 500" in texts(page)
    assert WALLET in page
    _, page = await say(house, session, off="1")
    assert "You call it" not in texts(page)
    _, page, _ = await house.get("/account/marks", session)
    assert WALLET not in page


async def test_without_scripts_the_wallets_page_says_it(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    status, _ = await say(house, session, piece=False, mark="bad")
    assert status == 303
    _, page, _ = await house.get(f"/wallet/{WALLET}", session)
    assert "You mark it bad" in texts(page)
    status, page = await say(house, session, piece=False, name="!!")
    assert (status, "<html" in page) == (400, True)
    assert "You mark it bad" in texts(page)


async def test_what_one_says_is_nobody_elses(house: ConsoleHouse) -> None:
    one, other = await house.signed_in(Person()), await house.signed_in(Person())
    await say(house, one, name="My secret name", mark="scam")
    for session in (other, None):
        _, page, _ = await house.get(f"/wallet/{WALLET}", session)
        assert "My secret name" not in page
    _, page, _ = await house.get("/account/marks", other)
    assert WALLET not in page
    await say(house, other, off="1")
    _, page, _ = await house.get("/account/marks", one)
    assert "My secret name" in page


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"name": "<script>alert(1)</script>"}, "bad_input"),
        ({"name": "\u202eevil"}, "bad_input"),
        ({"name": "x" * 25}, "bad_input"),
        ({"mark": "angel"}, "bad_input"),
        ({"mark": "<script>"}, "bad_input"),
        ({}, "bad_input"),
        ({"name": "  "}, "bad_input"),
    ],
)
async def test_a_name_that_is_none_is_told_beside_the_form(
    house: ConsoleHouse, form: dict[str, str], expected: str
) -> None:
    session = await house.signed_in(Person())
    status, page = await say(house, session, WALLET, True, **form)
    assert (status, expected in page, "<details open>" in page) == (200, True, True)
    assert "<script>" not in page
    assert "You call it" not in texts(page)
    status, page = await say(house, session, WALLET, False, **form)
    assert (status, expected in page) == (400, True)
    assert "<script>" not in page


async def test_wallets_that_are_none_or_ones_own_are_refused(house: ConsoleHouse) -> None:
    person = Person()
    session = await house.signed_in(person)
    status, page = await say(house, session, wallet="0x12", piece=False, mark="bad")
    assert (status, "bad_address" in page) == (400, True)
    _, page = await say(house, session, wallet=person.address, mark="good")
    assert "This is your own wallet" in texts(page)
    assert "bad_input" in page


async def test_the_most_wallets_are_marked(house: ConsoleHouse) -> None:
    person = Person()
    session = await house.signed_in(person)
    account = await account_of(house.ctx, person.address)
    async with house.ctx.pool.acquire() as connection:
        await connection.executemany(
            "INSERT INTO accounts.mark (account_id, wallet, mark, made_at) VALUES ($1, $2, 'bad', $3)",
            [(account.id, bytes([1]) * 18 + n.to_bytes(2, "big"), NOW) for n in range(MAX_MARKS)],
        )
    _, page = await say(house, session, mark="bad")
    assert f"You have named or marked {MAX_MARKS} wallets, the maximum" in texts(page)
    _, page, _ = await house.get("/account/marks", session)
    assert len(page) < 60_000
    assert page.count("Remove</button>") == 60
    assert "These are the last 60. You find the others" in texts(page)


async def test_what_people_call_it_is_on_its_page(house: ConsoleHouse) -> None:
    wallet = Address("0x" + secrets.token_hex(20))
    async with house.ctx.pool.acquire() as connection:
        await connection.executemany(
            "INSERT INTO accounts.public_name (wallet, what, key, said, people, is_first)"
            " VALUES ($1, $2, $3, $4, $5, $6)",
            [
                (as_bytes(wallet), "name", "<b>", "<b>", 3, False),
                (as_bytes(wallet), "mark", "scam", "scam", 4, True),
            ],
        )
    try:
        _, page, _ = await house.get(f"/wallet/{wallet}")
        _, of_another, _ = await house.get(f"/wallet/{WALLET}")
    finally:
        async with house.ctx.pool.acquire() as connection:
            await connection.execute("DELETE FROM accounts.public_name WHERE wallet = $1", as_bytes(wallet))
    text = texts(page)
    assert "scam by 4 people" in text
    assert "<b> by 3 people" in text
    assert "<b>" not in page
    assert "Sign in to name or mark this wallet." in text
    assert "three people agree on" in texts(of_another)


async def test_the_room_of_marks_has_forms_for_them(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    form = {"csrf": await house.csrf(session), "address": WALLET, "name": "Somebody", "mark": ""}
    status, page, _ = await house.post("/account/do/mark_wallet", form, session)
    assert (status, "<bdi>Somebody</bdi>" in page) == (200, True)
    for wrong in ({"address": "0x12"}, {"address": ""}, {"name": "<b>"}, {"name": "", "mark": ""}):
        status, page, _ = await house.post("/account/do/mark_wallet", form | wrong, session)
        assert (status, "<b>" in page) == (400, False), wrong
    form = {"csrf": form["csrf"], "address": WALLET}
    for _ in range(2):
        status, page, _ = await house.post("/account/do/unmark_wallet", form, session)
        assert (status, "Somebody" in page) == (200, False)


# --- tokens ----------------------------------------------------------------------------------------


async def test_a_token_is_flagged_on_its_page(fair: ConsoleHouse) -> None:
    session, other = await fair.signed_in(Person()), await fair.signed_in(Person())
    _, page, _ = await fair.get(f"/token/{TOKEN}/flags", session)
    assert "No one has flagged this token yet." in texts(page)
    assert "0 of 10 open flags" in texts(page)
    status, page = await flagged(fair, session, "drains")
    assert (status, "<html" in page) == (200, False)
    text = texts(page)
    assert "half of its liquidity will leave" in text
    assert "You say that it drains: flagged" in text
    # The same form once more, by a reload.
    status, page = await flagged(fair, session, "drains", piece=False)
    assert (status, "You have already flagged this token like this" in texts(page)) == (400, True)
    _, page, _ = await fair.get("/account/marks", session)
    assert "You have 1 of 10 open flags, and made 1 of 5 today" in texts(page)
    assert TOKEN in page
    # Everybody sees that it waits; whose else it is not.
    _, page, _ = await fair.get(f"/token/{TOKEN}/flags", other)
    assert "You say that it" not in texts(page)
    _, page, _ = await fair.get("/account/marks", other)
    assert TOKEN not in page


async def test_only_so_many_flags_wait_and_are_made_in_a_day(fair: ConsoleHouse) -> None:
    yesterday = datetime.fromtimestamp(fair.clock.now_s, UTC) - timedelta(days=1)
    busy, eager = Person(), Person()
    for person, count, at, why in (
        (busy, MAX_OPEN, yesterday, f"You have {MAX_OPEN} flags waiting, the maximum"),
        (eager, MAX_A_DAY, yesterday + timedelta(days=1), f"You made {MAX_A_DAY} flags today"),
    ):
        session = await fair.signed_in(person)
        await many_flags(fair, person, count, at)
        status, page = await flagged(fair, session, "drains")
        assert (status, why in texts(page)) == (200, True)
        assert 'name="kind"' not in page
        assert "You say that it" not in texts(page)
        assert (await flagged(fair, session, "drains", piece=False))[0] == 400


@pytest.mark.parametrize("kind", ["", "moons", "<script>", "runs\u202e"])
async def test_flags_of_no_kind_are_refused(fair: ConsoleHouse, kind: str) -> None:
    session = await fair.signed_in(Person())
    status, page = await flagged(fair, session, kind)
    assert (status, "bad_input" in page, "<script>" in page) == (200, True, False)
    status, page = await flagged(fair, session, kind, piece=False)
    assert (status, "bad_input" in page) == (400, True)


async def test_a_token_that_does_not_count_is_not_flagged(house: ConsoleHouse, built: Built) -> None:
    session = await house.signed_in(Person())
    _, page = await flagged(house, session, "drains", built.tokens["plain"])
    assert "You cannot flag this token yet" in texts(page)
    status, page = await flagged(house, session, "drains", "0x12", piece=False)
    assert (status, "bad_address" in page) == (400, True)


async def test_flags_that_were_decided_are_told_with_what_chance_has(fair: ConsoleHouse) -> None:
    person = Person()
    session = await fair.signed_in(person)
    at = datetime.fromtimestamp(fair.clock.now_s, UTC) - timedelta(days=3)
    await many_flags(fair, person, 3, at)
    account, at_s = await account_of(fair.ctx, person.address), int(at.timestamp())
    tx = TxHash("0x" + "ab" * 32)
    async with fair.ctx.pool.acquire() as connection:
        flags = [
            row["id"]
            for row in await connection.fetch(
                "SELECT id FROM accounts.flag WHERE account_id = $1 ORDER BY id", account.id
            )
        ]
        proof = calls.FlagProof("deployer", 5, at_s + 60, tx)
        looked = [
            calls.FlagReview(flags[0], "open", "proved", at_s, proof=proof),
            calls.FlagReview(flags[1], "open", "failed", at_s),
            calls.FlagReview(flags[2], "open", "void", at_s),
        ]
        await calls.write_reviews(connection, looked, at, at_s + 60)
    _, page, _ = await fair.get("/account/marks", session)
    text = texts(page)
    assert "Flags that came true 1 of 2 Accuracy 50.00 %" in text
    assert "Random flags come true –" in text
    rows = re.findall(r"<tr><td>.*?</tr>", page, re.DOTALL)
    came = [next(word for word in ("right", "wrong", "not known") if word in texts(row)) for row in rows]
    assert sorted(came) == ["not known", "right", "wrong"]
    assert f'href="/transaction/{tx}"' in page
    assert "You have 0 of 10 open flags" in text


# --- who may ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [f"/wallet/{WALLET}/said", f"/token/{TOKEN}/flags"])
async def test_nobody_else_says_it(house: ConsoleHouse, path: str) -> None:
    session, other = await house.signed_in(Person()), await house.signed_in(Person())
    form = {"mark": "scam", "kind": "runs"}
    for csrf, headers in (
        ({}, {}),
        ({"csrf": await house.csrf(other)}, {}),
        ({"csrf": await house.csrf(session)}, {"origin": "https://example.com"}),
    ):
        status, _, _ = await house.post(path, form | csrf, session, **headers)
        assert status == 400
    status, _, headers = await house.post(path, form)
    assert (status, headers["location"]) == (303, "/sign-in")
    _, page, _ = await house.get("/account/marks", session)
    assert "You have 0 of 10 open flags" in texts(page)
    assert "You named or marked 0 of 500 wallets" in texts(page)


@pytest.mark.parametrize("path", [f"/wallet/{WALLET}/said", f"/token/{TOKEN}/flags"])
async def test_a_session_that_ended_leads_to_where_one_signs_in(house: ConsoleHouse, path: str) -> None:
    """The whole page, also from a piece of it."""
    session = await house.signed_in(Person())
    csrf = await house.csrf(session)
    await house.post("/sign-out", {"csrf": csrf}, session)
    form = {"csrf": csrf, "mark": "scam", "kind": "drains"}
    status, _, headers = await house.post(path, form, session)
    assert (status, headers["location"]) == (303, "/sign-in")
    status, page, headers = await house.post(path, form, session, hx_request="true")
    assert (status, page, headers["hx-redirect"]) == (200, "", "/sign-in")
    assert 'roundtrip_session=""' in headers["set-cookie"]


async def test_who_is_not_signed_in_sees_flags_and_how_to_make_one(house: ConsoleHouse, built: Built) -> None:
    path = f"/token/{built.tokens['plain']}/flags"
    status, page, _ = await house.get(path)
    assert (status, "<html" in page) == (200, True)
    assert "Sign in to flag this token." in texts(page)
    status, page, _ = await house.get(path, None, hx_request="true")
    assert (status, "<html" in page, 'name="kind"' in page) == (200, False, False)
    assert (await house.get("/token/0x12/flags"))[0] == 400
    _, page, _ = await house.get(f"/token/{built.tokens['plain']}")
    assert f'href="{path}"' in page
