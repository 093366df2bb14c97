"""Finds the rules and follows that match a happening, without scanning all of them."""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from roundtrip.domain.base.types import Address

from .rules import Happening, Over, Rule, Unit, Verb

_id = attrgetter("id")
_Kind = Literal["rule", "follow", "bag_guard"]


@dataclass(frozen=True, slots=True)
class AlertSource:
    """A rule, a follow, or an account's holding of the token; then ``id`` is ``bag_guard.guard_source_id``.
    ``from_number``: happenings of later blocks count. ``name``: of a follow, the account's name for the
    wallet; of a rule, its canonical text; of a holding, ``alerts.BAG``."""

    kind: _Kind
    id: int
    account_id: int
    name: str
    from_number: int


_FOLLOWER_COST = 4
_Ranked = tuple[int, int, AlertSource]
"""Sorted by threshold, then by id."""


class _Bucket:
    """Rules that differ only in their thresholds."""

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

    def is_empty(self) -> bool:
        return not self.plain and not self.ranked

    def rules_passed(self, happening: Happening) -> Iterator[tuple[list[_Ranked], int]]:
        """For each unit its rules, and how many of them, from the front, the happening exceeds."""
        for unit, ranked in self.ranked.items():
            magnitude = happening.magnitude(unit)
            if magnitude is not None:
                # A tuple sorts before a longer one that starts with it: rules at ``magnitude`` itself stay
                # out.
                yield ranked, bisect_left(ranked, (magnitude,))

    def count(self, happening: Happening) -> int:
        """How many rules match, without touching them."""
        return len(self.plain) + sum(count for _, count in self.rules_passed(happening))

    def matching(self, happening: Happening) -> list[AlertSource]:
        """The rules that match."""
        sources = list(self.plain.values())
        for ranked, count in self.rules_passed(happening):
            sources += [source for _, _, source in ranked[:count]]
        return sources


_Group = Address | int | Literal["any", "follow"]
"""The acting wallet; an account's number for the wallets that it follows; any wallet; any followed wallet."""
_Key = tuple[Verb, _Group, Address | None]
"""The verb, the group, and the token; None: any token."""


class RuleIndex:
    """Every live rule and follow. The cost of a happening grows with its matches only.

    ``follower_cost``: the cost of looking up a follower's rules, in scanned rules.
    """

    def __init__(self, follower_cost: int = _FOLLOWER_COST) -> None:
        self._follower_cost = follower_cost
        self._buckets: dict[_Key, _Bucket] = {}
        self._rules: dict[int, tuple[tuple[_Key, ...], Over | None]] = {}
        self._follows: dict[int, tuple[Address, int]] = {}
        self._followers: dict[Address, dict[int, AlertSource]] = {}

    def add_rule(self, source: AlertSource, rule: Rule, wallet: Address | None) -> None:
        """``wallet``: the wallet that ``wallet``, ``deployer`` or ``creator`` resolves to; None: unknown, so
        the rule matches nothing. A second call with the same id replaces the rule."""
        self.remove("rule", source.id)
        groups: tuple[_Group, ...]
        if rule.who.kind == "any":
            groups = ("any",)
        elif rule.who.kind == "follow":
            # Added twice, to be found from the side with fewer: see _match_follow_rules.
            groups = ("follow", source.account_id)
        else:
            groups = () if wallet is None else (wallet,)
        keys = tuple((rule.verb, group, rule.token) for group in groups)
        self._rules[source.id] = keys, rule.over
        for key in keys:
            self._buckets.setdefault(key, _Bucket()).add(source, rule.over)

    def add_follow(self, source: AlertSource, wallet: Address) -> None:
        """The account follows the wallet: for itself, and for its rules about ``follow``. An account follows
        a wallet once: a second call replaces the follow, under whatever id."""
        self.remove("follow", source.id)
        followers = self._followers.setdefault(wallet, {})
        if (replaced := followers.get(source.account_id)) is not None:
            del self._follows[replaced.id]
        followers[source.account_id] = source
        self._follows[source.id] = wallet, source.account_id

    def remove(self, kind: _Kind, source_id: int) -> None:
        """Removes a rule or a follow; does nothing where it does not exist."""
        if kind == "rule" and source_id in self._rules:
            keys, over = self._rules.pop(source_id)
            for key in keys:
                bucket = self._buckets[key]
                bucket.remove(source_id, over)
                if bucket.is_empty():
                    del self._buckets[key]
        elif kind == "follow" and source_id in self._follows:
            wallet, account_id = self._follows.pop(source_id)
            followers = self._followers[wallet]
            del followers[account_id]
            if not followers:
                del self._followers[wallet]

    def matching(self, happening: Happening) -> list[AlertSource]:
        """The rules and follows that match, rules first, each kind by id. A rule about ``follow`` counts for
        a wallet once both the rule and the follow count."""
        verb, wallet, number = happening.verb, happening.wallet, happening.spot.block_number
        followers = self._followers.get(wallet, {})
        rules: list[AlertSource] = []
        for token in (None, happening.token):
            for group in ("any", wallet):
                if (bucket := self._buckets.get((verb, group, token))) is not None:
                    rules += bucket.matching(happening)
            if followers:
                rules += self._match_follow_rules(followers, token, happening)
        matches = [rule for rule in rules if rule.from_number < number]
        matches.sort(key=_id)
        if happening.alerts_followers():
            follows = [follow for follow in followers.values() if follow.from_number < number]
            matches += sorted(follows, key=_id)
        return matches

    def _match_follow_rules(
        self, followers: Mapping[int, AlertSource], token: Address | None, happening: Happening
    ) -> list[AlertSource]:
        """Matching rules about ``follow`` of the wallet's followers. Scans the followers, or the rules that
        would match any followed wallet, whichever are fewer."""
        verb, number = happening.verb, happening.spot.block_number
        all_rules = self._buckets.get((verb, "follow", token))
        if all_rules is None:
            return []
        if all_rules.count(happening) < len(followers) * self._follower_cost:
            return [
                rule
                for rule in all_rules.matching(happening)
                if (follow := followers.get(rule.account_id)) is not None and follow.from_number < number
            ]
        rules: list[AlertSource] = []
        for account_id, follow in followers.items():
            bucket = self._buckets.get((verb, account_id, token))
            if bucket is not None and follow.from_number < number:
                rules += bucket.matching(happening)
        return rules
