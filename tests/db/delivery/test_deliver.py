"""Deliveries over a real database, to servers that answer as a test says. Time is moved by hand."""

import asyncio
from dataclasses import replace

import pytest

from roundtrip.domain.watch.channels import IN_ORDER_TRIES, MAX_TRIES, OFF_AFTER_S, WAITS_S
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.kinds.deliver import MAX_A_RUN, RUN_S, deliver
from roundtrip.jobs.registry import KINDS
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from support.channels import NO_ANSWER, OK, WAIT_S, ChannelStreet, answered


async def claimed(street: ChannelStreet) -> Job:
    """As another worker takes it."""
    async with street.pool.acquire() as connection:
        (job,) = await jobs.claim(connection, ["deliver"], 10, 30, street.now())
    return job


async def test_an_alert_arrives_and_is_written_down(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    (row,) = await street.alert(account, "0xaa buys")
    assert await street.run() == 1
    (sent,) = street.servers.sent
    assert sent.to.url == "https://a.example/alerts"
    answer = sent.said
    assert (answer["mite"], answer["kind"]) == (account.designation, "rule")
    assert [(one["id"], one["text"], one["verb"]) for one in answer["rows"]] == [
        (row.id, "0xaa buys", "buying")
    ]
    assert await street.states(channel_id) == ["delivered"]
    assert await street.due_in_s(channel_id) is None
    assert (await street.channel(channel_id)).state == "live"
    tries = await street.pool.fetch(
        "SELECT number, status, error, took_ms FROM accounts.delivery_try JOIN accounts.delivery"
        " ON delivery.id = delivery_id WHERE channel_id = $1",
        channel_id,
    )
    assert [tuple(one) for one in tries] == [(1, 200, None, 3)]


async def test_they_arrive_in_order_and_the_rest_in_the_next_run(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    for n in range(MAX_A_RUN + 1):
        await street.alert(account, str(n))
    assert await street.run() == 1
    assert len(street.servers.sent) == MAX_A_RUN
    assert await street.due_in_s(channel_id) == 0
    assert await street.run() == 1
    text = [one.said["rows"][0]["text"] for one in street.servers.sent]
    assert text == [str(n) for n in range(MAX_A_RUN + 1)]
    assert await street.run() == 0


async def test_what_fails_is_tried_again_by_the_schedule_under_one_id_to_the_end(
    street: ChannelStreet,
) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    await street.alert(account, "one")
    street.servers.otherwise = NO_ANSWER
    waited = []
    for _ in range(MAX_TRIES):
        assert await street.run() == 1
        assert await street.run() == 0
        found = await street.channel(channel_id)
        assert (found.state, found.last_error) == ("failing", NO_ANSWER.error)
        if (due := await street.due_in_s(channel_id)) is not None:
            waited.append(due)
            street.at_s += due
    assert waited == list(WAITS_S)
    assert len(street.servers.sent) == MAX_TRIES
    assert len(set(street.servers.ids())) == 1
    assert await street.states(channel_id) == ["failed"]
    assert await street.due_in_s(channel_id) is None
    tries = await street.pool.fetch(
        "SELECT number, status, error FROM accounts.delivery_try JOIN accounts.delivery"
        " ON delivery.id = delivery_id WHERE channel_id = $1 ORDER BY number",
        channel_id,
    )
    assert [tuple(one) for one in tries] == [(n + 1, None, NO_ANSWER.error) for n in range(MAX_TRIES)]


@pytest.mark.parametrize("back_s", [3600, 86_400])
async def test_a_clock_that_is_put_back_makes_no_message_wait(street: ChannelStreet, back_s: int) -> None:
    """Whose server checks when it was sent refuses what a clock sends that is ahead."""
    account = await street.account()
    channel_id = await street.webhook(account)
    worker = Worker(street.ctx, {"deliver": KINDS["deliver"]}, lambda: 0.5)
    await worker.check_clock()
    street.at_s += back_s
    await worker.check_clock()
    await street.alert(account, "one")
    street.servers.otherwise = answered(401)
    assert await street.run() == 1
    street.at_s -= back_s
    street.servers.otherwise = OK
    assert await street.run() == 0
    await worker.check_clock()
    assert await street.run() == 1
    assert await street.states(channel_id) == ["delivered"]
    assert len(set(street.servers.ids())) == 1


@pytest.mark.parametrize("moved_s", [-86_400, -3600, 3600])
async def test_a_clock_that_is_set_while_a_message_is_sent_sends_it_once(
    street: ChannelStreet, moved_s: int
) -> None:
    """By its new clock the worker's own claim is over, or from no right clock."""
    account = await street.account()
    channel_id = await street.webhook(account)
    await street.alert(account, "one")
    street.servers.hangs.add("a.example")
    worker = Worker(street.ctx, {"deliver": KINDS["deliver"]}, lambda: 0.5)
    await worker.check_clock()
    begun = await worker.take()
    async with asyncio.timeout(WAIT_S):
        await street.servers.came.wait()
        street.at_s += moved_s
        await worker.check_clock()
        again = await worker.take()
        others = await street.run() if moved_s < 0 else 0
        street.servers.go.set()
        await asyncio.gather(*begun, *again)
    assert (len(again), others, len(street.servers.ids())) == (0, 0, 1)
    assert await street.states(channel_id) == ["delivered"]


async def test_a_run_ends_in_time_though_the_clock_is_put_back(street: ChannelStreet) -> None:
    """One that goes on until it is cut sends all of it again."""
    account = await street.account()
    channel_id = await street.webhook(account)
    for n in range(3):
        await street.alert(account, str(n))
    run_s = [RUN_S, RUN_S - 1, 0.0]

    def clock() -> float:
        street.at_s -= 0 if len(run_s) == 3 else 3600
        return run_s.pop()

    job = await claimed(street)
    effect = await deliver(street.ctx, job, clock)
    async with street.pool.acquire() as connection, connection.transaction():
        await effect(connection)
        assert await jobs.finish(connection, job)
    assert len(street.servers.sent) == 2
    assert await street.states(channel_id) == ["delivered", "delivered", "waiting"]
    street.at_s += 2 * 3600
    assert await street.run() == 1
    assert len(street.servers.ids()) == len(set(street.servers.ids())) == 3


@pytest.mark.parametrize("how", ["its job failed", "its last try was used up"])
async def test_a_clock_that_is_put_back_leaves_no_job_ahead(street: ChannelStreet, how: str) -> None:
    """No message waits for a later time, but the job that sends them does."""
    account = await street.account()
    channel_id = await street.webhook(account)
    worker = Worker(street.ctx, {"deliver": KINDS["deliver"]}, lambda: 0.5)
    street.at_s += 86_400
    await worker.check_clock()
    street.at_s -= 86_400
    for text in ("one", "two"):
        await street.alert(account, text)
    street.at_s += 86_400
    if how == "its job failed":
        async with street.pool.acquire() as connection:
            assert await jobs.postpone(connection, await claimed(street), street.now(), "no")
    else:
        await street.pool.execute(
            "UPDATE accounts.delivery SET tries = $1 WHERE channel_id = $2", MAX_TRIES - 1, channel_id
        )
        street.servers.otherwise = NO_ANSWER
        assert await street.run() == 1
    street.at_s -= 86_400
    street.servers.otherwise = OK
    assert await street.run() == 0
    await worker.check_clock()
    assert await street.run() == 1
    assert "waiting" not in await street.states(channel_id)


async def test_a_dead_target_costs_one_try_at_a_time_and_loses_nothing(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    for n in range(5):
        await street.alert(account, str(n))
    street.servers.otherwise = answered(502)
    for n in range(6):
        assert await street.run() == 1
        assert len(street.servers.sent) == n + 1
        assert await street.due_in_s(channel_id) == WAITS_S[n]
        street.at_s += WAITS_S[n]
    street.servers.otherwise = OK
    while await street.run():
        street.at_s += await street.due_in_s(channel_id) or 0
    assert await street.states(channel_id) == ["delivered"] * 5
    back = await street.channel(channel_id)
    assert (back.state, back.failing_since, back.failures, back.last_error) == ("live", None, 0, None)


async def test_nothing_is_sent_while_a_channel_rests_whatever_is_new(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    street.servers.otherwise = answered(500)
    await street.alert(account, "one")
    await street.run()
    await street.alert(account, "two")
    assert await street.run() == 1
    assert len(street.servers.sent) == 1
    assert await street.due_in_s(channel_id) == WAITS_S[0]
    street.at_s += WAITS_S[0]
    street.servers.otherwise = OK
    await street.run()
    assert await street.states(channel_id) == ["delivered", "delivered"]


async def test_one_that_is_refused_for_ever_does_not_hold_up_the_others(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    street.servers.replies["a.example"] = [answered(400)] * 3
    await street.alert(account, "bad")
    await street.alert(account, "good")
    for n in range(IN_ORDER_TRIES):
        await street.run()
        street.at_s += WAITS_S[n]
    assert [one.said["rows"][0]["text"] for one in street.servers.sent] == ["bad", "bad"]
    await street.run()
    assert await street.states(channel_id) == ["waiting", "waiting"]
    street.at_s += WAITS_S[IN_ORDER_TRIES]
    street.servers.replies["a.example"] = [OK, answered(400), OK]
    await street.run()
    assert await street.states(channel_id) == ["waiting", "delivered"]
    # It alone waits on; the channel waits five seconds, and what is new is not behind it.
    await street.alert(account, "new")
    street.at_s += WAITS_S[0]
    await street.run()
    assert await street.states(channel_id) == ["waiting", "delivered", "delivered"]
    assert (await street.channel(channel_id)).state == "live"
    assert await street.due_in_s(channel_id) == WAITS_S[IN_ORDER_TRIES + 1] - WAITS_S[0]


async def test_retry_after_is_waited_for_and_no_longer_than_the_longest_wait(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    await street.alert(account, "one")
    await street.alert(account, "not before it either")
    for wished, waits in ((100.0, 100), (1.0, WAITS_S[1]), (10.0**9, WAITS_S[-1])):
        street.servers.otherwise = answered(503, wished)
        assert await street.run() == 1
        assert await street.due_in_s(channel_id) == waits
        street.at_s += waits


async def test_killed_between_sending_and_writing_it_is_sent_again_under_the_same_id(
    street: ChannelStreet,
) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    await street.alert(account, "one")
    await deliver(street.ctx, await claimed(street))
    assert await street.states(channel_id) == ["waiting"]
    assert await street.run() == 0
    street.at_s += 30
    assert await street.run() == 1
    first, again = street.servers.ids()
    assert first == again
    assert await street.states(channel_id) == ["delivered"]


async def test_of_two_workers_that_both_sent_one_writes(street: ChannelStreet) -> None:
    """The first was slow, and its lease was over."""
    account = await street.account()
    channel_id = await street.webhook(account)
    await street.alert(account, "one")
    slow = await claimed(street)
    late = await deliver(street.ctx, slow)
    street.at_s += 30
    street.servers.otherwise = answered(500)
    assert await street.run() == 1
    async with street.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await late(connection)
        assert not await jobs.finish(connection, slow)
        await transaction.rollback()
    assert await street.states(channel_id) == ["waiting"]
    assert len(set(street.servers.ids())) == 1
    assert (await street.channel(channel_id)).failures == 1


async def test_two_workers_never_run_one_channel_at_once(street: ChannelStreet) -> None:
    account = await street.account()
    await street.webhook(account)
    await street.alert(account, "one")
    street.servers.hangs.add("a.example")
    first = asyncio.create_task(street.run())
    async with asyncio.timeout(WAIT_S):
        await street.servers.came.wait()
        await street.alert(account, "two")
        assert await street.run() == 0
        street.servers.go.set()
        assert await first == 1
    assert await street.run() == 1
    assert [one.said["rows"][0]["text"] for one in street.servers.sent] == ["one", "two"]


async def test_a_target_that_hangs_holds_one_place(street: ChannelStreet) -> None:
    account = await street.account()
    hanging = await street.webhook(account, "hangs.example")
    owners = [await street.account() for _ in range(3)]
    others = [await street.webhook(owner, f"n{n}.example") for n, owner in enumerate(owners)]
    street.servers.hangs.add("hangs.example")
    for n in range(10):
        await street.alert(account, str(n))
    worker = Worker(street.ctx, {"deliver": KINDS["deliver"]}, lambda: 0.5)
    async with asyncio.timeout(WAIT_S):
        (held,) = await worker.take()
        await street.servers.came.wait()
        for owner in owners:
            await street.alert(owner, "one")
        begun = await worker.take()
        assert len(begun) == len(others)
        await asyncio.gather(*begun)
        assert [await street.states(one) for one in others] == [["delivered"]] * 3
        assert len(street.servers.ids("hangs.example")) == 1
        street.servers.go.set()
        await held
    assert len(await street.states(hanging)) == 10


async def test_channels_with_much_to_do_do_not_starve_one_that_waits(street: ChannelStreet) -> None:
    """All places but one worker's are taken by those that are always busy."""
    busy = [await street.account() for _ in range(2)]
    for n, account in enumerate(busy):
        await street.webhook(account, f"busy{n}.example")
        for _ in range(3 * MAX_A_RUN):
            await street.alert(account, "one of many")
    street.at_s += 1
    late = await street.account()
    channel_id = await street.webhook(late, "late.example")
    await street.alert(late, "one")
    for _ in range(3):
        street.at_s += 1
        worker = Worker(street.ctx, {"deliver": replace(KINDS["deliver"], max_running=1)}, lambda: 0.5)
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*(await worker.take()))
            for account in busy:
                await street.alert(account, "one more")
    assert await street.states(channel_id) == ["delivered"]


async def test_what_is_wished_for_while_it_runs_goes_behind_what_waits(street: ChannelStreet) -> None:
    account, late = await street.account(), await street.account()
    await street.webhook(account)
    channel_id = await street.webhook(late, "late.example")
    await street.alert(account, "one")
    running = await claimed(street)
    street.at_s += 1
    await street.alert(late, "one")
    street.at_s += 1
    await street.alert(account, "two")
    effect = await deliver(street.ctx, running)
    async with street.pool.acquire() as connection, connection.transaction():
        await effect(connection)
        assert await jobs.finish(connection, running)
    async with street.pool.acquire() as connection:
        (first,) = await jobs.claim(connection, ["deliver"], 1, 30, street.now())
    assert first.key == str(channel_id)


async def test_gone_removes_the_channel_and_the_others_are_told(street: ChannelStreet) -> None:
    account = await street.account()
    gone, other = await street.webhook(account, "gone.example"), await street.webhook(account, "b.example")
    street.servers.replies["gone.example"] = [answered(410)]
    await street.alert(account, "one")
    await street.alert(account, "two")
    await street.run()
    assert (await street.channel(gone)).state == "removed"
    assert await street.states(gone) == ["dropped", "dropped"]
    await street.run()
    rows = [one.said for one in street.servers.sent if one.to.host == "b.example"]
    assert [one["kind"] for one in rows] == ["rule", "rule", "service"]
    assert f"Channel {gone} " in rows[-1]["rows"][0]["text"]
    assert "(webhook, gone.example) is removed" in rows[-1]["rows"][0]["text"]
    assert await street.states(other) == ["delivered"] * 3
    kept = await street.pool.fetch(
        "SELECT kind, source_id FROM accounts.alert WHERE account_id = $1", account.id
    )
    assert ("service", gone) in [tuple(row) for row in kept]
    # Nothing goes there any more.
    await street.alert(account, "three")
    assert len(await street.states(gone)) == 2
    while await street.run():
        pass
    assert len(street.servers.ids("gone.example")) == 1


async def test_three_days_of_failure_switch_it_off_and_not_a_second_less(street: ChannelStreet) -> None:
    account = await street.account()
    dead, other = await street.webhook(account, "dead.example"), await street.webhook(account, "b.example")
    street.servers.replies["dead.example"] = [answered(500)] * 1000
    began_s = before_s = street.at_s
    await street.alert(account, "first")
    await street.run()
    while (await street.channel(dead)).state == "failing":
        if await street.due_in_s(dead) is None:
            await street.alert(account, "another")
        street.at_s += await street.due_in_s(dead) or 0
        before_s, state = street.at_s, (await street.channel(dead)).state
        await street.run()
        assert state == "failing"
    assert before_s - began_s >= OFF_AFTER_S
    assert (await street.channel(dead)).state == "off"
    assert before_s - began_s <= OFF_AFTER_S + 2 * WAITS_S[-1]
    assert "waiting" not in await street.states(dead)
    await street.run()
    rows = [one.said["rows"][0]["text"] for one in street.servers.sent if one.to.host == "b.example"]
    assert sum("is off: no message arrived" in one for one in rows) == 1
    assert (await street.channel(other)).state == "live"


async def test_failures_of_long_ago_do_not_switch_it_off(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    street.servers.otherwise = answered(500)
    await street.alert(account, "one")
    for _ in range(MAX_TRIES):
        await street.run()
        street.at_s += await street.due_in_s(channel_id) or 0
    assert await street.states(channel_id) == ["failed"]
    street.at_s += 30 * 86_400
    await street.alert(account, "two")
    await street.run()
    found = await street.channel(channel_id)
    assert (found.state, found.failures, found.failing_since) == ("failing", 1, street.now())


async def test_what_is_removed_while_it_is_sent_stays_removed(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    await street.alert(account, "one")
    street.servers.hangs.add("a.example")
    running = asyncio.create_task(street.run())
    async with asyncio.timeout(WAIT_S):
        await street.servers.came.wait()
        async with street.pool.acquire() as connection, connection.transaction():
            await channels.remove(connection, channel_id)
            await deliveries.drop(connection, channel_id, street.now())
        await street.alert(account, "two")
        street.servers.go.set()
        await running
    assert (await street.channel(channel_id)).state == "removed"
    assert await street.states(channel_id) == ["dropped"]
    assert await street.run() == 0


async def test_what_was_wished_for_just_before_a_channel_was_removed_is_dropped(
    street: ChannelStreet,
) -> None:
    """Its transaction saw the channel, and ended after it was removed."""
    account = await street.account()
    channel_id = await street.webhook(account)
    await street.alert(account, "one")
    async with street.pool.acquire() as connection:
        await channels.remove(connection, channel_id)
    assert await street.run() == 1
    assert await street.states(channel_id) == ["dropped"]
    assert street.servers.sent == []


async def test_rows_that_were_taken_back_meanwhile_are_sent_as_they_are_now(street: ChannelStreet) -> None:
    account = await street.account()
    await street.webhook(account)
    made = await street.alert(account, "one")
    await street.run()
    await street.pool.execute(
        "UPDATE accounts.alert SET retracted_at = now() WHERE account_id = $1", account.id
    )
    async with street.pool.acquire() as connection, connection.transaction():
        await deliveries.enqueue(connection, made, street.now(), retracted=True)
    await street.run()
    result, taken_back = street.servers.sent
    assert result.id != taken_back.id
    assert [one.said["rows"][0]["verb"] for one in (result, taken_back)] == ["buying", "retracted"]
    assert {one.said["rows"][0]["id"] for one in (result, taken_back)} == {made[0].id}


async def test_where_no_row_is_kept_any_more_nothing_is_sent(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    await street.alert(account, "one")
    await street.pool.execute("DELETE FROM accounts.alert WHERE account_id = $1", account.id)
    assert await street.run() == 1
    assert await street.states(channel_id) == ["dropped"]
    assert street.servers.sent == []


async def test_chats_are_told_ten_rows_a_message(street: ChannelStreet) -> None:
    account = await street.account()
    async with street.pool.acquire() as connection:
        new = channels.NewChannel("telegram", b"77", "Ann", None)
        await channels.add(connection, account.id, new, street.now())
    await street.alert(account, *(str(n) for n in range(23)))
    await street.run()
    assert [(chat, len(texts)) for chat, texts in street.chats.taken] == [(77, 10), (77, 10), (77, 3)]
    assert [text for _, texts in street.chats.taken for text in texts] == [str(n) for n in range(23)]
