"""What an account was told, by a real key."""

from collections.abc import AsyncIterator

import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import INBOX_S
from roundtrip.services.runtime.context import Context
from roundtrip.store.watch import alerts
from support.cases.base import WALLET
from support.clocks import Clock
from support.keys import NOW_S, random_context
from support.serving import service
from support.watching import SETTINGS, STRANGER, Caller, a_launch, caller, draft, put


@pytest.fixture
async def me(indexed: Context) -> AsyncIterator[Caller]:
    ctx = random_context(indexed, Clock())
    async with service(ctx, SETTINGS) as url:
        yield await caller(ctx, url)


async def test_an_empty_inbox(me: Caller) -> None:
    assert await me.ask("inbox") == {
        "text": "You got no alert within the last seven days.",
        "total": 0,
        "atLeast": False,
        "rows": [],
    }


async def test_the_inbox_has_seven_days_the_newest_first(me: Caller) -> None:
    await put(me, draft(me, 1), at_s=NOW_S - INBOX_S - 1)
    second = await put(me, draft(me, 2), at_s=NOW_S - INBOX_S)
    third = await put(me, draft(me, 3, kind="follow", rule=None, who=""), at_s=NOW_S - 5)
    answer = await me.ask("inbox")
    assert answer["text"] == "2 alerts within the last seven days. The newest:\nHit 3.\nHit 2."
    assert [row["id"] for row in answer["rows"]] == [*third, *second]
    assert answer["total"] == 2
    assert answer["rows"][1] == {
        "id": second[0], "kind": "rule", "who": "any", "verb": "buying", "wallet": WALLET, "token": STRANGER,
        "symbol": None, "eth": 1.0, "usd": 3500.0, "pct": 2.5, "tx": "0x" + "ab" * 32, "block": 9,
        "ts": "2025-10-09T08:52:20Z", "rule": "any buying over 1 eth", "text": "Hit 2.", "link": None,
    }  # fmt: skip
    assert (answer["rows"][0]["who"], answer["rows"][0]["rule"]) == (WALLET, None)


async def test_what_the_chain_took_back_says_so(me: Caller) -> None:
    first, second = await put(me, draft(me, 1), draft(me, 2))
    await me.ctx.pool.execute("UPDATE accounts.alert SET retracted_at = now() WHERE id = $1", first)
    answer = await me.ask("inbox")
    assert [(row["id"], row["verb"]) for row in answer["rows"]] == [(second, "buying"), (first, "retracted")]
    assert answer["rows"][1]["text"] == "Retracted, a reorg removed it: Hit 1."
    assert "1 row retracted by a reorg." in answer["text"]


async def test_a_full_inbox_shows_the_newest(me: Caller) -> None:
    ids = await put(me, *(draft(me, number) for number in range(503)))
    answer = await me.ask("inbox")
    assert (answer["total"], [row["id"] for row in answer["rows"]]) == (503, ids[:2:-1])
    assert answer["text"].startswith(
        "503 alerts within the last seven days. The rows hold the newest 500. The new"
    )


async def test_no_more_are_counted_than_anybody_reads(me: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "MAX_COUNTED", 3)
    await put(me, *(draft(me, number) for number in range(3)))
    answer = await me.ask("inbox")
    assert (answer["total"], answer["atLeast"], len(answer["rows"])) == (3, False, 3)
    await put(me, *(draft(me, number) for number in range(3, 5)))
    answer = await me.ask("inbox")
    assert (answer["total"], answer["atLeast"], len(answer["rows"])) == (3, True, 5)
    assert answer["text"].startswith("At least 3 alerts within the last seven days. The newest:\n")


async def test_a_strangers_symbol_is_cleaned(me: Caller) -> None:
    token, *_ = await a_launch(me)
    given = bytes.fromhex(token[2:])
    was = await me.ctx.pool.fetchval("SELECT symbol FROM facts.token WHERE token = $1", given)
    await me.ctx.pool.execute(
        "INSERT INTO facts.token AS known (token, symbol, read_number) VALUES ($1, $2, 1)"
        " ON CONFLICT (token) DO UPDATE SET symbol = excluded.symbol",
        given,
        "EV\u202eIL\n" + "x" * 60,
    )
    try:
        await put(me, draft(me, 1, token=Address(token)))
        (row,) = (await me.ask("inbox"))["rows"]
    finally:
        await me.ctx.pool.execute("UPDATE facts.token SET symbol = $2 WHERE token = $1", given, was)
    assert row["symbol"] == "EVIL " + "x" * 27
