"""What a check began with, as far as its evidence does not tell: kept so that it can be made again."""

from dataclasses import dataclass
from typing import ClassVar

from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import Venue

from .evidence import DeployerRecord


@dataclass(frozen=True, slots=True)
class IndexInputs:
    """What the index told of a token. ``holders``: wallets that bought more of it than they sold.
    ``deployer``: who launched it; None: not known. ``record``: how his launches went. ``unread``: who holds
    it was to be read, and could not be."""

    wire: ClassVar[str] = "Indexed"

    holders: tuple[Address, ...] = ()
    deployer: Address | None = None
    record: DeployerRecord | None = None
    unread: bool = False


NOTHING = IndexInputs()
"""There is no index, or it does not know the token."""


@dataclass(frozen=True, slots=True)
class ProofInputs:
    """``seed``: 32 bytes as ``0x`` hex, which the wallets were drawn from. ``venues``: where the token was
    known to trade, or might, in the order they were asked; also those that were not there. ``others``: pools
    that are known and were not asked, because their money is nobody's money. ``deep``: it was also asked what
    could change it, and sold as ``indexed.holders``."""

    wire: ClassVar[str] = "Begun"

    seed: str
    venues: tuple[Venue, ...]
    others: int
    deep: bool = False
    indexed: IndexInputs = NOTHING
