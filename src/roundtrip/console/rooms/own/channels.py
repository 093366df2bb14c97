"""Where it is told."""

from roundtrip.console.account_room import Act, Room

ROOM = Room("channels", "Channels", {"channels": "list_channels"})
ACTS = (
    Act("set_webhook", "channels", ("url",)),
    Act("remove_channel", "channels", ("id",), frozenset({"id"})),
)
