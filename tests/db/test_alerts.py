"""Alerts over a database and a chain told by hand: each fact once, whatever comes between."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import asyncpg
import pytest

from roundtrip.chain.background import beside
from roundtrip.domain import alert_text
from roundtrip.domain.alerts import MINUTE_S, MOST_A_MINUTE, MOST_FOLLOWS, MOST_RULES, Draft
from roundtrip.domain.rule_index import Source
from roundtrip.domain.rules import Happening, Over, Rule, Who
from roundtrip.domain.types import Address
from roundtrip.jobs import alert_drafts
from roundtrip.jobs.alerts import STILL_S
from roundtrip.store import alert_cursor, alerts, chain, watches
from roundtrip.store.forget import forget
from roundtrip.sync.apply import Writer
from sim.arena import until
from support.alert_ground import BUYING, NOW, NOW_S, Ground
from support.alerting import PLAIN, OneByOne, mites, wished, without
from support.databases import connected
from support.tables import begun
from support.told_blocks import Chain, Sent, bought, launched, sent, sold
from unit.sync.telling import ALICE, BOB, CAROL, CURVE, DEV, HIGH
from unit.venues.logs import NETWORK

WAIT_S = 20.0


def buys(who: Address = ALICE, wei: int = 500, times: int = 1) -> Sent:
    return sent(*(bought(CURVE, who, who, wei, 7) for _ in range(times)), sender=who)


def sells(who: Address = ALICE, wei: int = 300) -> Sent:
    return sent(sold(CURVE, who, who, wei, 1), sender=who)


@pytest.fixture
async def ground(url: str) -> AsyncIterator[Ground]:
    """A curve was launched, and the alerts have begun."""
    made = Chain()
    async with connected(url) as index, asyncpg.create_pool(url, min_size=1, max_size=6) as pool:
        await index.execute("TRUNCATE accounts.alert_cursor, accounts.alert_minute, accounts.mite CASCADE")
        writer = await begun(index, made.parent)
        (mite,) = await mites(index, 1)
        found = Ground(pool, index, made, writer, mite)
        await found.block(sent(launched(HIGH, CURVE, DEV), sender=DEV))
        await found.read()
        yield found


# --- one fact, one row ------------------------------------------------------------------------------


async def test_a_row_says_who_did_what(ground: Ground) -> None:
    number = await ground.rule(Rule(Who("wallet", ALICE), "buying", Over("eth", 10**17), HIGH), ALICE)
    follow = await ground.follow(ALICE)
    made = await ground.block(buys(ALICE, 2 * 10**18), buys(BOB, 2 * 10**18), buys(ALICE, 10**17))
    await ground.read()
    rows = await ground.rows()
    assert [(row["kind"], row["source_id"], row["log_index"]) for row in rows] == [
        ("rule", number, 0),
        ("follow", follow, 0),
        ("follow", follow, 2),
    ]
    async with ground.pool.acquire() as connection:
        kept, total = await alerts.newest(connection, ground.mite, NOW, 2)
        (same,) = await alerts.alerts(connection, [rows[0]["id"]])
    assert (total, [one.id for one in kept]) == (3, [rows[2]["id"], rows[1]["id"]])
    draft = same.draft
    assert (draft.verb, draft.who, draft.wallet, draft.token) == ("buying", ALICE, ALICE, HIGH)
    assert (draft.eth_wei, draft.block_number, draft.log_index) == (2 * 10**18, made.ref.number, 0)
    assert (draft.at_s, draft.tx_hash) == (made.ref.timestamp_s, made.transactions[0].hash)
    assert draft.rule == f"{ALICE} buying over 0.1 eth on {HIGH}"
    assert (kept[1].draft.who, kept[1].draft.rule) == ("whale", None)
    assert kept[1].draft.said.startswith("whale bought 2 eth of 0x")
    assert await ground.hits() == [1]
    await ground.is_right()


async def test_nothing_new_changes_nothing(ground: Ground) -> None:
    await ground.rule()
    await ground.block(buys())
    await ground.read()
    before = await ground.rows("true")
    await ground.read()
    await ground.read(ground.another())
    assert await ground.rows("true") == before
    await ground.is_right()


async def test_what_is_older_than_the_first_step_raises_nothing(ground: Ground) -> None:
    await ground.index.execute("DELETE FROM accounts.alert_cursor")
    await ground.block(buys())
    await ground.read()
    assert await ground.rows() == []
    await ground.rule()
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == 1


async def test_what_was_set_before_the_first_step_is_told_of_from_there(ground: Ground) -> None:
    await ground.index.execute("DELETE FROM accounts.alert_cursor")
    await ground.block(buys())
    await ground.rule()
    await ground.block(buys(BOB))
    await ground.block(buys(CAROL))
    await ground.read()
    assert [row["wallet"] for row in await ground.rows()] == [bytes.fromhex(who[2:]) for who in (BOB, CAROL)]


async def test_a_rule_that_is_set_while_alerts_lag_is_not_told_of_what_was_before(ground: Ground) -> None:
    await ground.block(buys())
    await ground.rule()
    await ground.block(buys(BOB))
    await ground.read()
    assert [row["wallet"] for row in await ground.rows()] == [bytes.fromhex(BOB[2:])]
    await ground.is_right()


async def test_nobody_is_told_of_history_that_is_read_later(ground: Ground) -> None:
    """The chain is further than the index when the rule is set."""
    await watches.add_rule(ground.index, ground.mite, BUYING, None, ground.head().number + 2, NOW)
    for _ in range(3):
        await ground.block(buys())
    await ground.read()
    assert [row["block_number"] for row in await ground.rows()] == [ground.head().number]


async def test_what_was_ended_is_told_of_no_more(ground: Ground) -> None:
    number = await ground.rule()
    await ground.follow(ALICE)
    await ground.block(buys())
    await ground.read()
    assert await watches.end_rule(ground.index, ground.mite, number, NOW)
    assert await watches.end_follow(ground.index, ground.mite, ALICE, NOW)
    assert not await watches.end_rule(ground.index, ground.mite, number, NOW)
    assert not await watches.end_follow(ground.index, ground.mite, ALICE, NOW)
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == 2
    assert (await watches.rules_of(ground.index, ground.mite)) == []
    assert (await watches.follows_of(ground.index, ground.mite)) == []


async def test_a_rule_about_follows_counts_for_whoever_is_followed_then(ground: Ground) -> None:
    number = await ground.rule(Rule(Who("follow"), "selling"))
    await ground.block(buys(), buys(BOB), sells(BOB))
    await ground.follow(BOB)
    await ground.block(sells(BOB))
    await ground.read()
    rules = [row for row in await ground.rows() if row["kind"] == "rule"]
    assert [(row["source_id"], row["block_number"], row["who"]) for row in rows_of(rules)] == [
        (number, ground.head().number, "follow")
    ]
    await ground.is_right()


def rows_of(rows: Sequence[asyncpg.Record]) -> list[dict[str, Any]]:
    return [dict(row) for row in rows]


@pytest.mark.parametrize("amiss_in", ["share_ppm", "eth_wei", "mite_id", "said"])
async def test_a_row_that_cannot_be_kept_stops_no_other(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, amiss_in: str
) -> None:
    """Whatever it is: too large for its column, no number, nobody's, text that is none."""
    value = {"share_ppm": 2**63, "eth_wei": "much", "mite_id": 2**40, "said": "a\0"}[amiss_in]

    def told(source: Source, happening: Happening) -> Draft:
        draft = alert_text.told(source, happening)
        return replace(draft, **{amiss_in: value}) if happening.wallet == BOB else draft  # type: ignore[arg-type]

    monkeypatch.setattr(alert_drafts, "told", told)
    await ground.rule()
    await ground.block(buys(ALICE), buys(BOB), buys(CAROL), buys(BOB), buys(DEV))
    await ground.block(buys(ALICE))
    await ground.read()
    assert [row["wallet"] for row in await ground.rows()] == [
        bytes.fromhex(who[2:]) for who in (ALICE, CAROL, DEV, ALICE)
    ]
    read = await ground.index.fetchval("SELECT number FROM accounts.alert_cursor")
    assert read == ground.head().number


