"""The boards of the practice league in Python, which tests compare with those of the database."""

from collections.abc import Iterable
from typing import NamedTuple

from roundtrip.domain.practice.practice import MIN_SELLS, Who


class CountedSell(NamedTuple):
    """A sell that counts. ``profit_wei`` negative: a loss."""

    account_id: int
    token: str
    profit_wei: int
    at_s: int


class LeagueWeek(NamedTuple):
    """An account's week. ``won``: sells with a profit. ``best_token``: of the sell with the most profit; of
    equal ones the first."""

    account_id: int
    is_agent: bool
    profit_wei: int
    sells: int
    won: int
    best_token: str
    best_profit_wei: int
    last_s: int

    @property
    def is_ranked(self) -> bool:
        """Whether the entry is on the board."""
        return self.sells >= MIN_SELLS


def build_entry(sells: Iterable[CountedSell], *, is_agent: bool) -> LeagueWeek:
    """The entry of one account's sells in one week, in order; at least one."""
    all_sells = list(sells)
    best = max(all_sells, key=lambda sell: sell.profit_wei)
    return LeagueWeek(
        account_id=best.account_id,
        is_agent=is_agent,
        profit_wei=sum(sell.profit_wei for sell in all_sells),
        sells=len(all_sells),
        won=sum(sell.profit_wei > 0 for sell in all_sells),
        best_token=best.token,
        best_profit_wei=best.profit_wei,
        last_s=max(sell.at_s for sell in all_sells),
    )


def filter_entries(entries: Iterable[LeagueWeek], who: Who) -> list[LeagueWeek]:
    """The entries that a board is of."""
    return [entry for entry in entries if who == "all" or entry.is_agent == (who == "agents")]


def board(entries: Iterable[LeagueWeek], who: Who) -> list[LeagueWeek]:
    """The board of a week: the most profit first; of equal profit fewer sells, then the earlier last sell,
    then the older account."""
    ranked = [entry for entry in filter_entries(entries, who) if entry.is_ranked]
    ranked.sort(key=lambda entry: (-entry.profit_wei, entry.sells, entry.last_s, entry.account_id))
    return ranked
