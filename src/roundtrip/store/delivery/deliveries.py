"""Messages to channels, and their tries. Each function uses the caller's connection and does not end the
transaction."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from roundtrip.domain.watch.alerts import Alert
from roundtrip.domain.watch.channels import (
    ACTIVE,
    IN_ORDER_TRIES,
    SLOW_MS,
    URGENT,
    DeliveryEvent,
    DeliveryState,
    State,
    next_delivery_state,
    split_messages,
)
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection, fetch, fetch_optional, fetch_row, fetch_values

from .channels import ChannelKind

JOB = "deliver"
"""The kind of the jobs that send messages; a job's key is the channel's id."""
MAX_ROWS = {"webhook": 50, "telegram": 10, "discord": 10}
"""Alerts in one message, by the channel's kind."""
MAX_DROPPED = 5_000
"""Messages that one statement drops or makes due: more may wait than it has time for."""
MAX_SORTED = 1_000
"""Jobs that one statement puts into lanes."""
MAX_WAITING, LEFT_WAITING = 10_000, 9_000
"""Of one channel: where more messages wait than the first, the oldest are dropped down to the second."""


class Delivery(NamedTuple):
    """A waiting message. ``tries``: failed ones."""

    id: int
    webhook_id: str
    kind: str
    alert_ids: tuple[int, ...]
    retracted: bool
    tries: int


@dataclass(frozen=True, slots=True)
class DeliveryTry:
    """One try to send a message. ``status`` None: there was no answer."""

    tried_at: datetime
    status: int | None
    error: str | None
    took_ms: int


class ChannelDelivery(NamedTuple):
    """A message of a channel, with the status and error of its last try."""

    id: int
    webhook_id: str
    kind: str
    alert_ids: list[int]
    state: DeliveryState
    tries: int
    made_at: datetime
    status: int | None
    error: str | None


class AccountDelivery(NamedTuple):
    """A message of an account, with its channel and its last try. ``number``: of the last try; None: there
    was none. ``is_kept``: the channel has not dropped messages as old as this."""

    id: int
    webhook_id: str
    kind: str
    alert_ids: list[int]
    retracted: bool
    state: DeliveryState
    next_at: datetime
    made_at: datetime
    ended_at: datetime | None
    channel_id: int
    channel_kind: ChannelKind
    shown: str
    channel_state: State
    rests_until: datetime | None
    number: int | None
    tried_at: datetime | None
    status: int | None
    error: str | None
    is_kept: bool


class LockedDelivery(NamedTuple):
    """A message's state and end, with its channel's state."""

    state: DeliveryState
    ended_at: datetime | None
    channel_state: State


async def enqueue(
    connection: Connection, alerts: Sequence[Alert], now: datetime, retracted: bool = False
) -> None:
    """Enqueues the alerts for every channel of their accounts that is not off, in the caller's transaction.
    Alerts of one account and kind share a message, as many as a message of the channel holds. ``retracted``:
    the message retracts the alerts."""
    await enqueue_and_run(connection, alerts, now, retracted)


async def enqueue_and_run(
    connection: Connection,
    alerts: Sequence[Alert],
    now: datetime,
    retracted: bool = False,
    channel_ids: Sequence[int] = (),
) -> None:
    """As ``enqueue``; also enqueues the jobs of the channels ``channel_ids``. One statement enqueues all
    jobs: concurrent transactions lock the jobs' rows in the same order, which prevents deadlocks."""
    groups: dict[tuple[int, str], list[int]] = {}
    for alert in alerts:
        groups.setdefault((alert.draft.account_id, alert.draft.kind), []).append(alert.id)
    channels = await fetch(
        connection,
        tuple[int, int, ChannelKind],
        "SELECT id, account_id, kind FROM accounts.channel WHERE account_id = ANY ($1) AND state = ANY ($2)"
        " ORDER BY id",
        sorted({account_id for account_id, _ in groups}),
        list(ACTIVE),
    )
    messages = [
        (channel_id, webhook_id(channel_id, ids[part.start], retracted), kind, ids[part.start : part.stop])
        for channel_id, owner_id, channel_kind in channels
        for (account_id, kind), ids in groups.items()
        if account_id == owner_id
        for part in split_messages(len(ids), MAX_ROWS[channel_kind])
    ]
    await connection.executemany(
        "INSERT INTO accounts.delivery (channel_id, webhook_id, kind, alert_ids, retracted, next_at, made_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (webhook_id) DO NOTHING",
        [(*message, retracted, now) for message in messages],
    )
    keys = [str(channel_id) for channel_id in {*channel_ids, *(channel_id for channel_id, *_ in messages)}]
    # First come, first served: without a time a channel that is always busy would go ahead of all others.
    await jobs.enqueue_many(connection, JOB, keys, run_at=now)


