"""What is watched, and the limit of a minute."""

import asyncio
from typing import Any

import asyncpg
import pytest

from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import MAX_A_MINUTE, MAX_FOLLOWS, MAX_RULES, MINUTE_S
from roundtrip.domain.watch.rules import Over, Rule, Who
from roundtrip.jobs.alerts.loop import STILL_S
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import watches
from sim.arena import until
from support.alert_ground import BUYING, NOW, WAIT_S, AlertGround, buys
from support.alerting import PLAIN, accounts, without
from unit.sync.telling import ALICE, DEV, HIGH


async def test_a_rule_comes_back_as_it_was_set(ground: AlertGround) -> None:
    given = [
        (Rule(Who("any"), "buying"), None),
        (Rule(Who("deployer", HIGH), "draining", Over("%", 50_000)), DEV),
        (Rule(Who("creator", HIGH), "selling", Over("eth", 10**30 + 1), HIGH), DEV),
        (Rule(Who("follow"), "moving", Over("usd", 0)), None),
    ]
    ids = [await ground.rule(rule, wallet) for rule, wallet in given]
    kept = await watches.rules_of(ground.index, ground.account)
    assert [(one.id, one.rule, one.wallet) for one in kept] == [
        (number, *one) for number, one in zip(ids, given, strict=True)
    ]
    assert await ground.rule(*given[1]) == ids[1]
    changes = await watches.changes_since(ground.index, 0)
    assert [(one.source.id, one.rule, one.wallet) for one in changes] == [
        (number, *one) for number, one in zip(ids, given, strict=True)
    ]
    assert await watches.changes_since(ground.index, changes[-1].number) == []


async def test_a_paused_rule_matches_nothing_and_then_counts_anew(ground: AlertGround) -> None:
    number = await ground.rule(Rule(Who("any"), "buying"), None)
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == 1
    assert await watches.pause_rule(ground.index, ground.account, number)
    assert not await watches.pause_rule(ground.index, ground.account, number)
    assert not await watches.pause_rule(ground.index, ground.account + 1, number)
    await ground.block(buys())
    # One process learns of the change, another one reads all that is live.
    await ground.read()
    await ground.read(ground.another())
    assert await watches.changes_since(ground.index, 0) == []
    assert len(await ground.rows()) == 1
    assert [kept.paused for kept in await watches.rules_of(ground.index, ground.account)] == [True]
    assert not await watches.resume_rule(ground.index, ground.account + 1, number, 0)
    assert await watches.resume_rule(ground.index, ground.account, number, 0)
    assert not await watches.resume_rule(ground.index, ground.account, number, 0)
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == 2
    # Who sets it again lets it go on as well.
    await watches.pause_rule(ground.index, ground.account, number)
    assert await ground.rule(Rule(Who("any"), "buying"), None) == number
    assert [kept.paused for kept in await watches.rules_of(ground.index, ground.account)] == [False]


async def test_a_follow_has_its_newest_name_and_begins_when_it_began(ground: AlertGround) -> None:
    number = await ground.follow(ALICE, "one")
    await ground.block(buys())
    assert await ground.follow(ALICE, "two") == number
    await ground.read()
    assert [row["who"] for row in await ground.rows()] == ["two"]
    assert [one.name for one in await watches.follows_of(ground.index, ground.account)] == ["two"]


async def test_two_requests_at_once_never_make_one_too_many(ground: AlertGround) -> None:
    for number in range(MAX_RULES - 1):
        await ground.rule(Rule(Who("any"), "buying", Over("eth", number)))

    async def one_more(number: int) -> int | None:
        async with ground.pool.acquire() as connection, connection.transaction():
            try:
                rule = Rule(Who("any"), "selling", Over("eth", number))
                return await watches.add_rule(connection, ground.account, rule, None, 0, NOW)
            except watches.TooManyWatches:
                return None

    made = await asyncio.gather(*(one_more(number) for number in range(5)))
    assert len([number for number in made if number is not None]) == 1
    assert len(await watches.rules_of(ground.index, ground.account)) == 50


async def test_there_is_an_end_to_follows(ground: AlertGround) -> None:
    for number in range(MAX_FOLLOWS):
        await ground.follow(Address(f"0x{number:040x}"))
    with pytest.raises(watches.TooManyWatches):
        await ground.follow(ALICE)
    assert await ground.follow(Address(f"0x{7:040x}"), "other") > 0


