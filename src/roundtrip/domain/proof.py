"""What a check began with, as far as its evidence does not tell: kept so that it can be made again."""

from dataclasses import dataclass

from .evidence import Venue


@dataclass(frozen=True, slots=True)
class Begun:
    """``seed``: 32 bytes as ``0x`` hex, which the wallets were drawn from. ``venues``: where the token was
    known to trade, or might, in the order they were asked; also those that were not there. ``others``: pools
    that are known and were not asked, because their money is nobody's money. ``deep``: it was also asked what
    could change it."""

    seed: str
    venues: tuple[Venue, ...]
    others: int
    deep: bool = False
