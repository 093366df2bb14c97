"""The practice league: what each week's sells came to. Each function takes the caller's connection and ends
no transaction."""

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from roundtrip.domain.mite import Mite
from roundtrip.domain.types import Address, BlockRef


@dataclass(frozen=True, slots=True)
class Counted:
    """Whether a sell counts for the league; ``why_not``: a sentence part for people, where it does not."""

    counts: bool
    why_not: str | None = None


async def count_sell(
    connection: asyncpg.Connection,
    mite: Mite,
    token: Address,
    profit_wei: int,
    block: BlockRef,
    now: datetime,
) -> Counted:
    """Adds a practice sell, priced at ``block``, to the mite's week where it counts; in the transaction that
    books it."""
    raise NotImplementedError
