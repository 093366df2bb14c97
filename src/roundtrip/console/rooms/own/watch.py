"""Whom and what it watches."""

from roundtrip.console.account_room import Act, Room

ROOM = Room("watch", "Watch", {"watched": "list_rules"})
ACTS = (
    Act("follow_wallet", "watch", ("address", "name")),
    Act("unfollow_wallet", "watch", ("address",)),
    Act("create_rule", "watch", ("rule",)),
    Act("test_rule", "watch", ("rule",)),
    Act("delete_rule", "watch", ("id",), frozenset({"id"})),
)
