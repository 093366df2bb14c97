"""Sends a test message to an existing channel; a failing or switched-off channel becomes live again by it."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.watch.channels import host_of
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.delivery.channels import Channel, NewChannel

from .channels import ChannelParams, ChannelRow, count_attempt, present_channel, send_test


class ChannelTested(msgspec.Struct, frozen=True, rename="camel"):
    """A channel that a test arrived at."""

    text: str
    channel: ChannelRow


async def try_channel(ctx: Context, params: ChannelParams, account: Account) -> UseCaseAnswer[ChannelTested]:
    """Sends a test to the channel; if it arrives, the channel is live. Counts as an attempt, like setting a
    new channel. Raises CallerFault (bad_input), LimitReached, ServiceFull."""
    async with accounts(ctx) as connection:
        channel = _check_owned(await channels.channel(connection, params.id), params, account)
        new = _as_new(channel)
        attempted_at = await count_attempt(ctx, connection, account, new)
    tested = await send_test(ctx, account, new)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        await channels.clear_attempt(connection, account.id, host_of(new.shown), attempted_at)
        await channels.lock_account(connection, account.id)
        # Read again: it may have been set again or removed during the test.
        before = _check_owned(await channels.channel(connection, params.id, lock=True), params, account)
        updated = replace(_as_new(before), proven=tested.proven, took_ms=tested.took_ms)
        await channels.set_again(connection, before.id, updated, now)
        await deliveries.hurry(connection, before.id, now)
        after = await channels.channel(connection, before.id)
    assert after is not None
    text = f"The test arrived at {after.shown}."
    if before.state == "off":
        text += " The channel is on again. Alerts from the time it was off are not sent; new ones are."
    elif before.state == "failing":
        text += " Waiting messages are sent now."
    return UseCaseAnswer(ChannelTested(text, present_channel(after)))


def _check_owned(channel: Channel | None, params: ChannelParams, account: Account) -> Channel:
    """Raises CallerFault (bad_input) unless it is a channel of the account."""
    if channel is None or channel.account_id != account.id or channel.state == "removed":
        raise CallerFault("bad_input", f"You have no channel {params.id}. list_channels lists your channels.")
    return channel


def _as_new(channel: Channel) -> NewChannel:
    return NewChannel(channel.kind, channel.target, channel.shown, channel.secret, channel.target_hash)
