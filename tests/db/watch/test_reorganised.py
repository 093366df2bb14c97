"""Alerts over blocks that are taken away, by several at once, that end in the middle."""

import asyncio
from typing import Any

import pytest

from roundtrip.chain.rpc.background import run_in_background
from roundtrip.domain.watch.alerts import MINUTE_S
from roundtrip.store.index import cursor as chain
from roundtrip.store.maintenance.backup import forget
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alert_cursor, alerts, watches
from roundtrip.sync.apply import Writer
from sim.arena import until
from support.alert_ground import WAIT_S, AlertGround, buys
from support.alerting import PLAIN, wished, without
from unit.sync.telling import ALICE, BOB, CAROL, DEV
from unit.venues.logs import NETWORK


async def test_what_a_reorganisation_took_away_is_taken_back_and_the_rest_stays(ground: AlertGround) -> None:
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


async def test_the_lowest_of_several_reorganisations_counts(ground: AlertGround) -> None:
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


@pytest.mark.parametrize("is_told_between", [True, False])
async def test_what_is_back_is_told_again(ground: AlertGround, is_told_between: bool) -> None:
    """A fork that returns to the first branch, and notes of forks that are forgotten on the way."""
    await ground.rule()
    await ground.block(buys(ALICE))
    first = [await ground.block(buys(BOB)), await ground.block(buys(CAROL))]
    await ground.read()
    await ground.forked(101, [buys(DEV)], [], [])
    if is_told_between:
        await ground.read()
        await alert_cursor.forget(ground.index)
    await ground.returned(first, 101)
    await ground.read()
    await alert_cursor.forget(ground.index)
    gone = [row["tx_hash"] for row in await ground.rows("retracted_at IS NOT NULL")]
    back = [row["tx_hash"] for row in await ground.rows("block_number > 101 AND retracted_at IS NULL")]
    assert len(back) == 2
    assert gone == (back if not is_told_between else [*back, gone[-1]])
    assert await ground.hits() == [3]
    await ground.is_right()


async def test_a_reorganisation_of_what_was_not_read_yet_takes_nothing_back(ground: AlertGround) -> None:
    await ground.rule()
    await ground.block(buys(ALICE))
    await ground.read()
    await ground.block(buys(BOB))
    await ground.forked(101, [buys(CAROL)])
    await ground.read()
    assert len(await ground.rows("true")) == 2
    await ground.is_right()


@pytest.mark.parametrize("kept", [5, 18, 20, 25])
async def test_a_minute_that_is_cut_through_is_counted_again(ground: AlertGround, kept: int) -> None:
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


async def test_what_was_set_on_blocks_that_are_gone_counts_for_those_that_came(ground: AlertGround) -> None:
    for _ in range(3):
        await ground.block()
    await ground.read()
    await ground.rule()
    await ground.follow(ALICE)
    await ground.forked(101, [buys()])
    await ground.read()
    assert [row["block_number"] for row in await ground.rows()] == [102, 102]
    await ground.is_right()


async def test_of_two_reorganisations_the_deeper_one_says_from_where_a_watch_counts(
    ground: AlertGround,
) -> None:
    for _ in range(3):
        await ground.block()
    await ground.read()
    await ground.rule()
    await ground.follow(ALICE)
    await ground.forked(101, [buys()], [])
    await ground.forked(102, [buys()])
    await ground.read()
    assert [row["block_number"] for row in await ground.rows()] == [102, 102, 103, 103]
    await ground.is_right()


async def test_what_was_set_after_a_reorganisation_does_not_count_from_before_it(ground: AlertGround) -> None:
    for _ in range(3):
        await ground.block()
    await ground.read()
    await ground.forked(101, [buys()], [buys()])
    await ground.rule()
    await ground.block(buys())
    await ground.read()
    assert [row["block_number"] for row in await ground.rows()] == [104]
    await ground.is_right()


async def test_facts_that_were_forgotten_and_read_again_are_told_of_once(ground: AlertGround) -> None:
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


async def test_a_reorganisation_while_it_is_read_has_the_step_made_again(ground: AlertGround) -> None:
    await ground.rule()
    await ground.block(buys(ALICE))
    await ground.block(buys(BOB))

    async def happened(connection: Connection, *given: Any) -> Any:
        found = await PLAIN.read_happenings(connection, *given)
        if ground.head().number == 102:
            await ground.forked(101, [buys(CAROL)], [])
        return found

    result = ground.another(without(PLAIN, read_happenings=happened))
    assert await result.step()
    assert await ground.rows("true") == []
    await ground.read(result)
    assert [row["wallet"] for row in await ground.rows("true")] == [
        bytes.fromhex(who[2:]) for who in (ALICE, CAROL)
    ]
    await ground.is_right()


async def test_a_reorganisation_between_the_cursor_and_the_facts_loses_nothing(
    ground: AlertGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new fork is shorter than the old one was: what the old one ended with is no place to go on from."""
    await ground.rule()
    at = ground.head().number
    for _ in range(6):
        await ground.block(buys())
    await ground.read()
    await ground.block(buys())
    real, asked = chain.cursor, 0

    async def cursor(connection: Connection) -> chain.Cursor | None:
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


async def test_of_two_at_once_one_reads_and_the_other_does_nothing(ground: AlertGround) -> None:
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


async def test_two_that_begin_at_once_begin_once(ground: AlertGround) -> None:
    await ground.index.execute("DELETE FROM accounts.alert_cursor")
    assert sorted(await asyncio.gather(*(ground.another().step() for _ in range(4))))[-1]
    assert await ground.index.fetchval("SELECT count(*) FROM accounts.alert_cursor") == 1


class Broke(Exception):
    pass


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (alerts, "put"),
        (alert_cursor, "write_minutes"),
        (watches, "count_hits"),
        (alert_cursor, "update"),
        (alerts, "retract"),
        (watches, "rewind_watches"),
    ],
)
async def test_what_fails_in_the_middle_left_nothing(
    ground: AlertGround, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
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
            await ground.loop.step()
    assert (await ground.rows("true"), await ground.hits()) == before
    await ground.read()
    assert [len(await ground.rows()), len(await ground.rows("true"))] == [2, 3]
    await ground.is_right()


async def test_one_that_remembers_learns_what_another_undid(ground: AlertGround) -> None:
    """From where a rule counts has changed, and nobody changed the rule."""
    for _ in range(3):
        await ground.block()
    await ground.rule()
    await ground.read()
    await ground.forked(101)
    await ground.read(ground.another())
    await ground.block(buys())
    await ground.read(ground.loop)
    assert [row["block_number"] for row in await ground.rows()] == [102]


async def test_it_is_woken_by_facts_and_goes_on_after_a_fault(ground: AlertGround) -> None:
    await ground.rule()
    faults = iter([True])

    async def wish(connection: Connection, found: Any, *given: Any, **how: Any) -> None:
        if found and next(faults, False):
            raise Broke("a fault")
        await wished(connection, found, *given, **how)

    async def tell_blocks(count: int) -> None:
        async def is_there() -> bool:
            return len(await ground.rows("true")) >= count

        assert await until(is_there, WAIT_S)

    async with run_in_background(ground.another(without(PLAIN, enqueue=wish)).run(), "alerts"):
        await ground.block(buys())
        await tell_blocks(1)
        await ground.block(buys())
        await tell_blocks(2)
    await ground.is_right()
