"""Trades with pretend eth."""

from roundtrip.console.account_room import Act, Room

ROOM = Room("practice", "Practice", {"practice": "practice_account", "trades": "practice_trades"})
ACTS = (
    Act("practice_buy", "practice", ("token", "eth")),
    Act("practice_sell", "practice", ("token", "percent"), frozenset({"percent"})),
)
