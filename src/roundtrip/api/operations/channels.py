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
        title="Where I am told",
        description=(
            "The channels that alerts of the key's account are sent to: webhooks, Discord and Telegram, each "
            "with its state and what went wrong there last. Where the service has a Telegram bot, the answer "
            "has a link: opened within ten minutes it makes that chat a channel, once."
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
            "Sends a test to the url by POST and, where that is answered 2xx within ten seconds, sends "
            "alerts there from now on; otherwise nothing is saved. The answer has the secret that deliveries "
            "are signed with, told this once; a webhook of Discord has none. The same url again gets a new "
            "secret, and the old one is good no longer. An account has at most five channels, and may try "
            "five targets in ten minutes."
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
            "Nothing is sent to that channel any more, nor what still waited for it; the inbox keeps all of "
            "it. Removing it again changes nothing. Counts against the minute only."
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
