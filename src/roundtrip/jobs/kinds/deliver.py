"""``deliver``, key: a channel's id. Sends the channel's waiting messages, the oldest first, and enqueues
itself while messages wait.

Each channel has one job, so a target that hangs occupies one place. A message that was sent but not recorded,
because the worker died, is sent again under the same id; a message never changes its id."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from roundtrip.channels.post import PostNotTried, PostReply
from roundtrip.domain.watch.alerts import Draft
from roundtrip.domain.watch.channels import (
    ACTIVE,
    IN_ORDER_TRIES,
    MAX_TRIES,
    PLACE_S,
    SLOW_MS,
    DeliveryEvent,
    Event,
    failing_since,
    failure,
    smooth_answer_ms,
    wait_s,
)
from roundtrip.jobs.engine.worker import Effect, do_nothing
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import Message, MessageTarget, describe_failure, send
from roundtrip.services.support.alert_rows import rows
from roundtrip.store.accounts import accounts
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.delivery.channels import Channel
from roundtrip.store.delivery.deliveries import Delivery, DeliveryTry
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts

MAX_A_RUN = 20
RUN_S = PLACE_S
"""After this time a run starts no further message, so that other channels get their turn."""
_GONE = 410


@dataclass(frozen=True, slots=True)
class _SentMessage:
    """``reply`` None: nothing was sent, because its alerts no longer exist. ``proves``: the target echoed the
    challenge, which proves that it wants these messages."""

    delivery: Delivery
    at: datetime
    reply: PostReply | None
    proves: bool = False


async def deliver(ctx: Context, job: Job, clock: Callable[[], float] = time.perf_counter) -> Effect:
    """Sends, with no transaction open, up to the first message that fails. Raises PostNotTried. ``clock``: a
    monotonic clock, in seconds."""
    began_s, now = clock(), _time(ctx.now_s())
    async with ctx.pool.acquire() as connection, connection.transaction():
        channel = await channels.channel(connection, int(job.key))
        if channel is None:
            return do_nothing
        due, rest_at = await _read_due(ctx, connection, channel, now)
        alert_ids = {alert_id for delivery in due for alert_id in delivery.alert_ids}
        existing = await alerts.alerts(connection, alert_ids)
        account = (await accounts.read_account(connection, channel.account_id)).account.designation
    row_by_id = dict(
        zip([alert.id for alert in existing], rows(existing, ctx.outward.public_url), strict=True)
    )
    sent: list[_SentMessage] = []
    to = MessageTarget(channel.kind, channel.target, channel.secret)
    for delivery in due:
        if sent and clock() - began_s >= RUN_S:
            break
        at_s = ctx.now_s()
        message_rows = [row_by_id[alert_id] for alert_id in delivery.alert_ids if alert_id in row_by_id]
        challenge = ctx.entropy().hex()[:32] if channel.proven_at is None else None
        message = Message(delivery.webhook_id, account, delivery.kind, message_rows, challenge)
        try:
            reply = await send(ctx.outward, to, message, int(at_s)) if message_rows else None
        except PostNotTried:
            # A limit of this service: neither message nor channel failed. Earlier messages are recorded.
            if not sent:
                raise
            break
        if reply is not None:
            outcome = "delivered" if reply.ok else "failed"
            ctx.measures.observe("delivery", channel.kind, outcome, reply.took_ms / 1000)
        is_echoed = reply is not None and message.is_echoed(reply)
        sent.append(_SentMessage(delivery, _time(at_s), reply, is_echoed))
        if reply is not None and not reply.ok:
            break
    drawn = int.from_bytes(ctx.entropy()[:4], "big") / 2**32

    async def write(connection: Connection) -> None:
        await _record(connection, channel.id, sent, _time(ctx.now_s()), drawn, job, rest_at)

    return write


def _time(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


async def _read_due(
    ctx: Context, connection: Connection, channel: Channel, now: datetime
) -> tuple[Sequence[Delivery], datetime | None]:
    """The messages that may be sent now; and when the host has room again, if it has none now."""
    is_resting = channel.rests_until is not None and channel.rests_until > now
    if channel.state not in ACTIVE or is_resting:
        return [], None
    due = await deliveries.due(connection, channel.id, now, MAX_A_RUN, channel.dropped_to)
    fit, rest_at = len(due), None
    # The operator of this machine allowed its loopback targets: they need no proof.
    if due and channel.proven_at is None and channel.host not in ctx.outward.loopback:
        sizes = [len(delivery.alert_ids) for delivery in due]
        fit, rest_at = await channels.reserve_rows(connection, channel.host, sizes, now)
    if fit == len(due) < MAX_A_RUN and channel.answers_ms <= SLOW_MS:
        # All fit in this run: the oldest goes first.
        due.sort(key=lambda delivery: (delivery.tries > IN_ORDER_TRIES, delivery.id))
    return due[:fit], None if fit else rest_at


async def _record(
    connection: Connection,
    channel_id: int,
    sent: Sequence[_SentMessage],
    now: datetime,
    drawn: float,
    job: Job,
    rest_at: datetime | None,
) -> None:
    """Records the result of each message, and updates the channel, which may have changed since the read."""
    channel = await channels.channel(connection, channel_id, lock=True)
    if channel is None or channel.state not in ACTIVE:
        if await deliveries.drop(connection, channel_id, now):
            await jobs.enqueue(connection, job.kind, job.key, run_at=now)
        return
    await _record_answers(connection, channel, sent, now)
    for message in sent:
        delivery, reply = message.delivery, message.reply
        if reply is None:
            await deliveries.finish_run(connection, delivery, "dropped", now)
            continue
        attempt = DeliveryTry(
            message.at, reply.status, None if reply.ok else describe_failure(reply), reply.took_ms
        )
        if reply.ok:
            if await deliveries.finish_run(connection, delivery, "delivered", now, attempt):
                await channels.mark_delivered(connection, channel_id, now)
        elif not await _record_failure(connection, channel_id, delivery, attempt, reply, now, drawn):
            # ``_alert_owner`` enqueued this job, in one order with the other channels' jobs.
            return
    is_more = await _drop_old(connection, channel, now)
    if is_more is None:
        return
    # Last: from here on the job's row is locked.
    next_run_at = now if is_more else await _next_run_at(connection, channel_id)
    if next_run_at is not None:
        # Not before now: it queues behind other channels, however long its own messages have waited.
        await jobs.enqueue(connection, job.kind, job.key, run_at=max(next_run_at, rest_at or now, now))


async def _record_answers(
    connection: Connection, channel: Channel, sent: Sequence[_SentMessage], now: datetime
) -> None:
    """Records how fast the target answered, and whether it proved that it wants messages."""
    replies = [message.reply for message in sent if message.reply is not None]
    if replies:
        took_ms = channel.answers_ms
        for reply in replies:
            took_ms = smooth_answer_ms(took_ms, reply.took_ms)
        proven_at = now if any(message.proves for message in sent) else None
        await channels.record_answer_time(connection, channel.id, took_ms, proven_at)


async def _drop_old(connection: Connection, channel: Channel, now: datetime) -> bool | None:
    """Whether there is more to drop. None: too many messages waited; the owner is alerted, which also
    enqueues this job together with those of the other channels."""
    if channel.dropped_to:
        if await deliveries.drop(connection, channel.id, now, channel.dropped_to):
            return True
        await channels.set_dropped_to(connection, channel.id, 0)
    up_to = await deliveries.too_old(connection, channel.id)
    if up_to is None:
        return False
    await channels.set_dropped_to(connection, channel.id, up_to)
    text = (
        f"{_name(channel)} is slower than your alerts: its oldest waiting messages are not sent "
        "there. They are in the inbox."
    )
    await _alert_owner(connection, channel, text, now)
    return None


async def _alert_owner(connection: Connection, channel: Channel, text: str, now: datetime) -> None:
    """Writes an alert for the channel's owner, and enqueues this job again."""
    draft = Draft(channel.account_id, "service", channel.id, int(now.timestamp()), text)
    written = await alerts.put(connection, [draft], now)
    await deliveries.enqueue_and_run(connection, written, now, channel_ids=[channel.id])


