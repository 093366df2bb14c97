"""``deliver``, of a channel: sends what waits for it, the oldest first, and wishes for itself while something
does.

Of a channel there is one job: a target that hangs holds one place. What is sent and not written down, because
the worker died, is sent again under the same id; nothing is ever sent under another."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from roundtrip.channels.post import PostNotTried, PostReply
from roundtrip.domain.watch.alerts import Draft
from roundtrip.domain.watch.channels import (
    ACTIVE,
    IN_ORDER_TRIES,
    MOST_TRIES,
    PLACE_S,
    SLOW_MS,
    DeliveryEvent,
    Event,
    failing_since,
    failure,
    smooth_answer_ms,
    wait_s,
)
from roundtrip.jobs.engine.worker import Effect, nothing
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import Message, MessageTarget, describe_failure, send
from roundtrip.services.watch.alert_rows import rows
from roundtrip.store.accounts import accounts
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.delivery.channels import Channel
from roundtrip.store.delivery.deliveries import Delivery, DeliveryTry
from roundtrip.store.server import jobs
from roundtrip.store.server.jobs import Job
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alerts

MOST_A_RUN = 20
RUN_S = PLACE_S
"""After so long a run begins no further message: it is the others' turn."""
_GONE = 410


@dataclass(frozen=True, slots=True)
class _Sent:
    """``reply`` None: none of its rows is kept any more. ``proves``: that who answered wants this."""

    delivery: Delivery
    at: datetime
    reply: PostReply | None
    proves: bool = False


@dataclass(frozen=True, slots=True)
class _Due:
    """What may be sent now. ``rest_at``: when its host has room, where it has none for any."""

    messages: Sequence[Delivery]
    rest_at: datetime | None = None


async def deliver(ctx: Context, job: Job, clock: Callable[[], float] = time.perf_counter) -> Effect:
    """Sends with no transaction open, up to the first that fails. Raises NotTried. ``clock``: seconds since
    any time; nobody sets it."""
    began_s, now = clock(), _time(ctx.now_s())
    async with ctx.pool.acquire() as connection, connection.transaction():
        channel = await channels.channel(connection, int(job.key))
        if channel is None:
            return nothing
        due = await _due(ctx, connection, channel, now)
        kept = await alerts.alerts(connection, {alert for one in due.messages for alert in one.alert_ids})
        account = (await accounts.read_account(connection, channel.account_id)).account.designation
    shown = rows(kept, ctx.outward.public_url)
    row_of = dict(zip([alert.id for alert in kept], shown, strict=True))
    sent: list[_Sent] = []
    to = MessageTarget(channel.kind, channel.target, channel.secret)
    for one in due.messages:
        if sent and clock() - began_s >= RUN_S:
            break
        at_s = ctx.now_s()
        found = [row_of[alert] for alert in one.alert_ids if alert in row_of]
        challenge = ctx.entropy().hex()[:32] if channel.proven_at is None else None
        message = Message(one.webhook_id, account, one.kind, found, challenge)
        try:
            reply = await send(ctx.outward, to, message, int(at_s)) if found else None
        except PostNotTried:
            # Ours: neither message nor channel failed. What was sent before it is put down first.
            if not sent:
                raise
            break
        if reply is not None:
            ended = "delivered" if reply.ok else "failed"
            ctx.measures.observe("delivery", channel.kind, ended, reply.took_ms / 1000)
        sent.append(_Sent(one, _time(at_s), reply, reply is not None and message.is_echoed(reply)))
        if reply is not None and not reply.ok:
            break
    drawn = int.from_bytes(ctx.entropy()[:4], "big") / 2**32

    async def write(connection: Connection) -> None:
        await _write(connection, channel.id, sent, _time(ctx.now_s()), drawn, job, due.rest_at)

    return write


