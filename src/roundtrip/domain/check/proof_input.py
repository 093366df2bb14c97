"""The inputs of a check that its evidence does not hold: kept to repeat the check."""

from dataclasses import dataclass
from typing import ClassVar

from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import Address, HexBytes
from roundtrip.domain.base.venue import OtherPool, Venue

from .evidence import DeployerRecord


@dataclass(frozen=True, slots=True)
class IndexInputs:
    """The index's facts about a token. ``holders``: wallets that bought more of it than they sold.
    ``deployer``: the account that launched it; None: not known. ``record``: the results of the deployer's
    launches. ``unread``: reading the holders failed."""

    wire: ClassVar[str] = "Indexed"

    holders: tuple[Address, ...] = ()
    deployer: Address | None = None
    record: DeployerRecord | None = None
    unread: bool = False


NOTHING = IndexInputs()
"""For no index, or an index that does not know the token."""


MAIN_WALLET = -1
"""The number of a check's main wallet among those that are recalled."""


@dataclass(frozen=True, slots=True)
class RecalledWallet:
    """A wallet that met a refusal or a loss on venue ``at`` in an earlier check: it trades in each check of
    the next day. ``seed``: of that check, as ``0x`` hex; ``number``: its place in that crowd, or
    ``MAIN_WALLET``. Its address is drawn from these, so nobody can choose it."""

    wire: ClassVar[str] = "Recalled"

    at: str
    seed: HexBytes
    number: int


@dataclass(frozen=True, slots=True)
class ProofInputs:
    """``seed``: 32 bytes as ``0x`` hex, from which the wallets were drawn. ``venues``: known and possible
    venues of the token, in the order of the reads, also those that do not exist. ``others``: the number of
    known pools that were not read, because no check trades for their quote; ``other_pools``: some of them.
    ``deep``: the check also tried owner calls, and sells of ``indexed.holders``. ``recalled``: the newest
    first."""

    wire: ClassVar[str] = "Begun"

    seed: str
    venues: tuple[Venue, ...]
    others: int
    deep: bool = False
    indexed: IndexInputs = NOTHING
    recalled: tuple[RecalledWallet, ...] = ()
    other_pools: tuple[OtherPool, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenIndex:
    """``newest_number``: the newest indexed block; 0: none. ``whole_to``: every pool up to that block is
    indexed; None: some may not be. ``pools``: the oldest places where the token trades for money, one more
    than a check takes where there are more. ``others``: pools whose quote is not money. ``recalled``: wallets
    that met a refusal or a loss, the newest first. ``caught``: real holders that could not sell in
    a check of the last day that found a trap, and in none since that they can."""

    newest_number: int = 0
    whole_to: int | None = None
    pools: tuple[PoolPlace, ...] = ()
    others: tuple[OtherPool, ...] = ()
    facts: IndexInputs = NOTHING
    recalled: tuple[RecalledWallet, ...] = ()
    caught: tuple[Address, ...] = ()
