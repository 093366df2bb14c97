"""The index tells what looking at every rule and follow tells, and looks at few of them."""

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.rule_index import AlertSource, RuleIndex
from roundtrip.domain.watch.rules import VERBS, Happening, Over, Rule, Unit, Watch, Who
from support.ruled import HAPPENINGS, TOKENS, WALLETS, happening, rules

ANY, FOLLOW = Who("any"), Who("follow")
IDS, ACCOUNTS, NUMBERS = st.integers(1, 9), st.integers(1, 3), st.integers(0, 5)


def a_rule(id_: int, account_id: int = 1, from_number: int = 0) -> AlertSource:
    return AlertSource("rule", id_, account_id, f"rule {id_}", from_number)


def a_follow(id_: int, account_id: int = 1, from_number: int = 0) -> AlertSource:
    return AlertSource("follow", id_, account_id, f"name{id_}", from_number)


def matching_ids(index: RuleIndex, seen: Happening) -> list[tuple[str, int]]:
    return [(source.kind, source.id) for source in index.matching(seen)]


# --- against looking at all ------------------------------------------------------------------------


@dataclass
class RulesModel:
    """Every rule and follow, each looked at."""

    rules: dict[int, tuple[AlertSource, Rule, Address | None]]
    follows: dict[int, tuple[AlertSource, Address]]

    def matching(self, seen: Happening) -> list[AlertSource]:
        number = seen.spot.block_number
        hits = []
        for _, (source, written, wallet) in sorted(self.rules.items()):
            wallets = frozenset() if wallet is None else frozenset({wallet})
            if written.who.kind == "follow":
                counting = (each for each in self.follows.values() if each[0].from_number < number)
                wallets = frozenset(whom for each, whom in counting if each.account_id == source.account_id)
            watch = Watch(written, None if written.who.kind == "any" else wallets)
            if source.from_number < number and watch.matches(seen):
                hits.append(source)
        for _, (source, whom) in sorted(self.follows.items()):
            if seen.alerts_followers() and whom == seen.wallet and source.from_number < number:
                hits.append(source)
        return hits


class IndexAgainstModel(RuleBasedStateMachine):
    """Whatever was added, replaced and removed before."""

    def __init__(self) -> None:
        super().__init__()
        self.index, self.model = RuleIndex(), RulesModel({}, {})

    @initialize(
        many=st.lists(st.tuples(rules(), ACCOUNTS, NUMBERS), max_size=9), weight=st.sampled_from((0, 1, 99))
    )
    def begin(self, many: list[tuple[Rule, int, int]], weight: int) -> None:
        # From whichever side the index starts.
        self.index = RuleIndex(follower_cost=weight)
        for id_, (written, account_id, from_number) in enumerate(many, 1):
            self.add_rule(id_, account_id, from_number, written, WALLETS[id_ % 3])

    @rule(
        id_=IDS,
        account_id=ACCOUNTS,
        from_number=NUMBERS,
        written=rules(),
        meant=st.none() | st.sampled_from(WALLETS),
    )
    def add_rule(
        self, id_: int, account_id: int, from_number: int, written: Rule, meant: Address | None
    ) -> None:
        wallet = written.who.address if written.who.kind == "wallet" else meant
        wallet = None if written.who.kind in ("any", "follow") else wallet
        source = a_rule(id_, account_id, from_number)
        self.index.add_rule(source, written, wallet)
        self.model.rules[id_] = source, written, wallet

    @rule(id_=IDS, account_id=ACCOUNTS, from_number=NUMBERS, wallet=st.sampled_from(WALLETS))
    def add_follow(self, id_: int, account_id: int, from_number: int, wallet: Address) -> None:
        source = a_follow(id_, account_id, from_number)
        self.index.add_follow(source, wallet)
        follows = self.model.follows
        for other, (each, whom) in list(follows.items()):
            if (each.account_id, whom) == (account_id, wallet):
                del follows[other]
        follows[id_] = source, wallet

    @rule(id_=IDS)
    def remove_rule(self, id_: int) -> None:
        self.index.remove("rule", id_)
        self.model.rules.pop(id_, None)

    @rule(id_=IDS)
    def remove_follow(self, id_: int) -> None:
        self.index.remove("follow", id_)
        self.model.follows.pop(id_, None)

    @rule(seen=st.lists(HAPPENINGS, min_size=1, max_size=8))
    def happen(self, seen: list[Happening]) -> None:
        for each in seen:
            assert self.index.matching(each) == self.model.matching(each)

    @invariant()
    def what_each_is_about_is_found(self) -> None:
        """A happening made for each rule, so that none hides behind those that nothing drawn is about."""
        for source, written, wallet in self.model.rules.values():
            over = written.over.raw + 1 if written.over is not None else 1
            made = happening(
                written.verb, wallet or WALLETS[0], written.token or TOKENS[0], over, over, over, 10**6, 6
            )
            assert self.index.matching(made) == self.model.matching(made), source


IndexAgainstModel.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestIndexAgainstModel = IndexAgainstModel.TestCase


# --- one by one ------------------------------------------------------------------------------------


def test_thresholds_one_above_the_other_in_every_unit() -> None:
    index, unit_of = RuleIndex(), dict[int, tuple[Unit, int]]()
    units: tuple[Unit, ...] = ("eth", "usd", "%")
    for id_ in range(600):
        unit, raw = units[id_ % 3], (id_ * 7) % 200
        unit_of[id_] = unit, raw
        index.add_rule(a_rule(id_), Rule(ANY, "buying", Over(unit, raw)), None)
    seen = happening(eth_wei=100, micro_usd=50, part_raw=30, whole_raw=10**6)
    worth = {"eth": 100, "usd": 50, "%": 30}
    assert matching_ids(index, seen) == [("rule", i) for i, (u, raw) in unit_of.items() if raw < worth[u]]
    assert matching_ids(index, happening()) == []
    for id_ in range(0, 600, 2):
        index.remove("rule", id_)
    assert matching_ids(index, seen) == [
        ("rule", i) for i, (u, raw) in unit_of.items() if raw < worth[u] and i % 2
    ]


