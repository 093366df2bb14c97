"""Where it is told, and what became of what was sent."""

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Answers, Room
from roundtrip.services.delivery.channel_test import ChannelTested, try_channel
from roundtrip.services.delivery.channels import ChannelParams
from roundtrip.services.delivery.delivery_log import DeliveryLog, ResendParams, Resent, delivery_log, resend
from roundtrip.services.support.index_reader import Nothing

_LOG = Operation(
    name="delivery_log",
    title="What was sent",
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


def _fingerprint(channels: Answers) -> str:
    """Setting a webhook again gives it another secret, and is an arrival there."""
    return " ".join(f"{one['id']}@{one['lastDeliveredAt']}" for one in channels["channels"])


ROOM = Room(
    "channels", "Channels", {"channels": "list_channels", "log": _LOG},
    also=lambda answers, _: {"seen": _fingerprint(answers["channels"])},
)  # fmt: skip
ACTS = (
    AccountForm("set_webhook", "channels", ("url",), seen=("list_channels", _fingerprint)),
    AccountForm("remove_channel", "channels", ("id",), frozenset({"id"})),
    AccountForm(_TRY, "channels", ("id",), frozenset({"id"})),
    AccountForm(_RESEND, "channels", ("id", "ended"), frozenset({"id"})),
)
