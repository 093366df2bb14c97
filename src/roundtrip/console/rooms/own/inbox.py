"""What it was told."""

from roundtrip.console.account_room import Act, Room

ROOM = Room("inbox", "Inbox", {"inbox": "inbox"})
ACTS: tuple[Act, ...] = ()
