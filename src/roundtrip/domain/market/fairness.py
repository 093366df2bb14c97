"""How many people a crowd of wallets may be: wallets from one purse count as one.

Wallets cost nothing, so their number proves nothing. Age cannot be made up in a moment. A wallet is old if it
was first seen a day before the period or token in question began. Then:

- An old wallet whose funder is unknown or an exchange counts as itself.
- Any other wallet with an old funder belongs to that funder.
- All others belong to one purse: young wallets of young funders, and young wallets paid by a bridge or a
  contract. Twenty fresh funders that each pay one fresh wallet are no crowd.

An attacker who prepares wallets a day ahead can still fake a crowd. ``store/boards/winners.py`` computes the
same in SQL; tests compare both.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

W = TypeVar("W", bound=Hashable)
"""The key of a wallet: its address, or its number in the index."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """``young_s``: the least age of an old wallet at the start. ``most_funded``: a funder that was the first
    to pay more wallets is an exchange, which says nothing about their owners. ``least_buyers``: the least
    number of purses for a token that is fair to its winners; it has to be ``young_s`` old, too."""

    young_s: int = 86_400
    least_buyers: int = 20
    most_funded: int = 500


FAIRNESS = Fairness()


class WalletOrigin(NamedTuple, Generic[W]):
    """When a wallet was first seen, in seconds since 1970, who sent it its first eth, and when; None:
    unknown."""

    first_s: int
    funder: W | None
    funded_s: int | None = None


@dataclass(frozen=True, slots=True)
class WalletOrigins(Generic[W]):
    """What is known of wallets. A wallet without an origin was never seen: its age and funder are unknown.
    ``funded``: how many wallets each funder was the first to pay, as far as it matters."""

    origins: Mapping[W, WalletOrigin[W]]
    funded: Mapping[W, int]
    fairness: Fairness = field(default=FAIRNESS)

    def funder(self, wallet: W | None) -> W | None:
        """The sender of its first eth; None: unknown."""
        origin = None if wallet is None else self.origins.get(wallet)
        return None if origin is None else origin.funder

    def is_exchange(self, funder: W) -> bool:
        """Whether it was the first to pay so many wallets that they may be anyone's."""
        return self.funded.get(funder, 0) > self.fairness.most_funded

    def is_old(self, wallet: W, began_s: int) -> bool:
        """Whether the wallet existed long enough before ``began_s``."""
        origin = self.origins.get(wallet)
        return origin is not None and origin.first_s <= began_s - self.fairness.young_s

    def purse(self, buyer: W, began_s: int) -> W | None:
        """What tells apart the buyers of something that began at ``began_s``; None: the purse of all who may
        be one person."""
        funder = self.funder(buyer)
        if self.is_old(buyer, began_s) and (funder is None or self.is_exchange(funder)):
            return buyer
        return funder if funder is not None and self.is_old(funder, began_s) else None

    def is_shared(self, purse: W | None) -> bool:
        """Whether a purse may belong to many unrelated people: all young customers of an exchange, or all
        wallets without a known old payer."""
        return purse is None or self.is_exchange(purse)

    def is_kin(self, wallet: W, other: W | None) -> bool:
        """Whether two wallets belong, or may well belong, to one person: the same wallet, one funded the
        other, or one funder of both. An exchange makes two wallets kin only by funding both within a day,
        since 501 payments make any wallet an exchange. The two wallets themselves never count as
        exchanges."""
        if other is None:
            return False
        funder, other_funder = self.funder(wallet), self.funder(other)
        if wallet in (other, other_funder) or funder == other:
            return True
        if funder is None or funder != other_funder:
            return False
        return not self.is_exchange(funder) or self._funded_together(wallet, other)

    def _funded_together(self, *wallets: W) -> bool:
        times = [self.origins[wallet].funded_s for wallet in wallets]
        known = [at_s for at_s in times if at_s is not None]
        return len(known) == len(times) and max(known) - min(known) <= self.fairness.young_s
