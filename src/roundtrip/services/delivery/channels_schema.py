"""The parameters and the answers of channels."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.services.support.strangers_text import WRITTEN, AnswerText
from roundtrip.store.delivery.channels import Channel

MOST_URL = 300
_KIND = Literal["webhook", "telegram", "discord"]


class WebhookParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to send."""

    url: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=MOST_URL,
            description="An https address that answers 2xx to a POST, or a webhook of Discord.",
        ),
    ]


class ChannelParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which channel."""

    id: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1, description="As list_channels tells it.")]


class ChannelRow(msgspec.Struct, frozen=True, rename="camel"):
    """Where the account is told."""

    id: int
    kind: _KIND
    target: Annotated[
        str,
        msgspec.Meta(
            description="The url's host and how its path begins: the rest may be a secret. Of Discord the "
            f"url without its token, of Telegram the chat's own name. {WRITTEN}"
        ),
    ]
    state: Annotated[
        Literal["live", "failing", "off"],
        msgspec.Meta(
            description="failing: the last try failed, and it is tried again; off: it failed for three days, "
            "and nothing is sent there until it is set again."
        ),
    ]
    made_at: datetime
    last_delivered_at: Annotated[datetime | None, msgspec.Meta(description="When something last arrived.")]
    failing_since: Annotated[
        datetime | None, msgspec.Meta(description="The first failure since something last arrived.")
    ]
    last_error: Annotated[str | None, msgspec.Meta(description="Of the last try, where that failed.")]
    proven: Annotated[
        bool,
        msgspec.Meta(
            description="false: of a webhook that never echoed the challenge; its host takes 60 rows a "
            "minute at most, and what is more waits."
        ),
    ]


class TelegramLink(msgspec.Struct, frozen=True, rename="camel"):
    """How to be told by Telegram."""

    bot: Annotated[str, msgspec.Meta(description="What the bot is called.")]
    link: Annotated[
        str,
        msgspec.Meta(
            description="Opened in Telegram and started, that chat becomes a channel; once, within ten "
            "minutes."
        ),
    ]


class Channels(msgspec.Struct, frozen=True, rename="camel"):
    """Where the account is told."""

    text: AnswerText
    channels: Annotated[list[ChannelRow], msgspec.Meta(description="The oldest first.")]
    telegram: Annotated[
        TelegramLink | None, msgspec.Meta(description="null: this service has no bot, or it does not answer.")
    ]


class WebhookSet(msgspec.Struct, frozen=True, rename="camel"):
    """A channel that was set."""

    text: AnswerText
    channel: ChannelRow
    secret: Annotated[
        str | None,
        msgspec.Meta(
            description="What deliveries are signed with: keep it, it is told in this answer and never "
            "again. null: of Discord, which is sent no signature."
        ),
    ]
    shown_once: Annotated[bool, msgspec.Meta(description="Whether there is a secret that is told once.")]
    replaced: Annotated[
        bool,
        msgspec.Meta(description="true: the channel was there; its old secret is good no longer."),
    ]


class ChannelRemoved(msgspec.Struct, frozen=True, rename="camel"):
    """A channel that is told nothing any more."""

    text: AnswerText
    id: int
    removed: Annotated[bool, msgspec.Meta(description="false: it was removed before.")]


def present_channel(channel: Channel) -> ChannelRow:
    """As its owner sees it."""
    assert channel.state != "removed"
    return ChannelRow(
        id=channel.id,
        kind=channel.kind,
        target=channel.shown,
        state=channel.state,
        made_at=channel.made_at,
        last_delivered_at=channel.delivered_at,
        failing_since=channel.failing_since,
        last_error=channel.last_error,
        proven=channel.proven_at is not None,
    )
