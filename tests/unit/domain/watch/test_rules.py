"""A rule is about what it says and nothing else; what is not known is never a hit."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roundtrip.domain.watch.rules import VERBS, Happening, Over, Rule, Unit, Verb, Watch, Who
from support.ruled import HAPPENINGS, TOKENS, WALLETS, happening, rules

ANY = Who("any")


@given(st.integers(0, 2**256), st.none() | st.integers(0, 2**256), st.none() | st.integers(0, 2**256))
@example(50_000, 5, 100)  # exactly 5 %
@example(50_000, 5_000_001, 100_000_000)  # a hair more: less than a millionth of the whole
@example(0, 0, 0)
def test_over_a_share_is_exact(raw: int, part: int | None, whole: int | None) -> None:
    share = None if part is None or not whole or part > whole else Fraction(part, whole)
    answer = Over("%", raw).holds(happening(part_raw=part, whole_raw=whole))
    assert answer is (share is not None and share > Fraction(raw, 1_000_000))


@pytest.mark.parametrize("unit", ["eth", "usd"])
def test_over_is_strictly_more_and_never_the_unknown(unit: Unit) -> None:
    def is_match(worth: int | None) -> bool:
        # The other worth is large: it must not stand in.
        eth_wei, micro_usd = (worth, 10**30) if unit == "eth" else (10**30, worth)
        return Over(unit, 7).holds(happening("buying", WALLETS[0], TOKENS[0], eth_wei, micro_usd, 1, 1))

    assert [is_match(worth) for worth in (None, 0, 6, 7, 8)] == [False, False, False, False, True]
    assert not Over(unit, 0).holds(happening())


@pytest.mark.parametrize("verb", VERBS)
def test_a_rule_is_about_its_verb_its_wallets_its_token_and_its_threshold(verb: Verb) -> None:
    seen = happening(verb, WALLETS[0], TOKENS[0], eth_wei=5)
    watch = Watch(Rule(ANY, verb, Over("eth", 4), TOKENS[0]), frozenset(WALLETS[:2]))
    beside = [
        *(seen._replace(verb=other) for other in VERBS if other != verb),
        seen._replace(wallet=WALLETS[2]),
        seen._replace(token=TOKENS[1]),
        seen._replace(eth_wei=4),
        seen._replace(eth_wei=None),
    ]
    assert watch.matches(seen)
    assert watch.matches(seen._replace(wallet=WALLETS[1]))
    assert not any(watch.matches(other) for other in beside)
    assert not Watch(Rule(ANY, verb), frozenset()).matches(seen)


@given(rules(), HAPPENINGS)
def test_less_said_is_about_more(rule: Rule, seen: Happening) -> None:
    """Whoever takes a condition off a rule, or lowers its threshold, loses no hit."""
    wider = [Rule(rule.who, rule.verb, rule.over), Rule(rule.who, rule.verb, None, rule.token)]
    if rule.over is not None and rule.over.raw:
        wider.append(Rule(rule.who, rule.verb, Over(rule.over.unit, rule.over.raw - 1), rule.token))
    if Watch(rule, None).matches(seen):
        assert all(Watch(other, None).matches(seen) for other in wider)


def test_a_share_is_told_in_millionths_rounded_down() -> None:
    assert happening(part_raw=2, whole_raw=3).share_ppm() == 666_666
    assert happening(part_raw=2, whole_raw=0).share_ppm() is None
    assert happening(part_raw=None, whole_raw=3).share_ppm() is None


def test_more_than_the_whole_is_no_share() -> None:
    """Of a token that says it has a supply of 1."""
    whole, more = happening(part_raw=7, whole_raw=7), happening(part_raw=10**30, whole_raw=1)
    assert (whole.share_ppm(), whole.magnitude("%")) == (10**6, 10**6)
    assert (more.share_ppm(), more.magnitude("%")) == (None, None)
    assert Over("%", 999_999).holds(whole)
    assert not Over("%", 0).holds(more)