async def test_changes_come_to_light_in_their_order(ground: AlertGround) -> None:
    """Whoever has a number lets nobody have the next before it is seen."""
    (other,) = await accounts(ground.index, 1)
    async with ground.pool.acquire() as first, ground.pool.acquire() as second:
        open_one = first.transaction()
        await open_one.start()
        await watches.add_rule(first, ground.account, BUYING, None, 0, NOW)
        await second.execute("SET lock_timeout = '100ms'")
        with pytest.raises(asyncpg.LockNotAvailableError):
            async with second.transaction():
                await watches.add_rule(second, other, BUYING, None, 0, NOW)
        await open_one.commit()
        async with second.transaction():
            await watches.add_rule(second, other, BUYING, None, 0, NOW)
        await second.execute("RESET lock_timeout")
    assert [one.source.account_id for one in await watches.changes_since(ground.index, 0)] == [
        ground.account,
        other,
    ]


@pytest.mark.parametrize("follows", [True, False])
async def test_what_happens_while_a_rule_is_set_is_told(ground: AlertGround, follows: bool) -> None:
    """Nobody reads on until the rule is seen; who would have had it count from an older block missed some."""
    async with ground.pool.acquire() as other:
        setting = other.transaction()
        await setting.start()
        if follows:
            await watches.add_follow(other, ground.account, ALICE, "", -1, NOW)
        else:
            await watches.add_rule(other, ground.account, BUYING, None, -1, NOW)
        made = await ground.block(buys())
        async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
            reading = group.create_task(ground.read())
            assert await until(lambda: _waits_for_a_lock(ground), WAIT_S)
            assert not reading.done()
            await setting.commit()
    assert [row["block_number"] for row in await ground.rows()] == [made.ref.number]
    await ground.is_right()


async def test_what_is_set_while_facts_are_read_counts_from_where_those_end(ground: AlertGround) -> None:
    """It waits for the step, and the step waits for nobody: not even for who ends a rule that was hit."""
    number = await ground.rule()
    first = await ground.block(buys())
    held, goes_on = asyncio.Event(), asyncio.Event()

    async def happened(connection: Connection, *given: Any) -> Any:
        held.set()
        await goes_on.wait()
        return await PLAIN.read_happenings(connection, *given)

    async def sets() -> None:
        async with ground.pool.acquire() as connection, connection.transaction():
            await watches.end_rule(connection, ground.account, number, NOW)
            await watches.add_follow(connection, ground.account, ALICE, "", -1, NOW)

    result = ground.another(without(PLAIN, read_happenings=happened))
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
        group.create_task(result.step())
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


async def _waits_for_a_lock(ground: AlertGround) -> bool:
    waiting: bool = await ground.index.fetchval(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
    )
    return waiting


async def test_beyond_a_minutes_limit_it_is_said_once_how_many_more(ground: AlertGround) -> None:
    await ground.rule()
    start_s = ground.head().timestamp_s // MINUTE_S * MINUTE_S + MINUTE_S
    await ground.block(buys(times=15), after_s=start_s - ground.head().timestamp_s)
    await ground.read()
    await ground.block(buys(times=12))
    await ground.read()
    assert [len(await ground.rows()), *await ground.hits()] == [MAX_A_MINUTE, 27]
    await ground.block(after_s=MINUTE_S)
    await ground.read()
    await ground.read(ground.another())
    (more,) = await ground.rows("more > 0")
    assert (more["more"], more["kind"], more["rule"], more["who"]) == (7, "rule", "any buying", "any")
    assert (more["at_s"], more["said"]) == (
        start_s + 59,
        "7 more alerts in that minute, not listed: any buying.",
    )
    await ground.block(buys())
    await ground.read()
    assert len(await ground.rows()) == MAX_A_MINUTE + 2
    await ground.is_right()


@pytest.mark.parametrize(("name", "expected"), [("whale", "whale"), ("", ALICE)])
async def test_of_a_followed_wallet_it_is_said_who_did_more(
    ground: AlertGround, name: str, expected: str
) -> None:
    await ground.follow(ALICE, name)
    start_s = ground.head().timestamp_s // MINUTE_S * MINUTE_S + MINUTE_S
    await ground.block(buys(times=MAX_A_MINUTE + 5), after_s=start_s - ground.head().timestamp_s)
    await ground.block(after_s=MINUTE_S)
    await ground.read()
    (more,) = await ground.rows("more > 0")
    assert (more["who"], more["wallet"]) == (name or ALICE, bytes.fromhex(ALICE[2:]))
    assert more["said"] == f"5 more alerts in that minute, not listed: {expected}."


async def test_where_the_chain_stands_still_a_minute_is_over_by_our_clock(ground: AlertGround) -> None:
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


async def test_nobody_is_told_how_many_more_of_what_was_ended(ground: AlertGround) -> None:
    number = await ground.rule()
    await ground.block(buys(times=22))
    await ground.read()
    await watches.end_rule(ground.index, ground.account, number, NOW)
    await ground.block(after_s=MINUTE_S)
    await ground.read()
    assert await ground.rows("more > 0") == []
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.alert_minute WHERE beyond > told") == 0
