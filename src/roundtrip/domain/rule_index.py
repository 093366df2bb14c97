"""Which rules and follows a happening is about, found without looking at the others."""

from dataclasses import dataclass
from typing import Literal

from .rules import Happening, Rule
from .types import Address


@dataclass(frozen=True, slots=True)
class Source:
    """A rule or a follow. ``from_number``: happenings of later blocks count. ``name``: of a follow, as the
    mite calls the wallet; of a rule its canonical text."""

    kind: Literal["rule", "follow"]
    id: int
    mite_id: int
    name: str
    from_number: int


class RuleIndex:
    """Every live rule and follow. A happening costs what it matches."""

    def add_rule(self, source: Source, rule: Rule, wallet: Address | None) -> None:
        """``wallet``: who is meant, of ``wallet``, ``deployer`` and ``creator``. Added again: replaced."""
        raise NotImplementedError

    def add_follow(self, source: Source, wallet: Address) -> None:
        """The mite follows the wallet: for that alone, and for its rules about ``follow``."""
        raise NotImplementedError

    def remove(self, kind: Literal["rule", "follow"], source_id: int) -> None:
        """It is not there any more; one that never was changes nothing."""
        raise NotImplementedError

    def matching(self, happening: Happening) -> list[Source]:
        """Those that it is to be told to, rules first, each kind by id. A rule about ``follow`` counts for a
        wallet from where both the rule and the follow count."""
        raise NotImplementedError
