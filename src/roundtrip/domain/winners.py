"""Who won: the most profit closed in a span of time, of closings that nobody can have made up for himself.

A closing counts where its token is fair, and its wallet stands apart from the token's deployer. A board of
winners is advice on whom to follow, so whatever a deployer could arrange alone counts for nothing:

- A young token: its first day is the deployer's own doing.
- A crowd out of one purse: buyers are counted by who funded them. Whom an exchange funded, or nobody that is
  known, counts for himself only if he was there a day before the token. All others of one exchange count as
  one, since anybody can pay 501 wallets; and so do all others whom nobody is known to have funded, since a
  contract can pay twenty fresh wallets without a trace.
- The deployer, whoever paid him, whomever he paid, and whoever shares his funder.

``store/winners.py`` says the same in SQL; tests hold both against each other.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from .events import Spot
from .types import Address

SPANS: MappingProxyType[str, int | None] = MappingProxyType(
    {"24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400, "all": None}
)
"""Seconds that each board looks back; None: to the beginning."""
MOST_WINNERS = 100
"""Ranks of a board that are kept."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """What makes a token fair. ``young_s``: so old it must be, and so long before it a buyer without a known
    funder must have been there. ``least_buyers``: who share no funder. ``most_funded``: who was the first to
    pay more wallets is an exchange, which says nothing of whose they are."""

    young_s: int = 86_400
    least_buyers: int = 20
    most_funded: int = 500


FAIRNESS = Fairness()


class Origin(NamedTuple):
    """When a wallet was first met, in seconds since 1970, and who first sent it eth; None: not known."""

    first_s: int
    funder: Address | None


class Begun(NamedTuple):
    """When a token was launched, or had its first pool with money, and who launched it; None: not known."""

    at_s: int
    deployer: Address | None


class Closed(NamedTuple):
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


class Winner(NamedTuple):
    """One rank of a board. ``won``: closings with a profit. ``best``: the one with the most."""

    wallet: Address
    profit_wei: int
    spent_wei: int
    closed: int
    won: int
    best: Closed


@dataclass(frozen=True, slots=True)
class Wallets:
    """What is known of wallets. Who stands in no origin was never met: neither age nor funder are known.
    ``funded``: how many wallets each funder was the first to pay."""

    origins: Mapping[Address, Origin]
    funded: Mapping[Address, int]
    fairness: Fairness = field(default=FAIRNESS)

    def funder(self, wallet: Address | None) -> Address | None:
        """Who first sent it eth; None: not known."""
        origin = None if wallet is None else self.origins.get(wallet)
        return None if origin is None else origin.funder

    def is_exchange(self, funder: Address) -> bool:
        """Whether what it funded is anybody's."""
        return self.funded.get(funder, 0) > self.fairness.most_funded

    def is_kin(self, wallet: Address, deployer: Address | None) -> bool:
        """Whether the wallet is the deployer, or may well be. An exchange makes nobody kin by funding two; a
        deployer who pays crowds is none."""
        if deployer is None:
            return False
        own, his = self.funder(wallet), self.funder(deployer)
        if wallet in (deployer, his) or own == deployer:
            return True
        return own is not None and own == his and not self.is_exchange(own)

    def purse(self, buyer: Address, born_s: int) -> Address | None:
        """By what buyers of a token that began at ``born_s`` are told apart; None: of those who may all be
        one."""
        funder, origin = self.funder(buyer), self.origins.get(buyer)
        was_there = origin is not None and origin.first_s <= born_s - self.fairness.young_s
        if was_there and (funder is None or self.is_exchange(funder)):
            return buyer
        return funder

    def is_fair(self, token: Begun, buyers: Iterable[Address], at_s: int) -> bool:
        """Whether a token is fair at that time. Once found, it is kept: that funders of its buyers become
        known later takes nothing back."""
        if token.at_s > at_s - self.fairness.young_s:
            return False
        purses = {self.purse(one, token.at_s) for one in buyers if not self.is_kin(one, token.deployer)}
        return len(purses) >= self.fairness.least_buyers


def board(closings: Iterable[Closed], counts: Callable[[Closed], bool]) -> list[Winner]:
    """The winners among the closings of a span that count: the most profit first; of equal profit the one
    with fewer closings, then the lower address. Of equal closings the earliest is the best."""
    of_wallet: dict[Address, list[Closed]] = {}
    for closed in closings:
        if counts(closed):
            of_wallet.setdefault(closed.wallet, []).append(closed)
    winners = [_winner(wallet, own) for wallet, own in of_wallet.items()]
    winners = [winner for winner in winners if winner.profit_wei > 0]
    winners.sort(key=lambda winner: (-winner.profit_wei, winner.closed, winner.wallet))
    return winners[:MOST_WINNERS]


def _winner(wallet: Address, own: list[Closed]) -> Winner:
    return Winner(
        wallet,
        profit_wei=sum(one.profit_wei for one in own),
        spent_wei=sum(one.spent_wei for one in own),
        closed=len(own),
        won=sum(one.profit_wei > 0 for one in own),
        best=min(own, key=lambda one: (-one.profit_wei, one.spot)),
    )