def webhook_id(channel_id: int, first_alert_id: int, retracted: bool) -> str:
    """Deterministic: enqueuing the same delivery again returns the same id."""
    text = f"{channel_id} {first_alert_id} {'retracted' if retracted else 'told'}"
    return f"msg_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


async def due(
    connection: Connection, channel_id: int, now: datetime, limit: int, after: int = 0
) -> list[Delivery]:
    """At most ``limit`` messages of a channel that may be sent now, with ids above ``after``: urgent ones,
    then the others, each the oldest first; last those that failed often."""
    return await fetch(
        connection, Delivery,
        "SELECT id, webhook_id, kind, alert_ids, retracted, tries FROM accounts.delivery"
        " WHERE channel_id = $1 AND state = 'waiting' AND next_at <= $2 AND id > $5"
        " ORDER BY tries > $4, kind <> ALL ($6), id LIMIT $3",
        channel_id, now, limit, IN_ORDER_TRIES, after, list(URGENT),
    )  # fmt: skip


_SORT = """
WITH due AS MATERIALIZED (
    SELECT id, key::bigint AS channel_id FROM jobs.job
    WHERE kind = 'deliver' AND lane IS NULL AND failed_at IS NULL AND run_at <= $1
    ORDER BY run_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE jobs.job AS job SET
    lane = CASE
        WHEN channel.answers_ms > $3 THEN 'slow'
        -- As literals: the index has them.
        WHEN EXISTS (SELECT FROM accounts.delivery WHERE channel_id = channel.id AND state = 'waiting'
                     AND kind IN ('bag_guard', 'service') AND next_at <= $1) THEN 'urgent'
        WHEN channel.proven_at IS NULL THEN 'unproven'
        ELSE 'normal' END,
    owner = coalesce(channel.account_id, 0),
    host = coalesce(channel.host, '')
FROM due LEFT JOIN accounts.channel AS channel ON channel.id = due.channel_id
WHERE job.id = due.id
"""


async def sort(connection: Connection, now: datetime) -> bool:
    """Puts due jobs into the lanes of ``domain.watch.channels`` by their channels' state, those longest due
    first. Returns whether there may be more."""
    status = await connection.execute(_SORT, now, MAX_SORTED, SLOW_MS)
    return int(status.split()[1]) == MAX_SORTED


async def next_at(connection: Connection, channel_id: int) -> datetime | None:
    """When the channel's next message may be sent; None: nothing waits."""
    return await fetch_optional(
        connection,
        datetime,
        "SELECT min(next_at) FROM accounts.delivery WHERE channel_id = $1 AND state = 'waiting'",
        channel_id,
    )