def _time(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def _is_told(channel: Channel, now: datetime) -> bool:
    return channel.state in ACTIVE and (channel.rests_until is None or channel.rests_until <= now)


async def _due(ctx: Context, connection: Connection, channel: Channel, now: datetime) -> _Due:
    if not _is_told(channel, now):
        return _Due([])
    found = await deliveries.due(connection, channel.id, now, MOST_A_RUN, channel.dropped_to)
    fit, rest_at = len(found), None
    # Targets on this machine were named by whoever runs it.
    if found and channel.proven_at is None and channel.host not in ctx.outward.loopback:
        sizes = [len(one.alert_ids) for one in found]
        fit, rest_at = await channels.reserve_rows(connection, channel.host, sizes, now)
    if fit == len(found) < MOST_A_RUN and channel.answers_ms <= SLOW_MS:
        # Nothing waits for another run: then nothing goes before what is older.
        found.sort(key=lambda one: (one.tries > IN_ORDER_TRIES, one.id))
    return _Due(found[:fit], None if fit else rest_at)


async def _write(
    connection: Connection,
    channel_id: int,
    sent: Sequence[_Sent],
    now: datetime,
    drawn: float,
    job: Job,
    rest_at: datetime | None,
) -> None:
    """Puts down what became of each, and what that makes of the channel as it stands by now."""
    channel = await channels.channel(connection, channel_id, lock=True)
    if channel is None or channel.state not in ACTIVE:
        if await deliveries.drop(connection, channel_id, now):
            await jobs.enqueue(connection, job.kind, job.key, run_at=now)
        return
    await _record_answers(connection, channel, sent, now)
    for one in sent:
        reply = one.reply
        if reply is None:
            await deliveries.finish_run(connection, one.delivery, "dropped", now)
            continue
        tried = DeliveryTry(
            one.at, reply.status, None if reply.ok else describe_failure(reply), reply.took_ms
        )
        if reply.ok:
            if await deliveries.finish_run(connection, one.delivery, "delivered", now, tried):
                await channels.mark_delivered(connection, channel_id, now)
        elif not await _record_failure(connection, channel_id, one.delivery, tried, reply, now, drawn):
            # Its job is wished for with the others': in one order.
            return
    is_more = await _drop_old(connection, channel, now)
    if is_more is None:
        return
    # Last: from here on the job's row is locked.
    again_at = now if is_more else await _again_at(connection, channel_id)
    if again_at is not None:
        # Behind whoever waits by now, however long its own have waited.
        await jobs.enqueue(connection, job.kind, job.key, run_at=max(again_at, rest_at or now, now))


async def _record_answers(
    connection: Connection, channel: Channel, sent: Sequence[_Sent], now: datetime
) -> None:
    """What answers told of the target."""
    replies = [one.reply for one in sent if one.reply is not None]
    if replies:
        took_ms = channel.answers_ms
        for reply in replies:
            took_ms = smooth_answer_ms(took_ms, reply.took_ms)
        proven_at = now if any(one.proves for one in sent) else None
        await channels.record_answer_time(connection, channel.id, took_ms, proven_at)


async def _drop_old(connection: Connection, channel: Channel, now: datetime) -> bool | None:
    """Whether there is more to drop. None: more waited than there is room for; it is said, and its job is
    wished for with the others' who are told."""
    if channel.dropped_to:
        if await deliveries.drop(connection, channel.id, now, channel.dropped_to):
            return True
        await channels.set_dropped_to(connection, channel.id, 0)
    up_to = await deliveries.too_old(connection, channel.id)
    if up_to is None:
        return False
    await channels.set_dropped_to(connection, channel.id, up_to)
    said = (
        f"{_name(channel)} is sent to slower than alerts come: the oldest messages that wait are not sent "
        "there. They are in the inbox."
    )
    await _say(connection, channel, said, now)
    return None


async def _say(connection: Connection, channel: Channel, said: str, now: datetime) -> None:
    """Tells its owner, and has it run again."""
    draft = Draft(channel.account_id, "service", channel.id, int(now.timestamp()), said)
    told = await alerts.put(connection, [draft], now)
    await deliveries.wish_and_run(connection, told, now, more=[channel.id])


async def _again_at(connection: Connection, channel_id: int) -> datetime | None:
    next_at = await deliveries.next_at(connection, channel_id)
    channel = await channels.channel(connection, channel_id)
    rests_until = None if channel is None else channel.rests_until
    return next_at if next_at is None or rests_until is None else max(next_at, rests_until)


async def _record_failure(
    connection: Connection,
    channel_id: int,
    delivery: Delivery,
    tried: DeliveryTry,
    reply: PostReply,
    now: datetime,
    drawn: float,
) -> bool:
    """Whether the channel is still told."""
    channel = await channels.channel(connection, channel_id, lock=True)
    assert channel is not None
    is_last = delivery.tries + 1 >= MOST_TRIES
    what: DeliveryEvent = "failed_last" if is_last else "failed"
    since = failing_since(channel.failing_since, channel.rests_until, now)
    on_end = channel.failures + 1 if since == channel.failing_since else 1
    rests = timedelta(seconds=wait_s(on_end, drawn, reply.retry_after_s))
    waits = timedelta(seconds=wait_s(delivery.tries + 1, drawn, reply.retry_after_s))
    await deliveries.finish_run(connection, delivery, what, now, tried, None if is_last else now + waits)
    event: Event = "gone" if reply.status == _GONE else failure(channel.state, (now - since).total_seconds())
    why = describe_failure(reply)
    state = await channels.mark_failed(connection, channel_id, event, since, on_end, now + rests, why)
    if state in ACTIVE:
        return True
    await deliveries.drop(connection, channel_id, now)
    await _say(connection, channel, _channel_text(channel, event, why), now)
    return False


def _name(channel: Channel) -> str:
    """The other channels of its owner are told it, too: of a url the host alone."""
    where = channel.shown
    if channel.kind != "telegram":
        where = where.removeprefix("https://").removeprefix("http://").partition("/")[0]
    return f"Channel {channel.id} ({channel.kind}, {where})"


def _channel_text(channel: Channel, event: Event, error: str) -> str:
    name = _name(channel)
    if event == "gone":
        return f"{name} is removed: it said that it is gone. Nothing is sent there any more."
    return (
        f"{name} is switched off: nothing arrived there for three days, the last try {error}. "
        "Set it again, and it is told of what happens from then on; what it missed is in the inbox."
    )
