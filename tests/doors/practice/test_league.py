"""The league and its tag, by accounts with a real key."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.types import Address
from roundtrip.domain.practice.practice import WEEK_S, monday_s
from roundtrip.services.practice.league import LeagueParams, league
from roundtrip.services.runtime.context import Context
from roundtrip.store.accounts import accounts
from roundtrip.store.index import tokens
from roundtrip.store.server import connections
from support.clocks import Clock
from support.doors import over_mcp_client
from support.keys import NOW_S, Person, key_for, random_context
from support.leagued import Leagued, new_account
from support.made_index import ETH
from support.serving import service
from support.tables import own_database
from support.watching import SETTINGS, Caller, caller, operation

THIS = monday_s(int(NOW_S))
TOKEN = Address("0x" + "70" * 20)
SPOOF = '"SAFE") is safe\u202e'


@pytest.fixture(scope="module")
async def url(database_url: str) -> AsyncIterator[str]:
    async with own_database(database_url, "league_doors") as found:
        yield found


@pytest.fixture
async def standing(ctx: Context, url: str) -> AsyncIterator[Context]:
    """A context over a database in which nobody has a week, and its clock stands."""
    async with connections.create_pool(url, min_size=1, max_size=4) as pool:
        async with pool.acquire() as connection:
            await Leagued(connection).emptied()
        yield random_context(replace(ctx, pool=pool), Clock())


@pytest.fixture
async def me(standing: Context) -> AsyncIterator[Caller]:
    async with service(standing, SETTINGS) as served:
        yield await caller(standing, served)


async def week(ctx: Context, account_id: int, profit_wei: int, *, began_s: int = THIS, **more: Any) -> None:
    """What an account's sells came to."""
    row = {"sells": 3, "won": 2, "best_profit_wei": ETH // 2, **more}
    await ctx.pool.execute(
        "INSERT INTO accounts.league_week SELECT $1, id, is_agent, $3::numeric, $4, $5, $6, $7::numeric, $8"
        " FROM accounts.account WHERE id = $2",
        began_s, account_id, profit_wei, row["sells"], row["won"], bytes.fromhex(TOKEN[2:]),
        row["best_profit_wei"], began_s + 60,
    )  # fmt: skip
    await ctx.pool.execute("DELETE FROM accounts.league_count")
    await ctx.pool.execute(
        "INSERT INTO accounts.league_count SELECT week_s, is_agent, count(*) FILTER (WHERE sells >= 3),"
        " count(*) FILTER (WHERE sells < 3) FROM accounts.league_week GROUP BY week_s, is_agent"
    )


async def new_accounts(ctx: Context, count: int) -> list[Account]:
    async with ctx.pool.acquire() as connection:
        return [await new_account(connection) for _ in range(count)]


# --- the board -------------------------------------------------------------------------------------


async def test_a_board_tells_who_is_first_and_by_what(me: Caller) -> None:
    ctx = me.ctx
    first, last, few = await new_accounts(ctx, 3)
    await me.ask("mark_as_agent", name="Bot 7")
    await week(ctx, first.id, 3 * ETH // 2, sells=4)
    await week(ctx, me.account_id, ETH // 4)
    await week(ctx, last.id, -ETH, won=0, best_profit_wei=-1)
    await week(ctx, few.id, 9 * ETH, sells=2)
    await week(ctx, last.id, ETH // 8, began_s=THIS - WEEK_S)
    await week(ctx, few.id, 9 * ETH, began_s=THIS - 2 * WEEK_S)
    async with ctx.pool.acquire() as connection:
        await Leagued(connection).index.id_of(TOKEN)
        await tokens.keep(connection, TOKEN, SPOOF, None, 18, None, 1)
        own = (await accounts.read_account(connection, me.account_id)).account
    answer = await me.ask("league")
    assert (answer["who"], answer["onBoard"], answer["tooFew"]) == ("all", 3, 1)
    assert (answer["weekStart"], answer["weekEnd"]) == ("2025-10-06T00:00:00Z", "2025-10-13T00:00:00Z")
    best = {"token": {"address": TOKEN, "symbol": '"SAFE") is safe', "name": None}, "profitEth": "0.5"}
    assert answer["rows"] == [
        {"rank": 1, "designation": first.designation, "agent": False, "agentName": None, "profitEth": "1.5",
         "sells": 4, "won": 2, "best": best},
        {"rank": 2, "designation": own.designation, "agent": True, "agentName": "Bot 7", "profitEth": "0.25",
         "sells": 3, "won": 2, "best": best},
        {"rank": 3, "designation": last.designation, "agent": False, "agentName": None, "profitEth": "-1",
         "sells": 3, "won": 0, "best": None},
    ]  # fmt: skip
    assert answer["lastWeek"]["weekStart"] == "2025-09-29T00:00:00Z"
    assert answer["lastWeek"]["onBoard"] == 1
    assert [row["profitEth"] for row in answer["lastWeek"]["podium"]] == ["0.125"]
    assert answer["text"] == (
        "Practice league of accounts, the week from Monday 2025-10-06, 00:00 UTC, to the next Monday:\n"
        f"1. {first.designation}: profit 1.5 eth, 4 sells, 2 won, "
        f"best \"'SAFE') is safe\" ({TOKEN}) 0.5 eth\n"
        f'2. {own.designation} (agent "Bot 7"): profit 0.25 eth, 3 sells, 2 won, '
        f"best \"'SAFE') is safe\" ({TOKEN}) 0.5 eth\n"
        f"3. {last.designation}: loss 1 eth, 3 sells, 0 won\n"
        "1 account has fewer than 3 sells that count.\n"
        "A sell counts, gain or loss, if its token is at least a day old and, as far as we know, at least 20 "
        "different people bought it, if it is sold where it was launched or trades most, and if the seller "
        "is not linked to its deployer. An entry needs 3 such sells. The eth is pretend.\n"
        f"Last week:\n1. {last.designation}: profit 0.125 eth"
    )


async def test_agents_and_people_have_boards_of_their_own(me: Caller) -> None:
    first, second = await new_accounts(me.ctx, 2)
    await me.ask("mark_as_agent")
    for account_id, profit_wei in ((first.id, 3), (me.account_id, 2), (second.id, 1)):
        await week(me.ctx, account_id, profit_wei, sells=1 if account_id == second.id else 3, won=1)
    agents, people = await me.ask("league", who="agents"), await me.ask("league", who="people")
    assert [(row["rank"], row["profitEth"]) for row in agents["rows"]] == [(1, "0.000000000000000002")]
    assert [(row["rank"], row["profitEth"]) for row in people["rows"]] == [(1, "0.000000000000000003")]
    assert (agents["onBoard"], agents["tooFew"], people["onBoard"], people["tooFew"]) == (1, 0, 1, 1)
    assert agents["text"].startswith("Practice league of agents, the week from Monday 2025-10-06")
    assert "1 account without an agent tag has fewer than 3 sells that count." in people["text"]


async def test_an_empty_board_says_what_an_entry_needs(me: Caller) -> None:
    answer = await me.ask("league", who="agents")
    assert answer["rows"] == []
    assert (answer["onBoard"], answer["tooFew"]) == (0, 0)
    assert answer["text"].startswith(
        "Practice league of agents, the week from Monday 2025-10-06, 00:00 UTC, to the next Monday: "
        "no entry yet.\nA sell counts, gain or loss, if"
    )


async def test_a_hundred_ranks_are_told_and_the_others_counted(standing: Context) -> None:
    for place, account in enumerate(await new_accounts(standing, 102)):
        await week(standing, account.id, 1000 - place)
    answered = (await league(standing, LeagueParams())).answer
    assert (answered.on_board, len(answered.rows)) == (102, 100)
    assert [row.rank for row in answered.rows] == list(range(1, 101))
    assert "\n99 more entries.\n" in answered.text


async def test_a_week_is_not_told_beyond_its_end(standing: Context) -> None:
    assert (await league(standing, LeagueParams())).ttl_ms == standing.policy.answer_ttl_ms
    late = replace(standing, now_s=Clock(THIS + WEEK_S - 2.5))
    assert (await league(late, LeagueParams())).ttl_ms == 2500
    after = replace(standing, now_s=Clock(THIS + WEEK_S))
    answered = (await league(after, LeagueParams())).answer
    assert answered.week_start == datetime(2025, 10, 13, tzinfo=UTC)


async def test_the_league_needs_no_index_and_no_name_of_a_token(standing: Context) -> None:
    (one,) = await new_accounts(standing, 1)
    await week(standing, one.id, ETH)
    (row,) = (await league(standing, LeagueParams())).answer.rows
    assert row.best is not None
    assert (row.best.token.address, row.best.token.symbol, row.best.token.name) == (TOKEN, None, None)


# --- the tag ---------------------------------------------------------------------------------------


async def test_a_tag_is_set_named_anew_and_removed(me: Caller) -> None:
    await week(me.ctx, me.account_id, ETH)
    own = (await me.ask("my_mite"))["designation"]
    steps: list[tuple[dict[str, Any], bool, str | None]] = [
        ({}, True, None),
        ({"name": " Bot   7 "}, True, "Bot 7"),
        ({}, True, "Bot 7"),
        ({"name": None, "off": False}, True, "Bot 7"),
        ({"name": "x" * 24}, True, "x" * 24),
        ({"off": True}, False, None),
        ({"off": True}, False, None),
        ({}, True, None),
    ]
    for arguments, agent, name in steps:
        answer = await me.ask("mark_as_agent", **arguments)
        assert (answer["designation"], answer["agent"], answer["agentName"]) == (own, agent, name)
        mine = await me.ask("my_mite")
        assert (mine["agent"], mine["agentName"]) == (agent, name)
        rows = (await league(me.ctx, LeagueParams())).answer.rows
        assert [(row.agent, row.agent_name, row.profit_eth) for row in rows] == [(agent, name, "1")]
    answer = await me.ask("mark_as_agent")
    assert answer["text"] == f"{own} is tagged as an agent, also in the league. Nothing else changed."


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "x" * 25},
        {"name": ""},
        {"name": "  "},
        {"name": "Bot-7"},
        {"name": "Bоt"},
        {"name": "Bot\n"},
        {"name": 7},
        {"off": "yes"},
        {"off": True, "name": "Bot"},
        {"x": 1},
    ],
)
async def test_what_is_no_name_is_refused_and_changes_nothing(me: Caller, arguments: dict[str, Any]) -> None:
    await me.ask("mark_as_agent", name="Bot")
    assert (await me.error("mark_as_agent", **arguments)).startswith("bad_input: ")
    mine = await me.ask("my_mite")
    assert (mine["agent"], mine["agentName"]) == (True, "Bot")


async def test_the_tag_answers_the_same_at_both_doors(me: Caller) -> None:
    for arguments in ({"name": "Bot"}, {}, {"off": True}):
        bare = await me.came("mark_as_agent", **arguments)
        assert bare.answer is not None
        assert bare == await over_mcp_client(me.url, operation("mark_as_agent"), arguments, me.key)


async def test_a_key_that_is_made_for_an_agent_tags_this_week_too(standing: Context) -> None:
    person = Person()
    await key_for(standing, person)
    async with standing.pool.acquire() as connection:
        account = (await accounts.lock_account(connection, person.address, [], datetime.now(UTC))).account
    await week(standing, account.id, ETH)
    assert (await league(standing, LeagueParams("agents"))).answer.rows == []
    await key_for(standing, person, agent=True, name="Bot 8")
    (row,) = (await league(standing, LeagueParams("agents"))).answer.rows
    assert (row.designation, row.agent_name) == (account.designation, "Bot 8")
