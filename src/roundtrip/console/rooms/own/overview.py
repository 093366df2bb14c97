"""The account: its level, its calls, how agents are told apart."""

from roundtrip.console.account_room import Act, Room

ROOM = Room("overview", "Account", {"mite": "my_mite", "credits": "credits"})
ACTS = (Act("mark_as_agent", "overview", ("name",)),)
