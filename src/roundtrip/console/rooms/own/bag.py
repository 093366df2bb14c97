"""What its wallet holds."""

from roundtrip.console.account_room import Act, Room

ROOM = Room("bag", "Bag", {"bag": "my_bag"})
ACTS: tuple[Act, ...] = ()
