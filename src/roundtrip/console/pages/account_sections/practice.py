"""Practice trades with pretend eth."""

from decimal import Decimal

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_operations import own_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.render import draw_curve
from roundtrip.domain.check.refusals import REASON_WITHHELD
from roundtrip.services.practice.account import practice_history
from roundtrip.services.practice.pricing import SELL_FAILS
from roundtrip.services.practice.schema import PositionListed, PracticeAccount, PracticeTrades
from roundtrip.services.support.index_reader import Nothing

_ACCOUNT = find_operation("practice_account", Nothing, PracticeAccount)
_TRADES = find_operation("practice_trades", Nothing, PracticeTrades)
_HISTORY = own_operation(practice_history, counts="never")


def is_refused(position: PositionListed) -> bool:
    """Whether a position is known not to sell now; False also where that could not be found out."""
    why = position.why or ""
    return position.worth is None and (position.stuck_at is not None or why.startswith(SELL_FAILS))


def gain_now(practice: PracticeAccount) -> str | None:
    """By how much eth the account is above what it was given, if all positions were sold now; None: a
    position's worth is not known."""
    if any(position.worth is None and not is_refused(position) for position in practice.positions):
        return None
    return f"{Decimal(practice.worth) + Decimal(practice.set_apart) - Decimal(practice.given):f}"


async def _read(visit: Visit) -> Values:
    """``typed``: the token with which another page's link prefills the form. ``curve``: of the profit that
    was taken (``taken`` points), and of what it would be if all were sold now (``gain``). ``no_reason``:
    words that say no more than that it cannot be sold."""
    practice, trades = await visit.ask(_ACCOUNT), await visit.ask(_TRADES)
    history = await visit.ask(_HISTORY)
    values = [(point.at, Decimal(point.total)) for point in history.points]
    if trades.trades and history.is_all:
        # Before its first trade an account has neither gained nor lost.
        start = min(trade.made_at for trade in trades.trades)
        values.insert(0, (min([start, *(at for at, _ in values)]), Decimal(0)))
    taken, gain = len(values), gain_now(practice)
    if gain is not None and values:
        values.append((max(history.now, values[-1][0]), Decimal(gain)))
    return {
        "practice": practice,
        "trades": trades,
        "history": history,
        "typed": visit.query.get("token", "")[:42],
        "refused": {position.token.address for position in practice.positions if is_refused(position)},
        "gain": gain,
        "no_reason": REASON_WITHHELD,
        "curve": draw_curve(values),
        "taken": taken,
        "first": values[0][0].isoformat() if values else None,
    }


ROOM = Room(
    "practice", "Practice", "Buy and sell real tokens with pretend eth, at prices of the chain.", _read
)
ACTS = (
    AccountForm("practice_buy", "practice", ("token", "eth")),
    AccountForm("practice_sell", "practice", ("token", "percent"), frozenset({"percent"})),
)
