"""Public names and marks in Python, which tests compare with those that the database counts."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from roundtrip.domain.base.types import Address
from roundtrip.domain.community.marks import PEOPLE, Mark, MarkCount, PublicMarks, name_key
from roundtrip.domain.market.fairness import WalletOrigins


@dataclass(frozen=True, slots=True)
class WalletMark:
    """The mark and the name that an account gave a wallet. The account is old enough, and its wallet has
    traded. ``wallet``, ``by``: the marked wallet and the account's."""

    wallet: Address
    by: Address
    name: str | None
    mark: Mark | None


def public_marks(marks: Iterable[WalletMark], purses: WalletOrigins[Address], at_s: int) -> list[PublicMarks]:
    """The public names and marks by the chain's time ``at_s``, the most frequent first."""
    by_wallet: dict[Address, list[WalletMark]] = {}
    for mark in marks:
        if not purses.is_kin(mark.by, mark.wallet):
            by_wallet.setdefault(mark.wallet, []).append(mark)
    public = []
    for wallet, own_marks in by_wallet.items():
        by_key = _count_people(own_marks, _key_of_name, purses, at_s)
        by_mark = _count_people(own_marks, lambda given: given.mark, purses, at_s)
        if by_key or by_mark:
            names = tuple(MarkCount(_usual_spelling(own_marks, key), people) for key, people in by_key)
            public.append(PublicMarks(wallet, names, tuple(MarkCount(*counted) for counted in by_mark)))
    return sorted(public, key=lambda shown: (-shown.people, shown.wallet))


def _key_of_name(mark: WalletMark) -> str | None:
    return None if mark.name is None else name_key(mark.name)


def _count_people(
    marks: list[WalletMark],
    value_of: Callable[[WalletMark], str | None],
    purses: WalletOrigins[Address],
    at_s: int,
) -> list[tuple[str, int]]:
    people: dict[str, set[Address | None]] = {}
    for mark in marks:
        value = value_of(mark)
        if value is not None:
            people.setdefault(value, set()).add(purses.purse(mark.by, at_s))
    enough = [(value, len(givers)) for value, givers in people.items() if len(givers) >= PEOPLE]
    return sorted(enough, key=lambda count: (-count[1], count[0]))


def _usual_spelling(marks: list[WalletMark], key: str) -> str:
    """A name as most accounts spelled it."""
    spellings = Counter(mark.name for mark in marks if mark.name is not None and name_key(mark.name) == key)
    return min(spellings, key=lambda name: (-spellings[name], name))
