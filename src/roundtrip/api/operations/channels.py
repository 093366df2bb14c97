"""Operations: the channels to which an account's alerts are delivered."""

from roundtrip.services.delivery.channels import (
    ChannelParams,
    ChannelRemoved,
    Channels,
    WebhookParams,
    WebhookSet,
    list_channels,
    remove_channel,
    set_webhook,
)
from roundtrip.services.support.index_reader import Nothing

from .operation import AnyOperation, Operation

CHANNELS: tuple[AnyOperation, ...] = (
    Operation(
        name="list_channels",
        title="List channels",
        description=(
            "Returns the account's alert channels (webhook, Discord, Telegram), each with its state and "
            "last error. Where the service has a Telegram bot, the answer has a link: open it within ten "
            "minutes to add that chat."
        ),
        params=Nothing,
        answer=Channels,
        handler=lambda call: list_channels(call.ctx, call.params, call.owner()),
        key=True,
    ),
    Operation(
        name="set_webhook",
        title="Set a webhook",
        description=(
            "Posts a test to an https url and, if it answers 2xx within ten seconds, sends alerts there "
            "from now on; otherwise saves nothing. The answer shows the signing secret once; a Discord "
            "webhook has none. Setting the same url again replaces its secret. An account has at most five "
            "channels and may try five targets in ten minutes."
        ),
        params=WebhookParams,
        answer=WebhookSet,
        handler=lambda call: set_webhook(call.ctx, call.params, call.owner()),
        key=True,
        writes=True,
    ),
    Operation(
        name="remove_channel",
        title="Remove a channel",
        description=(
            "Stops sending alerts to a channel, those still waiting for it included; the inbox keeps them. "
            "Removing it again changes nothing. Counts against the minute only."
        ),
        params=ChannelParams,
        answer=ChannelRemoved,
        handler=lambda call: remove_channel(call.ctx, call.params, call.owner()),
        key=True,
        writes=True,
        counts="minute",
        destroys=True,
        repeatable=True,
    ),
)
