"""What is to be sent to whom, and what became of it. Each function takes the caller's connection and ends no
transaction."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from roundtrip.domain.watch.alerts import Alert
from roundtrip.domain.watch.channels import (
    ACTIVE,
    IN_ORDER_TRIES,
    SLOW_MS,
    URGENT,
    DeliveryEvent,
    DeliveryState,
    next_delivery_state,
    split_messages,
)
from roundtrip.store.server import jobs
from roundtrip.store.server.rows import Connection

JOB = "deliver"
"""The kind of the jobs that send; the key is the channel's number."""
MOST_ROWS = {"webhook": 50, "telegram": 10, "discord": 10}
"""Of one message, by the channel's kind."""
MOST_DROPPED = 5_000
"""In one statement: what waits for one channel may be more than a statement has time for."""
MOST_SORTED = 1_000
"""Jobs that are put into lanes in one statement."""
MOST_WAITING, LEFT_WAITING = 10_000, 9_000
"""Of one channel: where more wait, so many of the newest are left."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message that waits. ``tries``: that were made of it, and failed."""

    id: int
    webhook_id: str
    kind: str
    alert_ids: tuple[int, ...]
    retracted: bool
    tries: int


@dataclass(frozen=True, slots=True)
class DeliveryTry:
    """``status`` None: there was no answer."""

    tried_at: datetime
    status: int | None
    error: str | None
    took_ms: int


async def wish(
    connection: Connection, alerts: Sequence[Alert], now: datetime, retracted: bool = False
) -> None:
    """A delivery of these to every channel of their accounts that is not off, in the caller's transaction:
    rows of one account and kind together, as many as a message of the channel holds. ``retracted``: it takes
    back what they said."""
    await wish_and_run(connection, alerts, now, retracted)


async def wish_and_run(
    connection: Connection,
    alerts: Sequence[Alert],
    now: datetime,
    retracted: bool = False,
    more: Sequence[int] = (),
) -> None:
    """The same, and the channels ``more`` are run, too. In one statement: of several transactions that wish
    each takes the jobs' rows in the same order, and none waits for another in a circle."""
    groups: dict[tuple[int, str], list[int]] = {}
    for alert in alerts:
        groups.setdefault((alert.draft.account_id, alert.draft.kind), []).append(alert.id)
    found = await connection.fetch(
        "SELECT id, account_id, kind FROM accounts.channel WHERE account_id = ANY ($1) AND state = ANY ($2)"
        " ORDER BY id",
        sorted({account_id for account_id, _ in groups}),
        list(ACTIVE),
    )
    messages = [
        (
            channel["id"],
            webhook_id(channel["id"], ids[some.start], retracted),
            kind,
            ids[some.start : some.stop],
        )
        for channel in found
        for (account_id, kind), ids in groups.items()
        if account_id == channel["account_id"]
        for some in split_messages(len(ids), MOST_ROWS[channel["kind"]])
    ]
    await connection.executemany(
        "INSERT INTO accounts.delivery (channel_id, webhook_id, kind, alert_ids, retracted, next_at, made_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (webhook_id) DO NOTHING",
        [(*message, retracted, now) for message in messages],
    )
    keys = [str(one) for one in {*more, *(to for to, *_ in messages)}]
    # First come, first served: without a time one that is always busy would go ahead of all others.
    await jobs.enqueue_many(connection, JOB, keys, run_at=now)


def webhook_id(channel_id: int, first_alert_id: int, retracted: bool) -> str:
    """The same whenever the same is wished for: nobody is told twice under two ids."""
    said = f"{channel_id} {first_alert_id} {'retracted' if retracted else 'told'}"
    return f"msg_{hashlib.sha256(said.encode()).hexdigest()[:32]}"


async def due(
    connection: Connection, channel_id: int, now: datetime, most: int, after: int = 0
) -> list[Delivery]:
    """Those of a channel that may be sent now: urgent ones, then the others, each the oldest first; behind
    them those that failed often. ``after``: the number that they are above."""
    rows = await connection.fetch(
        "SELECT id, webhook_id, kind, alert_ids, retracted, tries FROM accounts.delivery"
        " WHERE channel_id = $1 AND state = 'waiting' AND next_at <= $2 AND id > $5"
        " ORDER BY tries > $4, kind <> ALL ($6), id LIMIT $3",
        channel_id, now, most, IN_ORDER_TRIES, after, list(URGENT),
    )  # fmt: skip
    return [Delivery(**{**dict(row), "alert_ids": tuple(row["alert_ids"])}) for row in rows]


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
    """Puts jobs that are due into the lanes of ``domain.channels``, by what is known of their channels; those
    longest due first. Whether there may be more."""
    done: str = await connection.execute(_SORT, now, MOST_SORTED, SLOW_MS)
    return int(done.split()[1]) == MOST_SORTED


