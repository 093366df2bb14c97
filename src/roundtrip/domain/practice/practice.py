"""Practice: pretend eth, traded at the chain's own prices. Accounts, states of a position, the weekly gift.

No wei and no token is created or lost: an account's spendable and set-apart eth is what it was given,
less what it paid, plus what its sells brought; a position holds what was bought, less what was sold or
written off.

The practice league: the most profit with pretend eth in a week, by sells that count.

A sell counts where its token is fair and the seller is independent of its deployer, as in
``domain/market/winners.py``: what a deployer could arrange alone counts for nothing; and where it was priced
in a place that the seller cannot set up. Losses count as gains do. Weeks begin on Mondays (``monday_s``), by
this machine's clock. The most profit comes first; of equal profit fewer sells, then the earlier last sell,
then the older account. ``store/practice/league.py`` computes it; tests compare it with the same in Python."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from roundtrip.domain.base.errors import IllegalMove
from roundtrip.domain.base.types import WEI_PER_ETH, Address, Numeric

START_WEI = WEI_PER_ETH
"""The starting balance."""
GIFT_WEI = WEI_PER_ETH
MIN_WEI = WEI_PER_ETH // 1000
"""The smallest buy, and the smallest sell of a part. An account with less and no holdings can do nothing, and
gets a gift."""
AT_ONCE_S = 600
"""Trades of one token within this time of each other are priced as one."""
MAX_POSITIONS = 50
"""Open ones of one account: all of them are valued in one round trip."""
WEEK_S = 7 * 86_400
GIVEN_UP_S = WEEK_S
"""A position that could not be sold as a whole, and still cannot after this time, counts as unsellable."""
_FIRST_MONDAY_S = 4 * 86_400
"""1970 began on a Thursday."""

State = Literal["open", "closed"]
Event = Literal["bought", "sold_part", "sold_all", "written_off"]

LIFE: MappingProxyType[tuple[State, Event], State] = MappingProxyType(
    {
        ("closed", "bought"): "open",
        ("open", "bought"): "open",
        ("open", "sold_part"): "open",
        ("open", "sold_all"): "closed",
        ("open", "written_off"): "closed",
    }
)
"""A position that was never bought is closed."""

Side = Literal["buy", "sell", "gift", "written_off"]
SellsBack = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class PracticePosition:
    """What is held of a token, and its cost. ``is_stuck``: it cannot be sold, as far as is known."""

    token: Address
    state: State = "closed"
    held_raw: Numeric = 0
    cost_wei: Numeric = 0
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class PracticePurse:
    """``eth_wei``: spendable. ``given_wei``: all that it ever got without a trade. ``week_s``: the Monday, in
    seconds since 1970, up to which gifts were handled. ``apart_wei``: gains of sells that do not count, which
    are never spent."""

    eth_wei: Numeric
    given_wei: Numeric
    week_s: int
    apart_wei: Numeric = 0


@dataclass(frozen=True, slots=True)
class PracticeTrade:
    """One line of the ledger. ``cost_wei``: of a sell or a write-off, the cost of that part; of a buy, what
    was paid; ``profit_wei`` None: nothing was closed."""

    side: Side
    token: Address | None
    token_raw: int
    eth_wei: int
    cost_wei: int
    profit_wei: int | None


def next_state(state: State, event: Event) -> State:
    """The state of a position after the event. Raises IllegalMove."""
    new_state = LIFE.get((state, event))
    if new_state is None:
        raise IllegalMove(f"a position that is {state} cannot be {event}")
    return new_state


# --- trades ----------------------------------------------------------------------------------------


def buy(
    account: PracticePurse, position: PracticePosition, eth_wei: int, token_raw: int
) -> tuple[PracticePurse, PracticePosition, PracticeTrade]:
    """``eth_wei`` paid for ``token_raw``. Raises IllegalMove."""
    if not 0 < eth_wei <= account.eth_wei:
        raise IllegalMove(f"{eth_wei} wei cannot be paid out of {account.eth_wei}")
    if token_raw <= 0:
        raise IllegalMove("a buy brings something")
    state = next_state(position.state, "bought")
    return (
        replace(account, eth_wei=account.eth_wei - eth_wei),
        replace(
            position,
            state=state,
            held_raw=position.held_raw + token_raw,
            cost_wei=position.cost_wei + eth_wei,
        ),
        PracticeTrade("buy", position.token, token_raw, eth_wei, eth_wei, None),
    )


def sell(
    account: PracticePurse, position: PracticePosition, token_raw: int, eth_wei: int
) -> tuple[PracticePurse, PracticePosition, PracticeTrade]:
    """``token_raw`` of it sold for ``eth_wei``. A part takes its share of the cost, rounded down, and the
    last part the rest. Raises IllegalMove."""
    if not 0 < token_raw <= position.held_raw:
        raise IllegalMove(f"{token_raw} cannot be sold of {position.held_raw}")
    if eth_wei < 0:
        raise IllegalMove("a sell takes nothing")
    is_all = token_raw == position.held_raw
    state = next_state(position.state, "sold_all" if is_all else "sold_part")
    cost_wei = position.cost_wei * token_raw // position.held_raw
    return (
        replace(account, eth_wei=account.eth_wei + eth_wei),
        PracticePosition(
            position.token, state, position.held_raw - token_raw, position.cost_wei - cost_wei, is_stuck=False
        ),
        PracticeTrade("sell", position.token, token_raw, eth_wei, cost_wei, eth_wei - cost_wei),
    )


def set_apart(account: PracticePurse, trade: PracticeTrade) -> PracticePurse:
    """The account after a sell that does not count for the league: its cost can be spent again, its gain is
    set apart. An account that moves the price of its own pool gains nothing to trade with."""
    gain_wei = max(0, trade.profit_wei or 0)
    return replace(account, eth_wei=account.eth_wei - gain_wei, apart_wei=account.apart_wei + gain_wei)


def write_off(position: PracticePosition) -> tuple[PracticePosition, PracticeTrade]:
    """Gives up all of the position for nothing. Raises IllegalMove."""
    state = next_state(position.state, "written_off")
    return (
        PracticePosition(position.token, state),
        PracticeTrade(
            "written_off", position.token, position.held_raw, 0, position.cost_wei, -position.cost_wei
        ),
    )


# --- weeks -----------------------------------------------------------------------------------------


def monday_s(now_s: int) -> int:
    """The start of the week of ``now_s``: Monday, 00:00 UTC."""
    return now_s - (now_s - _FIRST_MONDAY_S) % WEEK_S


def open_account(now_s: int) -> PracticePurse:
    """A new account."""
    return PracticePurse(START_WEI, START_WEI, monday_s(now_s))


@dataclass(frozen=True, slots=True)
class MondayTurn:
    """An account after a Monday. ``lost``: the positions that were written off; ``trades``: the ledger lines
    of these and of the gift."""

    account: PracticePurse
    lost: tuple[PracticePosition, ...]
    trades: tuple[PracticeTrade, ...]


def turn_week(account: PracticePurse, positions: Iterable[PracticePosition], now_s: int) -> MondayTurn:
    """Applies the last Monday, if it was not applied yet. ``positions``: all open ones. Writes off what could
    not be sold; an account with less than the smallest trade and no holdings gets a gift. Of several missed
    Mondays only one can have given anything: a gift is more than the smallest trade."""
    week_s = monday_s(now_s)
    if week_s <= account.week_s:
        return MondayTurn(account, (), ())
    open_positions = list(positions)
    lost = tuple(position for position in open_positions if position.is_stuck)
    trades = [write_off(position)[1] for position in lost]
    account = replace(account, week_s=week_s)
    if account.eth_wei < MIN_WEI and len(lost) == len(open_positions):
        account = replace(account, eth_wei=account.eth_wei + GIFT_WEI, given_wei=account.given_wei + GIFT_WEI)
        trades.append(PracticeTrade("gift", None, 0, GIFT_WEI, 0, None))
    return MondayTurn(account, lost, tuple(trades))


# --- prices ----------------------------------------------------------------------------------------


def part_of(whole: int, share: int, of: int) -> int:
    """``share`` of ``of`` parts of ``whole``, rounded up: what is paid."""
    return -(-whole * share // of)


# --- the league ------------------------------------------------------------------------------------

MIN_SELLS = 3
"""The fewest counted sells of an entry; of one position or of several."""

Who = Literal["all", "agents", "people"]
"""The accounts on a board; people are all accounts without an agent tag."""

NO_INDEX = "this service does not index the chain, so it does not know who bought the token"
NOT_KNOWN = "we do not know who bought the token"
NO_BEGINNING = "we do not know when the token began"
YOUNG = "the token is younger than a day"
FEW = "as far as we know, fewer than twenty people bought the token"
ELSEWHERE = "its pool is not of the token's launch, and has not been where it trades most for at least a day"
KIN = "your wallet is linked to the token's deployer"
NO_TIME = "we could not find out in time who bought the token"
"""Reasons why a sell does not count."""
