"""Practice trades with pretend eth."""

from collections.abc import Mapping

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Answers, Room
from roundtrip.services.practice.trades import PracticeHistory, practice_history
from roundtrip.services.support.index_reader import Nothing

_HISTORY = Operation(
    name="practice_history",
    title="Profit over time",
    description="",
    params=Nothing,
    answer=PracticeHistory,
    handler=lambda call: practice_history(call.ctx, call.params, call.owner()),
    key=True,
    on_mcp=False,
    counts="never",
)


def _read_prefill(_answers: Answers, query: Mapping[str, str]) -> Answers:
    """``typed``: the token with which another page's link prefills the form."""
    return {"typed": query.get("token", "")[:42]}


ROOM = Room(
    "practice",
    "Practice",
    "Buy and sell real tokens with pretend eth, at prices of the chain.",
    {"practice": "practice_account", "trades": "practice_trades", "history": _HISTORY},
    _read_prefill,
)
ACTS = (
    AccountForm("practice_buy", "practice", ("token", "eth")),
    AccountForm("practice_sell", "practice", ("token", "percent"), frozenset({"percent"})),
)