async def test_a_token_that_says_it_has_a_supply_of_one_stops_nobody(ground: Ground) -> None:
    async def happened(connection: asyncpg.Connection, *given: Any) -> Any:
        found = await PLAIN.happened(connection, *given)
        return [one._replace(part_raw=10**30, whole_raw=1) for one in found]

    told = ground.another(without(PLAIN, happened=happened))
    await ground.rule()
    await ground.block(buys())
    await ground.read(told)
    assert [row["share_ppm"] for row in await ground.rows()] == [None]


# --- what is watched --------------------------------------------------------------------------------


async def test_a_rule_comes_back_as_it_was_set(ground: Ground) -> None:
    given = [
        (Rule(Who("any"), "buying"), None),
        (Rule(Who("deployer", HIGH), "draining", Over("%", 50_000)), DEV),
        (Rule(Who("creator", HIGH), "selling", Over("eth", 10**30 + 1), HIGH), DEV),
        (Rule(Who("follow"), "moving", Over("usd", 0)), None),
    ]
    ids = [await ground.rule(rule, wallet) for rule, wallet in given]
    kept = await watches.rules_of(ground.index, ground.mite)
    assert [(one.id, one.rule, one.wallet) for one in kept] == [
        (number, *one) for number, one in zip(ids, given, strict=True)
    ]
    assert await ground.rule(*given[1]) == ids[1]
    changes = await watches.changes_since(ground.index, 0)
    assert [(one.source.id, one.rule, one.wallet) for one in changes] == [
        (number, *one) for number, one in zip(ids, given, strict=True)
    ]
    assert await watches.changes_since(ground.index, changes[-1].number) == []


