"""How many people may stand behind a crowd of wallets: wallets out of one purse are one.

Wallets cost nothing, so their number says nothing. What somebody cannot make up in a moment is age. A wallet
is old that was met a day before what is looked at began. Then:

- An old wallet whose funder nobody knows, or whose funder is an exchange, stands for itself.
- Any other whose funder is old belongs to that funder.
- All the rest belong to one purse: young wallets of young funders, and young ones that a bridge or a
  contract paid. Twenty fresh funders that each pay one fresh wallet are no crowd.

Who waits a day with wallets prepared can still make a crowd. ``store/boards/winners.py`` says the same in
SQL; tests compare both.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

W = TypeVar("W", bound=Hashable)
"""How wallets are named: by address, or by their number in the index."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """``young_s``: so long before it began an old wallet was there. ``most_funded``: who was the first to pay
    more wallets is an exchange, which says nothing of whose they are. ``least_buyers``: of so many purses a
    token is fair to those who win with it; it is so old, too."""

    young_s: int = 86_400
    least_buyers: int = 20
    most_funded: int = 500


FAIRNESS = Fairness()


class WalletOrigin(NamedTuple, Generic[W]):
    """When a wallet was first met, in seconds since 1970, and who sent it its first eth, and when; None: not
    known."""

    first_s: int
    funder: W | None
    funded_s: int | None = None


@dataclass(frozen=True, slots=True)
class WalletOrigins(Generic[W]):
    """What is known of wallets. Who stands in no origin was never met: neither age nor funder are known.
    ``funded``: how many wallets each funder was the first to pay, as far as it matters."""

    origins: Mapping[W, WalletOrigin[W]]
    funded: Mapping[W, int]
    fairness: Fairness = field(default=FAIRNESS)

    def funder(self, wallet: W | None) -> W | None:
        """Who first sent it eth; None: not known."""
        origin = None if wallet is None else self.origins.get(wallet)
        return None if origin is None else origin.funder

    def is_exchange(self, funder: W) -> bool:
        """Whether what it funded is anybody's."""
        return self.funded.get(funder, 0) > self.fairness.most_funded

    def is_old(self, wallet: W, began_s: int) -> bool:
        """Whether it was there long enough before."""
        origin = self.origins.get(wallet)
        return origin is not None and origin.first_s <= began_s - self.fairness.young_s

    def purse(self, buyer: W, began_s: int) -> W | None:
        """By what buyers are told apart of something that began at ``began_s``; None: of those who may all be
        one."""
        funder = self.funder(buyer)
        if self.is_old(buyer, began_s) and (funder is None or self.is_exchange(funder)):
            return buyer
        return funder if funder is not None and self.is_old(funder, began_s) else None

    def is_shared(self, purse: W | None) -> bool:
        """Whether a purse is of many who may have nothing in common: all young customers of an exchange, or
        all whom nobody old is known to have paid."""
        return purse is None or self.is_exchange(purse)

    def is_kin(self, wallet: W, other: W | None) -> bool:
        """Whether two wallets are one's, or may well be: the same, one funded the other, or one funded both.
        An exchange makes two kin only by funding both within a day: anybody becomes one for 501 payments. Who
        pays crowds himself is none."""
        if other is None:
            return False
        own, his = self.funder(wallet), self.funder(other)
        if wallet in (other, his) or own == other:
            return True
        if own is None or own != his:
            return False
        return not self.is_exchange(own) or self._funded_together(wallet, other)

    def _funded_together(self, *wallets: W) -> bool:
        times = [self.origins[wallet].funded_s for wallet in wallets]
        known = [at_s for at_s in times if at_s is not None]
        return len(known) == len(times) and max(known) - min(known) <= self.fairness.young_s
