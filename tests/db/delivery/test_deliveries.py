"""What is wished for when alerts are made: over a real database, in transactions that are rolled back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roundtrip.domain.base.errors import IllegalMove
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import Alert, Draft
from roundtrip.store.accounts import accounts
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.delivery.channels import ChannelKind, NewChannel
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection

NOW = datetime(2025, 10, 9, 12, tzinfo=UTC)


async def account(connection: Connection, n: int) -> int:
    wallet = Address(f"0x{n:040x}")
    return (await accounts.lock_account(connection, wallet, [f"mite-w{n}"], NOW)).account.id


async def channel(connection: Connection, account_id: int, kind: ChannelKind = "webhook") -> int:
    secret = b"sealed" if kind == "webhook" else None
    return await channels.add(connection, account_id, NewChannel(kind, b"7", "shown", secret), NOW)


def alert(n: int, account_id: int, kind: Any = "rule") -> Alert:
    return Alert(n, Draft(account_id, kind, 1, 0, "it buys"))


async def wished(connection: Connection, channel_id: int) -> list[tuple[Any, ...]]:
    rows = await connection.fetch(
        "SELECT kind, alert_ids, retracted FROM accounts.delivery WHERE channel_id = $1 ORDER BY id",
        channel_id,
    )
    return [(row["kind"], list(row["alert_ids"]), row["retracted"]) for row in rows]


async def run(connection: Connection) -> set[str]:
    rows = await connection.fetch("SELECT key FROM jobs.job WHERE kind = 'deliver'")
    return {row["key"] for row in rows}


async def test_rows_of_one_account_and_kind_go_together(connection: Connection) -> None:
    one, other, nobody = [await account(connection, n) for n in (1, 2, 3)]
    a, b, c = await channel(connection, one), await channel(connection, one), await channel(connection, other)
    rows = [alert(1, one), alert(2, other), alert(3, one, "follow"), alert(4, one), alert(5, nobody)]
    await deliveries.enqueue(connection, rows, NOW)
    for channel_id in (a, b):
        assert await wished(connection, channel_id) == [("rule", [1, 4], False), ("follow", [3], False)]
    assert await wished(connection, c) == [("rule", [2], False)]
    assert await run(connection) >= {str(a), str(b), str(c)}
    ids = await connection.fetch("SELECT webhook_id FROM accounts.delivery")
    assert len({row["webhook_id"] for row in ids}) == len(ids)


@pytest.mark.parametrize(("kind", "sizes"), [("webhook", [50, 50, 1]), ("discord", [10] * 10 + [1])])
async def test_a_message_holds_so_many_rows(
    connection: Connection, kind: ChannelKind, sizes: list[int]
) -> None:
    owner = await account(connection, 1)
    channel_id = await channel(connection, owner, kind)
    await deliveries.enqueue(connection, [alert(n, owner) for n in range(101)], NOW)
    found = await wished(connection, channel_id)
    assert [len(ids) for _, ids, _ in found] == sizes
    assert [one for _, ids, _ in found for one in ids] == list(range(101))


async def test_the_same_wished_for_again_is_one_message_and_taking_it_back_another(
    connection: Connection,
) -> None:
    owner = await account(connection, 1)
    channel_id = await channel(connection, owner)
    for _ in range(2):
        await deliveries.enqueue(connection, [alert(7, owner)], NOW)
        await deliveries.enqueue(connection, [alert(7, owner)], NOW, retracted=True)
    assert await wished(connection, channel_id) == [("rule", [7], False), ("rule", [7], True)]


async def test_channels_that_are_off_or_removed_are_not_told(connection: Connection) -> None:
    owner = await account(connection, 1)
    found = {}
    for state in ("live", "failing", "off", "removed"):
        found[state] = await channel(connection, owner)
        await connection.execute("UPDATE accounts.channel SET state = $2 WHERE id = $1", found[state], state)
    await deliveries.enqueue(connection, [alert(1, owner)], NOW)
    answer = [state for state, channel_id in found.items() if await wished(connection, channel_id)]
    assert answer == ["live", "failing"]
    assert await run(connection) & {str(one) for one in found.values()} == {
        str(found["live"]),
        str(found["failing"]),
    }


async def test_nothing_is_wished_for_where_there_is_nothing(connection: Connection) -> None:
    before = await run(connection)
    await deliveries.enqueue(connection, [], NOW)
    await deliveries.enqueue(connection, [alert(1, await account(connection, 1))], NOW)
    assert await run(connection) == before


async def test_one_is_sent_once_more_under_the_same_id(connection: Connection) -> None:
    owner = await account(connection, 1)
    channel_id = await channel(connection, owner)
    await deliveries.enqueue(connection, [alert(1, owner)], NOW)
    (first,) = await deliveries.due(connection, channel_id, NOW, 10)
    with pytest.raises(IllegalMove):
        await deliveries.resend(connection, first.id, NOW)
    tried = deliveries.DeliveryTry(NOW, 500, "answered 500", 3)
    assert await deliveries.finish_run(connection, first, "failed_last", NOW, tried)
    assert await deliveries.due(connection, channel_id, NOW, 10) == []
    await connection.execute("DELETE FROM jobs.job WHERE kind = 'deliver'")
    assert await deliveries.resend(connection, first.id, NOW) == "failed"
    (again,) = await deliveries.due(connection, channel_id, NOW, 10)
    assert (again.webhook_id, again.tries) == (first.webhook_id, 0)
    assert await run(connection) == {str(channel_id)}
    # The log goes on where it was.
    assert await deliveries.finish_run(connection, again, "delivered", NOW, tried)
    rows = await connection.fetch("SELECT number FROM accounts.delivery_try ORDER BY number")
    assert [row["number"] for row in rows] == [1, 2]
    await channels.remove(connection, channel_id)
    assert await deliveries.resend(connection, first.id, NOW) is None
    assert await deliveries.resend(connection, 10**15, NOW) is None


async def test_what_somebody_else_wrote_meanwhile_is_left(connection: Connection) -> None:
    owner = await account(connection, 1)
    channel_id = await channel(connection, owner)
    await deliveries.enqueue(connection, [alert(1, owner)], NOW)
    (first,) = await deliveries.due(connection, channel_id, NOW, 10)
    tried = deliveries.DeliveryTry(NOW, None, "no answer", 3)
    assert await deliveries.finish_run(connection, first, "failed", NOW, tried, NOW + timedelta(seconds=5))
    assert not await deliveries.finish_run(connection, first, "delivered", NOW, tried)
    assert await deliveries.next_at(connection, channel_id) == NOW + timedelta(seconds=5)


async def test_wishes_come_to_light_with_their_transaction(connection: Connection) -> None:
    owner = await account(connection, 1)
    channel_id = await channel(connection, owner)
    lost = connection.transaction()
    await lost.start()
    await deliveries.enqueue(connection, [alert(1, owner)], NOW)
    await lost.rollback()
    assert await wished(connection, channel_id) == []
    assert not await jobs.is_there(connection, "deliver", str(channel_id))
