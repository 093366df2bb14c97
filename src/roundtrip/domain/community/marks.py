"""Names and marks that accounts give wallets, and which of them are public.

A name or a mark is public once three people gave it. Accounts cost a wallet and a signature, so they are
counted as people (``domain/market/fairness.py``): accounts whose wallets one wallet paid are one. An account
counts once it is seven days old and its wallet has traded, and never for a wallet that may be its own.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from roundtrip.domain.base.types import Address

Mark = Literal["good", "bad", "scam"]
MARKS: tuple[Mark, ...] = ("good", "bad", "scam")
PEOPLE = 3
OLD = timedelta(days=7)
"""The age from which an account counts."""
MAX_MARKS = 500
"""Of one account."""
MAX_NAME = 24


def name_key(name: str) -> str:
    """A name as names are compared: without case and spaces."""
    return "".join(name.split()).casefold()


@dataclass(frozen=True, slots=True)
class MarkCount:
    """A name or a mark, and how many people gave it."""

    what: str
    people: int


@dataclass(frozen=True, slots=True)
class PublicMarks:
    """Names and marks of a wallet that enough people gave, the most frequent first."""

    wallet: Address
    names: tuple[MarkCount, ...]
    marks: tuple[MarkCount, ...]

    @property
    def people(self) -> int:
        """How many people gave the most frequent one."""
        return max(count.people for count in (*self.names, *self.marks))
