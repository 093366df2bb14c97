"""What an account is told of its messages: over a real database, to servers that answer as a test says."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from roundtrip.domain.accounts.account import Account
from roundtrip.services.delivery.delivery_log import DeliveryRow, delivery_log
from roundtrip.services.support.index_reader import Nothing
from support.channels import OK, ChannelStreet

REFUSED = replace(OK, status=503)


async def shown(street: ChannelStreet, account: Account) -> DeliveryRow:
    (row,) = (await delivery_log(street.ctx, Nothing(), account)).answer.rows
    return row


@pytest.mark.parametrize("rests_s", [None, -60, 0, 60])
async def test_a_message_is_tried_again_when_it_and_its_channel_may_be(
    street: ChannelStreet, rests_s: int | None
) -> None:
    account = await street.account()
    channel_id = await street.webhook(account, proven=True)
    street.servers.replies["a.example"] = [REFUSED]
    await street.alert(account, "one")
    assert ((await shown(street, account)).state, (await shown(street, account)).next_at) == ("waiting", None)
    await street.run()
    retry_at: datetime = await street.pool.fetchval(
        "SELECT next_at FROM accounts.delivery WHERE channel_id = $1", channel_id
    )
    assert retry_at > street.now()
    rests_until = None if rests_s is None else retry_at + timedelta(seconds=rests_s)
    await street.pool.execute(
        "UPDATE accounts.channel SET rests_until = $1 WHERE id = $2", rests_until, channel_id
    )
    row = await shown(street, account)
    assert (row.state, row.tries, row.status, row.may_resend) == ("waiting", 1, 503, False)
    tried_at = retry_at + timedelta(seconds=max(0, rests_s or 0))
    assert row.next_at == tried_at
    street.at_s = tried_at.timestamp() - 0.001
    assert (await shown(street, account)).next_at == tried_at
    # Its turn: it waits for nothing but other messages.
    street.at_s = tried_at.timestamp()
    assert (await shown(street, account)).next_at is None


async def test_what_has_ended_is_not_tried_again(street: ChannelStreet) -> None:
    account = await street.account()
    await street.webhook(account, proven=True)
    await street.alert(account, "one")
    await street.run()
    street.at_s -= 3_600
    row = await shown(street, account)
    assert (row.state, row.tries, row.next_at, row.may_resend) == ("delivered", 1, None, True)
