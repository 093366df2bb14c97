"""The practice league: who made the most profit with pretend eth in a week, by sells that count.

A sell counts where its token is fair and the seller stands apart from its deployer, as
``domain/market/winners.py`` says: what a deployer could arrange alone counts for nothing. Losses count as
gains do.
A sell counts where it was priced in a place that is not the seller's to make. Weeks are those of
``domain/practice/practice.py``, by our clock. ``store/practice/league.py`` says the same in SQL; tests
compare both.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

LEAST_SELLS = 3
"""So many sells that count make an entry; of one position or of several."""

Who = Literal["all", "agents", "people"]
"""Whose entries a board has: people are all that are not tagged as agents."""

NO_INDEX = "the chain is not followed here, so nobody can tell who bought the token"
NOT_KNOWN = "nothing is known of who bought the token"
NO_BEGINNING = "nobody can tell when the token began"
YOUNG = "the token is younger than a day"
FEW = "its buyers are not twenty people yet, as far as can be told"
ELSEWHERE = "its pool is neither of the token's launch nor, for a day at least, where it is traded most"
KIN = "your wallet is kin of its deployer"
NO_TIME = "who bought the token could not be found out in time"


class CountedSell(NamedTuple):
    """A sell that counts. ``profit_wei`` below zero: a loss."""

    account_id: int
    token: str
    profit_wei: int
    at_s: int


class LeagueWeek(NamedTuple):
    """An account's week. ``won``: sells with a profit. ``best_token``: of the sell with the most; of equal
    ones the first."""

    account_id: int
    is_agent: bool
    profit_wei: int
    sells: int
    won: int
    best_token: str
    best_profit_wei: int
    last_s: int

    @property
    def is_in(self) -> bool:
        """Whether it stands on the board."""
        return self.sells >= LEAST_SELLS


def entry(sells: Iterable[CountedSell], *, is_agent: bool) -> LeagueWeek:
    """What the sells of one account in one week come to, in order; at least one."""
    own = list(sells)
    best = max(own, key=lambda sell: sell.profit_wei)
    return LeagueWeek(
        account_id=best.account_id,
        is_agent=is_agent,
        profit_wei=sum(sell.profit_wei for sell in own),
        sells=len(own),
        won=sum(sell.profit_wei > 0 for sell in own),
        best_token=best.token,
        best_profit_wei=best.profit_wei,
        last_s=max(sell.at_s for sell in own),
    )


def among(entries: Iterable[LeagueWeek], who: Who) -> list[LeagueWeek]:
    """Those that a board is of."""
    return [one for one in entries if who == "all" or one.is_agent == (who == "agents")]


def board(entries: Iterable[LeagueWeek], who: Who) -> list[LeagueWeek]:
    """A week's: the most profit first; of equal profit fewer sells, then whose last sell was earlier, then
    the older account."""
    ranked = [one for one in among(entries, who) if one.is_in]
    ranked.sort(key=lambda one: (-one.profit_wei, one.sells, one.last_s, one.account_id))
    return ranked
