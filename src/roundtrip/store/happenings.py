"""What happened, as rules see it: the same out of the index while it happens and in a replay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import asyncpg

from roundtrip.domain.rules import Happening, Watch
from roundtrip.venues.base import Contracts


class Place(NamedTuple):
    """A block that the index has, with its time in seconds since 1970."""

    number: int
    at_s: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """How often a rule would have hit; ``at_least``: there are more that were not counted. ``last``: the
    newest first."""

    hits: int
    at_least: bool
    last: Sequence[Happening]


async def happened(
    connection: asyncpg.Connection, contracts: Contracts, after: Place, to: Place
) -> list[Happening]:
    """Everything a rule may be about in the blocks after ``after`` up to ``to``, in the chain's order."""
    raise NotImplementedError


async def replayed(
    connection: asyncpg.Connection, contracts: Contracts, watch: Watch, after_s: int, to: Place
) -> Replayed:
    """What ``happened`` would have given for ``watch`` since, counted up to MOST_COUNTED."""
    raise NotImplementedError