def test_a_rule_whose_wallet_nobody_knows_is_about_nothing() -> None:
    index = RuleIndex()
    index.add_rule(a_rule(1), Rule(Who("deployer", TOKENS[0]), "selling"), None)
    assert matching_ids(index, happening("selling")) == []
    index.add_rule(a_rule(1), Rule(Who("deployer", TOKENS[0]), "selling"), WALLETS[0])
    assert matching_ids(index, happening("selling")) == [("rule", 1)]
    assert matching_ids(index, happening("selling", WALLETS[1])) == []


@pytest.mark.parametrize("crowd", [0, 5])
def test_a_rule_about_follows_counts_from_where_both_count(crowd: int) -> None:
    """With a crowd of other followers, and with a crowd of other rules: the index starts from the fewer."""
    for rules_too in (False, True):
        index = RuleIndex()
        index.add_rule(a_rule(1, 1, from_number=5), Rule(FOLLOW, "moving"), None)
        index.add_follow(a_follow(1, 1, from_number=8), WALLETS[0])
        for account_id in range(2, 2 + crowd):
            if rules_too:
                index.add_rule(a_rule(account_id, account_id), Rule(FOLLOW, "moving"), None)
            else:
                index.add_follow(a_follow(account_id, account_id), WALLETS[0])
        at = [matching_ids(index, happening("moving", block_number=number)) for number in (5, 6, 8, 9)]
        assert at == [[], [], [], [("rule", 1)]]
        index.add_follow(a_follow(1, 1, from_number=2), WALLETS[0])
        at = [matching_ids(index, happening("moving", block_number=number)) for number in (5, 6)]
        assert at == [[], [("rule", 1)]]


def test_a_follow_tells_of_trades_launches_and_large_removals_only() -> None:
    index = RuleIndex()
    index.add_follow(a_follow(7, from_number=9), WALLETS[0])
    assert [verb for verb in VERBS if matching_ids(index, happening(verb))] == [
        "buying",
        "selling",
        "launching",
    ]
    assert matching_ids(index, happening(block_number=9)) == []
    removal = happening("removing", part_raw=100, whole_raw=1_000)
    assert matching_ids(index, removal) == []
    assert matching_ids(index, removal._replace(part_raw=101)) == [("follow", 7)]
    assert matching_ids(index, removal._replace(part_raw=11, by_deployer=True)) == [("follow", 7)]
    assert matching_ids(index, removal._replace(part_raw=10, by_deployer=True)) == []
    assert matching_ids(index, removal._replace(whole_raw=None, by_deployer=True)) == []


def test_an_account_follows_a_wallet_once() -> None:
    index = RuleIndex()
    index.add_follow(a_follow(1), WALLETS[0])
    index.add_follow(a_follow(2), WALLETS[0])
    assert matching_ids(index, happening()) == [("follow", 2)]
    index.remove("follow", 1)
    assert matching_ids(index, happening()) == [("follow", 2)]
    index.add_follow(a_follow(2), WALLETS[1])
    assert matching_ids(index, happening()) == []
    assert matching_ids(index, happening(wallet=WALLETS[1])) == [("follow", 2)]


def test_what_is_removed_leaves_nothing_behind() -> None:
    index = RuleIndex()
    written = [Rule(who, "selling", Over("usd", 3)) for who in (ANY, FOLLOW, Who("wallet", WALLETS[0]))]
    for id_, each in enumerate(written):
        index.add_rule(a_rule(id_), each, each.who.address)
        index.add_follow(a_follow(id_, id_), WALLETS[id_])
    for id_ in range(3):
        index.remove("rule", id_)
        index.remove("rule", id_)
        index.remove("follow", id_)
        index.remove("follow", id_)
    assert vars(index) == vars(RuleIndex())


# --- what it costs ---------------------------------------------------------------------------------


class CountedSource(AlertSource):
    """Counts how often anybody looks at one."""

    looks = 0

    def __getattribute__(self, name: str) -> object:
        if name in ("from_number", "account_id"):
            CountedSource.looks += 1
        return super().__getattribute__(name)


def counted(source: AlertSource) -> CountedSource:
    return CountedSource(source.kind, source.id, source.account_id, source.name, source.from_number)


@pytest.mark.parametrize("who", [ANY, FOLLOW, Who("wallet", WALLETS[0])])
def test_only_those_it_is_about_are_looked_at(who: Who) -> None:
    """Of a thousand rules beside each other, and as many followers, ten have a threshold below it."""
    index = RuleIndex()
    for id_ in range(1000):
        rule = Rule(who, "moving", Over("eth", id_))
        index.add_rule(counted(a_rule(id_, account_id=id_)), rule, who.address)
        index.add_follow(counted(a_follow(id_, account_id=id_)), WALLETS[0])
    CountedSource.looks = 0
    assert len(matching_ids(index, happening("moving", eth_wei=10))) == 10
    assert 10 <= CountedSource.looks <= 30


def test_whom_few_follow_costs_few_whatever_others_want_of_theirs() -> None:
    index = RuleIndex()
    for id_ in range(1000):
        index.add_rule(counted(a_rule(id_, account_id=id_)), Rule(FOLLOW, "moving"), None)
    index.add_follow(a_follow(1, account_id=7), WALLETS[0])
    CountedSource.looks = 0
    assert matching_ids(index, happening("moving")) == [("rule", 7)]
    assert 1 <= CountedSource.looks <= 3
