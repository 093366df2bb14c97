"""The account's channels, and the log of deliveries."""

from collections.abc import Mapping

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Answers, Room
from roundtrip.services.delivery.channel_test import ChannelTested, try_channel
from roundtrip.services.delivery.channels import ChannelParams
from roundtrip.services.delivery.delivery_log import DeliveryLog, ResendParams, Resent, delivery_log, resend
from roundtrip.services.support.index_reader import Nothing

_LOG = Operation(
    name="delivery_log",
    title="Sent messages",
    description="",
    params=Nothing,
    answer=DeliveryLog,
    handler=lambda call: delivery_log(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="never",
)
_RESEND = Operation(
    name="resend",
    title="Send again",
    description="",
    params=ResendParams,
    answer=Resent,
    handler=lambda call: resend(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    on_mcp=False,
    counts="minute",
    errors=("rate_limited", "busy"),
)
_TRY = Operation(
    name="try_channel",
    title="Send a test",
    description="",
    params=ChannelParams,
    answer=ChannelTested,
    handler=lambda call: try_channel(call.ctx, call.params, call.owner()),
    method="POST",
    key=True,
    writes=True,
    on_mcp=False,
    counts="minute",
    errors=("rate_limited", "busy"),
)


def _fingerprint_channels(channels: Answers) -> str:
    """Changes with every delivery: setting a webhook again would replace its secret, and sends a message."""
    return " ".join(f"{channel['id']}@{channel['lastDeliveredAt']}" for channel in channels["channels"])


def _find_last(answers: Answers, query: Mapping[str, str]) -> Answers:
    """``last``: the newest message of each channel that was tried, by the channel's id."""
    last: dict[int, Answers] = {}
    for row in answers["log"]["rows"]:
        if row["tries"]:
            last.setdefault(row["channelId"], row)
    return {"seen": _fingerprint_channels(answers["channels"]), "last": last}


ROOM = Room(
    "channels",
    "Channels",
    "Choose where alerts go besides your inbox: a webhook, Discord or Telegram.",
    {"channels": "list_channels", "log": _LOG},
    extra_values=_find_last,
)
ACTS = (
    AccountForm("set_webhook", "channels", ("url",), fingerprint=("list_channels", _fingerprint_channels)),
    AccountForm("remove_channel", "channels", ("id",), frozenset({"id"})),
    AccountForm(_TRY, "channels", ("id",), frozenset({"id"})),
    AccountForm(_RESEND, "channels", ("id", "ended"), frozenset({"id"})),
)