async def test_a_follow_has_its_newest_name_and_begins_when_it_began(ground: Ground) -> None:
    number = await ground.follow(ALICE, "one")
    await ground.block(buys())
    assert await ground.follow(ALICE, "two") == number
    await ground.read()
    assert [row["who"] for row in await ground.rows()] == ["two"]
    assert [one.name for one in await watches.follows_of(ground.index, ground.mite)] == ["two"]


async def test_two_requests_at_once_never_make_one_too_many(ground: Ground) -> None:
    for number in range(MOST_RULES - 1):
        await ground.rule(Rule(Who("any"), "buying", Over("eth", number)))

    async def one_more(number: int) -> int | None:
        async with ground.pool.acquire() as connection, connection.transaction():
            try:
                rule = Rule(Who("any"), "selling", Over("eth", number))
                return await watches.add_rule(connection, ground.mite, rule, None, 0, NOW)
            except watches.TooMany:
                return None

    made = await asyncio.gather(*(one_more(number) for number in range(5)))
    assert len([number for number in made if number is not None]) == 1
    assert len(await watches.rules_of(ground.index, ground.mite)) == 50


async def test_there_is_an_end_to_follows(ground: Ground) -> None:
    for number in range(MOST_FOLLOWS):
        await ground.follow(Address(f"0x{number:040x}"))
    with pytest.raises(watches.TooMany):
        await ground.follow(ALICE)
    assert await ground.follow(Address(f"0x{7:040x}"), "other") > 0


async def test_changes_come_to_light_in_their_order(ground: Ground) -> None:
    """Whoever has a number lets nobody have the next before it is seen."""
    (other,) = await mites(ground.index, 1)
    async with ground.pool.acquire() as first, ground.pool.acquire() as second:
        open_one = first.transaction()
        await open_one.start()
        await watches.add_rule(first, ground.mite, BUYING, None, 0, NOW)
        await second.execute("SET lock_timeout = '100ms'")
        with pytest.raises(asyncpg.LockNotAvailableError):
            async with second.transaction():
                await watches.add_rule(second, other, BUYING, None, 0, NOW)
        await open_one.commit()
        async with second.transaction():
            await watches.add_rule(second, other, BUYING, None, 0, NOW)
        await second.execute("RESET lock_timeout")
    assert [one.source.mite_id for one in await watches.changes_since(ground.index, 0)] == [
        ground.mite,
        other,
    ]


@pytest.mark.parametrize("follows", [True, False])
async def test_what_happens_while_a_rule_is_set_is_told(ground: Ground, follows: bool) -> None:
    """Nobody reads on until the rule is seen; who would have had it count from an older block missed some."""
    async with ground.pool.acquire() as other:
        setting = other.transaction()
        await setting.start()
        if follows:
            await watches.add_follow(other, ground.mite, ALICE, "", -1, NOW)
        else:
            await watches.add_rule(other, ground.mite, BUYING, None, -1, NOW)
        made = await ground.block(buys())
        async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
            reading = group.create_task(ground.read())
            assert await until(lambda: _waits_for_a_lock(ground), WAIT_S)
            assert not reading.done()
            await setting.commit()
    assert [row["block_number"] for row in await ground.rows()] == [made.ref.number]
    await ground.is_right()