async def next_at(connection: Connection, channel_id: int) -> datetime | None:
    """When the next one of a channel may be sent; None: nothing waits."""
    found: datetime | None = await connection.fetchval(
        "SELECT min(next_at) FROM accounts.delivery WHERE channel_id = $1 AND state = 'waiting'", channel_id
    )
    return found


async def finish_run(
    connection: Connection,
    delivery: Delivery,
    event: DeliveryEvent,
    now: datetime,
    tried: DeliveryTry | None = None,
    again_at: datetime | None = None,
) -> bool:
    """What one run made of it. False: somebody else wrote meanwhile what became of it, and nothing is
    changed. ``again_at``: where it is tried again."""
    state = next_delivery_state("waiting", event)
    done = await connection.fetchval(
        "UPDATE accounts.delivery SET state = $3, tries = tries + $4, next_at = coalesce($5, next_at),"
        " ended_at = CASE WHEN $3 <> 'waiting' THEN $6::timestamptz END"
        " WHERE id = $1 AND state = 'waiting' AND tries = $2 RETURNING id",
        delivery.id, delivery.tries, state, 0 if tried is None else 1, again_at, now,
    )  # fmt: skip
    if done is None:
        return False
    if tried is not None:
        await connection.execute(
            "INSERT INTO accounts.delivery_try (delivery_id, number, tried_at, status, error, took_ms)"
            " SELECT $1, 1 + count(*), $2, $3, $4, $5 FROM accounts.delivery_try WHERE delivery_id = $1",
            delivery.id, tried.tried_at, tried.status, tried.error, tried.took_ms,
        )  # fmt: skip
    return True


async def hurry(connection: Connection, channel_id: int, now: datetime) -> None:
    """What of a channel waits may be sent at once. Only what was tried waits for a time of its own."""
    await connection.execute(
        "UPDATE accounts.delivery SET next_at = $2 WHERE id IN (SELECT id FROM accounts.delivery"
        " WHERE channel_id = $1 AND state = 'waiting' AND tries > 0 LIMIT $3)",
        channel_id, now, MOST_DROPPED,
    )  # fmt: skip
    await jobs.enqueue(connection, JOB, str(channel_id), run_at=now)


async def put_back(connection: Connection, now: datetime) -> None:
    """Our clock was put back: what waits for a later time is tried at once, else it would wait for as long as
    that, too. Nobody is told twice of it: it has its id."""
    await connection.execute("UPDATE accounts.channel SET rests_until = $1 WHERE rests_until > $1", now)
    await connection.execute(
        "UPDATE accounts.delivery SET next_at = $1 WHERE state = 'waiting' AND next_at > $1", now
    )
    # Also where none is late: the job that failed is, or that was wished for behind one that has ended.
    rows = await connection.fetch("SELECT DISTINCT channel_id FROM accounts.delivery WHERE state = 'waiting'")
    await jobs.enqueue_many(connection, JOB, [str(row["channel_id"]) for row in rows], run_at=now)


async def drop(connection: Connection, channel_id: int, now: datetime, up_to: int | None = None) -> bool:
    """Whatever of a channel waits is not sent any more; of all of it, or of what has numbers ``up_to`` that,
    the oldest. Whether there is more to drop: then its job has to be run again."""
    done: str = await connection.execute(
        "UPDATE accounts.delivery SET state = $2, ended_at = $3 WHERE id IN (SELECT id FROM accounts.delivery"
        " WHERE channel_id = $1 AND state = 'waiting' AND id <= $4 ORDER BY id LIMIT $5)",
        channel_id, next_delivery_state("waiting", "dropped"), now, 2**63 - 1 if up_to is None else up_to,
        MOST_DROPPED,
    )  # fmt: skip
    return int(done.split()[1]) == MOST_DROPPED


async def too_old(connection: Connection, channel_id: int) -> int | None:
    """The number of the newest message for which there is no room among those that wait; None: there is room
    for all."""
    newest_first = (
        "SELECT id FROM accounts.delivery WHERE channel_id = $1 AND state = 'waiting'"
        " ORDER BY id DESC OFFSET $2 LIMIT 1"
    )
    if await connection.fetchval(newest_first, channel_id, MOST_WAITING) is None:
        return None
    found: int | None = await connection.fetchval(newest_first, channel_id, LEFT_WAITING)
    return found


