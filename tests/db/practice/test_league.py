"""The league beside a sync that goes on, beside tags that change, and where the database takes too long."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import cast

import asyncpg
import pytest

from roundtrip.domain.practice import practice as rules
from roundtrip.domain.practice.practice import WEEK_S as LENGTH_S
from roundtrip.store.accounts import accounts
from roundtrip.store.boards import fair_tokens
from roundtrip.store.index import cursor
from roundtrip.store.practice import league
from roundtrip.store.practice.league import LeagueCounts
from roundtrip.store.server.rows import Connection
from support.leagued import DAY_S, NOW, NUMBER, TOKEN, WEEK_S, Leagued, block, curve_of, new_account
from support.made_index import ETH, number_address
from unit.venues.logs import NETWORK

WAIT_S = 20
COUNTS = None
OTHER = number_address(0x70D0)


@pytest.fixture
async def made(url: str) -> AsyncIterator[Leagued]:
    connection = await asyncpg.connect(url)
    yield await Leagued(connection).made()
    await connection.close()


@pytest.fixture
async def other(url: str) -> AsyncIterator[Connection]:
    """A second connection, which waits for nobody."""
    connection = await asyncpg.connect(url, server_settings={"lock_timeout": "100ms"})
    yield connection
    await connection.close()


async def is_agent(made: Leagued, account_id: int) -> bool | None:
    found: bool | None = await made.connection.fetchval(
        "SELECT is_agent FROM accounts.league_week WHERE account_id = $1 AND week_s = $2", account_id, WEEK_S
    )
    return found


async def until_somebody_waits(connection: Connection) -> None:
    """For a lock, in this database."""
    waiting = (
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'"
        " AND datname = current_database())"
    )
    async with asyncio.timeout(WAIT_S):
        while not await connection.fetchval(waiting):
            pass


# --- nobody waits ----------------------------------------------------------------------------------


async def test_the_sync_does_not_wait_for_a_sell_nor_a_sell_for_it(made: Leagued, other: Connection) -> None:
    """What was found is kept by the job of the winners alone."""
    stands = await cursor.cursor(made.connection)
    assert stands is not None
    async with asyncio.timeout(WAIT_S), made.connection.transaction():
        assert await made.sells(await new_account(made.connection)) == COUNTS
        async with other.transaction():
            assert await cursor.advance(other, stands.block.hash, block(NUMBER + 1)) is not None
            assert await made.sells(await new_account(made.connection)) == COUNTS
    assert await made.kept() == []


# --- where the database takes too long -------------------------------------------------------------


async def test_what_cannot_be_found_out_in_time_does_not_count_and_the_transaction_goes_on(
    made: Leagued, other: Connection
) -> None:
    account = await new_account(made.connection)
    async with other.transaction():
        await other.execute("LOCK TABLE facts.position IN ACCESS EXCLUSIVE MODE")
        async with made.connection.transaction(), asyncio.timeout(WAIT_S):
            assert (
                await league.count_sell(
                    made.connection,
                    account,
                    TOKEN,
                    ETH,
                    block(),
                    NOW,
                    venue=curve_of(TOKEN),
                    contracts=NETWORK,
                    timeout_s=0.05,
                )
                == rules.NO_TIME
            )
            await accounts.tag_agent(made.connection, account.id, "Bot")
    assert (await accounts.read_account(made.connection, account.id)).account.agent_name == "Bot"
    assert await made.connection.fetchval("SELECT count(*) FROM accounts.league_week") == 0


async def test_a_sell_is_taken_back_with_the_transaction_that_books_it(made: Leagued) -> None:
    account = await new_account(made.connection)
    undone = made.connection.transaction()
    await undone.start()
    for _ in range(3):
        assert await made.sells(account) == COUNTS
    await undone.rollback()
    assert await made.board() == []


async def test_of_a_crowd_in_the_long_run_all_are_looked_at(made: Leagued) -> None:
    """The real ones bought last: those who are looked at first tell nothing."""
    await made.launched(OTHER, DAY_S)
    fresh = [number_address(0xD000 + n) for n in range(2 * fair_tokens.LOOKED_AT)]
    await made.met(*fresh, at_s=block().timestamp_s)
    await made.bought(OTHER, *fresh)
    account = await new_account(made.connection)
    assert await made.sells(account, token=OTHER) == rules.FEW
    await made.bought(OTHER, *(number_address(0xE000 + n) for n in range(20)))
    assert await made.sells(account, token=OTHER) == COUNTS


# --- tags ------------------------------------------------------------------------------------------


async def test_a_tag_is_on_this_weeks_board_at_once_and_leaves_the_week_before(made: Leagued) -> None:
    account, stays = await new_account(made.connection), await new_account(made.connection)
    before = await league.tag(made.connection, account.id, "Bot 7", NOW)
    assert (before.is_agent, before.agent_name) == (True, "Bot 7")
    for one in (account, stays, account, stays, account, stays):
        await made.sells(one)
    assert [(one.designation, one.agent_name) for one in await made.board("agents")] == [
        (account.designation, "Bot 7")
    ]
    assert [one.designation for one in await made.board("people")] == [stays.designation]
    after = await league.untag(made.connection, account.id, NOW)
    assert (after.is_agent, after.agent_name) == (False, None)
    assert await made.board("agents") == []
    assert {(one.designation, one.agent_name) for one in await made.board("people")} == {
        (account.designation, None),
        (stays.designation, None),
    }
    from_monday = LENGTH_S
    await made.connection.execute("UPDATE accounts.league_week SET week_s = week_s - $1", from_monday)
    await league.tag(made.connection, account.id, "Bot 8", NOW)
    assert await made.board("agents", WEEK_S - from_monday) == []
    assert {one.agent_name for one in await made.board("all", WEEK_S - from_monday)} == {None}


async def test_a_tag_waits_for_a_sell_that_is_being_booked_and_finds_it(
    made: Leagued, url: str, other: Connection
) -> None:
    account = await new_account(made.connection)
    tagging = await asyncpg.connect(url)
    booking = made.connection.transaction()
    await booking.start()
    await made.sells(account)
    waits = asyncio.create_task(league.tag(tagging, account.id, "Bot", NOW))
    await until_somebody_waits(other)
    await booking.commit()
    async with asyncio.timeout(WAIT_S):
        assert (await waits).is_agent
    assert await is_agent(made, account.id) is True
    await tagging.close()


async def test_a_sell_waits_for_a_tag_that_is_being_set_and_has_it(
    made: Leagued, url: str, other: Connection
) -> None:
    account = await new_account(made.connection)
    tagging = await asyncpg.connect(url)
    setting = tagging.transaction()
    await setting.start()
    await league.tag(tagging, account.id, "Bot", NOW)
    waits = asyncio.create_task(made.sells(account))
    await until_somebody_waits(other)
    await setting.commit()
    async with asyncio.timeout(WAIT_S):
        assert await waits == COUNTS
    assert await is_agent(made, account.id) is True
    await tagging.close()


async def counts_are_right(made: Leagued) -> bool:
    """What was counted as it came is what there is."""
    rows = await made.connection.fetch(
        "SELECT is_agent, count(*) FILTER (WHERE sells >= 3) AS on_board, count(*) AS every"
        " FROM accounts.league_week WHERE week_s = $1 GROUP BY is_agent", WEEK_S,
    )  # fmt: skip
    slow = {row["is_agent"]: LeagueCounts(row["on_board"], row["every"] - row["on_board"]) for row in rows}
    agents, people = slow.get(True, LeagueCounts(0, 0)), slow.get(False, LeagueCounts(0, 0))
    every = LeagueCounts(agents.on_board + people.on_board, agents.too_few + people.too_few)
    found = [await league.count_entered(made.connection, WEEK_S, who) for who in ("agents", "people", "all")]
    return found == [agents, people, every]


async def test_tags_and_sells_of_several_at_once_are_counted_right(made: Leagued, url: str) -> None:
    accounts = [await new_account(made.connection) for _ in range(6)]
    several = [Leagued(await asyncpg.connect(url)) for _ in range(4)]

    async def acts(number: int, one: Leagued) -> None:
        for turn in range(20):
            account = accounts[(number + turn) % len(accounts)]
            if turn % 4 == number:
                await league.untag(one.connection, account.id, NOW)
            elif turn % 4 == (number + 2) % 4:
                async with one.connection.transaction():
                    await league.tag(one.connection, account.id, None, NOW)
            else:
                assert await one.sells(account) == COUNTS

    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*(acts(number, one) for number, one in enumerate(several)))
    assert await counts_are_right(made)
    assert (await league.count_entered(made.connection, WEEK_S, "all")).on_board >= 3
    for one in several:
        await one.connection.close()


async def test_a_tag_takes_an_entry_and_what_is_none_yet_to_the_other_board(made: Leagued) -> None:
    entered, few = await new_account(made.connection), await new_account(made.connection)
    for one in (entered, few, entered, entered):
        await made.sells(one)
    for one, agents, people in (
        (entered, LeagueCounts(1, 0), LeagueCounts(0, 1)),
        (few, LeagueCounts(1, 1), LeagueCounts(0, 0)),
    ):
        for _ in range(2):
            await league.tag(made.connection, one.id, None, NOW)
            assert await league.count_entered(made.connection, WEEK_S, "agents") == agents
            assert await league.count_entered(made.connection, WEEK_S, "people") == people
    await league.untag(made.connection, few.id, NOW)
    assert await league.count_entered(made.connection, WEEK_S, "people") == LeagueCounts(0, 1)
    assert await counts_are_right(made)


async def test_many_sells_of_an_account_at_once_are_all_added(made: Leagued, url: str) -> None:
    account = await new_account(made.connection)
    several = [Leagued(await asyncpg.connect(url)) for _ in range(4)]

    async def sells(one: Leagued) -> None:
        for _ in range(5):
            assert await one.sells(account) == COUNTS

    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*(sells(one) for one in several))
    (first,) = await made.board()
    assert (first.profit_wei, first.sells, first.won) == (20 * ETH, 20, 20)
    for one in several:
        await one.connection.close()


async def test_of_equal_profit_fewer_sells_are_first_then_who_was_done_earlier_then_the_older_account(
    made: Leagued,
) -> None:
    more, late, old, young = [await new_account(made.connection) for _ in range(4)]
    for account, sells in ((more, 4), (late, 3), (young, 3), (old, 3)):
        for _ in range(sells):
            await made.sells(account, 12 * ETH // sells)
    # However the clocks of two processes differ, it is the last that counts.
    await made.sells(late, 0, later=timedelta(seconds=1))
    for account in (old, young, late):
        await made.sells(account, 0)
    await made.sells(more, 0)
    await made.sells(late, 0, later=timedelta(seconds=-1))
    for account in (old, young):
        await made.sells(account, 0)
    await made.sells(more, 0)
    ranked = [one.designation for one in await made.board()]
    assert ranked == [one.designation for one in (old, young, more, late)]


# --- how a board is read ---------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["all", "agents", "people"])
async def test_a_board_is_read_from_an_index_in_its_order(made: Leagued, who: rules.Who) -> None:
    """Nothing is put in order that is not shown."""
    await made.connection.execute(
        "INSERT INTO accounts.account (wallet, designation, made_at) SELECT decode(lpad(to_hex(n), 40, '0'),"
        " 'hex'), 'mite-' || n, $1 FROM generate_series(1, 5000) n ON CONFLICT DO NOTHING", NOW,
    )  # fmt: skip
    await made.connection.execute(
        "INSERT INTO accounts.league_week SELECT $1, account.id, account.id % 3 = 0, account.id % 97, 3, 1,"
        " decode(repeat('aa', 20), 'hex'), 1, $1 FROM accounts.account AS account", WEEK_S,
    )  # fmt: skip
    await made.connection.execute("ANALYZE accounts.league_week")
    explained: list[str] = []

    class Explaining:
        async def fetch(self, query: str, *given: object) -> list[asyncpg.Record]:
            rows = await made.connection.fetch(f"EXPLAIN (COSTS OFF) {query}", *given)
            explained.extend(row[0] for row in rows)
            return []

    await league.board(cast(Connection, Explaining()), WEEK_S, who, 100)
    plan = "\n".join(explained)
    index = "league_board" if who == "all" else "league_board_of"
    assert f"Index Scan using {index} on league_week" in plan, plan
    assert "Seq Scan on league_week" not in plan
