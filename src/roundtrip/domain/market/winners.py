"""Who won: the most profit closed in a span of time, of closings that nobody can have made up for himself.

A closing counts where its token is fair, and its wallet stands apart from the token's deployer. A board of
winners is advice on whom to follow, so whatever a deployer could arrange alone counts for nothing:

- A young token: its first day is the deployer's own doing.
- A crowd out of one purse: buyers are counted as ``domain/market/fairness.py`` says, by what was there a day
  before the token began.
- The deployer, whoever paid him, whomever he paid, and whoever shares his funder; of an exchange's customers
  those that it paid within a day of him.

``store/boards/winners.py`` says the same in SQL; tests hold both against each other.
"""

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address

from .fairness import WalletOrigins

SPANS: MappingProxyType[str, int | None] = MappingProxyType(
    {"24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400, "all": None}
)
"""Seconds that each board looks back; None: to the beginning."""
MOST_WINNERS = 100
"""Ranks of a board that are kept."""


class TokenStart(NamedTuple):
    """When a token was launched, or had its first pool with money, and who launched it; None: not known."""

    at_s: int
    deployer: Address | None


class ClosedToken(NamedTuple):
    """A wallet sold out of a token: all it had paid since it began, and what that brought."""

    spot: Spot
    wallet: Address
    token: Address
    spent_wei: int
    got_wei: int

    @property
    def profit_wei(self) -> int:
        """Below zero: a loss."""
        return self.got_wei - self.spent_wei


class RankedWinner(NamedTuple):
    """One rank of a board. ``won``: closings with a profit. ``best``: the one with the most."""

    wallet: Address
    profit_wei: int
    spent_wei: int
    closed: int
    won: int
    best: ClosedToken


class Wallets(WalletOrigins[Address]):
    """What is known of wallets that win, and of those they won from."""

    def is_fair(self, token: TokenStart, buyers: Iterable[Address], at_s: int) -> bool:
        """Whether a token is fair at that time. Once found, it is kept: that funders of its buyers become
        known later takes nothing back."""
        if token.at_s > at_s - self.fairness.young_s:
            return False
        purses = {self.purse(one, token.at_s) for one in buyers if not self.is_kin(one, token.deployer)}
        return len(purses) >= self.fairness.least_buyers


def board(closings: Iterable[ClosedToken], counts: Callable[[ClosedToken], bool]) -> list[RankedWinner]:
    """The winners among the closings of a span that count: the most profit first; of equal profit the one
    with fewer closings, then the lower address. Of equal closings the earliest is the best."""
    of_wallet: dict[Address, list[ClosedToken]] = {}
    for closed in closings:
        if counts(closed):
            of_wallet.setdefault(closed.wallet, []).append(closed)
    winners = [_winner(wallet, own) for wallet, own in of_wallet.items()]
    winners = [winner for winner in winners if winner.profit_wei > 0]
    winners.sort(key=lambda winner: (-winner.profit_wei, winner.closed, winner.wallet))
    return winners[:MOST_WINNERS]


def _winner(wallet: Address, own: list[ClosedToken]) -> RankedWinner:
    return RankedWinner(
        wallet,
        profit_wei=sum(one.profit_wei for one in own),
        spent_wei=sum(one.spent_wei for one in own),
        closed=len(own),
        won=sum(one.profit_wei > 0 for one in own),
        best=min(own, key=lambda one: (-one.profit_wei, one.spot)),
    )
