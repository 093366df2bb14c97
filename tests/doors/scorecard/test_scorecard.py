"""The scorecard as a browser gets it, and the form that says of a verdict that it was wrong."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.scorecard.scorecard import CODES, VerdictScore
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.scorecard.scorecard import ScoredVerdict
from roundtrip_development.devnet.world import Built
from support.console_house import ConsoleHouse
from support.keys import Person

TX = TxHash("0x" + "c" * 64)
JUNK = ("", "0x12", "0x" + "g" * 64, "0x" + "1" * 65, "javascript:alert(1)", "0x" + "1" * 63 + "\n")


async def a_trade(house: ConsoleHouse, token: str) -> str:
    """The hash of a real trade of the token."""
    found: bytes = await house.ctx.pool.fetchval(
        "SELECT trade.tx_hash FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id"
        " JOIN facts.address AS token ON token.id = pool.token_id WHERE token.address = $1 LIMIT 1",
        bytes.fromhex(token[2:]),
    )
    return "0x" + found.hex()


async def traded(house: ConsoleHouse) -> tuple[str, str]:
    """A token that was traded, and by which transaction."""
    found: bytes = await house.ctx.pool.fetchval(
        "SELECT token.address FROM facts.trade AS trade JOIN facts.pool AS pool ON pool.id = trade.pool_id"
        " JOIN facts.address AS token ON token.id = pool.token_id LIMIT 1"
    )
    token = "0x" + found.hex()
    return token, await a_trade(house, token)


async def open_reports(house: ConsoleHouse) -> int:
    found: int = await house.ctx.pool.fetchval("SELECT count(*) FROM accounts.verdict_report")
    return found


async def wrong(house: ConsoleHouse, built: Built, evidence_id: int, from_s: int) -> None:
    """A mistake about a token whose name a stranger wrote."""
    score = VerdictScore("wrong", "sold", 7, from_s + 60, TX, Address("0x" + "d" * 40), 60)
    token = Address(built.tokens["strange_name"])
    one = ScoredVerdict(evidence_id, token, "cannot_sell", "danger", 5, from_s, score, True)
    now = datetime.fromtimestamp(from_s, UTC)
    async with house.ctx.pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "INSERT INTO facts.token (token, symbol, name, decimals, read_number) VALUES ($1, $2, 'n', 18, 1)"
            " ON CONFLICT (token) DO UPDATE SET symbol = excluded.symbol",
            bytes.fromhex(token[2:]),
            '<img src=x onerror="1">',
        )
        assert await store.mark_wrong(connection, one, now)


@pytest.fixture(autouse=True)
async def _nothing_scored(house: ConsoleHouse) -> AsyncIterator[None]:
    kept = "facts.score, facts.score_count, facts.score_cursor, facts.score_token, accounts.verdict_report"
    await house.ctx.pool.execute(f"TRUNCATE {kept}")
    yield
    await house.ctx.pool.execute(f"TRUNCATE {kept}")
    await house.ctx.pool.execute("DELETE FROM facts.token WHERE name = 'n'")


# --- the page --------------------------------------------------------------------------------------


async def test_before_anything_is_scored_it_says_so(house: ConsoleHouse) -> None:
    status, page, _ = await house.get("/scorecard")
    assert status == 200
    assert "No verdict has been scored yet" in page
    assert "We know of no mistake. There may be mistakes that we cannot see." in page
    assert "<table" not in page
    assert "A failed sell leaves no log" in page


async def test_mistakes_are_listed_with_what_showed_them(house: ConsoleHouse, built: Built) -> None:
    await wrong(house, built, 1, 1_770_000_000)
    status, page, _ = await house.get("/scorecard")
    assert status == 200
    assert f'href="/transaction/{TX}"' in page
    assert f'href="/token/{built.tokens["strange_name"]}"' in page
    assert "both count" in page
    assert "reported by a person and proved by the chain" in page
    assert "Later events showed 1 to be wrong and 0 to be right." in page
    assert "<img" not in page.replace('<img src="/static/', "")
    assert 'class="stranger"' in page


async def test_counts_say_of_how_many_tokens_they_are_and_that_right_is_cheap(
    house: ConsoleHouse, built: Built
) -> None:
    for number in (1, 2):
        await wrong(house, built, number, 1_770_000_000 + 3600 * number)
    _, page, _ = await house.get("/scorecard")
    assert all(f"<code>{code}</code>" in page for code in CODES)
    assert "quote_asset" not in page
    row = page.partition('<td class="all"><code>cannot_sell</code>')[2].partition("</tr>")[0]
    assert '2 <span class="quiet">of 1 token</span>' in row
    assert "Right counts are easy to inflate" in page


async def test_everyone_shares_a_page_for_some_seconds(house: ConsoleHouse, built: Built) -> None:
    await wrong(house, built, 1, 1_770_000_000)
    _, first, _ = await house.get("/scorecard")
    await wrong(house, built, 2, 1_770_010_000)
    _, second, _ = await house.get("/scorecard")
    assert (first.count("reported by a person"), second.count("reported by a person")) == (1, 1)
    # Another page is another answer.
    _, third, _ = await house.get("/scorecard?s=1770020000&id=9")
    assert third.count("reported by a person") == 2


async def test_older_mistakes_are_a_link_away(house: ConsoleHouse, built: Built) -> None:
    for number in range(1, 23):
        await wrong(house, built, number, 1_770_000_000 + 3600 * number)
    _, page, _ = await house.get("/scorecard")
    assert page.count("reported by a person") == 20
    found = re.search(r'href="(/scorecard\?s=\d+&amp;id=\d+)">Older mistakes', page)
    assert found is not None
    status, page, _ = await house.get(found.group(1).replace("&amp;", "&"))
    assert (status, page.count("reported by a person"), "Older mistakes" in page) == (200, 2, False)


@pytest.mark.parametrize(
    "query", ["s=x&id=1", "s=1", "id=1", "s=-1&id=1", "s=%D9%A1&id=1", f"s={10**20}&id=1", f"s={10**18}&id=1"]
)
async def test_a_page_that_is_none_is_refused(house: ConsoleHouse, query: str) -> None:
    status, page, _ = await house.get(f"/scorecard?{query}")
    assert status == 400
    assert "bad_input" in page


# --- the form --------------------------------------------------------------------------------------


async def test_the_form_needs_an_account_and_has_the_token_that_one_comes_from(
    house: ConsoleHouse, built: Built
) -> None:
    token = built.tokens["plain"]
    status, _, headers = await house.get(f"/scorecard/report?token={token}")
    assert (status, headers["location"]) == (303, "/sign-in")
    session = await house.signed_in(Person())
    status, page, _ = await house.get(f"/scorecard/report?token={token}", session)
    assert (status, f'value="{token}"' in page) == (200, True)
    status, page, _ = await house.get('/scorecard/report?token="><script>', session)
    assert status == 200
    assert 'value="&#34;&gt;&lt;script&gt;"' in page
    _, page, _ = await house.get(f"/token/{token}")
    assert f'href="/scorecard/report?token={token}"' in page


async def test_what_proves_nothing_is_kept_open_once_and_its_note_is_escaped(house: ConsoleHouse) -> None:
    session, other = await house.signed_in(Person()), await house.signed_in(Person())
    csrf = await house.csrf(session)
    token, tx_hash = await traded(house)
    form = {"csrf": csrf, "token": token, "hash": tx_hash, "note": "<script>alert(1)</script>\u202e"}
    status, page, _ = await house.post("/scorecard/report", form, session)
    assert status == 200
    assert "It is saved as an open report, which changes no count." in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\u202e" not in page
    # A reload of the same form.
    _, page, _ = await house.post("/scorecard/report", {**form, "note": "again"}, session)
    assert "You already reported it." in page
    assert await open_reports(house) == 1
    # What one account wrote another is not shown.
    form = {**form, "csrf": await house.csrf(other), "note": ""}
    _, page, _ = await house.post("/scorecard/report", form, other)
    assert "already" not in page
    assert "alert" not in page
    _, page, _ = await house.get("/scorecard")
    assert "2 open reports; an open report changes no count" in page
    assert "alert" not in page


@pytest.mark.parametrize("tx_hash", JUNK)
async def test_what_is_no_hash_is_told_beside_the_form(
    house: ConsoleHouse, built: Built, tx_hash: str
) -> None:
    session = await house.signed_in(Person())
    form = {"csrf": await house.csrf(session), "token": built.tokens["plain"], "hash": tx_hash}
    status, page, _ = await house.post("/scorecard/report", form, session)
    assert (status, "bad_input" in page) == (400, True)
    assert 'name="hash"' in page
    assert await open_reports(house) == 0


async def test_other_bad_input_is_told_too(house: ConsoleHouse, built: Built) -> None:
    session = await house.signed_in(Person())
    token, tx_hash = await traded(house)
    good = {"csrf": await house.csrf(session), "token": token, "hash": tx_hash, "note": ""}
    for bad, status, code in (
        ({"token": "0x12"}, 400, "bad_input"),
        ({"note": "x" * 281}, 400, "bad_input"),
        ({"hash": "0x" + "9" * 64}, 422, "no_such_tx"),
    ):
        came, page, _ = await house.post("/scorecard/report", {**good, **bad}, session)
        assert (came, code in page) == (status, True)
    assert await open_reports(house) == 0
    # A token that nobody checked or knows.
    _, page, _ = await house.post(
        "/scorecard/report", {**good, "token": "0x" + "77" * 20, "note": "x" * 280}, session
    )
    assert "We have no verdict on this token that covers the time of that transaction." in page


async def test_after_five_a_day_no_more_are_taken(house: ConsoleHouse) -> None:
    session = await house.signed_in(Person())
    csrf = await house.csrf(session)
    _, tx_hash = await traded(house)
    page = ""
    for number in range(6):
        form = {"csrf": csrf, "token": f"0x{number:040x}", "hash": tx_hash}
        status, page, _ = await house.post("/scorecard/report", form, session)
        assert status == (400 if number == 5 else 200)
    assert "which is the daily limit. Report this one after 00:00 UTC." in page
    assert await open_reports(house) == 5


@pytest.mark.parametrize(
    ("csrf", "headers"),
    [("", {}), ("0" * 64, {}), ("own", {"sec_fetch_site": "cross-site"}), ("own", {"origin": "https://a.b"})],
)
async def test_nobody_else_sends_it(house: ConsoleHouse, csrf: str, headers: dict[str, str]) -> None:
    session = await house.signed_in(Person())
    token, tx_hash = await traded(house)
    shown = await house.csrf(session) if csrf == "own" else csrf
    form = {"csrf": shown, "token": token, "hash": tx_hash}
    status, page, _ = await house.post("/scorecard/report", form, session, **headers)
    assert (status, "bad_input" in page) == (400, True)
    assert await open_reports(house) == 0