async def _next_run_at(connection: Connection, channel_id: int) -> datetime | None:
    next_at = await deliveries.next_at(connection, channel_id)
    channel = await channels.channel(connection, channel_id)
    rests_until = None if channel is None else channel.rests_until
    return next_at if next_at is None or rests_until is None else max(next_at, rests_until)


async def _record_failure(
    connection: Connection,
    channel_id: int,
    delivery: Delivery,
    attempt: DeliveryTry,
    reply: PostReply,
    now: datetime,
    drawn: float,
) -> bool:
    """Records a failed attempt; returns whether the channel still gets messages."""
    channel = await channels.channel(connection, channel_id, lock=True)
    assert channel is not None
    is_last = delivery.tries + 1 >= MAX_TRIES
    delivery_event: DeliveryEvent = "failed_last" if is_last else "failed"
    since = failing_since(channel.failing_since, channel.rests_until, now)
    failures = channel.failures + 1 if since == channel.failing_since else 1
    channel_wait = timedelta(seconds=wait_s(failures, drawn, reply.retry_after_s))
    message_wait = timedelta(seconds=wait_s(delivery.tries + 1, drawn, reply.retry_after_s))
    retry_at = None if is_last else now + message_wait
    await deliveries.finish_run(connection, delivery, delivery_event, now, attempt, retry_at)
    event: Event = "gone" if reply.status == _GONE else failure(channel.state, (now - since).total_seconds())
    state = await channels.mark_failed(
        connection, channel_id, event, since, failures, now + channel_wait, describe_failure(reply)
    )
    if state in ACTIVE:
        return True
    await deliveries.drop(connection, channel_id, now)
    await _alert_owner(connection, channel, _channel_text(channel, event, describe_failure(reply)), now)
    return False


def _name(channel: Channel) -> str:
    """The channel's name for messages. The owner's other channels receive it too, so a url is cut to its
    host."""
    where = channel.shown
    if channel.kind != "telegram":
        where = where.removeprefix("https://").removeprefix("http://").partition("/")[0]
    return f"Channel {channel.id} ({channel.kind}, {where})"


def _channel_text(channel: Channel, event: Event, error: str) -> str:
    name = _name(channel)
    if event == "gone":
        return f"{name} is removed: it answered that it no longer exists. Nothing more is sent there."
    return (
        f"{name} is off: no message arrived there for three days. The last error: {error}. Set the channel "
        "again to get new alerts there. What it missed is in the inbox."
    )
