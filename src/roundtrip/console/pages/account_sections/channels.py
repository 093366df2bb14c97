"""The account's channels, and the log of deliveries."""

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_operations import own_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.render import iso
from roundtrip.services.delivery.channels import Channels, try_channel
from roundtrip.services.delivery.delivery_log import DeliveryRow, delivery_log, resend
from roundtrip.services.support.index_reader import Nothing

_CHANNELS = find_operation("list_channels", Nothing, Channels)
_LOG = own_operation(delivery_log, counts="never")
_RESEND = own_operation(resend, method="POST", writes=True, counts="minute", errors=("rate_limited", "busy"))
_TRY = own_operation(
    try_channel, method="POST", writes=True, counts="minute", errors=("rate_limited", "busy")
)


async def _read_fingerprint(visit: Visit) -> str:
    return _fingerprint(await visit.ask(_CHANNELS))


def _fingerprint(channels: Channels) -> str:
    """Changes with every delivery, also the test of a new webhook. So a form that is sent twice is refused:
    setting a webhook again would replace its secret, and send a message."""
    delivered = ((channel.id, channel.last_delivered_at) for channel in channels.channels)
    return " ".join(f"{channel_id}@{at and iso(at)}" for channel_id, at in delivered)


async def _read(visit: Visit) -> Values:
    """``last``: the newest message of each channel that was tried, by the channel's id."""
    channels, log = await visit.ask(_CHANNELS), await visit.ask(_LOG)
    last: dict[int, DeliveryRow] = {}
    for row in log.rows:
        if row.tries:
            last.setdefault(row.channel_id, row)
    return {"channels": channels, "log": log, "seen": _fingerprint(channels), "last": last}


ROOM = Room(
    "channels",
    "Send alerts to",
    "Choose where alerts go besides your inbox: a webhook, Discord or Telegram.",
    _read,
)
ACTS = (
    AccountForm("set_webhook", "channels", ("url",), fingerprint=_read_fingerprint),
    AccountForm("remove_channel", "channels", ("id",), frozenset({"id"})),
    AccountForm(_TRY, "channels", ("id",), frozenset({"id"})),
    AccountForm(_RESEND, "channels", ("id", "ended"), frozenset({"id"})),
)
