"""What tokens that somebody holds would bring if they were sold now: many of them in one trip to the node."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundtrip.chain.heads import Head
from roundtrip.chain.rpc import Meter
from roundtrip.chain.storage import BalanceSlot
from roundtrip.domain.evidence import Missing, Refused, Venue
from roundtrip.domain.types import Address

from .context import Context


@dataclass(frozen=True, slots=True)
class Holding:
    """``amount_raw`` of a token, to be sold whole. ``seller``: a wallet that really holds as much; None: a
    wallet of ours that is given them where ``slot`` says, which the token itself has to confirm; without a
    slot nothing can be found out. ``before_raw``: what the same seller sold of it just before, and what is
    asked for comes after it: so many sells bring no more than one."""

    token: Address
    amount_raw: int
    seller: Address | None = None
    slot: BalanceSlot | None = None
    before_raw: int = 0


@dataclass(frozen=True, slots=True)
class Worth:
    """What a sell of all of it brings its seller, in wei, and where it brings most."""

    wei: int
    venue: Venue


Valued = Worth | Refused | Missing
"""Refused: it cannot be sold for real, and why. Missing: it could not be found out."""


async def worth(ctx: Context, head: Head, holdings: Sequence[Holding], meter: Meter) -> list[Valued]:
    """Each holding's, at the block of ``head``, all in one trip. What the node does not answer is Missing."""
    raise NotImplementedError


async def slot_of(ctx: Context, head: Head, token: Address, meter: Meter) -> BalanceSlot | None:
    """Where the token keeps its balances; None: it is not known. Raises NodeFault."""
    raise NotImplementedError