async def resend(connection: Connection, delivery_id: int, now: datetime) -> DeliveryState | None:
    """Sends it once more, under the same id, with tries as at first; what it was before. None: there is none
    such, its channel is off or removed, or just drops what is as old. Raises Illegal where it waits
    already."""
    row = await connection.fetchrow(
        "SELECT delivery.state, channel_id FROM accounts.delivery"
        " JOIN accounts.channel ON channel.id = channel_id"
        " WHERE delivery.id = $1 AND channel.state = ANY ($2) AND delivery.id > channel.dropped_to"
        " FOR UPDATE OF delivery",
        delivery_id,
        list(ACTIVE),
    )
    if row is None:
        return None
    before: DeliveryState = row["state"]
    await connection.execute(
        "UPDATE accounts.delivery SET state = $2, tries = 0, next_at = $3, ended_at = NULL WHERE id = $1",
        delivery_id, next_delivery_state(before, "resent"), now,
    )  # fmt: skip
    await jobs.enqueue(connection, JOB, str(row["channel_id"]), run_at=now)
    return before


async def log(connection: Connection, channel_id: int, most: int) -> list[asyncpg.Record]:
    """The newest of a channel, the newest first, each with status and error of its last try."""
    found: list[asyncpg.Record] = await connection.fetch(
        "SELECT delivery.*, last.status, last.error FROM accounts.delivery AS delivery LEFT JOIN LATERAL"
        " (SELECT status, error FROM accounts.delivery_try WHERE delivery_id = delivery.id"
        "  ORDER BY number DESC LIMIT 1) AS last ON true"
        " WHERE channel_id = $1 ORDER BY delivery.id DESC LIMIT $2",
        channel_id,
        most,
    )
    return found


async def log_of_account(connection: Connection, account_id: int, most: int) -> list[asyncpg.Record]:
    """The newest of all channels of an account, removed ones too, the newest first: each with kind, shown
    target and state of its channel and until when that rests, how often it was tried in all, and when, status
    and error of its last try."""
    found: list[asyncpg.Record] = await connection.fetch(
        "SELECT delivery.*, channel.kind AS channel_kind, channel.shown, channel.state AS channel_state,"
        " channel.rests_until, tried.number, tried.tried_at, tried.status, tried.error,"
        " delivery.id > channel.dropped_to AS is_kept"
        " FROM accounts.channel AS channel CROSS JOIN LATERAL"
        " (SELECT * FROM accounts.delivery WHERE channel_id = channel.id ORDER BY id DESC LIMIT $2)"
        " AS delivery LEFT JOIN LATERAL"
        " (SELECT * FROM accounts.delivery_try WHERE delivery_id = delivery.id"
        "  ORDER BY number DESC LIMIT 1) AS tried ON true"
        " WHERE channel.account_id = $1 ORDER BY delivery.id DESC LIMIT $2",
        account_id,
        most,
    )
    return found


async def of_account(connection: Connection, account_id: int, delivery_id: int) -> asyncpg.Record | None:
    """State and ``ended_at`` of a delivery with its channel's state, locked; None: it is none of the
    account's."""
    return await connection.fetchrow(
        "SELECT delivery.state, delivery.ended_at, channel.state AS channel_state"
        " FROM accounts.delivery JOIN accounts.channel ON channel.id = channel_id"
        " WHERE delivery.id = $1 AND channel.account_id = $2 FOR UPDATE OF delivery",
        delivery_id,
        account_id,
    )


async def count_resend(
    connection: Connection, account_id: int, most: int, window: timedelta, now: datetime
) -> datetime | None:
    """Counts one more message that its owner has sent again; the account is locked. None: there was room
    among ``most`` in ``window``; else when there is, and it is not counted."""
    await connection.execute("DELETE FROM accounts.resend WHERE made_at <= $1", now - window)
    blocking: datetime | None = await connection.fetchval(
        "SELECT made_at FROM accounts.resend WHERE account_id = $1 ORDER BY made_at DESC OFFSET $2 LIMIT 1",
        account_id, most - 1,
    )  # fmt: skip
    if blocking is not None:
        return blocking + window
    await connection.execute(
        "INSERT INTO accounts.resend (account_id, made_at) VALUES ($1, $2)", account_id, now
    )
    return None
