"""Shows an account's deliveries, and sends one of them again."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault, LimitReached
from roundtrip.domain.watch.channels import ACTIVE, DeliveryState, State
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing, accounts
from roundtrip.store.delivery import channels, deliveries

MAX_SHOWN = 50
RESENDS, RESENDS_WINDOW = 20, timedelta(hours=1)
"""The most messages that an account may send again within the window."""


class DeliveryRow(msgspec.Struct, frozen=True, rename="camel"):
    """One message to one channel. ``tries``: all that were made of it. ``next_at``: when one that waits may
    be tried; None: as soon as its turn comes."""

    id: int
    webhook_id: str
    kind: str
    retracted: bool
    rows: int
    channel_id: int
    channel: Literal["webhook", "telegram", "discord"]
    target: str
    channel_state: State
    state: DeliveryState
    tries: int
    made_at: datetime
    tried_at: datetime | None
    status: int | None
    error: str | None
    next_at: datetime | None
    ended_at: datetime | None
    may_resend: Annotated[
        bool, says("Whether it can be sent again: it does not wait, and its channel is on.")
    ]


class DeliveryLog(msgspec.Struct, frozen=True, rename="camel"):
    """The newest messages of an account."""

    text: str
    rows: Annotated[list[DeliveryRow], says(f"The newest first, {MAX_SHOWN} at most.")]


class ResendParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The message, and the time it ended as the caller saw it: submitting a form twice sends it once."""

    id: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    ended: datetime


class Resent(msgspec.Struct, frozen=True, rename="camel"):
    """A message that waits again."""

    text: str
    id: int


async def delivery_log(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[DeliveryLog]:
    """The account's newest messages, the newest first. Raises ServiceFull."""
    async with accounts(ctx) as connection:
        records = await deliveries.log_of_account(connection, account.id, MAX_SHOWN)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    rows = [_row(record, now) for record in records]
    return UseCaseAnswer(DeliveryLog(_text(rows), rows))


async def resend(ctx: Context, params: ResendParams, account: Account) -> UseCaseAnswer[Resent]:
    """Enqueues the message once more, with the same webhook id and rows. Raises CallerFault (bad_input),
    LimitReached, ServiceFull."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        await channels.lock_account(connection, account.id)
        _check_resendable(await deliveries.of_account(connection, account.id, params.id), params)
        until = await deliveries.count_resend(connection, account.id, RESENDS, RESENDS_WINDOW, now)
        if until is not None:
            wait_s = max(1, int((until - now).total_seconds() + 0.999))
            raise LimitReached(
                "rate_limited",
                f"You can send {RESENDS} messages again in an hour. Retry in {wait_s} s.",
                wait_s,
                RESENDS,
            )
        if await deliveries.resend(connection, params.id, now) is None:
            raise CallerFault(
                "bad_input", "The message cannot be sent: its channel was removed or set again since."
            )
    return UseCaseAnswer(Resent(f"Message {params.id} is sent again, with the same webhook id.", params.id))


def _check_resendable(record: deliveries.LockedDelivery | None, params: ResendParams) -> None:
    """Raises CallerFault (bad_input) unless the message has ended as the caller saw it."""
    if record is None:
        raise CallerFault("bad_input", f"You have no message {params.id}.")
    if record.channel_state not in ACTIVE:
        why = "is off. Test the channel to switch it on." if record.channel_state == "off" else "was removed."
        raise CallerFault("bad_input", f"Nothing was sent: the message's channel {why}")
    if record.ended_at is None:
        raise CallerFault("bad_input", "The message is already waiting to be sent.")
    if record.ended_at != params.ended:
        raise CallerFault(
            "bad_input", "The message was already sent again. Reload the page to see the result."
        )


def _row(record: deliveries.AccountDelivery, now: datetime) -> DeliveryRow:
    is_waiting = record.state == "waiting"
    # A message to a failing channel waits at least as long as the channel rests.
    next_at = max(record.next_at, record.rests_until or record.next_at)
    return DeliveryRow(
        id=record.id,
        webhook_id=record.webhook_id,
        kind=record.kind,
        retracted=record.retracted,
        rows=len(record.alert_ids),
        channel_id=record.channel_id,
        channel=record.channel_kind,
        target=record.shown,
        channel_state=record.channel_state,
        state=record.state,
        tries=record.number or 0,
        made_at=record.made_at,
        tried_at=record.tried_at,
        status=record.status,
        error=record.error,
        next_at=next_at if is_waiting and next_at > now else None,
        ended_at=record.ended_at,
        may_resend=not is_waiting and record.channel_state in ACTIVE and record.is_kept,
    )


def _text(rows: list[DeliveryRow]) -> str:
    if not rows:
        return "No message has been sent yet."
    waiting, failed = (sum(row.state == state for row in rows) for state in ("waiting", "failed"))
    text = "Your last message." if len(rows) == 1 else f"Your last {len(rows)} messages."
    text += f" {waiting} of them {'waits' if waiting == 1 else 'wait'} to be sent." if waiting else ""
    return text + (f" {failed} could not be delivered." if failed else "")
