"""Deliveries that are not sent: for a fault of ours, or because too much waits. Over a real database."""

from dataclasses import replace
from typing import Any

import pytest

from roundtrip.channels.post import PostNotTried, PostReply
from roundtrip.channels.secrets import Unsealable
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CannotRun
from roundtrip.domain.watch.alerts import Draft
from roundtrip.domain.watch.channels import MAX_TRIES
from roundtrip.services.runtime.notifiers import check_key
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.watch import alerts
from support.channels import ChannelStreet, answered
from support.paying import answer_of


async def test_a_fault_of_ours_is_nobodys_failure(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    street.key, good = b"x" * 32, street.key
    await street.alert(account, "one")
    for _ in range(MAX_TRIES + 1):
        assert await street.run() == 1
        street.at_s += await street.due_in_s(channel_id) or 0
    assert street.servers.sent == []
    found = await street.channel(channel_id)
    assert (found.state, found.failures, found.last_error) == ("live", 0, None)
    assert await street.states(channel_id) == ["waiting"]
    tried = "SELECT tries FROM accounts.delivery WHERE channel_id = $1"
    assert await street.pool.fetchval(tried, channel_id) == 0
    why = await street.pool.fetchval("SELECT last_error FROM jobs.job WHERE key = $1", str(channel_id))
    assert why == "PostNotTried: the configured key cannot decrypt a channel's secret"
    street.key = good
    assert await street.run() == 1
    assert await street.states(channel_id) == ["delivered"]


async def test_without_a_bot_what_waits_for_a_chat_waits_on(street: ChannelStreet) -> None:
    account = await street.account()
    async with street.pool.acquire() as connection:
        new = channels.NewChannel("telegram", b"77", "Ann", None)
        channel_id = await channels.add(connection, account.id, new, street.now())
    await street.alert(account, "one")
    street.has_bot = False
    assert await street.run() == 1
    assert (await street.channel(channel_id)).state == "live"
    street.has_bot = True
    street.at_s += 60
    assert await street.run() == 1
    assert await street.states(channel_id) == ["delivered"]


async def test_what_was_sent_before_a_fault_of_ours_is_written_down(
    street: ChannelStreet, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    for n in range(2):
        await street.alert(account, str(n))
    post = street.servers.post

    async def once(*given: Any) -> PostReply:
        if street.servers.sent:
            raise PostNotTried("too many name lookups")
        return await post(*given)

    monkeypatch.setattr(street.servers, "post", once)
    await street.run()
    assert await street.states(channel_id) == ["delivered", "waiting"]
    await street.run()
    assert (await street.channel(channel_id)).state == "live"
    monkeypatch.undo()
    street.at_s += 60
    await street.run()
    assert await street.states(channel_id) == ["delivered", "delivered"]


async def test_another_key_is_refused_while_something_is_sealed(street: ChannelStreet) -> None:
    await street.pool.execute("UPDATE accounts.channel SET state = 'removed'")
    other = replace(street, key=b"x" * 32)
    await check_key(street.pool, other.outward)
    account = await street.account()
    await answer_of(street.ctx, "set_webhook", account, url="https://a.example/")
    await check_key(street.pool, street.outward)
    with pytest.raises(CannotRun, match="not the key"):
        await check_key(street.pool, other.outward)
    with pytest.raises(Unsealable):
        await answer_of(other.ctx, "set_webhook", account, url="https://b.example/")
    await street.pool.execute("UPDATE accounts.channel SET state = 'removed'")
    await check_key(street.pool, other.outward)
    await answer_of(other.ctx, "set_webhook", account, url="https://b.example/")
    with pytest.raises(CannotRun, match="not the key"):
        await check_key(street.pool, street.outward)


async def backlog(street: ChannelStreet, account: Account, channel_id: int, count: int) -> None:
    """So many more that wait, as of alerts of before."""
    async with street.pool.acquire() as connection, connection.transaction():
        drafts = [Draft(account.id, "rule", 1, int(street.at_s), "old", verb="buying")]
        (old,) = await alerts.put(connection, drafts, street.now())
        await connection.execute(
            "INSERT INTO accounts.delivery (channel_id, webhook_id, kind, alert_ids, next_at, made_at)"
            " SELECT $1, 'msg_' || gen_random_uuid(), 'rule', ARRAY[$4::bigint], $2, $2"
            " FROM generate_series(1, $3)",
            channel_id, street.now(), count, old.id,
        )  # fmt: skip


async def waiting(street: ChannelStreet, channel_id: int) -> int:
    return (await street.states(channel_id)).count("waiting")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MAX_DROPPED", 10)
    monkeypatch.setattr(deliveries, "MAX_WAITING", 50)
    monkeypatch.setattr(deliveries, "LEFT_WAITING", 40)


@pytest.mark.usefixtures("few")
async def test_what_waits_for_a_removed_channel_is_dropped_some_a_run(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    await backlog(street, account, channel_id, 25)
    assert (await answer_of(street.ctx, "remove_channel", account, id=channel_id))["removed"] is True
    left = [await waiting(street, channel_id)]
    while await street.run():
        left.append(await waiting(street, channel_id))
    assert left == [15, 5, 0]
    assert street.servers.sent == []


@pytest.mark.usefixtures("few")
async def test_a_channel_that_is_set_again_is_not_sent_what_waited_while_it_was_off(
    street: ChannelStreet,
) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    await backlog(street, account, channel_id, 25)
    await street.pool.execute("UPDATE accounts.channel SET state = 'off' WHERE id = $1", channel_id)
    await answer_of(street.ctx, "set_webhook", account, url="https://a.example/alerts")
    await street.alert(account, "new")
    while await street.run():
        pass
    assert await street.states(channel_id) == ["dropped"] * 25 + ["delivered"]
    assert [one.said["rows"][0]["text"] for one in street.servers.sent[1:]] == ["new"]
    assert (await street.channel(channel_id)).dropped_to == 0


@pytest.mark.usefixtures("few")
async def test_a_channel_with_more_than_has_room_loses_the_oldest_and_its_owner_is_told(
    street: ChannelStreet,
) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    other = await street.webhook(account, "b.example")
    street.servers.replies["a.example"] = [answered(500)]
    await backlog(street, account, channel_id, 50)
    await street.alert(account, "one")
    await street.run()
    while await street.due_in_s(channel_id) == 0:
        await street.run()
    # The one that was sent to no avail is among the oldest.
    states = await street.states(channel_id)
    assert states == ["dropped"] * 11 + ["waiting"] * 41
    rows = [one.said["rows"][0]["text"] for one in street.servers.sent if one.to.host == "b.example"]
    assert [f"Channel {channel_id} " in one and "oldest" in one for one in rows] == [False, True]
    assert await street.states(other) == ["delivered"] * 2