async def test_what_is_set_while_facts_are_read_counts_from_where_those_end(ground: Ground) -> None:
    """It waits for the step, and the step waits for nobody: not even for who ends a rule that was hit."""
    number = await ground.rule()
    first = await ground.block(buys())
    held, goes_on = asyncio.Event(), asyncio.Event()

    async def happened(connection: asyncpg.Connection, *given: Any) -> Any:
        held.set()
        await goes_on.wait()
        return await PLAIN.happened(connection, *given)

    async def sets() -> None:
        async with ground.pool.acquire() as connection, connection.transaction():
            await watches.end_rule(connection, ground.mite, number, NOW)
            await watches.add_follow(connection, ground.mite, ALICE, "", -1, NOW)

    told = ground.another(without(PLAIN, happened=happened))
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
        group.create_task(told.step())
        await held.wait()
        group.create_task(sets())
        assert await until(lambda: _waits_for_a_lock(ground), WAIT_S)
        goes_on.set()
    second = await ground.block(buys())
    await ground.read()
    assert [(row["kind"], row["block_number"]) for row in await ground.rows()] == [
        ("rule", first.ref.number),
        ("follow", second.ref.number),
    ]


async def _waits_for_a_lock(ground: Ground) -> bool:
    waiting: bool = await ground.index.fetchval(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
    )
    return waiting


# --- a minute's limit -------------------------------------------------------------------------------


async def test_beyond_a_minutes_limit_it_is_said_once_how_many_more(ground: Ground) -> None:
    await ground.rule()
    start_s = ground.head().timestamp_s // MINUTE_S * MINUTE_S + MINUTE_S
    await ground.block(buys(times=15), after_s=start_s - ground.head().timestamp_s)
    await ground.read()
    await ground.block(buys(times=12))
    await ground.read()
    assert [len(await ground.rows()), *await ground.hits()] == [MOST_A_MINUTE, 27]
    await ground.block(after_s=MINUTE_S)
    await ground.read()
    await ground.read(ground.another())
    (more,) = await ground.rows("more > 0")
    assert (more["more"], more["kind"], more["rule"], more["who"]) == (7, "rule", "any buying", "any")
    assert (more["at_s"], more["said"]) == (start_s + 59, "And 7 more in that minute: any buying.")
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == MOST_A_MINUTE + 2
    await ground.is_right()


@pytest.mark.parametrize(("name", "said"), [("whale", "whale"), ("", "0x{}…{}")])
async def test_of_a_followed_wallet_it_is_said_who_did_more(ground: Ground, name: str, said: str) -> None:
    await ground.follow(ALICE, name)
    start_s = ground.head().timestamp_s // MINUTE_S * MINUTE_S + MINUTE_S
    await ground.block(buys(times=MOST_A_MINUTE + 5), after_s=start_s - ground.head().timestamp_s)
    await ground.block(after_s=MINUTE_S)
    await ground.read()
    (more,) = await ground.rows("more > 0")
    assert (more["who"], more["wallet"]) == (name or ALICE, bytes.fromhex(ALICE[2:]))
    assert more["said"] == f"And 5 more in that minute: {said.format(ALICE[2:6], ALICE[-4:])}."


async def test_where_the_chain_stands_still_a_minute_is_over_by_our_clock(ground: Ground) -> None:
    await ground.rule()
    await ground.block(buys(times=22))
    await ground.read()
    ground.at_s += STILL_S - 1
    await ground.read()
    assert await ground.rows("more > 0") == []
    ground.at_s += 1
    await ground.read()
    await ground.read()
    assert [row["more"] for row in await ground.rows("more > 0")] == [2]


async def test_nobody_is_told_how_many_more_of_what_was_ended(ground: Ground) -> None:
    number = await ground.rule()
    await ground.block(buys(times=22))
    await ground.read()
    await watches.end_rule(ground.index, ground.mite, number, NOW)
    await ground.block(after_s=MINUTE_S)
    await ground.read()
    assert await ground.rows("more > 0") == []
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.alert_minute WHERE beyond > told") == 0


