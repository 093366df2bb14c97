"""The rules of ``domain/market/winners.py``, over facts in memory: what ``store/boards/winners.py`` computes
in SQL."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address
from roundtrip.domain.market.fairness import WalletOrigins
from roundtrip.domain.market.winners import MAX_WINNERS


class TokenStart(NamedTuple):
    """When a token was launched, or got its first pool with money, and who launched it; None: unknown."""

    at_s: int
    deployer: Address | None


class ClosedToken(NamedTuple):
    """A wallet sold out of a token: all it had paid since the round began, and the proceeds."""

    spot: Spot
    wallet: Address
    token: Address
    spent_wei: int
    got_wei: int

    @property
    def profit_wei(self) -> int:
        """Negative: a loss."""
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
    """What is known of winning wallets, and of the buyers of their tokens."""

    def is_fair(self, token: TokenStart, buyers: Iterable[Address], at_s: int) -> bool:
        """Whether a token is fair at that time. A positive result is stored for good: funders of its buyers
        that become known later do not revoke it."""
        if token.at_s > at_s - self.fairness.young_s:
            return False
        purses = {self.purse(buyer, token.at_s) for buyer in buyers if not self.is_kin(buyer, token.deployer)}
        return len(purses) >= self.fairness.least_buyers


def board(closings: Iterable[ClosedToken], counts: Callable[[ClosedToken], bool]) -> list[RankedWinner]:
    """The winners among the closings of a span that count: the most profit first; of equal profit the one
    with fewer closings, then the lower address. Of equal closings the earliest is the best."""
    by_wallet: dict[Address, list[ClosedToken]] = {}
    for closing in closings:
        if counts(closing):
            by_wallet.setdefault(closing.wallet, []).append(closing)
    winners = [_winner(wallet, own_closings) for wallet, own_closings in by_wallet.items()]
    winners = [winner for winner in winners if winner.profit_wei > 0]
    winners.sort(key=lambda winner: (-winner.profit_wei, winner.closed, winner.wallet))
    return winners[:MAX_WINNERS]


def _winner(wallet: Address, closings: list[ClosedToken]) -> RankedWinner:
    return RankedWinner(
        wallet,
        profit_wei=sum(closing.profit_wei for closing in closings),
        spent_wei=sum(closing.spent_wei for closing in closings),
        closed=len(closings),
        won=sum(closing.profit_wei > 0 for closing in closings),
        best=min(closings, key=lambda closing: (-closing.profit_wei, closing.spot)),
    )
