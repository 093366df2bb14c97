"""The rooms of practice and the bag, and the league's page."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from roundtrip.console.pages.account_sections.bag import list_warnings, sum_past
from roundtrip.console.pages.account_sections.practice import gain_now, is_refused
from roundtrip.domain.practice.practice import monday_s
from roundtrip.services.portfolio.bag import BagRow
from roundtrip.services.portfolio.bag_page import BagPast, value_past
from roundtrip.services.practice.account import MAX_CLOSINGS
from roundtrip.services.practice.pricing import SELL_FAILS
from roundtrip.services.practice.schema import PracticeAccount
from roundtrip.services.runtime.context import Context
from roundtrip.store.practice.practice import closings
from roundtrip.store.watch.bag_changes import BagToken, OwnTrade, PastTrade
from roundtrip_development.devnet.world import Built
from support.answers import build_answer
from support.clocks import Clock
from support.console_account import Account, signed_in
from support.keys import NOW_S, random_context
from support.serving import service
from support.watching import SETTINGS


@pytest.fixture
async def me(indexed: Context) -> AsyncIterator[Account]:
    ctx = random_context(indexed, Clock())
    async with service(ctx, SETTINGS) as url:
        yield await signed_in(ctx, url)


async def once(me: Account, nth: int = 0) -> str:
    """The name that a form of the room carries: that of the buy, then those of the sells."""
    page = await me.get("/account/practice")
    return str(re.findall('name="once" value="([0-9a-f]{32})"', page)[nth])


async def sides(me: Account) -> list[str]:
    rows = await me.ctx.pool.fetch(
        "SELECT side FROM accounts.practice_trade WHERE account_id = $1 ORDER BY id", me.account_id
    )
    return [row["side"] for row in rows]


# --- trades ----------------------------------------------------------------------------------------


async def test_a_reload_of_a_form_does_not_trade_twice(me: Account, built: Built) -> None:
    buy = {"once": await once(me), "token": built.tokens["plain"], "eth": "0.1"}
    first = await me.do("practice_buy", **buy)
    again = await me.do("practice_buy", **buy)
    assert (first[0], again[0]) == (200, 200)
    rows = [
        re.findall('<div class="notice t-ok" role="status">(.*?)</div>', page)[0]
        for _, page in (first, again)
    ]
    assert rows[0] == rows[1]
    assert await sides(me) == ["buy"]
    sell = {"once": await once(me, 1), "token": built.tokens["plain"], "percent": "50"}
    for _ in range(2):
        assert (await me.do("practice_sell", **sell))[0] == 200
    assert await sides(me) == ["buy", "sell"]
    assert (await me.do("practice_sell", **{**sell, "once": await once(me, 1)}))[0] == 200
    assert await sides(me) == ["buy", "sell", "sell"]


async def test_a_link_fills_the_token_in_and_a_bought_trap_is_no_success(me: Account, built: Built) -> None:
    trap = built.tokens["blacklist_after_buy"]
    assert f'value="{trap}"' in await me.get(f"/account/practice?token={trap}")
    _, fair = await me.do("practice_buy", once=await once(me), token=built.tokens["plain"], eth="0.1")
    assert 'class="notice t-ok" role="status"' in fair
    _, page = await me.do("practice_buy", once=await once(me), token=trap, eth="0.1")
    assert 'class="notice t-danger" role="status"' in page
    # It is worth nothing, and the button that sells is that of the other token alone.
    assert re.search('data-label="Worth if sold now, eth">0 <span class="chip t-danger">', page)
    assert 'If you sold all now: <strong class="t-danger">' in page
    assert len(re.findall('<button type="submit">Sell<', page)) == 1
    assert f'Try to sell, then write it off<span class="hidden"> for {trap}</span>' in page


async def test_each_form_has_a_name_of_its_own(me: Account, built: Built) -> None:
    await me.do("practice_buy", once=await once(me), token=built.tokens["plain"], eth="0.1")
    page = await me.get("/account/practice") + await me.get("/account/practice")
    names = re.findall('name="once" value="([0-9a-f]{32})"', page)
    assert len(names) == len(set(names)) == 4


@pytest.mark.parametrize("name", [None, "", "x" * 201])
async def test_a_form_without_its_name_trades_nothing(me: Account, built: Built, name: str | None) -> None:
    given = {} if name is None else {"once": name}
    status, page = await me.do("practice_buy", token=built.tokens["plain"], eth="0.1", **given)
    assert (status, "idempotency-key must be" in page) == (400, True)
    assert await sides(me) == []


async def test_what_does_not_fit_is_told_beside_its_form(me: Account, built: Built) -> None:
    status, page = await me.do("practice_buy", once=await once(me), token="0x12", eth="7")
    assert status == 400
    assert 'aria-describedby="buy-fault"' in page
    assert 'value="0x12"' in page
    assert 'value="7"' in page
    await me.do("practice_buy", once=await once(me), token=built.tokens["plain"], eth="0.1")
    status, page = await me.do(
        "practice_sell", once=await once(me, 1), token=built.tokens["plain"], percent="101"
    )
    assert status == 400
    assert 'aria-describedby="sell-fault"' in page
    assert 'value="101"' in page
    assert page.count('role="alert"') == 1


# --- its history -----------------------------------------------------------------------------------


async def closed(me: Account, *profits_wei: int) -> None:
    """Sells a minute apart, as the ledger has them."""
    async with me.ctx.pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "INSERT INTO accounts.practice_account (account_id, eth_wei, given_wei, week_s)"
            " VALUES ($1, 0, 0, $2) ON CONFLICT DO NOTHING",
            me.account_id, monday_s(int(NOW_S)),
        )  # fmt: skip
        await connection.executemany(
            "INSERT INTO accounts.practice_trade (account_id, token, side, token_raw, eth_wei, cost_wei,"
            " profit_wei, made_at) VALUES ($1, $2, 'written_off', 1, 0, 0, $3, $4)",
            [
                (me.account_id, b"\x07" * 20, profit, datetime.fromtimestamp(NOW_S + 60 * number, UTC))
                for number, profit in enumerate(profits_wei)
            ],
        )


def points(page: str) -> list[str]:
    (figure,) = re.findall('<figure class="profit">(.*?)</figure>', page, re.DOTALL)
    return re.findall('data-value="([^"]+)"', figure)


async def test_what_sells_took_adds_up_exactly(me: Account) -> None:
    page = await me.get("/account/practice")
    assert "<figure" not in page
    await closed(me, 10**18 + 1, -(3 * 10**18), 5 * 10**17)
    page = await me.get("/account/practice")
    assert points(page) == ["1.000000000000000001", "-1.999999999999999999", "-1.499999999999999999"]
    assert "together lost 1.499 practice eth" in page
    assert "<polyline" in page
    other = await signed_in(me.ctx, me.url)
    assert "<figure" not in await other.get("/account/practice")


async def test_of_many_the_newest_are_drawn_on_top_of_all_before(me: Account) -> None:
    await closed(me, *[10**18] * (MAX_CLOSINGS + 3))
    page = await me.get("/account/practice")
    assert points(page) == [str(one) for one in range(4, MAX_CLOSINGS + 4)]
    assert f"The chart shows the newest {MAX_CLOSINGS}." in page
    async with me.ctx.pool.acquire() as connection:
        assert [one.total_wei // 10**18 for one in await closings(connection, me.account_id, 2)] == [
            MAX_CLOSINGS + 3, MAX_CLOSINGS + 2
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("position", "refused", "gain"),
    [
        ({"worth": "0.5"}, False, "0.25"),
        ({"worth": None, "why": f"{SELL_FAILS}: STF."}, True, "0.25"),
        ({"worth": None, "why": "We could not find out what it sells for."}, False, None),
        ({"worth": None, "why": "We could not find out.", "stuckAt": "2026-01-01T00:00:00Z"}, True, "0.25"),
    ],
)
def test_what_is_not_known_is_neither_refused_nor_nothing(
    position: dict[str, Any], refused: bool, gain: str | None
) -> None:
    given = {"positions": [position], "worth": "1.2", "setApart": "0.05", "given": "1"}
    account = build_answer(PracticeAccount, given)
    assert is_refused(account.positions[0]) == refused
    assert gain_now(account) == gain


# --- the bag ---------------------------------------------------------------------------------------


def holding(**more: Any) -> BagRow:
    return build_answer(BagRow, {"sells": "yes", "changes": {}} | more)


def check(level: str, fees_bps: int | None = 100) -> dict[str, Any]:
    return {"level": level, "code": "some_code", "feesBps": fees_bps}


@pytest.mark.parametrize(
    ("row", "levels"),
    [
        (holding(), []),
        (holding(changes={"now": check("ok"), "then": check("ok")}), []),
        (holding(sells="refused"), ["danger"]),
        (holding(sells="part"), ["warn"]),
        (holding(sells="unknown"), ["unknown"]),
        (holding(changes={"now": check("unknown")}), ["unknown"]),
        (holding(changes={"now": check("danger")}), ["danger"]),
        (holding(changes={"now": check("ok", 201), "then": check("ok", 100)}), ["warn"]),
        (holding(changes={"now": check("ok", 200), "then": check("ok", 100)}), []),
        (holding(changes={"now": check("ok", None), "then": check("ok", 100)}), []),
        (holding(changes={"deployer": {"soldBps": 0}}), []),
        (holding(changes={"deployer": {"soldBps": 1}}), ["warn"]),
        (holding(changes={"deployer": {"soldBps": 2000}}), ["danger"]),
        (holding(changes={"liquidityLeftBps": None}), []),
        (holding(changes={"liquidityLeftBps": 1}), ["warn"]),
        (holding(changes={"liquidityLeftBps": 5000, "now": check("warn")}, sells="unknown"),
         ["danger", "unknown", "warn"]),
    ],
)  # fmt: skip
def test_what_is_to_be_known_of_a_holding_first(row: BagRow, levels: list[str]) -> None:
    assert [level for level, _ in list_warnings(row)] == levels


def test_the_bag_over_time_counts_what_can_be_sold_and_no_guess() -> None:
    rows = [
        holding(token={"address": name}, sells=sells)
        for name, sells in (("a", "yes"), ("b", "yes"), ("trap", "refused"), ("dark", "unknown"))
    ]
    values = {"a": ["1.5", "2"], "b": ["0.5", None], "trap": ["9", "9"], "dark": ["9", "9"]}
    past = {
        "times": ["2026-01-05T00:00:00Z", "2026-01-05T06:00:00Z"],
        "tokens": [{"address": name, "values": series} for name, series in values.items()],
    }
    answer = build_answer(BagPast, past)
    assert [value for _, value in sum_past(rows, answer)] == [Decimal(2), None]
    assert sum_past(rows[2:], answer) == []


def test_what_was_held_is_counted_back_from_what_is_held() -> None:
    held, bought = (
        BagToken(7, 300, None, None, 1, 1),
        [OwnTrade(7, 20, 100), OwnTrade(7, 30, 200), OwnTrade(8, 30, 9)],
    )
    prices = {at_s: PastTrade(at_s, 5 * 10**17, 100) for at_s in (20, 30)}
    assert value_past(held, bought, prices, [10, 20, 25, 30]) == ["0", "0.5", None, "1.5"]


async def test_an_empty_bag_says_what_it_is(me: Account) -> None:
    assert "Tokens that your wallet buys appear here" in await me.get("/account/bag")


# --- the league ------------------------------------------------------------------------------------


def main(page: str) -> str:
    return page.partition("<main")[2].partition("</main")[0]


async def test_the_league_marks_who_looks(me: Account) -> None:
    page = main(await me.get("/league?who=agents"))
    assert "not ranked yet" in page
    assert "(you)" not in page
    assert "/sign-in" not in page
    monday = datetime.fromtimestamp(monday_s(int(NOW_S)), UTC)
    for began in (monday, monday - timedelta(weeks=1)):
        await me.ctx.pool.execute(
            "INSERT INTO accounts.league_week SELECT $1, id, is_agent, 9e24, 3, 2, $3, 5e17, $1 + 60"
            " FROM accounts.account WHERE id = $2",
            int(began.timestamp()), me.account_id, b"\x07" * 20,
        )  # fmt: skip
    page = main(await me.get("/league?who=people"))
    (row,) = re.findall(
        '<tr class="mine"><td class="head"><span class="quiet">#([0-9]+)</span>.*\\(you\\)', page
    )[:1]
    assert f"rank {row}" in page
    # Last week's board marks it, too.
    assert page.count("(you)") == 2
    other = await signed_in(me.ctx, me.url)
    assert "(you)" not in await other.get("/league?who=people")


async def test_who_is_nobody_reads_the_league(me: Account) -> None:
    status, page = await replace(me, session="").page("/league")
    assert status == 200
    assert "<dt>You</dt>" not in page
    assert (await me.page("/league?who=robots"))[0] == 400
