"""Which rules and follows a happening is about, found without looking at the others."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from roundtrip.domain.base.types import Address

from .rules import FOLLOWED_VERBS, Happening, Over, Rule, Unit, Verb

_id = attrgetter("id")
_Kind = Literal["rule", "follow", "bag_guard"]


@dataclass(frozen=True, slots=True)
class AlertSource:
    """A rule, a follow, or that the account's wallet holds the token: then ``id`` is ``bag.source_of``.
    ``from_number``: happenings of later blocks count. ``name``: of a follow, as the account calls the wallet;
    of a rule its canonical text."""

    kind: _Kind
    id: int
    account_id: int
    name: str
    from_number: int


_A_FOLLOWER = 4
"""To look up a follower's rules takes as long as going through so many."""
_Ranked = tuple[int, int, AlertSource]
"""By threshold, then by id."""


class _Bucket:
    """Rules that differ by no more than their thresholds."""

    __slots__ = ("plain", "ranked")

    def __init__(self) -> None:
        self.plain: dict[int, AlertSource] = {}
        self.ranked: dict[Unit, list[_Ranked]] = {}

    def add(self, source: AlertSource, over: Over | None) -> None:
        if over is None:
            self.plain[source.id] = source
        else:
            insort(self.ranked.setdefault(over.unit, []), (over.raw, source.id, source))

    def remove(self, source_id: int, over: Over | None) -> None:
        if over is None:
            del self.plain[source_id]
            return
        ranked = self.ranked[over.unit]
        del ranked[bisect_left(ranked, (over.raw, source_id))]
        if not ranked:
            del self.ranked[over.unit]

    def empty(self) -> bool:
        return not self.plain and not self.ranked

    def rules_passed(self, happening: Happening) -> Iterator[tuple[list[_Ranked], int]]:
        """Of each unit the rules, and how many of them from the front it is about."""
        for unit, ranked in self.ranked.items():
            beyond = happening.beyond(unit)
            if beyond is not None:
                # A tuple is less than a longer one that it begins: those at ``beyond`` itself stay out.
                yield ranked, bisect_left(ranked, (beyond,))

    def count(self, happening: Happening) -> int:
        """How many it is about, without touching them."""
        return len(self.plain) + sum(count for _, count in self.rules_passed(happening))

    def of(self, happening: Happening) -> list[AlertSource]:
        """Those that it is about."""
        found = list(self.plain.values())
        for ranked, count in self.rules_passed(happening):
            found += [source for _, _, source in ranked[:count]]
        return found


_Group = Address | int | Literal["any", "follow"]
"""By whom: that wallet, who an account follows (its number), anybody, who anybody follows."""
_Key = tuple[Verb, _Group, Address | None]
"""What is done, by whom, and with which token; None: with any."""


class RuleIndex:
    """Every live rule and follow. A happening costs what it matches."""

    def __init__(self) -> None:
        self._buckets: dict[_Key, _Bucket] = {}
        self._rules: dict[int, tuple[tuple[_Key, ...], Over | None]] = {}
        self._follows: dict[int, tuple[Address, int]] = {}
        self._followers: dict[Address, dict[int, AlertSource]] = {}

    def add_rule(self, source: AlertSource, rule: Rule, wallet: Address | None) -> None:
        """``wallet``: who is meant, of ``wallet``, ``deployer`` and ``creator``; None: nobody knows, and it
        is about nothing. Added again: replaced."""
        self.remove("rule", source.id)
        groups: tuple[_Group, ...]
        if rule.who.kind == "any":
            groups = ("any",)
        elif rule.who.kind == "follow":
            # Twice, to be found from whichever side has fewer: see _of_followers.
            groups = ("follow", source.account_id)
        else:
            groups = () if wallet is None else (wallet,)
        keys = tuple((rule.verb, group, rule.token) for group in groups)
        self._rules[source.id] = keys, rule.over
        for key in keys:
            self._buckets.setdefault(key, _Bucket()).add(source, rule.over)

    def add_follow(self, source: AlertSource, wallet: Address) -> None:
        """The account follows the wallet: for that alone, and for its rules about ``follow``. An account
        follows a wallet once: added again, under whatever id, it is replaced."""
        self.remove("follow", source.id)
        followers = self._followers.setdefault(wallet, {})
        if (before := followers.get(source.account_id)) is not None:
            del self._follows[before.id]
        followers[source.account_id] = source
        self._follows[source.id] = wallet, source.account_id

    def remove(self, kind: _Kind, source_id: int) -> None:
        """It is not there any more; one that never was changes nothing."""
        if kind == "rule" and source_id in self._rules:
            keys, over = self._rules.pop(source_id)
            for key in keys:
                bucket = self._buckets[key]
                bucket.remove(source_id, over)
                if bucket.empty():
                    del self._buckets[key]
        elif kind == "follow" and source_id in self._follows:
            wallet, account_id = self._follows.pop(source_id)
            followers = self._followers[wallet]
            del followers[account_id]
            if not followers:
                del self._followers[wallet]

    def matching(self, happening: Happening) -> list[AlertSource]:
        """Those that it is to be told to, rules first, each kind by id. A rule about ``follow`` counts for a
        wallet from where both the rule and the follow count."""
        verb, wallet, number = happening.verb, happening.wallet, happening.spot.block_number
        followers = self._followers.get(wallet, {})
        rules: list[AlertSource] = []
        for token in (None, happening.token):
            for group in ("any", wallet):
                if (bucket := self._buckets.get((verb, group, token))) is not None:
                    rules += bucket.of(happening)
            if followers:
                rules += self._of_followers(followers, token, happening)
        told = [rule for rule in rules if rule.from_number < number]
        told.sort(key=_id)
        if verb in FOLLOWED_VERBS:
            follows = [follow for follow in followers.values() if follow.from_number < number]
            told += sorted(follows, key=_id)
        return told

    def _of_followers(
        self, followers: Mapping[int, AlertSource], token: Address | None, happening: Happening
    ) -> list[AlertSource]:
        """Rules about ``follow`` of those who follow the wallet. Of those who follow it, and of the rules
        that it is about if they do, the fewer are gone through."""
        verb, number = happening.verb, happening.spot.block_number
        everybodys = self._buckets.get((verb, "follow", token))
        if everybodys is None:
            return []
        if everybodys.count(happening) < len(followers) * _A_FOLLOWER:
            return [
                rule
                for rule in everybodys.of(happening)
                if (follow := followers.get(rule.account_id)) is not None and follow.from_number < number
            ]
        found: list[AlertSource] = []
        for account_id, follow in followers.items():
            bucket = self._buckets.get((verb, account_id, token))
            if bucket is not None and follow.from_number < number:
                found += bucket.of(happening)
        return found
