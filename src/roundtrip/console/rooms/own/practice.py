"""Trades with pretend eth."""

from roundtrip.api.operation import Operation
from roundtrip.console.account_room import Act, Room
from roundtrip.services.index_answer import Nothing
from roundtrip.services.practice_history import PracticeHistory, practice_history

_HISTORY = Operation(
    name="practice_history", title="What sells took", description="", params=Nothing,
    answer=PracticeHistory, handler=practice_history, key=True, on_mcp=False, counts="never",
)  # fmt: skip

ROOM = Room(
    "practice",
    "Practice",
    {"practice": "practice_account", "trades": "practice_trades", "history": _HISTORY},
)
ACTS = (
    Act("practice_buy", "practice", ("token", "eth")),
    Act("practice_sell", "practice", ("token", "percent"), frozenset({"percent"})),
)