# --- reorganisations --------------------------------------------------------------------------------


async def test_what_a_reorganisation_took_away_is_taken_back_and_the_rest_stays(ground: Ground) -> None:
    await ground.rule()
    kept = await ground.block(buys(ALICE))
    await ground.block(buys(BOB))
    await ground.read()
    await ground.forked(kept.ref.number, [buys(CAROL)], [buys(CAROL)])
    await ground.read()
    gone = await ground.rows("retracted_at IS NOT NULL")
    assert [row["wallet"] for row in gone] == [bytes.fromhex(BOB[2:])]
    assert [row["block_number"] for row in await ground.rows()] == [101, 102, 103]
    assert await ground.hits() == [3]
    await ground.is_right()


async def test_the_lowest_of_several_reorganisations_counts(ground: Ground) -> None:
    await ground.rule()
    for who in (ALICE, BOB, CAROL):
        await ground.block(buys(who))
    await ground.read()
    await ground.forked(101, [buys(DEV)], [buys(DEV)], [buys(DEV)])
    await ground.forked(103, [buys(BOB)])
    await ground.read()
    assert len(await ground.rows("retracted_at IS NOT NULL")) == 2
    assert len(await ground.rows()) == 4
    await ground.is_right()


async def test_a_reorganisation_of_what_was_not_read_yet_takes_nothing_back(ground: Ground) -> None:
    await ground.rule()
    await ground.block(buys(ALICE))
    await ground.read()
    await ground.block(buys(BOB))
    await ground.forked(101, [buys(CAROL)])
    await ground.read()
    assert len(await ground.rows("true")) == 2
    await ground.is_right()


@pytest.mark.parametrize("kept", [5, 18, 20, 25])
async def test_a_minute_that_is_cut_through_is_counted_again(ground: Ground, kept: int) -> None:
    """``kept`` buys of its first block stay, of which it has room for twenty."""
    await ground.rule()
    start_s = ground.head().timestamp_s // MINUTE_S * MINUTE_S + MINUTE_S
    await ground.block(buys(times=kept), after_s=start_s - ground.head().timestamp_s)
    await ground.block(buys(times=30))
    await ground.block(buys(times=3), after_s=MINUTE_S)
    await ground.block(after_s=MINUTE_S)
    await ground.read()
    assert await ground.hits() == [kept + 33]
    await ground.forked(101, [buys(BOB, times=4)], [], after_s=2)
    await ground.read()
    assert await ground.hits() == [kept + 4]
    await ground.is_right()
    await ground.block(after_s=MINUTE_S)
    await ground.read()
    more = await ground.rows("more > 0 AND retracted_at IS NULL")
    assert [row["more"] for row in more] == [kept + 4 - 20] * (kept + 4 > 20)
    await ground.is_right()


async def test_what_was_set_on_blocks_that_are_gone_counts_for_those_that_came(ground: Ground) -> None:
    for _ in range(3):
        await ground.block()
    await ground.read()
    await ground.rule()
    await ground.follow(ALICE)
    await ground.forked(101, [buys()])
    await ground.read()
    assert [row["block_number"] for row in await ground.rows()] == [102, 102]
    await ground.is_right()


async def test_what_was_set_after_a_reorganisation_does_not_count_from_before_it(ground: Ground) -> None:
    for _ in range(3):
        await ground.block()
    await ground.read()
    await ground.forked(101, [buys()], [buys()])
    await ground.rule()
    await ground.block(buys())
    await ground.read()
    assert [row["block_number"] for row in await ground.rows()] == [104]
    await ground.is_right()


async def test_facts_that_were_forgotten_and_read_again_are_told_of_once(ground: Ground) -> None:
    await ground.rule()
    for _ in range(3):
        await ground.block(buys())
    await ground.read()
    blocks = list(ground.chain.blocks)
    await forget(ground.index)
    await ground.read()
    await chain.begin(ground.index, 100, ground.chain.parent)
    ground.writer = Writer(NETWORK)
    for block in blocks:
        await ground.follows(block)
        await ground.read()
    await ground.block(buys(BOB))
    await ground.read()
    assert [row["block_number"] for row in await ground.rows("true")] == [101, 102, 103, 104]
    await ground.is_right()