async def finish_run(
    connection: Connection,
    delivery: Delivery,
    event: DeliveryEvent,
    now: datetime,
    tried: DeliveryTry | None = None,
    again_at: datetime | None = None,
) -> bool:
    """Records the result of one run. False: another run recorded one first, and nothing is changed.
    ``again_at``: when the message is tried again."""
    state = next_delivery_state("waiting", event)
    updated_id = await fetch_optional(
        connection, int,
        "UPDATE accounts.delivery SET state = $3, tries = tries + $4, next_at = coalesce($5, next_at),"
        " ended_at = CASE WHEN $3 <> 'waiting' THEN $6::timestamptz END"
        " WHERE id = $1 AND state = 'waiting' AND tries = $2 RETURNING id",
        delivery.id, delivery.tries, state, 0 if tried is None else 1, again_at, now,
    )  # fmt: skip
    if updated_id is None:
        return False
    if tried is not None:
        await connection.execute(
            "INSERT INTO accounts.delivery_try (delivery_id, number, tried_at, status, error, took_ms)"
            " SELECT $1, 1 + count(*), $2, $3, $4, $5 FROM accounts.delivery_try WHERE delivery_id = $1",
            delivery.id, tried.tried_at, tried.status, tried.error, tried.took_ms,
        )  # fmt: skip
    return True


async def hurry(connection: Connection, channel_id: int, now: datetime) -> None:
    """Makes a channel's waiting messages due at once. Only messages that were tried wait for a time."""
    await connection.execute(
        "UPDATE accounts.delivery SET next_at = $2 WHERE id IN (SELECT id FROM accounts.delivery"
        " WHERE channel_id = $1 AND state = 'waiting' AND tries > 0 LIMIT $3)",
        channel_id, now, MAX_DROPPED,
    )  # fmt: skip
    await jobs.enqueue(connection, JOB, str(channel_id), run_at=now)


async def put_back(connection: Connection, now: datetime) -> None:
    """After the clock was set back: makes messages that wait for a later time due at once; otherwise they
    would wait longer by the time that it was set back. A message keeps its webhook id, by which a receiver
    detects repeats."""
    await connection.execute("UPDATE accounts.channel SET rests_until = $1 WHERE rests_until > $1", now)
    await connection.execute(
        "UPDATE accounts.delivery SET next_at = $1 WHERE state = 'waiting' AND next_at > $1", now
    )
    # Also where no message is late: a failed job may be, or one enqueued behind a job that has ended.
    channel_ids = await fetch_values(
        connection, int, "SELECT DISTINCT channel_id FROM accounts.delivery WHERE state = 'waiting'"
    )
    await jobs.enqueue_many(connection, JOB, [str(channel_id) for channel_id in channel_ids], run_at=now)


async def drop(connection: Connection, channel_id: int, now: datetime, up_to: int | None = None) -> bool:
    """Drops a channel's waiting messages, the oldest first: all, or those with ids up to ``up_to``. Returns
    whether there may be more to drop; then its job has to run again."""
    status = await connection.execute(
        "UPDATE accounts.delivery SET state = $2, ended_at = $3 WHERE id IN (SELECT id FROM accounts.delivery"
        " WHERE channel_id = $1 AND state = 'waiting' AND id <= $4 ORDER BY id LIMIT $5)",
        channel_id, next_delivery_state("waiting", "dropped"), now, 2**63 - 1 if up_to is None else up_to,
        MAX_DROPPED,
    )  # fmt: skip
    return int(status.split()[1]) == MAX_DROPPED


async def too_old(connection: Connection, channel_id: int) -> int | None:
    """The id of the newest waiting message to drop because too many wait; None: there is room for all."""
    newest_first = (
        "SELECT id FROM accounts.delivery WHERE channel_id = $1 AND state = 'waiting'"
        " ORDER BY id DESC OFFSET $2 LIMIT 1"
    )
    if await fetch_optional(connection, int, newest_first, channel_id, MAX_WAITING) is None:
        return None
    return await fetch_optional(connection, int, newest_first, channel_id, LEFT_WAITING)


