"""The scorecard as a browser gets it."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.scorecard.scorecard import CODES, VerdictScore
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.scorecard.scorecard import ScoredVerdict
from roundtrip_development.devnet.world import Built
from support.console_house import House

TX = TxHash("0x" + "c" * 64)


async def wrong(house: House, built: Built, evidence_id: int, from_s: int) -> None:
    """A mistake about a token whose name a stranger wrote."""
    score = VerdictScore("wrong", "sold", 7, from_s + 60, TX, Address("0x" + "d" * 40), 60)
    token = Address(built.tokens["strange_name"])
    one = ScoredVerdict(evidence_id, token, "cannot_sell", "danger", 5, from_s, score)
    now = datetime.fromtimestamp(from_s, UTC)
    async with house.ctx.pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "INSERT INTO facts.token (token, symbol, name, decimals, read_number) VALUES ($1, $2, 'n', 18, 1)"
            " ON CONFLICT (token) DO UPDATE SET symbol = excluded.symbol",
            bytes.fromhex(token[2:]),
            '<img src=x onerror="1">',
        )
        read_to = await store.scored_to(connection)
        assert await store.put(connection, [one], read_to, evidence_id, now) == 1


@pytest.fixture(autouse=True)
async def _nothing_scored(house: House) -> AsyncIterator[None]:
    kept = "facts.score, facts.score_count, facts.score_cursor, facts.score_token"
    await house.ctx.pool.execute(f"TRUNCATE {kept}")
    yield
    await house.ctx.pool.execute(f"TRUNCATE {kept}")
    await house.ctx.pool.execute("DELETE FROM facts.token WHERE name = 'n'")


# --- the page --------------------------------------------------------------------------------------


async def test_before_anything_is_scored_it_says_so(house: House) -> None:
    status, page, _ = await house.get("/scorecard")
    assert status == 200
    assert "No verdict has been scored yet" in page
    assert "We know of no mistake. There may be mistakes that we cannot see." in page
    assert "<table" not in page
    assert "We see a failed sell only if a plain wallet sent it" in page


async def test_mistakes_are_listed_with_what_showed_them(house: House, built: Built) -> None:
    await wrong(house, built, 1, 1_770_000_000)
    status, page, _ = await house.get("/scorecard")
    assert status == 200
    assert f'href="/transaction/{TX}"' in page
    assert f'href="/token/{built.tokens["strange_name"]}"' in page
    assert "both count" in page
    assert "Later events showed 1 to be wrong and 0 to be right." in page
    assert "<img" not in page.replace('<img src="/static/', "")
    assert 'class="stranger"' in page


async def test_counts_say_of_how_many_tokens_they_are_and_that_right_is_cheap(
    house: House, built: Built
) -> None:
    for number in (1, 2):
        await wrong(house, built, number, 1_770_000_000 + 3600 * number)
    _, page, _ = await house.get("/scorecard")
    assert all(f"<code>{code}</code>" in page for code in CODES)
    assert "quote_asset" not in page
    row = page.partition('<td class="all"><code>cannot_sell</code>')[2].partition("</tr>")[0]
    assert '2 <span class="quiet">of 1 token</span>' in row
    assert "Right counts are easy to inflate" in page


async def test_everyone_shares_a_page_for_some_seconds(house: House, built: Built) -> None:
    await wrong(house, built, 1, 1_770_000_000)
    _, first, _ = await house.get("/scorecard")
    await wrong(house, built, 2, 1_770_010_000)
    _, second, _ = await house.get("/scorecard")
    assert (first.count("Transaction</a> of"), second.count("Transaction</a> of")) == (1, 1)
    # Another page is another answer.
    _, third, _ = await house.get("/scorecard?s=1770020000&id=9")
    assert third.count("Transaction</a> of") == 2


async def test_older_mistakes_are_a_link_away(house: House, built: Built) -> None:
    for number in range(1, 23):
        await wrong(house, built, number, 1_770_000_000 + 3600 * number)
    _, page, _ = await house.get("/scorecard")
    assert page.count("Transaction</a> of") == 20
    found = re.search(r'href="(/scorecard\?s=\d+&amp;id=\d+)">Older mistakes', page)
    assert found is not None
    status, page, _ = await house.get(found.group(1).replace("&amp;", "&"))
    assert (status, page.count("Transaction</a> of"), "Older mistakes" in page) == (200, 2, False)


@pytest.mark.parametrize(
    "query", ["s=x&id=1", "s=1", "id=1", "s=-1&id=1", "s=%D9%A1&id=1", f"s={10**20}&id=1", f"s={10**18}&id=1"]
)
async def test_a_page_that_is_none_is_refused(house: House, query: str) -> None:
    status, page, _ = await house.get(f"/scorecard?{query}")
    assert status == 400
    assert "bad_input" in page