async def test_a_reorganisation_while_it_is_read_has_the_step_made_again(ground: Ground) -> None:
    await ground.rule()
    await ground.block(buys(ALICE))
    await ground.block(buys(BOB))

    async def happened(connection: asyncpg.Connection, *given: Any) -> Any:
        found = await PLAIN.happened(connection, *given)
        if ground.head().number == 102:
            await ground.forked(101, [buys(CAROL)], [])
        return found

    told = ground.another(without(PLAIN, happened=happened))
    assert await told.step()
    assert await ground.rows("true") == []
    await ground.read(told)
    assert [row["wallet"] for row in await ground.rows("true")] == [
        bytes.fromhex(who[2:]) for who in (ALICE, CAROL)
    ]
    await ground.is_right()


async def test_a_reorganisation_between_the_cursor_and_the_facts_loses_nothing(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new fork is shorter than the old one was: what the old one ended with is no place to go on from."""
    await ground.rule()
    at = ground.head().number
    for _ in range(6):
        await ground.block(buys())
    await ground.read()
    await ground.block(buys())
    real, asked = chain.cursor, 0

    async def cursor(connection: asyncpg.Connection) -> chain.Cursor | None:
        nonlocal asked
        found, asked = await real(connection), asked + 1
        if asked == 1:
            await ground.forked(at + 2, [buys(), buys()])
        return found

    monkeypatch.setattr(chain, "cursor", cursor)
    await ground.read()
    for _ in range(6):
        await ground.block(buys())
    await ground.read()
    await ground.is_right()


# --- several processes, and ends in the middle -------------------------------------------------------


async def test_of_two_at_once_one_reads_and_the_other_does_nothing(ground: Ground) -> None:
    await ground.rule()
    for _ in range(30):
        await ground.block(buys(), after_s=20)
    one, other = ground.another(most_blocks=1), ground.another(most_blocks=2)
    async with asyncio.timeout(WAIT_S):
        for _ in range(100):
            if not any(await asyncio.gather(one.step(), other.step(), one.step(), other.step())):
                break
    assert len(await ground.rows("true")) == 30
    await ground.is_right()
    async with ground.index.transaction():
        await ground.index.execute("SELECT FROM accounts.alert_cursor FOR UPDATE")
        await ground.pool.execute("UPDATE facts.cursor SET number = number + 1")
        assert not await other.step()
        await ground.pool.execute("UPDATE facts.cursor SET number = number - 1")


async def test_two_that_begin_at_once_begin_once(ground: Ground) -> None:
    await ground.index.execute("DELETE FROM accounts.alert_cursor")
    assert sorted(await asyncio.gather(*(ground.another().step() for _ in range(4))))[-1]
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.alert_cursor") == 1


class Broke(Exception):
    pass


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (alerts, "put"),
        (alert_cursor, "put_minutes"),
        (watches, "count_hits"),
        (alert_cursor, "move"),
        (alerts, "retract"),
        (watches, "turn_back"),
    ],
)
async def test_what_fails_in_the_middle_left_nothing(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    await ground.rule()
    await ground.block(buys())
    await ground.read()
    await ground.forked(100, [buys(BOB), buys(CAROL)])
    before = await ground.rows("true"), await ground.hits()
    real = getattr(module, name)

    async def breaks(*given: Any) -> Any:
        await real(*given)
        raise Broke

    with monkeypatch.context() as broken:
        broken.setattr(module, name, breaks)
        with pytest.raises(Broke):
            await ground.told.step()
    assert (await ground.rows("true"), await ground.hits()) == before
    await ground.read()
    assert [len(await ground.rows()), len(await ground.rows("true"))] == [2, 3]
    await ground.is_right()


async def test_one_that_remembers_learns_what_another_undid(ground: Ground) -> None:
    """From where a rule counts has changed, and nobody changed the rule."""
    for _ in range(3):
        await ground.block()
    await ground.rule()
    await ground.read()
    await ground.forked(101)
    await ground.read(ground.another())
    await ground.block(buys())
    await ground.read(ground.told)
    assert [row["block_number"] for row in await ground.rows()] == [102]


async def test_it_is_woken_by_facts_and_goes_on_after_a_fault(ground: Ground) -> None:
    await ground.rule()
    faults = iter([True])

    async def wish(connection: asyncpg.Connection, found: Any, *given: Any, **how: Any) -> None:
        if found and next(faults, False):
            raise Broke("a fault")
        await wished(connection, found, *given, **how)

    async def told(count: int) -> None:
        async def is_there() -> bool:
            return len(await ground.rows("true")) >= count

        assert await until(is_there, WAIT_S)

    async with beside(ground.another(without(PLAIN, wish=wish)).run(), "alerts"):
        await ground.block(buys())
        await told(1)
        await ground.block(buys())
        await told(2)
    await ground.is_right()


# --- much at once -----------------------------------------------------------------------------------


async def test_a_thousand_rules_about_one_fact_are_told_in_bounded_pieces(ground: Ground) -> None:
    many = await mites(ground.index, 20)
    await ground.index.execute(
        "INSERT INTO accounts.rule (mite_id, said, who, verb, unit, over_raw, from_number, rewound, made_at,"
        " change) SELECT mite_id, 'any buying over ' || number || ' eth', 'any', 'buying', 'eth', number,"
        " 100, 0, $2, nextval('accounts.watch_changes')"
        " FROM unnest($1::bigint[]) AS mite_id, generate_series(0, 49) AS number",
        many,
        NOW,
    )
    blocks = [await ground.block(buys(wei=10**18)) for _ in range(4)]
    seen = []
    told = ground.another(most_matches=1_500)
    for _ in range(10):
        more = await told.step()
        seen.append(len(await ground.rows("true")))
        if not more:
            break
    # Blocks are not parted: the second makes it enough.
    assert seen == [2_000, 4_000]
    assert {row["block_number"] for row in await ground.rows()} == {block.ref.number for block in blocks}
    await ground.is_right()


async def test_blocks_of_which_no_time_is_kept_are_read_with_the_next_that_has_one(ground: Ground) -> None:
    await ground.rule()
    for _ in range(12):
        await ground.block(buys())
    await ground.index.execute("DELETE FROM facts.block WHERE number BETWEEN 101 AND 107")
    told, seen = ground.another(most_blocks=3), []
    while await told.step():
        seen.append(await ground.index.fetchval("SELECT number FROM accounts.alert_cursor"))
    assert seen == [108, 111]
    await ground.is_right()


DEEDS = ("block", "block", "block", "busy", "later", "fork", "rule", "follow", "end", "step")


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_comes_in_which_order_each_fact_is_told_once(ground: Ground, seed: int) -> None:
    rng, wallets = Random(seed), [ALICE, BOB, CAROL, DEV]
    tellers = [ground.told, ground.another(most_blocks=2, most_matches=5)]
    made: list[int] = []
    for _ in range(60):
        match rng.choice(DEEDS):
            case "block":
                await ground.block(*(rng.choice([buys, sells])(rng.choice(wallets)) for _ in range(3)))
            case "busy":
                await ground.block(buys(rng.choice(wallets), times=rng.randrange(8, 30)))
            case "later":
                await ground.block(after_s=rng.randrange(10, 70))
            case "fork":
                back = rng.randrange(max(100, ground.head().number - 4), ground.head().number + 1)
                busy = (buys(rng.choice(wallets), times=rng.randrange(25)) for _ in range(rng.randrange(3)))
                await ground.forked(back, *([one] for one in busy), after_s=rng.randrange(1, 40))
            case "rule":
                verb, who = rng.choice(["buying", "selling"]), rng.choice(["any", "follow"])
                over = rng.choice([None, Over("eth", rng.randrange(600))])
                made.append(await ground.rule(Rule(Who(who), verb, over)))  # type: ignore[arg-type]
            case "follow":
                await ground.follow(rng.choice(wallets))
            case "end" if made and rng.randrange(3) == 0:
                await watches.end_rule(ground.index, ground.mite, rng.choice(made), NOW)
            case "step":
                for _ in range(rng.randrange(4)):
                    await rng.choice(tellers).step()
    for told in tellers:
        await ground.read(told)
    await ground.is_right()


# --- what is old ------------------------------------------------------------------------------------


async def test_what_is_old_goes_and_what_was_undone_goes(ground: Ground) -> None:
    number = await ground.rule()
    await ground.rule(Rule(Who("any"), "selling"))
    await ground.block(buys())
    await ground.read()
    await ground.forked(100, [buys()])
    await ground.read()
    later = datetime.fromtimestamp(NOW_S + 1, UTC)
    assert not await alerts.forget(ground.index, NOW)
    assert len(await ground.rows("true")) == 2
    assert not await alerts.forget(ground.index, later)
    assert await ground.rows("true") == []
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.delivery") == 0
    await ground.forked(100, [buys()])
    await alert_cursor.forget(ground.index)
    assert await ground.index.fetchval("SELECT count(*) FROM facts.rewound") == 1
    await watches.end_rule(ground.index, ground.mite, number, NOW)
    await watches.forget_ended(ground.index, NOW + watches.ENDED_KEPT)
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.rule") == 2
    await watches.forget_ended(ground.index, later + watches.ENDED_KEPT)
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.rule") == 1
    await ground.read()
    assert await alert_cursor.last_rewound(ground.index) > 0


async def test_all_that_is_watched_is_read_in_pieces(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails in the middle is begun anew: half of it is not all."""
    monkeypatch.setattr(watches, "MOST_CHANGES", 2)
    real, asked = watches.changes_since, list[int]()

    async def changes_since(connection: asyncpg.Connection, number: int, most: int) -> list[watches.Change]:
        asked.append(number)
        if len(asked) == 2:
            raise ConnectionError
        found = await real(connection, number, most)
        assert len(found) <= 2
        return found

    monkeypatch.setattr(watches, "changes_since", changes_since)
    rules = [await ground.rule(Rule(Who("any"), "buying", Over("eth", number))) for number in range(5)]
    follows = [await ground.follow(who) for who in (ALICE, BOB, CAROL)]
    await watches.end_rule(ground.index, ground.mite, rules.pop(1), NOW)
    told = ground.another()
    with pytest.raises(ConnectionError):
        await told.step()
    await ground.read(told)
    await watches.end_rule(ground.index, ground.mite, rules.pop(1), NOW)
    await ground.index.execute("DELETE FROM accounts.rule WHERE ended_at IS NOT NULL")
    ground.at_s += watches.ENDED_KEPT.total_seconds() / 2 + 1
    asked.clear()
    with pytest.raises(ConnectionError):
        await told.step()
    await ground.block(buys(ALICE), buys(BOB), buys(CAROL))
    await ground.read(told)
    monkeypatch.undo()
    assert asked[:3] == [0, asked[1], 0]
    assert len(asked) > 5
    raised = [(row["kind"], row["source_id"]) for row in await ground.rows()]
    assert sorted(raised) == sorted(
        [("rule", each) for each in rules] * 3 + [("follow", one) for one in follows]
    )
    await ground.is_right()


async def test_a_reorganisation_has_only_that_read_again_which_it_turned_back(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[OneByOne]()

    def empty() -> OneByOne:
        made.append(OneByOne())
        return made[-1]

    told = ground.another(without(PLAIN, index=empty))
    at = ground.head().number
    before = await ground.rule()
    for _ in range(3):
        await ground.block()
    after = await ground.rule(Rule(Who("any"), "buying", Over("eth", 1)))
    follow = await ground.follow(ALICE)
    await ground.read(told)
    await ground.forked(at + 1, [buys()])
    await ground.read(told)
    assert len(made) == 1
    assert [(row["kind"], row["source_id"]) for row in await ground.rows()] == [
        ("rule", before),
        ("rule", after),
        ("follow", follow),
    ]
    await ground.is_right()
    # What a step that was not kept had turned back is as it was.
    await ground.forked(at, [buys()])
    monkeypatch.setattr(alert_cursor, "move", _fails)
    with pytest.raises(ConnectionError):
        await told.step()
    monkeypatch.undo()
    await ground.read(told)
    assert len(made) == 2
    await ground.is_right()


async def _fails(*_: Any) -> None:
    raise ConnectionError


async def test_after_half_a_day_everything_is_read_again(ground: Ground) -> None:
    """What was ended is forgotten after a day, and who did not look meanwhile would never know."""
    number = await ground.rule()
    await ground.block(buys())
    await ground.read()
    await watches.end_rule(ground.index, ground.mite, number, NOW)
    await ground.index.execute("DELETE FROM accounts.rule")
    ground.at_s += watches.ENDED_KEPT.total_seconds() / 2 + 1
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == 1