async def resend(connection: Connection, delivery_id: int, now: datetime) -> DeliveryState | None:
    """Enqueues a message once more, under the same webhook id, with no tries counted. Returns its state
    before. None: there is no such message, its channel is off or removed, or is dropping messages as old as
    this. Raises IllegalMove where it waits already."""
    row = await fetch_row(
        connection,
        tuple[DeliveryState, int],
        "SELECT delivery.state, channel_id FROM accounts.delivery JOIN accounts.channel ON channel.id = "
        "channel_id WHERE delivery.id = $1 AND channel.state = ANY ($2) AND delivery.id > channel.dropped_to "
        "FOR UPDATE OF delivery",
        delivery_id,
        list(ACTIVE),
    )
    if row is None:
        return None
    state, channel_id = row
    await connection.execute(
        "UPDATE accounts.delivery SET state = $2, tries = 0, next_at = $3, ended_at = NULL WHERE id = $1",
        delivery_id, next_delivery_state(state, "resent"), now,
    )  # fmt: skip
    await jobs.enqueue(connection, JOB, str(channel_id), run_at=now)
    return state


async def log(connection: Connection, channel_id: int, limit: int) -> list[ChannelDelivery]:
    """At most ``limit`` messages of a channel, the newest first."""
    return await fetch(
        connection,
        ChannelDelivery,
        "SELECT delivery.id, delivery.webhook_id, delivery.kind, delivery.alert_ids, delivery.state, "
        "delivery.tries, delivery.made_at, last.status, last.error FROM accounts.delivery AS delivery LEFT "
        "JOIN LATERAL (SELECT status, error FROM accounts.delivery_try WHERE delivery_id = delivery.id  "
        "ORDER BY number DESC LIMIT 1) AS last ON true WHERE channel_id = $1 ORDER BY delivery.id DESC LIMIT "
        "$2",
        channel_id,
        limit,
    )


async def log_of_account(connection: Connection, account_id: int, limit: int) -> list[AccountDelivery]:
    """At most ``limit`` messages of all channels of an account, removed ones included, the newest first."""
    return await fetch(
        connection,
        AccountDelivery,
        "SELECT delivery.id, delivery.webhook_id, delivery.kind, delivery.alert_ids, delivery.retracted, "
        "delivery.state, delivery.next_at, delivery.made_at, delivery.ended_at, channel.id AS channel_id, "
        "channel.kind AS channel_kind, channel.shown, channel.state AS channel_state, channel.rests_until, "
        "tried.number, tried.tried_at, tried.status, tried.error, delivery.id > channel.dropped_to AS "
        "is_kept FROM accounts.channel AS channel CROSS JOIN LATERAL (SELECT * FROM accounts.delivery WHERE "
        "channel_id = channel.id ORDER BY id DESC LIMIT $2) AS delivery LEFT JOIN LATERAL (SELECT * FROM "
        "accounts.delivery_try WHERE delivery_id = delivery.id  ORDER BY number DESC LIMIT 1) AS tried ON "
        "true WHERE channel.account_id = $1 ORDER BY delivery.id DESC LIMIT $2",
        account_id,
        limit,
    )


async def of_account(connection: Connection, account_id: int, delivery_id: int) -> LockedDelivery | None:
    """Locks a message; None: the account has none such."""
    return await fetch_row(
        connection,
        LockedDelivery,
        "SELECT delivery.state, delivery.ended_at, channel.state AS channel_state"
        " FROM accounts.delivery JOIN accounts.channel ON channel.id = channel_id"
        " WHERE delivery.id = $1 AND channel.account_id = $2 FOR UPDATE OF delivery",
        delivery_id,
        account_id,
    )


async def count_resend(
    connection: Connection, account_id: int, limit: int, window: timedelta, now: datetime
) -> datetime | None:
    """Counts a message that its owner sends again; the caller has locked the account. Returns None where
    there was room among ``limit`` in ``window``, else when there is room; then nothing is counted."""
    await connection.execute("DELETE FROM accounts.resend WHERE made_at <= $1", now - window)
    blocking = await fetch_optional(
        connection, datetime,
        "SELECT made_at FROM accounts.resend WHERE account_id = $1 ORDER BY made_at DESC OFFSET $2 LIMIT 1",
        account_id, limit - 1,
    )  # fmt: skip
    if blocking is not None:
        return blocking + window
    await connection.execute(
        "INSERT INTO accounts.resend (account_id, made_at) VALUES ($1, $2)", account_id, now
    )
    return None
