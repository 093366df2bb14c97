"""Practice trades with pretend eth."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.account_page import AccountForm, Answers, Room
from roundtrip.console.support.small_chart import draw_curve
from roundtrip.domain.check.refusals import REASON_WITHHELD
from roundtrip.services.practice.pricing import SELL_FAILS
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


def is_refused(position: Mapping[str, Any]) -> bool:
    """Whether a position is known not to sell now; False also where that could not be found out."""
    why = position["why"] or ""
    return position["worth"] is None and (position["stuckAt"] is not None or why.startswith(SELL_FAILS))


def gain_now(practice: Mapping[str, Any]) -> str | None:
    """What the account is above what it was given, with its positions as they would sell now; None: a
    position's worth is not known."""
    if any(one["worth"] is None and not is_refused(one) for one in practice["positions"]):
        return None
    return f"{Decimal(practice['worth']) + Decimal(practice['setApart']) - Decimal(practice['given']):f}"


def _draw_account(answers: Answers, query: Mapping[str, str]) -> Answers:
    """``typed``: the token with which another page's link prefills the form. ``curve``: of the profit that
    was taken (``taken`` points), and of what it would be if all were sold now (``gain``). ``no_reason``:
    words that say no more than that it cannot be sold."""
    practice, history = answers["practice"], answers["history"]
    values = [(datetime.fromisoformat(one["at"]), Decimal(one["total"])) for one in history["points"]]
    begun = [trade["madeAt"] for trade in answers["trades"]["trades"]]
    if begun and history["isAll"]:
        # Before its first trade an account has neither gained nor lost.
        start = datetime.fromisoformat(min(begun))
        values.insert(0, (min([start, *(at for at, _ in values)]), Decimal(0)))
    taken, gain, now = len(values), gain_now(practice), datetime.fromisoformat(history["now"])
    if gain is not None and values:
        values.append((max(now, values[-1][0]), Decimal(gain)))
    return {
        "typed": query.get("token", "")[:42],
        "refused": {one["token"]["address"] for one in practice["positions"] if is_refused(one)},
        "gain": gain,
        "no_reason": REASON_WITHHELD,
        "curve": draw_curve(values),
        "taken": taken,
        "first": values[0][0].isoformat() if values else None,
    }


ROOM = Room(
    "practice",
    "Practice",
    "Buy and sell real tokens with pretend eth, at prices of the chain.",
    {"practice": "practice_account", "trades": "practice_trades", "history": _HISTORY},
    _draw_account,
)
ACTS = (
    AccountForm("practice_buy", "practice", ("token", "eth")),
    AccountForm("practice_sell", "practice", ("token", "percent"), frozenset({"percent"})),
)
