"""A test to a channel that is there: by it one that failed or was switched off is told again."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.watch.channels import host_of
from roundtrip.services.accounts.database import accounts
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.store.delivery import channels, deliveries
from roundtrip.store.delivery.channels import Channel, NewChannel

from .channels import ChannelParams, ChannelRow, count_attempt, present_channel, send_test


class ChannelTested(msgspec.Struct, frozen=True, rename="camel"):
    """A channel that a test arrived at."""

    text: str
    channel: ChannelRow


async def try_channel(ctx: Context, params: ChannelParams, account: Account) -> UseCaseAnswer[ChannelTested]:
    """Sends a test to what is kept of the channel; where that arrives, it is live. Counts with the targets
    that are tried to be set. Raises CallerFault (bad_input), LimitReached, ServiceFull."""
    async with accounts(ctx) as connection:
        found = _own(await channels.channel(connection, params.id), params, account)
        new = _as_new(found)
        tried_at = await count_attempt(ctx, connection, account, new)
    tested = await send_test(ctx, account, new)
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with accounts(ctx) as connection:
        await channels.clear_attempt(connection, account.id, host_of(new.shown), tried_at)
        await channels.lock_account(connection, account.id)
        # As it is by now: it may have been set anew, or removed, while the test was under way.
        before = _own(await channels.channel(connection, params.id, lock=True), params, account)
        again = replace(_as_new(before), proven=tested.proven, took_ms=tested.took_ms)
        await channels.set_again(connection, before.id, again, now)
        await deliveries.hurry(connection, before.id, now)
        kept = await channels.channel(connection, before.id)
    assert kept is not None
    text = f"The test arrived at {kept.shown}."
    if before.state == "off":
        text += (
            " The channel is on again: what waited while it was off is not sent, what happens from now on is."
        )
    elif before.state == "failing":
        text += " What waits is sent now."
    return UseCaseAnswer(ChannelTested(text, present_channel(kept)))


def _own(found: Channel | None, params: ChannelParams, account: Account) -> Channel:
    """Raises CallerFault (bad_input)."""
    if found is None or found.account_id != account.id or found.state == "removed":
        raise CallerFault("bad_input", f"There is no channel {params.id} of this account.")
    return found


def _as_new(channel: Channel) -> NewChannel:
    return NewChannel(channel.kind, channel.target, channel.shown, channel.secret, channel.target_hash)
