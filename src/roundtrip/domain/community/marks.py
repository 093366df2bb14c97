"""Names and marks that accounts give wallets, and which of them everybody is told.

A name or a mark is public that three people gave. Accounts cost a wallet and a signature, so they are counted
as people are everywhere here (``crowd.py``): accounts whose wallets one wallet paid are one. An account
counts once it is seven days old and its wallet has traded, and never for a wallet that may be its own.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from roundtrip.domain.base.types import Address
from roundtrip.domain.market.fairness import WalletOrigins

Mark = Literal["good", "bad", "scam"]
MARKS: tuple[Mark, ...] = ("good", "bad", "scam")
PEOPLE = 3
OLD = timedelta(days=7)
"""So old is an account that counts."""
MOST_MARKS = 500
"""Of one account."""
MOST_NAME = 24


def name_key(name: str) -> str:
    """A name as names are compared: without capitals and spaces."""
    return "".join(name.split()).casefold()


@dataclass(frozen=True, slots=True)
class WalletMark:
    """What an account of age, whose wallet has traded, said of a wallet. ``wallet``, ``by``: the wallets; of
    the index, where it knows them, what it knows stands in ``Purses``."""

    wallet: Address
    by: Address
    name: str | None
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class MarkCount:
    """A name or a mark, and how many people gave it."""

    what: str
    people: int


@dataclass(frozen=True, slots=True)
class Public:
    """What is said of a wallet by enough people: names and marks, what most said first."""

    wallet: Address
    names: tuple[MarkCount, ...]
    marks: tuple[MarkCount, ...]

    @property
    def people(self) -> int:
        """How many gave what most gave."""
        return max(said.people for said in (*self.names, *self.marks))


def public(given: Iterable[WalletMark], purses: WalletOrigins[Address], at_s: int) -> list[Public]:
    """What everybody is told, by the chain's time ``at_s``: what most people said first."""
    of_wallet: dict[Address, list[WalletMark]] = {}
    for one in given:
        if not purses.is_kin(one.by, one.wallet):
            of_wallet.setdefault(one.wallet, []).append(one)
    found = []
    for wallet, own in of_wallet.items():
        names = _count_people(own, lambda one: None if one.name is None else name_key(one.name), purses, at_s)
        shown = tuple(MarkCount(_usual_spelling(own, key), people) for key, people in names)
        marks = tuple(
            MarkCount(mark, people) for mark, people in _count_people(own, lambda one: one.mark, purses, at_s)
        )
        if shown or marks:
            found.append(Public(wallet, shown, marks))
    return sorted(found, key=lambda one: (-one.people, one.wallet))


def _count_people(
    given: list[WalletMark],
    what: Callable[[WalletMark], str | None],
    purses: WalletOrigins[Address],
    at_s: int,
) -> list[tuple[str, int]]:
    people: dict[str, set[Address | None]] = {}
    for one in given:
        said = what(one)
        if said is not None:
            people.setdefault(said, set()).add(purses.purse(one.by, at_s))
    enough = [(said, len(who)) for said, who in people.items() if len(who) >= PEOPLE]
    return sorted(enough, key=lambda one: (-one[1], one[0]))


def _usual_spelling(given: list[WalletMark], key: str) -> str:
    """A name as most wrote it."""
    written = Counter(one.name for one in given if one.name is not None and name_key(one.name) == key)
    return min(written, key=lambda name: (-written[name], name))
